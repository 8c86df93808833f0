package toolchain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wasmbin"
)

// EncodePackage writes a package of WIT, such as "stile:capability@0.1.0", in the binary form in which registries keep packages: a component
// that exports the type of each interface and world, with their documentation. It has everything that the package uses of others. The same
// WIT gives the same bytes. Named types that stand for others are written out. It returns an error if there is no such package.
func EncodePackage(known *abi.Resolve, name string) ([]byte, error) {
	w := &packageWriter{componentWriter{ids: map[declaration]string{}, exported: map[declaration]bool{}}}
	docs := packageDocs{Worlds: map[string]itemDocs{}, Interfaces: map[string]itemDocs{}}
	exported := map[string]bool{}
	w.line("(component")
	for _, i := range inOrder(known.Interfaces()) {
		if short, ok := within(name, i.Name); ok {
			exported[short] = true
			w.interfaceType(i, short)
			docs.Interfaces[short] = docsOf(i)
		}
	}
	for _, world := range known.Worlds() {
		if short, ok := within(name, world.Name); ok {
			exported[short] = true
			w.worldType(world, short)
			docs.Worlds[short] = itemDocs{Docs: world.Doc}
		}
	}
	w.line(")")
	if len(exported) == 0 {
		return nil, fmt.Errorf("there is no WIT package %s", name)
	}
	wasm, err := wasmtime.Wat2Wasm(w.b.String())
	if err != nil {
		return nil, fmt.Errorf("encode the WIT package %s: %w", name, err)
	}
	sections, err := wasmbin.ReadSections(wasm, wasmbin.ComponentHeader)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(docs)
	if err != nil {
		return nil, err
	}
	const version, encodingVersion, utf8 = 1, 4, 0 // of the documentation, and of the encoding and its strings
	sections = append(sections, wasmbin.CustomSection("package-docs", append([]byte{version}, text...)), wasmbin.CustomSection("wit-component-encoding", []byte{encodingVersion, utf8}))
	return wasmbin.WriteSections(wasmbin.ComponentHeader, sections), nil
}

// within returns the name of an interface or a world in its package, if it belongs to this one.
func within(pkg, name string) (short string, ok bool) {
	path, version, _ := strings.Cut(pkg, "@")
	rest, ok := strings.CutPrefix(name, path+"/")
	short, its, _ := strings.Cut(rest, "@")
	return short, ok && its == version
}

// packageWriter writes types of interfaces and worlds.
type packageWriter struct{ componentWriter }

// usesOf lists the types of other interfaces that an interface mentions itself.
func usesOf(i *abi.Interface) []declaration {
	var used []declaration
	visit := func(d declaration) {
		if d.home() != i && !slices.Contains(used, d) {
			used = append(used, d)
		}
	}
	for _, t := range i.Types {
		mentions(t, true, visit)
	}
	for _, f := range i.Funcs {
		for _, p := range f.Params {
			mentions(p.Type, false, visit)
		}
		mentions(f.Result, false, visit)
	}
	return used
}

// mentions visits the named types in a type, and not what they consist of. whole is set for a type that is written out.
func mentions(t *abi.Type, whole bool, visit func(declaration)) {
	switch {
	case t == nil:
		return
	case t.Resource != nil:
		visit(declaration{resource: t.Resource})
		return
	case isNamed(t) && !whole:
		visit(declaration{typ: t})
		return
	}
	for _, part := range []*abi.Type{t.Elem, t.Ok, t.Err} {
		mentions(part, false, visit)
	}
	for _, f := range t.Fields {
		mentions(f.Type, false, visit)
	}
	for _, c := range t.Cases {
		mentions(c.Type, false, visit)
	}
}

// ownsOf lists what an interface declares, each type after those that it consists of.
func ownsOf(i *abi.Interface) []declaration {
	var own []declaration
	add := func(d declaration) {
		if d.home() == i && !slices.Contains(own, d) {
			own = append(own, d)
		}
	}
	for _, r := range i.Resources {
		add(declaration{resource: r})
	}
	for _, t := range i.Types {
		walk(t, add)
	}
	return own
}

