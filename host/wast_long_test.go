//go:build long

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/suite"
)

// TestLongComponentModel runs the tests of the component model's specification, and those of wasmtime: each component is guarded, compiled,
// linked and called as the host does it.
func TestLongComponentModel(t *testing.T) {
	tools := suite.WasmTools(t)
	engine, err := wasmtime.NewEngine(wasmtime.Pool{Instances: 100, WarmSlots: 4, MaxMemory: 64 << 20, KeepResident: 1 << 16, Running: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	for _, name := range []string{"component-model", "wasmtime"} {
		t.Run(name, func(t *testing.T) {
			record, folder := suite.Open(t, filepath.Join("..", "conformance", "thirdparty", name+".json"))
			var outcomes []suite.Outcome
			for _, below := range record.Paths {
				err := fs.WalkDir(os.DirFS(folder), below, func(file string, e fs.DirEntry, err error) error {
					if err != nil || filepath.Ext(file) != ".wast" {
						return err
					}
					if why := record.Omits(file); why != "" {
						outcomes = append(outcomes, suite.Outcome{Name: file, Skipped: why})
						return nil
					}
					outcomes = append(outcomes, wastFile(t, engine, tools, folder, file)...)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			record.Judge(t, outcomes)
		})
	}
}

// directive is a command of a test file, as wasm-tools writes it.
type directive struct {
	Type, Name, Filename, Text, Instance, Module string
	ModuleType                                   string `json:"module_type"`
	Line                                         int
	Action                                       struct {
		Type, Module, Field string
		Args                []wastValue
	}
	Expected []wastValue
}

type wastValue struct {
	Type  string
	Value json.RawMessage
}

// wast is the state of a test file.
type wast struct {
	engine    *wasmtime.Engine
	instances map[string]*wastInstance // by name; the last one has none
	defined   map[string]*wastComponent
}

type wastComponent struct {
	component *wasmtime.Component
	types     wasmtime.Types
}

type wastInstance struct {
	*wastComponent
	instance *wasmtime.Instance
}

// errAbsent is the error of a command whose component was not loaded, which another outcome says.
var errAbsent = errors.New("the component before it was not loaded")

func wastFile(t *testing.T, engine *wasmtime.Engine, tools, folder, file string) (outcomes []suite.Outcome) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), tools, "json-from-wast", "-o", "out.json", filepath.Join(folder, file))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(string(out), "\n")
		return []suite.Outcome{{Name: file, Failed: "wasm-tools: " + line}}
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Commands []directive }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	w := &wast{engine: engine, instances: map[string]*wastInstance{}, defined: map[string]*wastComponent{}}
	seen := map[string]int{}
	for _, d := range all.Commands {
		o := suite.Outcome{Name: fmt.Sprintf("%s:%d %s", file, d.Line, d.Type)}
		if seen[o.Name]++; seen[o.Name] > 1 {
			o.Name += fmt.Sprintf(" (%d)", seen[o.Name])
		}
		switch err := w.do(t, dir, d); {
		case d.ModuleType == "text":
			o.Skipped = "texts, which the host does not read"
		case errors.Is(err, errAbsent):
			o.Skipped = "commands on a component that was not loaded"
		case err != nil:
			o.Failed = err.Error()
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

func (w *wast) do(t *testing.T, dir string, d directive) error {
	if d.ModuleType == "text" {
		return nil
	}
	var wasm []byte
	if d.Filename != "" {
		var err error
		if wasm, err = os.ReadFile(filepath.Join(dir, d.Filename)); err != nil {
			t.Fatal(err)
		}
	}
	switch d.Type {
	case "module":
		delete(w.instances, "")
		c, err := w.load(t, wasm)
		if err != nil {
			return err
		}
		return w.instantiate(t, d.Name, c)
	case "module_definition":
		c, err := w.load(t, wasm)
		if err != nil {
			return err
		}
		w.defined[d.Name], w.defined[""] = c, c
		return nil
	case "module_instance":
		delete(w.instances, "")
		c := w.defined[d.Module]
		if c == nil {
			return errAbsent
		}
		return w.instantiate(t, d.Instance, c)
	case "assert_invalid", "assert_malformed":
		if _, err := w.load(t, wasm); err == nil {
			return fmt.Errorf("it is loaded, want: %s", d.Text)
		}
		return nil
	case "assert_unlinkable", "assert_uninstantiable":
		c, err := w.load(t, wasm)
		if err != nil {
			return err
		}
		if err := w.instantiate(t, "", c); err == nil {
			return fmt.Errorf("an instance is made, want: %s", d.Text)
		}
		return nil
	case "action", "assert_return", "assert_trap":
		return w.call(d)
	default:
		return fmt.Errorf("unknown command %s", d.Type)
	}
}

// load guards and compiles a component, or compiles a core module.
func (w *wast) load(t *testing.T, wasm []byte) (*wastComponent, error) {
	if len(wasm) > 6 && wasm[6] == 0 {
		return nil, errors.New("a core module")
	}
	guarded, _, err := guardCode(wasm)
	if err != nil {
		return nil, err
	}
	c, err := w.engine.Compile(guarded)
	if err != nil {
		return nil, err
	}
	t.Cleanup(c.Close)
	types, err := c.Types()
	if err != nil {
		return nil, err
	}
	return &wastComponent{c, types}, nil
}

func (w *wast) instantiate(t *testing.T, name string, c *wastComponent) error {
	linker := w.engine.NewLinker()
	t.Cleanup(linker.Close)
	l := &linking{linker: linker}
	for _, item := range c.types.Imports {
		var err error
		switch {
		case item.Name == guard.Import:
			err = l.reserve()
		case item.Name == "host" && item.Kind == wasmtime.ItemInstance:
			err = linker.Instance(item.Name, testHost(item))
		case item.Name == "host-echo-u32" && item.Kind == wasmtime.ItemFunc:
			err = linker.Instance("", []wasmtime.Definition{{
				Name: item.Name, Params: typesOf(item.Func), Result: item.Func.Result,
				Call: func(_ *wasmtime.Store, args []abi.Value) (abi.Value, error) { return args[0], nil },
			}})
		}
		if err != nil {
			return err
		}
	}
	store := w.engine.NewStore(wasmtime.Limits{Memory: 64 << 20, CPU: 10 * time.Second, Context: t.Context()}, nil)
	t.Cleanup(store.Close)
	instance, err := store.Instantiate(linker, c.component)
	if err != nil {
		return err
	}
	made := &wastInstance{c, instance}
	w.instances[name], w.instances[""] = made, made
	return nil
}

// testHost is what wasmtime's own runner offers under the name "host": a function and two resources.
func testHost(item wasmtime.Item) (definitions []wasmtime.Definition) {
	var drops, last uint32
	for _, i := range item.Items {
		d := wasmtime.Definition{Name: i.Name}
		switch {
		case i.Kind == wasmtime.ItemResource:
			d.Resource = i.Resource
			d.Drop = func(_ *wasmtime.Store, rep abi.Rep) error {
				drops, last = drops+1, uint32(rep)
				return nil
			}
		case i.Kind != wasmtime.ItemFunc:
			continue
		default:
			d.Params, d.Result = typesOf(i.Func), i.Func.Result
			d.Call = func(_ *wasmtime.Store, args []abi.Value) (abi.Value, error) {
				switch i.Name {
				case "return-three":
					return uint32(3), nil
				case "[constructor]resource1":
					return abi.Rep(args[0].(uint32)), nil
				case "[static]resource1.last-drop":
					return last, nil
				case "[static]resource1.drops":
					return drops, nil
				case "[static]resource1.assert":
					if uint32(args[0].(abi.Rep)) != args[1].(uint32) {
						return nil, errors.New("another resource")
					}
				}
				return nil, nil
			}
		}
		definitions = append(definitions, d)
	}
	return definitions
}

func typesOf(f *abi.Func) (types []*abi.Type) {
	for _, p := range f.Params {
		types = append(types, p.Type)
	}
	return types
}

func (w *wast) call(d directive) error {
	i := w.instances[d.Action.Module]
	if i == nil {
		return errAbsent
	}
	n := slices.IndexFunc(i.types.Exports, func(item wasmtime.Item) bool { return item.Name == d.Action.Field })
	if n < 0 || i.types.Exports[n].Kind != wasmtime.ItemFunc {
		return fmt.Errorf("%s is not exported", d.Action.Field)
	}
	f := i.types.Exports[n].Func
	var args []abi.Value
	for n, arg := range d.Action.Args {
		args = append(args, arg.as(f.Params[n].Type))
	}
	export := i.component.Export("", d.Action.Field)
	defer export.Close()
	got, err := i.instance.Call(export, typesOf(f), f.Result, args...)
	if d.Type == "assert_trap" {
		if err == nil {
			return fmt.Errorf("it returns %v, want a trap: %s", got, d.Text)
		}
		if !strings.Contains(err.Error(), d.Text) {
			return fmt.Errorf("it ends with %w, want: %s", err, d.Text)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if len(d.Expected) == 0 {
		return nil
	}
	if want := d.Expected[0].as(f.Result); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
		return fmt.Errorf("it returns %v, want %v", got, want)
	}
	return nil
}

// as is the value in the host's form.
func (v wastValue) as(t *abi.Type) abi.Value {
	text := strings.Trim(string(v.Value), `"`)
	number := func() int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	list := func(types func(int) *abi.Type) []abi.Value {
		var items []wastValue
		unmarshal(v.Value, &items)
		values := []abi.Value{}
		for n, item := range items {
			values = append(values, item.as(types(n)))
		}
		return values
	}
	some := func(case_ uint32, payload json.RawMessage, t *abi.Type) abi.Value {
		if len(payload) == 0 || string(payload) == "null" || t == nil {
			return abi.Variant{Case: case_}
		}
		var value wastValue
		unmarshal(payload, &value)
		return abi.Variant{Case: case_, Value: value.as(t)}
	}
	switch t.Kind {
	case abi.KindBool:
		return text == "true"
	case abi.KindS8:
		return int8(number())
	case abi.KindU8:
		return uint8(number())
	case abi.KindS16:
		return int16(number())
	case abi.KindU16:
		return uint16(number())
	case abi.KindS32:
		return int32(number())
	case abi.KindU32:
		return uint32(number())
	case abi.KindS64:
		return number()
	case abi.KindU64:
		n, _ := strconv.ParseUint(text, 10, 64)
		return n
	case abi.KindF32:
		return math.Float32frombits(uint32(number()))
	case abi.KindF64:
		return math.Float64frombits(uint64(number()))
	case abi.KindChar:
		var s string
		unmarshal(v.Value, &s)
		r, _ := utf8.DecodeRuneInString(s)
		return r
	case abi.KindString:
		var s string
		unmarshal(v.Value, &s)
		return s
	case abi.KindList:
		values := list(func(int) *abi.Type { return t.Elem })
		if t.Elem.Kind != abi.KindU8 {
			return values
		}
		bytes := []byte{}
		for _, value := range values {
			bytes = append(bytes, value.(byte))
		}
		return bytes
	case abi.KindTuple:
		return list(func(n int) *abi.Type { return t.Fields[n].Type })
	case abi.KindRecord:
		var fields [][2]json.RawMessage
		unmarshal(v.Value, &fields)
		values := []abi.Value{}
		for n, f := range fields {
			var value wastValue
			unmarshal(f[1], &value)
			values = append(values, value.as(t.Fields[n].Type))
		}
		return values
	case abi.KindVariant:
		var chosen struct {
			Case    string
			Payload json.RawMessage
		}
		unmarshal(v.Value, &chosen)
		n := slices.IndexFunc(t.Cases, func(c abi.Case) bool { return c.Name == chosen.Case })
		return some(uint32(n), chosen.Payload, t.Cases[n].Type)
	case abi.KindEnum:
		return abi.Variant{Case: uint32(slices.IndexFunc(t.Cases, func(c abi.Case) bool { return c.Name == text }))}
	case abi.KindFlags:
		var set []string
		unmarshal(v.Value, &set)
		var bits uint32
		for _, label := range set {
			bits |= 1 << slices.Index(t.Labels, label)
		}
		return bits
	case abi.KindOption:
		if string(v.Value) == "null" || len(v.Value) == 0 {
			return abi.Variant{}
		}
		return some(1, v.Value, t.Elem)
	case abi.KindResult:
		var either struct{ Ok, Err json.RawMessage }
		unmarshal(v.Value, &either)
		if either.Err != nil {
			return some(1, either.Err, t.Err)
		}
		return some(0, either.Ok, t.Ok)
	default:
		return fmt.Sprintf("a value of type %s", v.Type)
	}
}

func unmarshal(text []byte, to any) {
	if err := json.Unmarshal(text, to); err != nil {
		panic(err)
	}
}
