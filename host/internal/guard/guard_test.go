package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

func kinds(k abi.Kind) *abi.Type { return &abi.Type{Kind: k} }

func list(t *abi.Type) *abi.Type { return &abi.Type{Kind: abi.KindList, Elem: t} }

// TestAsked has guests pass values of many types in many ways and compares what is asked of the host with what they weigh.
func TestAsked(t *testing.T) {
	text := kinds(abi.KindString)
	var wide []abi.Field
	wideWAT := `(param "p0" string)`
	wide = append(wide, abi.Field{Name: "p0", Type: text})
	for i := 1; i < 17; i++ {
		wide = append(wide, abi.Field{Name: fmt.Sprintf("p%d", i), Type: kinds(abi.KindU8)})
		wideWAT += fmt.Sprintf(` (param "p%d" u8)`, i)
	}
	one := func(t *abi.Type) []abi.Field { return []abi.Field{{Name: "x", Type: t}} }
	variant := &abi.Type{Kind: abi.KindVariant, Cases: []abi.Case{{Name: "a", Type: kinds(abi.KindU64)}, {Name: "b", Type: text}, {Name: "c"}}}
	option := &abi.Type{Kind: abi.KindOption, Elem: list(text)}
	record := &abi.Type{Kind: abi.KindRecord, Fields: []abi.Field{{Name: "a", Type: kinds(abi.KindU8)}, {Name: "b", Type: option}}}
	for _, c := range []struct {
		name, types, params string // of the function, in the text format
		fields              []abi.Field
		encoding            string
		core                string // the parameters of the core function
		memory, args        string
		low, high           int64 // what is asked; 0 for nothing
		err                 error
	}{
		{"a small text", "", `(param "x" string)`, one(text), "", "i32 i32", "", `(i32.const 0) (i32.const 1000)`, 0, 0, nil},
		{"a text", "", `(param "x" string)`, one(text), "", "i32 i32", "", `(i32.const 0) (i32.const 1000000)`, 3_000_000, 3_100_000, nil},
		{"a text in UTF-16", "", `(param "x" string)`, one(text), "string-encoding=utf16", "i32 i32", "", `(i32.const 0) (i32.const 1000000)`, 9_000_000, 9_100_000, nil},
		{"a text in Latin-1", "", `(param "x" string)`, one(text), "string-encoding=latin1+utf16", "i32 i32", "", `(i32.const 0) (i32.const 1000000)`, 6_000_000, 9_100_000, nil},
		{"a text in UTF-16, marked", "", `(param "x" string)`, one(text), "string-encoding=latin1+utf16", "i32 i32", "", `(i32.const 0) (i32.const 0x800f4240)`, 9_000_000, 9_100_000, nil},
		{"a text that is too long", "", `(param "x" string)`, one(text), "", "i32 i32", "", `(i32.const 0) (i32.const 20000000)`, Over, Over, wasmtime.ErrConversion},
		{"many parameters", "", wideWAT, wide, "", "i32", `(data (i32.const 4) "\40\42\0f\00")`, `(i32.const 0)`, 3_000_000, 3_100_000, nil},
		{"a case with a number beside one with text", `(type $v' (variant (case "a" u64) (case "b" string) (case "c"))) (import "v" (type $v (eq $v')))`, `(param "x" $v)`, one(variant), "", "i32 i64 i32", "", `(i32.const 1) (i64.const 0) (i32.const 1000000)`, 3_000_000, 3_100_000, nil},
		{"another case", `(type $v' (variant (case "a" u64) (case "b" string) (case "c"))) (import "v" (type $v (eq $v')))`, `(param "x" $v)`, one(variant), "", "i32 i64 i32", "", `(i32.const 0) (i64.const 0) (i32.const 1000000)`, 0, 0, nil},
		{"a list in an option in a record", `(type $r' (record (field "a" u8) (field "b" (option (list string))))) (import "r" (type $r (eq $r')))`, `(param "x" $r)`, one(record), "", "i32 i32 i32 i32", `(data (i32.const 0) "\00\00\00\00\40\42\0f\00\00\00\00\00\40\42\0f\00")`, `(i32.const 7) (i32.const 1) (i32.const 0) (i32.const 2)`, 6_000_000, 6_100_000, nil},
		{"the same in a list", `(type $r' (record (field "a" u8) (field "b" (option (list string))))) (import "r" (type $r (eq $r')))`, `(param "x" (list $r))`, one(list(record)), "", "i32 i32", `(data (i32.const 0) "\07\00\00\00\01\00\00\00\20\00\00\00\02\00\00\00\07\00\00\00\00\00\00\00\20\00\00\00\02\00\00\00\00\00\00\00\40\42\0f\00\00\00\00\00\40\42\0f\00")`, `(i32.const 0) (i32.const 2)`, 6_000_000, 6_100_000, nil},
		{"bytes", "", `(param "x" (list u8))`, one(list(kinds(abi.KindU8))), "", "i32 i32", "", `(i32.const 0) (i32.const 200000)`, 20_000_000, 25_000_000, nil},
		{"a list that is not in memory", "", `(param "x" (list u8))`, one(list(kinds(abi.KindU8))), "", "i32 i32", "", `(i32.const 0) (i32.const 0x7fffffff)`, 0, 0, errors.New("out of bounds")},
		{"a list that goes around", "", `(param "x" (list u64))`, one(list(kinds(abi.KindU64))), "", "i32 i32", "", `(i32.const 8) (i32.const 0x20000000)`, 0, 0, errors.New("out of bounds")},
		{"lists of one list", "", `(param "x" (list (list (list u64))))`, one(list(list(list(kinds(abi.KindU64))))), "", "i32 i32", `(data (i32.const 4) "\00\10\00\00")`, `(i32.const 0) (i32.const 1)`, 100_000, 2_000_000, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			wasm, err := wasmtime.WAT(`(component ` + c.types + `
				(import "f" (func $f ` + c.params + `))
				(core module $memory (memory (export "m") 512) ` + c.memory + `)
				(core instance $memory (instantiate $memory))
				(alias core export $memory "m" (core memory $m))
				(core func $lowered (canon lower (func $f) (memory $m) ` + c.encoding + `))
				(core module $main
					(import "" "f" (func $f (param ` + c.core + `)))
					(func (export "run") (call $f ` + c.args + `)))
				(core instance $main (instantiate $main (with "" (instance (export "f" (func $lowered))))))
				(func (export "run") (canon lift (core func $main "run"))))`)
			if err != nil {
				t.Fatal(err)
			}
			guarded, err := Component(wasm)
			if err != nil {
				t.Fatal(err)
			}
			e := wasmtime.NewEngine(wasmtime.Pool{Instances: 1, WarmSlots: 1, MaxMemory: 64 << 20, KeepResident: 1 << 16, Running: 1})
			defer e.Close()
			compiled, err := e.Compile(guarded)
			if err != nil {
				t.Fatal(err)
			}
			defer compiled.Close()
			l := e.NewLinker()
			defer l.Close()
			var asked int64
			var params []*abi.Type
			for _, f := range c.fields {
				params = append(params, f.Type)
			}
			if err := l.Instance("", []wasmtime.Definition{
				{Name: Import, Params: []*abi.Type{kinds(abi.KindU32)}, Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) {
					asked = int64(args[0].(uint32))
					return nil, s.Ask(asked)
				}},
				{Name: "f", Params: params, Call: func(*wasmtime.Store, []abi.Value) (abi.Value, error) { return nil, nil }},
			}); err != nil {
				t.Fatal(err)
			}
			s := e.NewStore(wasmtime.Limits{Memory: 64 << 20, CPU: time.Minute}, nil)
			defer s.Close()
			i, err := s.Instantiate(l, compiled)
			if err != nil {
				t.Fatal(err)
			}
			run := compiled.Export("", "run")
			defer run.Close()
			_, err = i.Call(run, nil, nil)
			if (err == nil) != (c.err == nil) || err != nil && !errors.Is(err, c.err) && !strings.Contains(err.Error(), c.err.Error()) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if asked < c.low || asked > c.high {
				t.Errorf("asked for %d bytes, want %d to %d", asked, c.low, c.high)
			}
		})
	}
}

