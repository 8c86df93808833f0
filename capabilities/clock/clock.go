// Package clock lets a guest know the time and wait: the capability stile:capability/clock. Each call gets its own clock, so
// monotonic time starts at zero with the call and no timer outlives it.
package clock

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/clock.wit.
const Interface = "stile:capability/clock@0.1.0"

// Clock is the right to know the time. It is immutable and safe for concurrent use.
type Clock struct {
	fixed *time.Time
	now   func() time.Time
}

// System returns the clock of this machine.
func System() *Clock { return By(time.Now) }

// By returns a clock whose time is that of now, which is called for each question. Waits take as long as with [System].
func By(now func() time.Time) *Clock { return &Clock{now: now} }

// Fixed returns a clock that stands still at t. Monotonic time stays 0, and every wait ends at once.
func Fixed(t time.Time) *Clock { return &Clock{fixed: &t} }

// Interface implements [abi.Capability].
func (c *Clock) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Clock) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener]; the value is a [*Running].
func (c *Clock) Open(context.Context) (any, error) {
	return &Running{fixed: c.fixed, now: c.now, start: time.Now(), timers: map[*time.Timer]struct{}{}}, nil
}

// Reopen implements [abi.Reopener]: monotonic time goes on.
func (c *Clock) Reopen(_ context.Context, state []byte) (any, error) {
	r := &Running{fixed: c.fixed, now: c.now, start: time.Now(), timers: map[*time.Timer]struct{}{}}
	return r, r.start.UnmarshalText(state)
}

// Running is the clock of one call. It is safe for concurrent use. The caller of Open closes it.
type Running struct {
	fixed *time.Time
	now   func() time.Time // nil if fixed
	start time.Time

	mu     sync.Mutex
	timers map[*time.Timer]struct{} // pending; nil once closed
}

// Quick implements [abi.Quick].
func (*Running) Quick() []string { return []string{"clock.now", "clock.monotonic", "clock.subscribe"} }

// Repeat implements [abi.Repeatable].
func (*Running) Repeat(string, []abi.Value) abi.Repeat { return abi.Reads }

// Save implements [abi.Lasting].
func (r *Running) Save() (state []byte, ok bool) {
	state, err := r.start.MarshalText()
	return state, err == nil
}

// Restore implements [abi.Restorer]: a pollable is ready at the time at which it was to be.
func (r *Running) Restore(ctx context.Context, _ string, state []byte) (any, error) {
	var at time.Time
	if err := at.UnmarshalText(state); err != nil {
		return nil, err
	}
	if r.fixed != nil {
		return abi.Ready(), nil
	}
	return r.Subscribe(ctx, uint64(max(0, at.Sub(r.now().Round(0))))) // by the wall clock
}

// Now returns milliseconds since 1970-01-01T00:00:00Z, and 0 before that.
func (r *Running) Now(context.Context) uint64 {
	if r.fixed != nil {
		return uint64(max(r.fixed.UnixMilli(), 0))
	}
	return uint64(max(r.now().UnixMilli(), 0))
}

// Monotonic returns nanoseconds since the clock was opened.
func (r *Running) Monotonic(context.Context) uint64 {
	if r.fixed != nil {
		return 0
	}
	return uint64(time.Since(r.start))
}

// Subscribe returns a pollable that is ready after the given time. It
// never becomes ready if that is more than about 292 years. Its timer ends when it is closed. The error is
// [abi.ErrExhausted] if the call has 1,024 timers pending, and [abi.ErrRevoked] after Close.
func (r *Running) Subscribe(_ context.Context, nanoseconds uint64) (*abi.Pollable, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.timers == nil:
		return nil, abi.ErrRevoked
	case r.fixed != nil || nanoseconds == 0:
		return abi.Ready(), nil
	case nanoseconds > math.MaxInt64:
		return new(abi.Pollable), nil
	case len(r.timers) >= double.MaxWaits:
		return nil, double.ErrWaits()
	}
	var t *time.Timer
	ready := abi.NewPollable(func() {
		t.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.timers, t)
	})
	t = time.AfterFunc(time.Duration(nanoseconds), func() {
		r.mu.Lock()
		open := r.timers != nil // or closed while this timer waited for the lock
		delete(r.timers, t)
		r.mu.Unlock()
		if open {
			ready.SetReady()
		}
	})
	r.timers[t] = struct{}{}
	at := r.now().Add(time.Duration(nanoseconds)).UTC().Round(0)
	state, _ := at.MarshalText()
	return ready.Lasts(abi.Wait{At: at, State: state}), nil
}

// Close stops every pending timer. Their pollables never become ready. It always returns nil.
func (r *Running) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.timers {
		t.Stop()
	}
	r.timers = nil
	return nil
}
