package host

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/host/internal/image"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// Import is one import of a component, and the reason why it is harmless.
type Import struct {
	// Name is the name of an interface or of a core module.
	Name string
	// Kind is "capability", "wasi" for the empty world, or "module" for a shared core module.
	Kind string
	// Funcs are the functions imported from it.
	Funcs []ImportedFunc
}

// ImportedFunc is one imported function of a capability interface. Its Handle shows that it carries no ambient authority.
type ImportedFunc struct {
	Name string
	// Handle is the handle that a call needs, e.g. "env: borrow<env>". It is empty in the empty world.
	Handle string
	// Answer says what a function of the empty world does. It is empty for those of capabilities.
	Answer string
	// Uses is the interface of capabilities whose binding a function of the empty world uses if the call has one. It may be empty.
	Uses string
}

// linking is a component's linker while it is built.
type linking struct {
	host    *Host
	linker  *wasmtime.Linker
	image   *share[*wasmtime.Module]
	imports []Import
}

// link checks every import of a component against what this host knows, by full type, and defines exactly those. memory is the
// content of the component's memory, if it is compiled by itself.
func (h *Host) link(types wasmtime.Types, memory *share[*wasmtime.Module]) (*wasmtime.Linker, []Import, error) {
	l := &linking{host: h, linker: h.engine.NewLinker(), image: memory}
	for _, item := range types.Imports {
		if err := l.item(item); err != nil {
			l.linker.Close()
			return nil, nil, err
		}
	}
	return l.linker, l.imports, nil
}

func (l *linking) item(item wasmtime.Item) error {
	if item.Kind == wasmtime.ItemModule {
		return l.module(item.Name)
	}
	if iface := l.host.known.Interface(item.Name); iface != nil && item.Kind == wasmtime.ItemInstance {
		return l.capability(iface, item)
	}
	switch {
	case item.Name == guard.Import && item.Kind == wasmtime.ItemFunc:
		return l.reserve()
	case strings.HasPrefix(item.Name, "wasi:") && item.Kind == wasmtime.ItemInstance:
		return l.emptyWorld(item)
	case item.Kind == wasmtime.ItemFunc:
		return &LoadError{Name: item.Name, Reason: "a free function is authority without a handle; import an interface of this host instead"}
	default:
		return &LoadError{Name: item.Name, Reason: "this host has no such import"}
	}
}

// reserve defines the function that guarded components call before a large value is converted. It is not one of the component's own
// imports.
func (l *linking) reserve() error {
	return l.linker.Instance("", []wasmtime.Definition{{
		Name: guard.Import, Params: []*abi.Type{{Kind: abi.KindU32}},
		Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) {
			return nil, s.Ask(int64(args[0].(uint32)))
		},
	}})
}

func (l *linking) module(name string) error {
	l.host.mu.Lock()
	m := l.host.modules[name]
	l.host.mu.Unlock()
	own := name == image.Import && l.image != nil // not one of the component's imports
	if own {
		m = l.image.value
	}
	if m == nil {
		return &LoadError{Name: name, Reason: "the core module is not loaded in this host; build the component again from its source, or with --standalone"}
	}
	if err := l.linker.Module(name, m); err != nil {
		return &LoadError{Name: name, Reason: err.Error()}
	}
	if !own {
		l.imports = append(l.imports, Import{Name: name, Kind: "module"})
	}
	return nil
}

func (l *linking) capability(iface *abi.Interface, instance wasmtime.Item) error {
	refuse := func(name, reason string) error { return &LoadError{Name: iface.Name + "#" + name, Reason: reason} }
	imported := Import{Name: iface.Name, Kind: "capability"}
	var definitions []wasmtime.Definition
	for _, item := range instance.Items {
		switch item.Kind {
		case wasmtime.ItemResource:
			r := resourceNamed(iface, item.Name)
			if item.Resource.Interface.Name != iface.Name {
				// A `use` of a resource that another interface defines.
				if other := l.host.known.Interface(item.Resource.Interface.Name); other != nil {
					r = resourceNamed(other, item.Resource.Name)
				}
			}
			if r == nil {
				return refuse(item.Name, "there is no such resource")
			}
			definitions = append(definitions, wasmtime.Definition{Name: item.Name, Resource: r, Drop: dropHandle})
		case wasmtime.ItemFunc:
			f := funcNamed(iface, item.Name)
			if f == nil {
				return refuse(item.Name, "there is no such function")
			}
			if difference := differ(f, item.Func); difference != "" {
				return refuse(item.Name, "its type is not the host's: "+difference)
			}
			handle := authority(f)
			if handle == "" {
				return refuse(item.Name, "a function without a handle parameter is authority without a handle")
			}
			op, err := l.host.operation(f)
			if err != nil {
				return refuse(item.Name, err.Error())
			}
			definitions = append(definitions, wasmtime.Definition{
				Name: item.Name, Params: paramTypes(f), Result: f.Result, Checks: strings.HasPrefix(iface.Name, abi.CapabilityPackage),
				Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) { return s.Data.(*call).operate(op, args) },
			})
			imported.Funcs = append(imported.Funcs, ImportedFunc{Name: item.Name, Handle: handle})
		case wasmtime.ItemType:
		default:
			return refuse(item.Name, "only functions, resources and types can be imported")
		}
	}
	l.imports = append(l.imports, imported)
	if err := l.linker.Instance(iface.Name, definitions); err != nil {
		return &LoadError{Name: iface.Name, Reason: err.Error()}
	}
	return nil
}

