package toolchain

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// A call of an initialized module does what a call that runs the initialization does.
func TestPreinitialize(t *testing.T) {
	h := newTestHost(t)
	initialize := func(body string) string { return `(func (export "_initialize") ` + body + `)` }
	for _, test := range []struct {
		name, imports, more, call string
		want                      []uint64
		output                    string
	}{
		{
			name: "memory", more: initialize(`(i64.store (i32.const 70000) (i64.add (i64.load (i32.const 70000)) (i64.const 7)))`) + `(data (i32.const 70000) "\01")`,
			call: `(call $number (i64.load (i32.const 70000)))`, want: []uint64{8},
		},
		{
			name: "memory that grows, to a word at its end",
			more: initialize(`(drop (memory.grow (i32.const 9))) (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (i32.const 77))`),
			call: `(call $errno (memory.size)) (call $errno (i32.load (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4))))`, want: []uint64{12, 77},
		},
		{
			name: "memory without content", more: initialize(`(memory.fill (i32.const 0) (i32.const 0) (i32.const 1024))`),
			call: `(call $number (i64.load (i32.const 0)))`, want: []uint64{0},
		},
		{
			name: "global variables of each type",
			more: `(global $a (mut i32) (i32.const 1)) (global $constant i64 (i64.const 5)) (global $b (mut i64) (i64.const 5)) (global $c (mut f32) (f32.const 0)) (global $d (mut f64) (f64.const 0))
				(global (export "globals0.2") i32 (i32.const 3))` +
				initialize(`(global.set $a (i32.sub (global.get $a) (i32.const 2))) (global.set $b (i64.const 0x123456789abcdef)) (global.set $c (f32.const nan:0x200001)) (global.set $d (f64.const -0.5))`),
			call: `(call $errno (global.get $a)) (call $number (global.get $b)) (call $errno (i32.reinterpret_f32 (global.get $c))) (call $number (i64.reinterpret_f64 (global.get $d)))`,
			want: []uint64{1<<32 - 1, 0x123456789abcdef, 0x7fa00001, 0xbfe0000000000000},
		},
		{
			name: "a start function, and then _initialize",
			more: `(global $n (mut i64) (i64.const 1)) (func $begin (global.set $n (i64.add (global.get $n) (i64.const 10)))) (start $begin)` +
				initialize(`(global.set $n (i64.mul (global.get $n) (i64.const 3)))`),
			call: `(call $number (global.get $n))`, want: []uint64{33},
		},
		{
			name: "only a start function", more: `(global $n (mut i64) (i64.const 1)) (func $begin (global.set $n (i64.const 10))) (start $begin)`,
			call: `(call $number (global.get $n))`, want: []uint64{10},
		},
		{
			name: "a table, which is used",
			more: `(type $f (func)) (table 3 funcref) (elem (i32.const 1) $ten) (global $n (mut i64) (i64.const 1)) (func $ten (global.set $n (i64.add (global.get $n) (i64.const 10))))` +
				initialize(`(call_indirect (type $f) (i32.const 1))`),
			call: `(call_indirect (type $f) (i32.const 1)) (call $number (global.get $n))`, want: []uint64{21},
		},
		{
			name: "output", imports: importOld("fd_write"),
			more: `(data (i32.const 70000) "\80\11\01\00\06\00\00\00") (data (i32.const 70016) "hello\n")` +
				initialize(`(drop (call $fd_write (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 70008)))`),
			call: `(call $errno (i32.load (i32.const 70008)))`, want: []uint64{6}, output: "hello\n",
		},
		{
			name: "a monotonic clock, which goes on", imports: importOld("clock_time_get"),
			more: initialize(`(drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 70000))) (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 70008)))`),
			call: `(drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 70016)))
				(call $errno (i64.lt_u (i64.const 0) (i64.load (i32.const 70000)))) (call $errno (i64.lt_u (i64.load (i32.const 70000)) (i64.load (i32.const 70008))))
				(call $errno (i64.lt_u (i64.load (i32.const 70008)) (i64.load (i32.const 70016))))`,
			want: []uint64{1, 1, 1},
		},
		{
			name: "random numbers that are forgotten", imports: importOld("random_get"),
			more: initialize(`(drop (call $random_get (i32.const 70000) (i32.const 9))) (memory.fill (i32.const 70000) (i32.const 0) (i32.const 9))`),
			call: `(call $number (i64.load (i32.const 70000)))`, want: []uint64{0},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			module := wat(t, core(test.imports, test.more, test.call))
			made, err := Preinitialize(t.Context(), anyWorld, module)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Preinitialize(t.Context(), anyWorld, module)
			if err != nil || !bytes.Equal(made.Component, again.Component) {
				t.Errorf("the same module gives other bytes, %v", err)
			}
			if !made.Initialized || made.Output != test.output || !bytes.Contains(made.Component, []byte(StartSection)) {
				t.Errorf("%v, %q, it wrote %q", made.Initialized, made.Begins, made.Output)
			}
			if got, err := callComponent(t, h, made.Component); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%d, %v, want %d", got, err, test.want)
			}
			if got, err := callCore(t, h, core(test.imports, test.more, test.call)); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("a call that runs it: %d, %v, want %d", got, err, test.want)
			}
		})
	}
}

