package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
)

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

// CheckInput returns the error with which a call would end before it begins: its input is too large or does not fit the tool's schema, or there is no
// such tool. It runs no code of the guest, unless the component has to be asked for its tools.
func (c *Component) CheckInput(ctx context.Context, r Request) error {
	if len(r.Input) == 0 {
		r.Input = []byte("{}")
	}
	t := newToolCall(ctx, c, &r)
	defer t.drop()
	return t.admit(ctx)
}

// toolCall is a call of a tool.
type toolCall struct {
	running
	set  *definitionSet
	room schema.Room // for its validations

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
	if r.replay == nil {
		if err := checkWASI(r.WASI, r.Env); err != nil {
			return nil, err
		}
		if err := r.checkVars(); err != nil {
			return nil, err
		}
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
		r.record = c.host.newRecord(userOf(r, frameOf(ctx)))
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
	outer := frameOf(ctx)
	t := &toolCall{caller: ctx}
	var payer schema.Payer
	if outer == nil { // otherwise the outer call pays
		payer = t
	}
	t.room = c.host.validating.For(userOf(r, outer), payer)
	t.running = running{component: c, request: r, limits: c.limits(r, outer), export: c.call, prepare: t.prepare, check: t.checkOutput}
	return t
}

// admit checks the size of the input, starts the clock, and checks the input itself unless the tool's definition comes from the request's code.
func (t *toolCall) admit(ctx context.Context) (err error) {
	c, r := t.component, t.request
	if len(r.Input)+len(r.Code.text()) > t.limits.Input {
		return exceeded("input", printable.Size(int64(t.limits.Input)))
	}
	ctx, cancel, stop := c.host.within(ctx, t.limits)
	t.ctx, t.cancel = ctx, cancel
	t.drops = append(t.drops, stop)
	if r.Code != nil {
		return nil
	}
	if t.set, err = c.definitions(ctx, r.Approved, r.Limits); err != nil {
		return err
	}
	if err := t.set.validate(ctx, t.room, r.Tool, r.Input); err != nil {
		if ctx.Err() != nil {
			err = explainEnd(ctx, t.limits, err)
		}
		return err
	}
	return nil
}

// Pay charges the call for a validation of its input or output.
func (t *toolCall) Pay(took time.Duration) error {
	if t.in != nil {
		return t.in.frame.work(took)
	}
	if t.paid += took; t.paid >= t.limits.CPU {
		return exceeded("cpu", t.limits.CPU.String())
	}
	return nil
}

// complete returns the result of a call that has ended, and records it.
func (t *toolCall) complete() (result Result, err error) {
	if t.in != nil {
		result.Usage, result.Phases = t.in.usage, t.in.phases
	}
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
		if t.set, err = c.evaluated(in, r, t.limits); err == nil {
			err = t.set.validate(t.ctx, t.room, r.Tool, r.Input)
		}
		if err != nil {
			return nil, err
		}
	}
	env, err := in.given()
	if err != nil {
		return nil, err
	}
	h := &handle{resource: c.host.env, value: env}
	if r.replay != nil {
		h.value = recordedEnv
	}
	if in.journal != nil {
		if err := in.openKept(); err != nil {
			return nil, err
		}
	}
	in.handles.names = -len(env) // the caller may give any number of names
	rep := abi.Rep(recordedEnv)
	err = in.handles.put(rep, h)
	in.handles.table.add(rep)
	in.arrived = true
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
	return t.set.keeps(ctx, t.room, t.request.Tool, output)
}

// answer completes the result of a call.
func (t *toolCall) answer(result *Result) error {
	err := t.err
	outcome, answered := t.result.(abi.Variant)
	if answered && outcome.Case != 0 {
		failure := t.component.failure(t.request.Code, outcome.Value, t.set, result.Usage.Denials, t.limits)
		if failed, ok := errors.AsType[*GuestError](failure); ok && t.in.world != nil {
			failed.Failure.Message = explained(failed.Failure.Message, t.in.world.denied)
		}
		if err != nil {
			failure = errors.Join(failure, err)
		}
		return failure
	}
	if err != nil {
		return err
	}
	set, room, tool := t.set, t.component.host.validating.For(userOf(t.request, frameOf(t.caller)), nil), t.request.Tool
	result.keeps = func(ctx context.Context, output []byte) error { return set.keeps(ctx, room, tool, output) }
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
		if list := outcome.Value.([]abi.Value); len(list) > abi.MaxProblems {
			outcome.Value = list[:abi.MaxProblems]
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
		return c.exhausted(code, outcome.Value.(string), limits)
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

// exhausted reads "limit: detail", which the guest's runtime reports when it ran out of one of its own resources. A stack may follow.
func (c *Component) exhausted(code *Code, text string, limits Limits) error {
	text, stack, _ := strings.Cut(text, "\n")
	text = printable.Short(text, kib)
	limit, detail, _ := strings.Cut(text, ":")
	stack = printable.Short(c.mapStack(code, printable.Cut(stack, 4*kib)), 4*kib)
	e := &LimitError{Limit: limit, Detail: strings.TrimSpace(detail), Stack: stack, Claimed: true}
	switch limit {
	case "memory":
		e.Value = printable.Size(limits.Memory)
	case "stack":
		if stack == "" && e.Detail != "" { // it was in the guest's runtime
			e.Detail += "; what the tool returns, or gave to structuredClone or the like, nests too deep"
		}
	case "promise":
	default:
		return &GuestError{abi.Failure{Name: "UnprovenLimit", Message: "the tool claims a limit that this host did not reach: " + text}}
	}
	return e
}
