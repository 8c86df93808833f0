package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
)

// operation is one function that guests can import, as the gate sees it.
type operation struct {
	fn *abi.Func
	// outside is set if its answer comes from outside the call. The answer is then recorded, and a replay does not call the
	// capability.
	outside bool
	// polls is set for the functions of poll. No grant refuses them, because a pollable whose grant has ended is ready.
	polls bool
	// parks is set for poll.park, which is not metered, observed or recorded: its answer only says where the guest waits.
	parks bool
	// takes and gives are set if own handles can be among its parameters or in its result.
	takes, gives bool
	// bounds are the bounds of lists among its parameters that the host itself sets.
	bounds []*bound
	// execute runs it after the gate has admitted it.
	execute func(c *call, args []abi.Value) (abi.Value, error)
}

// operation makes the gate's entry for a function.
func (h *Host) operation(f *abi.Func) (*operation, error) {
	if h.poll != nil && f == h.poll.fn {
		return h.poll, nil
	}
	op := &operation{fn: f, takes: slices.ContainsFunc(paramTypes(f), holdsHandles), gives: holdsHandles(f.Result), outside: f.Interface.Name != abi.CompressionInterface, polls: f.Interface.Name == abi.PollInterface, bounds: bounds(f, maxLists)}
	switch {
	case f.Interface.Name == abi.EnvInterface:
		op.execute = envOperations[f.Name]
	case f.Interface.Name == abi.PollInterface:
		op.parks = f.Name == "park"
		op.execute = pollOperations[f.Name]
	case f.Interface.Name == abi.CompressionInterface && f.Resource == nil:
		if open := codecs[f.Name]; open != nil {
			op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.openCodec(f, args, open) }
		}
	case f.Name == "get" && f.Resource == nil:
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.getBinding(f, args) }
	case f.Name == "put" && f.Resource == nil:
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.putBinding(f, args) }
	case strings.HasPrefix(f.Name, "[method]"):
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.method(f, args) }
	}
	if op.execute == nil {
		return nil, errors.New("only get, put and methods can be called")
	}
	return op, nil
}

// Operation is one use of a capability, or of the empty WASI world. A call's observer sees it once, after it ends. An
// operation whose arguments exceed the limit "bytes" never begins, so the observer does not see it.
type Operation struct {
	// Interface and Func name it: "stile:capability/kv@0.1.0", "[method]bucket.get".
	Interface, Func string
	// Binding is the name in the env that the handle came from. It is empty for env, poll and WASI.
	Binding string
	// Args and Result are WIT values. They must not be changed.
	Args   []abi.Value
	Result abi.Value
	// Err is set if the operation ended the call: the gate refused it, it reached a limit, failed, or panicked.
	Err error
	// Duration is the time spent in the host.
	Duration time.Duration
}

// gate is the only way from a guest to a capability. It authorises the operation, meters it, executes it, and shows it to the
// observer. A denial is a value for the guest; an error ends the call.
func (c *call) gate(op *operation, args []abi.Value) (result abi.Value, err error) {
	if op.parks {
		return op.execute(c, args)
	}
	c.usage.Operations++
	var binding string
	if c.record != nil && op.outside || c.observe != nil {
		started := time.Now()
		defer func() {
			if p := recover(); p != nil {
				err = wasmtime.NewPanicError(p)
			}
			c.note(op, binding, args, result, err, time.Since(started))
		}()
	}
	if err := context.Cause(c.ctx); err != nil {
		return nil, err
	}
	// The engine has checked that the guest owns the handles. The gate checks that they are still open and of the right kind.
	if binding, c.lease, err = c.authorise(op, args); err != nil {
		return nil, err
	}
	if c.replay != nil && op.outside {
		return c.replay.answer(c, op, binding, args)
	}
	if c.journal != nil && op.outside {
		return c.journaled(op, binding, args)
	}
	return c.admitted(op, binding, args)
}

// admitted meters and executes an operation that the call may ask for.
func (c *call) admitted(op *operation, binding string, args []abi.Value) (result abi.Value, err error) {
	if c.leases != nil {
		c.closeOver()
	}
	if l := c.lease; l != nil {
		if refused := spend(l.grants, op.cost()); refused != nil {
			return c.refuse(op, binding, args, refused)
		}
		defer leave(l.grants)
	}
	if c.journal != nil {
		switch why, err := c.dead(op, args); {
		case err != nil:
			return nil, err
		case why != nil:
			return c.refuse(op, binding, args, why)
		}
	}
	if result, err, refused := c.tooLong(op.fn, op.bounds, args); refused {
		return result, err
	}
	if !op.polls { // waiting is free
		c.store.Watch(c.spent)
		defer c.store.Unwatch()
	}
	result, err = op.execute(c, args)
	if err == nil { // a guest whose call has ended could finish before the next look at the clock
		err = context.Cause(c.ctx)
	}
	return result, err
}

// note records an operation that has ended, and shows it to the observer.
func (c *call) note(op *operation, binding string, args []abi.Value, result abi.Value, err error, took time.Duration) {
	if c.record != nil && op.outside {
		c.record.operation(c, op, binding, args, result, err)
	}
	if op.polls {
		took, c.waited = took+c.waited, 0 // without a stack
	}
	if c.observe != nil {
		c.observe(Operation{
			Interface: op.fn.Interface.Name, Func: op.fn.Name, Binding: binding, Args: args, Result: result, Err: err, Duration: took,
		})
	}
}

// cost returns what an operation charges to a grant.
func (op *operation) cost() cost {
	if op.fn.Resource == nil { // put
		return cost{running: 1}
	}
	return cost{operations: 1, running: 1}
}