// A module whose state could not be that of each instance is left as it is, with the reason.
func TestPreinitializeLeaves(t *testing.T) {
	h := newTestHost(t)
	initialize := func(body string) string { return `(func (export "_initialize") ` + body + `)` }
	for _, test := range []struct{ name, imports, more, reason string }{
		{"nothing to run", "", "", ""},
		{"a date", importOld("clock_time_get"), initialize(`(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 70000)))`), "reads the date"},
		{
			"a pause", importOld("poll_oneoff"),
			`(data (i32.const 70016) "\01\00\00\00\00\00\00\00\e8\03")` + initialize(`(drop (call $poll_oneoff (i32.const 70000) (i32.const 70064) (i32.const 1) (i32.const 70128)))`), "waits for the clock",
		},
		{"a closed stream", importOld("fd_close"), initialize(`(drop (call $fd_close (i32.const 2)))`), "closes a standard stream"},
		{"random numbers", importOld("random_get"), initialize(`(drop (call $random_get (i32.const 70000) (i32.const 32)))`), "keeps random numbers"},
		{"a random number in a global variable", importOld("random_get"), `(global $r (mut i64) (i64.const 0))` + initialize(`(drop (call $random_get (i32.const 70000) (i32.const 8))) (global.set $r (i64.load (i32.const 70000))) (i64.store (i32.const 70000) (i64.const 0))`), "keeps random numbers"},
		{"a random size", importOld("random_get"), initialize(`(drop (call $random_get (i32.const 70000) (i32.const 1))) (drop (memory.grow (i32.load8_u (i32.const 70000)))) (i32.store (i32.const 70000) (i32.const 0))`), "keeps random numbers"},
		{"a table that changes", "", `(table 2 funcref) (func $f) (elem declare func $f)` + initialize(`(table.set (i32.const 1) (ref.func $f))`), "changes a table"},
		{"a table that grows", "", `(table 2 funcref)` + initialize(`(drop (table.grow (ref.null func) (i32.const 9)))`), "changes a table"},
		{"a table that is filled", "", `(table 2 funcref) (elem func 0)` + initialize(`(table.init 0 0 (i32.const 0) (i32.const 0) (i32.const 1))`), "changes a table"},
		{"a segment that is dropped", "", `(table 2 funcref) (elem func 0)` + initialize(`(elem.drop 0)`), "changes a table"},
		{"data that is copied", "", `(data $d "x")` + initialize(`(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d)`), "copies passive data"},
		{"a vector", "", `(global (mut v128) (v128.const i64x2 0 0))` + initialize(``), "is not a number"},
		{"many global variables", "", strings.Repeat(`(global (mut i32) (i32.const 0))`, initialGlobals+1) + initialize(``), "global variables"},
		{"content far apart", "", initialize(`(drop (memory.grow (i32.const 400))) (i32.store (i32.const 16) (i32.const 1)) (i32.store (i32.const 20000000) (i32.const 1))`), "more than 16 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made, err := Preinitialize(t.Context(), anyWorld, wat(t, core(test.imports, test.more, `(call $number (i64.const 5))`)))
			if err != nil {
				t.Fatal(err)
			}
			if made.Initialized || !strings.Contains(made.Begins, test.reason) || (test.reason == "") != (made.Begins == "") {
				t.Errorf("%v, %q", made.Initialized, made.Begins)
			}
			if got, err := callComponent(t, h, made.Component); err != nil || !slices.Equal(got, []uint64{5}) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

// An initialization that cannot end well fails soon, with the reason.
func TestPreinitializeFails(t *testing.T) {
	for _, test := range []struct{ name, imports, start, message string }{
		{"it loops", "", `(loop $l (br $l))`, "takes more than 50ms"},
		{"it fills its memory again and again", "", `(drop (memory.grow (i32.const 13)))` + strings.Repeat(`(memory.copy (i32.const 8) (i32.const 0) (i32.const 1048568)) (memory.fill (i32.const 0) (i32.const 7) (i32.const 1048576))`, 8000), "takes more than 50ms"},
		{"it loops in calls", importOld("sched_yield"), `(loop $l (drop (call $sched_yield)) (br $l))`, "takes more than 50ms"},
		{"it traps", "", `unreachable`, "unreachable"},
		{"it needs more memory than there is", "", `(loop $l (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)) (br $l))`, "1 MiB"},
		{"its stack overflows", "", `(call $again)`, "stack exhausted"},
		{"it exits", importOld("proc_exit"), `(call $proc_exit (i32.const 0))`, "calls proc_exit"},
		{
			"it writes before it traps", importOld("fd_write"),
			`(i32.store (i32.const 70000) (i32.const 1024)) (i32.store (i32.const 70004) (i32.const 1)) (drop (call $fd_write (i32.const 2) (i32.const 70000) (i32.const 1) (i32.const 70008))) unreachable`, "it wrote:\n| t",
		},
		{"it writes what it does not have", importOld("fd_write"), `(i32.store (i32.const 70000) (i32.const -9)) (i32.store (i32.const 70004) (i32.const 99)) (drop (call $fd_write (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 70008)))`, "outside of its memory"},
		{"it uses a capability", `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))`, `(call $get (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))`, "it calls stile:capability/kv@0.1.0#get"},
		{"it drops a handle", `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32))) (import "stile:capability/kv@0.1.0" "[resource-drop]bucket" (func $drop (param i32)))`, `(call $drop (i32.const 1))`, "it calls stile:capability/kv@0.1.0#[resource-drop]bucket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			module := wat(t, core(test.imports, `(func $again (call $again)) (func (export "_initialize") `+test.start+`)`, `(call $number (i64.const 5))`))
			made, err := preinitialize(t.Context(), anyWorld, module, initialLimits{50 * time.Millisecond, 1 << 20})
			refused, ok := errors.AsType[*CoreError](err)
			if !ok || refused.Problem != CoreInitialization || !strings.Contains(err.Error(), test.message) {
				t.Errorf("made %v, %v", made != nil, err)
			}
		})
	}
	t.Run("its start function calls WASI, which no component can", func(t *testing.T) {
		module := wat(t, core(importOld("sched_yield"), `(func $begin (drop (call $sched_yield))) (start $begin)`, `(call $number (i64.const 5))`))
		if _, err := Preinitialize(t.Context(), anyWorld, module); err == nil || !strings.Contains(err.Error(), "start function calls WASI") {
			t.Errorf("%v", err)
		}
		if _, err := callCore(t, newTestHost(t), core(importOld("sched_yield"), `(func $begin (drop (call $sched_yield))) (start $begin)`, `(call $number (i64.const 5))`)); err == nil {
			t.Error("a component can")
		}
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		module := wat(t, core("", `(func (export "_initialize") (loop $l (br $l)))`, `(call $number (i64.const 5))`))
		if _, err := Preinitialize(ctx, anyWorld, module); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// A module can write anything into its memory, also what looks like generators of random numbers.
func TestPreinitializeForgedGenerators(t *testing.T) {
	h := newTestHost(t)
	for name, forge := range map[string]string{
		"many that are likely": `(loop $l
			(i32.store offset=292 (local.get $at) (i32.const 32)) (i64.store offset=256 (local.get $at) (i64.load (i32.const 70000)))
			(br_if $l (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 304))) (i32.const 8000000))))`,
		"one at the end of memory": `(i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (i32.load (i32.const 70000)))`,
	} {
		t.Run(name, func(t *testing.T) {
			made, err := Preinitialize(t.Context(), anyWorld, wat(t, core(importOld("random_get"), `(func (export "_initialize") (local $at i32)
				(drop (memory.grow (i32.const 200))) (drop (call $random_get (i32.const 70000) (i32.const 32))) (local.set $at (i32.const 131072)) `+forge+`)`, `(call $number (i64.const 5))`)))
			if err != nil || made.Initialized {
				t.Fatalf("%v, %v", made, err)
			}
			if got, err := callComponent(t, h, made.Component); err != nil || !slices.Equal(got, []uint64{5}) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

func FuzzPreinitialize(f *testing.F) {
	f.Add(wat(f, sound()))
	f.Add(wat(f, core(importOld("random_get"), `(func (export "_initialize") (drop (call $random_get (i32.const 70000) (i32.const 8))))`, "")))
	f.Add(wat(f, core("", `(table 2 funcref) (global $g (mut f64) (f64.const 1)) (func (export "_initialize") (global.set $g (f64.const 2)))`, "")))
	f.Fuzz(func(t *testing.T, module []byte) {
		made, err := preinitialize(t.Context(), anyWorld, module, initialLimits{20 * time.Millisecond, 1 << 20})
		if err != nil && !errors.As(err, new(*CoreError)) || err == nil && len(made.Component) == 0 {
			t.Errorf("%v", err)
		}
	})
}
