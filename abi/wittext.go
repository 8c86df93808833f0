package abi

import (
	"fmt"
	"strings"
)

var kindNames = [...]string{
	KindBool: "bool", KindS8: "s8", KindU8: "u8", KindS16: "s16", KindU16: "u16", KindS32: "s32", KindU32: "u32",
	KindS64: "s64", KindU64: "u64", KindF32: "f32", KindF64: "f64", KindChar: "char", KindString: "string",
	KindList: "list", KindRecord: "record", KindTuple: "tuple", KindVariant: "variant", KindEnum: "enum",
	KindOption: "option", KindResult: "result", KindFlags: "flags", KindOwn: "own", KindBorrow: "borrow",
}

// String gives the WIT keyword: "u8", "record".
func (k Kind) String() string {
	if int(k) >= len(kindNames) || k == 0 {
		return fmt.Sprintf("Kind(%d)", k)
	}
	return kindNames[k]
}

// String returns the type as WIT refers to it: a declared type by its name, any other written out.
func (t *Type) String() string {
	var b strings.Builder
	(&printer{b: &b}).typ(t)
	return b.String()
}

// WIT prints the interface as WIT text with its package. Equal interfaces give equal texts: aliases are expanded, and each type of
// another interface comes through one `use`. [Parse] reads the text back as the same interface if it also gets the texts of those
// other interfaces. An interface that a world declares has no package, so its text begins with the interface.
func (i *Interface) WIT() string {
	var b strings.Builder
	p := &printer{b: &b, home: i, foreign: map[any]string{}, taken: names{}}
	name := i.Name
	if pkg, local := splitName(i.Name); local != "" {
		fmt.Fprintf(&b, "package %s;\n\n", escapePath(pkg))
		name = local
	}
	p.doc(0, i.Doc)
	fmt.Fprintf(&b, "interface %s {\n", escape(name))
	p.uses()
	for _, t := range i.Types {
		p.declaration(t)
	}
	// A resource with methods is printed where its methods are, which keeps the order of the functions. A resource without methods
	// is printed as early as the order of the resources allows.
	methods := map[*Resource][]*Func{}
	for _, f := range i.Funcs {
		methods[f.Resource] = append(methods[f.Resource], f)
	}
	rest := i.Resources
	printed := map[*Resource]bool{nil: true}
	resourcesTo := func(last *Resource) {
		for len(rest) > 0 && (!printed[last] || len(methods[rest[0]]) == 0) {
			p.resource(rest[0], methods[rest[0]])
			printed[rest[0]] = true
			rest = rest[1:]
		}
	}
	resourcesTo(nil)
	for _, f := range i.Funcs {
		if f.Resource != nil {
			resourcesTo(f.Resource)
			continue
		}
		p.doc(1, f.Doc)
		fmt.Fprintf(&b, "  %s: func", escape(f.Name))
		p.signature(f.Params, f.Result)
	}
	b.WriteString("}\n")
	return b.String()
}

// splitName cuts "a:b/c@1.0.0" into "a:b@1.0.0" and "c".
func splitName(whole string) (pkg, name string) {
	whole, version, found := strings.Cut(whole, "@")
	pkg, name, _ = strings.Cut(whole, "/")
	if found {
		pkg += "@" + version
	}
	return pkg, name
}

func escape(name string) string {
	if keywords[name] {
		return "%" + name
	}
	return name
}

// escapePath escapes the names in "a:b/c@1.0.0".
func escapePath(path string) string {
	path, version, found := strings.Cut(path, "@")
	namespace, pkg, _ := strings.Cut(path, ":")
	pkg, name, hasName := strings.Cut(pkg, "/")
	path = escape(namespace) + ":" + escape(pkg)
	if hasName {
		path += "/" + escape(name)
	}
	if found {
		path += "@" + version
	}
	return path
}

// printer writes WIT text.
type printer struct {
	b    *strings.Builder
	home *Interface
	// foreign maps each *Type and *Resource of another interface to its local name.
	foreign map[any]string
	taken   names
}

// doc writes a doc comment, indented by two spaces per level.
func (p *printer) doc(level int, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.b.WriteString(strings.Repeat("  ", level))
		p.b.WriteString(strings.TrimRight("/// "+line, " "))
		p.b.WriteByte('\n')
	}
}

// uses writes the `use` lines, in the order in which the interface refers to other interfaces.
func (p *printer) uses() {
	for _, t := range p.home.Types {
		p.taken[folded(t.Name)] = true
	}
	for _, r := range p.home.Resources {
		p.taken[folded(r.Name)] = true
	}
	for _, f := range p.home.Funcs {
		p.taken[folded(f.Name)] = true
	}
	var from []*Interface
	lines := map[*Interface][]string{}
	refer := func(entity any, name string, i *Interface) {
		if i == nil || i == p.home || p.foreign[entity] != "" {
			return
		}
		local := p.localName(name, i)
		p.foreign[entity] = local
		item := escape(name)
		if local != name {
			item += " as " + escape(local)
		}
		if lines[i] == nil {
			from = append(from, i)
		}
		lines[i] = append(lines[i], item)
	}
	for _, t := range p.home.Types {
		t.refer(refer, true)
	}
	for _, f := range p.home.Funcs {
		for _, param := range f.Params {
			param.Type.refer(refer, false)
		}
		if f.Result != nil {
			f.Result.refer(refer, false)
		}
	}
	home, _ := splitName(p.home.Name)
	for _, i := range from {
		path := escapePath(i.Name)
		if pkg, name := splitName(i.Name); pkg == home {
			path = escape(name) // other parsers refuse the full name inside the package
		}
		fmt.Fprintf(p.b, "  use %s.{%s};\n", path, strings.Join(lines[i], ", "))
	}
}

