package wasmtime

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"

	"github.com/stilehost/stile/abi"
)

// HostFunc is a function that guests import. It runs on the guest's thread: it may block, and its time counts as the guest's CPU
// time. If it fails, the call ends and returns its error. A panic ends the call too, as a *PanicError.
type HostFunc func(s *Store, args []abi.Value) (abi.Value, error)

// function is a linker's entry for a host function.
type function struct {
	params []*abi.Type
	result *abi.Type
	call   HostFunc
	checks bool
	linker *Linker
}

// Linker holds what its components may import. Defining is not safe for concurrent use. Instantiating is, once everything is
// defined.
type Linker struct {
	engine *Engine
	c      *C.wasmtime_component_linker_t
	once   sync.Once
	// types numbers the resource types. A handle of another type is refused when it is read.
	types map[*abi.Resource]uint32
}

// NewLinker makes an empty linker.
func (e *Engine) NewLinker() *Linker {
	return &Linker{engine: e, c: C.wasmtime_component_linker_new(e.c), types: map[*abi.Resource]uint32{}}
}

// Close frees the linker. It is idempotent. No instantiation may be under way.
func (l *Linker) Close() { l.once.Do(func() { C.wasmtime_component_linker_delete(l.c) }) }

// Module defines a core module under a name that components import.
func (l *Linker) Module(name string, m *Module) error {
	root := C.wasmtime_component_linker_root(l.c)
	defer C.wasmtime_component_linker_instance_delete(root)
	err := takeError(C.wasmtime_component_linker_instance_add_module(root, charPointer(name), C.size_t(len(name)), m.c))
	runtime.KeepAlive(m)
	return err
}

// Definition is one item of an instance that a linker defines: a function if Call is set, else a resource type.
type Definition struct {
	Name string

	Params []*abi.Type
	Result *abi.Type
	Call   HostFunc
	// Checks is set if Call bounds the lists among its arguments itself. They may then be as long as MaxConversion allows. Otherwise
	// a list<u8> of more than abi.MaxBytes ends the call before Call.
	Checks bool

	Resource *abi.Resource
	// Drop is called when the guest drops an owned handle. It is not called when a store is closed.
	Drop func(s *Store, rep abi.Rep) error
}

// Instance defines an instance. If name is empty, it defines functions at the root.
func (l *Linker) Instance(name string, definitions []Definition) error {
	root := C.wasmtime_component_linker_root(l.c)
	defer C.wasmtime_component_linker_instance_delete(root)
	instance := root
	if name != "" {
		instance = nil
		if err := takeError(C.wasmtime_component_linker_instance_add_instance(root, charPointer(name), C.size_t(len(name)), &instance)); err != nil {
			return err
		}
		defer C.wasmtime_component_linker_instance_delete(instance)
	}
	for _, d := range definitions {
		if err := l.define(instance, d); err != nil {
			return err
		}
	}
	return nil
}

func (l *Linker) define(instance *C.wasmtime_component_linker_instance_t, d Definition) error {
	name, length := charPointer(d.Name), C.size_t(len(d.Name))
	if d.Call != nil {
		handle := cgo.NewHandle(&function{params: d.Params, result: d.Result, call: d.Call, checks: d.Checks, linker: l})
		return takeError(C.stile_add_func(instance, name, length, C.uintptr_t(handle)))
	}
	number, ok := l.types[d.Resource]
	if !ok {
		number = uint32(len(l.types)) + 1
		l.types[d.Resource] = number
	}
	handle := cgo.NewHandle(d.Drop)
	return takeError(C.stile_add_resource(instance, name, length, C.uint32_t(number), C.uintptr_t(handle)))
}

//export goRelease
func goRelease(handle C.uintptr_t) { cgo.Handle(handle).Delete() }

//export goCall
func goCall(handle, store C.uintptr_t, context *C.wasmtime_context_t, args *C.wasmtime_component_val_t, nargs C.size_t,
	results *C.wasmtime_component_val_t, nresults C.size_t,
) (e *C.wasmtime_error_t) {
	s := cgo.Handle(store).Value().(*Store)
	defer func() { e = s.recovered(recover(), e) }()
	f := cgo.Handle(handle).Value().(*function)
	if int(nargs) != len(f.params) || (nresults != 0) != (f.result != nil) {
		return s.fail(errors.New("the guest's type of a host function is not the host's"))
	}
	s.converted()
	x := crossing{store: s, linker: f.linker, context: context, hosted: true, checked: f.checks}
	values := make([]abi.Value, nargs)
	given := unsafe.Slice(args, nargs)
	for i := range given {
		var err error
		if values[i], err = x.lift(f.params[i], &given[i]); err != nil {
			return s.fail(err)
		}
	}
	for i := range given { // the function may take long
		C.wasmtime_component_val_delete(&given[i])
		given[i] = cval{kind: C.WASMTIME_COMPONENT_BOOL}
	}
	result, err := f.call(s, values)
	if err != nil {
		return s.fail(err)
	}
	if s.spent() { // others may have used the budget up meanwhile
		return s.fail(ErrCPU)
	}
	if f.result != nil {
		if err := s.returns(weigh(f.result, result)); err != nil {
			return s.fail(err)
		}
		if err := x.lower(f.result, result, results); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

//export goDrop
func goDrop(handle, store C.uintptr_t, rep C.uint32_t) (e *C.wasmtime_error_t) {
	s := cgo.Handle(store).Value().(*Store)
	defer func() { e = s.recovered(recover(), e) }()
	drop := cgo.Handle(handle).Value().(func(*Store, abi.Rep) error)
	if err := drop(s, abi.Rep(rep)); err != nil {
		return s.fail(err)
	}
	return nil
}

// fail stores a Go error for the caller of Call and gives wasmtime one to unwind with.
func (s *Store) fail(err error) *C.wasmtime_error_t {
	if s.failure == nil {
		s.failure = err
	}
	return newError("host function failed")
}

func (s *Store) recovered(value any, e *C.wasmtime_error_t) *C.wasmtime_error_t {
	if value == nil {
		return e
	}
	return s.fail(NewPanicError(value))
}
