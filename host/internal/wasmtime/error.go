package wasmtime

/*
#include "shim.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// The reasons why a call was ended from outside the guest.
var (
	ErrCancelled = errors.New("call cancelled")
	ErrCPU       = errors.New("CPU time used up")
	// ErrConversion is the error of a value, passed or returned, that would take more than MaxConversion.
	ErrConversion = errors.New("a value is too large to convert")
	// ErrLate is the error of a guest that takes more than MaxReceive to make room for a value.
	ErrLate = errors.New("the guest took too long to make room for a value")
)

// TrapError reports a guest that did something that WebAssembly forbids.
type TrapError struct {
	// Reason is wasmtime's text for the trap, e.g. "out of bounds memory access".
	Reason string
	// Functions are the names of at most 64 functions on the guest's stack, innermost first. They come from the component, cut to
	// 100 bytes, shown by "...", and made printable. The name is "" for a function without one.
	Functions []string
}

func (e *TrapError) Error() string { return "wasm trap: " + e.Reason }

// PanicError reports a panic in Go code that the guest called.
type PanicError struct {
	Value any
	Stack []byte
}

// NewPanicError makes the error of a recovered value, with the stack of the panic.
func NewPanicError(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

func (e *PanicError) Error() string { return fmt.Sprintf("panic in a host function: %v", e.Value) }

// SizeError reports a value of a host function, argument or result, that is larger than this package converts.
type SizeError struct {
	Type string
	Size int
	Max  int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes in one %s, more than %d", e.Size, e.Type, e.Max)
}

// InstanceError reports a component that cannot be instantiated: it does not fit its linker or the limits of its store.
type InstanceError struct{ Reason string }

func (e *InstanceError) Error() string { return e.Reason }

// SystemError reports that the operating system refused the engine something, e.g. memory or room in a file. No guest is at fault.
type SystemError struct {
	Reason string
	Number syscall.Errno
}

func (e *SystemError) Error() string { return e.Reason }

// Unwrap returns the system's error.
func (e *SystemError) Unwrap() error { return e.Number }

// systemText is how Rust shows a system error. A text that contains a guest's name never matches it completely.
var systemText = lazyregexp.New(`^[A-Z][A-Za-z ()/'-]* \(os error ([0-9]{1,5})\)$`)

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

var frame = lazyregexp.New(`^\s+\d+:\s+0x[0-9a-f]+ - (?:[^!]*!)?(.*)`)

const (
	maxFrames    = 64
	maxFrameName = 100
	maxFrameLine = 1 << 10 // bytes that are looked at; an expression takes 50 ns per byte
)

// parseError recognises a guest's error by wasmtime's text, because the C API provides nothing else for components. The names
// in a backtrace come from the guest and can look like anything, so the reason is read only from what follows them.
func parseError(text string) error {
	const caused = "Caused by:\n"
	reason, trapped := strings.CutPrefix(text, "error while executing at wasm backtrace:")
	frames := ""
	if i := strings.LastIndex(reason, caused); trapped && i >= 0 {
		frames, reason = reason[:i], reason[i+len(caused):]
	}
	const prefix = "wasm trap: "
	if i := strings.LastIndex(reason, prefix); i >= 0 {
		trapped, reason = true, reason[i+len(prefix):]
	} else if m := systemText.FindStringSubmatch(strings.TrimSpace(reason)); m != nil {
		number, _ := strconv.Atoi(m[1]) // five digits never fail
		return &SystemError{m[0], syscall.Errno(number)}
	}
	if !trapped {
		return engineError(strings.TrimSpace(text))
	}
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	trap := &TrapError{Reason: reason}
	for line := range strings.Lines(frames) {
		if m := frame.FindStringSubmatch(line[:min(len(line), maxFrameLine)]); m != nil && len(trap.Functions) < maxFrames {
			trap.Functions = append(trap.Functions, printable.Short(m[1], maxFrameName))
		}
	}
	return trap
}
