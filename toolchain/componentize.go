package toolchain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Componentize wraps a core module, of any language, into a component of world. The module follows the conventions of
// wit-component: it imports functions from modules named like interfaces ("stile:capability/kv@0.1.0", "[method]bucket.get",
// "[resource-drop]bucket"), exports those of the world ("stile:extension/tools@0.1.0#call"), its memory as "memory" and its
// allocator as "cabi_realloc". The component imports the functions that the module imports and no others.
//
// The module may also import WASI preview 1. The component then has an adapter that has no network, no arguments and no environment,
// and that imports WASI 0.2 for what the module uses of: standard output and error, clocks, random numbers, exit, and the files that a
// call names. If the module exports "_initialize", each instance runs it first. Exports named "cabi_post_..." are not called.
//
// An Extism plug-in, which imports from "extism:host/env", exports other names: each exported function without parameters is a tool. See
// [ExtismHTTP] for the bindings that it uses.
//
// It returns a *CoreError for a module that it cannot wrap. The same module gives the same bytes.
func Componentize(world *abi.World, core []byte) ([]byte, error) {
	m, err := readCore(core)
	switch {
	case err != nil:
	case m.isExtism():
		core, err = componentizePlugin(world, m, core, nil)
	default:
		core, err = m.componentize(world, start{})
	}
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	return core, nil
}

// componentize wraps the module.
func (m *coreModule) componentize(world *abi.World, s start) ([]byte, error) {
	l, a, err := m.link(world, s)
	if err != nil {
		return nil, err
	}
	if err := m.checkExports(l.exports); err != nil {
		return nil, err
	}
	core := m.bytes()
	if err := wasmtime.ModuleValidate(validator(), core); err != nil {
		return nil, malformed(err)
	}
	w := &componentWriter{linkage: l, ids: map[declaration]string{}, exported: map[declaration]bool{}}
	w.wrap(m, a, s.generators)
	sections, err := sectionsOf(w.b.String(), core)
	if err != nil {
		return nil, err
	}
	return wasmbin.WriteSections(wasmbin.ComponentHeader, sections), nil
}

// ExtensionWorld is the world of components made elsewhere: it exports the tools of an extension, and can import every interface of
// known other than those of stile:extension. [Componentize] leaves out what a module does not use.
func ExtensionWorld(known *abi.Resolve) *abi.World {
	w := &abi.World{Name: abi.ExtensionWorld, Exports: []*abi.Interface{known.Interface(abi.ExtensionTools)}}
	for _, i := range known.Interfaces() {
		if !strings.HasPrefix(i.Name, abi.ExtensionPackage) {
			w.Imports = append(w.Imports, i)
		}
	}
	return w
}

// validator has the engine's rules for valid modules.
var validator = sync.OnceValue(wasmtime.NewEngine)

// bytes is the module as the component has it: see outSections.
func (m *coreModule) bytes() []byte {
	return wasmbin.WriteSections(wasmbin.CoreHeader, m.outSections())
}

// outSections are the sections without the descriptions of the module's world that tools for components leave in it, and with a name of
// its own for each import.
func (m *coreModule) outSections() []wasmbin.Section {
	var sections []wasmbin.Section
	for _, s := range m.sections {
		switch {
		case s.ID == wasmbin.SectionCustom && strings.HasPrefix(s.Reader().Name(), "component-type"):
			continue
		case s.ID == wasmbin.SectionImport:
			var imports wasmbin.Writer
			imports.Number(uint32(len(m.listed)))
			for _, l := range m.listed {
				imports.Text(l.module)
				imports.Text(l.given())
				imports.Byte(externFunc)
				imports.Number(l.index)
			}
			s.Body = imports
		}
		sections = append(sections, s)
	}
	return sections
}

// oldFuncs are the functions of preview 1 that the module imports, in byte order.
func (m *coreModule) oldFuncs() []string {
	var old []string
	for name := range m.imports {
		function, isOld := strings.CutPrefix(name, preview1+"#")
		if _, known := preview1Funcs()[function]; isOld && known {
			old = append(old, function)
		}
	}
	slices.Sort(old)
	return old
}

