package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// File is where a site keeps its workspaces.
const File = "workspace.db"

// Kind is a directory of a durable workspace.
var Kind = &capability.Kind{
	Name: "workspace", Interface: Interface, Permission: "workspace", Example: `{ "path": "/", "access": "read" }`,
	Parse: parse, ParsePermission: parsePermission, ParseSpec: parseSpec, Learn: newRecorded,
	SpecForm: "workspace:STORE[/path][,rw]", SpecMeans: "files, kept in STILE_HOME; read-only without rw",
}

// Access is what a binding may do with a directory.
type Access string

// The levels of access.
const (
	Read      Access = "read"
	ReadWrite Access = "read-write"
)

// Rights are rights to a directory of a durable workspace.
type Rights struct {
	// Store names the workspace. It is empty in a manifest, where an extension asks for its own.
	Store string
	// Path is the directory, absolute and clean. "/" is the whole workspace.
	Path   string
	Access Access
}

const exampleRights = `{"path": "/notes", "access": "read"}`

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	g := Rights{Path: "/", Access: Read}
	fields := r.Fields(n, exampleRights, []string{"path", "access"})
	if path := fields["path"]; path != nil {
		g.Path = r.Text(path, `"/notes"`)
		if problem := pathProblem(g.Path); problem != "" && r.Err == nil {
			r.Fail(path, `a path from the top of the workspace, like "/notes"`, "%s %s", jsonform.Quote(g.Path), problem)
		}
	}
	if access := fields["access"]; access != nil {
		g.Access = parseAccess(r, access)
	}
	return g
}

func parsePermission(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	return Rights{Path: "/", Access: parseAccess(r, n)}
}

func parseAccess(r *jsonform.Reader, n *jsonform.Node) Access {
	const example = `"read" or "read-write"`
	a := Access(r.Text(n, example))
	if a != Read && a != ReadWrite && r.Err == nil {
		r.Fail(n, example, "%s is not an access", jsonform.Quote(string(a)))
	}
	return a
}

// pathProblem returns why a path is not absolute and clean, or "".
func pathProblem(path string) string {
	switch {
	case len(path) > maxPath:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(path), maxPath)
	case !utf8.ValidString(path):
		return "is not UTF-8"
	case !strings.HasPrefix(path, "/"):
		return "does not start with /"
	case printable.NextUnseen(path) >= 0:
		return "holds an invisible character"
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

func parseSpec(s capability.Spec) (capability.Grant, error) {
	const example = "workspace:NAME[/path][,rw]"
	store, path, _ := strings.Cut(s.Argument, "/")
	g := Rights{Store: store, Path: "/" + path}
	if !capability.IsStoreName(store) {
		return nil, &capability.MistakeError{Text: fmt.Sprintf("%s cannot name a workspace, %s can", jsonform.Quote(store), capability.StoreNames), Fix: example}
	}
	if problem := pathProblem(g.Path); problem != "" {
		return nil, &capability.MistakeError{Text: fmt.Sprintf("the path %s %s", jsonform.Quote(g.Path), problem), Fix: example}
	}
	var err error
	g.Access, err = specAccess("workspace", s.Options, example)
	return g, err
}

func specAccess(what, options, example string) (Access, error) {
	switch options {
	case "":
		return Read, nil
	case "rw":
		return ReadWrite, nil
	default:
		return "", &capability.MistakeError{Text: fmt.Sprintf("a %s has no option %s", what, jsonform.Quote(options)), Fix: example}
	}
}

// writes are the methods of sugar.ts that change the directory.
var writes = []string{
	"append", "copy", "edit", "makeDirectory", "makeLink", "move", "remove", "removeSnapshot", "replace", "restore", "restoreSnapshot", "setMode", "snapshot", "write",
}

// Refuses implements [capability.Refuser].
func (g Rights) Refuses(method string) (why, fix string) {
	if g.Access != ReadWrite && slices.Contains(writes, method) {
		return "the binding may only read", `"access": "read-write", or "workspace": "read-write" among the permissions`
	}
	return "", ""
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Rights) Document() any { return g.Access.document(g.Path) }

func (a Access) document(path string) any {
	return struct {
		Path   string `json:"path"`
		Access Access `json:"access"`
	}{path, a}
}

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	store := "its own workspace"
	if g.Store != "" {
		store = "the workspace " + g.Store
	}
	if g.Path != "/" {
		store = g.Path + " of " + store
	}
	return []string{g.Access.describe(printable.Line(store))}
}

