package toolchain

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"
)

// Each body is a function of an address p and a number n, in a memory with 5 before p.
func TestKeepCounts(t *testing.T) {
	const word = 2048
	const load, address = `(i32.load (local.tee 2 (i32.sub (local.get 0) (i32.const 4))))`, `(i32.sub (local.get 0) (i32.const 4))`
	raise := func(at, from string) string {
		return `(i32.store ` + at + ` (i32.add (i32.load ` + from + `) (i32.const 1)))`
	}
	for _, test := range []struct {
		name, body string
		want       found
		after      uint32 // of 5
	}{
		{"raises", raise(address, address), found{1, 0}, 6},
		{"lowers", `(i32.store ` + address + ` (i32.sub (i32.load ` + address + `) (i32.const 1)))`, found{1, 0}, 4},
		{"adds what is less than nothing", `(i32.store ` + address + ` (i32.add (i32.const -1) (i32.load ` + address + `)))`, found{1, 0}, 4},
		{"raises by two", `(i32.store ` + address + ` (i32.add (i32.load ` + address + `) (i32.const 2)))`, found{1, 0}, 7},
		{"keeps the address", `(local.set 3 (i32.add ` + load + ` (i32.const 1))) (i32.store (local.get 2) (local.get 3))`, found{1, 0}, 6},
		{"keeps the address elsewhere", `(local.set 3 (i32.add ` + load + ` (i32.const 1))) (local.set 4 (local.get 2)) (local.set 2 (i32.const 0)) (i32.store (local.get 4) (local.get 3))`, found{1, 0}, 6},
		{"has an offset", `(i32.store offset=4 (i32.sub (local.get 0) (i32.const 8)) (i32.add (i32.load offset=4 (i32.sub (local.get 0) (i32.const 8))) (i32.const 1)))`, found{1, 0}, 6},
		{"wraps a value", `(local.set 5 (i64.extend_i32_u (local.get 0)))
			(i32.store (i32.sub (i32.wrap_i64 (local.get 5)) (i32.const 4)) (i32.add (i32.load (i32.sub (i32.wrap_i64 (local.get 5)) (i32.const 4))) (i32.const 1)))`, found{1, 0}, 6},
		{"in a loop", `(loop $again ` + raise(address, address) + ` (br_if $again (i32.gt_s (local.tee 1 (i32.sub (local.get 1) (i32.const 1))) (i32.const 0))))`, found{1, 0}, 8},
		{"of one of two, whichever", `(if (local.get 1) (then (local.set 2 (i32.sub (local.get 0) (i32.const 4)))) (else (local.set 2 (i32.sub (local.get 1) (i32.const 4)))))` + raise(`(local.get 2)`, `(local.get 2)`), found{1, 0}, 6},
		{"of one of two, loaded before", `(if (local.get 1) (then (local.set 2 (i32.sub (local.get 0) (i32.const 4))) (local.set 3 (i32.load (local.get 2))))
			(else (local.set 2 (i32.sub (local.get 1) (i32.const 4))) (local.set 3 (i32.load (local.get 2)))))
			(i32.store (local.get 2) (i32.add (local.get 3) (i32.const 1)))`, found{1, 0}, 6},
		{"raises or lowers", `(i32.store ` + address + ` (if (result i32) (local.get 1) (then (i32.add (i32.load ` + address + `) (i32.const 1))) (else (i32.sub (i32.load ` + address + `) (i32.const 1)))))`, found{1, 0}, 6},

		{"another word", `(i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1)))`, found{}, 5},
		{"half a word", `(i32.store16 ` + address + ` (i32.add (i32.load16_u ` + address + `) (i32.const 1)))`, found{}, 6},
		{"begins a count", `(i32.store ` + address + ` (i32.const 1))`, found{}, 1},
		{"copies a count", `(i32.store ` + address + ` (i32.load (i32.const 96)))`, found{}, 0},
		{"a constant address", `(i32.store (i32.const 2044) (i32.add (i32.load (i32.const 2044)) (i32.const 1)))`, found{}, 6},
		{"a place on the stack", `(local.set 2 (i32.sub (global.get 0) (i32.const 4)))` + raise(`(local.get 2)`, `(local.get 2)`), found{}, 6},
		{"the count of another", raise(address, `(i32.sub (i32.mul (local.get 1) (i32.const 100)) (i32.const 4))`), found{0, 1}, 1},
		{"p-4 or p", `(local.set 2 (local.get 0)) (if (local.get 1) (then (local.set 2 (i32.sub (local.get 0) (i32.const 4)))))` + raise(`(local.get 2)`, `(local.get 2)`), found{0, 1}, 6},
		{"p-4, p-8, and so on", `(local.set 2 (i32.sub (local.get 0) (i32.const 4)))
			(loop $again ` + raise(`(local.get 2)`, `(local.get 2)`) + ` (local.set 2 (i32.sub (local.get 2) (i32.const 4))) (br_if $again (i32.gt_s (local.tee 1 (i32.sub (local.get 1) (i32.const 1))) (i32.const 0))))`, found{0, 1}, 6},
		{"p-4 of a p that goes back", `(local.set 2 (local.get 0))
			(loop $again ` + raise(`(i32.sub (local.get 2) (i32.const 4))`, `(i32.sub (local.get 2) (i32.const 4))`) + ` (local.set 2 (i32.sub (local.get 2) (i32.const 4))) (br_if $again (i32.gt_s (local.tee 1 (i32.sub (local.get 1) (i32.const 1))) (i32.const 0))))`, found{0, 1}, 6},
		{"the p of an earlier round", `(local.set 3 ` + load + `)
			(loop $again (i32.store (i32.sub (local.get 0) (i32.const 4)) (i32.add (local.get 3) (i32.const 1))) (local.set 0 (i32.add (local.get 0) (i32.mul (local.get 1) (i32.const 8))))
			(br_if $again (i32.gt_s (local.tee 1 (i32.sub (local.get 1) (i32.const 1))) (i32.const 0))))`, found{0, 1}, 6},
		{"after the end", `(return) ` + raise(address, address), found{}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			wasm := wat(t, fmt.Sprintf(`(module (memory (export "m") 1) (global (mut i32) (i32.const %d))
  (func (export "f") (param i32 i32) (local i32 i32 i32 i64) %s))`, word, test.body))
			kept, got, err := keepCounts(wasm)
			if err != nil || got != test.want {
				t.Fatalf("%+v, %v; want %+v", got, err, test.want)
			}
			run := func(count uint32) uint32 {
				store := wasmtime.NewStore(wasmtime.NewEngine())
				defer store.Close()
				module, err := wasmtime.NewModule(store.Engine, kept)
				if err != nil {
					t.Fatal(err)
				}
				instance, err := wasmtime.NewInstance(store, module, nil)
				if err != nil {
					t.Fatal(err)
				}
				g := &guest{store: store, memory: instance.GetExport(store, "m").Memory()}
				g.store32(word-4, count)
				if _, err := instance.GetFunc(store, "f").Call(store, int32(word), int32(3)); err != nil {
					t.Fatal(err)
				}
				return g.load32(word - 4)
			}
			if got := run(5); got != test.after {
				t.Errorf("5 became %d, want %d", got, test.after)
			}
			if got := run(immortalCount); test.want.changes > 0 && got != immortalCount {
				t.Errorf("the count that is kept became %#x", got)
			}
		})
	}
}

func TestKeepCountsRefuses(t *testing.T) {
	var wrong *WasmError
	for name, code := range map[string]string{
		"nothing to store":       "\x36\x02\x00\x0b",
		"no such local":          "\x20\x63\x0b",
		"no such function":       "\x10\x63\x0b",
		"no such type":           "\x02\x63\x0b\x0b",
		"a branch out of it":     "\x0c\x09\x0b",
		"a branch without value": "\x02\x7f\x0c\x00\x0b\x1a\x0b",
		"a value too many":       "\x41\x00\x0b",
		"else without if":        "\x05\x0b",
		"code after the end":     "\x0b\x01",
		"no end":                 "\x01",
		"a vector":               "\xfd\x0cabcdefghijklmnop\x1a\x0b",
	} {
		body := append([]byte{0}, code...)
		wasm := append([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a"), byte(len(body)+2), 1, byte(len(body)))
		if _, _, err := keepCounts(append(wasm, body...)); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
