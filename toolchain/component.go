package toolchain

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wasmbin"
)

// assembly has the parts of a component.
type assembly struct {
	linkage *linkage
	image   *image
	shape   engineShape
	// engine is the name under which the host offers the engine. It is empty to put inline, the engine, into the component.
	engine string
	inline []byte
	// custom sections to add, by name.
	custom []customContent
}

type customContent struct {
	name    string
	content []byte
}

// assemble makes the component. The same parts give the same bytes.
func (a *assembly) assemble() ([]byte, error) {
	modules := [][]byte{memoryModule(a.image.memory)}
	if a.engine == "" {
		modules = slices.Insert(modules, 0, a.inline)
	}
	sections, err := sectionsOf(a.text(), modules...)
	if err != nil {
		return nil, fmt.Errorf("assemble component: %w", err)
	}
	for _, c := range a.custom {
		sections = append(sections, wasmbin.CustomSection(c.name, c.content))
	}
	return wasmbin.WriteSections(wasmbin.ComponentHeader, sections), nil
}

// sectionsOf reads the text of a component, whose first core modules are empty there: they become these.
func sectionsOf(text string, modules ...[]byte) ([]wasmbin.Section, error) {
	wasm, err := wasmtime.Wat2Wasm(text)
	if err != nil {
		return nil, err
	}
	sections, err := wasmbin.ReadSections(wasm, wasmbin.ComponentHeader)
	if err != nil {
		return nil, err
	}
	for i := range sections {
		if sections[i].ID == wasmbin.SectionCoreModule && len(modules) > 0 {
			sections[i].Body, modules = modules[0], modules[1:]
		}
	}
	return sections, nil
}

// text is the component as WebAssembly text, without the content of memory and of an inline engine.
func (a *assembly) text() string {
	w := &componentWriter{linkage: a.linkage, ids: map[declaration]string{}, exported: map[declaration]bool{}}
	supplied := a.engine != ""
	w.line("(component $stile")
	if supplied {
		w.importEngine(a.engine, a.shape)
	} else {
		w.line("(core module $engine)")
	}
	// The host compiles the memory by itself, and the rest once for all components with the same rest. Core types must come first.
	w.line("(core module $memory)")
	if !supplied {
		w.module(imageText(a.shape, ""))
	}
	w.module(bindingsText(a.linkage, a.image.roots, a.shape, supplied))
	for n, i := range a.linkage.imports {
		w.importInterface(n, i)
	}
	w.line("(core instance $memory (instantiate $memory))")
	w.line(`(alias core export $memory "memory" (core memory $memory))`)
	if supplied {
		w.line(`(core instance $engine (instantiate $engine (with "env" (instance $memory))))`)
		w.line(`(alias core export $engine "realloc" (core func $realloc))`)
		w.line(`(core instance $image (export "memory" (memory $memory)))`)
	} else {
		w.line(`(core instance $image (instantiate $image (with "env" (instance $memory))))`)
		w.line(`(core instance $engine (instantiate $engine (with "env" (instance $image)) (with "wasi_snapshot_preview1" (instance $image))))`)
		w.line(`(alias core export $image "realloc" (core func $realloc))`)
	}
	w.lowerImports()
	w.line(`(core instance $bindings (instantiate $bindings (with "image" (instance $image)) (with "engine" (instance $engine)) (with "world" (instance $world))))`)
	if slices.ContainsFunc(a.linkage.exports, func(i *abi.Interface) bool { return i.Name == abi.ExtensionMemory }) {
		w.scratch = "$scratch"
		w.line(`(alias core export $bindings "scratch" (core func %s))`, w.scratch)
	}
	w.exportInterfaces()
	w.line(")")
	return w.b.String()
}

// componentWriter writes the text of a component. A named type or resource has the same identifier in every scope: a scope aliases
// or imports what it does not declare itself. exported holds those that the scope exports under another one.
type componentWriter struct {
	b        bytes.Buffer
	linkage  *linkage
	ids      map[declaration]string
	exported map[declaration]bool
	scratch  string // allocates for stile:extension/memory; empty for the ordinary allocator
	seeds    bool   // whether randomBytes is for the generators of a guest, which does not import it
}