// authority describes the parameter that carries a handle. It returns "" if there is none.
func authority(f *abi.Func) string {
	for _, p := range f.Params {
		t, list := p.Type, ""
		if t.Kind == abi.KindList {
			t, list = t.Elem, "list of "
		}
		switch t.Kind {
		case abi.KindBorrow:
			return fmt.Sprintf("%s: %sborrow<%s>", p.Name, list, t.Resource.Name)
		case abi.KindOwn:
			return fmt.Sprintf("%s: %sown<%s>", p.Name, list, t.Resource.Name)
		default:
		}
	}
	return ""
}

func resourceNamed(i *abi.Interface, name string) *abi.Resource {
	for _, r := range i.Resources {
		if r.Name == name {
			return r
		}
	}
	return nil
}

func funcNamed(i *abi.Interface, name string) *abi.Func {
	for _, f := range i.Funcs {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func paramTypes(f *abi.Func) []*abi.Type {
	types := make([]*abi.Type, len(f.Params))
	for i, p := range f.Params {
		types[i] = p.Type
	}
	return types
}

// formerly are names of parameters that the contract has changed since, so that components of before load, and their recordings replay.
// Only types matter to the code.
var formerly = map[string]string{"len": "length"}

// differ compares a function's type as the host knows it with the one that a component has. It describes where they differ, or
// returns "" if they are equal.
func differ(want, have *abi.Func) string {
	if len(want.Params) != len(have.Params) {
		return fmt.Sprintf("%d parameters, not %d", len(have.Params), len(want.Params))
	}
	for i, p := range want.Params {
		if name := have.Params[i].Name; name != p.Name && formerly[name] != p.Name {
			return fmt.Sprintf("parameter %q, not %q", have.Params[i].Name, p.Name)
		}
		if d := differType(p.Type, have.Params[i].Type); d != "" {
			return fmt.Sprintf("parameter %q: %s", p.Name, d)
		}
	}
	if d := differType(want.Result, have.Result); d != "" {
		return "result: " + d
	}
	return ""
}

func differType(want, have *abi.Type) string {
	if want == nil || have == nil {
		if want != have {
			return "one has a value, the other none"
		}
		return ""
	}
	if want.Kind != have.Kind {
		return fmt.Sprintf("%s, not %s", have.Kind, want.Kind)
	}
	switch want.Kind {
	case abi.KindOwn, abi.KindBorrow:
		w, h := want.Resource, have.Resource
		if w.Name != h.Name || w.Interface.Name != h.Interface.Name {
			return fmt.Sprintf("a handle of %s/%s, not of %s/%s", h.Interface.Name, h.Name, w.Interface.Name, w.Name)
		}
		return ""
	case abi.KindFlags:
		if strings.Join(want.Labels, ",") != strings.Join(have.Labels, ",") {
			return "other flags"
		}
		return ""
	default:
	}
	if len(want.Fields) != len(have.Fields) || len(want.Cases) != len(have.Cases) {
		return "a different number of fields or cases"
	}
	for i, f := range want.Fields {
		if have.Fields[i].Name != f.Name {
			return fmt.Sprintf("field %q, not %q", have.Fields[i].Name, f.Name)
		}
		if d := differType(f.Type, have.Fields[i].Type); d != "" {
			return f.Name + ": " + d
		}
	}
	for i, c := range want.Cases {
		if have.Cases[i].Name != c.Name {
			return fmt.Sprintf("case %q, not %q", have.Cases[i].Name, c.Name)
		}
		if d := differType(c.Type, have.Cases[i].Type); d != "" {
			return c.Name + ": " + d
		}
	}
	for _, pair := range [][2]*abi.Type{{want.Elem, have.Elem}, {want.Ok, have.Ok}, {want.Err, have.Err}} {
		if d := differType(pair[0], pair[1]); d != "" {
			return d
		}
	}
	return ""
}
