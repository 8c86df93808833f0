package toolchain

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/console"
	stilehttp "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/host"
)

// importExtism imports functions of the Extism host.
func importExtism(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		f := extismFuncs()[name]
		fmt.Fprintf(&b, "(import %q %q (func $%s%s))\n", extismHost, name, name, signature(types(f.params), types(f.results)))
	}
	return b.String()
}

// extismPlugin is the text of a plug-in with one function, "run". $put makes a block of a text in its memory, from 1024 on, and $emit
// makes the output of one.
func extismPlugin(data, fields, run string) string {
	return `(module ` + importExtism(slices.Sorted(maps.Keys(extismFuncs()))...) + `
	(memory (export "memory") 2)
	(data (i32.const 1024) "` + data + `")
	(func $put (param $at i32) (param $n i32) (result i64) (local $block i64) (local $i i32)
		(local.set $block (call $alloc (i64.extend_i32_u (local.get $n))))
		(block $done (loop $next
			(br_if $done (i32.eq (local.get $i) (local.get $n)))
			(call $store_u8 (i64.add (local.get $block) (i64.extend_i32_u (local.get $i))) (i32.load8_u (i32.add (local.get $at) (local.get $i))))
			(local.set $i (i32.add (local.get $i) (i32.const 1)))
			(br $next)))
		(local.get $block))
	(func $emit (param $block i64) (call $output_set (local.get $block) (call $length (local.get $block))))
	` + fields + `
	(func (export "run") (result i32) ` + run + `))`
}

