package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// faults are places where a call can only fail.
type faults struct {
	// foreign are uses of names that [Alternative] knows, and that the file does not define itself.
	foreign map[string][]Place
	// fetched are hosts of whole URLs that are given to fetch, and calls what is called of a binding, as "notes.write".
	fetched, calls map[string][]Place
	// guarded are names for which a file asks before it uses them: "notes" in env, typeof Buffer.
	guarded map[string]bool
	// shadowed are files in which env, or a name of it, may also be something else.
	shadowed map[string]bool
	// files are places where a value of node's module fs is imported.
	files []Place
	// looked counts the imports of it whose file was read again, which is bounded.
	looked int
}

func newFaults() *faults {
	return &faults{foreign: map[string][]Place{}, fetched: map[string][]Place{}, calls: map[string][]Place{}, guarded: map[string]bool{}, shadowed: map[string]bool{}}
}

// Faults finds what the extension's own code does and can only fail: at most 20 problems. It uses a binding that the manifest does not ask
// for, a global that does not exist, a host that no rule allows, or a method that the binding never permits. Code that asks first, as
// `"notes" in env` and `typeof Buffer` do, is left alone. defaults are the bindings that every call has. exist returns which of some names
// are globals, and is called at most once; with nil, all of them are.
//
// It reads tokens, so it can miss what other spellings do. With an unclear file, it finds nothing there.
func Faults(in Input, defaults []extension.Binding, exist func(names []string) (map[string]bool, error)) ([]extension.Problem, error) {
	if len(in.Kinds.All()) == 0 {
		in.Kinds = capabilities.Builtin
	}
	c := &collector{
		needs: globals(in.Kinds), bound: boundGlobals(in.Kinds), env: map[string][]Place{}, hosts: map[string][]Place{}, globals: map[string][]Place{}, faults: newFaults(),
	}
	own, _ := codeFiles(in.FS)
	texts := map[string]*source{}
	for _, f := range own {
		if f.read && jslex.IsCode(f.name) {
			c.inFile = map[*[]Sign]int{}
			if text, err := readFile(in.FS, f.name, extension.MaxSource); err == nil {
				if s := lex(f.name, text, jslex.IsJSX(f.name)); s.unclear == "" {
					texts[printable.OneLine(f.name)] = s
					c.scan(s, false)
				}
			}
		}
	}
	if in.Vars || in.Gaps.Vars {
		delete(c.env, "vars")
	}
	c.bindings(in.Bindings)
	var found []extension.Problem
	add := func(at Place, text, fix string) {
		p := extension.Problem{File: at.File, Line: at.Line, Column: at.Column, Text: text, Fix: fix}
		if s := texts[at.File]; s != nil {
			p.Snippet = s.snippet(s.offsetOf(at))
		}
		found = append(found, p)
	}
	for _, use := range c.report.UndeclaredBindings {
		if c.faults.guarded[use.Name] || in.Gaps.May(use.Name) || slices.ContainsFunc(defaults, func(b extension.Binding) bool { return b.Name == use.Name }) {
			continue
		}
		if at := slices.IndexFunc(use.Places, func(p Place) bool { return !c.faults.shadowed[p.File] }); at >= 0 {
			text, fix := in.unasked(use.Name)
			add(use.Places[at], text, fix)
		}
	}
	for host, places := range c.faults.fetched {
		if !in.Gaps.MayBe(abi.HTTPInterface) && !covered(host, in.Bindings) && slices.ContainsFunc(in.Bindings, hosts) {
			add(places[0], fmt.Sprintf("no http binding of the manifest allows the host %s, so this request is denied", host), fmt.Sprintf("%q among the hosts of the manifest, or another URL", hostOnly(host)))
		}
	}
	for call, places := range c.faults.calls {
		name, method, _ := strings.Cut(call, ".")
		if c.faults.shadowed[places[0].File] {
			continue
		}
		for _, b := range in.Bindings {
			if g, ok := b.Grant.(capability.Refuser); ok && b.Name == name {
				if why, fix := g.Refuses(method); why != "" {
					add(places[0], fmt.Sprintf("env.%s.%s is always denied: %s", name, method, why), fix)
				}
			}
		}
	}
	if len(c.faults.files) > 0 && in.NodeFS == "" && !in.Gaps.FS {
		fix := `"fs": "notes" in the manifest, with "notes" as a workspace binding; or env.notes of a workspace binding`
		if at := slices.IndexFunc(in.Bindings, func(b extension.Binding) bool { return b.Grant.Interface() == abi.WorkspaceInterface }); at >= 0 {
			fix = fmt.Sprintf("\"fs\": %q in the manifest, or env.%s", in.Bindings[at].Name, in.Bindings[at].Name)
		}
		add(c.faults.files[0], "node's module fs has no files here: the manifest does not say which binding they are in", fix)
	}
	if names := c.faults.used(); len(names) > 0 && exist != nil {
		there, err := exist(names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !there[name] {
				instead, _ := Alternative(name)
				add(c.faults.foreign[name][0], name+" does not exist here", instead)
			}
		}
	}
	slices.SortStableFunc(found, byPlace)
	return found[:min(len(found), abi.MaxProblems)], nil
}

