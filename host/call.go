package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

var (
	errWall = errors.New("wall clock")
	errDone = errors.New("call is over")
)

// call is one instance at work. Only one goroutine at a time uses it.
type call struct {
	host    *Host
	ctx     context.Context // of its operations
	context callContext     // what ctx is made of
	limits  Limits
	store   *wasmtime.Store
	handles handles
	owned   []owned // values opened for this call
	leases  []*lease
	lease   *lease  // of the current operation
	codecs  int64   // bytes of its open codecs
	faults  []error // errors of closing what grants left open
	usage   Usage
	observe func(Operation)
	idle    func() bool
	request *Request
	env     environment       // once it is needed: see given
	arrived bool              // the env, at the guest
	world   *world            // nil until the guest uses WASI
	record  *record           // nil if nothing is recorded
	replay  *player           // answers instead of capabilities; nil in an ordinary call
	journal *journal          // of a durable call; otherwise nil
	opened  map[string][]byte // what is written down of bindings of a durable call
	grants  []keptGrant       // of a durable call
	awake   time.Duration     // how long the call was awake before it last slept, or its process ended
	noted   time.Duration     // how long its log, or its state, says that it was awake
	spent   func()            // ends ctx if an operation uses up the processor time
	stepping
	clock  phaseClock
	phases Phases
	ends   []func() // give back what the call has besides its place

	place       *place
	frame       *frame
	storeLimits wasmtime.Limits
	forget      func() bool // ends the store's wait for the end of the call
}

// room is [abi.Room] of its operations.
func (c *call) room(bytes int64) error { return c.store.Room(bytes) }

// openStore makes the store for an instance. The stores of a call share its budget.
func (c *call) openStore() {
	c.store = c.host.engine.NewStore(c.storeLimits, c)
	if c.storeLimits.Budget == nil {
		c.frame.budget = c.store.Budget()
		c.storeLimits.Budget = c.frame.budget
	}
	c.forget = context.AfterFunc(c.storeLimits.Context, c.store.Cancel)
}

// closeStore drops the store, if there is one.
func (c *call) closeStore() {
	if c.store == nil {
		return
	}
	c.forget()
	c.store.Close()
	c.usage.CPU += c.store.CPU()
	c.store, c.instance, c.forget = nil, nil, nil // a call that waits keeps none of them
}

// rest ends what the Keep of the store began, if there is one.
func (c *call) rest() {
	if c.store != nil {
		c.store.Rest()
	}
}

// limits are the limits of one call.
func (h *Host) limits(r *Request, outer *frame) Limits {
	l := r.Limits.or(h.options.Limits)
	l.Memory, l.Nesting = min(l.Memory, h.options.MaxMemory), min(l.Nesting, MaxNesting)
	if outer != nil {
		l.Memory, l.CPU, l.Wall = min(l.Memory, outer.limits.Memory), min(l.CPU, outer.limits.CPU), min(l.Wall, outer.limits.Wall)
		l.Nesting = min(l.Nesting, outer.limits.Nesting)
	}
	return l
}

// limits are the limits of one call of the component.
func (c *Component) limits(r *Request, outer *frame) Limits {
	l := c.host.limits(r, outer)
	l.Memory = min(l.Memory+max(0, c.size-maxCounted), MaxMemory)
	return l
}

// within returns a context that also ends with the host, and with the wall-clock limit, which starts now.
func (h *Host) within(ctx context.Context, limits Limits) (_ context.Context, cancel context.CancelCauseFunc, stop func()) {
	ctx, finish := context.WithCancelCause(ctx)
	wall := time.AfterFunc(limits.Wall, func() { finish(errWall) })
	host := context.AfterFunc(h.closing, func() { finish(ErrClosed) })
	return ctx, finish, func() {
		wall.Stop()
		host()
		finish(errDone)
	}
}

// owned is a value that is closed with its call, or when its grants end.
type owned struct {
	io.Closer
	lease *lease
}

// own closes v at the end of the call, if v can be closed.
func (c *call) own(v any, l *lease) {
	if closer, ok := v.(io.Closer); ok {
		c.owned = append(c.owned, owned{closer, l})
	}
}

