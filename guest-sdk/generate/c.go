package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

// The bindings in C convert nothing: on wasm32, the structs that a C compiler lays out are those of the canonical ABI. The source
// asserts that of each of them.

// The bindings stand between these lines of stile.h and stile.c.
const (
	cBegin = "// Generated from the WIT by guest-sdk/generate: do not edit.\n"
	cEnd   = "// End of what is generated.\n"
)

// between replaces what stands between the two lines.
func between(file, text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(file, []byte(cBegin))
	_, after, closed := bytes.Cut(rest, []byte(cEnd))
	if !ok || !closed {
		return nil, fmt.Errorf("the lines %q and %q are not there", cBegin, cEnd)
	}
	return slices.Concat(before, []byte(cBegin), text, []byte(cEnd), after), nil
}

// cBindings returns the declarations and the definitions of every capability interface, and of what an extension exports.
func cBindings(known *abi.Resolve) (header, source []byte) {
	g := &cGenerator{known: map[string]bool{}}
	for _, i := range known.Interfaces() {
		if offered(i) {
			g.interfaceOf(i)
		}
	}
	tools := known.Interface(abi.ExtensionTools)
	for _, t := range tools.Types {
		g.need(t)
	}
	define(&g.source, "#define STILE_TOOLS %q", tools.Name)
	for _, f := range tools.Funcs {
		if f.Name == "call" {
			g.asserted("stile_result", f.Result.Size(), "value", f.Result.PayloadOffset())
		}
		g.need(f.Result)
	}
	return g.header.Bytes(), g.source.Bytes()
}

type cGenerator struct {
	header, source bytes.Buffer
	known          map[string]bool // types that are declared
	imports        int
}

func define(b *bytes.Buffer, text string, args ...any) { fmt.Fprintf(b, text+"\n", args...) }

func cDoc(b *bytes.Buffer, indent, text string) {
	for line := range strings.Lines(text) {
		define(b, "%s// %s", indent, strings.TrimRight(line, "\n"))
	}
}

