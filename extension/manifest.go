// Package extension reads what an extension asks for: its manifest, and the bindings that a person gives on a command line.
// Both become the same typed grants, and grants become capabilities. Reading is strict, because a person approves the
// result: it refuses everything unknown, doubled or ambiguous, with its place and what to write instead.
package extension

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// ManifestFile is the name of the manifest in an extension's folder.
const ManifestFile = "manifest.json"

// Manifest says what an extension is, which tools it offers and which bindings it asks for. It grants nothing.
type Manifest struct {
	// Name is kebab-case: lower-case words with "-" between them, at most 64 bytes.
	Name string
	// Version is a semantic version, e.g. "1.2.0".
	Version string
	// Description is one paragraph for the person who approves the extension, at most 1,000 bytes.
	Description string
	// Tools are the names of the tools, in byte order: the same set as the code exports.
	Tools []string
	// Tags are words by which the extension is found, in byte order: at most 16 in kebab-case, each of at most 32 bytes. It is nil
	// if there are none.
	Tags []string
	// Bindings are what the extension asks for, in byte order of their names. They include those of the short form `permissions`.
	Bindings []Binding
	// WASI says which of Bindings serve files and http of WASI, for a component whose code uses those.
	WASI abi.WASI
	// FS names one of Bindings: a workspace, whose files node's module fs has. It is empty if that module has none.
	FS string
	// Vars are what a person can configure, in byte order of their names. The code reads them in env.vars. They are nil if there are none.
	Vars []Var
	// Durable are the tools whose calls are durable, in byte order. It is nil if there are none.
	Durable []Durable
	// Dependencies are the npm packages that the code imports: names and ranges of versions, as in a package.json. Each must come
	// from the registry under its own name, not from a file or an address. It is nil if there are none.
	Dependencies map[string]string
	// Tests are calls that must have their expected outcome before the extension becomes active.
	Tests []Test
}

// ManifestError reports the first problem of a manifest, and what else is wrong with it.
type ManifestError struct {
	// Path leads to the value, e.g. "bindings.github.http[0].path"; empty for the manifest itself.
	Path string
	// Line and Column count from 1; a column is a character.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Instead says what to write instead.
	Instead string
	// More are the problems after the first, at most 19.
	More []Problem
	// Partial has what could be read, to look for problems elsewhere, and Gaps what it lacks. It is nil if the text is no object.
	Partial *Manifest
	Gaps    Gaps
}

// Gaps are what a manifest says in a form that cannot be read. What is missing there is no problem of its own.
type Gaps struct {
	// Bindings are names that the extension may bind, with their interfaces. An interface is empty if it is not known.
	Bindings map[string]string
	// AnyBinding is set if it may bind any name.
	AnyBinding bool
	// Vars is set if it may have any vars, and FS if node's module fs may have files.
	Vars, FS bool
	// Tests are the indexes of tests that could not be read.
	Tests []int
}

// Bind returns the interfaces of known bindings together with those that the manifest may bind too, and the types of those whose interface is
// not known, as toolchain.EnvTypes has them.
func (g *Gaps) Bind(known, types map[string]string) (bindings, all map[string]string) {
	bindings, all = maps.Clone(known), maps.Clone(types)
	for name, of := range g.Bindings {
		if _, ok := bindings[name]; ok || bindings == nil {
			continue
		}
		if bindings[name] = of; of == "" {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = "any"
		}
	}
	return bindings, all
}

// VarTypes is [VarTypes] of the vars that could be read. If there may be others, each name is one.
func (g *Gaps) VarTypes(vars []Var) []string {
	if g.Vars {
		return []string{"readonly [name: string]: any;"}
	}
	return VarTypes(vars)
}

// May reports whether a name may be that of a binding that could not be read.
func (g *Gaps) May(name string) bool {
	_, ok := g.Bindings[name]
	return ok || g.AnyBinding
}

// MayBe reports whether a binding that could not be read may have an interface.
func (g *Gaps) MayBe(iface string) bool {
	for _, of := range g.Bindings {
		if of == iface || of == "" {
			return true
		}
	}
	return g.AnyBinding
}