const canonicalOptions = "(memory $memory) (realloc $realloc) string-encoding=utf8"

func (w *componentWriter) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// module adds a core module that stands alone as text.
func (w *componentWriter) module(text string) {
	w.b.WriteString("(core " + strings.TrimPrefix(text, "("))
}

func (w *componentWriter) importEngine(name string, shape engineShape) {
	w.line("(import %q (core module $engine", name)
	w.line(`  (import "env" "memory" (memory %d))`, shape.Pages)
	w.line(`  (export "__indirect_function_table" (table %d funcref))`, shape.Slot+tableSlots)
	w.line(`  (export "realloc" (func (param i32 i32 i32 i32) (result i32)))`)
	for _, e := range engineExports {
		w.line("  (export %q (func%s))", e.name, e.signature)
	}
	w.line("))")
}

// importInterface imports the used part of an interface.
func (w *componentWriter) importInterface(n int, i *abi.Interface) {
	w.line("(import %q (instance $import%d", i.Name, n)
	for _, d := range w.foreign(i) {
		w.line("  (alias outer $stile %s (type %[1]s))", w.id(d))
	}
	for _, d := range w.linkage.declared[i.Name] {
		w.bound("export", d.name(), d)
	}
	for _, f := range i.Funcs {
		w.line("  (export %q (func%s))", f.Name, w.function(f))
	}
	w.line("))")
	for _, d := range w.linkage.declared[i.Name] {
		w.line("(alias export $import%d %q (type %s))", n, d.name(), w.id(d))
	}
}

// lowerImports makes the core instance that the bindings import from "world".
func (w *componentWriter) lowerImports() {
	number := 0
	for n, i := range w.linkage.imports {
		for _, f := range i.Funcs {
			options := canonicalOptions
			if w.seeds && coreName(f) == randomBytes {
				options = "(memory $memory) (realloc $seeds)"
			}
			w.line("(core func $core%d (canon lower (func $import%d %q) %s))", number, n, f.Name, options)
			number++
		}
	}
	for _, r := range w.linkage.drops {
		w.line("(core func $core%d (canon resource.drop %s))", number, w.id(declaration{resource: r}))
		number++
	}
	w.line("(core instance $world")
	for k, c := range w.linkage.core() {
		w.line("  (export %q (func $core%d))", c.name, k)
	}
	w.line(")")
}

// exportInterfaces exports all interfaces. The host checks functions that are lifted one after the other in one instance.
func (w *componentWriter) exportInterfaces() {
	for n, i := range w.linkage.exports {
		w.liftInterface(n, i)
	}
	for n, i := range w.linkage.exports {
		w.exportInterface(n, i)
	}
}

func (w *componentWriter) liftInterface(n int, i *abi.Interface) {
	for _, d := range w.linkage.declared[i.Name] {
		w.line("(type %s %s)", w.id(d), w.shape(d.typ))
	}
	options := canonicalOptions
	if i.Name == abi.ExtensionMemory {
		options = "(memory $memory) (realloc " + cmp.Or(w.scratch, "$realloc") + ") string-encoding=utf8"
	}
	for k, f := range i.Funcs {
		w.line("(func $lift%d-%d%s (canon lift (core func $bindings %q) %s))", n, k, w.function(f), coreName(f), options)
	}
}

