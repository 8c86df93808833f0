package toolchain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

// declare returns the TypeScript declarations of a capability interface, as a namespace that is named after it:
// AcmeCrmContacts for acme:crm/contacts. They describe the objects that the prelude makes from the interface's resources;
// their methods return promises. Types of the other interfaces that they mention have their own namespaces.
func declare(i *abi.Interface) (text string, mentioned []*abi.Interface) {
	d := declarations{of: i}
	d.doc("", i.Doc)
	d.line("", "export namespace %s {", namespace(i))
	for _, t := range i.Types {
		d.declare(t)
	}
	for _, r := range i.Resources {
		d.resource(r)
	}
	d.line("", "}")
	return d.text.String(), d.mentioned
}

// EnvTypesMark is the start of every text that [EnvTypes] returns.
const EnvTypesMark = "// Written by `stile types`"

// EnvTypes returns a TypeScript declaration file that gives `env` its type: one field for each binding, with its interface.
// known, if not nil, has the embedder's interfaces, as [host.Host.WIT] does. Those that bindings name are declared, with the
// interfaces whose types they mention. A binding of an unknown interface has the type unknown. A version after "@" in the name of an
// interface is not compared. types, which may be nil, are types of bindings that say more than
// their interface, by the names of the bindings. vars are the fields of env.vars; without any, env has no vars.
func EnvTypes(bindings, types map[string]string, vars []string, known *abi.Resolve) string {
	handles := map[string]string{}
	for kind, s := range sugars() {
		handles[builtIn+kind] = s.Type
	}
	named := map[string]bool{}
	for _, of := range bindings {
		of, _, _ = strings.Cut(of, "@")
		named[of] = !strings.HasPrefix(of, builtIn)
	}
	var queue []*abi.Interface
	if known != nil {
		queue = slices.DeleteFunc(known.Interfaces(), func(i *abi.Interface) bool { return !named[unversioned(i)] })
	}
	for _, i := range queue {
		if r := bound(i); r != nil {
			handles[unversioned(i)] = namespace(i) + "." + pascal(r.Name)
		}
	}
	var b strings.Builder
	b.WriteString(EnvTypesMark + ": the bindings of the manifest.\nimport type { wit } from \"stile\";\n\ndeclare module \"stile\" {\n  interface Env {\n")
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		of, _, _ := strings.Cut(bindings[name], "@")
		fmt.Fprintf(&b, "    readonly %s: %s;\n", fieldName(name), cmp.Or(types[name], handles[of], "unknown"))
	}
	if len(vars) > 0 {
		b.WriteString("    /** What a person configured: plain data. */\n    readonly vars: {\n")
		for _, field := range vars {
			b.WriteString("      " + field + "\n")
		}
		b.WriteString("    };\n")
	}
	b.WriteString("  }\n")
	declared := map[*abi.Interface]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		if declared[queue[0]] {
			continue
		}
		declared[queue[0]] = true
		text, mentioned := declare(queue[0])
		queue = append(queue, mentioned...)
		b.WriteByte('\n')
		for line := range strings.Lines(text) {
			b.WriteString("  " + strings.TrimPrefix(line, "export "))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// bound returns the resource that a binding of the interface is a handle of: what its `get` returns.
func bound(i *abi.Interface) *abi.Resource {
	for _, f := range i.Funcs {
		if f.Name != "get" || f.Result == nil {
			continue
		}
		if t := f.Result; t.Kind == abi.KindResult && t.Ok != nil && t.Ok.Kind == abi.KindOwn {
			return t.Ok.Resource
		}
	}
	return nil
}

// declarations writes the namespace of one interface.
type declarations struct {
	of        *abi.Interface
	text      strings.Builder
	mentioned []*abi.Interface
}

func (d *declarations) line(indent, format string, args ...any) {
	fmt.Fprintf(&d.text, indent+format+"\n", args...)
}

// doc writes a doc comment. No text in it can end the comment.
func (d *declarations) doc(indent, text string) {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "*\u200b/")
	switch {
	case text == "":
	case strings.Contains(text, "\n"):
		d.line(indent, "/**\n%s * %s\n%s */", indent, strings.ReplaceAll(text, "\n", "\n"+indent+" * "), indent)
	default:
		d.line(indent, "/** %s */", text)
	}
}

func (d *declarations) declare(t *abi.Type) {
	d.doc("  ", t.Doc)
	name := typeName(t.Name)
	switch t.Kind {
	case abi.KindRecord:
		d.line("  ", "interface %s {", name)
		for _, f := range t.Fields {
			d.doc("    ", f.Doc)
			d.line("    ", "%s;", d.member(camel(f.Name), f.Type))
		}
		d.line("  ", "}")
	case abi.KindFlags:
		d.line("  ", "interface %s {", name)
		for _, label := range t.Labels {
			d.line("    ", "%s: boolean;", camel(label))
		}
		d.line("  ", "}")
	case abi.KindEnum:
		names := make([]string, len(t.Cases))
		for at, c := range t.Cases {
			names[at] = fmt.Sprintf("%q", c.Name)
		}
		d.line("  ", "type %s = %s;", name, strings.Join(names, " | "))
	case abi.KindVariant:
		d.line("  ", "type %s =", name)
		for at, c := range t.Cases {
			end := ""
			if at == len(t.Cases)-1 {
				end = ";"
			}
			d.doc("    ", c.Doc)
			d.line("    ", "| %s%s", d.variantCase(c.Name, c.Type), end)
		}
	default: // the rest has no name of its own
	}
}