// authorise checks that every handle among the arguments is open. It returns the binding of the first and the grants of all.
func (c *call) authorise(op *operation, args []abi.Value) (binding string, l *lease, err error) {
	for i, p := range op.fn.Params {
		err := eachHandle(p.Type, args[i], func(t *abi.Type, rep abi.Rep) error {
			h, err := c.handles.find(rep, t.Resource)
			if err != nil {
				return fmt.Errorf("%s: %w", op.fn.Name, err)
			}
			if binding == "" {
				binding = h.binding
			}
			if h.lease != nil && !op.polls {
				l, err = c.mix(l, h.lease)
			}
			return err
		})
		if err != nil {
			return "", nil, err
		}
	}
	return binding, l, nil
}

// eachHandle visits the handles in a value of type t, until visit fails. t is nil for no value.
func eachHandle(t *abi.Type, v abi.Value, visit func(*abi.Type, abi.Rep) error) error {
	if t == nil {
		return nil
	}
	switch t.Kind {
	case abi.KindOwn, abi.KindBorrow:
		return visit(t, v.(abi.Rep))
	case abi.KindList:
		list, _ := v.([]abi.Value) // list<u8> is []byte
		if len(list) == 0 || !holdsHandles(t.Elem) {
			return nil
		}
		for _, e := range list {
			if err := eachHandle(t.Elem, e, visit); err != nil {
				return err
			}
		}
	case abi.KindRecord, abi.KindTuple:
		for i, f := range t.Fields {
			if err := eachHandle(f.Type, v.([]abi.Value)[i], visit); err != nil {
				return err
			}
		}
	case abi.KindVariant, abi.KindOption, abi.KindResult:
		variant := v.(abi.Variant)
		if carried := t.Payload(variant.Case); carried != nil {
			return eachHandle(carried, variant.Value, visit)
		}
	default:
	}
	return nil
}

// holdsHandles reports whether a value of type t can have handles in it.
func holdsHandles(t *abi.Type) bool {
	if t == nil {
		return false
	}
	return t.Kind == abi.KindOwn || t.Kind == abi.KindBorrow || holdsHandles(t.Elem) || holdsHandles(t.Ok) || holdsHandles(t.Err) ||
		slices.ContainsFunc(t.Fields, func(f abi.Field) bool { return holdsHandles(f.Type) }) ||
		slices.ContainsFunc(t.Cases, func(c abi.Case) bool { return holdsHandles(c.Type) })
}

// method calls the Go method behind a capability's method.
func (c *call) method(f *abi.Func, args []abi.Value) (abi.Value, error) {
	self, err := c.handles.find(args[0].(abi.Rep), f.Resource)
	if err != nil {
		return nil, err
	}
	m, ok := self.implementation[f.Name]
	if !ok {
		return nil, fmt.Errorf("%T does not implement %s", self.value, f.Name)
	}
	if result, err, refused := c.tooLong(f, m.bounds, args); refused {
		return result, err
	}
	scope := scoped{c, self.binding, c.lease}
	ctx := c.under(c.lease)
	if c.journal != nil {
		ctx = abi.WithOnce(ctx, c.journal.once)
	}
	var result any
	var cancelled error
	if m.quick {
		result, err = m.Call(ctx, self.value, args[1:], scope)
	} else {
		cancelled = c.store.Blocking(func() { result, err = m.Call(ctx, self.value, args[1:], scope) })
	}
	if err != nil {
		// Its error may say only that its context ended.
		if over := c.lease.over(); over != nil {
			err = over
		}
	}
	err = c.denied(self.binding, err)
	value, err := m.Encode(result, err, scope)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return nil, limit // a handle in the result reached it; its place does not matter
	}
	if err == nil {
		err = cancelled
	}
	return value, err
}

// denied adds the details that only the host knows to a denial, and adds the denial to this call's record.
func (c *call) denied(binding string, err error) error {
	var e *abi.Error
	if !errors.As(err, &e) || e.Denial == nil {
		return err
	}
	d := *e.Denial
	d.Binding = binding
	for _, text := range []*string{&d.Operation, &d.Reason, &d.Remedy} {
		*text = printable.Cut(*text, maxDenialText)
	}
	if d.Remedy == "" && d.Wants != nil {
		if d.Remedy = d.Wants.Remedy(binding); len(d.Remedy) > maxDenialText {
			d.Remedy, d.Wants = "", nil // part of a remedy is useless
		}
	}
	c.usage.record(d)
	if d.Private {
		d.Remedy = ""
	}
	return abi.Deny(d)
}

const (
	maxDenials     = 100
	maxDenialText  = 4 * kib
	maxDenialTexts = 64 * kib // of all denials
)

// record stores a denial. The last one is always stored, because the guest may end its call with it.
func (u *Usage) record(d abi.Denial) {
	size := u.denialTexts() + len(d.Operation) + len(d.Reason) + len(d.Remedy)
	text := d
	text.Wants = nil // its dynamic type may not be comparable
	same := func(kept abi.Denial) bool {
		kept.Wants = nil
		return kept == text
	}
	switch {
	case slices.ContainsFunc(u.Denials, same):
	case len(u.Denials) < maxDenials && size <= maxDenialTexts:
		u.Denials = append(u.Denials, d)
	default:
		u.Denials[len(u.Denials)-1] = d
		u.DenialsDropped++
	}
}

// denialTexts returns the bytes of the texts of the stored denials.
func (u *Usage) denialTexts() (bytes int) {
	for _, d := range u.Denials {
		bytes += len(d.Operation) + len(d.Reason) + len(d.Remedy)
	}
	return bytes
}