func (e *ManifestError) form() *jsonform.Error {
	return &jsonform.Error{Path: e.Path, Line: e.Line, Column: e.Column, Message: e.Message, Instead: e.Instead}
}

// Error implements error. It tells only the first problem.
func (e *ManifestError) Error() string { return e.form().In("manifest") }

// Problem returns the first problem in the form for authors.
func (e *ManifestError) Problem() Problem { return problemOf(e.form()) }

// Problems returns all problems in the form for authors.
func (e *ManifestError) Problems() []Problem { return append([]Problem{e.Problem()}, e.More...) }

func problemOf(e *jsonform.Error) Problem {
	return Problem{File: ManifestFile, Line: e.Line, Column: e.Column, Text: e.Problem(), Fix: e.Instead}
}

// Bounds of a manifest: how many tools it names, and the bytes of its description.
const (
	MaxTools       = 1000
	MaxDescription = 1000
)

const (
	maxName     = 64
	maxVersion  = 64
	maxTags     = 16
	maxTag      = 32
	maxBindings = 64
)

var (
	extensionName = lazyregexp.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	wordName      = lazyregexp.New(`^[a-z][a-z0-9_]*$`)
)

const exampleManifest = `{"name": "github", "version": "1.0.0", "description": "...", "tools": ["create_pr"]}`

// Parse reads a manifest of at most 256 KiB, in the long form, the short form or both, with the kinds that Stile has. An error
// is a *[ManifestError].
func Parse(text []byte) (*Manifest, error) { return ParseWith(capabilities.Builtin, text) }

// ParseWith is [Parse] with other kinds.
func ParseWith(kinds capability.Set, text []byte) (*Manifest, error) {
	r := &reader{Reader: jsonform.New("manifest", text), kinds: kinds}
	r.All = true
	m := r.manifest()
	if r.Keep(); len(r.Kept) == 0 {
		return m, nil
	}
	first := r.Kept[0]
	e := &ManifestError{Path: first.Path, Line: first.Line, Column: first.Column, Message: first.Message, Instead: first.Instead, Partial: m, Gaps: r.gaps}
	for _, other := range r.Kept[1:] {
		e.More = append(e.More, problemOf(other))
	}
	return nil, e
}

// reader reads the forms of this package.
type reader struct {
	*jsonform.Reader
	kinds capability.Set
	gaps  Gaps
}

// gap notes a binding that could not be read.
func (r *reader) gap(name, of string) {
	if r.gaps.Bindings == nil {
		r.gaps.Bindings = map[string]string{}
	}
	r.gaps.Bindings[name] = of
}

// manifest reads all parts, also after a problem. It returns nil if the text is no object.
func (r *reader) manifest() (m *Manifest) {
	root := r.Parse()
	if r.Err != nil {
		return nil
	}
	members := r.Members(root, exampleManifest)
	if r.Err != nil {
		return nil
	}
	known := []string{"name", "version", "description", "tools", "tags", "permissions", "bindings", "wasi", "fs", "vars", "durable", "dependencies", "tests"}
	fields := map[string]*jsonform.Node{}
	for _, f := range members {
		if r.Known(f, known); r.Keep() {
			fields[f.Key] = f.Value
			continue
		}
		switch jsonform.Nearest(f.Key, known) {
		case "bindings", "permissions":
			r.gaps.AnyBinding = true
		case "vars":
			r.gaps.Vars = true
		case "fs":
			r.gaps.FS = true
		}
	}
	m = &Manifest{}
	for _, part := range []struct {
		name     string
		required bool
		read     func(n *jsonform.Node)
	}{
		{"name", true, func(n *jsonform.Node) {
			m.Name = r.match(n, extensionName.MatchString, maxName, `lower-case words with "-" between them, like "my-notes"`)
		}},
		{"version", true, func(n *jsonform.Node) {
			m.Version = r.match(n, abi.IsVersion, maxVersion, `three numbers, like "1.2.0"`)
		}},
		{"description", true, func(n *jsonform.Node) { m.Description = r.description(n) }},
		{"tools", true, func(n *jsonform.Node) {
			met := r.Met
			if m.Tools = r.names(n, "tool", "create_pr", MaxTools, wordName.MatchString, maxName); !r.Keep() || r.Met > met {
				m.Tools = nil // a name that cannot be read may be that of any tool
			}
		}},
		{"tags", false, func(n *jsonform.Node) {
			m.Tags = r.names(n, "tag", "issue-tracker", maxTags, extensionName.MatchString, maxTag)
		}},
		{"dependencies", false, func(n *jsonform.Node) { m.Dependencies = r.dependencies(n) }},
	} {
		switch n := fields[part.name]; {
		case n != nil:
			part.read(n)
		case part.required:
			r.Missing(root, part.name, exampleManifest)
		}
		r.Keep()
	}
	m.Bindings = r.bindings(fields["permissions"], fields["bindings"])
	r.Keep()
	if n := fields["vars"]; n != nil {
		met := r.Met
		if m.Vars = r.vars(n); !r.Keep() || r.Met > met {
			m.Vars, r.gaps.Vars = nil, true
		}
	}
	r.passes(fields["bindings"], m.Bindings)
	r.Keep()
	if n := fields["wasi"]; n != nil {
		m.WASI = r.wasi(n, m.Bindings)
		r.Keep()
	}
	if n := fields["fs"]; n != nil {
		m.FS = r.served(n, m.Bindings, abi.WorkspaceInterface, "notes")
		r.gaps.FS = !r.Keep()
	}
	if n := fields["durable"]; n != nil {
		m.Durable = r.durable(n, m.Tools)
		r.Keep()
	}
	if n := fields["tests"]; n != nil {
		m.Tests = r.tests(n, m)
	}
	return m
}

