package wasmtime

/*
#include "shim.h"
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"errors"
	"runtime/cgo"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/stilehost/stile/abi"
)

// ErrPoolFull is the error of Instantiate if every slot of the engine's pool is taken.
var ErrPoolFull = errors.New("the pool of instances is full")

// Limits bound one store.
type Limits struct {
	// Memory bounds the bytes of each linear memory.
	Memory int64
	// CPU is the thread time that instantiation and calls may use together.
	CPU time.Duration
	// Outer is the budget of the store whose guest started this one. This store's thread time counts there too. It may be nil.
	Outer *Budget
	// Budget, if not nil, is used instead of CPU and Outer: that of an earlier store for the same call, which this store goes on with.
	Budget *Budget
	// Context ends the wait for a turn and for bytes. To end a running guest, call Cancel as well. Default: it never ends.
	Context context.Context
	// User is whose guest it is. Users take turns, and so do the guests of one.
	User string
}

// Store holds one instance and everything that belongs to it. Only one goroutine at a time may use it, except that Cancel may be
// called from any. Close frees it.
type Store struct {
	// Data is the embedder's; host functions read it.
	Data any

	engine  *Engine
	budget  *Budget
	c       *C.wasmtime_store_t
	context *C.wasmtime_context_t
	handle  cgo.Handle
	failure error
	ctx     context.Context
	user    string
	turn    bool          // whether this store has a turn to run
	keeps   bool          // whether it keeps its turn after a call
	since   time.Time     // when it got a turn that it keeps
	resumed int           // how often the running call took its turn again
	held    int64         // bytes of the engine that the store holds for conversions
	asked   bool          // whether they are for the values that the guest passes next
	roomy   bool          // whether they are for the host function's result
	used    time.Duration // thread time, once it is closed

	mu    sync.Mutex // guards state against Cancel during Close, and the fields below
	state *C.stile_state
	watch *time.Timer // looks at the clock of the thread during a host function; made on first use
	over  func()      // ends the running host function; nil while none is watched
	due   bool        // the next host function must check as it begins
}

// NewStore makes an empty store.
func (e *Engine) NewStore(limits Limits, data any) *Store {
	if limits.Context == nil {
		limits.Context = context.Background()
	}
	e.doors <- struct{}{}
	defer func() { <-e.doors }()
	s := &Store{Data: data, engine: e, ctx: limits.Context, user: limits.User, state: (*C.stile_state)(C.calloc(1, C.sizeof_stile_state))}
	s.handle = cgo.NewHandle(s)
	s.state.handle = C.uintptr_t(s.handle)
	if s.budget = limits.Budget; s.budget == nil || !s.budget.retain() {
		s.budget = newBudget(limits.CPU, limits.Outer)
	}
	s.state.budget = s.budget.c
	s.state.waiting = (*C.int32_t)(unsafe.Pointer(e.waiting))
	s.c = C.stile_store_new(e.c, s.state, C.int64_t(limits.Memory), maxTableElements, maxCoreInstances, maxTables, maxMemories)
	s.context = C.wasmtime_store_context(s.c)
	return s
}

// run calls f, which enters the guest, in a turn of this store. What the store holds for the guest's result stays held.
func (s *Store) run(f func() *C.wasmtime_error_t) error {
	if s.turn && time.Since(s.since) > Tick { // as a guest gives it up
		s.pause()
	}
	if !s.turn {
		s.resumed = 0
		if s.turn = s.engine.enter(s.ctx, s.user, false); !s.turn {
			return ErrCancelled
		}
		if s.keeps {
			s.since = time.Now()
		}
	}
	defer func() {
		if !s.keeps {
			s.pause()
		}
	}()
	err := s.explain(f())
	if err != nil || s.state.converting != C.STILE_GIVING {
		s.Release()
	}
	return err
}

// Keep has the store keep its turn from its next call on, until Rest, or for a [Tick]. So what follows waits for no others, and finds its
// data in the processor's caches. The embedder must not wait for anything meanwhile.
func (s *Store) Keep() { s.keeps = true }

// Rest ends what Keep began. Doing it again does nothing.
func (s *Store) Rest() {
	s.keeps = false
	s.pause()
}

func (s *Store) pause() {
	if s.turn {
		s.turn = false
		s.engine.leave()
	}
}

// soonest is how often a guest takes its turn again before those of its user that wait to run. A guest that was interrupted holds a thread, so a
// short call should end before others begin. One that runs on waits like all.
const soonest = 16

// resume takes the turn again. If the store was cancelled, it returns false and the guest must not continue, because without a turn
// nothing advances the epoch that would end it.
func (s *Store) resume() bool {
	s.resumed++
	if s.turn = s.engine.enter(s.ctx, s.user, s.resumed <= soonest); !s.turn {
		C.stile_cancel(s.state)
	}
	return s.turn
}

// Blocking runs f, which may wait long, outside the turn of the guest that called it. Only host functions may call it, and they must
// return its error, ErrCancelled.
func (s *Store) Blocking(f func()) (err error) {
	C.stile_charge(s.state) // before others run; see on_epoch
	s.pause()
	defer func() {
		if !s.resume() {
			err = ErrCancelled
		}
	}()
	f()
	return nil
}

// The timer looks at the clock of the thread firstLook after the first host function began. After
// that, it looks when the rest of the budget could be used up, but at least every lastLook, because
// other stores may draw on the same budget. If no host function runs at that moment, the next
// one looks as it begins.
const (
	firstLook = 10 * time.Millisecond
	leastLook = time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// Watch arranges that over is called, at most once, if the store's processor time is used up before Unwatch. over must end the host
// function that runs on the guest's thread. Only host functions may call Watch.
func (s *Store) Watch(over func()) {
	s.mu.Lock()
	s.over, over = over, nil
	switch {
	case s.watch == nil:
		s.watch = time.AfterFunc(firstLook, s.look)
	case s.due:
		over = s.looked()
	}
	s.mu.Unlock()
	if over != nil {
		over()
	}
}

// Unwatch ends what Watch began.
func (s *Store) Unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = nil
}

// look runs when the timer fires.
func (s *Store) look() {
	var over func()
	s.mu.Lock()
	if s.due = s.over == nil; !s.due && s.state != nil {
		over = s.looked()
	}
	s.mu.Unlock()
	if over != nil {
		over()
	}
}

// looked charges the store for its thread's time so far. If nothing is left, it returns the function to call. The thread is in a
// host function, so nothing else uses the state.
func (s *Store) looked() (over func()) {
	left := time.Duration(C.stile_left(s.state))
	s.due = false
	s.watch.Reset(min(max(left, leastLook), lastLook))
	if left > 0 {
		return nil
	}
	over, s.over = s.over, nil
	return over
}

// Reserve takes bytes of the engine for the next conversion, in place of those that the store holds, and waits for them outside the
// turn. They are returned when the guest calls the host again, and at the latest by Close. Those for values that the guest gives are also
// returned when it runs for a tick.
func (s *Store) Reserve(bytes int64) error {
	if bytes > MaxConversion {
		return ErrConversion
	}
	s.Release() // a store that waited for more while holding some could cause a deadlock
	s.engine.collect(bytes)
	if !s.engine.converting.TryTake(s.user, bytes) {
		var failed, err error
		acquire := func() { failed = s.engine.converting.TakeFor(s.ctx, s.user, bytes) }
		if s.turn {
			err = s.Blocking(acquire)
		} else { // in a host function that has given up the turn
			acquire()
		}
		if failed != nil {
			return ErrCancelled
		} else if err != nil {
			s.engine.converting.GiveBack(bytes)
			return err
		}
	}
	s.held, s.state.converting = bytes, C.STILE_GIVING
	return nil
}

// Ask is Reserve for the values that the guest passes or returns next. Without bytes, it says that the last value from the host has
// arrived.
func (s *Store) Ask(bytes int64) error {
	if bytes == 0 {
		s.Release()
		return nil
	}
	err := s.Reserve(bytes)
	s.asked = err == nil
	return err
}

// Room is Reserve for a text of this many bytes that the running host function is about to make and return.
func (s *Store) Room(bytes int64) error {
	weight := weighText(bytes)
	if weight <= FreeConversion {
		return nil
	}
	err := s.Reserve(weight)
	s.roomy = err == nil
	return err
}

// returns takes bytes for a host function's result, unless Room has taken them. They are held until the guest has received it.
func (s *Store) returns(bytes int64) error {
	enough := s.roomy && bytes <= s.held
	s.roomy = false
	if bytes <= FreeConversion {
		s.Release()
		return nil
	}
	if !enough {
		if err := s.Reserve(bytes); err != nil {
			return err
		}
	}
	s.state.converting, s.state.receiving = C.STILE_RECEIVING, 0
	return nil
}

// converted gives back the bytes held for the last value that crossed, unless they are for the current one.
func (s *Store) converted() {
	if !s.asked {
		s.Release()
	}
	s.asked = false
}

// Release gives back the bytes that Reserve took.
func (s *Store) Release() {
	if s.held > 0 {
		s.engine.converting.GiveBack(s.held)
	}
	s.held, s.state.converting = 0, C.STILE_NOTHING
}

// goYield lets other guests run. It gives back the bytes held for values that the guest gave: that conversion is over because the
// guest runs.
//
//export goYield
func goYield(store C.uintptr_t) {
	s := cgo.Handle(store).Value().(*Store)
	if s.state.converting == C.STILE_GIVING {
		s.Release()
	}
	s.pause()
	s.resume()
}

// Cancel ends what runs in the store within a [Tick]. The host itself must end a blocking host function. Cancel may be called at any
// time, even after Close.
func (s *Store) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil {
		C.stile_cancel(s.state)
	}
}

// CPU returns the thread time used so far. For calls shorter than a [Tick], it is the time they took.
func (s *Store) CPU() time.Duration {
	if s.state == nil {
		return s.used
	}
	return time.Duration(s.state.cpu_used)
}

// spent reports whether one of the store's budgets is. Then its guest must not be entered.
func (s *Store) spent() bool {
	for b := s.state.budget; b != nil; b = b.outer {
		if atomic.LoadUint64((*uint64)(&b.used)) >= uint64(b.limit) {
			return true
		}
	}
	return false
}

// Close frees the store and its instance, and charges the budget for the time. Destructors of resources do not run. It is idempotent.
func (s *Store) Close() {
	s.Rest()
	s.engine.doors <- struct{}{}
	defer func() { <-s.engine.doors }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return
	}
	s.Release()
	if s.watch != nil {
		s.watch.Stop()
	}
	C.stile_store_delete(s.c, s.state)
	s.used = s.CPU()
	s.handle.Delete()
	C.free(unsafe.Pointer(s.state))
	s.state = nil
	s.budget.release()
}

// Budget returns the thread time of a store, for the [Limits] of other stores. It may outlive the store.
func (s *Store) Budget() *Budget { return s.budget }

// Confine bounds the thread time of what runs on the store until end is called, within its other budgets. end reports whether the time
// was used up.
func (s *Store) Confine(to time.Duration) (end func() (spent bool)) {
	b := newBudget(to, s.budget)
	set := func(now *Budget) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.state != nil {
			s.state.budget = now.c
		}
	}
	set(b)
	return func() bool {
		set(s.budget)
		defer b.release()
		defer b.release()
		return atomic.LoadUint64((*uint64)(&b.c.used)) >= uint64(b.c.limit)
	}
}

// Budget is thread time that several stores share. It is safe for concurrent use.
type Budget struct {
	c     *C.stile_budget
	outer *Budget
	users atomic.Int64 // the store that it belongs to and the budgets inside it; it is freed at 0
}

func newBudget(limit time.Duration, outer *Budget) *Budget {
	b := &Budget{c: (*C.stile_budget)(C.calloc(1, C.sizeof_stile_budget))}
	b.users.Store(1)
	b.c.limit = C.uint64_t(limit)
	if outer != nil && outer.retain() {
		b.outer, b.c.outer = outer, outer.c
	}
	return b
}

// Hold keeps the budget after its store was closed, until release is called. The store is open.
func (b *Budget) Hold() (release func()) {
	b.users.Add(1)
	return b.release
}

// Charge charges thread time for work on other threads for the store's guest, and reports whether any time is left.
func (b *Budget) Charge(time time.Duration) bool {
	if !b.retain() {
		return false
	}
	defer b.release()
	left := true
	for at := b.c; at != nil; at = at.outer {
		left = atomic.AddUint64((*uint64)(&at.used), uint64(time)) < uint64(at.limit) && left
	}
	return left
}

// Used returns what was charged so far. It is 0 if the call has ended.
func (b *Budget) Used() time.Duration {
	if !b.retain() {
		return 0
	}
	defer b.release()
	return time.Duration(atomic.LoadUint64((*uint64)(&b.c.used)))
}

// retain returns false if nothing uses the budget any more. The call has then ended, and its work ends by itself.
func (b *Budget) retain() bool {
	for n := b.users.Load(); n > 0; n = b.users.Load() {
		if b.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (b *Budget) release() {
	for ; b != nil && b.users.Add(-1) == 0; b = b.outer {
		C.free(unsafe.Pointer(b.c))
	}
}

// Instance is a component's instance in one store, and valid as long as the store.
type Instance struct {
	store  *Store
	linker *Linker
	c      C.wasmtime_component_instance_t
}

// Instantiate starts a fresh instance. An error is one of [Instance.Call]'s, or an *InstanceError.
func (s *Store) Instantiate(l *Linker, c *Component) (*Instance, error) {
	i := &Instance{store: s, linker: l}
	if err := s.run(func() *C.wasmtime_error_t { return C.stile_instantiate(l.c, s.context, c.c, s.state, &i.c) }); err != nil {
		if text, ok := errors.AsType[engineError](err); ok {
			err = &InstanceError{Reason: string(text)}
		}
		return nil, err
	}
	return i, nil
}

// Call calls an exported function. An error is a *TrapError, ErrCPU, ErrLate, ErrCancelled, a host function's error, or wasmtime's own.
// After any error, the instance must not be called again. An argument for a string may be a string or bytes.
func (i *Instance) Call(x *Export, params []*abi.Type, result *abi.Type, args ...abi.Value) (value abi.Value, err error) {
	err = i.call(x, params, result != nil, args, func(cross *crossing, out *cval) (err error) {
		value, err = cross.lift(result, out)
		return err
	})
	return value, err
}

// CallText is Call of a function that returns a string. It appends that to a buffer.
func (i *Instance) CallText(to []byte, x *Export, params []*abi.Type, args ...abi.Value) ([]byte, error) {
	err := i.call(x, params, true, args, func(_ *crossing, out *cval) error {
		if out.kind != C.WASMTIME_COMPONENT_STRING {
			return mismatch(&abi.Type{Kind: abi.KindString}, out)
		}
		to = append(to, bytesOf(of[C.wasm_name_t](out))...)
		return nil
	})
	return to, err
}

func (i *Instance) call(x *Export, params []*abi.Type, returns bool, args []abi.Value, lift func(*crossing, *cval) error) error {
	s := i.store
	cross := crossing{store: s, linker: i.linker, context: s.context}
	values := make([]C.wasmtime_component_val_t, len(args))
	defer func() {
		for n := range values {
			C.wasmtime_component_val_delete(&values[n])
		}
	}()
	for n, arg := range args {
		if err := cross.lower(params[n], arg, &values[n]); err != nil {
			return err
		}
	}
	var failed error
	if err := s.run(func() *C.wasmtime_error_t {
		var out cval
		var results C.size_t
		if returns {
			results = 1
		}
		e := C.stile_call(&i.c, s.context, x.c, s.state, unsafe.SliceData(values), C.size_t(len(values)), &out, results)
		if e == nil && returns {
			// Within the turn, because the engine holds many times the size of the result.
			failed = lift(&cross, &out)
			C.wasmtime_component_val_delete(&out)
		}
		return e
	}); err != nil {
		// During a call, the engine itself reports only wrong results of the guest.
		if text, ok := errors.AsType[engineError](err); ok {
			err = &TrapError{Reason: string(text)}
		}
		return err
	}
	return failed
}

// explain converts an error of the engine into its cause.
func (s *Store) explain(e *C.wasmtime_error_t) error {
	err := takeError(e)
	switch {
	case err == nil:
		return nil
	case s.failure != nil:
		return s.failure
	case s.state.ended == C.STILE_CANCELLED:
		return ErrCancelled
	case s.state.ended == C.STILE_CPU:
		return ErrCPU
	case s.state.ended == C.STILE_LATE:
		return ErrLate
	case strings.Contains(err.Error(), "maximum concurrent"):
		return ErrPoolFull
	default:
		return err
	}
}
