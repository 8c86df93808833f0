package host

import (
	"cmp"
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
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
)

// Request is one call of a tool.
type Request struct {
	Tool string
	// Code, if not nil, runs instead of the component's own code. The component must export stile:extension/evaluator.
	Code *Code
	// Name is the call's name in errors when other tools start it. Default: Tool.
	Name string
	// User is whose call it is, such as an agent. One user has at most three quarters of Options.Instances, and a free one goes to the
	// user who has the fewest. Turns to execute are shared fairly too. Default: the caller's, for a call that another call starts. Calls of nobody
	// share what is there.
	User string
	// Input is JSON. An empty one means `{}`.
	Input []byte
	// Env is the whole authority of the call.
	Env Env
	// Limits that are not zero override the host's defaults.
	Limits Limits
	// Approved, if not nil, are the definitions a person approved: only these tools can be called, with these schemas.
	Approved []abi.Definition
	// Observe, if not nil, receives every operation once, after it ends. Two calls of it never overlap.
	Observe func(Operation)
	// Idle, if not nil, is called when the guest waits and nothing is ready, before the host waits. If it returns true, the host checks
	// again. This lets a test clock advance instead of waiting.
	Idle func() bool
	// Recorder receives the recording of this call. Default: Options.Recorder.
	Recorder Recorder
	// Begin, if not nil, is called after the call has waited for its place, before any guest code runs. Its error becomes the call's
	// error; such a call never begins and is not recorded.
	Begin func(context.Context) error

	record *record
	replay *player
}

// Code is a program that comes with a call. A toolchain makes it from the author's source. It is trusted no more than a component.
type Code struct {
	// Text is an ES module. Stacks call it [BundleName]. It counts towards the limit on input.
	Text string
	// SourceMap, if not nil, returns the source map from Text to the author's files. It is called only to show a stack.
	SourceMap func() []byte
}

func (c *Code) text() string {
	if c == nil {
		return ""
	}
	return c.Text
}

func (c *Code) sourceMap() []byte {
	if c == nil || c.SourceMap == nil {
		return nil
	}
	return c.SourceMap()
}

// Result is the result of a call. Do also returns its Usage together with an error.
type Result struct {
	// Output is valid JSON.
	Output []byte
	Usage  Usage
	Phases Phases

	keeps func(ctx context.Context, output []byte) error
}

// Keeps checks whether another output, such as a part of Output to show instead, also fits the tool's output schema.
func (r Result) Keeps(ctx context.Context, output []byte) error {
	if r.keeps == nil {
		return nil
	}
	return r.keeps(ctx, output)
}

// Phases says where the wall-clock time of a call went. The rest is spent on input and output.
type Phases struct {
	// Open is the time from the start of the call, or from when an instance was free, to an empty store. Instantiate is the time to
	// make the instance. Run is the time of the guest and its capabilities. Close is the time to drop everything.
	Open, Instantiate, Run, Close time.Duration
}

// Usage counts the resources that a call consumed.
type Usage struct {
	// CPU is processor time, as [Limits] counts it, without the time of tools that the call started.
	CPU time.Duration
	// Operations is how many imported functions were called.
	Operations int
	// Denials are the host's record of denied operations, each once, in order. The guest may have continued after them. There are at
	// most 100, with texts of some 64 KiB, and the last one is the latest. DenialsDropped counts the others.
	Denials        []abi.Denial
	DenialsDropped int
}

var (
	errWall = errors.New("wall clock")
	errDone = errors.New("call is over")
)

// call is one instance at work. Only one goroutine at a time uses it.
type call struct {
	host    *Host
	ctx     context.Context
	limits  Limits
	store   *wasmtime.Store
	handles handles
	owned   []owned // values opened for this call
	leases  []*lease
	lease   *lease  // of the current operation
	faults  []error // errors of closing what grants left open
	usage   Usage
	observe func(Operation)
	idle    func() bool
	record  *record // nil if nothing is recorded
	replay  *player // answers instead of capabilities; nil in an ordinary call
	spent   func()  // ends ctx if an operation uses up the processor time
	stepping
	clock  phaseClock
	phases Phases
	ends   []func() // give back what the call has besides its place

	place       *place
	frame       *frame
	storeLimits wasmtime.Limits
	forget      func() bool // ends the store's wait for the end of the call
}

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
	c.usage.CPU += c.store.CPU()
	c.store.Close()
	c.store, c.instance, c.forget = nil, nil, nil // a call that waits keeps none of them
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

