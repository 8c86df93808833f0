package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// The empty world: what a component gets that imports WASI, because its toolchain always adds it. There are no files, no
// environment, no arguments, no network, standard streams are closed, clocks stand at 0. Its types are read from the
// component itself, so every 0.2.x works, mixed ones too. Nothing in it reaches outside the call.

// answered are the functions, by interface without version, whose answer is the zero of their type.
var answered = map[string]bool{
	"wasi:cli/environment#get-environment":         true,
	"wasi:cli/environment#get-arguments":           true,
	"wasi:cli/environment#initial-cwd":             true,
	"wasi:cli/terminal-stdin#get-terminal-stdin":   true,
	"wasi:cli/terminal-stdout#get-terminal-stdout": true,
	"wasi:cli/terminal-stderr#get-terminal-stderr": true,
	"wasi:filesystem/preopens#get-directories":     true,
	"wasi:clocks/monotonic-clock#now":              true,
	"wasi:clocks/monotonic-clock#resolution":       true,
	"wasi:clocks/wall-clock#now":                   true,
	"wasi:clocks/wall-clock#resolution":            true,
	"wasi:random/insecure-seed#insecure-seed":      true,
	"wasi:io/poll#[method]pollable.ready":          true,
	"wasi:filesystem/types#filesystem-error-code":  true,
	"wasi:http/types#http-error-code":              true,
	"wasi:io/error#[method]error.to-debug-string":  true,
	"wasi:logging/logging#log":                     true,
	"wasi:config/store#get-all":                    true,
	"wasi:config/store#get":                        true,
}

// missing names the binding whose absence a trap is about.
var missing = map[string]string{
	"wasi:random/random": "random", "wasi:random/insecure": "random",
	"wasi:clocks/monotonic-clock": "clock", "wasi:io/poll": "clock",
}

// refusals are the cases of error types that mean "you may not", the best first.
var refusals = []string{
	"not-permitted", "access-denied", "access", "HTTP-request-denied", "closed", "not-supported", "unsupported", "invalid-argument",
}

func (l *linking) emptyWorld(instance wasmtime.Item) error {
	name, version, _ := strings.Cut(instance.Name, "@")
	if !strings.HasPrefix(version, "0.2.") {
		return &LoadError{instance.Name, "only WASI 0.2 is answered, by an empty world"}
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
			answer, err := emptyAnswer(name, f)
			if err != nil {
				return &LoadError{instance.Name + "#" + item.Name, err.Error()}
			}
			op := &operation{fn: f, execute: answer}
			definitions = append(definitions, wasmtime.Definition{
				Name: item.Name, Params: paramTypes(f), Result: f.Result,
				Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) { return s.Data.(*call).gate(op, args) },
			})
			imported.Funcs = append(imported.Funcs, ImportedFunc{Name: item.Name})
		case wasmtime.ItemType:
		default:
			return &LoadError{instance.Name + "#" + item.Name, "only functions, resources and types can be imported"}
		}
	}
	l.imports = append(l.imports, imported)
	if err := l.linker.Instance(instance.Name, definitions); err != nil {
		return &LoadError{instance.Name, err.Error()}
	}
	return nil
}

// emptyAnswer chooses how the empty world answers a function: a known answer, the interface's own refusal, a handle that
// leads nowhere, or a trap that names what is missing. A known answer must be possible in the type that the component
// declares.
func emptyAnswer(iface string, f *abi.Func) (func(c *call, args []abi.Value) (abi.Value, error), error) {
	whole := iface + "#" + f.Name
	known := answered[whole] && f.Result != nil
	if known && !constructible(f.Result) {
		return nil, errors.New("its result holds a handle, which WASI's does not")
	}
	return func(c *call, _ []abi.Value) (abi.Value, error) {
		switch {
		case iface == "wasi:cli/exit":
			return nil, &GuestError{abi.Failure{Name: "Exit", Message: "the guest ended itself with wasi:cli/exit"}}
		case known:
			return zero(f.Result), nil
		case f.Result == nil && missing[iface] == "":
			return nil, nil
		}
		if v, ok := refuse(f.Result); ok {
			return v, nil
		}
		if f.Result != nil && f.Result.Kind == abi.KindOwn {
			return c.handles.add(&handle{resource: f.Result.Resource, value: struct{}{}})
		}
		if binding := missing[iface]; binding != "" {
			return nil, &TrapError{Reason: fmt.Sprintf("%s is not there: the empty WASI world has no %s; import stile:capability/%s and bind %q", whole, binding, binding, binding)}
		}
		return nil, &TrapError{Reason: whole + " is not there: the WASI world is empty"}
	}, nil
}

// refuse makes the error value of a result type that says most nearly "not permitted".
func refuse(t *abi.Type) (abi.Value, bool) {
	if t == nil || t.Kind != abi.KindResult {
		return nil, false
	}
	if t.Err == nil {
		return abi.Variant{Case: 1}, true
	}
	if t.Err.Kind == abi.KindVariant || t.Err.Kind == abi.KindEnum {
		for _, name := range refusals {
			i := slices.IndexFunc(t.Err.Cases, func(c abi.Case) bool { return c.Name == name })
			if i >= 0 && (t.Err.Cases[i].Type == nil || constructible(t.Err.Cases[i].Type)) {
				return abi.Variant{Case: 1, Value: abi.Variant{Case: uint32(i), Value: zeroOrNil(t.Err.Cases[i].Type)}}, true
			}
		}
	}
	if !constructible(t.Err) {
		return nil, false
	}
	return abi.Variant{Case: 1, Value: zero(t.Err)}, true
}

// constructible reports whether zero can make a value: one without handles.
func constructible(t *abi.Type) bool {
	switch t.Kind {
	case abi.KindOwn, abi.KindBorrow:
		return false
	case abi.KindRecord, abi.KindTuple:
		return !slices.ContainsFunc(t.Fields, func(f abi.Field) bool { return !constructible(f.Type) })
	case abi.KindVariant:
		return t.Cases[0].Type == nil || constructible(t.Cases[0].Type)
	case abi.KindResult:
		return t.Ok == nil || constructible(t.Ok)
	default:
		return true
	}
}

func zeroOrNil(t *abi.Type) abi.Value {
	if t == nil {
		return nil
	}
	return zero(t)
}

// zero is the plainest value of a type: 0, false, empty, none, the first case.
func zero(t *abi.Type) abi.Value {
	switch t.Kind {
	case abi.KindBool:
		return false
	case abi.KindS8:
		return int8(0)
	case abi.KindU8:
		return uint8(0)
	case abi.KindS16:
		return int16(0)
	case abi.KindU16:
		return uint16(0)
	case abi.KindS32, abi.KindChar:
		return int32(0)
	case abi.KindU32, abi.KindFlags:
		return uint32(0)
	case abi.KindS64:
		return int64(0)
	case abi.KindU64:
		return uint64(0)
	case abi.KindF32:
		return float32(0)
	case abi.KindF64:
		return float64(0)
	case abi.KindString:
		return ""
	case abi.KindList:
		return []abi.Value{}
	case abi.KindRecord, abi.KindTuple:
		fields := make([]abi.Value, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = zero(f.Type)
		}
		return fields
	case abi.KindVariant, abi.KindEnum:
		return abi.Variant{Value: zeroOrNil(t.Cases[0].Type)}
	case abi.KindResult:
		return abi.Variant{Value: zeroOrNil(t.Ok)}
	default:
		return abi.Variant{}
	}
}
