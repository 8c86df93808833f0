package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

const loop = "loop i32.const 0 i32.load br_if 0 end "

// TestSlowCode refuses slow-compiling code before compiling it.
func TestSlowCode(t *testing.T) {
	h := newHost(t, host.Options{})
	wide := strings.Repeat(" i32", 1000)
	for _, c := range []struct{ name, code, want string }{
		{"many locals", `(func (local` + strings.Repeat(" i32", 2001) + `))`, "more than 2000 locals"},
		{"many locals in a long function", `(func (local` + strings.Repeat(" i32", 2000) + `)` + strings.Repeat("(drop (i32.const 1))", 11_000) + `)`, "takes too long to compile"},
		{"wide blocks", `(type $wide (func (param` + wide + `) (result` + wide + `)))` + `(func ` + strings.Repeat("(i32.const 1)", 1000) + `(block (type $wide))` + strings.Repeat("(drop (i32.const 1))", 25_000) + `unreachable)`, "takes too long to compile"},
		{"a long function", `(func ` + strings.Repeat("(drop (i32.const 1))", 360_000) + `)`, "more than 1 MiB"},
		{"many loops", `(func ` + strings.Repeat(loop, 1001) + `)`, "more than 1000 loops"},
		{"many functions with many loops", strings.Repeat(`(func `+strings.Repeat(loop, 1000)+`)`, 200), "its code takes too long to compile"},
		{"many uses of a table", `(table 1 funcref) (func ` + strings.Repeat("(drop (table.get 0 (i32.const 0)))", 2001) + `)`, "uses tables more than 2000 times"},
		{"many calls through tables", `(table 1 funcref) (type $f (func))` + strings.Repeat(`(func `+strings.Repeat("(call_indirect (type $f) (i32.const 0))", 2000)+`)`, 500), "its code takes too long to compile"},
		{"many functions", strings.Repeat(`(func)`, 50_001), "more than 50000 functions"},
		{"much code", strings.Repeat(`(func (local`+strings.Repeat(" i32", 350)+`)`+strings.Repeat("(drop (f64.sqrt (f64.const 1)))", 5_000)+`)`, 75), "its code takes too long to compile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := "(core module " + c.code + ")"
			for _, text := range []string{core, "(component " + core + ")"} {
				wasm, err := wasmtime.WAT("(component " + text + ")")
				if err != nil {
					t.Fatal(err)
				}
				_, err = h.Load(t.Context(), wasm)
				var refused *host.LoadError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
		})
	}
}