// cKeywords are the words of C that WIT could use as names.
var cKeywords = []string{"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto", "if", "int", "long", "register", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"}

// snake is the name of a field, a parameter or a part of a name in C.
func snake(name string) string {
	name = strings.ReplaceAll(name, "-", "_")
	if slices.Contains(cKeywords, name) {
		name += "_"
	}
	return name
}

// cName is the name of a type or resource, made as that of Go is.
func cName(i *abi.Interface, name string) string {
	of := short(i)
	switch {
	case strings.HasPrefix(i.Name, abi.ExtensionPackage):
		return "stile_tool_" + snake(name)
	case of == "types", of == "env", of == "poll", name == of:
		return "stile_" + snake(name)
	default:
		return "stile_" + snake(of) + "_" + snake(name)
	}
}

func cType(t *abi.Type) string {
	if t.Name != "" && t.Interface != nil {
		return cName(t.Interface, t.Name)
	}
	part := func(t *abi.Type) string {
		switch t.Kind {
		case abi.KindS8, abi.KindS16, abi.KindS32, abi.KindS64:
			return fmt.Sprintf("s%d", 8*t.Size())
		case abi.KindU8, abi.KindU16, abi.KindU32, abi.KindU64:
			return fmt.Sprintf("u%d", 8*t.Size())
		default:
			return strings.TrimPrefix(cType(t), "stile_")
		}
	}
	switch t.Kind {
	case abi.KindBool:
		return "bool"
	case abi.KindS8, abi.KindS16, abi.KindS32, abi.KindS64:
		return fmt.Sprintf("int%d_t", 8*t.Size())
	case abi.KindU8, abi.KindU16, abi.KindU32, abi.KindU64, abi.KindChar:
		return fmt.Sprintf("uint%d_t", 8*t.Size())
	case abi.KindF32:
		return "float"
	case abi.KindF64:
		return "double"
	case abi.KindString:
		return "stile_string"
	case abi.KindList:
		if t.Elem.Kind == abi.KindU8 {
			return "stile_bytes"
		}
		return "stile_list_" + part(t.Elem)
	case abi.KindOption:
		return "stile_option_" + part(t.Elem)
	case abi.KindTuple:
		parts := []string{"stile_tuple"}
		for _, f := range t.Fields {
			parts = append(parts, part(f.Type))
		}
		return strings.Join(parts, "_")
	case abi.KindOwn, abi.KindBorrow:
		return cName(t.Resource.Interface, t.Resource.Name)
	default:
		panic(fmt.Sprintf("a type of kind %v has no form in C", t.Kind))
	}
}

// need declares a type, and before it those that it consists of, unless they are declared.
func (g *cGenerator) need(t *abi.Type) {
	switch {
	case t == nil:
		return
	case t.Kind == abi.KindResult:
		g.need(t.Ok)
		g.need(t.Err)
		return
	case t.Kind < abi.KindList:
		return
	case t.Kind == abi.KindOwn || t.Kind == abi.KindBorrow:
		g.resource(t.Resource)
		return
	}
	name := cType(t)
	if g.known[name] || name == "stile_bytes" {
		return
	}
	g.known[name] = true
	g.need(t.Elem)
	for _, f := range t.Fields {
		g.need(f.Type)
	}
	for _, c := range t.Cases {
		g.need(c.Type)
	}
	h := &g.header
	cDoc(h, "", t.Doc)
	switch t.Kind {
	case abi.KindList:
		define(h, "typedef struct { %s *data; size_t len; } %s;\n", cType(t.Elem), name)
		g.asserted(name, t.Size(), "len", 4)
		g.asserted(cType(t.Elem), t.Elem.Size())
	case abi.KindOption:
		define(h, "typedef struct { bool some; %s value; } %s;\n", cType(t.Elem), name)
		g.asserted(name, t.Size(), "value", t.PayloadOffset())
	case abi.KindRecord, abi.KindTuple:
		define(h, "typedef struct {")
		places := []any{}
		for k, f := range t.Fields {
			cDoc(h, "  ", f.Doc)
			define(h, "  %s %s;", cType(f.Type), cField(t, k))
			places = append(places, cField(t, k), t.Offsets()[k])
		}
		define(h, "} %s;\n", name)
		g.asserted(name, t.Size(), places...)
	case abi.KindEnum, abi.KindVariant:
		var payloads bytes.Buffer
		define(h, "enum {")
		for _, c := range t.Cases {
			cDoc(h, "  ", c.Doc)
			define(h, "  %s,", cCase(t, c))
			if c.Type != nil {
				define(&payloads, "    %s %s;", cType(c.Type), snake(c.Name))
			}
		}
		define(h, "};")
		if payloads.Len() == 0 {
			define(h, "typedef uint8_t %s;\n", name)
			g.asserted(name, t.Size())
			return
		}
		define(h, "typedef struct {\n  uint8_t tag; // %s ...\n  union {\n%s  } value;\n} %s;\n", cCase(t, t.Cases[0]), payloads.String(), name)
		g.asserted(name, t.Size(), "value", t.PayloadOffset())
	default:
		panic(fmt.Sprintf("%s: a declared type of kind %v has no form in C", name, t.Kind))
	}
}

func cCase(t *abi.Type, c abi.Case) string {
	return strings.ToUpper(cType(t) + "_" + strings.ReplaceAll(c.Name, "-", "_"))
}

func cField(t *abi.Type, k int) string {
	if t.Kind == abi.KindTuple {
		return fmt.Sprintf("f%d", k)
	}
	return snake(t.Fields[k].Name)
}

// asserted has the compiler check the size of a type, and where its fields are.
func (g *cGenerator) asserted(name string, size uint32, fields ...any) {
	define(&g.source, "_Static_assert(sizeof(%s) == %d, \"layout\");", name, size)
	for k := 0; k < len(fields); k += 2 {
		define(&g.source, "_Static_assert(offsetof(%s, %s) == %d, \"layout\");", name, fields[k], fields[k+1])
	}
}

func (g *cGenerator) resource(r *abi.Resource) {
	name := cName(r.Interface, r.Name)
	if g.known[name] {
		return
	}
	g.known[name] = true
	if cDoc(&g.header, "", r.Doc); r.Doc == "" {
		of, _, _ := strings.Cut(r.Interface.Name, "@")
		define(&g.header, "// A handle of %s/%s.", of, r.Name)
	}
	define(&g.header, "typedef struct { uint32_t handle; } %s;\n", name)
	define(&g.header, "// Gives the handle up. The end of a call drops all that are left.\nvoid %s_drop(%s self);\n", name, name)
	core := g.imported(r.Interface.Name, "[resource-drop]"+r.Name, "void", "uint32_t")
	define(&g.source, "void %s_drop(%s self) { %s(self.handle); }\n", name, name, core)
}

func (g *cGenerator) interfaceOf(i *abi.Interface) {
	for _, t := range i.Types {
		g.need(t)
	}
	for _, r := range i.Resources {
		g.resource(r)
	}
	for _, f := range i.Funcs {
		g.function(f)
	}
}

// imported declares an imported function and returns its name.
func (g *cGenerator) imported(module, name, result, params string) string {
	g.imports++
	core := fmt.Sprintf("stile_import_%d", g.imports)
	define(&g.source, "__attribute__((import_module(%q), import_name(%q)))\nextern %s %s(%s);", module, name, result, core, params)
	return core
}

var cCoreTypes = map[abi.CoreType]string{abi.CoreI32: "uint32_t", abi.CoreI64: "uint64_t", abi.CoreF32: "float", abi.CoreF64: "double"}

// byPointer reports whether a parameter is a pointer: an option, which is null if it is none, or a value with fields.
func byPointer(t *abi.Type) bool {
	return t.Kind == abi.KindOption || t.Kind == abi.KindRecord || t.Kind == abi.KindTuple || t.Kind == abi.KindVariant
}

func cParameter(t *abi.Type, name string) string {
	switch {
	case t.Kind == abi.KindOption:
		return fmt.Sprintf("const %s *%s", cType(t.Elem), name)
	case byPointer(t):
		return fmt.Sprintf("const %s *%s", cType(t), name)
	default:
		return cType(t) + " " + name
	}
}

// function writes an imported function, and the function of C that calls it.
func (g *cGenerator) function(f *abi.Func) {
	params, results := f.Core(true)
	var slots []slot
	var types, names []string
	for k, p := range params {
		slots = append(slots, slot{fmt.Sprintf("f%d", k), cCoreTypes[p]})
		types, names = append(types, cCoreTypes[p]), append(names, slots[k].name)
	}
	core, of := "void", f.Result
	if len(results) > 0 {
		core = cCoreTypes[results[0]]
	}
	for _, p := range f.Params {
		g.need(p.Type)
	}
	g.need(of)
	core = g.imported(f.Interface.Name, f.Name, core, strings.Join(types, ", "))
	cDoc(&g.header, "", g.docOf(f))
	define(&g.header, "%s;\n", cHeader(f))
	s := &g.source
	define(s, "%s {", cHeader(f))
	for _, slot := range slots {
		define(s, "  %s %s = 0;", slot.typ, slot.name)
	}
	var flat int
	for _, p := range f.Params {
		flat += len(p.Type.Flat())
	}
	if len(params) < flat { // they pass through memory
		define(s, "  struct {")
		for k, p := range f.Params {
			define(s, "    %s p%d;", cType(p.Type), k)
		}
		define(s, "  } area = {0};")
		for k, p := range f.Params {
			switch name := cParameterName(f, k); {
			case p.Type.Kind == abi.KindOption:
				define(s, "  if (%s) area.p%d.some = true, area.p%[2]d.value = *%[1]s;", name, k)
			case byPointer(p.Type):
				define(s, "  area.p%d = *%s;", k, name)
			default:
				define(s, "  area.p%d = %s;", k, name)
			}
		}
		whole := &abi.Type{Kind: abi.KindTuple, Fields: f.Params}
		define(s, "  _Static_assert(sizeof area == %d, \"layout\");\n  f0 = (uint32_t)(uintptr_t)&area;", whole.Size())
	} else {
		rest := slots
		for k, p := range f.Params {
			n, name := len(p.Type.Flat()), cParameterName(f, k)
			switch {
			case p.Type.Kind == abi.KindOption:
				define(s, "  if (%s) {\n  %s = 1;", name, rest[0].name)
				g.flat(p.Type.Elem, "(*"+name+")", rest[1:n])
				define(s, "  }")
			case byPointer(p.Type):
				g.flat(p.Type, "(*"+name+")", rest[:n])
			default:
				g.flat(p.Type, name, rest[:n])
			}
			rest = rest[n:]
		}
	}
	call := fmt.Sprintf("%s(%s)", core, strings.Join(names, ", "))
	inMemory := of != nil && len(results) == 0
	memory := func(declaration string) {
		define(s, "  %s\n  _Static_assert(sizeof result == %d, \"layout\");\n  %s = (uint32_t)(uintptr_t)&result;\n  %s;", declaration, of.Size(), names[len(names)-1], call)
	}
	switch {
	case of == nil:
		define(s, "  %s;", call)
	case !inMemory && of.Kind == abi.KindOwn:
		define(s, "  return (%s){%s};", cType(of), call)
	case !inMemory && of.Kind == abi.KindBool:
		define(s, "  return %s != 0;", call)
	case !inMemory:
		define(s, "  return (%s)%s;", cType(of), call)
	case of.Kind == abi.KindResult:
		ok := ""
		if of.Ok != nil {
			ok = cType(of.Ok) + " ok; "
		}
		memory(fmt.Sprintf("struct { bool failed; union { %s%s error; } value; } result;", ok, cType(of.Err)))
		define(s, "  if (result.failed && error) *error = result.value.error;")
		if of.Ok != nil {
			define(s, "  if (!result.failed) *out = result.value.ok;")
		}
		define(s, "  return !result.failed;")
	default:
		memory(cType(of) + " result;")
		define(s, "  return result;")
	}
	define(s, "}\n")
}

// docOf is the documentation of a function; get and put of capabilities have their own.
func (g *cGenerator) docOf(f *abi.Func) string {
	switch {
	case f.Doc != "" || !isEnv(f):
		return f.Doc
	case f.Name == "get":
		return fmt.Sprintf("The binding of this name, which must be of stile:capability/%s.", short(f.Interface))
	default:
		return "Gives a binding of this name to what runs with this env. The handle is gone afterwards."
	}
}

func cParameterName(f *abi.Func, k int) string {
	if k == 0 && isMethod(f) {
		return "self"
	}
	return snake(f.Params[k].Name)
}

// cHeader is the first line of a function in C.
func cHeader(f *abi.Func) string {
	name := ""
	switch {
	case isEnv(f) && f.Name == "get":
		name = "stile_env_" + snake(short(f.Interface))
	case isEnv(f):
		name = "stile_env_" + snake(f.Name) + "_" + snake(short(f.Interface))
	case f.Resource != nil:
		name = cName(f.Interface, f.Resource.Name) + "_" + strings.ReplaceAll(f.Name[strings.LastIndexByte(f.Name, '.')+1:], "-", "_")
	default:
		name = cName(f.Interface, f.Name)
	}
	var params []string
	for k, p := range f.Params {
		params = append(params, cParameter(p.Type, cParameterName(f, k)))
	}
	result := "void"
	switch t := f.Result; {
	case t == nil:
	case t.Kind == abi.KindResult:
		result = "bool"
		if t.Ok != nil {
			params = append(params, cType(t.Ok)+" *out")
		}
		params = append(params, cType(t.Err)+" *error")
	default:
		result = cType(t)
	}
	return fmt.Sprintf("%s %s(%s)", result, name, strings.Join(params, ", "))
}

// flat writes statements that put a value into the variables of its core values, which begin as zero.
func (g *cGenerator) flat(t *abi.Type, v string, slots []slot) {
	set := func(k int, value string) { define(&g.source, "  %s = %s;", slots[k].name, value) }
	switch t.Kind {
	case abi.KindRecord, abi.KindTuple:
		for k, f := range t.Fields {
			n := len(f.Type.Flat())
			g.flat(f.Type, v+"."+cField(t, k), slots[:n])
			slots = slots[n:]
		}
	case abi.KindVariant:
		set(0, v+".tag")
		define(&g.source, "  switch (%s.tag) {", v)
		for _, c := range t.Cases {
			if c.Type != nil {
				define(&g.source, "  case %s:", cCase(t, c))
				g.flat(c.Type, v+".value."+snake(c.Name), slots[1:])
				define(&g.source, "  break;")
			}
		}
		define(&g.source, "  }")
	case abi.KindOption:
		define(&g.source, "  if (%s.some) {", v)
		set(0, "1")
		g.flat(t.Elem, v+".value", slots[1:])
		define(&g.source, "  }")
	case abi.KindString, abi.KindList:
		set(0, fmt.Sprintf("(uint32_t)(uintptr_t)%s.data", v))
		set(1, fmt.Sprintf("%s.len", v))
	case abi.KindOwn, abi.KindBorrow:
		set(0, v+".handle")
	case abi.KindF32, abi.KindF64:
		if slots[0].typ != cType(t) {
			panic("a float that shares its place with an integer is not supported")
		}
		set(0, v)
	default:
		set(0, fmt.Sprintf("(%s)%s", slots[0].typ, v))
	}
}
