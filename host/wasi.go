package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// A component that imports WASI gets the empty world. Toolchains always add these imports. It has no environment, arguments
// or sockets, and stdin is closed. What is harmless works: stdout and stderr take text, and time moves. What is authority elsewhere goes
// through the bindings of the call: see world. Files and http are those of the bindings that the request names for WASI. Its types are read from the component itself, so every 0.2.x
// works, even mixed.

// answered are the functions, by interface without version, whose answer is the zero value of their type.
var answered = map[string]bool{
	"wasi:cli/environment#get-environment":         true,
	"wasi:cli/environment#get-arguments":           true,
	"wasi:cli/environment#initial-cwd":             true,
	"wasi:cli/terminal-stdin#get-terminal-stdin":   true,
	"wasi:cli/terminal-stdout#get-terminal-stdout": true,
	"wasi:cli/terminal-stderr#get-terminal-stderr": true,
	"wasi:logging/logging#log":                     true,
	"wasi:config/store#get-all":                    true,
	"wasi:config/store#get":                        true,
}

// refusals are the cases of error types that mean "you may not", the best first.
var refusals = []string{
	"not-permitted", "access-denied", "access", "HTTP-request-denied", "closed", "not-supported", "unsupported", "invalid-argument",
}

func (l *linking) emptyWorld(instance wasmtime.Item) error {
	name, version, _ := strings.Cut(instance.Name, "@")
	if !strings.HasPrefix(version, "0.2.") {
		return &LoadError{Name: instance.Name, Reason: "only WASI 0.2 is supported, as an empty world"}
	}
	imported := Import{Name: instance.Name, Kind: "wasi"}
	var definitions []wasmtime.Definition
	for _, item := range instance.Items {
		switch item.Kind {
		case wasmtime.ItemResource:
			definitions = append(definitions, wasmtime.Definition{Name: item.Name, Resource: item.Resource, Drop: dropHandle})
		case wasmtime.ItemFunc:
			f := item.Func
			f.Interface = &abi.Interface{Name: instance.Name}
			if r := foreignResource(f); r != nil {
				return &LoadError{Name: instance.Name + "#" + item.Name, Reason: fmt.Sprintf("its type has a handle of %s/%s, and WASI's have handles of WASI only", r.Interface.Name, r.Name)}
			}
			answer, says, err := emptyAnswer(name, f)
			if err != nil {
				return &LoadError{Name: instance.Name + "#" + item.Name, Reason: err.Error()}
			}
			definitions = append(definitions, wasmtime.Definition{
				Name: item.Name, Params: paramTypes(f), Result: f.Result,
				Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) { return answer(s.Data.(*call), args) },
			})
			imported.Funcs = append(imported.Funcs, ImportedFunc{Name: item.Name, Answer: says, Uses: worldFuncs()[name+"#"+item.Name].uses})
		case wasmtime.ItemType:
		default:
			return &LoadError{Name: instance.Name + "#" + item.Name, Reason: "only functions, resources and types can be imported"}
		}
	}
	l.imports = append(l.imports, imported)
	if err := l.linker.Instance(instance.Name, definitions); err != nil {
		return &LoadError{Name: instance.Name, Reason: err.Error()}
	}
	return nil
}

// foreignResource finds a resource in a function's type that does not belong to WASI. It is nil if there is none.
func foreignResource(f *abi.Func) *abi.Resource {
	var find func(t *abi.Type) *abi.Resource
	find = func(t *abi.Type) *abi.Resource {
		if t == nil {
			return nil
		}
		if t.Resource != nil && !strings.HasPrefix(t.Resource.Interface.Name, "wasi:") {
			return t.Resource
		}
		inner := []*abi.Type{t.Elem, t.Ok, t.Err}
		for _, field := range t.Fields {
			inner = append(inner, field.Type)
		}
		for _, c := range t.Cases {
			inner = append(inner, c.Type)
		}
		for _, t := range inner {
			if r := find(t); r != nil {
				return r
			}
		}
		return nil
	}
	for _, t := range append(paramTypes(f), f.Result) {
		if r := find(t); r != nil {
			return r
		}
	}
	return nil
}

// answer is how the empty world answers a function.
type answer func(c *call, args []abi.Value) (abi.Value, error)