// ReadBindings reads the short form and the long form of bindings. Either may be nil. It is meant for an operator's files, which use
// the forms of a manifest.
func ReadBindings(r *jsonform.Reader, kinds capability.Set, permissions, bindings *jsonform.Node) []Binding {
	return (&reader{Reader: r, kinds: kinds}).bindings(permissions, bindings)
}

// match reads text of a given form.
func (r *reader) match(n *jsonform.Node, form func(string) bool, limit int, example string) string {
	s := r.Text(n, example)
	switch {
	case r.Err != nil:
	case len(s) > limit:
		r.Fail(n, fmt.Sprintf("at most %d bytes", limit), "%s has %d bytes", jsonform.Quote(s), len(s))
	case !form(s):
		r.Fail(n, example, "%s does not have this form", jsonform.Quote(s))
	}
	return s
}

func (r *reader) description(n *jsonform.Node) string {
	return r.prose(n, "description", "what the extension does, in one paragraph", MaxDescription)
}

// prose reads text for people.
func (r *reader) prose(n *jsonform.Node, what, example string, limit int) string {
	s := r.Text(n, example)
	switch {
	case r.Err != nil:
	case strings.TrimSpace(s) == "":
		r.Fail(n, example, "the %s is empty", what)
	case len(s) > limit:
		r.Fail(n, fmt.Sprintf("at most %d bytes", limit), "the %s has %d bytes", what, len(s))
	default:
		if at := printable.NextUnseen(s); at >= 0 {
			r.Fail(n, "printable text", "the %s holds the character %+q", what, []rune(s[at:])[0])
		}
	}
	return s
}

// names reads a limited number of names of a form, each of at most limit bytes, and sorts them.
func (r *reader) names(n *jsonform.Node, what, example string, most int, form func(string) bool, limit int) []string {
	var names []string
	for _, item := range r.Items(n, most, fmt.Sprintf("[%q]", example)) {
		name := r.match(item, form, limit, fmt.Sprintf("a lower-case name, like %q", example))
		if slices.Contains(names, name) {
			r.Fail(item, fmt.Sprintf("each %s once", what), "the %s %s is here twice", what, jsonform.Quote(name))
		}
		names = append(names, name)
		r.Next()
	}
	slices.Sort(names)
	return names
}

