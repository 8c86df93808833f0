package wasmtime

/*
#include "shim.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unsafe"
)

// Why a call was ended from outside the guest.
var (
	ErrCancelled = errors.New("call cancelled")
	ErrCPU       = errors.New("CPU time used up")
)

// TrapError is a guest that did something WebAssembly forbids.
type TrapError struct {
	// Reason is wasmtime's text for the trap, e.g. "out of bounds memory access".
	Reason string
	// Functions are the names of the functions on the guest's stack, innermost first; "" for one without a name.
	Functions []string
}

func (e *TrapError) Error() string { return "wasm trap: " + e.Reason }

// PanicError is a panic in Go code that the guest called.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic in a host function: %v", e.Value) }

// engineError is wasmtime's own text.
type engineError string

func (e engineError) Error() string { return string(e) }

// takeError converts and frees an owned error; nil stays nil.
func takeError(e *C.wasmtime_error_t) error {
	if e == nil {
		return nil
	}
	var m C.wasm_name_t
	C.wasmtime_error_message(e, &m)
	C.wasmtime_error_delete(e)
	return parseError(string(takeBytes(&m)))
}

func newError(text string) *C.wasmtime_error_t {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	return C.wasmtime_error_new(c)
}

var frame = regexp.MustCompile(`(?m)^\s+\d+:\s+0x[0-9a-f]+ - (?:[^!\n]*!)?(.*)$`)

// parseError recognises what a guest did wrong by wasmtime's text, which is all that the C API gives for a component.
func parseError(text string) error {
	_, reason, trapped := strings.Cut(text, "wasm trap: ")
	if !trapped && strings.HasPrefix(text, "error while executing at wasm backtrace:") {
		_, reason, trapped = strings.Cut(text, "Caused by:\n")
	}
	if !trapped {
		return engineError(strings.TrimSpace(text))
	}
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	trap := &TrapError{Reason: reason}
	for _, m := range frame.FindAllStringSubmatch(text, 64) {
		trap.Functions = append(trap.Functions, m[1])
	}
	return trap
}
