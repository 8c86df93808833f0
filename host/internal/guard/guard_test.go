package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/wasmbin"
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
			var asked int64
			var params []*abi.Type
			for _, f := range c.fields {
				params = append(params, f.Type)
			}
			_, err = run(t, wasm, wasmtime.Limits{Memory: 64 << 20, CPU: time.Minute}, nil,
				wasmtime.Definition{Name: Import, Params: []*abi.Type{kinds(abi.KindU32)}, Call: func(s *wasmtime.Store, args []abi.Value) (abi.Value, error) {
					asked = int64(args[0].(uint32))
					return nil, s.Ask(asked)
				}},
				wasmtime.Definition{Name: "f", Params: params, Call: func(*wasmtime.Store, []abi.Value) (abi.Value, error) { return nil, nil }})
			if (err == nil) != (c.err == nil) || err != nil && !errors.Is(err, c.err) && !strings.Contains(err.Error(), c.err.Error()) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if asked < c.low || asked > c.high {
				t.Errorf("asked for %d bytes, want %d to %d", asked, c.low, c.high)
			}
		})
	}
}

// run calls the function "run" of a component with its checks, in an instance of its own.
func run(t *testing.T, wasm []byte, limits wasmtime.Limits, result *abi.Type, imports ...wasmtime.Definition) (abi.Value, error) {
	t.Helper()
	guarded, _, err := Component(wasm)
	if err != nil {
		t.Fatal(err)
	}
	e, err := wasmtime.NewEngine(wasmtime.Pool{Instances: 1, WarmSlots: 1, MaxMemory: limits.Memory, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	compiled, err := e.Compile(guarded)
	if err != nil {
		t.Fatal(err)
	}
	defer compiled.Close()
	l := e.NewLinker()
	defer l.Close()
	if err := l.Instance("", imports); err != nil {
		t.Fatal(err)
	}
	s := e.NewStore(limits, nil)
	defer s.Close()
	i, err := s.Instantiate(l, compiled)
	if err != nil {
		t.Fatal(err)
	}
	f := compiled.Export("", "run")
	defer f.Close()
	return i.Call(f, nil, result)
}

// TestChecksAreShared counts the functions of checks: types of the same shape have them in common, however many functions use such a
// type, since each takes the engine as long as a whole check.
func TestChecksAreShared(t *testing.T) {
	functions := func(n int) (count int) {
		var imports, lowered, used strings.Builder
		for i := range n {
			fmt.Fprintf(&imports, `(type $r%[1]d' (record (field "a%[1]d" string) (field "b" (list (option string))))) (import "r%[1]d" (type $r%[1]d (eq $r%[1]d')))
				(import "f%[1]d" (func $f%[1]d (param "x" (list $r%[1]d))))`, i)
			fmt.Fprintf(&lowered, `(core func $l%[1]d (canon lower (func $f%[1]d) (memory $m)))`, i)
			fmt.Fprintf(&used, `(export "f%[1]d" (func $l%[1]d))`, i)
		}
		wasm, err := wasmtime.WAT(`(component ` + imports.String() + `
			(core module $memory (memory (export "m") 1))
			(core instance $memory (instantiate $memory))
			(alias core export $memory "m" (core memory $m))` + lowered.String() + `(core instance ` + used.String() + `))`)
		if err != nil {
			t.Fatal(err)
		}
		guarded, _, err := Component(wasm)
		if err != nil {
			t.Fatal(err)
		}
		sections, err := wasmbin.ReadSections(guarded, wasmbin.ComponentHeader)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sections {
			if s.ID != 1 {
				continue
			}
			module, err := wasmbin.ReadSections(s.Body, wasmbin.CoreHeader)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range module {
				if r := part.Reader(); part.ID == wasmbin.SectionFunction {
					count += r.Count()
				}
			}
		}
		return count
	}
	one := functions(1)
	if all := functions(20); one < 5 || all != one+19 {
		t.Errorf("%d functions check one function of the component, %d check 20: want one more for each", one, all)
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
		{"a function whose type is a list", `(component (type (list u8)) (import "f" (func (type 0))))`, "not that of a function"},
		{"a type of a megabyte", `(component (type (tuple u8 u8 u8 u8 u8 u8 u8 u8))` + huge() + `)`, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wasm, err := wasmtime.WAT(c.wat)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := Component(wasm); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestWatchMemory has a module with every form of operand, so that one which is taken for instructions shows.
func TestWatchMemory(t *testing.T) {
	const ends = `(if (local.get 0) (then unreachable)) (drop (memory.grow (i32.const 0))) `
	code := strings.Join([]string{
		`(drop (i64.const 0x4000400040004000)) (drop (i32.const 0x40004000)) (drop (f32.const 2)) (drop (f64.const 2))`,
		`(block (br_table 0 0 0 1 0 (i32.const 64)))`,
		`(block (result i32) (i32.const 64)) drop (i32.const 1) (block (type $two) drop drop)`,
		`(drop (call_indirect $t (type $f) (i32.const 64) (i32.const 0)))`,
		`(drop (select (result i32) (i32.const 64) (i32.const 0) (i32.const 1)))`,
		`(i64.store offset=0x4000 align=1 (i32.const 64) (i64.load offset=64 (i32.const 0)))`,
		`(drop (memory.size)) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0)) (data.drop $d)`,
		`(memory.copy (i32.const 0) (i32.const 64) (i32.const 0)) (memory.fill (i32.const 0) (i32.const 64) (i32.const 0))`,
		`(table.set $t (i32.const 0) (table.get $t (i32.const 0))) (drop (table.size $t)) (drop (table.grow $t (ref.null func) (i32.const 0)))`,
		`(table.fill $t (i32.const 0) (ref.func $run) (i32.const 0)) (table.copy $t $t (i32.const 0) (i32.const 0) (i32.const 0))`,
		`(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 0)) (elem.drop $e) (drop (ref.is_null (ref.func $run)))`,
		`(drop (i32.trunc_sat_f64_u (f64.const 64))) (global.set $g (global.get $h))`,
		`(drop (i8x16.shuffle 0 0x10 0 0x10 0 0 0 0 0 0 0 0 0 0 0 0 (v128.const i32x4 0x40 0x1000 0x40 0x4000) (v128.const i64x2 0 0x40)))`,
		`(drop (i32x4.extract_lane 0 (i32x4.splat (i32.const 64)))) (drop (v128.load8_lane offset=64 0 (i32.const 0) (v128.const i64x2 0 0)))`,
		`(drop (v128.load32_zero offset=64 (i32.const 0))) (drop (v128.load64_splat offset=0x4000 (i32.const 0))) (drop (f64x2.sqrt (v128.const i64x2 64 0)))`,
	}, ends)
	wasm, err := wasmtime.WAT(`(component
		(core module $env (memory (export "m") 1 65536) (global (export "g") i32 (i32.const 7)) (func (export "f")))
		(core instance $env (instantiate $env))
		(core module $main
			(type $f (func (param i32) (result i32)))
			(type $two (func (param i32)))
			(import "" "f" (func))
			(import "" "m" (memory 1 65536))
			(import "" "g" (global $h i32))
			(table $t 1 funcref) (global $g (mut i32) (i32.const 64))
			(elem (table $t) (i32.const 0) func $id) (elem $e func $run)
			(func $id (type $f) (local.get 0))
			(func $run (param i32) ` + strings.Replace(code, `(block (type $two) drop drop)`, `(block (type $two) drop)`, 1) + ends + `)
			(func (export "run") (result i32)
				(call $run (i32.const 0))
				(i32.add (global.get $g) (i32.const 0x4000)))
			(func (export "start") (drop (memory.grow (i32.const 65535))) (call $run (i32.const 1)))
			(data $d "@"))
		(core instance $main (instantiate $main (with "" (instance $env))))
		(func (export "run") (result u32) (canon lift (core func $main "run")))
		(func (export "start") (canon lift (core func $main "start"))))`)
	if err != nil {
		t.Fatal(err)
	}
	guarded, _, err := Component(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guarded), Refused) {
		t.Fatal("the module stayed as it was")
	}
	e, err := wasmtime.NewEngine(wasmtime.Pool{Instances: 1, WarmSlots: 1, MaxMemory: 64 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	compiled, err := e.Compile(guarded)
	if err != nil {
		t.Fatal(err)
	}
	defer compiled.Close()
	l := e.NewLinker()
	defer l.Close()
	if err := l.Instance("", []wasmtime.Definition{{Name: Import, Params: []*abi.Type{kinds(abi.KindU32)}, Call: func(*wasmtime.Store, []abi.Value) (abi.Value, error) { return nil, nil }}}); err != nil {
		t.Fatal(err)
	}
	s := e.NewStore(wasmtime.Limits{Memory: 64 << 20, CPU: time.Minute}, nil)
	defer s.Close()
	i, err := s.Instantiate(l, compiled)
	if err != nil {
		t.Fatal(err)
	}
	run, start := compiled.Export("", "run"), compiled.Export("", "start")
	defer run.Close()
	defer start.Close()
	if got, err := i.Call(run, nil, kinds(abi.KindU32)); got != uint32(0x4007) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = i.Call(start, nil, nil)
	if trap, is := errors.AsType[*wasmtime.TrapError](err); !is || len(trap.Functions) < 2 || trap.Functions[0] != Refused || trap.Functions[1] != "run" {
		t.Errorf("got %#v", err)
	}
}

// TestLargerModules has modules stay as they are that would become much larger, or that are not as expected.
func TestLargerModules(t *testing.T) {
	for _, c := range []struct {
		name, wat string
		watched   bool
	}{
		{"grows", `(func (drop (memory.grow (i32.const 1))))`, true},
		{"a few", `(func (drop (memory.grow (i32.const 1)))` + strings.Repeat(` unreachable`, 10_000) + `)`, true},
		{"many", `(func (drop (memory.grow (i32.const 1)))` + strings.Repeat(` unreachable`, 40_000) + `)`, false},
		{"many in many functions", `(func (drop (memory.grow (i32.const 1))))` + strings.Repeat(`(func`+strings.Repeat(` unreachable`, 100)+`)`, 400), false},
		{"never grows", `(func unreachable)`, false},
	} {
		module, err := wasmtime.WAT(`(module (memory 1) ` + c.wat + `)`)
		if err != nil {
			t.Fatal(err)
		}
		out := watchMemory(module)
		if watched := strings.Contains(string(out), Refused); watched != c.watched || !watched && string(out) != string(module) {
			t.Errorf("%s: watched %v, %d bytes of %d", c.name, watched, len(out), len(module))
		}
		for n := range min(len(module), 2000) { // cut off, it stays what it was, or ends where a section does
			if cut := watchMemory(module[:n]); strings.Contains(string(cut), Refused) {
				t.Errorf("%s: %d bytes are watched", c.name, n)
			}
		}
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
		out, _, err := Component(wasm)
		if err == nil && len(out) > 100*len(wasm)+maxChecks+1000 {
			t.Errorf("%d bytes of %d", len(out), len(wasm))
		}
	})
}

// TestPostReturnIsLeftOut has a component that traps, or never ends, in the function that cleans up after a call.
func TestPostReturnIsLeftOut(t *testing.T) {
	for _, cleanup := range []string{`unreachable`, `(loop $l (br $l))`} {
		wasm, err := wasmtime.WAT(`(component
			(core module $main (memory (export "m") 1)
				(func (export "run") (result i32) (i32.const 0))
				(func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
				(func (export "cleanup") (param i32) ` + cleanup + `))
			(core instance $main (instantiate $main))
			(alias core export $main "m" (core memory $m))
			(func (export "run") (result (list string))
				(canon lift (core func $main "run") (memory $m) (post-return (func $main "cleanup")) (realloc (func $main "realloc")))))`)
		if err != nil {
			t.Fatal(err)
		}
		ask := wasmtime.Definition{Name: Import, Params: []*abi.Type{kinds(abi.KindU32)}, Call: func(*wasmtime.Store, []abi.Value) (abi.Value, error) { return nil, nil }}
		v, err := run(t, wasm, wasmtime.Limits{Memory: 1 << 20, CPU: 100 * time.Millisecond}, list(kinds(abi.KindString)), ask)
		if err != nil || len(v.([]abi.Value)) != 0 {
			t.Errorf("%s: got %v, %v", cleanup, v, err)
		}
	}
}

// TestLiftedTogether lifts four functions, with other definitions in between. Each is exported under its own name and asks for its own
// result. Those between which nothing needs a function share an instance of checks.
func TestLiftedTogether(t *testing.T) {
	texts, text, number := list(kinds(abi.KindString)), kinds(abi.KindString), kinds(abi.KindU32)
	functions := []struct {
		name, wat string
		result    *abi.Type
		low, high int64 // what is asked
	}{
		{"a", `(list string)`, texts, 300_000, 310_000},
		{"b", `u32`, number, 0, 0},
		{"c", `(list string)`, texts, 600_000, 610_000},
		{"d", `string`, text, 150_000, 160_000},
	}
	for _, between := range []struct {
		name, wat string
		modules   int // with checks
	}{
		{"nothing", ``, 1},
		{"types", `(type $t (list u8)) (alias core export $main "m" (core memory $again)) (core type $c (module))`, 1},
		{"a resource", `(core func $drop (canon resource.drop $r))`, 1},
		{"an instance", `(instance $i (export "x" (func $b)))`, 2},
		{"one that is lowered", `(core func $lowered (canon lower (func $a) (memory $m) (realloc (func $main "realloc"))))`, 2},
		{"another encoding", `(func $other (result string) (canon lift (core func $main "d") (memory $m) string-encoding=utf16))`, 3},
		{"an export", `(export "early" (func $b))`, 2},
	} {
		for _, f := range functions {
			lift := func(n int) string {
				return fmt.Sprintf(`(func $%s (result %s) (canon lift (core func $main %[1]q) (memory $m)))`, functions[n].name, functions[n].wat)
			}
			wasm, err := wasmtime.WAT(`(component (import "r" (type $r (sub resource)))
				(core module $main (memory (export "m") 8)
					(data (i32.const 0) "\10\00\00\00\01\00\00\00\20\00\00\00\02\00\00\00\00\10\00\00\a0\86\01\00\00\10\00\00\50\c3\00\00")
					(data (i32.const 32) "\00\10\00\00\a0\86\01\00\00\10\00\00\a0\86\01\00")
					(func (export "a") (result i32) (i32.const 0)) (func (export "b") (result i32) (i32.const 42))
					(func (export "c") (result i32) (i32.const 8)) (func (export "d") (result i32) (i32.const 24))
					(func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable))
				(core instance $main (instantiate $main))
				(alias core export $main "m" (core memory $m))
				` + lift(0) + lift(1) + between.wat + lift(2) + lift(3) + `
				(export "run" (func $` + f.name + `)))`)
			if err != nil {
				t.Fatal(between.name, err)
			}
			guarded, _, err := Component(wasm)
			if err != nil {
				t.Fatal(between.name, err)
			}
			sections, err := wasmbin.ReadSections(guarded, wasmbin.ComponentHeader)
			if err != nil {
				t.Fatal(err)
			}
			modules := -1
			for _, s := range sections {
				if s.ID == wasmbin.SectionCoreModule {
					modules++
				}
			}
			if modules != between.modules {
				t.Errorf("%s: %d modules with checks, want %d", between.name, modules, between.modules)
			}
			var asked int64
			ask := wasmtime.Definition{Name: Import, Params: []*abi.Type{number}, Call: func(_ *wasmtime.Store, args []abi.Value) (abi.Value, error) {
				asked = int64(args[0].(uint32))
				return nil, nil
			}}
			_, err = run(t, wasm, wasmtime.Limits{Memory: 1 << 20, CPU: time.Minute}, f.result, ask, wasmtime.Definition{Name: "r", Resource: &abi.Resource{}})
			if err != nil || asked < f.low || asked > f.high {
				t.Errorf("%s: %s asked for %d bytes: %v", between.name, f.name, asked, err)
			}
		}
	}
}
