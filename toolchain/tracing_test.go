package toolchain

import (
	"errors"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"
)

// Each body is a function of an address p. At p there is the address of a byte tracingByte before one that has the bit.
func TestDropTracing(t *testing.T) {
	const trace = `(if (i32.and (i32.load8_u offset=753 (i32.load (local.get 0))) (i32.const 128)) `
	for _, test := range []struct {
		name, body string
		traces     int
		want       int32
	}{
		{"a check", trace + `(then (local.set 1 (i32.const 7))))`, 1, 0},
		{"two, with blocks inside", trace + `(then (block (loop (if (local.get 0) (then (local.set 1 (i32.const 7))) (else (nop))))))) ` + trace + `(then (return (i32.const 8))))`, 2, 0},
		{"another way to the address", `(if (i32.and (i32.load8_u offset=753 (i32.load (i32.add (local.get 0) (i32.const 0)))) (i32.const 128)) (then (local.set 1 (i32.const 7))))`, 1, 0},
		{"an address that is kept", `(if (i32.and (i32.load8_u offset=753 (local.tee 0 (i32.load (local.get 0)))) (i32.const 128)) (then (return (i32.const 7)))) (local.set 1 (local.get 0))`, 1, 64},
		{"an else", trace + `(then (local.set 1 (i32.const 7))) (else (local.set 1 (i32.const 8))))`, 0, 7},
		{"another bit", `(if (i32.and (i32.load8_u offset=753 (i32.load (local.get 0))) (i32.const 64)) (then (local.set 1 (i32.const 7))))`, 0, 7},
		{"another byte", `(if (i32.and (i32.load8_u offset=752 (i32.load (local.get 0))) (i32.const 128)) (then (local.set 1 (i32.const 7))))`, 0, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			wasm := wat(t, `(module (memory (export "m") 1) (data (i32.const 32) "\40") (data (i32.const 816) "\ff\ff") (func (export "f") (param i32) (result i32) (local i32) `+test.body+` (local.get 1)))`)
			dropped, traces, err := dropTracing(wasm)
			if err != nil || traces != test.traces {
				t.Fatalf("%d, %v; want %d", traces, err, test.traces)
			}
			store := wasmtime.NewStore(wasmtime.NewEngine())
			defer store.Close()
			module, err := wasmtime.NewModule(store.Engine, dropped)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := wasmtime.NewInstance(store, module, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := instance.GetFunc(store, "f").Call(store, int32(32)); err != nil || got != test.want {
				t.Errorf("%v, %v; want %d", got, err, test.want)
			}
		})
	}
	var wrong *WasmError
	wasm := wat(t, `(module (memory 1) (func (param i32) `+trace+`(then (nop)))))`)
	if _, _, err := dropTracing(wasm[:len(wasm)-1]); !errors.As(err, &wrong) {
		t.Errorf("a function that is cut: %v", err)
	}
}
