package toolchain

import (
	"errors"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/internal/wasmbin"
)

// Each function has the index 1, and returns how much lower the stack pointer is in it. Afterwards the stack pointer is as before.
func TestWiden(t *testing.T) {
	const down, up = `(global.set 0 (local.tee 0 (i32.sub (global.get 0) (i32.const 16))))`, `(global.set 0 (i32.add (local.get 0) (i32.const 16)))`
	const result = `(local.set 1 (i32.sub (i32.const 10000) (local.get 0)))`
	for _, test := range []struct {
		name, body string
		want       int32 // 0 if the function is refused
	}{
		{"a frame", down + result + up, 16 + 4096},
		{"numbers below 0", `(global.set 0 (local.tee 0 (i32.add (global.get 0) (i32.const -16))))` + result + `(global.set 0 (i32.sub (local.get 0) (i32.const -16)))`, 16 + 4096},
		{"another size", `(global.set 0 (local.tee 0 (i32.sub (global.get 0) (i32.const 32))))` + result + `(global.set 0 (i32.add (local.get 0) (i32.const 32)))`, 0},
		{"no frame", result, 0},
		{"a second end", down + result + `(if (i32.eqz (local.get 1)) (then ` + up + `))` + up, 0},
		{"more of the stack", down + result + `(local.set 1 (i32.sub (global.get 0) (i32.const 16)))` + up, 0},
		{"no end", down + result, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			wasm := wat(t, `(module (import "m" "f" (func)) (global (mut i32) (i32.const 10000)) (func (export "f") (result i32) (local i32 i32) `+test.body+` (local.get 1)) (func (export "after") (result i32) (global.get 0)))`)
			wide, err := rewriteFunctions(wasm, map[uint32]func(*wasmbin.Reader) []byte{1: widening{1, 16, 4096}.widen})
			if _, refused := errors.AsType[*WasmError](err); refused != (test.want == 0) {
				t.Fatal(err)
			} else if refused {
				return
			}
			store := wasmtime.NewStore(wasmtime.NewEngine())
			defer store.Close()
			module, err := wasmtime.NewModule(store.Engine, wide)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := wasmtime.NewInstance(store, module, []wasmtime.AsExtern{wasmtime.WrapFunc(store, func() {})})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := instance.GetFunc(store, "f").Call(store); err != nil || got != test.want {
				t.Errorf("%v, %v; want %d", got, err, test.want)
			}
			if got, err := instance.GetFunc(store, "after").Call(store); err != nil || got != int32(10000) {
				t.Errorf("afterwards the stack pointer is %v, %v", got, err)
			}
		})
	}
	wasm := wat(t, `(module (func))`)
	if _, err := rewriteFunctions(wasm, map[uint32]func(*wasmbin.Reader) []byte{1: placeColumn}); err == nil {
		t.Error("a function that is missing was rewritten")
	}
	if _, err := rewriteFunctions(wasm, map[uint32]func(*wasmbin.Reader) []byte{0: placeColumn}); err == nil {
		t.Error("another function than that of columns was rewritten")
	}
}
