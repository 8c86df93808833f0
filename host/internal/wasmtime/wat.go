package wasmtime

import wasmtimego "github.com/bytecodealliance/wasmtime-go/v44"

// WAT assembles the text format of a module or component.
func WAT(text string) ([]byte, error) { return wasmtimego.Wat2Wasm(text) }
