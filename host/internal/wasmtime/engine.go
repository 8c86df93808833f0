// Package wasmtime binds the component half of wasmtime's C API, which the Go module wasmtime-go leaves out: engines with a
// pool of instance slots, components and their types, host-defined functions and resources, and calls with limits. It is the
// only package of this module with cgo or unsafe. Its API has only Go values and the types of package abi.
package wasmtime

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall
#include "shim.h"
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	_ "github.com/bytecodealliance/wasmtime-go/v44" // brings the library and the flags to link it

	"github.com/stilehost/stile/internal/turns"
)

// Tick is how often a running guest checks whether it was cancelled or has passed a limit.
const Tick = C.STILE_TICK * time.Nanosecond

// Pool sizes an [Engine]. All fields must be positive.
type Pool struct {
	// Instances is how many components may be live at once.
	Instances int
	// WarmSlots is how many unused slots keep memory resident.
	WarmSlots int
	// MaxMemory bounds the bytes of one linear memory.
	MaxMemory int64
	// KeepResident is how many bytes of each slot are reset in place when its instance ends, instead of being returned to the
	// kernel. More makes starts faster and warm slots larger.
	KeepResident int64
	// Running is how many guests may execute at once. Others take turns.
	Running int
}

// Bounds of one instance. The pool reserves this much for each of its
// instances, so all of them fit. Compile refuses a component that needs
// more, and Instantiate refuses one that gets more from the modules it imports. Toolchains make components with one memory, up to
// three tables and, for languages that link dynamically, up to 20 core instances.
const (
	maxCoreInstances = 32 // the checks of package guard take a few of them
	maxMemories      = 1
	maxTables        = 4
	maxTableElements = 100_000
)

// MaxStack is the native stack of a guest, in bytes: 6 MiB, or less where threads have less than 8 MiB, and at least 1 MiB. A script of QuickJS
// gets its own error well before this, unless threads have less.
func MaxStack() int64 { return int64(C.stile_guest_stack()) }

const (
	// MaxConversion bounds the bytes that the host holds while one guest's values cross in one direction.
	// Conversion takes up to 110 times the size of a value before the host sees it.
	MaxConversion = 52 << 20
	// MaxReceive bounds the processor time in which a guest makes room for one value. The host holds the value meanwhile.
	MaxReceive = C.STILE_RECEIVE * time.Nanosecond
	// FreeConversion is how many bytes need no reservation.
	FreeConversion = 64 << 10
	// maxConverting is how many bytes the host may hold for the conversions of all guests. Further conversions wait.
	maxConverting = 6 * MaxConversion
)

// Maps is how many memory maps the kernel lets this process have. It is 0 if that is not known.
func Maps() int { return int(C.stile_max_maps()) }

// Engine compiles and runs components. It is safe for concurrent use. Close it after everything made with it.
type Engine struct {
	c      *C.wasm_engine_t
	active atomic.Int64
	// turns let as many guests execute as may do so at once.
	turns *turns.Places
	// doors bounds the threads that create and free stores.
	doors chan struct{}
	// waiting counts the goroutines that wait for a turn. It is C memory, because the epoch callback reads it.
	waiting *int32
	wake    chan struct{}
	stop    chan struct{}
	done    sync.WaitGroup
	// converting counts the bytes of all large conversions.
	converting *turns.Places
	// converted counts the bytes reserved for conversions since the last collection that collect requested.
	converted atomic.Int64
	closed    atomic.Bool
}

// What an engine reserves of the address space: for each instance, all that a guest can address with a guard behind it, and its tables; and
// for all else that the process needs.
const (
	instanceSpace = 4<<30 + 32<<20 + maxTables*maxTableElements*16
	otherSpace    = 4 << 30
)

// AddressSpaceError reports that this process cannot reserve the address space of a pool.
type AddressSpaceError struct {
	Bytes int64
	Err   error
}

// Error implements error.
func (e *AddressSpaceError) Error() string {
	return fmt.Sprintf("%d GiB of address space: %v", e.Bytes>>30, e.Err)
}