// begin opens the store of a call whose wait for a slot is over. It sets the export to call.
func (c *call) begin(r *running) error {
	h, of, request, ctx := c.host, r.component, r.request, r.ctx
	err := c.place.settle(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && request.Begin != nil {
		err = request.Begin(ctx)
	}
	if err != nil {
		return explainEnd(ctx, c.limits, err)
	}
	c.clock = phaseClock{time.Now()}
	over := r.cancel
	if over == nil {
		ctx, over = context.WithCancelCause(ctx)
	}
	c.ends = append(c.ends, func() { over(errDone) })
	outer := c.frame.outer
	switch d := request.Durable; {
	case d != nil:
		ctx = abi.WithRun(abi.WithMailboxes(ctx, d.Mailboxes), d.Control)
	case outer != nil: // a durable call may have started it, with the name of one operation for all of this call's
		if _, durable := abi.OnceOf(ctx); durable {
			ctx = abi.WithRun(abi.WithMailboxes(abi.WithOnce(ctx, abi.Once{}), nil), nil)
		}
	}
	c.context = callContext{abi.Operations{Context: ctx, Room: c.room, Work: c.frame.work, Outermost: outer == nil}, c.frame}
	c.ctx = &c.context
	if user := c.frame.user; user != "" && user != turns.User(ctx) {
		c.ctx = turns.For(c.ctx, user) // users take turns in capabilities too
	}
	c.request = request
	c.observe, c.idle, c.record, c.replay = request.Observe, request.Idle, request.record, request.replay
	if d := request.Durable; d != nil {
		if c.journal, c.opened, err = newJournal(d); err != nil {
			return err
		}
	}
	c.handles = handles{open: map[abi.Rep]*handle{}, next: abi.Rep(recordedEnv), limit: c.limits.Handles}
	c.spent = func() { over(wasmtime.ErrCPU) }
	if r.export.index == of.call.index && of.Stepwise() && !h.options.WholeCalls {
		r.export, c.on, c.handles.table.kept = of.start, true, of.memory != nil
	}
	c.storeLimits = wasmtime.Limits{Memory: c.limits.Memory, CPU: c.limits.CPU, Outer: outer.processor(), Context: ctx, User: c.frame.user}
	c.openStore()
	c.ends = append(c.ends, c.frame.budget.Hold())
	if r.paid > 0 {
		c.frame.budget.Charge(r.paid)
	}
	c.clock.lap(&c.phases.Open)
	return nil
}

// first makes the instance and calls the export, or its first step.
func (c *call) first(of *Component, x export, prepare func(*call) ([]abi.Value, error)) (result abi.Value, err error) {
	c.store.Keep()
	defer c.rest()
	c.instance, err = c.store.Instantiate(of.linker, of.component)
	c.clock.lap(&c.phases.Instantiate)
	if err != nil {
		return c.finished(nil, err)
	}
	args, err := prepare(c)
	if err != nil {
		return c.finished(nil, err)
	}
	return c.finished(x.in(c.instance, args...))
}

// finished follows an export that has returned v or err. The text of a guest that only waits goes on later, whatever it announced.
func (c *call) finished(v abi.Value, err error) (abi.Value, error) {
	if err == nil && c.on && resting(v) {
		return v, nil
	}
	return v, errors.Join(err, c.finishText(err))
}

// phaseClock returns the time since its last call.
type phaseClock struct{ last time.Time }

func (p *phaseClock) lap(took *time.Duration) {
	now := time.Now()
	*took, p.last = now.Sub(p.last), now
}

// evaluated runs top-level code in an instance that holds no handles yet, and returns the definitions that the call then uses.
func (c *Component) evaluated(in *call, r *Request, limits Limits) (*definitionSet, error) {
	x, i := c.evaluate, in.instance
	if x.index == nil {
		return nil, &LoadError{Name: abi.ExtensionEvaluator, Reason: "is not exported, so the component runs no code but its own"}
	}
	value, err := i.Call(x.index, x.params, x.result, r.Code.Text)
	if err != nil {
		return nil, err
	}
	const caseExhausted = 0
	if outcome := value.(abi.Variant); outcome.Case != 0 {
		in.rest()
		outcome = outcome.Value.(abi.Variant)
		if outcome.Case == caseExhausted {
			return nil, c.exhausted(r.Code, outcome.Value.(string), limits)
		}
		var f abi.Failure
		if err := abi.Decode(x.result.Err.Cases[outcome.Case].Type, outcome.Value, &f, nil); err != nil {
			return nil, fmt.Errorf("decode the guest's error: %w", err)
		}
		return nil, &CodeError{c.told(r.Code, f), MapStack(r.Code.sourceMap(), printable.Cut(f.Stack, 16*kib))}
	}
	if r.Approved == nil {
		value, err = i.Call(c.describe.index, c.describe.params, c.describe.result)
	}
	in.rest() // to compile schemas takes long, and to validate the input can wait for room
	switch {
	case err != nil:
		return nil, err
	case r.Approved != nil:
		return c.approvedSet(r.Approved)
	default:
		return c.readDefinitions(value)
	}
}

// end closes the values that the guest left open. Its errors are faults of the host.
func (c *call) end() error {
	errs := append(c.faults, c.handles.sweep())
	for _, o := range slices.Backward(c.owned) {
		errs = append(errs, closeValue(o.Closer))
	}
	c.release()
	return errors.Join(errs...)
}

// explain converts the engine's errors into this package's.
func (c *call) explain(err error) error {
	var (
		trap   *wasmtime.TrapError
		large  *wasmtime.SizeError
		start  *wasmtime.InstanceError
		system *wasmtime.SystemError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wasmtime.ErrCPU):
		return exceeded("cpu", c.limits.CPU.String())
	case errors.Is(err, wasmtime.ErrLate):
		return &LimitError{Limit: "cpu", Value: wasmtime.MaxReceive.String(), Detail: "to allocate memory for one value that the host passes"}
	case errors.Is(err, wasmtime.ErrCancelled), errors.Is(err, errWall), errors.Is(err, ErrClosed), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return explainEnd(c.ctx, c.limits, err)
	case errors.Is(err, wasmtime.ErrPoolFull):
		return exceeded("engine", strconv.Itoa(c.host.options.Instances)+" instances")
	case errors.As(err, &trap):
		return c.explainTrap(trap)
	case errors.Is(err, wasmtime.ErrConversion):
		return &LimitError{Limit: "bytes", Value: printable.Size(wasmtime.MaxConversion), Detail: "of host memory for the values of one operation; pass less at a time"}
	case errors.As(err, &large):
		return &LimitError{Limit: "bytes", Value: printable.Size(int64(large.Max)), Detail: fmt.Sprintf("a %s of %d bytes; use a blob", large.Type, large.Size)}
	case errors.As(err, &start):
		if strings.Contains(start.Reason, "exceeds memory limits") || strings.Contains(start.Reason, "memory minimum size") {
			return exceeded("memory", printable.Size(c.limits.Memory))
		}
		return &LoadError{Reason: printable.Short(start.Reason, 4*kib)}
	case errors.As(err, &system):
		return refusedBySystem(system)
	default:
		return err
	}
}

