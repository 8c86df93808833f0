package wasmtime

/*
#include "shim.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"
)

// Module is a compiled core module, which components import by name. It is safe for concurrent use.
type Module struct {
	engine *Engine
	c      *C.wasmtime_module_t
	once   sync.Once
}

// CompileModule compiles a core module.
func (e *Engine) CompileModule(wasm []byte) (*Module, error) {
	m := &Module{engine: e}
	err := takeError(C.wasmtime_module_new(e.c, bytesPointer(wasm), C.size_t(len(wasm)), &m.c))
	runtime.KeepAlive(wasm)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Serialize returns the compiled code, for [Engine.MapModule].
func (m *Module) Serialize() ([]byte, error) {
	var v C.wasm_byte_vec_t
	if err := takeError(C.wasmtime_module_serialize(m.c, &v)); err != nil {
		return nil, err
	}
	return takeBytes(&v), nil
}

// MapModule maps compiled code from an open file. The content is trusted completely: the caller must have authenticated
// it on this very descriptor.
func (e *Engine) MapModule(fd uintptr) (*Module, error) {
	m := &Module{engine: e}
	path := C.CString(descriptorPath(fd))
	defer C.free(unsafe.Pointer(path))
	if err := takeError(C.wasmtime_module_deserialize_file(e.c, path, &m.c)); err != nil {
		return nil, err
	}
	return m, nil
}

// Close frees the module. Components that import it stay usable. It is idempotent.
func (m *Module) Close() { m.once.Do(func() { C.wasmtime_module_delete(m.c) }) }

// Component is a compiled component. It is safe for concurrent use.
type Component struct {
	engine *Engine
	c      *C.wasmtime_component_t
	once   sync.Once
}

// Compile compiles a component.
func (e *Engine) Compile(wasm []byte) (*Component, error) {
	c := &Component{engine: e}
	err := takeError(C.wasmtime_component_new(e.c, bytesPointer(wasm), C.size_t(len(wasm)), &c.c))
	runtime.KeepAlive(wasm)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Serialize returns the compiled code, for [Engine.Map].
func (c *Component) Serialize() ([]byte, error) {
	var v C.wasm_byte_vec_t
	if err := takeError(C.wasmtime_component_serialize(c.c, &v)); err != nil {
		return nil, err
	}
	return takeBytes(&v), nil
}

// Map maps compiled code from an open file. The content is trusted completely: the caller must have authenticated it on
// this very descriptor.
func (e *Engine) Map(fd uintptr) (*Component, error) {
	c := &Component{engine: e}
	path := C.CString(descriptorPath(fd))
	defer C.free(unsafe.Pointer(path))
	if err := takeError(C.wasmtime_component_deserialize_file(e.c, path, &c.c)); err != nil {
		return nil, err
	}
	return c, nil
}

// ErrTooLarge is the error of a component whose instances need more than the pool allows for one: see [Pool].
var ErrTooLarge = errors.New("an instance may not have as much")

// Deserialize loads compiled code. It trusts the code completely: the code must come from
// this program. Code of another version is an error. Code that needs too much fails with
// [ErrTooLarge]. An engine of [NewCompiler] does not detect this because it has no pool.
func (e *Engine) Deserialize(code []byte) (*Component, error) {
	c := &Component{engine: e}
	err := takeError(C.wasmtime_component_deserialize(e.c, bytesPointer(code), C.size_t(len(code)), &c.c))
	runtime.KeepAlive(code)
	switch {
	case err != nil && strings.Contains(err.Error(), "does not fit in pooling allocator"): // the engine has no code for it
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return nil, err
	}
	return c, nil
}

// Close frees the component. Its instances stay usable. It is idempotent.
func (c *Component) Close() { c.once.Do(func() { C.wasmtime_component_delete(c.c) }) }

// Export is a function that a component exports. It is valid for every instance of its component. Close frees it.
type Export struct {
	c    *C.wasmtime_component_export_index_t
	once sync.Once
}

// Export finds a function of an exported interface, or of the component itself if iface is empty. It is nil if there is none.
func (c *Component) Export(iface, name string) *Export {
	var outer *C.wasmtime_component_export_index_t
	if iface != "" {
		outer = C.wasmtime_component_get_export_index(c.c, nil, charPointer(iface), C.size_t(len(iface)))
		if outer == nil {
			return nil
		}
		defer C.wasmtime_component_export_index_delete(outer)
	}
	index := C.wasmtime_component_get_export_index(c.c, outer, charPointer(name), C.size_t(len(name)))
	if index == nil {
		return nil
	}
	return &Export{c: index}
}

// Close frees the export. It is idempotent.
func (x *Export) Close() { x.once.Do(func() { C.wasmtime_component_export_index_delete(x.c) }) }

// descriptorPath names an open file, so that the mapped file is the one that was read.
func descriptorPath(fd uintptr) string {
	dir := "/dev/fd/"
	if runtime.GOOS == "linux" {
		dir = "/proc/self/fd/"
	}
	return dir + strconv.FormatUint(uint64(fd), 10)
}