func byPlace(a, b extension.Problem) int {
	if by := strings.Compare(a.File, b.File); by != 0 {
		return by
	}
	return (a.Line-b.Line)<<16 + min(max(a.Column-b.Column, -1<<15), 1<<15)
}

func hosts(b extension.Binding) bool {
	_, ok := b.Grant.(capability.Hoster)
	return ok
}

// used returns the foreign names that are used and not guarded.
func (f *faults) used() (names []string) {
	for _, name := range Foreign() {
		if len(f.foreign[name]) > 0 && !f.guarded[name] {
			names = append(names, name)
		}
	}
	return names
}

// unasked says what is wrong with the use of a binding, and what to write.
func (in Input) unasked(name string) (text, fix string) {
	text = fmt.Sprintf("env.%s is used, and the manifest does not ask for it", name)
	var names []string
	for _, b := range in.Bindings {
		names = append(names, b.Name)
	}
	var line string
	for _, k := range in.Kinds.All() {
		if k.GlobalBinding == name {
			text = fmt.Sprintf("%s needs the binding %s, and the manifest does not ask for it", strings.Join(k.Globals, " and "), name)
		}
		if k.Permission == name && k.ParsePermission != nil || k.Name == name && k.Parse != nil {
			example := strings.Join(strings.Fields(k.Example), " ")
			line = fmt.Sprintf(`"bindings": {"%s": {"%s": %s}} in the manifest`, name, k.Name, example)
		}
	}
	near := jsonform.Nearest(name, names)
	switch {
	case name == "vars":
		return "env.vars is used, and the manifest has no vars", `"vars" in the manifest`
	case near != "":
		return text, "env." + near
	case line != "":
		return text, line
	case len(names) > 0:
		return text, fmt.Sprintf("env.%s, or a binding %q in the manifest; if a caller passes it, ask first: if (%[2]q in env)", strings.Join(names, " or env."), name)
	default:
		return text, fmt.Sprintf(`a binding %q in the manifest; if a caller passes it, ask first: if (%[1]q in env)`, name)
	}
}

// fault notes what token i, a word, may do that can only fail.
func (v *scan) fault(i int, name string) {
	f := v.faults
	switch {
	case name == "typeof" && v.isName(i+1):
		f.guarded[v.at(i+1)] = true
	case v.ofGlobal(i):
		f.guarded[name] = true // globalThis.Buffer may be a question
	case v.isEnvName(i, name) && v.shadows(i):
		f.shadowed[printable.OneLine(v.source.name)] = true
	case name == "in" && v.isText(i-1) && v.isName(i+1):
		if value, ok := v.value(i - 1); ok {
			f.guarded[value] = true
		}
	case (name == "import" || name == "require") && v.importsFiles(i):
		f.files = append(f.files, v.place(v.offset(i)))
	case name == "fetch" && v.is(i+1, "(") && (v.isText(i+2) || v.kindOf(i+2, jslex.Template)):
		v.fetch(i + 2)
	}
	if v.isEnvName(i, name) && v.is(i+1, ".") && v.isName(i+2) && v.is(i+3, ".") && v.isName(i+4) && v.is(i+5, "(") && !v.isKey(i) {
		v.noted(f.calls, v.at(i+2)+"."+v.at(i+4), i+4)
	}
	if _, known := Alternative(name); known && (!v.isKey(i) || v.is(i+1, ":")) {
		v.foreign(i, name)
	}
}