func loadExtism(t testing.TB, h *host.Host, text string) *host.Component {
	t.Helper()
	component, err := Componentize(anyWorld, wat(t, text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Load(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// outputOf is what a plug-in returned, as bytes.
func outputOf(t interface{ Fatalf(string, ...any) }, output []byte) []byte {
	var text string
	if json.Unmarshal(output, &text) == nil {
		return []byte(text)
	}
	var encoded struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(output, &encoded); err != nil || encoded.Base64 == nil {
		t.Fatalf("%.200s: %v", output, err)
	}
	b, err := base64.StdEncoding.DecodeString(*encoded.Base64)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

// What a module imports and exports decides whether it can be a component, and the error names what is in the way.
func TestExtismRefuses(t *testing.T) {
	many := strings.Builder{}
	for i := range maxExtismTools + 1 {
		fmt.Fprintf(&many, `(func (export "t%d"))`, i)
	}
	const memory, tool = `(memory (export "memory") 1)`, `(func (export "run"))`
	alloc := importExtism("alloc")
	for _, test := range []struct {
		name, text string
		problem    CoreProblem
		names      []string
		message    string
	}{
		{"functions of one program", `(module (import "extism:host/user" "mult" (func (param i64) (result i64))) ` + memory + tool + `)`, CoreImport, []string{"extism:host/user#mult"}, "extism:host/user#mult"},
		{"another module", `(module ` + alloc + `(import "lib" "f" (func)) ` + memory + tool + `)`, CoreImport, []string{"lib#f"}, "lib#f"},
		{"a function that no host has", `(module (import "extism:host/env" "steal" (func)) ` + memory + tool + `)`, CoreImport, []string{"extism:host/env#steal"}, "steal"},
		{"a part of the adapter", `(module (import "extism:host/env" "block" (func (param i32) (result i32))) ` + memory + tool + `)`, CoreImport, []string{"extism:host/env#block"}, "block"},
		{"a capability beside", `(module ` + alloc + `(import "stile:capability/kv@0.1.0" "get" (func (param i32 i32 i32 i32))) ` + memory + tool + `)`, CoreImport, []string{"stile:capability/kv@0.1.0#get"}, "kv"},
		{"WASI 0.2 beside", `(module ` + alloc + `(import "wasi:cli/stdout@0.2.0" "get-stdout" (func (result i32))) ` + memory + tool + `)`, CoreImport, []string{"wasi:cli/stdout@0.2.0#get-stdout"}, "stdout"},
		{"an unknown function of preview 1", `(module ` + alloc + `(import "wasi_snapshot_preview1" "fd_steal" (func)) ` + memory + tool + `)`, CoreImport, []string{"wasi_snapshot_preview1#fd_steal"}, "fd_steal"},
		{"another type", `(module (import "extism:host/env" "alloc" (func (param i32) (result i32))) ` + memory + tool + `)`, CoreType, []string{"extism:host/env#alloc"}, "alloc"},
		{"another type of preview 1", `(module ` + alloc + `(import "wasi_snapshot_preview1" "fd_write" (func)) ` + memory + tool + `)`, CoreType, []string{"wasi_snapshot_preview1#fd_write"}, "fd_write"},
		{"a command", `(module ` + alloc + memory + `(func (export "_start")))`, CoreCommand, nil, "-buildmode=c-shared"},
		{"functions with parameters alone", `(module ` + alloc + memory + `(func (export "run") (param i32)) (func (export "more") (result i64) (i64.const 0)))`, CoreExport, nil, "0 functions"},
		{"names that no tool has", `(module ` + alloc + memory + `(func (export "\1b[2J")) (func (export "a b")))`, CoreExport, nil, "0 functions"},
		{"too many functions", `(module ` + alloc + memory + many.String() + `)`, CoreExport, nil, "1001 functions"},
		{"names of the kernel", `(module ` + alloc + memory + tool + `(global (export "stile:visible") i32 (i32.const 0)))`, CoreExport, []string{"stile:visible"}, "stile:visible"},
		{"no memory", `(module ` + alloc + tool + `)`, CoreMemory, nil, "does not export its memory"},
		{"a memory of its own", `(module ` + alloc + tool + `(memory 1))`, CoreMemory, nil, "does not export its memory"},
		{"two memories", `(module ` + alloc + tool + memory + `(memory 1))`, CoreMemory, nil, "2 memories"},
		{"a 64-bit memory", `(module ` + alloc + tool + `(memory (export "memory") i64 1))`, CoreMemory, nil, "wasm32"},
		{"a shared memory", `(module ` + alloc + tool + `(memory (export "memory") 1 1 shared))`, CoreMemory, nil, "without threads"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Componentize(anyWorld, wat(t, test.text))
			refused, ok := errors.AsType[*CoreError](err)
			if !ok || refused.Problem != test.problem || !slices.Equal(refused.Names, test.names) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%v, %+v", err, refused)
			}
		})
	}
}

// script is a plug-in that runs operations of the kernel on its memory. An operation has 18 bytes: a code, the number of the result that
// is added to the first operand or 255, and two operands.
func script() string {
	codes := []string{
		`(call $alloc (local.get $a))`, `(call $free (local.get $a)) (i64.const 0)`, `(call $length (local.get $a))`, `(call $length_unsafe (local.get $a))`,
		`(i64.extend_i32_u (call $load_u8 (local.get $a)))`, `(call $load_u64 (local.get $a))`,
		`(call $store_u8 (local.get $a) (i32.wrap_i64 (local.get $b))) (i64.const 0)`, `(call $store_u64 (local.get $a) (local.get $b)) (i64.const 0)`,
		`(call $input_length)`, `(call $input_offset)`, `(i64.extend_i32_u (call $input_load_u8 (local.get $a)))`, `(call $input_load_u64 (local.get $a))`,
		`(call $output_set (local.get $a) (local.get $b)) (i64.const 0)`, `(call $error_set (local.get $a)) (i64.const 0)`,
		`(i64.extend_i32_u (memory.size))`, `(i64.extend_i32_s (memory.grow (i32.wrap_i64 (local.get $a))))`,
		`(i64.load (i32.wrap_i64 (local.get $a)))`, `(i64.store (i32.wrap_i64 (local.get $a)) (local.get $b)) (i64.const 0)`,
		`(call $reset) (i64.const 0)`, `(call $output_length)`, `(call $output_offset)`, `(call $error_get)`, `(call $input_set (local.get $a) (local.get $b)) (i64.const 0)`,
	}
	var b strings.Builder
	for i, code := range codes {
		fmt.Fprintf(&b, "(if (i32.eq (local.get $code) (i32.const %d)) (then (return %s)))\n", i, code)
	}
	return extismPlugin("", `
	(func $do (param $code i32) (param $a i64) (param $b i64) (result i64) `+b.String()+`(unreachable))
	(func (export "raw") (result i32) (drop (call $steps)) (i32.const 0))
	(func $steps (result i32) (local $length i32) (local $at i32) (local $n i32) (local $a i64)
		(local.set $length (i32.wrap_i64 (call $input_length)))
		(block $done (loop $next
			(br_if $done (i32.eq (local.get $at) (local.get $length)))
			(i32.store8 (i32.add (i32.const 65536) (local.get $at)) (call $input_load_u8 (i64.extend_i32_u (local.get $at))))
			(local.set $at (i32.add (local.get $at) (i32.const 1)))
			(br $next)))
		(local.set $at (i32.const 0))
		(block $done (loop $next
			(br_if $done (i32.ge_u (local.get $at) (local.get $length)))
			(local.set $a (i64.load offset=65538 (local.get $at)))
			(if (i32.ne (i32.load8_u offset=65537 (local.get $at)) (i32.const 255)) (then
				(local.set $a (i64.add (local.get $a) (i64.load offset=4096 (i32.shl (i32.load8_u offset=65537 (local.get $at)) (i32.const 3)))))))
			(i64.store offset=4096 (i32.shl (local.get $n) (i32.const 3)) (call $do (i32.load8_u offset=65536 (local.get $at)) (local.get $a) (i64.load offset=65546 (local.get $at))))
			(local.set $n (i32.add (local.get $n) (i32.const 1)))
			(local.set $at (i32.add (local.get $at) (i32.const 18)))
			(br $next)))
		(i32.shl (local.get $n) (i32.const 3)))`, `(call $emit (call $put (i32.const 4096) (call $steps))) (i32.const 0)`)
}

// The codes of script's operations, in their order.
const (
	opAlloc = iota
	opFree
	opLength
	opLengthUnsafe
	opLoad8
	opLoad64
	opStore8
	opStore64
	opInputLength
	opInputOffset
	opInputLoad8
	opInputLoad64
	opOutputSet
	opErrorSet
	opSize
	opGrow
	opOwnLoad
	opOwnStore
	opReset
	opOutputLength
	opOutputOffset
	opErrorGet
	opInputSet
)

type step struct {
	code byte
	base int // the number of an earlier result, or -1
	a, b uint64
	want uint64
}

const anyResult = 0xa5a5a5a5a5a5a5a5

func scriptOf(steps []step) []byte {
	var b []byte
	for _, s := range steps {
		b = append(b, s.code, byte(s.base))
		b = binary.LittleEndian.AppendUint64(b, s.a)
		b = binary.LittleEndian.AppendUint64(b, s.b)
	}
	return b
}

func runScript(t testing.TB, c *host.Component, tool string, steps []step, limits host.Limits) ([]byte, error) {
	t.Helper()
	input, err := json.Marshal(map[string]any{"base64": scriptOf(steps)})
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Do(t.Context(), host.Request{Tool: tool, Input: input, Limits: limits})
	if err != nil {
		return nil, err
	}
	return outputOf(t, result.Output), nil
}

// Offsets that no block has, and lengths that no region has, read as zero and change nothing.
func TestExtismKernel(t *testing.T) {
	c := loadExtism(t, newTestHost(t), script())
	const none = -1
	top := uint64(math.MaxUint64)
	hostile := []uint64{0, 1, 63, 64, 511, 512, 600, 1 << 16, 1<<16 - 1, 1<<20 - 1, 1 << 20, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 4096, 1 << 63, top - 8, top - 7, top - 1, top}
	var outside []step
	for _, a := range hostile {
		if a >= 1<<20 || a < 1024 {
			for _, code := range []byte{opLoad8, opLoad64, opLength, opLengthUnsafe} {
				outside = append(outside, step{code, none, a, 0, 0})
			}
			outside = append(outside, step{opStore8, none, a, 0x77, 0}, step{opStore64, none, a, top, 0}, step{opFree, none, a, 0, 0})
		}
	}
	var outputs []step
	for _, a := range hostile {
		for _, n := range hostile {
			if a+n > 1<<20 || a+n < a || a < 512 {
				outputs = append(outputs, step{opOutputSet, none, a, n, 0}, step{opInputSet, none, a, n, 0}, step{opOutputLength, none, 0, 0, 0}, step{opOutputOffset, none, 0, 0, 0})
			}
		}
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"blocks", []step{
			{opAlloc, none, 100, 0, anyResult},
			{opAlloc, none, 100, 0, anyResult},
			{opLength, 0, 0, 0, 100},
			{opLengthUnsafe, 1, 0, 0, 100},
			{opStore64, 0, 92, top, 0},
			{opStore8, 0, 99, 1, 0},
			{opLoad64, 0, 92, 0, 0x01ffffffffffffff},
			{opLoad64, 1, 0, 0, 0},
			{opLoad8, 0, 99, 0, 1},
			{opLength, 0, 1, 0, 0},
			{opLength, 0, 16, 0, 0},
			{opLengthUnsafe, 0, top, 0, 0},
		}},
		{"nothing", []step{{opAlloc, none, 0, 0, 0}, {opFree, none, 0, 0, 0}, {opLength, none, 0, 0, 0}}},
		{"freed twice", []step{
			{opAlloc, none, 100, 0, anyResult},
			{opFree, 0, 0, 0, 0},
			{opLength, 0, 0, 0, 0},
			{opFree, 0, 0, 0, 0},
			{opFree, 0, 8, 0, 0},
			{opFree, 0, 16, 0, 0},
			{opAlloc, none, 100, 0, anyResult},
			{opAlloc, none, 100, 0, anyResult},
			{opLength, 6, 0, 0, 100},
			{opLength, 7, 0, 0, 100},
		}},
		{"outside", outside},
		{"a block beside", append([]step{{opAlloc, none, 8, 0, anyResult}}, slices.Concat(outside, []step{{opLoad64, 0, 0, 0, anyResult}, {opLength, 0, 0, 0, 8}})...)},
		{"outputs", outputs[:min(len(outputs), 250)]},
		{"more outputs", outputs[max(0, len(outputs)-250):]},
		{"errors", []step{{opErrorSet, none, 1 << 40, 0, 0}, {opErrorGet, none, 0, 0, 0}, {opErrorSet, none, top, 0, 0}, {opErrorGet, none, 0, 0, 0}, {opAlloc, none, 5, 0, anyResult}, {opErrorSet, 4, 0, 0, 0}, {opErrorGet, none, 0, 0, anyResult}, {opErrorSet, none, 0, 0, 0}, {opErrorGet, none, 0, 0, 0}}},
		{"beyond the input", []step{
			{opInputLength, none, 0, 0, 18 * 9},
			{opInputLoad8, none, 18 * 9, 0, 0},
			{opInputLoad8, none, top, 0, 0},
			{opInputLoad64, none, 18*9 - 7, 0, 0},
			{opInputLoad64, none, top, 0, 0},
			{opInputLoad64, none, top - 7, 0, 0},
			{opInputLoad8, none, 0, 0, opInputLength},
			{opInputLoad64, none, 18*9 - 8, 0, 0},
			{opInputOffset, none, 0, 0, anyResult},
		}},
		{"a freed input", []step{{opInputOffset, none, 0, 0, anyResult}, {opFree, 0, 0, 0, 0}, {opInputLength, none, 0, 0, 0}, {opInputLoad8, none, 0, 0, 0}, {opInputLoad64, none, 0, 0, 0}}},
		{"reset", []step{{opAlloc, none, 100, 0, anyResult}, {opReset, none, 0, 0, 0}, {opInputLength, none, 0, 0, 0}, {opAlloc, none, 70000, 0, anyResult}, {opLength, 3, 0, 0, 70000}}},
		// The plug-in's own memory: the kernel is not part of its size, and its pages move when it grows.
		{"growth", []step{
			{opSize, none, 0, 0, 2},
			{opAlloc, none, 100_000, 0, anyResult},
			{opStore64, 1, 99_992, 0x1122334455667788, 0},
			{opGrow, none, 1, 0, 2},
			{opSize, none, 0, 0, 3},
			{opLoad64, 1, 99_992, 0, 0x1122334455667788},
			{opLength, 1, 0, 0, 100_000},
			{opOwnLoad, none, 2 << 16, 0, 0},
			{opOwnLoad, none, 3<<16 - 8, 0, 0},
			{opOwnStore, none, 3<<16 - 8, top, 0},
			{opGrow, none, 10, 0, 3},
			{opOwnLoad, none, 3<<16 - 8, 0, top},
			{opOwnLoad, none, 3 << 16, 0, 0},
			{opOwnLoad, none, 5 << 16, 0, 0},
			{opOwnLoad, none, 13<<16 - 8, 0, 0},
			{opLoad64, 1, 99_992, 0, 0x1122334455667788},
			{opGrow, none, 0, 0, 13},
			{opAlloc, none, 1_000_000, 0, anyResult},
			{opSize, none, 0, 0, 13},
			{opGrow, none, 0xffffffff, 0, top},
			{opGrow, none, 1 << 16, 0, top},
			{opGrow, none, 2000, 0, top},
			{opSize, none, 0, 0, 13},
			{opLoad64, 1, 99_992, 0, 0x1122334455667788},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := runScript(t, c, "run", test.steps, host.Limits{})
			if err != nil || len(out) != 8*len(test.steps) {
				t.Fatalf("%d bytes, %v", len(out), err)
			}
			for i, s := range test.steps {
				if got := binary.LittleEndian.Uint64(out[8*i:]); got != s.want && s.want != anyResult {
					t.Errorf("step %d, %+v: got %#x", i, s, got)
				}
			}
		})
	}
}

// A plug-in that asks for more than there is, or overwrites what the kernel notes of blocks, ends its own call alone.
func TestExtismHostile(t *testing.T) {
	h := newTestHost(t)
	c := loadExtism(t, h, script())
	var large, floods []step
	for _, n := range []uint64{1 << 30, 0x7fff0000, 0x7fff0001, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 63, math.MaxUint64} {
		large = append(large, step{opAlloc, -1, n, 0, 0})
	}
	for range 200 {
		floods = append(floods, step{opAlloc, -1, 1 << 20, 0, 0})
	}
	for i := range large {
		if _, err := runScript(t, c, "run", large[i:i+1], host.Limits{}); !isLimit(err, "memory") {
			t.Errorf("alloc of %#x: %v", large[i].a, err)
		}
	}
	if _, err := runScript(t, c, "run", floods, host.Limits{}); !isLimit(err, "memory") {
		t.Errorf("200 MiB: %v", err)
	}
	if _, err := runScript(t, c, "raw", []step{{opAlloc, -1, 3 << 20, 0, 0}, {opOutputSet, 0, 0, 3 << 20, 0}}, host.Limits{}); !isLimit(err, "output bytes") {
		t.Errorf("an output of 3 MiB: %v", err)
	}
	// Marks, capacities and the list of freed blocks, as the plug-in finds them in its own memory behind the pages that it knows of.
	for _, value := range []uint64{0, 1, math.MaxUint64, 0xffffffff, 0x10000, 0x7fffffff7fffffff} {
		steps := []step{{opAlloc, -1, 40_000, 0, 0}, {opAlloc, -1, 100, 0, 0}, {opFree, 1, 0, 0, 0}, {opAlloc, -1, 100, 0, 0}, {opFree, 3, 0, 0, 0}}
		for at := uint64(2 << 16); at < 3<<16; at += 40_000 / 100 {
			steps = append(steps, step{opOwnStore, -1, at, value, 0})
		}
		for range 20 {
			steps = append(steps, step{opAlloc, -1, 30_000, 0, 0}, step{opFree, 1, 0, 0, 0}, step{opFree, 3, 0, 0, 0}, step{opLength, 1, 0, 0, 0})
		}
		if _, err := runScript(t, c, "run", steps, host.Limits{}); err != nil && !errors.As(err, new(*host.TrapError)) && !isLimit(err, "memory") && !isLimit(err, "output") && !errors.As(err, new(*host.GuestError)) {
			t.Errorf("%#x: %v", value, err)
		}
	}
	for _, test := range []struct{ name, fields, run, limit string }{
		{"endless loop", "", `(loop $l (br $l)) (i32.const 0)`, "cpu"},
		{"endless calls of the kernel", "", `(loop $l (call $error_set (i64.const 0)) (br $l)) (i32.const 0)`, "cpu"},
		{"endless growth", "", `(loop $l (drop (call $alloc (i64.const 1))) (br $l)) (i32.const 0)`, "memory"},
		{"blocks that are freed", "", `(loop $l (call $free (call $alloc (i64.const 1000))) (br $l)) (i32.const 0)`, "cpu"},
		{"growth of both", "", `(loop $l (drop (memory.grow (i32.const 1))) (drop (call $alloc (i64.const 60000))) (br $l)) (i32.const 0)`, "memory cpu"},
		{"moves of a large region", "", `(drop (call $alloc (i64.const 30000000))) (loop $l (drop (memory.grow (i32.const 0))) (drop (memory.grow (i32.const 1))) (br $l)) (i32.const 0)`, "cpu"},
		{"recursion", `(func $f (call $f))`, `(call $f) (i32.const 0)`, "stack"},
		{"an endless initialization", `(func (export "_initialize") (loop $l (br $l)))`, `(i32.const 0)`, "cpu"},
		{"endless logs", "", `(loop $l (call $log_info (call $put (i32.const 1024) (i32.const 100))) (br $l)) (i32.const 0)`, "cpu"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := loadExtism(t, h, extismPlugin("", test.fields, test.run))
			_, err := c.Do(t.Context(), host.Request{Tool: "run", Env: host.Env{"console": console.To(func(console.Level, string) {})}, Limits: host.Limits{CPU: 300_000_000}})
			if !isLimit(err, test.limit) {
				t.Error(err)
			}
		})
	}
	if _, err := runScript(t, c, "run", []step{{opSize, -1, 0, 0, 2}}, host.Limits{}); err != nil {
		t.Errorf("after them: %v", err)
	}
}

// isLimit reports whether an error is one of these limits.
func isLimit(err error, names string) bool {
	l, ok := errors.AsType[*host.LimitError](err)
	return ok && slices.Contains(strings.Fields(names), l.Limit)
}

// A plug-in that takes long to compile is refused by the same estimate as any component.
func TestExtismBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("(func $bomb (param f64) (result f64) (local.get 0)")
	for range 60_000 {
		b.WriteString("(f64.add (f64.mul (local.get 0) (local.get 0)) (local.get 0)) f64.add local.tee 0")
	}
	b.WriteString(")")
	component, err := Componentize(anyWorld, wat(t, extismPlugin("", b.String(), `(i32.const 0)`)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = newTestHost(t).Load(t.Context(), component)
	if !errors.As(err, new(*host.LoadError)) || !strings.Contains(err.Error(), "compil") {
		t.Error(err)
	}
}

// Any sequence of operations on blocks does what a simple model says, while the plug-in's own memory grows.
func TestExtismBlocks(t *testing.T) {
	c := loadExtism(t, newTestHost(t), script())
	rapid.Check(t, func(r *rapid.T) {
		type block struct{ content []byte }
		blocks := map[int]*block{}
		pages := uint64(2)
		var steps []step
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			live := slices.Sorted(maps.Keys(blocks))
			if len(live) == 0 || rapid.IntRange(0, 4).Draw(r, "new") == 0 {
				if len(steps) > 230 { // a step refers to an earlier one by a byte
					break
				}
				n := rapid.SampledFrom([]int{1, 7, 8, 16, 100, 1000, 20_000, 66_000}).Draw(r, "length")
				blocks[len(steps)] = &block{content: make([]byte, n)}
				steps = append(steps, step{opAlloc, -1, uint64(n), 0, anyResult})
				for at := 0; at < n && n < 17; at++ { // content is not cleared
					steps = append(steps, step{opStore8, len(steps) - 1 - at, uint64(at), 0, 0})
				}
				continue
			}
			which := rapid.SampledFrom(live).Draw(r, "block")
			b := blocks[which]
			at := rapid.IntRange(0, len(b.content)-1).Draw(r, "at")
			switch rapid.IntRange(0, 5).Draw(r, "do") {
			case 0:
				steps = append(steps, step{opFree, which, 0, 0, 0}, step{opLength, which, 0, 0, 0})
				delete(blocks, which)
			case 1, 2:
				v := rapid.Byte().Draw(r, "value")
				b.content[at] = v
				steps = append(steps, step{opStore8, which, uint64(at), uint64(v), 0}, step{opLoad8, which, uint64(at), 0, uint64(v)})
			case 3:
				if len(b.content) < 17 || b.content[at] != 0 {
					steps = append(steps, step{opLoad8, which, uint64(at), 0, uint64(b.content[at])})
				}
			case 4:
				steps = append(steps, step{opLength, which, 0, 0, uint64(len(b.content))})
			case 5:
				if pages < 20 {
					steps = append(steps, step{opGrow, -1, 1, 0, pages})
					pages++
				}
			}
		}
		out, err := runScript(t, c, "run", steps, host.Limits{})
		if err != nil || len(out) != 8*len(steps) {
			r.Fatalf("%d bytes, %v", len(out), err)
		}
		for i, s := range steps {
			if got := binary.LittleEndian.Uint64(out[8*i:]); got != s.want && s.want != anyResult {
				r.Fatalf("step %d, %+v: got %#x", i, s, got)
			}
		}
	})
}

// What goes in and out of a plug-in as text or base64 is the same bytes.
func TestExtismText(t *testing.T) {
	c := loadExtism(t, newTestHost(t), extismPlugin("", "", `(call $output_set (call $input_offset) (call $input_length)) (i32.const 0)`))
	ctx := t.Context()
	check := func(t interface{ Fatalf(string, ...any) }, input string, want []byte) {
		result, err := c.Do(ctx, host.Request{Tool: "run", Input: []byte(input)})
		if err != nil || !slices.Equal(outputOf(t, result.Output), want) {
			t.Fatalf("%s: %s, %v", input, result.Output, err)
		}
	}
	for input, want := range map[string]string{
		`{}`: "", `{"input":""}`: "", `{"base64":""}`: "", ` { "input" : "a" } `: "a", `{"\u0069nput":"\ud83d\ude00\u00e9\u0000\/\b\f\n\r\t\"\\"}`: "😀é\x00/\b\f\n\r\t\"\\",
		`{"base64":"AP+A/w=="}`: "\x00\xff\x80\xff", `{"base64":"AP8"}`: "\x00\xff", `{"input":"\ud83d x"}`: "\ufffd x", `{"input":"\udc00\ud83d"}`: "\ufffd\ufffd", `{"input":"\ud83d\u0041"}`: "\ufffdA",
	} {
		check(t, input, []byte(want))
	}
	for input, path := range map[string]string{`{"input":1}`: "/input", `{"base64":"AP+A/w==="}`: "/base64", `{"base64":"ü"}`: "/base64", `{"input":"a","base64":"AA"}`: "", `{"other":"a"}`: "", `[]`: ""} {
		_, err := c.Do(t.Context(), host.Request{Tool: "run", Input: []byte(input)})
		refused, ok := errors.AsType[*host.InputError](err)
		if !ok || refused.Problems[0].Path != path {
			t.Errorf("%s: %v", input, err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(r, "bytes")
		if rapid.Bool().Draw(r, "text") {
			want = []byte(rapid.StringN(0, 200, -1).Draw(r, "text"))
			text, _ := json.Marshal(map[string]string{"input": string(want)})
			check(r, string(text), want)
		}
		encoded, _ := json.Marshal(map[string][]byte{"base64": want})
		check(r, string(encoded), want)
	})
}

// env is what plug-ins of these tests may use: a bucket, requests to a server that listens on 127.0.0.1, and a log.
type extismSite struct {
	bucket *kv.Bucket
	env    host.Env
	logs   []string
}

func newExtismSite(t testing.TB, rules ...stilehttp.Rule) *extismSite {
	t.Helper()
	store, err := kv.Open(t.Context(), filepath.Join(t.TempDir(), "kv.db"), kv.Options{Keys: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &extismSite{bucket: store.Bucket("plugin")}
	s.env = host.Env{ExtismKV: s.bucket, ExtismHTTP: stilehttp.Allow(rules...), ExtismConsole: console.To(func(level console.Level, message string) {
		s.logs = append(s.logs, level.String()+" "+message)
	})}
	return s
}

// Variables stay below var/ and settings below config/, whatever their names. What kv refuses ends the call with its reason.
func TestExtismVars(t *testing.T) {
	h := newTestHost(t)
	const (
		set = `(call $var_set (call $put (i32.const 1024) (i32.const %d)) (call $put (i32.const %d) (i32.const %d))) (i32.const 0)`
		get = `(call $emit (call $%s (call $put (i32.const 1024) (i32.const %d)))) (i32.const 0)`
	)
	for _, test := range []struct {
		name, data, fields, run string
		want                    string // in an error, or the output
		fails                   bool
		keys                    []string
	}{
		{"a name like a setting", "config/k", "", fmt.Sprintf(set, 8, 1024, 8), "", false, []string{"config/k", "var/config/k"}},
		{"a name with dots", "../config/k", "", fmt.Sprintf(set, 11, 1024, 11), "", false, []string{"config/k", "var/../config/k"}},
		{"a setting with dots", "../var/x", "", fmt.Sprintf(get, "config_get", 8), "", false, []string{"config/k"}},
		{"a setting", "k", "", fmt.Sprintf(get, "config_get", 1), "secret", false, []string{"config/k"}},
		{"a setting as a variable", "config/k", "", fmt.Sprintf(get, "var_get", 8), "", false, []string{"config/k"}},
		{"an empty name", "", "", `(drop (call $var_get (i64.const 0))) (i32.const 0)`, extismNoBlock, true, []string{"config/k"}},
		{"a name that is no block", "", "", `(drop (call $config_get (i64.const 4096))) (i32.const 0)`, extismNoBlock, true, []string{"config/k"}},
		{"a name far away", "", "", `(drop (call $var_get (i64.const -16))) (i32.const 0)`, extismNoBlock, true, []string{"config/k"}},
		{"a freed name", "k", "(global $b (mut i64) (i64.const 0))", `(global.set $b (call $put (i32.const 1024) (i32.const 1))) (call $free (global.get $b)) (drop (call $config_get (global.get $b))) (i32.const 0)`, extismNoBlock, true, []string{"config/k"}},
		{"a name that is not UTF-8", `\ff\fe`, "", fmt.Sprintf(get, "var_get", 2), extismNotUTF8, true, []string{"config/k"}},
		{"a surrogate as a name", `\ed\a0\80`, "", fmt.Sprintf(get, "var_get", 3), extismNotUTF8, true, []string{"config/k"}},
		{"a value that is no block", "k", "", `(call $var_set (call $put (i32.const 1024) (i32.const 1)) (i64.const 99999999)) (i32.const 0)`, extismNoBlock, true, []string{"config/k"}},
		{"a long name", "", "", fmt.Sprintf(set, 1500, 1024, 1), "bytes in a key", true, []string{"config/k"}},
		{"a long value", "k", "", `(call $var_set (call $put (i32.const 1024) (i32.const 1)) (call $alloc (i64.const 1100000))) (i32.const 0)`, "a limit was reached", true, []string{"config/k"}},
		{"too many", "", "(global $n (mut i32) (i32.const 0))", `(loop $l
			(i32.store8 (i32.const 1024) (i32.add (i32.const 65) (global.get $n)))
			(call $var_set (call $put (i32.const 1024) (i32.const 1)) (call $put (i32.const 1024) (i32.const 1)))
			(global.set $n (i32.add (global.get $n) (i32.const 1)))
			(br_if $l (i32.lt_u (global.get $n) (i32.const 40)))) (i32.const 0)`, "a limit was reached", true, nil},
		{"removing what is not there", "k", "", `(call $var_set (call $put (i32.const 1024) (i32.const 1)) (i64.const 0)) (i32.const 0)`, "", false, []string{"config/k"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := newExtismSite(t)
			if err := site.bucket.Set(t.Context(), "config/k", "secret"); err != nil {
				t.Fatal(err)
			}
			c := loadExtism(t, h, extismPlugin(test.data, test.fields, test.run))
			out, err := c.Call(t.Context(), "run", nil, site.env)
			switch failed, ok := errors.AsType[*host.GuestError](err); {
			case test.fails && (!ok || !strings.Contains(failed.Failure.Message, test.want)):
				t.Errorf("%s, %v", out, err)
			case !test.fails && (err != nil || string(out) != strconv.Quote(test.want)):
				t.Errorf("%s, %v", out, err)
			}
			if _, err := c.Call(t.Context(), "run", nil, nil); !test.fails && !errors.Is(err, abi.ErrDenied) {
				t.Errorf("without a bucket: %v", err)
			}
			page, err := site.bucket.List(t.Context(), "", 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, e := range page.Entries {
				keys = append(keys, e.Key)
				if e.Key == "config/k" && e.Value != "secret" {
					t.Errorf("the setting is %q", e.Value)
				}
			}
			if test.keys != nil && !slices.Equal(keys, test.keys) {
				t.Errorf("keys %q", keys)
			}
		})
	}
}

// request is a plug-in that makes the request that it gets, and returns status and body.
func requester(t testing.TB, h *host.Host) *host.Component {
	return loadExtism(t, h, extismPlugin("", "", `
		(call $emit (call $http_request (call $input_offset) (i64.const 0)))
		(if (i32.ge_u (call $http_status_code) (i32.const 400)) (then (return (call $http_status_code))))
		(i32.const 0)`))
}

// A plug-in's requests go only where a rule says, whatever the spelling of the address, and each step of a redirect is asked again.
func TestExtismRequests(t *testing.T) {
	h := newTestHost(t)
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "secret") }))
	defer secret.Close()
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/out":
			http.Redirect(w, r, secret.URL, http.StatusFound)
		case "/name":
			http.Redirect(w, r, "http://localhost:1/", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/ok/here", http.StatusFound)
		case "/huge":
			for range 40 {
				_, _ = fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		default:
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
		}
	}))
	defer open.Close()
	at := open.Listener.Addr().(*net.TCPAddr).Port
	site := newExtismSite(t, stilehttp.Rule{Scheme: "http", Host: "127.0.0.1", Port: uint16(at)}, stilehttp.Rule{Scheme: "http", Host: "*", Port: 9})
	c := requester(t, h)
	many := map[string]string{}
	for i := range 120 {
		many["accept-"+strconv.Itoa(i)] = "x"
	}
	headers, _ := json.Marshal(map[string]any{"url": open.URL, "headers": many})
	secretPort := secret.Listener.Addr().(*net.TCPAddr).Port
	for _, test := range []struct {
		name, request string
		denied        bool
		want          string // in the error or in the output
	}{
		{"allowed", `{"url":"` + open.URL + `/ok"}`, false, "GET /ok"},
		{"a redirect that is allowed", `{"url":"` + open.URL + `/near"}`, false, "GET /ok/here"},
		{"odd JSON", ` {"method" : "" , "headers":{ } , "more":[{"url":"http://x"},"]",-1.5e3,true,null] , "\u0075rl":"` + strings.ReplaceAll(open.URL, "/", `\/`) + `\u002fok" } `, false, "GET /ok"},
		{"null for headers and method", `{"method":null,"headers":null,"url":"` + open.URL + `/ok"}`, false, "GET /ok"},
		{"a method in lower case", `{"method":"head","url":"` + open.URL + `/ok"}`, false, ""},
		{"another method", `{"method":"POST","url":"` + open.URL + `/ok"}`, true, "does not allow the method POST"},
		{"CONNECT", `{"method":"CONNECT","url":"` + open.URL + `/ok"}`, false, "CONNECT"},
		{"another port", `{"url":"` + secret.URL + `"}`, true, "does not allow the port"},
		{"a redirect to another port", `{"url":"` + open.URL + `/out"}`, true, strconv.Itoa(secretPort)},
		{"a redirect to another name", `{"url":"` + open.URL + `/name"}`, true, "localhost"},
		{"an endless redirect", `{"url":"` + open.URL + `/loop"}`, false, "redirect"},
		{"another host", `{"url":"http://example.com/"}`, true, "example.com"},
		{"a mapped address", `{"url":"http://[::ffff:127.0.0.1]:9/"}`, true, "127.0.0.1"},
		{"a mapped address in hex", `{"url":"http://[::ffff:7f00:1]:9/"}`, true, "loopback"},
		{"a NAT64 address", `{"url":"http://[64:ff9b::7f00:1]:9/"}`, true, "64:ff9b"},
		{"a number as address", `{"url":"http://2130706433:9/"}`, false, "four decimal numbers"},
		{"a private address", `{"url":"http://10.0.0.1:9/"}`, true, "private"},
		{"metadata", `{"url":"http://169.254.169.254:9/"}`, true, "169.254.169.254"},
		{"a user name", `{"url":"http://127.0.0.1@example.com/"}`, false, "user"},
		{"a header of the connection", `{"url":"` + open.URL + `","headers":{"Host":"example.com"}}`, false, "host"},
		{"a header that no rule names", `{"url":"` + open.URL + `","headers":{"X-Forwarded-For":"1"}}`, true, "x-forwarded-for"},
		{"line ends in a header", `{"url":"` + open.URL + `","headers":{"Accept":"a\r\nHost: x"}}`, false, "header"},
		{"too many headers", string(headers), false, "at most 100"},
		{"too large", `{"url":"` + open.URL + `/huge"}`, false, "too large"},
		{"no URL", `{}`, false, "URL"},
		{"a file", `{"url":"file:///etc/passwd"}`, false, "https://"},
		{"no JSON", `url`, false, extismNotJSON},
		{"a list", `[]`, false, extismNotJSON},
		{"cut", `{"url":"http://x`, false, extismNotJSON},
		{"cut in an escape", `{"url":"\`, false, extismNotJSON},
		{"cut in a number", `{"url":"\u00`, false, extismNotJSON},
		{"a bad escape", `{"url":"\uzzzz"}`, false, extismNotJSON},
		{"cut after a name", `{"url"`, false, extismNotJSON},
		{"cut after a comma", `{"a":1,`, false, extismNotJSON},
		{"too many ends", `{"a":]]}`, false, extismNotJSON},
		{"headers that are no texts", `{"headers":{"a":1},"url":"` + open.URL + `"}`, false, extismNotJSON},
		{"half a character", "{\"a\":\"\xc3\"}", false, extismNotUTF8},
	} {
		t.Run(test.name, func(t *testing.T) {
			input, _ := json.Marshal(map[string][]byte{"base64": []byte(test.request)})
			out, err := c.Call(t.Context(), "run", input, site.env)
			text := string(out)
			if err != nil {
				text = err.Error()
			}
			if errors.Is(err, abi.ErrDenied) != test.denied || !strings.Contains(text, test.want) || strings.Contains(text, "secret") {
				t.Errorf("%s, %v", out, err)
			}
			if failed := errors.As(err, new(*host.GuestError)); err != nil && !test.denied && !failed {
				t.Errorf("not an error of the tool: %T", err)
			}
		})
	}
	if _, err := c.Call(t.Context(), "run", []byte(`{"input":"{\"url\":\"http://x\"}"}`), nil); !errors.Is(err, abi.ErrDenied) || !strings.Contains(err.Error(), ExtismHTTP) {
		t.Errorf("without a binding: %v", err)
	}
}

// Errors and logs that are not UTF-8 are shown all the same. Without a binding of console, plug-ins learn that nobody listens.
func TestExtismTexts(t *testing.T) {
	h := newTestHost(t)
	site := newExtismSite(t)
	for _, test := range []struct{ name, data, run, want string }{
		{"an error", `bad \ff\c3\a9`, `(call $error_set (call $put (i32.const 1024) (i32.const 7))) (i32.const 0)`, "bad ???"},
		{"an error that was freed", "x", `(call $error_set (call $put (i32.const 1024) (i32.const 1))) (call $free (call $error_get)) (i32.const 1)`, extismNoError},
		{"an error that was taken back", "x", `(call $error_set (call $put (i32.const 1024) (i32.const 1))) (call $error_set (i64.const 0)) (i32.const 0)`, ""},
		{"a code", "", `(i32.const -1)`, extismNoError},
		{"a line", `l\ff`, `(call $log_warn (call $put (i32.const 1024) (i32.const 2))) (call $log_trace (i64.const 7)) (call $get_log_level)`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := loadExtism(t, h, extismPlugin(test.data, "", test.run)).Call(t.Context(), "run", nil, site.env)
			failed, ok := errors.AsType[*host.GuestError](err)
			if ok != (test.want != "") || ok && failed.Failure.Message != test.want || err != nil && !ok {
				t.Error(err)
			}
		})
	}
	if !slices.Equal(site.logs, []string{"warn l?"}) {
		t.Errorf("logs %q", site.logs)
	}
	_, err := loadExtism(t, h, extismPlugin("x", "", `(call $log_warn (call $put (i32.const 1024) (i32.const 1))) (i32.ne (call $get_log_level) (i32.const 0x7fffffff))`)).Call(t.Context(), "run", nil, nil)
	if err != nil {
		t.Errorf("without a console: %v", err)
	}
}

