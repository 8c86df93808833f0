package toolchain

import (
	"fmt"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Componentize wraps a core module, of any language, into a component of world. The module follows the conventions of
// wit-component: it imports functions from modules named like interfaces ("stile:capability/kv@0.1.0", "[method]bucket.get",
// "[resource-drop]bucket"), exports those of the world ("stile:extension/tools@0.1.0#call"), its memory as "memory" and its
// allocator as "cabi_realloc". The component imports the functions that the module imports and no others.
func Componentize(world *abi.World, core []byte) ([]byte, error) {
	imports, err := readImports(core)
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	pruned := &abi.World{Name: world.Name, Exports: world.Exports, ExportFuncs: world.ExportFuncs}
	for _, i := range world.Imports {
		wanted := *i
		wanted.Funcs = nil
		for _, f := range i.Funcs {
			if _, ok := imports[coreName(f)]; ok {
				wanted.Funcs = append(wanted.Funcs, f)
			}
		}
		pruned.Imports = append(pruned.Imports, &wanted)
	}
	l, err := newLinkage(pruned)
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	offered := map[string]bool{}
	for _, c := range l.core() {
		offered[c.name] = true
	}
	for name := range imports {
		if !offered[name] {
			return nil, fmt.Errorf("componentize: the module imports %s, which is not in world %s", name, world.Name)
		}
	}
	w := &componentWriter{linkage: l, ids: map[declaration]string{}, exported: map[declaration]bool{}}
	w.wrap()
	wasm, err := wasmtime.Wat2Wasm(w.b.String())
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	sections, err := wasmbin.ReadSections(wasm, wasmbin.ComponentHeader)
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	for i := range sections {
		if sections[i].ID == wasmbin.SectionCoreModule {
			sections[i].Body = core
			break
		}
	}
	return wasmbin.WriteSections(wasmbin.ComponentHeader, sections), nil
}

// wrap writes the component around an empty module, which stands for the user's. Lowering the imports needs the module's memory, and
// instantiating the module needs its imports. So the module gets functions that call through a table, which is filled once both
// exist.
func (w *componentWriter) wrap() {
	imports := w.linkage.core()
	w.line("(component $stile")
	w.line("(core module $user)")
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
	for n, i := range w.linkage.imports {
		w.importInterface(n, i)
	}
	w.line("(core instance $indirect (instantiate $indirect))")
	byInterface := map[string][]string{}
	for k, c := range imports {
		iface, name, _ := strings.Cut(c.name, "#")
		byInterface[iface] = append(byInterface[iface], fmt.Sprintf("  (export %q (func $indirect \"%d\"))", name, k))
	}
	var with strings.Builder
	for n, i := range w.linkage.imports {
		if exports := byInterface[i.Name]; exports != nil {
			w.line("(core instance $world%d\n%s)", n, strings.Join(exports, "\n"))
			fmt.Fprintf(&with, " (with %q (instance $world%d))", i.Name, n)
		}
	}
	w.line("(core instance $bindings (instantiate $user%s))", with.String())
	w.line(`(alias core export $bindings "memory" (core memory $memory))`)
	w.line(`(alias core export $bindings "cabi_realloc" (core func $realloc))`)
	w.lowerImports()
	w.line("(core instance $filled (instantiate $fill (with \"\" (instance")
	w.line("  (export \"table\" (table $indirect \"table\"))")
	for k := range imports {
		w.line("  (export \"%d\" (func $core%[1]d))", k)
	}
	w.line("))))")
	w.exportInterfaces()
	w.line(")")
}

// readImports lists the functions that a core module imports, as "module#name".
func readImports(core []byte) (map[string]struct{}, error) {
	sections, err := wasmbin.ReadSections(core, wasmbin.CoreHeader)
	if err != nil {
		return nil, err
	}
	imports := map[string]struct{}{}
	for _, s := range sections {
		if s.ID != wasmbin.SectionImport {
			continue
		}
		r := s.Reader()
		for range r.Count() {
			module, name := r.Name(), r.Name()
			if kind := r.Byte(); r.Err == nil && kind != 0 {
				return nil, fmt.Errorf("the module imports %s %s, which is not a function", module, name)
			}
			r.U32()
			if r.Err == nil {
				imports[module+"#"+name] = struct{}{}
			}
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return imports, nil
}
