package host

import (
	"context"
	"errors"
	"reflect"
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
	// moving is set while functions of stile:extension/memory run, and discarding while those may drop handles.
	moving, discarding bool
}

// Stepwise reports whether calls of the component can be made in steps, so that they take no thread while they wait.
func (c *Component) Stepwise() bool { return c.start.index != nil }

// park remembers what the guest will wait for without a stack. It returns false if the guest must wait in poll. A replay has the
// answer of poll already.
func (c *call) park(args []abi.Value) (abi.Value, error) {
	if !c.on || c.replay != nil {
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

// steps continues a call after its first step, which returned v or err. Between two steps, the goroutine of the call waits for what the
// guest announced, outside the engine.
func (c *call) steps(of *Component, i *wasmtime.Instance, v abi.Value, err error) (abi.Value, error) {
	for err == nil {
		outcome := v.(abi.Variant)
		if outcome.Case != 0 {
			return outcome, nil
		}
		if output := outcome.Value.(abi.Variant); output.Case != 0 {
			return okResult(output.Value), nil
		}
		if c.parked == nil {
			return nil, &TrapError{Reason: "the guest waits, but for nothing that it announced"}
		}
		if i, err = c.between(of, i); err == nil {
			v, err = of.resume.in(i)
		}
	}
	return nil, err
}

// between waits for what the guest announced, and returns an instance in which the call continues. If the call ends instead, poll has
// failed.
func (c *call) between(of *Component, i *wasmtime.Instance) (*wasmtime.Instance, error) {
	began := time.Now()
	c.store.Release()
	i, ended, err := c.waitWithout(of, i)
	c.waited += time.Since(began)
	if ended != nil {
		c.usage.Operations++
		c.note(c.host.poll, c.parked[0].binding, []abi.Value{c.list}, nil, ended, 0)
		err = ended
	}
	c.parked, c.list = nil, nil
	return i, err
}

// waitWithout waits, and gives the instance back meanwhile if it takes long. ended is why the wait ended before anything was ready.
func (c *call) waitWithout(of *Component, i *wasmtime.Instance) (_ *wasmtime.Instance, ended, err error) {
	whole := func() (*wasmtime.Instance, error, error) {
		_, _, ended := c.await(c.parked, reflect.SelectCase{})
		return i, ended, nil
	}
	if of.memory == nil || c.idle != nil {
		return whole()
	}
	ready, ended := c.awaitFor(patience)
	if len(ready) == 0 && ended == nil && !c.host.slots.short() {
		ready, ended = c.awaitFor(morePatience)
	}
	if len(ready) > 0 || ended != nil {
		return i, ended, nil
	}
	// Others may pack for long, so the call continues if it can do so earlier.
	var p *packed
	for p == nil {
		ready, placed, ended := c.await(c.parked, reflect.SelectCase{Dir: reflect.SelectSend, Chan: reflect.ValueOf(c.host.packing), Send: reflect.ValueOf(struct{}{})})
		if placed && (len(ready) > 0 || ended != nil) {
			<-c.host.packing
		}
		if len(ready) > 0 || ended != nil {
			return i, ended, nil
		}
		c.host.workers.run(func() { p, err = c.pack(of, i) })
		if errors.Is(err, errBusy) {
			if ready, ended := c.awaitFor(patience); len(ready) > 0 || ended != nil {
				return i, ended, nil
			}
			continue
		}
		if err != nil {
			if !errors.Is(err, errKept) && c.ctx.Err() == nil {
				return nil, nil, err
			}
			return whole()
		}
	}
	if _, _, ended = c.await(c.parked, reflect.SelectCase{}); ended != nil {
		c.host.packed.Release(p.held)
		return nil, ended, nil
	}
	if i, err = c.unpack(of, p); err != nil && c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx), nil
	}
	return i, nil, err
}

// awaitFor waits for what the guest announced, but no longer than this.
func (c *call) awaitFor(patience time.Duration) (ready []abi.Value, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	ready, _, err = c.await(c.parked, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)})
	return ready, err
}