// refer calls visit for every declared type and resource that t mentions. It looks into a declared type only if that is t itself and
// inside is set.
func (t *Type) refer(visit func(entity any, name string, i *Interface), inside bool) {
	if t.Resource != nil {
		visit(t.Resource, t.Resource.Name, t.Resource.Interface)
	}
	if t.Name != "" && !inside {
		visit(t, t.Name, t.Interface)
		return
	}
	for _, f := range t.Fields {
		f.Type.refer(visit, false)
	}
	if t.Kind == KindList {
		t.Elem.refer(visit, false)
	}
	for payload := range t.payloads() {
		payload.refer(visit, false)
	}
}

// localName picks a free name for a name of another interface: the same name, or the same with that interface's name before it.
func (p *printer) localName(name string, i *Interface) string {
	_, iface := splitName(i.Name)
	local := name
	if p.taken[folded(local)] {
		local = iface + "-" + name
	}
	for n := 0; p.taken[folded(local)] || len(local) > maxName; n++ {
		local = "used-" + letters(n)
	}
	p.taken[folded(local)] = true
	return local
}

// letters counts a, b, ... z, aa, ab, ...
func letters(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letters(n/26-1) + letters(n%26)
}

func (p *printer) declaration(t *Type) {
	p.doc(1, t.Doc)
	fmt.Fprintf(p.b, "  %v %s {\n", t.Kind, escape(t.Name))
	for _, f := range t.Fields {
		p.doc(2, f.Doc)
		fmt.Fprintf(p.b, "    %s: ", escape(f.Name))
		p.typ(f.Type)
		p.b.WriteString(",\n")
	}
	for _, c := range t.Cases {
		p.doc(2, c.Doc)
		p.b.WriteString("    " + escape(c.Name))
		if c.Type != nil {
			p.b.WriteString("(")
			p.typ(c.Type)
			p.b.WriteString(")")
		}
		p.b.WriteString(",\n")
	}
	for _, label := range t.Labels {
		p.b.WriteString("    " + escape(label) + ",\n")
	}
	p.b.WriteString("  }\n")
}

func (p *printer) resource(r *Resource, methods []*Func) {
	p.doc(1, r.Doc)
	if len(methods) == 0 {
		fmt.Fprintf(p.b, "  resource %s;\n", escape(r.Name))
		return
	}
	fmt.Fprintf(p.b, "  resource %s {\n", escape(r.Name))
	for _, f := range methods {
		p.doc(2, f.Doc)
		params, result := f.Params, f.Result
		form, name, _ := strings.Cut(f.Name, "]")
		_, name, _ = strings.Cut(name, ".")
		switch form {
		case "[constructor":
			p.b.WriteString("    constructor")
			if result.Kind == KindOwn {
				result = nil
			}
		case "[static":
			fmt.Fprintf(p.b, "    %s: static func", escape(name))
		default:
			fmt.Fprintf(p.b, "    %s: func", escape(name))
			params = params[1:]
		}
		p.signature(params, result)
	}
	p.b.WriteString("  }\n")
}

func (p *printer) signature(params []Field, result *Type) {
	p.b.WriteString("(")
	for i, param := range params {
		if i > 0 {
			p.b.WriteString(", ")
		}
		p.b.WriteString(escape(param.Name) + ": ")
		p.typ(param.Type)
	}
	p.b.WriteString(")")
	if result != nil {
		p.b.WriteString(" -> ")
		p.typ(result)
	}
	p.b.WriteString(";\n")
}

func (p *printer) typ(t *Type) {
	switch {
	case t.Name != "":
		p.b.WriteString(escape(p.local(t, t.Name)))
	case t.Kind == KindOwn:
		p.b.WriteString(escape(p.local(t.Resource, t.Resource.Name)))
	case t.Kind == KindBorrow:
		p.b.WriteString("borrow<" + escape(p.local(t.Resource, t.Resource.Name)) + ">")
	case t.Kind == KindResult:
		p.result(t)
	case t.Kind == KindTuple:
		p.b.WriteString("tuple<")
		for i, f := range t.Fields {
			if i > 0 {
				p.b.WriteString(", ")
			}
			p.typ(f.Type)
		}
		p.b.WriteString(">")
	case t.Elem != nil:
		p.b.WriteString(t.Kind.String() + "<")
		p.typ(t.Elem)
		p.b.WriteString(">")
	default:
		p.b.WriteString(t.Kind.String())
	}
}

func (p *printer) result(t *Type) {
	p.b.WriteString("result")
	if t.Ok == nil && t.Err == nil {
		return
	}
	p.b.WriteString("<")
	if t.Ok != nil {
		p.typ(t.Ok)
	} else {
		p.b.WriteString("_")
	}
	if t.Err != nil {
		p.b.WriteString(", ")
		p.typ(t.Err)
	}
	p.b.WriteString(">")
}

func (p *printer) local(entity any, name string) string {
	if local := p.foreign[entity]; local != "" {
		return local
	}
	return name
}
