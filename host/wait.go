package host

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
)

// alarm calls a function once, when any of what it was registered with rings it.
type alarm struct {
	state atomic.Int32
	wake  func()
	stops []func() bool
}

const (
	alarmArmed = 1 + iota
	alarmRung
)

// ring may be called from any goroutine, any number of times.
func (a *alarm) ring() {
	if a.state.Swap(alarmRung) == alarmArmed {
		a.wake()
	}
}

// arm sets the function to call. It is called at once if the alarm has rung.
func (a *alarm) arm(wake func()) {
	a.wake = wake
	if !a.state.CompareAndSwap(0, alarmArmed) {
		wake()
	}
}

// woken arms the alarm with a channel that is closed when it rings.
func (a *alarm) woken() <-chan struct{} {
	rung := make(chan struct{})
	a.arm(func() { close(rung) })
	return rung
}

// end ends the registrations. The alarm may still ring.
func (a *alarm) end() {
	for _, stop := range a.stops {
		stop()
	}
	a.stops = nil
}

// watch is an alarm for what a call waits for, and for the end of its grants. It counts towards the grants of what it waits for, until
// over.
type watch struct {
	alarm
	grants []*Grant
	idle   atomic.Bool // it has taken as long as a durable call waits
}

func (c *call) watch(pollables []*handle) *watch {
	w := &watch{}
	ring := w.ring
	w.stops = append(make([]func() bool, 0, 1+len(pollables)), context.AfterFunc(c.ctx, ring))
	for _, l := range c.leases {
		if !l.swept {
			w.stops = append(w.stops, context.AfterFunc(l.ctx, ring)) // the end of a lease has already ended its context
		}
	}
	for _, h := range pollables {
		w.stops = append(w.stops, h.value.(*abi.Pollable).OnReady(ring))
		w.grants = append(w.grants, h.lease.granted()...)
	}
	if w.grants = union(w.grants); spend(w.grants, cost{running: 1}) != nil {
		w.grants = nil
	}
	return w
}

func (w *watch) over() {
	w.end()
	leave(w.grants)
}

// wait returns the indices of the ready pollables, once at least one is ready. The guest gives up its turn meanwhile.
func (c *call) wait(pollables []*handle) (ready []abi.Value, err error) {
	if ready = readyOf(pollables); len(ready) > 0 {
		return ready, nil
	}
	cancelled := c.store.Blocking(func() { ready, _, err = c.await(pollables, nil, nil) })
	return ready, cmp.Or(err, cancelled)
}

// await is wait outside of the engine. It also ends at a time, or when it got a place. Then it has proceeded.
func (c *call) await(pollables []*handle, until <-chan time.Time, place chan<- struct{}) (ready []abi.Value, proceeded bool, err error) {
	for {
		if ready := readyOf(pollables); len(ready) > 0 {
			return ready, false, nil
		}
		if c.idle != nil && c.ctx.Err() == nil && c.idle() {
			continue
		}
		w := c.watch(pollables)
		select {
		case <-w.woken():
		case <-until:
			proceeded = true
		case place <- struct{}{}:
			proceeded = true
		}
		w.over()
		if c.ctx.Err() != nil {
			return nil, proceeded, context.Cause(c.ctx)
		}
		c.closeOver()
		if proceeded {
			return readyOf(pollables), true, nil
		}
	}
}
