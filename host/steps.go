package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// stepping is the part of a call that is made in steps.
type stepping struct {
	on     bool
	parked []*handle   // what the guest announced in this step
	list   []abi.Value // the same as it was passed
	waited time.Duration

	instance *wasmtime.Instance
	began    time.Time // the wait
	ended    error     // why it ended before anything was ready
	failed   error     // of the host or the component meanwhile
	packed   *packed   // if the call has no instance
	// moving is set while functions of stile:extension/memory run, and discarding while those may drop handles.
	moving, discarding bool
}

// Stepwise reports whether calls of the component can be made in steps, so that they take no thread while they wait.
func (c *Component) Stepwise() bool { return c.start.index != nil }

// park remembers what the guest will wait for without a stack. It returns false if the guest must wait in poll. A replay has the
// answer of poll already.
func (c *call) park(args []abi.Value) (abi.Value, error) {
	if !c.on || c.replay != nil || c.journal != nil && len(c.journal.rest) > 0 {
		return false, nil
	}
	list := args[0].([]abi.Value)
	pollables, err := c.pollables(list)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pollables, (*handle).ready) {
		return false, nil
	}
	c.parked, c.list = pollables, list
	return true, nil
}

// waits reports whether the guest waits for what it announced, after a step that returned v or err. Otherwise it returns the result of
// the call.
func (c *call) waits(v abi.Value, err error) (waits bool, _ abi.Value, _ error) {
	if err != nil {
		return false, nil, err
	}
	outcome := v.(abi.Variant)
	switch {
	case outcome.Case != 0:
		return false, outcome, nil
	case !resting(v):
		return false, okResult(outcome.Value.(abi.Variant).Value), nil
	case c.parked == nil:
		return false, nil, &TrapError{Reason: "the guest waits, but for nothing that it announced"}
	}
	return true, nil, nil
}

// resting reports whether the result of a step says that the guest waits.
func resting(v abi.Value) bool {
	outcome := v.(abi.Variant)
	return outcome.Case == 0 && outcome.Value.(abi.Variant).Case == 0
}

// pause is the first part of a wait. It waits for a moment. If nothing is ready then, it packs the call if it can, and returns what to
// sleep for.
func (c *call) pause(of *Component) (long *watch) {
	c.began = time.Now()
	c.store.Release()
	switch {
	case c.idle != nil:
		_, _, c.ended = c.await(c.parked, nil, nil)
		return nil
	case of.memory != nil:
		var over bool
		if over, c.ended = c.giveBack(of); over {
			return nil
		}
	}
	return c.doze()
}

// doze watches what the call waits for. A durable call that is packed and could sleep also wakes up after a while, or at once if memory is short, to
// sleep.
func (c *call) doze() *watch {
	w := c.watch(c.parked)
	if c.journal == nil || c.journal.Idle <= 0 || c.packed == nil {
		return w
	}
	if _, err := c.saveHandles(); err == nil {
		idle := c.journal.Idle
		if c.host.packed.Free() < c.host.options.PackedMemory/4 {
			idle = 0
		}
		w.stops = append(w.stops, time.AfterFunc(idle, func() {
			w.idle.Store(true)
			w.ring()
		}).Stop)
	}
	return w
}

// giveBack waits, and packs the call if it takes long. It reports whether the wait is over.
func (c *call) giveBack(of *Component) (over bool, err error) {
	if !c.host.slots.short() || time.Since(c.place.since) < turn {
		if ready, err := c.awaitFor(c.host.patience); len(ready) > 0 || err != nil {
			return true, err
		}
	} // else its turn is over, however short the wait
	if !c.host.slots.short() && !c.soon() {
		if ready, err := c.awaitFor(morePatience); len(ready) > 0 || err != nil {
			return true, err
		}
	}
	for {
		// Others may pack for long, so the call continues if it can do so earlier.
		ready, placed, err := c.await(c.parked, nil, c.host.packing)
		if placed && (len(ready) > 0 || err != nil) {
			<-c.host.packing
		}
		if len(ready) > 0 || err != nil {
			return true, err
		}
		c.host.workers.run(func() { c.packed, err = c.pack(of, c.instance) })
		switch {
		case errors.Is(err, errBusy):
			if ready, err := c.awaitFor(c.host.patience); len(ready) > 0 || err != nil {
				return true, err
			}
		case errors.Is(err, errKept) && c.journal != nil && c.journal.Idle > 0: // it can sleep once there is room to pack it
			if ready, err := c.awaitFor(max(min(c.journal.Idle, time.Second), morePatience)); len(ready) > 0 || err != nil {
				return true, err
			}
		case err != nil && !errors.Is(err, errKept) && c.ctx.Err() == nil:
			c.failed = err
			return true, nil
		default:
			return false, nil
		}
	}
}

// slept ends a sleep. It reports whether the call needs a slot to continue. If only a grant has ended that the call does not wait for, it
// returns what to sleep for again.
func (c *call) slept(of *Component, w *watch) (again *watch, needs bool) {
	if w != nil {
		w.over()
		c.closeOver()
		if c.ended = context.Cause(c.ctx); c.ended == nil && !slices.ContainsFunc(c.parked, (*handle).ready) {
			if w.idle.Load() {
				asleep, err := c.sleep(of)
				if err == nil {
					c.failed = asleep
					return nil, false
				}
				if !errors.As(err, new(*awakeError)) {
					c.failed = err
					return nil, false
				}
			}
			return c.watch(c.parked), false
		}
	}
	if c.ended == nil { // a call that this one waited for may have ended because the host closes
		c.ended = context.Cause(c.host.closing)
	}
	return nil, c.failed == nil && c.packed != nil && c.ended == nil
}

// wake is the last part of a wait, once the call has the slot that it needs. It runs the next step, or has poll fail if the call ends
// instead.
func (c *call) wake(of *Component) (v abi.Value, err error) {
	p, ended := c.packed, c.ended
	c.packed, c.ended = nil, nil
	defer c.rest()
	switch {
	case c.failed != nil && p != nil:
		c.host.packed.Give(c.frame.user, p.held)
	case c.failed != nil || p == nil:
	case ended != nil:
		c.host.packed.Give(c.frame.user, p.held)
	default:
		if c.instance, c.failed = c.unpack(of, p); c.failed != nil && c.ctx.Err() != nil {
			ended = context.Cause(c.ctx)
		}
	}
	c.waited += time.Since(c.began)
	if err = c.failed; ended != nil {
		c.usage.Operations++
		c.note(c.host.poll, c.parked[0].binding, []abi.Value{c.list}, nil, ended, 0)
		err = ended
	}
	if err == nil {
		err = c.frame.work(waitTime + time.Duration(len(c.parked)+len(c.leases))*watchTime)
	}
	c.parked, c.list = nil, nil
	if err != nil {
		return nil, err
	}
	return c.finished(of.resume.in(c.instance))
}

// near reports whether a time that a call waits for comes before the call would give its instance back.
func (c *call) near() bool {
	return slices.ContainsFunc(c.parked, func(h *handle) bool {
		w, _ := h.value.(*abi.Pollable).Lasting()
		return !w.At.IsZero() && time.Until(w.At) < patience
	})
}

// soon reports whether a durable call sleeps before others would give their instances back.
func (c *call) soon() bool {
	return c.journal != nil && c.journal.Idle > 0 && c.journal.Idle < morePatience
}

// awaitFor waits for what the guest announced, but no longer than this.
func (c *call) awaitFor(patience time.Duration) (ready []abi.Value, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	ready, _, err = c.await(c.parked, timer.C, nil)
	return ready, err
}