// emptyAnswer chooses how the empty world answers a function, and says so: as world does, with a known answer, the interface's own
// refusal, a handle that leads nowhere, or a trap that names what is missing. A known answer must be possible in the type that the
// component declares.
func emptyAnswer(iface string, f *abi.Func) (_ answer, says string, err error) {
	whole := iface + "#" + f.Name
	op := &operation{fn: f}
	gated := func(c *call, args []abi.Value) (abi.Value, error) { return c.gate(op, args) }
	if known, ok := worldFuncs()[whole]; ok {
		if has := shape(f); has != known.shape {
			return nil, "", fmt.Errorf("its type is %s, and WASI's is %s", has, known.shape)
		}
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return known.answer(c, f, args) }
		if known.through == nil {
			return gated, known.says, nil
		}
		return func(c *call, args []abi.Value) (abi.Value, error) { return known.through(c, gated, f, args) }, known.says, nil
	}
	var execute answer
	switch refused, refuses := refuse(f.Result); {
	case f.Result == nil:
		says, execute = "does nothing", func(*call, []abi.Value) (abi.Value, error) { return nil, nil }
	case answered[whole]:
		v, ok := zero(f.Result)
		if !ok {
			return nil, "", errors.New("its result holds a handle, which WASI's does not")
		}
		says, execute = "answers with nothing", func(*call, []abi.Value) (abi.Value, error) { return v, nil }
	case refuses:
		says, execute = "refuses", func(*call, []abi.Value) (abi.Value, error) { return refused, nil }
	case f.Result.Kind == abi.KindOwn:
		says, execute = "gives a handle that leads nowhere", func(c *call, _ []abi.Value) (abi.Value, error) {
			return c.handles.addForeign(&handle{resource: f.Result.Resource, value: struct{}{}})
		}
	default:
		says, execute = "ends the call", func(*call, []abi.Value) (abi.Value, error) {
			return nil, &TrapError{Reason: whole + " is missing: the WASI world is empty"}
		}
	}
	op.execute = func(c *call, args []abi.Value) (abi.Value, error) {
		for i, p := range f.Params {
			c.handles.forget(p.Type, args[i])
		}
		return execute(c, args)
	}
	return gated, says, nil
}

// refuse makes the error value of a result type that comes closest to "not permitted".
func refuse(t *abi.Type) (abi.Value, bool) {
	if t == nil || t.Kind != abi.KindResult {
		return nil, false
	}
	if t.Err != nil && (t.Err.Kind == abi.KindVariant || t.Err.Kind == abi.KindEnum) {
		for _, name := range refusals {
			i := slices.IndexFunc(t.Err.Cases, func(c abi.Case) bool { return c.Name == name })
			if i < 0 {
				continue
			}
			if payload, ok := zero(t.Err.Cases[i].Type); ok {
				return abi.Variant{Case: 1, Value: abi.Variant{Case: uint32(i), Value: payload}}, true
			}
		}
	}
	v, ok := zero(t.Err)
	return abi.Variant{Case: 1, Value: v}, ok
}

// zero is the zero value of a type: 0, false, empty, none, the first case. It is nil for no type. It fails for a type that holds a
// handle.
func zero(t *abi.Type) (_ abi.Value, ok bool) {
	if t == nil {
		return nil, true
	}
	switch t.Kind {
	case abi.KindOwn, abi.KindBorrow:
		return nil, false
	case abi.KindRecord, abi.KindTuple:
		fields := make([]abi.Value, len(t.Fields))
		for i, f := range t.Fields {
			if fields[i], ok = zero(f.Type); !ok {
				return nil, false
			}
		}
		return fields, true
	case abi.KindVariant:
		v, ok := zero(t.Cases[0].Type)
		return abi.Variant{Value: v}, ok
	case abi.KindResult:
		v, ok := zero(t.Ok)
		return abi.Variant{Value: v}, ok
	default:
		return zeros[t.Kind], true
	}
}

// zeros are the zero values of types that contain no other type, or need not.
var zeros = map[abi.Kind]abi.Value{
	abi.KindBool: false, abi.KindChar: rune(0), abi.KindString: "", abi.KindFlags: uint32(0),
	abi.KindS8: int8(0), abi.KindS16: int16(0), abi.KindS32: int32(0), abi.KindS64: int64(0),
	abi.KindU8: uint8(0), abi.KindU16: uint16(0), abi.KindU32: uint32(0), abi.KindU64: uint64(0),
	abi.KindF32: float32(0), abi.KindF64: float64(0),
	abi.KindList: []abi.Value{}, abi.KindEnum: abi.Variant{}, abi.KindOption: abi.Variant{},
}