// A component imports only what the plug-in uses, and the same plug-in gives the same bytes.
func TestExtismImports(t *testing.T) {
	h := newTestHost(t)
	for _, test := range []struct {
		uses string
		want []string
	}{
		{"alloc", []string{"stile:capability/env@0.1.0", "stile:capability/types@0.1.0"}},
		{"log_info", []string{"stile:capability/console@0.1.0", "stile:capability/env@0.1.0", "stile:capability/types@0.1.0"}},
		{"var_get", []string{"stile:capability/env@0.1.0", "stile:capability/kv@0.1.0", "stile:capability/types@0.1.0", "wasi:cli/stderr@0.2.0", "wasi:io/error@0.2.0", "wasi:io/streams@0.2.0"}},
	} {
		module := wat(t, `(module `+importExtism(test.uses)+`(memory (export "memory") 0) (func (export "run")))`)
		component, err := Componentize(anyWorld, module)
		again, err2 := Componentize(anyWorld, module)
		if err != nil || err2 != nil || string(component) != string(again) {
			t.Fatalf("%v, %v, the same: %t", err, err2, string(component) == string(again))
		}
		c, err := h.Load(t.Context(), component)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range c.Imports() {
			names = append(names, i.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, test.want) {
			t.Errorf("%s: %q", test.uses, names)
		}
		if out, err := c.Call(t.Context(), "run", nil, nil); err != nil || string(out) != `""` {
			t.Errorf("%s: %s, %v", test.uses, out, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The cases of errors that the adapter knows are those of the contract.
func TestExtismCases(t *testing.T) {
	for _, named := range anyWorld.Imports {
		for _, typ := range named.Types {
			if named.Name != "stile:capability/types@0.1.0" || typ.Name != "error" {
				continue
			}
			for i, c := range typ.Cases {
				if text := c.Type != nil && c.Type.Kind == abi.KindString; text != strings.HasSuffix(extismCases[i], ": ") {
					t.Errorf("case %d, %s: %q", i, c.Name, extismCases[i])
				}
			}
			if len(typ.Cases) != len(extismCases) {
				t.Errorf("%d cases", len(typ.Cases))
			}
			return
		}
	}
	t.Error("no such type")
}

func FuzzExtism(f *testing.F) {
	f.Add(wat(f, script()))
	f.Add(wat(f, extismPlugin("x", `(func (export "_initialize")) (table 1 funcref) (global i32 (i32.const 1))`, `(drop (memory.grow (memory.size))) (i32.const 0)`)))
	f.Fuzz(func(t *testing.T, module []byte) {
		m, err := readCore(module)
		if err != nil || !m.isExtism() {
			return
		}
		if _, err := Componentize(anyWorld, module); err != nil && !errors.As(err, new(*CoreError)) {
			t.Error(err)
		}
	})
}

// With a description, tools have schemas, and then take and return JSON, which the host checks. Other functions are no tools.
func TestExtismTools(t *testing.T) {
	h := newTestHost(t)
	module := wat(t, extismPlugin("not JSON", `(func (export "same") (result i32) (call $output_set (call $input_offset) (call $input_length)) (i32.const 0))
		(func (export "none"))`, `(call $emit (call $put (i32.const 1024) (i32.const 8))) (i32.const 0)`))
	schema := json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}}`)
	component, err := ComponentizeExtism(anyWorld, module, []ExtismTool{
		{Name: "same", Description: "Returns \"it\"", Input: schema, Output: schema, Annotations: &abi.Annotations{Idempotent: true}},
		{Name: "run", Output: json.RawMessage(`true`)},
		{Name: "none", Output: json.RawMessage(`true`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Load(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 3 || tools[2].Name != "same" || tools[2].Description != `Returns "it"` || *tools[2].OutputSchema != tools[2].InputSchema || !tools[2].Annotations.Idempotent || tools[2].Annotations.Destructive {
		t.Fatalf("%+v, %v", tools, err)
	}
	for _, test := range []struct{ tool, input, want, problem string }{
		{"same", `{"n": 1}`, `{"n": 1}`, ""},
		{"same", `{"n": "1"}`, "", "invalid input"},
		{"run", `{}`, "", "not JSON"},
		{"none", `{"input":"x"}`, "null", ""},
	} {
		out, err := c.Call(t.Context(), test.tool, []byte(test.input), nil)
		if string(out) != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s %s: %s, %v", test.tool, test.input, out, err)
		}
	}
	if out, err := ComponentizeExtism(anyWorld, module, []ExtismTool{{Name: "run"}}); err != nil {
		t.Error(err)
	} else if c, err := h.Load(t.Context(), out); err != nil {
		t.Error(err)
	} else {
		defer func() { _ = c.Close() }()
		if _, err := c.Call(t.Context(), "same", nil, nil); !errors.As(err, new(*host.UnknownToolError)) {
			t.Error(err)
		}
	}
	for name, tools := range map[string][]ExtismTool{
		"no export that can be a tool": {{Name: "memory"}}, "no tools": {}, "a schema that is not JSON": {{Name: "run", Input: json.RawMessage(`{`)}},
	} {
		if _, err := ComponentizeExtism(anyWorld, module, tools); !errors.As(err, new(*CoreError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ComponentizeExtism(anyWorld, wat(t, sound()), []ExtismTool{{Name: "run"}}); !errors.As(err, new(*CoreError)) {
		t.Error(err)
	}
}
