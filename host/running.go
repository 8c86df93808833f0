package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
)

// running is a call of one export, in a fresh instance, which drops everything that belonged to the call at its end. It is made in
// parts. Between two of them, when waiting is set, the call needs no goroutine. It is not on the stack, which is small while the call waits.
type running struct {
	component *Component
	ctx       context.Context         // from within
	cancel    context.CancelCauseFunc // ends ctx with the call; nil if ctx goes on after it
	request   *Request
	limits    Limits
	paid      time.Duration // processor time for checks before there is a budget
	export    export
	// prepare makes the arguments, and may call other exports before. check looks at the result while its bytes still count.
	prepare func(*call) ([]abi.Value, error)
	check   func(abi.Value) error
	in      *call
	next    part
	waiting *alarm // what the next part waits for; nil if it can run
	asleep  *watch
	// result is what the export returned, and err what went wrong. If only the cleanup failed, there are both.
	result abi.Value
	err    error
}

// part is a part of a call. It returns the one that follows at once. If there is none, the call waits or has ended.
type part func(*running) part

// enqueue begins a call: it asks for a slot.
func (r *running) enqueue() {
	c, h := r.component, r.component.host
	in := &call{host: h, place: &place{host: h}}
	r.in = in
	defer func() {
		if r.next == nil {
			r.finish()
		}
	}()
	for _, u := range []*users{&h.users, &c.users} {
		end, err := u.begin()
		if err != nil {
			r.err = err
			return
		}
		in.ends = append(in.ends, end)
	}
	in.limits = r.limits
	in.frame = newFrame(c, r.request, r.limits, frameOf(r.ctx))
	var err error
	if r.waiting, err = in.place.enter(r.ctx, in.frame); err != nil {
		r.err = explainEnd(r.ctx, r.limits, err)
		return
	}
	r.next = (*running).begin
}

// run continues a call until it has ended.
func (r *running) run() {
	for r.next != nil {
		if r.waiting != nil {
			<-r.waiting.woken()
		}
		r.advance()
	}
}

// advance continues a call until it waits or has ended: then next is nil. What it waited for must have rung.
func (r *running) advance() {
	next := r.next
	r.next, r.waiting = nil, nil
	defer func() {
		if r.next == nil { // or it panics
			r.finish()
		}
	}()
	for next != nil {
		next = next(r)
	}
}

// sleep ends a part: another follows when the alarm has rung.
func (r *running) sleep(until *alarm, next part) part {
	r.waiting, r.next = until, next
	return nil
}

// begin makes the store and the instance and calls the export, or its first step.
func (r *running) begin() part {
	if r.err = r.in.begin(r); r.err != nil {
		return nil
	}
	if d := r.request.Durable; d != nil {
		if d.State != nil {
			return r.revive()
		}
		if r.err = r.resume(); r.err != nil {
			r.err = r.in.explain(r.err)
			return nil
		}
	}
	r.result, r.err = r.in.first(r.component, r.export, r.prepare)
	return (*running).stepped
}

// revive begins a call that slept. If its log does not go on, and what it waits for is not near, it gives its slot back until that is ready.
func (r *running) revive() part {
	in := r.in
	if r.err = in.revive(r.component); r.err != nil {
		r.err = in.explain(r.err)
		return nil
	}
	if r.err = r.resume(); r.err != nil {
		r.err = in.explain(r.err)
		return nil
	}
	in.began = time.Now()
	if len(in.journal.rest) > 0 || slices.ContainsFunc(in.parked, (*handle).ready) {
		return (*running).wake
	}
	if in.near() {
		in.instance, r.err = in.unpack(r.component, in.packed)
		in.rest()
		if in.packed = nil; r.err != nil {
			r.err = in.explain(r.err)
			return nil
		}
		r.asleep = in.pause(r.component)
	} else {
		in.closeStore()
		in.place.give()
		r.asleep = in.doze()
	}
	if r.asleep == nil {
		return (*running).woken
	}
	return r.sleep(&r.asleep.alarm, (*running).woken)
}

// stepped follows a step.
func (r *running) stepped() part {
	in := r.in
	if in.on {
		var waits bool
		if waits, r.result, r.err = in.waits(r.result, r.err); waits {
			if r.asleep = in.pause(r.component); r.asleep != nil {
				return r.sleep(&r.asleep.alarm, (*running).woken)
			}
			return (*running).woken
		}
	}
	if r.err != nil {
		r.result, r.err = nil, in.explainOutput(in.explain(r.err))
		return nil
	}
	r.err = r.check(r.result)
	return nil
}

// woken follows a sleep.
func (r *running) woken() part {
	var needs bool
	if r.asleep, needs = r.in.slept(r.component, r.asleep); r.asleep != nil {
		return r.sleep(&r.asleep.alarm, (*running).woken)
	}
	if needs {
		if queued := r.in.place.ask(r.in.storeLimits.Context); queued != nil {
			return r.sleep(queued, (*running).wake)
		}
	}
	return (*running).wake
}

// wake calls the next step.
func (r *running) wake() part {
	r.result, r.err = r.in.wake(r.component)
	return (*running).stepped
}

// finish drops everything that belonged to a call, however far it came.
func (r *running) finish() {
	c := r.in
	defer func() {
		for _, end := range slices.Backward(c.ends) {
			end()
		}
	}()
	defer c.place.leave()
	if c.ctx == nil {
		return
	}
	c.clock.lap(&c.phases.Run)
	c.closeStore()
	if failed := c.end(); failed != nil {
		r.err = errors.Join(r.err, failed)
	}
	c.clock.lap(&c.phases.Close)
}
