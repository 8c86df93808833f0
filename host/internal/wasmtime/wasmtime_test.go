package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
)

func newEngine(t testing.TB) *Engine {
	e, err := NewEngine(Pool{Instances: 100, WarmSlots: 4, MaxMemory: 64 << 20, KeepResident: 2 << 20, Running: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// compile assembles and compiles a component.
func compile(t testing.TB, e *Engine, wat string) *Component {
	t.Helper()
	wasm, err := WAT(wat)
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Compile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// start makes an instance in a store of its own.
func start(t testing.TB, e *Engine, l *Linker, c *Component, limits Limits) *Instance {
	t.Helper()
	if limits.CPU == 0 {
		limits.CPU = time.Minute
	}
	if limits.Memory == 0 {
		limits.Memory = 64 << 20
	}
	s := e.NewStore(limits, nil)
	t.Cleanup(s.Close)
	i, err := s.Instantiate(l, c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func kind(k abi.Kind) *abi.Type { return &abi.Type{Kind: k} }

// TestValues sends a value of every type through an imported function and back: the guest is a component that hands its
// parameter on to an import of the same type, so each is lifted, lowered, lifted and lowered.
func TestValues(t *testing.T) {
	text := kind(abi.KindString)
	record := &abi.Type{Kind: abi.KindRecord, Fields: []abi.Field{{Name: "a-b", Type: kind(abi.KindU8)}, {Name: "c", Type: text}}}
	for _, c := range []struct {
		name, wat string // the type in the text format
		t         *abi.Type
		values    []abi.Value
	}{
		{"bool", "bool", kind(abi.KindBool), []abi.Value{true, false}},
		{"s8", "s8", kind(abi.KindS8), []abi.Value{int8(-128), int8(127)}},
		{"u8", "u8", kind(abi.KindU8), []abi.Value{uint8(255)}},
		{"s16", "s16", kind(abi.KindS16), []abi.Value{int16(-32768)}},
		{"u16", "u16", kind(abi.KindU16), []abi.Value{uint16(65535)}},
		{"s32", "s32", kind(abi.KindS32), []abi.Value{int32(-1 << 31)}},
		{"u32", "u32", kind(abi.KindU32), []abi.Value{uint32(1<<32 - 1)}},
		{"s64", "s64", kind(abi.KindS64), []abi.Value{int64(-1 << 63)}},
		{"u64", "u64", kind(abi.KindU64), []abi.Value{uint64(1<<64 - 1)}},
		{"f32", "float32", kind(abi.KindF32), []abi.Value{float32(1.5)}},
		{"f64", "float64", kind(abi.KindF64), []abi.Value{-0.25}},
		{"char", "char", kind(abi.KindChar), []abi.Value{'é', rune(0x10FFFF)}},
		{"string", "string", text, []abi.Value{"", "grüße \x00 😀"}},
		{"bytes", "(list u8)", &abi.Type{Kind: abi.KindList, Elem: kind(abi.KindU8)}, []abi.Value{[]byte{}, []byte{0, 1, 255}}},
		{"list", "(list string)", &abi.Type{Kind: abi.KindList, Elem: text}, []abi.Value{[]abi.Value{}, []abi.Value{"a", ""}}},
		{"record", "(record (field \"a-b\" u8) (field \"c\" string))", record, []abi.Value{[]abi.Value{uint8(1), "x"}}},
		{
			"tuple", "(tuple u8 string)", &abi.Type{Kind: abi.KindTuple, Fields: []abi.Field{{Type: kind(abi.KindU8)}, {Type: text}}},
			[]abi.Value{[]abi.Value{uint8(1), "x"}},
		},
		{
			"variant", "(variant (case \"none\") (case \"text\" string))",
			&abi.Type{Kind: abi.KindVariant, Cases: []abi.Case{{Name: "none"}, {Name: "text", Type: text}}},
			[]abi.Value{abi.Variant{}, abi.Variant{Case: 1, Value: "x"}},
		},
		{"enum", "(enum \"a\" \"b\")", &abi.Type{Kind: abi.KindEnum, Cases: []abi.Case{{Name: "a"}, {Name: "b"}}}, []abi.Value{abi.Variant{Case: 1}}},
		{"option", "(option string)", &abi.Type{Kind: abi.KindOption, Elem: text}, []abi.Value{abi.Variant{}, abi.Variant{Case: 1, Value: "x"}}},
		{
			"result", "(result string (error u8))", &abi.Type{Kind: abi.KindResult, Ok: text, Err: kind(abi.KindU8)},
			[]abi.Value{abi.Variant{Value: "x"}, abi.Variant{Case: 1, Value: uint8(7)}},
		},
		{"empty result", "(result)", &abi.Type{Kind: abi.KindResult}, []abi.Value{abi.Variant{}, abi.Variant{Case: 1}}},
		{"flags", "(flags \"a\" \"b\" \"c\")", &abi.Type{Kind: abi.KindFlags, Labels: []string{"a", "b", "c"}}, []abi.Value{uint32(0), uint32(5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t)
			component := compile(t, e, echo(c.wat, c.t))
			l := e.NewLinker()
			t.Cleanup(l.Close)
			var seen abi.Value
			if err := l.Instance("", []Definition{{Name: "echo", Params: []*abi.Type{c.t}, Result: c.t, Call: func(_ *Store, args []abi.Value) (abi.Value, error) {
				seen = args[0]
				return args[0], nil
			}}}); err != nil {
				t.Fatal(err)
			}
			run := component.Export("", "run")
			t.Cleanup(run.Close)
			for _, v := range c.values {
				got, err := start(t, e, l, component, Limits{}).Call(run, []*abi.Type{c.t}, c.t, v)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(seen, v) || !reflect.DeepEqual(got, v) {
					t.Errorf("sent %#v, host saw %#v, got back %#v", v, seen, got)
				}
			}
		})
	}
}

// echo is a component whose export `run` hands its parameter to the import `echo` and returns what that returns.
func echo(wat string, t *abi.Type) string {
	f := &abi.Func{Params: []abi.Field{{Name: "v", Type: t}}, Result: t}
	core := func(types []abi.CoreType) (text string) {
		for _, c := range types {
			text += " " + map[abi.CoreType]string{abi.CoreI32: "i32", abi.CoreI64: "i64", abi.CoreF32: "f32", abi.CoreF64: "f64"}[c]
		}
		return text
	}
	lowered, loweredResults := f.Core(true)
	lifted, liftedResults := f.Core(false)
	body := ""
	for i := range lifted {
		body += fmt.Sprintf("(local.get %d)", i)
	}
	body = "(call $echo " + body
	if len(lowered) > len(lifted) { // the result is spilled to memory, at an address of the guest's choice
		body += "(i32.const 1024)) (i32.const 1024)"
	} else {
		body += ")"
	}
	signature := func(params, results []abi.CoreType) string {
		return "(param" + core(params) + ") (result" + core(results) + ")"
	}
	return `(component
		(type $t ` + wat + `)
		(import "v" (type $v (eq $t)))
		(import "echo" (func $echo (param "v" $v) (result $v)))
		(core module $mem
			(memory (export "memory") 1)
			(global $next (mut i32) (i32.const 4096))
			(func (export "realloc") (param i32 i32 i32 i32) (result i32)
				(global.get $next)
				(global.set $next (i32.and (i32.add (i32.add (global.get $next) (local.get 3)) (i32.const 15)) (i32.const -16)))))
		(core instance $m (instantiate $mem))
		(core func $echo (canon lower (func $echo) (memory $m "memory") (realloc (func $m "realloc"))))
		(core module $code
			(import "h" "echo" (func $echo ` + signature(lowered, loweredResults) + `))
			(func (export "run") ` + signature(lifted, liftedResults) + body + `))
		(core instance $i (instantiate $code (with "h" (instance (export "echo" (func $echo))))))
		(func (export "run") (param "v" $v) (result $v)
			(canon lift (core func $i "run") (memory $m "memory") (realloc (func $m "realloc")))))`
}

// spinner runs for ever, or does what its other exports say.
const spinner = `(component
	(core module $m
		(memory (export "memory") 1)
		(func (export "spin") (loop $l (br $l)))
		(func $deep (export "deep") (call $deep))
		(func (export "trap") unreachable)
		(func (export "grow") (result i32) (memory.grow (i32.const 2000))))
	(core instance $i (instantiate $m))
	(func (export "spin") (canon lift (core func $i "spin")))
	(func (export "deep") (canon lift (core func $i "deep")))
	(func (export "trap") (canon lift (core func $i "trap")))
	(func (export "grow") (result s32) (canon lift (core func $i "grow"))))`

func TestEnds(t *testing.T) {
	e := newEngine(t)
	c := compile(t, e, spinner)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	call := func(t *testing.T, name string, limits Limits, during func(*Store)) (abi.Value, error) {
		i := start(t, e, l, c, limits)
		if during != nil {
			go during(i.store)
		}
		x := c.Export("", name)
		defer x.Close()
		var result *abi.Type
		if name == "grow" {
			result = kind(abi.KindS32)
		}
		return i.Call(x, nil, result)
	}
	t.Run("cpu", func(t *testing.T) {
		if _, err := call(t, "spin", Limits{CPU: 20 * time.Millisecond}, nil); !errors.Is(err, ErrCPU) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		if _, err := call(t, "spin", Limits{}, (*Store).Cancel); !errors.Is(err, ErrCancelled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("stack", func(t *testing.T) {
		var trap *TrapError
		if _, err := call(t, "deep", Limits{}, nil); !errors.As(err, &trap) || !strings.Contains(trap.Reason, "call stack exhausted") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("trap", func(t *testing.T) {
		var trap *TrapError
		if _, err := call(t, "trap", Limits{}, nil); !errors.As(err, &trap) || !strings.Contains(trap.Reason, "unreachable") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		v, err := call(t, "grow", Limits{Memory: 1 << 20}, nil)
		if err != nil || v != int32(-1) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

// TestInstantiationCounts instantiates a component whose start function takes long, or about a millisecond, and calls it: the time of both
// counts. A short time is that of the wall clock, so it may become less when it is known.
func TestInstantiationCounts(t *testing.T) {
	e := newEngine(t)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	for _, loops := range []int{2_000_000, 100_000_000} {
		c := compile(t, e, fmt.Sprintf(`(component
			(core module $m (func $work (local $i i32)
				(loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const %d)))))
				(func (export "run")) (start $work))
			(core instance $m (instantiate $m))
			(func (export "run") (canon lift (core func $m "run"))))`, loops))
		i := start(t, e, l, c, Limits{})
		first := i.store.CPU()
		x := c.Export("", "run")
		defer x.Close()
		for range 3 {
			if _, err := i.Call(x, nil, nil); err != nil {
				t.Fatal(err)
			}
			if now := i.store.CPU(); first == 0 || now < first/10 {
				t.Errorf("%d loops: %v, and after a call %v", loops, first, now)
			}
		}
	}
}

// TestTurns runs more spinning guests than there are turns, and one short call beside them.
func TestTurns(t *testing.T) {
	e, err := NewEngine(Pool{Instances: 20, WarmSlots: 1, MaxMemory: 1 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := compile(t, e, spinner)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	const spinners = 5
	for range spinners {
		i := start(t, e, l, c, Limits{Context: ctx, Memory: 1 << 20})
		context.AfterFunc(ctx, i.store.Cancel)
		go func() {
			x := c.Export("", "spin")
			defer x.Close()
			_, err := i.Call(x, nil, nil)
			ended <- err
		}()
	}
	i := start(t, e, l, c, Limits{Memory: 1 << 20})
	x := c.Export("", "grow")
	defer x.Close()
	if _, err := i.Call(x, nil, kind(abi.KindS32)); err != nil {
		t.Error(err)
	}
	cancel()
	for range spinners {
		if err := <-ended; !errors.Is(err, ErrCancelled) {
			t.Errorf("got %v", err)
		}
	}
}

// TestBlocking has a store that is cancelled while another has the only turn: it must not run on, for nothing might tick.
func TestBlocking(t *testing.T) {
	e, err := NewEngine(Pool{Instances: 1, WarmSlots: 1, MaxMemory: 1 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithCancel(t.Context())
	s := e.NewStore(Limits{Memory: 1 << 20, CPU: time.Minute, Context: ctx}, nil)
	t.Cleanup(s.Close)
	s.turn = e.enter(t.Context(), "", false)
	if err := s.Blocking(func() {}); err != nil || !s.turn {
		t.Errorf("got %v, turn %t", err, s.turn)
	}
	if err := s.Blocking(func() {
		e.enter(t.Context(), "", false)
		cancel()
	}); !errors.Is(err, ErrCancelled) || s.turn {
		t.Errorf("got %v, turn %t", err, s.turn)
	}
	e.leave()
}

// TestKeptTurn has a store keep the only turn between calls: until Rest, until Close, and no longer than a tick.
func TestKeptTurn(t *testing.T) {
	e, err := NewEngine(Pool{Instances: 1, WarmSlots: 1, MaxMemory: 1 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := compile(t, e, spinner)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	x := c.Export("", "grow")
	t.Cleanup(x.Close)
	s := e.NewStore(Limits{Memory: 1 << 20, CPU: time.Minute}, nil)
	t.Cleanup(s.Close)
	free := func() bool {
		if !e.turns.TryTake("", 1) {
			return false
		}
		e.turns.GiveBack(1)
		return true
	}
	s.Keep()
	i, err := s.Instantiate(l, c)
	if err != nil {
		t.Fatal(err)
	}
	call := func() {
		t.Helper()
		if _, err := i.Call(x, nil, kind(abi.KindS32)); err != nil {
			t.Error(err)
		}
	}
	if free() {
		t.Error("the turn is free after the instantiation")
	}
	if call(); free() {
		t.Error("the turn is free after a call")
	}
	turn := make(chan struct{})
	go func() {
		e.enter(t.Context(), "", false)
		close(turn)
		e.leave()
	}()
	for e.turns.Waiting() == 0 {
		runtime.Gosched()
	}
	s.since = time.Now().Add(-2 * Tick)
	call()
	select {
	case <-turn:
	default:
		t.Error("the store has kept its turn for more than a tick, although another waits")
	}
	if s.Rest(); !free() {
		t.Error("the turn is not free after Rest")
	}
	if call(); !free() {
		t.Error("the turn is not free after a later call")
	}
	s.Keep()
	call()
	if s.Close(); !free() {
		t.Error("the turn is not free after Close")
	}
}

// TestParseError reads wasmtime's text where the guest chose the names in the backtrace.
func TestParseError(t *testing.T) {
	const head = "error while executing at wasm backtrace:\n"
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"an error", " no such export\n", engineError("no such export")},
		{"the system", "File too large (os error 27)\n", &SystemError{"File too large (os error 27)", syscall.EFBIG}},
		{"the system in a call", head + "    0:     0x4b - m!f\n\nCaused by:\n    Cannot allocate memory (os error 12)\n", &SystemError{"Cannot allocate memory (os error 12)", syscall.ENOMEM}},
		{"a name like the system", "unknown import: `File too large (os error 27)", engineError("unknown import: `File too large (os error 27)")},
		{"a line like the system", "unknown import `\nFile too large (os error 27)", engineError("unknown import `\nFile too large (os error 27)")},
		{"a trap like the system", "wasm trap: File too large (os error 27)", &TrapError{Reason: "File too large (os error 27)"}},
		{"no backtrace", "wasm trap: out of fuel", &TrapError{Reason: "out of fuel"}},
		{
			"a trap", head + "    0:     0x4b - m!f\n    1:     0x50 - <unknown>!<wasm function 6>\n\nCaused by:\n    wasm trap: unreachable\n",
			&TrapError{Reason: "unreachable", Functions: []string{"f", "<wasm function 6>"}},
		},
		{
			"an error of the ABI", head + "    0:     0x4b - m!f\n\nCaused by:\n    unknown handle index 7\n",
			&TrapError{Reason: "unknown handle index 7", Functions: []string{"f"}},
		},
		{
			"a name like a trap", head + "    0:     0x4b - m!wasm trap: x\n\nCaused by:\n    wasm trap: unreachable\n",
			&TrapError{Reason: "unreachable", Functions: []string{"wasm trap: x"}},
		},
		{
			"a name like a cause", head + "    0:     0x4b - m!a\nCaused by:\n    wasm trap: x\n\nCaused by:\n    wasm trap: unreachable\n",
			&TrapError{Reason: "unreachable", Functions: []string{"a"}},
		},
		{
			"a long name", head + "    0:     0x4b - m!" + strings.Repeat("é", 100) + "\n\nCaused by:\n    wasm trap: unreachable\n",
			&TrapError{Reason: "unreachable", Functions: []string{strings.Repeat("é", 50) + "..."}},
		},
	} {
		if got := parseError(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %#v, want %#v", c.name, got, c.want)
		}
	}
}

const holder = `(component
	(import "r" (type $r (sub resource)))
	(import "make" (func $make (result (own $r))))
	(import "use" (func $use (param "r" (borrow $r))))
	(core func $drop (canon resource.drop $r))
	(core func $make (canon lower (func $make)))
	(core func $use (canon lower (func $use)))
	(core module $m
		(import "h" "make" (func $make (result i32)))
		(import "h" "use" (func $use (param i32)))
		(import "h" "drop" (func $drop (param i32)))
		(func (export "proper") (local i32)
			(local.set 0 (call $make)) (call $use (local.get 0)) (call $use (local.get 0)) (call $drop (local.get 0)))
		(func (export "leak") (drop (call $make)))
		(func (export "forge") (call $use (i32.const 7)))
		(func (export "after-drop") (local i32)
			(local.set 0 (call $make)) (call $drop (local.get 0)) (call $use (local.get 0))))
	(core instance $i (instantiate $m (with "h" (instance
		(export "make" (func $make)) (export "use" (func $use)) (export "drop" (func $drop))))))
	(func (export "proper") (canon lift (core func $i "proper")))
	(func (export "leak") (canon lift (core func $i "leak")))
	(func (export "forge") (canon lift (core func $i "forge")))
	(func (export "after-drop") (canon lift (core func $i "after-drop"))))`

func TestResources(t *testing.T) {
	e := newEngine(t)
	c := compile(t, e, holder)
	types, err := c.Types()
	if err != nil {
		t.Fatal(err)
	}
	r := types.Imports[0].Resource
	if r == nil || types.Imports[1].Func.Result.Resource != r || types.Imports[2].Func.Params[0].Type.Resource != r {
		t.Fatalf("the resource has no single identity: %+v", types.Imports)
	}
	fail := errors.New("from the host")
	for _, test := range []struct {
		name        string
		makes       func() (abi.Value, error)
		uses, drops int
		want        string
	}{
		{"proper", nil, 2, 1, ""},
		{"leak", nil, 0, 0, ""},
		{"forge", nil, 0, 0, "handle index"},
		{"after-drop", nil, 0, 1, "handle index"},
		{"proper", func() (abi.Value, error) { return nil, fail }, 0, 0, "from the host"},
		{"proper", func() (abi.Value, error) { panic("boom") }, 0, 0, "panic in a host function: boom"},
		{"proper", func() (abi.Value, error) { return "wrong", nil }, 0, 0, "does not fit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			uses, drops := 0, 0
			l := e.NewLinker()
			t.Cleanup(l.Close)
			if err := l.Instance("", []Definition{
				{Name: "r", Resource: r, Drop: func(*Store, abi.Rep) error { drops++; return nil }},
				{Name: "make", Result: &abi.Type{Kind: abi.KindOwn, Resource: r}, Call: func(*Store, []abi.Value) (abi.Value, error) {
					if test.makes != nil {
						return test.makes()
					}
					return abi.Rep(42), nil
				}},
				{Name: "use", Params: []*abi.Type{{Kind: abi.KindBorrow, Resource: r}}, Call: func(_ *Store, args []abi.Value) (abi.Value, error) {
					if args[0] != abi.Rep(42) {
						t.Errorf("got %v", args[0])
					}
					uses++
					return nil, nil
				}},
			}); err != nil {
				t.Fatal(err)
			}
			x := c.Export("", test.name)
			defer x.Close()
			_, err := start(t, e, l, c, Limits{}).Call(x, nil, nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if uses != test.uses || drops != test.drops {
				t.Errorf("%d uses and %d drops, want %d and %d", uses, drops, test.uses, test.drops)
			}
		})
	}
}

// TestShape fills the pool with instances that have all that one may have. Components that need more are refused; those that
// get it from a module they import, when they start.
func TestShape(t *testing.T) {
	const instances = 3
	e, err := NewEngine(Pool{Instances: instances, WarmSlots: 1, MaxMemory: 1 << 20, KeepResident: 1 << 16, Running: instances})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	module, err := WAT("(module (table 1 funcref))")
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.CompileModule(module)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	if err := l.Module("m", m); err != nil {
		t.Fatal(err)
	}
	fill := func(wat string) error {
		wasm, err := WAT(wat)
		if err != nil {
			t.Fatal(err)
		}
		c, err := e.Compile(wasm)
		if err != nil {
			return err
		}
		defer c.Close()
		for range instances {
			s := e.NewStore(Limits{Memory: 1 << 20, CPU: time.Minute}, nil)
			defer s.Close()
			if _, err := s.Instantiate(l, c); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		module string
		fits   int
		want   string // of one more
	}{
		{"(core module $m (memory 1))", 1, "2 Wasm linear memories, which exceeds the configured maximum of 1"},
		{"(core module $m (table 1 funcref))", 4, "5 tables, which exceeds the configured maximum of 4"},
		{"(core module $m (table 100000 funcref))", 4, "5 tables, which exceeds the configured maximum of 4"},
		{"(core module $m)", 32, "33 core module instances, which exceeds the configured maximum of 32"},
		{`(import "m" (core module $m))`, 4, "table count too high at 5"},
	} {
		text := func(n int) string {
			return "(component " + c.module + strings.Repeat("(core instance (instantiate $m))", n) + ")"
		}
		if err := fill(text(c.fits)); err != nil {
			t.Errorf("%d of %s: %v", c.fits, c.module, err)
		}
		if err := fill(text(c.fits + 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d of %s: got %v, want %q", c.fits+1, c.module, err, c.want)
		}
	}
}

// TestOnlyWrittenPagesAreReset looks whether the engine asks the kernel which pages those are.
func TestOnlyWrittenPagesAreReset(t *testing.T) {
	if runtime.GOOS != "linux" || kernelBefore(t, 6, 7) {
		t.Skip("this kernel does not tell")
	}
	newEngine(t)
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasSuffix(target, "/pagemap") {
			return
		}
	}
	t.Error("the engine does not: the struct that shim.c writes to has changed")
}

func kernelBefore(t *testing.T, major, minor int) bool {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	var gotMajor, gotMinor int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &gotMajor, &gotMinor); err != nil {
		t.Fatal(err)
	}
	return gotMajor < major || gotMajor == major && gotMinor < minor
}

// TestHandedTurns has guests begin while one that was interrupted waits for its next turn: it goes first.
func TestHandedTurns(t *testing.T) {
	e, err := NewEngine(Pool{Instances: 1, WarmSlots: 1, MaxMemory: 1 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	first := 0
	for range 20 {
		e.enter(t.Context(), "", false)
		const beginners = 5
		order := make(chan bool, beginners+1)
		wait := func(soon bool) {
			e.enter(t.Context(), "", soon)
			order <- soon
			e.leave()
		}
		for range beginners {
			go wait(false)
		}
		for atomic.LoadInt32(e.waiting) < beginners {
			runtime.Gosched()
		}
		go wait(true)
		for atomic.LoadInt32(e.waiting) < beginners+1 {
			runtime.Gosched()
		}
		e.leave()
		if <-order {
			first++
		}
		for range beginners {
			<-order
		}
	}
	if first < 10 { // each counts as waiting just before it does
		t.Errorf("it went first %d times of 20", first)
	}
}

// filler is a component whose function fill has one instruction that writes to 63 MiB, which takes tens of milliseconds, and then runs on.
// Its function pass calls the host, calls it again, and runs on. Its function late does what fill does, and then what pass does.
const filler = `(component
	(import "call" (func $call))
	(core func $call (canon lower (func $call)))
	(core module $m
		(import "" "call" (func $call))
		(memory 1008)
		(func (export "fill") (memory.fill (i32.const 0) (i32.const 1) (i32.const 66060288)) (loop $l (br $l)))
		(func (export "pass") (call $call) (call $call) (loop $l (br $l)))
		(func (export "late") (memory.fill (i32.const 0) (i32.const 1) (i32.const 66060288)) (call $call) (call $call) (loop $l (br $l))))
	(core instance $m (instantiate $m (with "" (instance (export "call" (func $call))))))
	(func (export "fill") (canon lift (core func $m "fill")))
	(func (export "pass") (canon lift (core func $m "pass")))
	(func (export "late") (canon lift (core func $m "late"))))`

// TestSpentBudgetEndsAll has many stores share a budget that is soon gone: each ends before its guest runs (again).
func TestSpentBudgetEndsAll(t *testing.T) {
	const many = 40
	e, err := NewEngine(Pool{Instances: many, WarmSlots: 1, MaxMemory: 64 << 20, KeepResident: 1 << 16, Running: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := compile(t, e, filler)
	fill, pass, late := c.Export("", "fill"), c.Export("", "pass"), c.Export("", "late")
	for _, x := range []*Export{fill, pass, late} {
		t.Cleanup(x.Close)
	}
	// open makes stores inside one with this limit.
	open := func(t *testing.T, cpu time.Duration, call HostFunc) (*Budget, []*Instance) {
		l := e.NewLinker()
		t.Cleanup(l.Close)
		if err := l.Instance("", []Definition{{Name: "call", Call: call}}); err != nil {
			t.Fatal(err)
		}
		outer := newBudget(cpu, nil)
		t.Cleanup(outer.release)
		var all []*Instance
		for n := range many { // each with a user of its own, so that those that were interrupted do not go first
			all = append(all, start(t, e, l, c, Limits{Outer: outer, User: strconv.Itoa(n)}))
		}
		return outer, all
	}
	// end calls x in all instances at once, and returns the processor time that this takes. each is called when a call has ended.
	end := func(t *testing.T, all []*Instance, x *Export, each func()) (took time.Duration) {
		for _, i := range all {
			took -= i.store.CPU()
		}
		ended := make(chan error)
		for _, i := range all {
			go func() {
				_, err := i.Call(x, nil, nil)
				ended <- err
			}()
		}
		for range all {
			if err := <-ended; !errors.Is(err, ErrCPU) {
				t.Errorf("got %v", err)
			}
			each()
		}
		for _, i := range all {
			took += i.store.CPU()
		}
		return took
	}
	nothing := func() {}
	never := func(*Store, []abi.Value) (abi.Value, error) {
		t.Error("a guest runs")
		return nil, nil
	}

	t.Run("before they begin", func(t *testing.T) {
		outer, all := open(t, time.Minute, never)
		outer.Charge(time.Minute)
		end(t, all, pass, nothing)
		s := e.NewStore(Limits{Memory: 64 << 20, CPU: time.Minute, Outer: outer}, nil)
		t.Cleanup(s.Close)
		if _, err := s.Instantiate(all[0].linker, c); !errors.Is(err, ErrCPU) {
			t.Errorf("an instance: %v", err)
		}
	})
	t.Run("while others wait in the host", func(t *testing.T) {
		var waiting atomic.Int64
		gone := make(chan struct{})
		var outer *Budget
		var all []*Instance
		outer, all = open(t, time.Minute, func(s *Store, _ []abi.Value) (abi.Value, error) {
			return nil, s.Blocking(func() {
				switch n := waiting.Add(1); {
				case n == many:
					outer.Charge(time.Minute)
					close(gone)
				case n > many:
					t.Error("a guest goes on")
				}
				<-gone
			})
		})
		end(t, all, pass, nothing)
	})
	const cpu = 200 * time.Millisecond
	t.Run("in one long instruction each", func(t *testing.T) {
		_, all := open(t, cpu, never)
		if took := end(t, all, fill, nothing); took > 2*cpu {
			t.Errorf("%v of processor time; the limit is %v", took, cpu)
		}
	})
	t.Run("in one long instruction each before they wait", func(t *testing.T) {
		var waiting atomic.Int64
		gone := make(chan struct{})
		release := sync.OnceFunc(func() { close(gone) })
		_, all := open(t, cpu, func(s *Store, _ []abi.Value) (abi.Value, error) {
			return nil, s.Blocking(func() {
				if waiting.Add(1) == many {
					release()
				}
				<-gone
			})
		})
		if took := end(t, all, late, release); took > 2*cpu {
			t.Errorf("%v of processor time; the limit is %v", took, cpu)
		}
	})
	t.Run("in what closing takes", func(t *testing.T) {
		outer, all := open(t, time.Minute, never)
		s := all[0].store
		before, own := atomic.LoadUint64((*uint64)(&outer.c.used)), s.CPU()
		s.Close()
		if after := atomic.LoadUint64((*uint64)(&outer.c.used)); after == before || s.CPU() == own {
			t.Errorf("it is not charged: %d, then %d", before, after)
		}
	})
}

// TestStacksAreGivenBack recurses to the end of the stacks of 16 threads, which do not keep them.
func TestStacksAreGivenBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the stacks of threads stay resident here")
	}
	e := newEngine(t)
	c := compile(t, e, spinner)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	x := c.Export("", "deep")
	t.Cleanup(x.Close)
	resident := func() int64 {
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return pages * int64(os.Getpagesize())
	}
	const threads = 16
	before := resident()
	var called, ended sync.WaitGroup
	over := make(chan struct{})
	for range threads {
		called.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // and end the thread with the goroutine
			s := e.NewStore(Limits{Memory: 1 << 20, CPU: time.Minute}, nil)
			i, err := s.Instantiate(l, c)
			if err == nil {
				_, err = i.Call(x, nil, nil)
			}
			if trap, ok := errors.AsType[*TrapError](err); !ok || trap.Reason != "call stack exhausted" {
				t.Errorf("got %v", err)
			}
			s.Close()
			called.Done()
			<-over
		})
	}
	called.Wait()
	grown := resident() - before
	close(over)
	ended.Wait()
	if grown > threads*MaxStack()/4 {
		t.Errorf("%d threads keep %d MiB", threads, grown>>20)
	}
}

// TestNestedStacks has each guest call a host function far down its stack, which starts the next guest on the same thread. Some guest is not entered, and the
// process goes on.
func TestNestedStacks(t *testing.T) {
	e := newEngine(t)
	c := compile(t, e, `(component
	(import "call" (func $call))
	(core func $lowered (canon lower (func $call)))
	(core module $m
		(import "" "call" (func $call))
		(func $deep (export "deep") (param i32) (result i32)
			(if (i32.eqz (local.get 0)) (then (call $call) (return (i32.const 0))))
			(i32.add (call $deep (i32.sub (local.get 0) (i32.const 1))) (local.get 0))))
	(core instance $i (instantiate $m (with "" (instance (export "call" (func $lowered))))))
	(func (export "deep") (param "n" s32) (result s32) (canon lift (core func $i "deep"))))`)
	l := e.NewLinker()
	t.Cleanup(l.Close)
	x := c.Export("", "deep")
	t.Cleanup(x.Close)
	s32 := kind(abi.KindS32)
	entered := 0
	enter := func() error {
		entered++
		if entered > 64 {
			return errors.New("there is no end")
		}
		s := e.NewStore(Limits{Memory: 1 << 20, CPU: time.Minute}, nil)
		defer s.Close()
		i, err := s.Instantiate(l, c)
		if err != nil {
			return err
		}
		_, err = i.Call(x, []*abi.Type{s32}, s32, int32(MaxStack()/100))
		return err
	}
	if err := l.Instance("", []Definition{{Name: "call", Call: func(*Store, []abi.Value) (abi.Value, error) { return nil, enter() }}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		entered = 0
		var trap *TrapError
		if err := enter(); !errors.As(err, &trap) || trap.Reason != "call stack exhausted" || entered < 2 {
			t.Errorf("got %v after %d guests", err, entered)
		}
	}
}