// TestManyInstances refuses components of a kilobyte that make the engine create a million copies of something. The engine ends the process
// if it must join too many.
func TestManyInstances(t *testing.T) {
	h := newHost(t, host.Options{})
	var nested func(depth int, leaf string) string
	nested = func(depth int, leaf string) string { // each level contains two of the next
		if depth == 0 {
			return leaf
		}
		return "(component $c" + nested(depth-1, leaf) + ")(instance (instantiate $c))(instance (instantiate $c))"
	}
	reached := "(component $c0)"
	for i := range 30 {
		reached += fmt.Sprintf("(component $c%d (alias outer 1 $c%d (component $x)) (instance (instantiate $x)) (instance (instantiate $x)))", i+1, i)
	}
	const code = `(core module $m (func (export "f"))) (core instance $i (instantiate $m)) (func $f (canon lift (core func $i "f")))`
	many := strings.Repeat("(instance (instantiate $c))", 20_000)
	var functions strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&functions, `(export "f%d" (func))`, i)
	}
	for _, c := range []struct{ name, items, want string }{
		{"in one another", nested(17, ""), "nested too deep"},
		{"in one another, of much", nested(16, strings.Repeat("(type u8)", 1000)), "too many instances"},
		{"reached from within", reached + "(instance (instantiate $c30))", "imports or aliases a component"},
		{"passed on", `(component $c (import "c" (component $x)) (instance (instantiate $x)) (instance (instantiate $x)))`, "imports or aliases a component"},
		{"out of an instance", `(component $c (import "i" (instance $i (export "c" (component)))) (alias export $i "c" (component $x)) (instance (instantiate $x)))`, "imports or aliases a component"},
		{"with code", `(component $c ` + code + `)` + many, "only the outermost can"},
		{"with a function of the engine", `(component $c (type $r (resource (rep i32))) (core func (canon resource.drop $r)))`, "only the outermost can"},
		{"of much", `(component $c ` + strings.Repeat("(type u8)", 5_000) + `)` + many, "too many instances"},
		{"of imports", `(import "i" (instance ` + functions.String() + `))`, "more than 100000 parts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wasm, err := wasmtime.WAT("(component " + c.items + ")")
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.Load(t.Context(), wasm)
			var refused *host.LoadError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestSectionsAreBounded loads components of millions of sections, which take the host and the engine time even if they are empty.
func TestSectionsAreBounded(t *testing.T) {
	h := newHost(t, host.Options{})
	const header, module = "\x00asm\x0d\x00\x01\x00", "\x00asm\x01\x00\x00\x00"
	part := func(id byte, body string) string {
		return string(append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...))
	}
	custom := strings.Repeat(part(0, "\x01x"), 1000)
	for name, c := range map[string]string{
		"custom":                   strings.Repeat(custom, 1000),
		"of no instances":          strings.Repeat(part(2, "\x00"), 1_000_000),
		"of no types":              strings.Repeat(part(7, "\x00"), 1_000_000),
		"of no exports":            strings.Repeat(part(11, "\x00"), 1_000_000),
		"custom, in one module":    part(1, module+strings.Repeat(custom, 1000)),
		"custom, in many modules":  strings.Repeat(part(1, module+custom), 1000),
		"custom, in its component": part(4, header+strings.Repeat(custom, 1000)),
	} {
		_, err := h.Load(t.Context(), []byte(header+c))
		if refused, ok := errors.AsType[*host.LoadError](err); !ok || !strings.Contains(refused.Reason, "more than 50000 sections") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLoadEndsWithItsContext cancels the load of code that takes half a second to compile. Close waits for it.
func TestLoadEndsWithItsContext(t *testing.T) {
	h := newHost(t, host.Options{})
	wasm := componentize(t, guest{more: `(func ` + strings.Repeat(loop, 1000) + `)`}.core())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := h.Load(ctx, wasm); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestInstructions loads a module with an instruction of every encoding, which the loop counter must skip correctly.
func TestInstructions(t *testing.T) {
	h := newHost(t, host.Options{})
	more := fmt.Sprintf(`
		(table $t 4 4 funcref) (elem $e funcref (ref.func $all)) (data $d "x") (global $g (mut i64) (i64.const 0))
		(func $all (param i32) (result i32) (local f32 f64 v128)
			(block (loop (br_if 1 (i32.const 3))) (br_table 0 0 0 (i32.const 1)))
			(block (result i32) (if (result i32) (i32.const 1) (then (i32.const 3)) (else (i32.const -3)))) drop
			(local.set 1 (f32.const 3)) (local.set 2 (f64.const 3)) (global.set $g (i64.const -3333333333))
			(drop (select (result i32) (i32.const 1) (i32.const 2) (i32.const 3)))
			(drop (ref.is_null (ref.null func))) (drop (table.get $t (i32.const 0))) (drop (ref.func $all))
			(table.init $e (i32.const 0) (i32.const 0) (i32.const 1)) (elem.drop $e) (drop (table.size $t))
			(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d) (memory.copy (i32.const 0) (i32.const 0) (i32.const 0))
			(drop (i32.trunc_sat_f32_s (local.get 1))) (drop (i64.load offset=3 align=1 (i32.const 3)))
			(local.set 3 (v128.const i32x4 3 3 3 3)) (local.set 3 (i8x16.shuffle %s (local.get 3) (local.get 3)))
			(local.set 3 (v128.load8_lane 3 (i32.const 3) (local.get 3))) (drop (i8x16.extract_lane_s 3 (local.get 3)))
			(drop (v128.load32_zero (i32.const 3))) (drop (call_indirect (param i32) (result i32) (i32.const 3) (i32.const 0)))
			(call $all (local.get 0)))`, strings.Repeat("3 ", 16))
	guest{more: more}.load(t, h)
}
