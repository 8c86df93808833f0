package double

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
)

// start is the time when a test begins, unless the test sets another.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// MaxWaits is how many waits of one call may be pending, here and with the machine's clock.
const MaxWaits = 1024

// ErrWaits is the error of one wait more.
func ErrWaits() error {
	return abi.Errorf(abi.CodeExhausted, "clock timers: limit %d pending in one call", MaxWaits)
}

// Clock is a clock with the methods of stile:capability/clock. Its time passes only while the guest waits for it, and then without
// delay. All clock bindings of a test share it. It is safe for concurrent use.
type Clock struct {
	// Start is the time when the test begins. Set it before then.
	Start time.Time

	mu    sync.Mutex
	now   time.Duration // since Start
	waits []wait
}

// NewClock returns the clock of a test.
func NewClock() *Clock { return &Clock{Start: start} }

// wait is a pollable that is ready when it is due.
type wait struct {
	due   time.Duration
	ready *abi.Pollable
}

// Time returns the time of the clock.
func (c *Clock) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Start.Add(c.now)
}

// Now implements the method `now`.
func (c *Clock) Now(context.Context) uint64 { return uint64(max(c.Time().UnixMilli(), 0)) }

// Monotonic implements the method `monotonic`.
func (c *Clock) Monotonic(context.Context) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.now)
}

// Subscribe implements the method `subscribe`. A wait of 292 years or more never ends.
func (c *Clock) Subscribe(_ context.Context, nanoseconds uint64) (*abi.Pollable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ready *abi.Pollable
	ready = abi.NewPollable(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waits = slices.DeleteFunc(c.waits, func(w wait) bool { return w.ready == ready })
	})
	switch {
	case nanoseconds == 0:
		return abi.Ready(), nil
	case nanoseconds > uint64(math.MaxInt64-c.now):
		return ready, nil
	case len(c.waits) >= MaxWaits:
		return nil, ErrWaits()
	}
	c.waits = append(c.waits, wait{c.now + time.Duration(nanoseconds), ready})
	return ready, nil
}

// Move advances to the end of the next wait, and reports whether there was one. It is the call's Idle.
func (c *Clock) Move() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waits) == 0 {
		return false
	}
	for i, w := range c.waits {
		if i == 0 || w.due < c.now {
			c.now = w.due
		}
	}
	c.waits = slices.DeleteFunc(c.waits, func(w wait) bool {
		if w.due > c.now {
			return false
		}
		w.ready.SetReady()
		return true
	})
	return true
}