// within returns a context that also ends with the host, and with the wall-clock limit, which starts now.
func (h *Host) within(ctx context.Context, limits Limits) (_ context.Context, stop func()) {
	ctx, finish := context.WithCancelCause(ctx)
	wall := time.AfterFunc(limits.Wall, func() { finish(errWall) })
	host := context.AfterFunc(h.closing, func() { finish(ErrClosed) })
	return ctx, func() {
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

// running is a call of one export, in a fresh instance, which drops everything that belonged to the call at its end. It is made in
// parts. Between two of them, when waiting is set, the call needs no goroutine. It is not on the stack, which is small while the call waits.
type running struct {
	component *Component
	ctx       context.Context // from within
	request   *Request
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
	usage  Usage
	phases Phases
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
	outer := frameOf(r.ctx)
	in.limits = h.limits(r.request, outer)
	in.frame = newFrame(c, r.request, in.limits, outer)
	var err error
	if r.waiting, err = in.place.enter(r.ctx, in.frame); err != nil {
		r.err = explainEnd(r.ctx, in.limits, err)
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
	r.result, r.err = r.in.first(r.component, r.export, r.prepare)
	return (*running).stepped
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
		r.result, r.err = nil, in.explain(r.err)
		return nil
	}
	r.err = r.check(r.result)
	return nil
}

// woken follows a sleep.
func (r *running) woken() part {
	var needs bool
	if r.asleep, needs = r.in.slept(r.asleep); r.asleep != nil {
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

// begin opens the store of a call whose wait for a slot is over. It sets the export to call.
func (c *call) begin(r *running) error {
	h, of, request, ctx := c.host, r.component, r.request, r.ctx
	err := c.place.settle(ctx)
	if err == nil && request.Begin != nil {
		err = request.Begin(ctx)
	}
	if err != nil {
		return explainEnd(ctx, c.limits, err)
	}
	c.clock = phaseClock{time.Now()}
	ctx, over := context.WithCancelCause(ctx)
	c.ends = append(c.ends, func() { over(nil) })
	c.ctx = abi.WithRoom(abi.WithWork(withFrame(ctx, c.frame), c.frame.work), func(bytes int64) error { return c.store.Room(bytes) })
	outer := c.frame.outer
	if outer == nil { // the calls that it starts share its budgets
		c.ctx = abi.WithCall(c.ctx)
	}
	c.observe, c.idle, c.record, c.replay = request.Observe, request.Idle, request.record, request.replay
	c.handles = handles{open: map[abi.Rep]*handle{}, limit: c.limits.Handles}
	c.spent = func() { over(wasmtime.ErrCPU) }
	if r.export.index == of.call.index && of.Stepwise() && !h.options.WholeCalls {
		r.export, c.on, c.handles.table.kept = of.start, true, of.memory != nil
	}
	c.storeLimits = wasmtime.Limits{Memory: c.limits.Memory, CPU: c.limits.CPU, Outer: outer.processor(), Context: ctx, User: c.frame.user}
	c.openStore()
	c.ends = append(c.ends, c.frame.budget.Hold())
	c.clock.lap(&c.phases.Open)
	return nil
}

// first makes the instance and calls the export, or its first step.
func (c *call) first(of *Component, x export, prepare func(*call) ([]abi.Value, error)) (result abi.Value, err error) {
	c.instance, err = c.store.Instantiate(of.linker, of.component)
	c.clock.lap(&c.phases.Instantiate)
	if err != nil {
		return nil, err
	}
	args, err := prepare(c)
	if err != nil {
		return nil, err
	}
	return x.in(c.instance, args...)
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
	r.usage, r.phases = c.usage, c.phases
}

// phaseClock returns the time since its last call.
type phaseClock struct{ last time.Time }

func (p *phaseClock) lap(took *time.Duration) {
	now := time.Now()
	*took, p.last = now.Sub(p.last), now
}

// evaluated runs top-level code in an instance that holds no handles yet, and returns the definitions that the call then uses.
func (c *Component) evaluated(i *wasmtime.Instance, r *Request, limits Limits) (*definitionSet, error) {
	x := c.evaluate
	if x.index == nil {
		return nil, &LoadError{Name: abi.ExtensionEvaluator, Reason: "is not exported, so the component runs no code but its own"}
	}
	value, err := i.Call(x.index, x.params, x.result, r.Code.Text)
	if err != nil {
		return nil, err
	}
	const caseExhausted = 0
	if outcome := value.(abi.Variant); outcome.Case != 0 {
		outcome = outcome.Value.(abi.Variant)
		if outcome.Case == caseExhausted {
			return nil, exhausted(outcome.Value.(string), limits)
		}
		var f abi.Failure
		if err := abi.Decode(x.result.Err.Cases[outcome.Case].Type, outcome.Value, &f, nil); err != nil {
			return nil, fmt.Errorf("decode the guest's error: %w", err)
		}
		return nil, &CodeError{c.told(r.Code, f), MapStack(r.Code.sourceMap(), printable.Cut(f.Stack, 16*kib))}
	}
	if r.Approved != nil {
		return c.approvedSet(r.Approved)
	}
	value, err = i.Call(c.describe.index, c.describe.params, c.describe.result)
	if err != nil {
		return nil, err
	}
	return c.readDefinitions(value)
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

func (c *call) explainTrap(trap *wasmtime.TrapError) error {
	innermost := ""
	if len(trap.Functions) > 0 {
		innermost = trap.Functions[0]
	}
	switch {
	case trap.Reason == "call stack exhausted":
		return exceeded("stack", printable.Size(wasmtime.MaxStack))
	case innermost == MemoryTrap:
		return &LimitError{Limit: "memory", Value: printable.Size(c.limits.Memory), Claimed: true}
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

// Call runs a tool in a fresh instance, with env as its only authority, and returns its JSON result. Errors are *DeniedError,
// *LimitError, *GuestError, *InputError, *UnknownToolError, *TrapError, *GrantError, *DefinitionError, *CycleError, *CodeError for a
// request's code, ctx's error, a *LoadError for a component that cannot be instantiated, or a fault of the host.
func (c *Component) Call(ctx context.Context, tool string, input []byte, env Env) ([]byte, error) {
	r, err := c.Do(ctx, Request{Tool: tool, Input: input, Env: env})
	return r.Output, err
}

// Do is Call with every option.
func (c *Component) Do(ctx context.Context, r Request) (Result, error) {
	t, err := c.launch(ctx, &r)
	if err != nil {
		return Result{}, err
	}
	defer t.drop()
	t.run()
	return t.complete()
}

// Start is Do in the background. It returns once the input is checked; if that fails, or the call cannot begin, it returns the error and
// never calls done. Otherwise done gets what Do returns, once, on a goroutine of the host, which Close waits for. A call that is made in
// steps takes no goroutine while it waits for what its guest started, or for an instance. If Observe, Idle or Begin panics, done gets the panic
// as an error.
func (c *Component) Start(ctx context.Context, r Request, done func(Result, error)) error {
	t, err := c.launch(ctx, &r)
	if err != nil {
		return err
	}
	t.proceed(done)
	return nil
}

// toolCall is a call of a tool.
type toolCall struct {
	running
	limits Limits
	set    *definitionSet

	caller   context.Context
	recorder Recorder
	began    bool
	drops    []func()
}

// launch begins a call, until it waits for its instance or can have it. drop must follow, unless there is an error.
func (c *Component) launch(ctx context.Context, r *Request) (*toolCall, error) {
	if len(r.Input) == 0 {
		r.Input = []byte("{}")
	}
	t := newToolCall(ctx, c, r)
	if r.replay == nil {
		// A call that its caller may not make is not recorded, because a replay outside the caller would succeed.
		if err := frameOf(ctx).nest(c, r); err != nil {
			return nil, err
		}
		t.recorder = cmp.Or(r.Recorder, c.host.options.Recorder)
	}
	if t.recorder != nil {
		end, err := c.host.users.begin() // so that a host closes only after its calls are recorded
		if err != nil {
			return nil, err
		}
		t.drops = append(t.drops, end)
		r.record = c.host.newRecord()
		t.began = true
		if begin := r.Begin; begin != nil {
			r.Begin = func(ctx context.Context) error {
				err := begin(ctx)
				t.began = err == nil
				return err
			}
		}
	}
	if t.err = t.admit(ctx); t.err == nil {
		t.enqueue()
	}
	if t.next != nil {
		return t, nil
	}
	defer t.drop()
	_, err := t.complete()
	return nil, err
}

func newToolCall(ctx context.Context, c *Component, r *Request) *toolCall {
	t := &toolCall{caller: ctx, limits: c.host.limits(r, frameOf(ctx))}
	t.running = running{component: c, request: r, export: c.call, prepare: t.prepare, check: t.checkOutput}
	return t
}

// admit checks the size of the input, starts the clock, and checks the input itself unless the tool's definition comes from the request's code.
func (t *toolCall) admit(ctx context.Context) (err error) {
	c, r := t.component, t.request
	if len(r.Input)+len(r.Code.text()) > t.limits.Input {
		return exceeded("input", printable.Size(int64(t.limits.Input)))
	}
	ctx, stop := c.host.within(ctx, t.limits)
	t.ctx = ctx
	t.drops = append(t.drops, stop)
	if r.Code != nil {
		return nil
	}
	if t.set, err = c.definitions(ctx, r.Approved, r.Limits); err != nil {
		return err
	}
	if err := t.set.validate(ctx, c.host.validating, r.Tool, r.Input); err != nil {
		if ctx.Err() != nil {
			err = explainEnd(ctx, t.limits, err)
		}
		return err
	}
	return nil
}

// complete returns the result of a call that has ended, and records it.
func (t *toolCall) complete() (result Result, err error) {
	result.Usage, result.Phases = t.usage, t.phases
	err = t.answer(&result)
	if t.recorder != nil && t.began {
		t.request.record.end(t.caller, t.component, t.request, result, err, t.recorder)
	}
	return result, err
}

// drop gives back what the call has besides its instance. Doing it again does nothing.
func (t *toolCall) drop() {
	for _, drop := range slices.Backward(t.drops) {
		drop()
	}
	t.drops = nil
}

// proceed has the next part run on a worker, once it can.
func (t *toolCall) proceed(done func(Result, error)) {
	h := t.component.host
	run := func() {
		if ended, result, err := t.attempt(); ended {
			done(result, err)
		} else {
			t.proceed(done)
		}
	}
	if t.waiting == nil {
		h.workers.start(run)
		return
	}
	t.waiting.arm(func() {
		if t.asleep == nil || t.in.mustClose() {
			h.workers.start(run)
			return
		}
		// Calls that wake at once queue for slots before they take a goroutine.
		t.waiting = nil
		if next := t.woken(); next != nil {
			t.next = next
		}
		t.proceed(done)
	})
}

// attempt runs the next part, and completes the call if it has ended.
func (t *toolCall) attempt() (ended bool, result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			ended, err = true, wasmtime.NewPanicError(p)
		}
		if ended {
			t.drop()
		}
	}()
	if t.advance(); t.next != nil {
		return false, result, nil
	}
	result, err = t.complete()
	return true, result, err
}

// prepare makes the arguments.
func (t *toolCall) prepare(in *call) ([]abi.Value, error) {
	c, r := t.component, t.request
	if r.Code != nil {
		var err error
		if t.set, err = c.evaluated(in.instance, r, t.limits); err == nil {
			err = t.set.validate(t.ctx, c.host.validating, r.Tool, r.Input)
		}
		if err != nil {
			return nil, err
		}
	}
	env, err := newEnvironment(r.Env)
	if err != nil {
		return nil, err
	}
	h := &handle{resource: c.host.env, value: env}
	if r.replay != nil {
		h.value = recordedEnv
	}
	in.handles.names = -len(env) // the caller may give any number of names
	rep, err := in.handles.add(h)
	in.handles.table.add(rep)
	return []abi.Value{r.Tool, string(r.Input), rep}, err
}

// checkOutput checks an output.
func (t *toolCall) checkOutput(v abi.Value) error {
	outcome := v.(abi.Variant)
	if outcome.Case != 0 {
		return nil
	}
	output := outcome.Value.(string)
	if len(output) > t.limits.Output {
		return exceeded("output", printable.Size(int64(t.limits.Output)))
	}
	if !schema.IsJSON([]byte(output)) {
		return &GuestError{abi.Failure{Name: "InvalidOutput", Message: "the result is not JSON"}}
	}
	err := t.keeps(t.ctx, []byte(output))
	if err != nil && t.ctx.Err() != nil {
		err = explainEnd(t.ctx, t.limits, err)
	}
	return err
}

func (t *toolCall) keeps(ctx context.Context, output []byte) error {
	return t.set.keeps(ctx, t.component.host.validating, t.request.Tool, output)
}

// answer completes the result of a call.
func (t *toolCall) answer(result *Result) error {
	err := t.err
	outcome, answered := t.result.(abi.Variant)
	if answered && outcome.Case != 0 {
		failure := t.component.failure(t.request.Code, outcome.Value, t.set, result.Usage.Denials, t.limits)
		if err != nil {
			failure = errors.Join(failure, err)
		}
		return failure
	}
	if err != nil {
		return err
	}
	set, validating, tool := t.set, t.component.host.validating, t.request.Tool
	result.keeps = func(ctx context.Context, output []byte) error { return set.keeps(ctx, validating, tool, output) }
	result.Output = []byte(outcome.Value.(string))
	return nil
}

// The cases of the variant `error` of stile:extension/tools, in its order.
const (
	caseUnknownTool = iota
	caseInvalidInput
	caseDenied
	caseExhausted
	caseFailed
)

// failure converts the guest's own account of why it failed, and bounds it. The guest is not trusted: a denial must be in the host's
// record.
func (c *Component) failure(code *Code, v abi.Value, known *definitionSet, denials []abi.Denial, limits Limits) error {
	outcome := v.(abi.Variant)
	decode := func(t *abi.Type, dst any) error {
		if err := abi.Decode(t, outcome.Value, dst, nil); err != nil {
			return fmt.Errorf("decode the guest's error: %w", err)
		}
		return nil
	}
	t := c.call.result.Err.Cases[outcome.Case].Type
	switch outcome.Case {
	case caseUnknownTool:
		return &UnknownToolError{Tool: printable.Short(outcome.Value.(string), 64), Known: known.names()}
	case caseInvalidInput:
		if list := outcome.Value.([]abi.Value); len(list) > schema.MaxProblems {
			outcome.Value = list[:schema.MaxProblems]
		}
		var problems []abi.Problem
		if err := decode(t, &problems); err != nil {
			return err
		}
		for i, p := range problems {
			problems[i] = abi.Problem{Path: printable.Short(p.Path, kib), Message: printable.Short(p.Message, 4*kib)}
		}
		return &InputError{problems}
	case caseDenied:
		var d abi.Denial
		if err := decode(t, &d); err != nil {
			return err
		}
		for _, recorded := range denials {
			if recorded.Binding == d.Binding && recorded.Operation == d.Operation && recorded.Reason == d.Reason {
				return &DeniedError{recorded}
			}
		}
		return &GuestError{abi.Failure{
			Name:    "UnprovenDenial",
			Message: "the tool claims a denial that this host did not make: " + printable.Short(d.Operation+": "+d.Reason, 4*kib),
		}}
	case caseExhausted:
		return exhausted(outcome.Value.(string), limits)
	default:
		var f abi.Failure
		if err := decode(t, &f); err != nil {
			return err
		}
		return &GuestError{c.told(code, f)}
	}
}

// told formats a guest's failure for people.
func (c *Component) told(code *Code, f abi.Failure) abi.Failure {
	stack := c.mapStack(code, printable.Cut(f.Stack, 16*kib))
	return abi.Failure{Name: printable.Short(f.Name, 256), Message: printable.Short(f.Message, 16*kib), Stack: printable.Short(stack, 16*kib)}
}

// exhausted reads "limit: detail", which the guest's runtime reports when it ran out of one of its own resources.
func exhausted(text string, limits Limits) error {
	text = printable.Short(text, kib)
	limit, detail, _ := strings.Cut(text, ":")
	e := &LimitError{Limit: limit, Detail: strings.TrimSpace(detail), Claimed: true}
	switch limit {
	case "memory":
		e.Value = printable.Size(limits.Memory)
	case "stack", "promise":
	default:
		return &GuestError{abi.Failure{Name: "UnprovenLimit", Message: "the tool claims a limit that this host did not reach: " + text}}
	}
	return e
}