// withWASI is a world that can also import the interfaces of WASI that adapters use.
func withWASI(world *abi.World) *abi.World {
	more := *world
	more.Imports = slices.Concat(world.Imports, wasi().Interfaces())
	return &more
}

// linkTo makes the linkage of a component that uses these functions of the world, and of preview 1 by an adapter, which is nil if it uses
// none. An adapter needs a world withWASI.
func linkTo(world *abi.World, used map[string]bool, a *adapter, s start) (*linkage, error) {
	if a != nil {
		a.ticks = max(a.ticks, s.ticks)
		if len(s.generators) > 0 {
			used[randomBytes] = true
		}
		for _, name := range a.imports() {
			used[name] = true
		}
	}
	pruned := &abi.World{Name: world.Name, Exports: world.Exports, ExportFuncs: world.ExportFuncs}
	for _, i := range world.Imports {
		part := *i
		part.Funcs = nil
		for _, f := range i.Funcs {
			if used[coreName(f)] {
				part.Funcs = append(part.Funcs, f)
			}
		}
		pruned.Imports = append(pruned.Imports, &part)
	}
	return newLinkage(pruned)
}

// link finds the functions of the world and of WASI that a module imports. The adapter is nil if it imports none of preview 1.
func (m *coreModule) link(world *abi.World, s start) (*linkage, *adapter, error) {
	old := m.oldFuncs()
	var a *adapter
	if len(old) > 0 {
		a, world = newAdapter(old, usesFiles(old)), withWASI(world)
	}
	isWASI := func(name string) bool { // what the adapter imports is not for the module
		of, _, _ := strings.Cut(name, "#")
		return a != nil && wasi().Interface(of) != nil
	}
	used := map[string]bool{}
	for name := range m.imports {
		used[name] = !isWASI(name)
	}
	l, err := linkTo(world, used, a, s)
	if err != nil {
		return nil, nil, err
	}
	offered := map[string]coreFunc{}
	for _, c := range l.core() {
		if !isWASI(c.name) {
			offered[c.name] = encoded(c.params, c.results)
		}
	}
	for _, name := range old {
		f := preview1Funcs()[name]
		offered[preview1+"#"+name] = encoded(f.params, f.results)
	}
	var unknown, wrong []string
	for _, name := range slices.Sorted(maps.Keys(m.imports)) {
		switch have, ok := offered[name]; {
		case !ok:
			unknown = append(unknown, name)
		case have != m.imports[name]:
			wrong = append(wrong, name)
		}
	}
	if unknown != nil {
		return nil, nil, coreErrorf(CoreImport, unknown, "the module imports what neither world %s nor WASI preview 1 has: %s", printable.Line(world.Name))
	}
	if wrong != nil {
		return nil, nil, coreErrorf(CoreType, wrong, "the module imports these with another type than they have: %s")
	}
	return l, a, nil
}

// indirect is a function that the module gets before it can be made.
type indirect struct {
	coreImport
	id string // what it is in the end
}

// indirects lists what the module imports: from the world, and from the adapter.
func (m *coreModule) indirects(l *linkage, a *adapter) []indirect {
	var list []indirect
	for k, c := range l.core() {
		if _, ok := m.imports[c.name]; ok {
			list = append(list, indirect{c, fmt.Sprintf("(func $core%d)", k)})
		}
	}
	return append(list, a.indirects()...)
}

// indirects lists what the adapter exports.
func (a *adapter) indirects() []indirect {
	if a == nil {
		return nil
	}
	list := make([]indirect, len(a.exports))
	for i, name := range a.exports {
		f := preview1Funcs()[name]
		list[i] = indirect{coreImport{preview1 + "#" + name, f.params, f.results}, fmt.Sprintf("(func $adapter %q)", name)}
	}
	return list
}

