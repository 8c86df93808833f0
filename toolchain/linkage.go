package toolchain

import (
	"fmt"
	"slices"

	"github.com/stilehost/stile/abi"
)

// linkage is a world with its functions numbered and its types in order, which all generators share.
type linkage struct {
	world string
	// imports are the interfaces to import, each after those whose types it uses, with the wanted functions.
	imports []*abi.Interface
	exports []*abi.Interface
	// declared holds the used types and resources of each interface, each after the types it consists of.
	declared map[string][]declaration
	// calls are the imported functions and drops the resources that can be dropped. Numbered from opImport on, in this order.
	calls []*abi.Func
	drops []*abi.Resource
	// bindings are the names that the env of every call has, with their interfaces.
	bindings map[string]string
	// files is the binding whose files node's module fs has.
	files string
	// sourceMap is the bundle's source map. It is empty for code that never examines a stack.
	sourceMap string
}

// declaration is a resource, or a type with a name.
type declaration struct {
	resource *abi.Resource
	typ      *abi.Type
}

func (d declaration) name() string {
	if d.resource != nil {
		return d.resource.Name
	}
	return d.typ.Name
}

// newLinkage numbers what w imports and exports. An interface of w may be a copy with only the wanted functions. Interfaces that w
// does not list are imported if their types are used.
func newLinkage(w *abi.World) (*linkage, error) {
	if len(w.ImportFuncs)+len(w.ExportFuncs) > 0 {
		return nil, fmt.Errorf("world %s: functions outside of an interface are not supported", w.Name)
	}
	l := &linkage{world: w.Name, exports: w.Exports, declared: map[string][]declaration{}}
	wanted := map[string]*abi.Interface{}
	for _, i := range w.Imports {
		wanted[i.Name] = i
	}
	visited := map[string]bool{}
	var visit func(*abi.Interface)
	dependencies := func(i *abi.Interface) {
		for _, t := range i.Types {
			walk(t, func(d declaration) { visit(d.home()) })
		}
		for _, f := range i.Funcs {
			walkFunc(f, func(d declaration) { visit(d.home()) })
		}
	}
	visit = func(i *abi.Interface) {
		if visited[i.Name] {
			return
		}
		visited[i.Name] = true
		if w, ok := wanted[i.Name]; ok {
			i = w
		} else {
			i = &abi.Interface{Name: i.Name, Types: i.Types}
		}
		dependencies(i)
		l.imports = append(l.imports, i)
	}
	for _, i := range w.Imports {
		visit(i)
	}
	for _, i := range w.Exports {
		if len(i.Resources) > 0 {
			return nil, fmt.Errorf("export %s: exported resources are not supported", i.Name)
		}
		if visited[i.Name] {
			return nil, fmt.Errorf("%s is imported and exported, which is not supported", i.Name)
		}
		visited[i.Name] = true
		dependencies(i)
	}
	l.collect()
	return l, nil
}

// collect fills declared, calls and drops.
func (l *linkage) collect() {
	seen := map[declaration]bool{}
	declare := func(d declaration) {
		if !seen[d] {
			seen[d] = true
			l.declared[d.home().Name] = append(l.declared[d.home().Name], d)
		}
	}
	for _, i := range slices.Concat(l.imports, l.exports) {
		for _, f := range i.Funcs {
			walkFunc(f, declare)
		}
	}
	for _, i := range l.imports {
		l.calls = append(l.calls, i.Funcs...)
		for _, d := range l.declared[i.Name] {
			if d.resource != nil {
				l.drops = append(l.drops, d.resource)
			}
		}
	}
	for i, x := range l.exports {
		if x.Name == abi.ExtensionMemory {
			l.exports = slices.Clone(l.exports)
			l.exports[i] = withAdopt(x, l.drops)
		}
	}
	l.imports = slices.DeleteFunc(l.imports, func(i *abi.Interface) bool {
		return len(i.Funcs) == 0 && len(l.declared[i.Name]) == 0
	})
}

// withAdopt adds the functions that take a handle of each resource and keep it.
func withAdopt(memory *abi.Interface, resources []*abi.Resource) *abi.Interface {
	with := *memory
	with.Funcs = nil
	for _, f := range memory.Funcs {
		own := *f
		own.Interface = &with
		with.Funcs = append(with.Funcs, &own)
	}
	for i, r := range resources {
		with.Funcs = append(with.Funcs, &abi.Func{
			Name: fmt.Sprintf("adopt%d", i), Interface: &with,
			Params: []abi.Field{{Name: "handle", Type: &abi.Type{Kind: abi.KindOwn, Resource: r}}},
		})
	}
	return &with
}

// home returns the interface that declares d.
func (d declaration) home() *abi.Interface {
	if d.resource != nil {
		return d.resource.Interface
	}
	return d.typ.Interface
}

func walkFunc(f *abi.Func, visit func(declaration)) {
	for _, p := range f.Params {
		walk(p.Type, visit)
	}
	walk(f.Result, visit)
}

// walk visits the named types that t consists of, and t last.
func walk(t *abi.Type, visit func(declaration)) {
	if t == nil {
		return
	}
	walk(t.Elem, visit)
	walk(t.Ok, visit)
	walk(t.Err, visit)
	for _, f := range t.Fields {
		walk(f.Type, visit)
	}
	for _, c := range t.Cases {
		walk(c.Type, visit)
	}
	switch {
	case t.Resource != nil:
		visit(declaration{resource: t.Resource})
	case isNamed(t):
		visit(declaration{typ: t})
	}
}

// isNamed reports whether a component must declare t under a name.
func isNamed(t *abi.Type) bool {
	switch t.Kind {
	case abi.KindRecord, abi.KindVariant, abi.KindEnum, abi.KindFlags:
		return true
	default:
		return false
	}
}

// exportFuncs lists the functions to export in the order of their indices. Those of stile:extension/memory, which have none, come last.
func (l *linkage) exportFuncs() []*abi.Func {
	var funcs, memory []*abi.Func
	for _, i := range l.exports {
		if i.Name == abi.ExtensionMemory {
			memory = i.Funcs
		} else {
			funcs = append(funcs, i.Funcs...)
		}
	}
	return append(funcs, memory...)
}