// inOrder lists interfaces with those that they use, each after those.
func inOrder(interfaces []*abi.Interface) (all []*abi.Interface) {
	var visit func(i *abi.Interface)
	visit = func(i *abi.Interface) {
		if slices.Contains(all, i) {
			return
		}
		for _, d := range usesOf(i) {
			visit(d.home())
		}
		all = append(all, i)
	}
	for _, i := range interfaces {
		visit(i)
	}
	return all
}

// interfaceType exports the type of an interface: a component that imports what the interface uses, and exports it.
func (w *packageWriter) interfaceType(i *abi.Interface, short string) {
	w.line("(type $%s-interface (component", short)
	all := inOrder([]*abi.Interface{i})
	for n, used := range all[:len(all)-1] {
		w.importType(n, used, false)
	}
	w.line("(export %q (instance", i.Name)
	w.body(i, true)
	w.line("))))")
	w.line("(export %q (type $%s-interface))", short, short)
}

// worldType exports the type of a world: a component that exports a component with the world's imports and exports.
func (w *packageWriter) worldType(world *abi.World, short string) {
	w.line("(type $%s-world (component (export %q (component", short, world.Name)
	all := inOrder(slices.Concat(world.Imports, world.Exports))
	n := 0
	for _, i := range all {
		if slices.Contains(world.Imports, i) || !slices.Contains(world.Exports, i) {
			w.importType(n, i, true)
			n++
		}
	}
	for _, i := range world.Exports {
		w.line("(export %q (instance", i.Name)
		w.body(i, true)
		w.line("))")
	}
	w.line("))))")
	w.line("(export %q (type $%s-world))", short, short)
}

// importType imports an interface, with its functions or without, and gives its types their identifiers.
func (w *packageWriter) importType(n int, i *abi.Interface, functions bool) {
	w.line("(import %q (instance $import%d", i.Name, n)
	w.body(i, functions)
	w.line("))")
	for _, d := range ownsOf(i) {
		w.line("(alias export $import%d %q (type %s))", n, d.name(), w.id(d))
	}
}

// body is what an interface has.
func (w *packageWriter) body(i *abi.Interface, functions bool) {
	for _, d := range usesOf(i) {
		w.line("  (alias outer 1 %s (type %[1]s-used))", w.id(d))
		w.line("  (export %q (type %s (eq %[2]s-used)))", d.name(), w.id(d))
	}
	for _, d := range ownsOf(i) {
		w.bound("export", d.name(), d)
	}
	if !functions {
		return
	}
	for _, f := range i.Funcs {
		w.line("  (export %q (func%s))", f.Name, w.function(f))
	}
}

// packageDocs are the documentation of a package, as wasm-tools reads it.
type packageDocs struct {
	Worlds     map[string]itemDocs `json:"worlds,omitempty"`
	Interfaces map[string]itemDocs `json:"interfaces,omitempty"`
}

type itemDocs struct {
	Docs  string              `json:"docs,omitempty"`
	Funcs map[string]itemDocs `json:"funcs,omitempty"`
	Types map[string]itemDocs `json:"types,omitempty"`
	Items map[string]string   `json:"items,omitempty"`
}

func (d itemDocs) empty() bool { return d.Docs == "" && len(d.Items) == 0 }

// docsOf are those of an interface.
func docsOf(i *abi.Interface) itemDocs {
	all := itemDocs{Docs: i.Doc, Funcs: map[string]itemDocs{}, Types: map[string]itemDocs{}}
	for _, f := range i.Funcs {
		if f.Doc != "" {
			all.Funcs[f.Name] = itemDocs{Docs: f.Doc}
		}
	}
	for _, r := range i.Resources {
		if r.Doc != "" {
			all.Types[r.Name] = itemDocs{Docs: r.Doc}
		}
	}
	for _, t := range i.Types {
		own := itemDocs{Docs: t.Doc, Items: map[string]string{}}
		for _, f := range t.Fields {
			if f.Doc != "" {
				own.Items[f.Name] = f.Doc
			}
		}
		for _, c := range t.Cases {
			if c.Doc != "" {
				own.Items[c.Name] = c.Doc
			}
		}
		if !own.empty() {
			all.Types[t.Name] = own
		}
	}
	return all
}