// refusedBySystem is a fault of this machine, e.g. a limit of the process on files or memory.
func refusedBySystem(err *wasmtime.SystemError) error {
	return fmt.Errorf("the operating system refused resources to the engine; check free memory and the limits of this process: %w", err)
}

// MemoryTrap is the function in which the toolchain's components trap when their engine ran out of memory. Names come from the
// component, so a component can claim this about its own call.
const MemoryTrap = "stile:limit-memory"

// StackTrap is the function in which they trap when their engine's own stack is full.
const StackTrap = "stile:limit-stack"

// DeniedTrap and FailedTrap are the functions in which the toolchain's components trap inside a program that has no way to learn why its
// host's function failed. The call ends with the last denial that the host itself recorded, or with what the component wrote to stderr.
// A component can claim either about its own call.
const (
	DeniedTrap = "stile:denied"
	FailedTrap = "stile:failed"
)

// tooDeep is said of a full stack where nothing names the function.
const tooDeep = "calls or a value nest too deep; end the recursion, or nest less"

func (c *call) explainTrap(trap *wasmtime.TrapError) error {
	innermost := ""
	if len(trap.Functions) > 0 {
		innermost = trap.Functions[0]
	}
	switch {
	case trap.Reason == "call stack exhausted":
		return &LimitError{Limit: "stack", Value: printable.Size(wasmtime.MaxStack()), Detail: tooDeep}
	case innermost == StackTrap:
		return &LimitError{Limit: "stack", Detail: "the engine's own stack is full: " + tooDeep, Claimed: true}
	case innermost == MemoryTrap:
		return &LimitError{Limit: "memory", Value: printable.Size(c.limits.Memory), Claimed: true}
	case innermost == DeniedTrap && len(c.usage.Denials) > 0:
		return &DeniedError{c.usage.Denials[len(c.usage.Denials)-1]}
	case innermost == FailedTrap && c.output() != "":
		return &GuestError{abi.Failure{Name: "Error", Message: c.output()}}
	case innermost == guard.Refused:
		return &LimitError{Limit: "memory", Value: printable.Size(c.limits.Memory), Detail: refusedMemory(trap.Functions[1:]), Claimed: true}
	default:
		return &TrapError{Reason: printable.Short(trap.Reason, 4*kib), Functions: trap.Functions}
	}
}

// refusedMemory says where a guest trapped after it was refused memory. It names functions if the component has names, because a
// guest can continue with less memory and later trap for another reason.
func refusedMemory(functions []string) string {
	const shown = 8
	text := "the guest trapped after it was refused more memory"
	named := slices.DeleteFunc(slices.Clone(functions[:min(shown, len(functions))]), func(name string) bool {
		return name == "" || strings.HasPrefix(name, "<wasm function ")
	})
	if len(named) > 0 {
		text += ", in " + strings.Join(named, " < ")
	}
	return text
}

// explainEnd reports what ended a context: the caller, the wall clock or the host.
func explainEnd(ctx context.Context, limits Limits, otherwise error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errWall):
		return exceeded("wall", limits.Wall.String())
	case errors.Is(cause, wasmtime.ErrCPU):
		return exceeded("cpu", limits.CPU.String())
	case cause != nil:
		return cause
	default:
		return otherwise
	}
}