// bindings reads the short form and the long form into one list. With r.All, it leaves out those that have a problem: they are gaps.
func (r *reader) bindings(short, long *jsonform.Node) []Binding {
	var all []Binding
	// read reads one binding. may are the names that it has in the code, and of its interface, if known.
	read := func(n *jsonform.Node, name string, grant func() capability.Grant, of string, may ...string) {
		met := r.Met
		b := Binding{Name: name, Grant: grant()}
		if find(all, name) >= 0 {
			r.Fail(n, "it under another name, or in one place only", "the binding %s is also made by permissions", jsonform.Quote(name))
		}
		if r.Next(); r.Met == met {
			all = append(all, b)
			return
		}
		for _, name := range may {
			r.gap(name, of)
		}
	}
	permissions := r.kinds.Permissions()
	if short != nil {
		known := r.Fields(short, `{"network": ["api.example.com"], "workspace": "read"}`, permissions)
		if _, ok := short.Value.([]jsonform.Member); !ok {
			r.gaps.AnyBinding = true
		}
		r.Next()
		for name := range known {
			if slices.Contains(permissions, name) {
				continue
			}
			if near := jsonform.Nearest(name, permissions); near != "" {
				r.gap(near, r.kinds.PermissionInterface(near))
				continue
			}
			for _, one := range permissions { // any of them may be meant
				if known[one] == nil {
					r.gap(one, r.kinds.PermissionInterface(one))
				}
			}
		}
		for _, name := range permissions {
			if n := known[name]; n != nil {
				read(n, name, func() capability.Grant { return r.kinds.ParsePermission(r.Reader, name, n) }, r.kinds.PermissionInterface(name), name)
			}
		}
	}
	if long != nil {
		members := r.Members(long, `{"notes": {"workspace": {"path": "/notes"}}}`)
		if n := len(all) + len(members); n > maxBindings {
			r.Fail(long, fmt.Sprintf("at most %d", maxBindings), "there are %d bindings", n)
		}
		if r.Err != nil {
			r.gaps.AnyBinding = true
			return nil
		}
		for _, m := range members {
			read(m.Value, m.Key, func() capability.Grant {
				if problem := bindingNameProblem(m.Key); problem != "" {
					r.FailAt(m.Offset, m.Value.Path(), `a lower-case name, like "notes"`, "%s %s", jsonform.Quote(m.Key), problem)
					r.Next()
				}
				return r.kinds.Parse(r.Reader, m.Value)
			}, r.kinds.InterfaceIn(m.Value), m.Key, wordOf(m.Key))
		}
	}
	sortBindings(all)
	return all
}

// wordOf is the name of a binding that was probably meant by another one.
func wordOf(name string) string { return strings.ToLower(notWord.ReplaceAllString(name, "_")) }

var notWord = lazyregexp.New(`[^A-Za-z0-9_]+`)

// passes checks that the bindings which a binding passes on are there, and do not pass on others themselves.
func (r *reader) passes(long *jsonform.Node, all []Binding) {
	if long == nil || r.Err != nil {
		return
	}
	for _, m := range r.Members(long, "{}") {
		at := find(all, m.Key)
		if at < 0 {
			continue
		}
		g, ok := all[at].Grant.(capability.Passer)
		if !ok {
			continue
		}
		for _, name := range g.Passes() {
			there := r.gaps.May(name)
			var passer capability.Passer
			if i := find(all, name); i >= 0 {
				there = true
				passer, _ = all[i].Grant.(capability.Passer)
			} else {
				there = there || find(Defaults(r.kinds), name) >= 0
			}
			switch {
			case !there:
				r.Fail(m.Value, "the names of bindings of this manifest", "the binding %s passes on %s, and there is no such binding", jsonform.Quote(m.Key), jsonform.Quote(name))
			case passer != nil:
				r.Fail(m.Value, "the names of other bindings", "the binding %s passes on %s, which cannot be passed on", jsonform.Quote(m.Key), jsonform.Quote(name))
			}
			r.Next()
		}
	}
}

// bindingNameProblem says why a name cannot be a property of env, or returns nothing. An object with `then` would be a promise, and
// every object has `constructor` and `prototype`.
func bindingNameProblem(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(name), maxName)
	case !wordName.MatchString(name):
		return `must start with a-z, and have only a-z, 0-9 and "_"`
	case name == "then" || name == "constructor" || name == "prototype":
		return "means something else in JavaScript"
	default:
		return ""
	}
}
