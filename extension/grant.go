package extension

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// Binding is one name in env and what it is asked to be bound to.
type Binding struct {
	// Name is a lower-case word: a letter, then letters, digits and "_", at most 64 bytes.
	Name  string
	Grant Grant
}

// find is where the binding of this name stands, or -1.
func find(bindings []Binding, name string) int {
	return slices.IndexFunc(bindings, func(b Binding) bool { return b.Name == name })
}

// sortBindings puts bindings in byte order of their names.
func sortBindings(bindings []Binding) {
	slices.SortFunc(bindings, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
}

// Grant is what one binding may do: [HTTP], [Workspace], [Dir], [KV], [Clock], [Random], [Console], [Blob], [Tools] or [Custom].
type Grant interface {
	// Interface names the WIT interface of the capability, e.g. "stile:capability/http@0.1.0".
	Interface() string
	// json returns the kind and the value that stand for the grant in a manifest.
	json() (kind string, value any)
}

// HTTP is a client that may send the requests that at least one rule allows. A binding named "network" is also what the
// global fetch uses.
type HTTP struct {
	Rules []http.Rule
	// Within are sets of rules each of which has to allow a request as well: ceilings of an operator, from [Limit]. A manifest
	// has none.
	Within [][]http.Rule
}

// Access says what may be done with a workspace.
type Access string

// The accesses.
const (
	Read      Access = "read"
	ReadWrite Access = "read-write"
)

// Workspace is a directory of a durable workspace.
type Workspace struct {
	// Store names the workspace. It is empty in a manifest: an extension asks for its own.
	Store string
	// Path is the directory, absolute and clean; "/" is the whole workspace.
	Path   string
	Access Access
}

// Dir is a directory of the machine. Only a command line names one: a manifest cannot ask for it.
type Dir struct {
	Path   string
	Access Access
}

// KV is a bucket of small durable values.
type KV struct {
	// Store names the bucket. It is empty in a manifest: an extension asks for its own.
	Store string
}

// Clock is the time, and timers.
type Clock struct{}

// Random is a source of random numbers.
type Random struct{}

// Console is a log.
type Console struct{}

// Blob is a store in which bytes can be kept on the host for the length of a call.
type Blob struct{}

// Tools are the tools of other extensions. Only a command line can grant them; [State.Env] does not make them.
type Tools struct {
	// Files are sources or components.
	Files []string
}

// Custom is a capability of the program that embeds the host.
type Custom struct {
	// Name is the whole name of the WIT interface, e.g. "acme:crm/contacts@1.0.0".
	Name string
	// Config is what the manifest says about it, a JSON object with sorted keys.
	Config json.RawMessage
}

// Interface implements [Grant].
func (HTTP) Interface() string { return http.Interface }

// Interface implements [Grant].
func (Workspace) Interface() string { return workspace.Interface }

// Interface implements [Grant].
func (Dir) Interface() string { return workspace.Interface }

// Interface implements [Grant].
func (KV) Interface() string { return kv.Interface }

// Interface implements [Grant].
func (Clock) Interface() string { return clock.Interface }

// Interface implements [Grant].
func (Random) Interface() string { return random.Interface }

// Interface implements [Grant].
func (Console) Interface() string { return console.Interface }

// Interface implements [Grant].
func (Blob) Interface() string { return blob.Interface }

// Interface implements [Grant].
func (Tools) Interface() string { return tools.Interface }

// Interface implements [Grant].
func (c Custom) Interface() string { return c.Name }

// json is what [Parse] reads; with Within it is for people only.
func (g HTTP) json() (string, any) {
	if len(g.Within) == 0 {
		return "http", g.Rules
	}
	return "http", struct {
		Rules  []http.Rule   `json:"rules"`
		Within [][]http.Rule `json:"within"`
	}{g.Rules, g.Within}
}

func (g Workspace) json() (string, any) {
	return "workspace", struct {
		Path   string `json:"path"`
		Access Access `json:"access"`
	}{g.Path, g.Access}
}

// json is what a person reads; [Parse] refuses it.
func (g Dir) json() (string, any) {
	return "dir", struct {
		Path   string `json:"path"`
		Access Access `json:"access"`
	}{g.Path, g.Access}
}

func (KV) json() (string, any)      { return "kv", true }
func (Clock) json() (string, any)   { return "clock", true }
func (Random) json() (string, any)  { return "random", true }
func (Console) json() (string, any) { return "console", true }
func (Blob) json() (string, any)    { return "blob", true }
func (g Tools) json() (string, any) { return "tools", g.Files }

func (c Custom) json() (string, any) { return c.Name, c.Config }

// switches are the kinds that need no more than `true`.
var switches = map[string]Grant{"kv": KV{}, "clock": Clock{}, "random": Random{}, "console": Console{}, "blob": Blob{}}

// permissionNames are the fields of the short form; each makes a binding of the same name.
var permissionNames = []string{"network", "workspace", "kv", "clock", "random", "console", "blob"}

// kinds are the fields of one binding in the long form, next to names of WIT interfaces.
var kinds = []string{"http", "workspace", "kv", "clock", "random", "console", "blob"}

const (
	maxRules = 256
	maxPath  = 4096 // bytes of a path

	exampleGrant     = `one capability, like {"http": [{"host": "api.example.com"}]} or {"kv": true}`
	exampleWorkspace = `{"path": "/notes", "access": "read"}`
)

// permission reads one field of the short form.
func (r *reader) permission(name string, n *jsonform.Node) Grant {
	switch name {
	case "network":
		g := HTTP{}
		for _, item := range r.Items(n, maxRules, `["api.example.com"]`) {
			g.Rules = append(g.Rules, r.host(item))
		}
		return g
	case "workspace":
		return Workspace{Path: "/", Access: r.access(n)}
	default:
		return r.on(name, n)
	}
}

// grant reads the value of one binding in the long form: an object with the kind as its only field.
func (r *reader) grant(n *jsonform.Node) Grant {
	members := r.Members(n, exampleGrant)
	if r.Err == nil && len(members) != 1 {
		r.Fail(n, exampleGrant, "a binding is one capability, and %d are named here", len(members))
	}
	if r.Err != nil {
		return nil
	}
	kind, value := members[0].Key, members[0].Value
	switch {
	case kind == "http":
		g := HTTP{}
		for _, item := range r.Items(value, maxRules, `[{"host": "api.example.com"}]`) {
			g.Rules = append(g.Rules, r.rule(item))
		}
		return g
	case kind == "workspace":
		return r.workspace(value)
	case switches[kind] != nil:
		return r.on(kind, value)
	case strings.Contains(kind, ":"):
		return r.custom(members[0])
	default:
		r.Fields(n, exampleGrant, kinds)
		return nil
	}
}

func (r *reader) on(kind string, n *jsonform.Node) Grant {
	if n.Value != true && r.Err == nil {
		r.Fail(n, "true, or leave the field out", "%s where true belongs", n.What())
	}
	return switches[kind]
}

func (r *reader) workspace(n *jsonform.Node) Grant {
	g := Workspace{Path: "/", Access: Read}
	fields := r.Fields(n, exampleWorkspace, []string{"path", "access"})
	if path := fields["path"]; path != nil {
		g.Path = r.Text(path, `"/notes"`)
		if problem := pathProblem(g.Path); problem != "" && r.Err == nil {
			r.Fail(path, `a path from the top of the workspace, like "/notes"`, "%s %s", jsonform.Quote(g.Path), problem)
		}
	}
	if access := fields["access"]; access != nil {
		g.Access = r.access(access)
	}
	return g
}

func (r *reader) access(n *jsonform.Node) Access {
	const example = `"read" or "read-write"`
	a := Access(r.Text(n, example))
	if a != Read && a != ReadWrite && r.Err == nil {
		r.Fail(n, example, "%s is not an access", jsonform.Quote(string(a)))
	}
	return a
}

// pathProblem says why a path is not absolute and clean, or nothing.
func pathProblem(path string) string {
	switch {
	case len(path) > maxPath:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(path), maxPath)
	case !utf8.ValidString(path):
		return "is not UTF-8"
	case !strings.HasPrefix(path, "/"):
		return "does not start with /"
	case unseen(path) >= 0:
		return "holds a character that is not seen"
	case path == "/":
		return ""
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Sprintf("holds the segment %q", segment)
		}
	}
	return ""
}

// interfaceName is namespace:package/interface@version, the form of WIT.
var interfaceName = func() *lazyregexp.Regexp {
	const word = `[a-z][a-z0-9]*(-[a-z0-9]+)*`
	return lazyregexp.New(`^` + word + `:` + word + `/` + word + `(@[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)?$`)
}()

func (r *reader) custom(m jsonform.Member) Grant {
	switch {
	case len(m.Key) > 4*maxName, !interfaceName.MatchString(m.Key):
		r.FailAt(m.Offset, m.Value.Path, `"acme:crm/contacts@1.0.0"`, "this is not the name of a WIT interface")
	case strings.HasPrefix(m.Key, "stile:"), strings.HasPrefix(m.Key, "wasi:"):
		r.FailAt(m.Offset, m.Value.Path, "one of "+strings.Join(kinds, ", "), "stile: and wasi: are not an embedder's")
	}
	r.Members(m.Value, "{}")
	if r.Err != nil {
		return nil
	}
	return Custom{Name: m.Key, Config: encode(m.Value.Plain())}
}
