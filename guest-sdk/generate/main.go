// Command generate writes the bindings of the Go SDK and of the C SDK from the WIT. Those of the Rust SDK are written by a program of
// wit-bindgen.
package main

//go:generate go run . -go ../go -c ../c -archive ../go.txtar
//go:generate cargo run --quiet --locked --manifest-path ../rust/generate/Cargo.toml --target-dir ../rust/target

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

func main() {
	goFolder := flag.String("go", "", "folder of bindings.go, which is written")
	cFolder := flag.String("c", "", "folder of stile.h and stile.c, whose bindings are replaced")
	archive := flag.String("archive", "", "file for a copy of the Go module, which is written")
	flag.Parse()
	if err := generate(*goFolder, *cFolder); err != nil {
		log.Fatal(err)
	}
	if err := copyModule(*goFolder, *archive); err != nil {
		log.Fatal(err)
	}
}

// copyModule writes the files of a module as one.
func copyModule(folder, file string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	var a txtar.Archive
	for _, name := range append(names, filepath.Join(folder, "go.mod")) {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		a.Files = append(a.Files, txtar.File{Name: filepath.Base(name), Data: data})
	}
	return os.WriteFile(file, txtar.Format(&a), 0o644)
}

func generate(goFolder, cFolder string) error {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		return err
	}
	text, err := bindings(known)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(goFolder, "bindings.go"), text, 0o644); err != nil {
		return err
	}
	header, source := cBindings(known)
	for name, text := range map[string][]byte{"stile.h": header, "stile.c": source} {
		file := filepath.Join(cFolder, name)
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		after, err := between(before, text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, after, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// offered reports whether the SDKs have bindings of an interface. Code in their languages compresses by itself, as fast as the host does.
func offered(i *abi.Interface) bool {
	return !strings.HasPrefix(i.Name, abi.ExtensionPackage) && i.Name != abi.CompressionInterface
}

// bindings returns the file: every capability interface, and the types of what an extension exports.
func bindings(known *abi.Resolve) ([]byte, error) {
	g := &generator{dropped: map[*abi.Resource]bool{}}
	g.line("// Code generated from the WIT by guest-sdk/generate. DO NOT EDIT.\n")
	g.line("//go:build wasip1\n\npackage stile\n")
	g.line("import (\n\"errors\"\n\"unsafe\"\n)\n")
	for _, i := range known.Interfaces() {
		if offered(i) {
			g.interfaceOf(i)
		}
	}
	tools := *known.Interface(abi.ExtensionTools)
	tools.Funcs = nil // exports
	g.interfaceOf(&tools)
	for _, f := range known.Interface(abi.ExtensionTools).Funcs {
		if f.Name == "call" {
			g.line("const resultSize, resultOffset = %d, %d", f.Result.Size(), f.Result.PayloadOffset())
			g.line("func storeResult(c *call, p unsafe.Pointer, v toolError) {\n*(*uint8)(p) = 1")
			g.store(f.Result.Err, fmt.Sprintf("unsafe.Add(p, %d)", f.Result.PayloadOffset()), "v")
			g.line("}")
		} else {
			g.line("const definitionSize = %d", f.Result.Elem.Size())
		}
	}
	once, err := format.Source(g.b.Bytes())
	if err != nil {
		return nil, err
	}
	return format.Source(once) // what was on one line
}

type generator struct {
	b       bytes.Buffer
	dropped map[*abi.Resource]bool
	slot    int // number of the next core value of a call
}

func (g *generator) line(text string, args ...any) { fmt.Fprintf(&g.b, text+"\n", args...) }

func (g *generator) doc(text string) {
	for line := range strings.Lines(text) {
		g.line("// %s", strings.TrimRight(line, "\n"))
	}
}

var initialisms = map[string]string{"http": "HTTP", "kv": "KV", "url": "URL", "id": "ID", "html": "HTML", "pdf": "PDF"}

func pascal(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if known := initialisms[word]; known != "" {
			b.WriteString(known)
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// short is the last word of an interface's name.
func short(i *abi.Interface) string {
	name, _, _ := strings.Cut(i.Name, "@")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// typeName is the Go name of a type or resource. Those of types, env and poll have their own names, and others begin with the
// interface's. Those that only the SDK uses are not exported.
func typeName(i *abi.Interface, name string) string {
	of := short(i)
	switch {
	case strings.HasPrefix(i.Name, abi.ExtensionPackage):
		return "tool" + pascal(name)
	case of == "types", of == "env", of == "poll", name == of:
		return pascal(name)
	default:
		return pascal(of) + pascal(name)
	}
}

// parameter is the Go name of a parameter, apart from keywords and what the methods use.
func parameter(name string) string {
	name = pascal(name)
	name = strings.ToLower(name[:1]) + name[1:]
	switch name {
	case "c", "r", "p", "out", "err", "uRL":
		name = "the" + pascal(name)
	}
	if token.IsKeyword(name) {
		name += "_"
	}
	return name
}

func goType(t *abi.Type) string {
	if t.Name != "" && t.Interface != nil {
		return typeName(t.Interface, t.Name)
	}
	switch t.Kind {
	case abi.KindBool:
		return "bool"
	case abi.KindS8, abi.KindS16, abi.KindS32, abi.KindS64:
		return fmt.Sprintf("int%d", 8*t.Size())
	case abi.KindU8, abi.KindU16, abi.KindU32, abi.KindU64:
		return fmt.Sprintf("uint%d", 8*t.Size())
	case abi.KindF32, abi.KindF64:
		return fmt.Sprintf("float%d", 8*t.Size())
	case abi.KindChar:
		return "rune"
	case abi.KindString:
		return "string"
	case abi.KindList:
		if t.Elem.Kind == abi.KindU8 {
			return "[]byte"
		}
		return "[]" + goType(t.Elem)
	case abi.KindOption:
		return "*" + goType(t.Elem)
	case abi.KindTuple:
		var fields []string
		for k, f := range t.Fields {
			fields = append(fields, fmt.Sprintf("F%d %s", k, goType(f.Type)))
		}
		return "struct{" + strings.Join(fields, "; ") + "}"
	case abi.KindOwn, abi.KindBorrow:
		return "*" + typeName(t.Resource.Interface, t.Resource.Name)
	default:
		panic(fmt.Sprintf("a type of kind %v has no form in Go", t.Kind))
	}
}

func (g *generator) interfaceOf(i *abi.Interface) {
	for _, t := range i.Types {
		g.declare(t)
	}
	for _, r := range i.Resources {
		name := typeName(i, r.Name)
		g.doc(r.Doc)
		if r.Doc == "" {
			g.line("// %s is a handle of %s/%s.", name, strings.SplitN(i.Name, "@", 2)[0], r.Name)
		}
		g.line("type %s struct{ handle uint32 }\n", name)
		g.line("//go:wasmimport %s [resource-drop]%s\nfunc drop%s(handle uint32)\n", i.Name, r.Name, name)
		g.line("// Drop gives the handle up. A handle that was passed on is gone already.")
		g.line("func (r *%s) Drop() { if r.handle != 0 { drop%[1]s(r.handle); r.handle = 0 } }\n", name)
	}
	for _, f := range i.Funcs {
		g.function(f)
	}
}

func (g *generator) declare(t *abi.Type) {
	name := goType(t)
	g.doc(t.Doc)
	switch t.Kind {
	case abi.KindRecord:
		g.line("type %s struct {", name)
		for _, f := range t.Fields {
			g.doc(f.Doc)
			g.line("%s %s", pascal(f.Name), goType(f.Type))
		}
		g.line("}\n")
	case abi.KindEnum:
		g.line("type %s uint8\n\nconst (", name)
		for k, c := range t.Cases {
			g.doc(c.Doc)
			if k == 0 {
				g.line("%s%s %[1]s = iota", name, pascal(c.Name))
			} else {
				g.line("%s%s", name, pascal(c.Name))
			}
		}
		g.line(")\n")
		return
	case abi.KindVariant:
		base := ""
		if name == "Error" {
			base = "error; "
		}
		g.line("type %s interface { %sis%[1]s() }\n", name, base)
		for _, c := range t.Cases {
			g.doc(c.Doc)
			if c.Type == nil {
				g.line("type %s%s struct{}\n", name, pascal(c.Name))
			} else {
				g.line("type %s%s struct { Value %s }\n", name, pascal(c.Name), goType(c.Type))
			}
			g.line("func (%s%s) is%[1]s() {}\n", name, pascal(c.Name))
		}
	default:
		panic(fmt.Sprintf("%s: a declared type of kind %v has no form in Go", t.Name, t.Kind))
	}
	g.line("func store%s(c *call, p unsafe.Pointer, v %s) {", pascal(name), name)
	if t.Kind == abi.KindRecord {
		offsets := t.Offsets()
		for k, f := range t.Fields {
			g.store(f.Type, add("p", offsets[k]), "v."+pascal(f.Name))
		}
	} else {
		g.line("switch v := v.(type) {\ncase nil: panic(%q)", "a "+name+" is nil")
		for k, c := range t.Cases {
			g.line("case %s%s:\n*(*uint8)(p) = %d", name, pascal(c.Name), k)
			if c.Type != nil {
				g.store(c.Type, add("p", t.PayloadOffset()), "v.Value")
			}
		}
		g.line("}")
	}
	g.line("}\n\nfunc load%s(p unsafe.Pointer) %s {", pascal(name), name)
	if t.Kind == abi.KindRecord {
		offsets := t.Offsets()
		g.line("return %s{", name)
		for k, f := range t.Fields {
			g.line("%s: %s,", pascal(f.Name), g.load(f.Type, add("p", offsets[k])))
		}
		g.line("}\n}\n")
		return
	}
	g.line("switch *(*uint8)(p) {")
	for k, c := range t.Cases {
		value := ""
		if c.Type != nil {
			value = g.load(c.Type, add("p", t.PayloadOffset()))
		}
		g.line("case %d: return %s%s{%s}", k, name, pascal(c.Name), value)
	}
	g.line("}\npanic(\"unknown case\")\n}\n")
}

func add(p string, offset uint32) string {
	if offset == 0 {
		return p
	}
	return fmt.Sprintf("unsafe.Add(%s, %d)", p, offset)
}

func declared(t *abi.Type) bool { return t.Kind == abi.KindRecord || t.Kind == abi.KindVariant }

// store writes statements that put a value into memory.
func (g *generator) store(t *abi.Type, p, v string) {
	switch {
	case declared(t):
		g.line("store%s(c, %s, %s)", pascal(goType(t)), p, v)
	case t.Kind == abi.KindEnum:
		g.line("*(*uint8)(%s) = uint8(%s)", p, v)
	case t.Kind == abi.KindString:
		g.line("c.storeString(%s, %s)", p, v)
	case t.Kind == abi.KindList && t.Elem.Kind == abi.KindU8:
		g.line("c.storeBytes(%s, %s)", p, v)
	case t.Kind == abi.KindList:
		g.line("c.storePair(%s, %s, len(%s))", p, g.list(t, v), v)
	case t.Kind == abi.KindOption:
		g.line("if %s != nil {\n*(*uint8)(%s) = 1", v, p)
		g.store(t.Elem, add(p, t.PayloadOffset()), "*"+v)
		g.line("}")
	case t.Kind == abi.KindTuple:
		for k, offset := range t.Offsets() {
			g.store(t.Fields[k].Type, add(p, offset), fmt.Sprintf("%s.F%d", v, k))
		}
	case t.Kind == abi.KindBorrow:
		g.line("*(*uint32)(%s) = %s.handle", p, v)
	case t.Kind == abi.KindOwn:
		g.line("*(*uint32)(%s) = give(&%s.handle)", p, v)
	default:
		g.line("*(*%s)(%s) = %s", goType(t), p, v)
	}
}

// list writes statements that lay out a list in memory of its own, and returns the variable with its address.
func (g *generator) list(t *abi.Type, v string) string {
	g.slot++
	name := fmt.Sprintf("list%d", g.slot)
	g.line("%s := c.elements(len(%s), %d)\nfor k, v := range %[2]s {\np := unsafe.Add(%[1]s, k*%[3]d)", name, v, t.Elem.Size())
	g.store(t.Elem, "p", "v")
	g.line("}")
	return name
}

// load returns an expression for a value in memory.
func (g *generator) load(t *abi.Type, p string) string {
	switch {
	case declared(t):
		return fmt.Sprintf("load%s(%s)", pascal(goType(t)), p)
	case t.Kind == abi.KindEnum:
		return fmt.Sprintf("%s(*(*uint8)(%s))", goType(t), p)
	case t.Kind == abi.KindString:
		return fmt.Sprintf("loadString(%s)", p)
	case t.Kind == abi.KindList && t.Elem.Kind == abi.KindU8:
		return fmt.Sprintf("loadBytes(%s)", p)
	case t.Kind == abi.KindList:
		return fmt.Sprintf("loadList(%s, %d, func(p unsafe.Pointer) %s { return %s })", p, t.Elem.Size(), goType(t.Elem), g.load(t.Elem, "p"))
	case t.Kind == abi.KindOption:
		return fmt.Sprintf("loadOption(%s, %d, func(p unsafe.Pointer) %s { return %s })", p, t.PayloadOffset(), goType(t.Elem), g.load(t.Elem, "p"))
	case t.Kind == abi.KindTuple:
		var fields []string
		for k, offset := range t.Offsets() {
			fields = append(fields, g.load(t.Fields[k].Type, add(p, offset)))
		}
		return fmt.Sprintf("%s{%s}", goType(t), strings.Join(fields, ", "))
	case t.Kind == abi.KindOwn:
		return fmt.Sprintf("&%s{*(*uint32)(%s)}", strings.TrimPrefix(goType(t), "*"), p)
	default:
		return fmt.Sprintf("*(*%s)(%s)", goType(t), p)
	}
}

var coreTypes = map[abi.CoreType]string{abi.CoreI32: "uint32", abi.CoreI64: "uint64", abi.CoreF32: "float32", abi.CoreF64: "float64"}

// flat writes statements that put a value into the variables of its core values, which begin as zero.
func (g *generator) flat(t *abi.Type, v string, slots []slot) {
	set := func(k int, value string) { g.line("%s = %s(%s)", slots[k].name, slots[k].typ, value) }
	switch {
	case t.Kind == abi.KindRecord || t.Kind == abi.KindTuple:
		for k, f := range t.Fields {
			field := v + "." + pascal(f.Name)
			if t.Kind == abi.KindTuple {
				field = fmt.Sprintf("%s.F%d", v, k)
			}
			n := len(f.Type.Flat())
			g.flat(f.Type, field, slots[:n])
			slots = slots[n:]
		}
	case t.Kind == abi.KindVariant:
		g.line("switch v := %s.(type) {\ncase nil: panic(%q)", v, "a "+goType(t)+" is nil")
		for k, c := range t.Cases {
			g.line("case %s%s:", goType(t), pascal(c.Name))
			set(0, fmt.Sprint(k))
			if c.Type != nil {
				g.flat(c.Type, "v.Value", slots[1:])
			} else {
				g.line("_ = v")
			}
		}
		g.line("}")
	case t.Kind == abi.KindOption:
		g.line("if %s != nil {", v)
		set(0, "1")
		g.flat(t.Elem, "(*"+v+")", slots[1:])
		g.line("}")
	case t.Kind == abi.KindString:
		set(0, fmt.Sprintf("c.text(%s)", v))
		set(1, fmt.Sprintf("len(%s)", v))
	case t.Kind == abi.KindList && t.Elem.Kind == abi.KindU8:
		set(0, fmt.Sprintf("c.keep(unsafe.Pointer(unsafe.SliceData(%s)))", v))
		set(1, fmt.Sprintf("len(%s)", v))
	case t.Kind == abi.KindList:
		name := g.list(t, v)
		set(0, fmt.Sprintf("c.keep(%s)", name))
		set(1, fmt.Sprintf("len(%s)", v))
	case t.Kind == abi.KindBorrow:
		set(0, v+".handle")
	case t.Kind == abi.KindOwn:
		set(0, fmt.Sprintf("give(&%s.handle)", v))
	case t.Kind == abi.KindBool:
		g.line("if %s {", v)
		set(0, "1")
		g.line("}")
	case t.Kind == abi.KindF32 || t.Kind == abi.KindF64:
		if slots[0].typ != goType(t) {
			panic("a float that shares its place with an integer is not supported")
		}
		set(0, v)
	default:
		set(0, v)
	}
}

type slot struct{ name, typ string }

// function writes an imported function, and the method or function of Go that calls it.
func (g *generator) function(f *abi.Func) {
	g.slot++
	core := fmt.Sprintf("import%d", g.slot)
	params, results := f.Core(true)
	var slots []slot
	for k, p := range params {
		slots = append(slots, slot{fmt.Sprintf("f%d", k), coreTypes[p]})
	}
	var list, names []string
	for _, s := range slots {
		list, names = append(list, s.name+" "+s.typ), append(names, s.name)
	}
	result := ""
	if len(results) > 0 {
		result = coreTypes[results[0]]
	}
	g.line("//go:wasmimport %s %s\nfunc %s(%s) %s\n", f.Interface.Name, f.Name, core, strings.Join(list, ", "), result)
	g.doc(f.Doc)
	g.line("%s {", g.header(f))
	g.line("c := begin()\ndefer c.end()")
	for _, s := range slots {
		g.line("var %s %s", s.name, s.typ)
	}
	var flat int
	for _, p := range f.Params {
		flat += len(p.Type.Flat())
	}
	name := func(k int) string {
		if k == 0 && isMethod(f) {
			return "r"
		}
		return parameter(f.Params[k].Name)
	}
	if len(params) < flat { // they pass through memory
		whole := &abi.Type{Kind: abi.KindTuple, Fields: f.Params}
		g.line("p := c.area(%d)\nf0 = c.keep(p)", whole.Size())
		for k, offset := range whole.Offsets() {
			g.store(f.Params[k].Type, add("p", offset), name(k))
		}
	} else {
		rest := slots
		for k, p := range f.Params {
			n := len(p.Type.Flat())
			g.flat(p.Type, name(k), rest[:n])
			rest = rest[n:]
		}
	}
	t := f.Result
	call := fmt.Sprintf("%s(%s)", core, strings.Join(names, ", "))
	inMemory := t != nil && len(results) == 0
	if inMemory {
		g.line("o := c.area(%d)\n%s = c.keep(o)\n%s", t.Size(), names[len(names)-1], call)
	}
	switch {
	case t == nil:
		g.line("%s", call)
	case !inMemory:
		switch t.Kind {
		case abi.KindBool:
			g.line("return %s != 0", call)
		case abi.KindOwn:
			g.line("return &%s{%s}", strings.TrimPrefix(goType(t), "*"), call)
		default:
			g.line("return %s(%s)", goType(t), call)
		}
	case t.Kind == abi.KindResult:
		g.line("if *(*uint8)(o) != 0 {")
		payload := add("o", t.PayloadOffset())
		err := g.load(t.Err, payload)
		if t.Err.Kind == abi.KindString {
			err = fmt.Sprintf("errors.New(%s)", err)
		}
		g.line("err = %s\nreturn\n}", err)
		if t.Ok != nil {
			g.line("out = %s", g.load(t.Ok, payload))
		}
		g.line("return")
	default:
		g.line("return %s", g.load(t, "o"))
	}
	g.line("}\n")
}

// isEnv reports whether a function is get or put of a capability, which become methods of Env.
func isEnv(f *abi.Func) bool {
	return f.Resource == nil && len(f.Params) > 0 && f.Params[0].Type.Kind == abi.KindBorrow && f.Params[0].Type.Resource.Name == "env"
}

// isMethod reports whether a function becomes a method in Go, of its first parameter.
func isMethod(f *abi.Func) bool { return f.Resource != nil || isEnv(f) }

// header is the first line of the Go function.
func (g *generator) header(f *abi.Func) string {
	var params []string
	for k, p := range f.Params {
		if k > 0 || !isMethod(f) {
			params = append(params, parameter(p.Name)+" "+goType(p.Type))
		}
	}
	result := ""
	switch t := f.Result; {
	case t == nil:
	case t.Kind == abi.KindResult && t.Ok != nil:
		result = fmt.Sprintf("(out %s, err error)", goType(t.Ok))
	case t.Kind == abi.KindResult:
		result = "(err error)"
	default:
		result = goType(t)
	}
	of, name := "", ""
	switch {
	case isEnv(f):
		of = "(r *Env) "
		if name = pascal(short(f.Interface)); f.Name == "put" {
			name = "Put" + name
		}
		if f.Doc == "" && f.Name == "get" {
			g.line("// %s returns the binding of this name, which must be of stile:capability/%s.", name, short(f.Interface))
		} else if f.Doc == "" {
			g.line("// %s gives a binding of this name to what runs with this env. The handle is gone afterwards.", name)
		}
	case f.Resource != nil:
		of = fmt.Sprintf("(r *%s) ", typeName(f.Interface, f.Resource.Name))
		name = pascal(f.Name[strings.LastIndexByte(f.Name, '.')+1:])
	default:
		name = typeName(f.Interface, f.Name)
	}
	return fmt.Sprintf("func %s%s(%s) %s", of, name, strings.Join(params, ", "), result)
}