// TestRefused has components that cannot be guarded.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, wat, want string }{
		{"the host's own import", `(component (import "stile-reserve" (func (param "bytes" u32))))`, "the host's own"},
		{"an async function", `(component (import "f" (func async)))`, "async"},
		{"a stream", `(component (type (stream u8)))`, "async"},
		{"code inside", `(component (component (core module) (core instance (instantiate 0))))`, "has code"},
		{"a component that is imported", `(component (import "c" (component)))`, "is a component"},
		{"a type of a megabyte", `(component (type (tuple u8 u8 u8 u8 u8 u8 u8 u8))` + huge() + `)`, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wasm, err := wasmtime.WAT(c.wat)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Component(wasm); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// huge is a tuple of eight of a tuple of eight, and so on.
func huge() string {
	var out strings.Builder
	for i := range 8 {
		fmt.Fprintf(&out, " (type (tuple%s))", strings.Repeat(fmt.Sprintf(" %d", i), 8))
	}
	return out.String()
}

// FuzzComponent has no input make it panic, or take long.
func FuzzComponent(f *testing.F) {
	for _, wat := range []string{
		`(component)`,
		`(component (type $v' (variant (case "a" u64) (case "b" (list string)))) (import "v" (type $v (eq $v')))
			(import "f" (func $f (param "x" (list $v)) (result (result string (error (tuple u8 f32))))))
			(core module $m (memory (export "m") 1) (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable) (func (export "g") (result i32) unreachable))
			(core instance $i (instantiate $m))
			(alias core export $i "m" (core memory $mem))
			(core func (canon lower (func $f) (memory $mem) (realloc (func $i "r"))))
			(func (export "g") (result (list u8)) (canon lift (core func $i "g") (memory $mem))))`,
		`(component (component $c (import "a" (instance (export "r" (type (sub resource))) (export "f" (func (result bool))))))
			(type (instance (type (list u8)) (alias outer 1 0 (type)) (export "x" (type (eq 0))))) (type (component (import "x" (func)) (export "y" (func)))))`,
	} {
		wasm, err := wasmtime.WAT(wat)
		if err != nil {
			f.Log(wat, err)
			continue
		}
		f.Add(wasm)
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, err := Component(wasm)
		if err == nil && len(out) > 100*len(wasm)+maxChecks+1000 {
			t.Errorf("%d bytes of %d", len(out), len(wasm))
		}
	})
}
