package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
)

// frame is a running call, in the context of its operations. It bounds the calls that they start.
type frame struct {
	outer              *frame
	digest, tool, name string
	code               string // as in Code
	user               string // as in Request, or the caller's
	depth              int    // how many frames enclose it
	limits             Limits
	budget             *wasmtime.Budget
	tree               *tree
}

// tree is a call with all calls that it started, directly or through others.
type tree struct {
	inner   atomic.Int64 // calls that other calls started
	pending int64        // how many there may be
}

type frameKey struct{}

// frameOf returns the call that ctx belongs to. It is nil if there is none.
func frameOf(ctx context.Context) *frame {
	f, _ := ctx.Value(frameKey{}).(*frame)
	return f
}

// callContext is the context of a call's operations.
type callContext struct {
	abi.Operations
	frame *frame
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (frameKey{}) {
		return c.frame
	}
	return c.Operations.Value(key)
}

func newFrame(c *Component, r *Request, l Limits, outer *frame) *frame {
	f := &frame{outer: outer, digest: c.digest, tool: r.Tool, name: r.name(), code: r.Code.text(), user: userOf(r, outer), limits: l}
	if outer == nil {
		f.tree = &tree{pending: int64(l.Pending)}
	} else {
		f.depth, f.tree = outer.depth+1, outer.tree
	}
	return f
}

// userOf is whose call a request makes: that of the outer call, if the request names no user.
func userOf(r *Request, outer *frame) string {
	if outer == nil {
		return r.User
	}
	return cmp.Or(r.User, outer.user)
}

func (r *Request) name() string {
	if r.Name == "" {
		return r.Tool
	}
	return r.Name
}

func (f *frame) processor() *wasmtime.Budget {
	if f == nil {
		return nil
	}
	return f.budget
}

// work charges processor time to the call for the host's work outside its guest.
func (f *frame) work(took time.Duration) error {
	if !f.budget.Charge(took) {
		return exceeded("cpu", f.limits.CPU.String())
	}
	return nil
}

// nest returns an error if a call cannot start another one.
func (f *frame) nest(c *Component, r *Request) error {
	if f == nil {
		return nil
	}
	chain, cycle := []string{r.name()}, false
	for at := f; at != nil; at = at.outer {
		chain = append(chain, at.name)
		if at.digest == c.digest && at.tool == r.Tool && at.code == r.Code.text() {
			cycle = true
		}
	}
	slices.Reverse(chain)
	switch {
	case cycle:
		return &CycleError{chain}
	case f.depth >= f.limits.Nesting:
		return exceeded("nesting", strconv.Itoa(f.limits.Nesting))
	}
	return nil
}

// place is a call's slot for an instance.
type place struct {
	host  *Host
	outer *frame
	user  string
	depth int
	slot  slot
	since time.Time // when it got the slot
	// waiter is set between ask and settle if the call queues.
	waiter *waiter
}

// enter asks for the slot of a call that begins.
func (p *place) enter(ctx context.Context, f *frame) (*alarm, error) {
	p.user, p.depth = f.user, f.depth
	if outer := f.outer; outer != nil {
		if t := outer.tree; t.inner.Add(1) > t.pending {
			t.inner.Add(-1)
			return nil, &LimitError{Limit: "pending", Value: strconv.FormatInt(t.pending, 10), Detail: "tools that one call may run at a time"}
		}
		p.outer = outer
	}
	return p.ask(ctx), nil
}

// ask takes a slot, or queues for one and returns what rings at the end of the wait. settle must follow. Calls that hold a slot and wait
// give theirs back sooner while others queue.
func (p *place) ask(ctx context.Context) *alarm {
	if p.slot, p.waiter = p.host.slots.ask(ctx, p.user, p.depth); p.waiter == nil {
		return nil
	}
	return &p.waiter.alarm
}

// settle ends the wait that ask began, if it did.
func (p *place) settle(ctx context.Context) (err error) {
	if p.waiter != nil {
		p.slot, err = p.waiter.settle(ctx)
		p.waiter = nil
	}
	p.since = time.Now()
	return err
}

func (p *place) give() {
	if p.slot.user != nil {
		p.host.slots.give(p.slot)
		p.slot = slot{}
	}
}

func (p *place) leave() {
	p.give()
	if p.outer != nil {
		p.outer.tree.inner.Add(-1)
	}
}

// Callee is a tool of a component that other tools may call, through capabilities/tools.
type Callee struct {
	Component *Component
	Tool      string
	// Env are the tool's own bindings. Bindings that a caller passes are added and cannot replace one.
	Env Env
	// Vars, WASI, Limits and Approved are as in [Request].
	Vars     []byte
	WASI     abi.WASI
	Limits   Limits
	Approved []abi.Definition
}

// Start starts the tool for a caller, as [Component.Start] does, and calls done at its end, or before it returns if the tool cannot begin. ctx is the caller's: its limits apply too, and all processor time counts there. name is the
// tool's name for the caller, and env are the bindings it passes on. Errors are written for the caller's guest. It learns the same
// about a denial, a limit, an input or a failure as the tool's own caller would. The text of a failure comes from the tool.
func (t Callee) Start(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func(output []byte, err error)) {
	whole := make(Env, len(t.Env)+len(env))
	maps.Copy(whole, t.Env)
	for binding, capability := range env {
		if whole[binding] != nil {
			done(nil, abi.Errorf(abi.CodeAlreadyExists, "%s: the tool has a binding %q of its own", name, printable.Text(binding)))
			return
		}
		whole[binding] = capability
	}
	request := Request{Tool: t.Tool, Name: name, Input: input, Env: whole, Vars: t.Vars, WASI: t.WASI, Limits: t.Limits, Approved: t.Approved}
	ended := func(r Result, err error) { done(r.Output, ForCaller(name, err)) }
	if err := t.Component.Start(ctx, request, ended); err != nil {
		ended(Result{}, err)
	}
}

// ForCaller converts a call's error into the one reported to the guest that started it under this name. The result wraps
// err, which may also hold faults of the host.
func ForCaller(name string, err error) error {
	var (
		denied  *DeniedError
		limit   *LimitError
		input   *InputError
		unknown *UnknownToolError
		cycle   *CycleError
		guest   *GuestError
		trap    *TrapError
		ended   *GrantError
	)
	tell := func(code abi.Code, how error) error {
		return &calleeError{abi.Errorf(code, "%s: %v", name, how), err}
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &denied):
		d := denied.Denial
		d.Operation = fmt.Sprintf("%s: %s through %q", name, d.Operation, d.Binding)
		return &calleeError{abi.Deny(d), err}
	case errors.As(err, &limit):
		return tell(abi.CodeExhausted, limit)
	case errors.As(err, &input):
		return tell(abi.CodeInvalid, input)
	case errors.As(err, &cycle):
		return tell(abi.CodeInvalid, cycle)
	case errors.As(err, &unknown):
		return tell(abi.CodeNotFound, unknown)
	case errors.As(err, &guest):
		return tell(abi.CodeUnavailable, guest)
	case errors.As(err, &trap):
		return tell(abi.CodeUnavailable, trap)
	case errors.As(err, &ended):
		return tell(abi.CodeUnavailable, ended)
	default:
		return err
	}
}

// calleeError is an error as a guest sees it, with its cause.
type calleeError struct {
	shown *abi.Error
	cause error
}

func (e *calleeError) Error() string { return e.shown.Error() }

// Unwrap returns the error for the guest first.
func (e *calleeError) Unwrap() []error { return []error{e.shown, e.cause} }