func (a Access) describe(where string) string {
	if a == ReadWrite {
		return "may read, write and remove files in " + where
	}
	return "may read files in " + where
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	return []string{printable.Line(strings.TrimSpace("workspace "+g.Store) + " " + g.Path + " " + string(g.Access))}
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	return ok && g.Store == a.Store && liesIn(g.Path, a.Path) && g.Access.covers(a.Access)
}

func (a Access) covers(asked Access) bool { return a == asked || a == ReadWrite && asked == Read }

// liesIn reports whether a path is a directory or lies below it; both are absolute and clean.
func liesIn(directory, path string) bool {
	return directory == "/" || path == directory || strings.HasPrefix(path, directory+"/")
}

// Limit implements [capability.Limiter]: it takes the widest access of the ceiling's directories that contain this one.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	for _, part := range []Rights{g, {Store: g.Store, Path: g.Path, Access: Read}} {
		if slices.ContainsFunc(ceiling, func(c capability.Grant) bool { return capability.Covers(c, part) }) {
			return part
		}
	}
	return nil
}

// Own implements [capability.Owner]: all bindings of an extension share its workspace.
func (g Rights) Own(store, _ string) capability.Grant {
	g.Store = store
	return g
}

// Holds implements [capability.Holder].
func (g Rights) Holds(ctx context.Context, s *capability.Site) (store string, has bool, err error) {
	opened, err := open(ctx, s)
	if err != nil {
		return g.Store, false, err
	}
	has, err = opened.Has(ctx, g.Store)
	return g.Store, has, err
}

// Spec implements [capability.Holder].
func (g Rights) Spec() string {
	spec := "workspace:" + g.Store + strings.TrimSuffix(g.Path, "/")
	if g.Access == ReadWrite {
		spec += ",rw"
	}
	return spec
}

// Reach implements [capability.Reacher].
func (g Rights) Reach() (changes, open bool) { return g.Access != Read, false }

// Short implements [capability.Shortener].
func (g Rights) Short() any { return g.Access }

// Remedy implements [capability.Remedier].
func (g Rights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(Rights)
	return remedy(spec, g.Access, w.Access, ok)
}

// remedy adds the missing right to a read-only binding.
func remedy(spec string, has, wants Access, same bool) string {
	if same && has == Read && wants == ReadWrite {
		return spec + ",rw"
	}
	return ""
}

// Open implements [capability.Opener].
func (g Rights) Open(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	store, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	d, err := store.Workspace(g.Store).Sub(g.Path)
	if err != nil {
		return nil, err
	}
	return g.Access.of(d), nil
}

// open returns the store of a site.
func open(ctx context.Context, s *capability.Site) (*Store, error) {
	return capability.Store(ctx, s, File, func(ctx context.Context, path string) (*Store, error) { return Open(ctx, path, Options{Room: s.Room}) })
}

// of is a directory with no more than this access.
func (a Access) of(d *Directory) *Directory {
	if a != ReadWrite {
		return d.AsReadOnly()
	}
	return d
}

// Double implements [double.Doubler] with a directory that has the files of the test, by their paths in it.
func (g Rights) Double(ctx context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	files, err := double.Members[string](t, answers, `{"/notes/a.md": "text"}`)
	if err != nil {
		return nil, err
	}
	const most = double.MaxKept // in a workspace, and as much again in its history
	store, err := double.Store(t.Stores, File, func(path string) (*Store, error) {
		return Open(ctx, path, Options{Bytes: most, HistoryBytes: most, Files: 1000, Snapshots: 4, BlobBytes: 4 * most, Now: t.Clock.Time})
	})
	if err != nil {
		return nil, err
	}
	d, err := store.Workspace(g.Store).Sub(g.Path)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := t.Kept(path, d.Write(ctx, path, files[path])); err != nil {
			return nil, err
		}
	}
	return g.Access.of(d), nil
}