func (d *declarations) variantCase(name string, payload *abi.Type) string {
	if payload == nil {
		return fmt.Sprintf("{ tag: %q }", name)
	}
	return fmt.Sprintf("{ tag: %q; val: %s }", name, d.typeText(payload))
}

func (d *declarations) resource(r *abi.Resource) {
	d.doc("  ", r.Doc)
	d.line("  ", "interface %s {", typeName(r.Name))
	for _, f := range d.of.Funcs {
		method, ok := strings.CutPrefix(f.Name, "[method]"+r.Name+".")
		if !ok {
			continue
		}
		d.doc("    ", f.Doc)
		params := make([]string, 0, len(f.Params))
		for _, p := range f.Params[1:] {
			params = append(params, fmt.Sprintf("%s: %s", parameter(p.Name), d.typeText(p.Type)))
		}
		for at := len(params) - 1; at >= 0 && f.Params[at+1].Type.Kind == abi.KindOption; at-- {
			params[at] = d.member(parameter(f.Params[at+1].Name), f.Params[at+1].Type)
		}
		d.line("    ", "%s(%s): Promise<%s>;", fieldName(camel(method)), strings.Join(params, ", "), d.resultText(f.Result))
	}
	d.line("  ", "}")
}

// member writes a field or parameter. It is optional if its type is an option.
func (d *declarations) member(name string, t *abi.Type) string {
	if t.Kind == abi.KindOption && t.Elem.Kind != abi.KindOption {
		return name + "?: " + d.typeText(t.Elem) + " | undefined"
	}
	return name + ": " + d.typeText(t)
}

// resultText writes the type of a method's promise. The error case of a result is what the promise rejects with.
func (d *declarations) resultText(t *abi.Type) string {
	if t != nil && t.Kind == abi.KindResult {
		t = t.Ok
	}
	if t == nil || t.IsPollable() {
		return "void"
	}
	return d.typeText(t)
}

var primitives = map[abi.Kind]string{
	abi.KindBool: "boolean", abi.KindS8: "number", abi.KindU8: "number", abi.KindS16: "number", abi.KindU16: "number",
	abi.KindS32: "number", abi.KindU32: "number", abi.KindS64: "bigint", abi.KindU64: "bigint", abi.KindF32: "number",
	abi.KindF64: "number", abi.KindChar: "string", abi.KindString: "string",
}

func (d *declarations) typeText(t *abi.Type) string {
	if t.Name != "" && t.Interface != nil {
		return d.qualified(t.Interface, t.Name)
	}
	switch t.Kind {
	case abi.KindList:
		if t.Elem.Kind == abi.KindU8 {
			return "Uint8Array"
		}
		return "Array<" + d.typeText(t.Elem) + ">"
	case abi.KindTuple:
		elements := make([]string, len(t.Fields))
		for at, f := range t.Fields {
			elements[at] = d.typeText(f.Type)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case abi.KindOption:
		if t.Elem.Kind == abi.KindOption {
			return d.variantCase("some", t.Elem) + " | " + d.variantCase("none", nil)
		}
		return d.typeText(t.Elem) + " | undefined"
	case abi.KindResult:
		return resultCase(d, "ok", t.Ok) + " | " + resultCase(d, "err", t.Err)
	case abi.KindOwn, abi.KindBorrow:
		if t.IsPollable() {
			return "Promise<void>"
		}
		return d.qualified(t.Resource.Interface, t.Resource.Name)
	default:
		return primitives[t.Kind]
	}
}

// resultCase writes a case of a result inside another type, which always has a value, even if it is undefined.
func resultCase(d *declarations, name string, payload *abi.Type) string {
	if payload == nil {
		return fmt.Sprintf("{ tag: %q; val?: undefined }", name)
	}
	return d.variantCase(name, payload)
}

func (d *declarations) qualified(i *abi.Interface, name string) string {
	switch {
	case i == d.of:
		return typeName(name)
	case strings.HasPrefix(i.Name, builtIn) && !strings.HasPrefix(d.of.Name, builtIn):
		return "wit." + namespace(i) + "." + typeName(name)
	default:
		d.mentioned = append(d.mentioned, i)
		return namespace(i) + "." + typeName(name)
	}
}

// builtIn is the prefix of the names of the interfaces that the module "stile" declares.
const builtIn = abi.CapabilityPackage

// namespace names an interface in TypeScript: "acme:crm/contacts@1.0.0" is AcmeCrmContacts, and one of ours only the last word.
func namespace(i *abi.Interface) string {
	name := unversioned(i)
	if own, ok := strings.CutPrefix(name, builtIn); ok {
		return pascal(own)
	}
	return pascal(strings.NewReplacer(":", "-", "/", "-").Replace(name))
}

// typeName names a declared type. It appends "_" if the declarations themselves use that name.
func typeName(name string) string {
	switch name := pascal(name); name {
	case "Array", "Promise", "Uint8Array":
		return name + "_"
	default:
		return name
	}
}

// parameter names a parameter. It appends "_" to reserved words of JavaScript.
func parameter(name string) string {
	name = camel(name)
	if slices.Contains(reserved, name) {
		return name + "_"
	}
	return name
}

var reserved = strings.Fields("arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
	"finally for function if implements import in instanceof interface let new null package private protected public return static super switch this " +
	"throw true try typeof var void while with yield")

// fieldName writes the name of a field or method. It quotes a name that is not an identifier, and "new", which would mean something
// else.
func fieldName(name string) string {
	plain := name != "" && name != "new" && strings.Trim(name[:1], "0123456789") != ""
	for _, r := range name {
		plain = plain && (r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}
	if plain {
		return name
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(err) // every string has a JSON form
	}
	return string(quoted)
}