// Unwrap returns the system's error.
func (e *AddressSpaceError) Unwrap() error { return e.Err }

// NewEngine reserves the address space of the pool and starts the epoch ticker. An error is an *[AddressSpaceError].
func NewEngine(p Pool) (*Engine, error) {
	space := int64(p.Instances)*instanceSpace + otherSpace
	c, err := C.stile_engine_new(C.stile_pool{
		instances:      C.uint32_t(p.Instances),
		warm_slots:     C.uint32_t(p.WarmSlots),
		core_instances: maxCoreInstances,
		memories:       maxMemories,
		tables:         maxTables,
		max_memory:     C.size_t(p.MaxMemory),
		table_elements: maxTableElements,
		keep_resident:  C.size_t(p.KeepResident),
		space:          C.size_t(space),
	})
	if c == nil {
		return nil, &AddressSpaceError{space, err}
	}
	e := &Engine{
		c:       c,
		turns:   turns.New(p.Running),
		doors:   make(chan struct{}, p.Running),
		waiting: (*int32)(C.calloc(1, C.sizeof_int32_t)),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),

		converting: turns.New(maxConverting),
	}
	e.done.Go(e.tick)
	return e, nil
}

// NewCompiler makes an engine that compiles what an engine of NewEngine accepts, on all processors, and runs nothing.
func NewCompiler() *Engine {
	return &Engine{c: C.stile_compiler_new(), stop: make(chan struct{})}
}

const (
	// collectEvery is how many bytes are reserved between collections of
	// Go's heap while less than smallHeap is in use. A text of 16 MiB
	// reserves 48 MiB.
	collectEvery = 40 << 20
	smallHeap    = 32 << 20
)

// collect makes Go free the garbage of earlier large values. Go lets
// garbage grow to the size of the live heap, and never collects below
// 4 MB. The copies of a call that passes large values in a loop would be most of the memory it takes. A large heap is left to Go,
// because collecting it would cost more than the conversion.
func (e *Engine) collect(bytes int64) {
	if passed := e.converted.Add(bytes); passed < collectEvery || !e.converted.CompareAndSwap(passed, 0) {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Uint64() < smallHeap {
		runtime.GC()
	}
}

// tick advances the epoch while any call runs, and sleeps otherwise.
func (e *Engine) tick() {
	ticker := time.NewTicker(Tick)
	ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-e.wake:
		}
		ticker.Reset(Tick)
		for e.active.Load() > 0 {
			select {
			case <-e.stop:
				ticker.Stop()
				return
			case <-ticker.C:
				C.wasmtime_engine_increment_epoch(e.c)
			}
		}
		ticker.Stop()
	}
}

// enter takes a turn for a user and starts the clock. It returns false if ctx ends first. A guest that was interrupted, which holds a
// thread while it waits, enters soon: before others of its user.
func (e *Engine) enter(ctx context.Context, user string, soon bool) bool {
	if !e.turns.TryTake(user, 1) {
		atomic.AddInt32(e.waiting, 1)
		defer atomic.AddInt32(e.waiting, -1)
		take := e.turns.TakeFor
		if soon {
			take = e.turns.TakeSoon
		}
		if take(ctx, user, 1) != nil {
			return false
		}
	}
	if e.active.Add(1) == 1 {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return true
}

func (e *Engine) leave() {
	e.active.Add(-1)
	e.turns.GiveBack(1)
}

// Close stops the ticker and frees the engine. It is idempotent.
func (e *Engine) Close() {
	if e.closed.Swap(true) {
		return
	}
	close(e.stop)
	e.done.Wait()
	C.wasm_engine_delete(e.c)
	C.free(unsafe.Pointer(e.waiting))
}

func bytesPointer(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

func charPointer(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

// takeBytes copies an owned vector into Go and frees it.
func takeBytes(v *C.wasm_byte_vec_t) []byte {
	b := C.GoBytes(unsafe.Pointer(v.data), C.int(v.size))
	C.wasm_byte_vec_delete(v)
	return b
}