// indirectModules writes the modules of functions that call through a table, and of what fills it.
func (w *componentWriter) indirectModules(imports []indirect) {
	w.line("(core module $indirect")
	w.line("  (table $t (export \"table\") %d funcref)", len(imports))
	for k, c := range imports {
		w.line("  (type $f%d (func%s))", k, signature(c.params, c.results))
		w.line("  (func (export \"%d\") (type $f%[1]d)", k)
		for p := range c.params {
			w.line("    (local.get %d)", p)
		}
		w.line("    (call_indirect $t (type $f%d) (i32.const %[1]d)))", k)
	}
	w.line(")")
	w.line("(core module $fill")
	w.line("  (import \"\" \"table\" (table %d funcref))", len(imports))
	for k, c := range imports {
		w.line("  (import \"\" \"%d\" (func $f%[1]d%s))", k, signature(c.params, c.results))
	}
	w.line("  (elem (i32.const 0) func")
	for k := range imports {
		w.line("    $f%d", k)
	}
	w.line("))")
}

// give writes an instance for each module from which m imports, and returns the arguments of its own instance.
func (w *componentWriter) give(m *coreModule, imports []indirect) string {
	w.line("(core instance $indirect (instantiate $indirect))")
	numbers := map[string]int{}
	for k, c := range imports {
		numbers[c.name] = k
	}
	byModule := map[string][]string{}
	for _, l := range m.listed {
		byModule[l.module] = append(byModule[l.module], fmt.Sprintf("  (export %q (func $indirect \"%d\"))", l.given(), numbers[l.module+"#"+l.name]))
	}
	var with strings.Builder
	for n, module := range slices.Sorted(maps.Keys(byModule)) {
		w.line("(core instance $given%d\n%s)", n, strings.Join(byModule[module], "\n"))
		fmt.Fprintf(&with, " (with %q (instance $given%d))", module, n)
	}
	return with.String()
}

// fill fills the table.
func (w *componentWriter) fill(imports []indirect) {
	w.line("(core instance $filled (instantiate $fill (with \"\" (instance")
	w.line("  (export \"table\" (table $indirect \"table\"))")
	for k, c := range imports {
		w.line("  (export \"%d\" %s)", k, c.id)
	}
	w.line("))))")
}

// wrap writes the component around an empty module, which stands for the user's. Lowering the imports needs the module's memory, and
// instantiating the module needs its imports. So the module gets functions that call through a table, which is filled once both
// exist. After that, its initialization runs, or its generators of random numbers are seeded.
func (w *componentWriter) wrap(m *coreModule, a *adapter, generators []generator) {
	imports := m.indirects(w.linkage, a)
	w.line("(component $stile")
	w.line("(core module $user)")
	if a != nil {
		w.module(a.text())
		w.module(a.allocator())
	}
	w.indirectModules(imports)
	_, starts := m.exports[coreStart]
	if starts {
		w.line(`(core module $start (import "" "f" (func)) (start 0))`)
	}
	if len(generators) > 0 {
		w.module(seedText(generators))
		w.line(`(core module $seeds (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const %d)))`, generators[0].at)
	}
	for n, i := range w.linkage.imports {
		w.importInterface(n, i)
	}
	with := w.give(m, imports)
	w.line("(core instance $bindings (instantiate $user%s))", with)
	w.line("(alias core export $bindings %q (core memory $memory))", coreMemory)
	if a == nil {
		w.line("(alias core export $bindings %q (core func $realloc))", coreAllocator)
	} else {
		w.line(`(core instance $allocator (instantiate $allocator (with "guest" (instance (export "cabi_realloc" (func $bindings %q))))))`, coreAllocator)
		w.line(`(alias core export $allocator "cabi_realloc" (core func $realloc))`)
	}
	if w.seeds = len(generators) > 0; w.seeds {
		w.line(`(core instance $seeds (instantiate $seeds))`)
		w.line(`(alias core export $seeds "realloc" (core func $seeds))`)
	}
	w.lowerImports()
	if a != nil {
		w.line(`(core instance $guest (export "memory" (memory $memory)))`)
		w.line(`(core instance $adapter (instantiate $adapter (with "world" (instance $world)) (with "guest" (instance $guest)) (with "allocator" (instance $allocator))))`)
	}
	w.fill(imports)
	if starts {
		w.line(`(core instance $started (instantiate $start (with "" (instance (export "f" (func $bindings %q))))))`, coreStart)
	}
	if len(generators) > 0 {
		w.line(`(core instance $seeded (instantiate $seed (with "world" (instance $world)) (with "guest" (instance $guest))))`)
	}
	w.exportInterfaces()
	w.line(")")
}