// exportInterface exports an interface whose functions are lifted. A component can export a function only if its types have names. A
// nested component names them: it imports types and functions without names and exports them with names.
func (w *componentWriter) exportInterface(n int, i *abi.Interface) {
	own := w.linkage.declared[i.Name]
	used := slices.Concat(w.foreign(i), own)
	w.line("(component $export%d", n)
	for k, d := range used {
		w.bound("import", fmt.Sprintf("type%d", k), d)
	}
	for k, f := range i.Funcs {
		w.line("  (import \"func%d\" (func $func%[1]d%s))", k, w.function(f))
	}
	// A type that is exported must be made of exported types, so each is written out again.
	for _, d := range own {
		shape := w.shape(d.typ)
		id := w.id(d)
		w.line("  (type %s-export-shape %s)", id, shape)
		w.line("  (export %s-export %q (type %[1]s-export-shape))", id, d.name())
		w.exported[d] = true
	}
	for k, f := range i.Funcs {
		w.line("  (export %q (func $func%d) (func%s))", f.Name, k, w.function(f))
	}
	clear(w.exported)
	w.line(")")
	w.line("(instance $export%d (instantiate $export%[1]d", n)
	for k, d := range used {
		w.line("  (with \"type%d\" (type %s))", k, w.id(d))
	}
	for k := range i.Funcs {
		w.line("  (with \"func%d\" (func $lift%d-%[1]d))", k, n)
	}
	w.line("))")
	w.line("(export %q (instance $export%d))", i.Name, n)
}

// bound imports or exports a type under a name, which makes the type a named type of the scope.
func (w *componentWriter) bound(direction, name string, d declaration) {
	if d.resource != nil {
		w.line("  (%s %q (type %s (sub resource)))", direction, name, w.id(d))
		return
	}
	w.line("  (type %s-shape %s)", w.id(d), w.shape(d.typ))
	w.line("  (%s %q (type %s (eq %[3]s-shape)))", direction, name, w.id(d))
}

// foreign lists the types that an interface uses from others, each after the types that it consists of.
func (w *componentWriter) foreign(i *abi.Interface) []declaration {
	var used []declaration
	add := func(d declaration) {
		if d.home().Name != i.Name && !slices.Contains(used, d) {
			used = append(used, d)
		}
	}
	for _, d := range w.linkage.declared[i.Name] {
		walk(d.typ, add)
	}
	for _, f := range i.Funcs {
		walkFunc(f, add)
	}
	return used
}

func (w *componentWriter) id(d declaration) string {
	if w.ids[d] == "" {
		w.ids[d] = fmt.Sprintf("$t%d", len(w.ids))
	}
	if w.exported[d] {
		return w.ids[d] + "-export"
	}
	return w.ids[d]
}

func (w *componentWriter) function(f *abi.Func) string {
	var b strings.Builder
	for _, p := range f.Params {
		fmt.Fprintf(&b, " (param %q %s)", p.Name, w.ref(p.Type))
	}
	if f.Result != nil {
		fmt.Fprintf(&b, " (result %s)", w.ref(f.Result))
	}
	return b.String()
}

// ref refers to a type: by identifier if it has a name, and by its shape otherwise.
func (w *componentWriter) ref(t *abi.Type) string {
	if isNamed(t) {
		return w.id(declaration{typ: t})
	}
	return w.shape(t)
}

// shape writes out a type.
func (w *componentWriter) shape(t *abi.Type) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch t.Kind {
	case abi.KindRecord:
		for _, f := range t.Fields {
			add("(field %q %s)", f.Name, w.ref(f.Type))
		}
	case abi.KindTuple:
		for _, f := range t.Fields {
			add("%s", w.ref(f.Type))
		}
	case abi.KindVariant:
		for _, c := range t.Cases {
			if c.Type == nil {
				add("(case %q)", c.Name)
			} else {
				add("(case %q %s)", c.Name, w.ref(c.Type))
			}
		}
	case abi.KindEnum:
		for _, c := range t.Cases {
			add("%q", c.Name)
		}
	case abi.KindFlags:
		for _, l := range t.Labels {
			add("%q", l)
		}
	case abi.KindList, abi.KindOption:
		add("%s", w.ref(t.Elem))
	case abi.KindResult:
		if t.Ok != nil {
			add("%s", w.ref(t.Ok))
		}
		if t.Err != nil {
			add("(error %s)", w.ref(t.Err))
		}
	case abi.KindOwn, abi.KindBorrow:
		add("%s", w.id(declaration{resource: t.Resource}))
	default:
		return kindNames[t.Kind]
	}
	return "(" + kindNames[t.Kind] + " " + strings.Join(parts, " ") + ")"
}