// importsFiles reports whether token i, import or require, gets node's module fs, and the file uses what it gets.
func (v *scan) importsFiles(i int) bool {
	isFS := func(i int) bool {
		name, ok := v.value(i)
		name = strings.TrimPrefix(name, "node:")
		return ok && v.kindOf(i, jslex.String) && (name == "fs" || name == "fs/promises")
	}
	if v.member(i) || v.isKey(i) {
		return false
	}
	if v.is(i+1, "(") { // within try or a condition, it may be a question
		if v.at(i) != "require" || !isFS(i+2) || !v.is(i+3, ")") || !v.looks() {
			return false
		}
		top := v.is(i-1, "=")
		for open := range v.tokens[:i] {
			top = top && (!v.opens(open) || v.match(open) < i)
		}
		return top
	}
	if v.at(i) == "require" || v.is(i+1, "type") && !v.is(i+2, "from") && !v.is(i+2, ",") {
		return false
	}
	var names []string
	for at := i + 1; at < len(v.tokens) && at < i+200; at++ {
		switch {
		case v.kindOf(at, jslex.String):
			return isFS(at) && v.looks() && slices.ContainsFunc(names, func(name string) bool { return v.usesValue(at, name) })
		case v.is(at, ";") || v.is(at, "="):
			return false
		case v.isName(at) && (v.is(at+1, ",") || v.is(at+1, "}") || v.is(at+1, "from")) && !v.is(at-1, "type"):
			names = append(names, v.at(at))
		}
	}
	return false
}

// looks reports whether the file may be read once more for an import.
func (v *scan) looks() bool {
	v.faults.looked++
	return v.faults.looked <= 20 && len(v.faults.files) == 0
}

// usesValue reports whether a name stands after token i where it is certainly no type.
func (v *scan) usesValue(i int, name string) bool {
	for i++; i < len(v.tokens); i++ {
		if v.isName(i) && v.at(i) == name && !v.member(i) && (v.is(i+1, ".") || v.is(i+1, "(")) &&
			!slices.Contains([]string{":", "<", "|", "&", "typeof", "extends", "implements", "as", "function"}, v.at(i-1)) {
			return true
		}
	}
	return false
}

// shadows reports whether token i, a name of env, is declared as something else: a variable, or a parameter with a type other than Env.
func (v *scan) shadows(i int) bool {
	switch v.at(i - 1) {
	case "const", "let", "var", "function", "class", "namespace":
		return true
	case "(", ",":
		return v.is(i+1, ":") && !slices.Contains([]string{"Env", "any", "unknown", "never"}, v.at(i+2))
	default:
		return false
	}
}

// fetch notes the host of a whole URL.
func (v *scan) fetch(i int) {
	text, next := v.joined(i)
	if next == i { // a template with holes
		text = strings.TrimPrefix(v.at(i), "`")
		text = strings.TrimSuffix(text, "${")
		next++
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "https" && scheme != "http" {
		return
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 && !v.is(next, ")") && !v.is(next, ",") || end == 0 {
		return // the host may go on
	}
	if end < 0 {
		end = len(rest)
	}
	host := strings.ToLower(rest[:end])
	if !strings.ContainsAny(host, "*@%$\\ ") {
		v.noted(v.faults.fetched, host, i)
	}
}

// foreign notes the use of a name of browsers or of Node, unless the file makes it itself.
func (v *scan) foreign(i int, name string) {
	prev, after := v.at(i-1), i+1
	switch {
	case i > 0 && slices.Contains([]string{"const", "let", "var", "function", "class", "interface", "type", "enum", "namespace", "as", "declare", "import"}, prev):
		v.faults.guarded[name] = true // it is defined here
	case v.is(after, "=") || v.is(after, "=>") || v.is(after, ":") || v.is(after, "?"):
		v.faults.guarded[name] = true
	case prev == "typeof":
	case v.is(after, "(") && (v.is(v.next(after), "{") || v.is(v.next(after), ":")): // a method
	case prev == "new", prev == "instanceof", v.is(after, "."), v.is(after, "("), v.is(after, "?."), v.is(after, "["):
		v.noted(v.faults.foreign, name, i)
	case prev == "{" || prev == "," || prev == "(" || prev == "[" || prev == "...": // a parameter, an import or a part of a pattern may define it
		v.faults.guarded[name] = true
	}
}

func (v *scan) noted(places map[string][]Place, name string, i int) {
	if name = printable.OneLine(printable.Short(name, 253)); len(places) < maxSigns && len(places[name]) == 0 {
		places[name] = []Place{v.place(v.offset(i))}
	}
}
