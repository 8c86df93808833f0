package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// Function is Go code that a run can be of, by its name in [Options.Functions]. [Func] makes one.
//
// It goes on by being called again with the answers of its log: [Step], [Sleep] and [Receive] then return at once what they returned before. So what it does
// between them must depend on nothing else: what reads the time, a random number or a file belongs into a step. Where the run waits, sleeps or ends
// early, these functions do not return: the deferred calls of the Function run, and its goroutine ends. So it calls them in the goroutine in which
// it was called.
//
// ctx ends when somebody cancels the run, with the cause [ErrCancelled], at its deadline, with [ErrLate], when another process has the run, with a *[LostError], and when this process stops.
// A step that takes long should return then. What it returns after that is not kept.
type Function func(ctx context.Context, input json.RawMessage) (output any, err error)

// Func returns a [Function] with an input and an output that are read and written as JSON. An error is how the run ends.
func Func[I, O any](f func(ctx context.Context, input I) (O, error)) Function {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		var in I
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, &host.InputError{Problems: []abi.Problem{{Message: err.Error()}}}
		}
		return f(ctx, in)
	}
}

const (
	// maxSteps bounds the steps and sleeps of a run.
	maxSteps = 10_000
	// maxValue bounds an input, an output, and what a step returns, in bytes of JSON.
	maxValue = 16 << 20
	// maxHistory bounds what the steps of a run return in all: it is in memory while the run goes on.
	maxHistory = 64 << 20
	// maxFunction is the longest name of a function or a step in bytes.
	maxFunction = 256
	// maxText bounds the text of an error in bytes.
	maxText = 64 << 10
)

// StepOption says how a step is made.
type StepOption uint8

// Repeatable declares that a step may be made again if its process ends during it.
const Repeatable StepOption = 1

// StepError is the error of a step. It has the text of what the step returned, and nothing else of it, since the run may go on in another process.
type StepError struct {
	Step, Message string
	// Interrupted says that the process ended during the step, so it may have happened. The error is then an [abi.ErrInterrupted].
	Interrupted bool
}

func (e *StepError) Error() string { return fmt.Sprintf("step %q: %s", e.Step, e.Message) }

// Is makes an interrupted step an [abi.ErrInterrupted].
func (e *StepError) Is(target error) bool { return e.Interrupted && target == abi.ErrInterrupted }

// Step calls do once in the life of the run, and returns what it returned, as JSON makes it, in this and in every later process. If the process
// ends during it, the step fails with an interrupted [StepError], unless it is [Repeatable]. An error of do is a [StepError]. Names are for people, and hold the run to its log: if a
// changed Function does something else where the log has a step, the run is parked.
//
// Everything before is on the disk before do is called. The ctx of do ends when the run does; an error that it returns then is no answer. In a step, and
// outside of a run, Step only calls do.
func Step[T any](ctx context.Context, name string, do func(context.Context) (T, error), options ...StepOption) (T, error) {
	return Go(ctx, name, do, options...)()
}

// Go is [Step] in a goroutine of its own. The function that it returns waits for the step.
func Go[T any](ctx context.Context, name string, do func(context.Context) (T, error), options ...StepOption) (wait func() (T, error)) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return sync.OnceValues(func() (T, error) { return do(ctx) })
	}
	repeatable := false
	for _, o := range options {
		repeatable = repeatable || o == Repeatable
	}
	s := x.begin(kindStep, name, time.Time{})
	if s.answer == nil {
		x.steps.Go(func() { //nolint:contextcheck // the run's, without what ctx may say of a part of it
			failed := error(&parkError{s.text() + " ended its goroutine"})
			defer func() {
				if v := recover(); v != nil {
					failed = panicked(s.text(), v)
				}
				if failed != nil {
					_ = x.stop(failed)
				}
				close(s.over)
			}()
			failed = x.make(s, repeatable, func(ctx context.Context) (any, error) { return do(ctx) })
		})
	} else {
		close(s.over)
	}
	return func() (value T, err error) {
		<-s.over
		switch {
		case s.answer == nil:
			x.leave(errStopped) // it has said why
		case s.answer.Error != nil:
			return value, &StepError{Step: name, Message: *s.answer.Error, Interrupted: s.answer.Interrupted}
		}
		if err := json.Unmarshal(s.answer.Value, &value); err != nil {
			x.leave(&host.PartedError{Operation: s.N, Expected: fmt.Sprintf("%s with the result %s", s.text(), printable.Short(string(s.answer.Value), 200)), Got: fmt.Sprintf("one that returns a %T", value)})
		}
		return value, nil
	}
}

// Sleep waits, in the run, for a time that counts from the first call: without a goroutine, if it is longer than [Options.Idle]. In a step, and
// outside of a run, it only waits; the error is that of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s := x.begin(kindSleep, "", x.runs.now().Add(d))
	x.wait(abi.Wait{At: s.At}, nil)
	return nil
}

// Receive returns the oldest message of a mailbox of the run: it waits until there is one, at most for the timeout if that is not zero, without a
// goroutine if it takes longer than [Options.Idle]. It reports false if none came. The data come from outside, so do not trust them: an error is one
// of reading them as a T, or a *[MessageError] for a name that no mailbox has. Outside of a run, and in a step, it fails with [ErrNotDurable].
func Receive[T any](ctx context.Context, mailbox string, timeout time.Duration) (value T, ok bool, err error) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return value, false, ErrNotDurable
	}
	if !abi.IsMailbox(mailbox) {
		return value, false, errMailbox(mailbox)
	}
	data := x.receive(mailbox, timeout) //nolint:contextcheck // the run's
	if data == nil {
		return value, false, nil
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, true, fmt.Errorf("a message for %q: %w", mailbox, err)
	}
	return value, true, nil
}

// StepKey returns a name for the step of this ctx that no other step has, and that is the same whenever the step is repeated: an idempotency key. It is
// empty outside of a step of a run.
func StepKey(ctx context.Context) string {
	key, _ := ctx.Value(stepKey{}).(string)
	return key
}

type (
	executionKey struct{}
	stepKey      struct{}
)

// waitError ends the goroutine of a Function whose run sleeps.
type waitError struct{ abi.Wait }

func (e *waitError) Error() string { return "the run sleeps" }

// The kinds of entries in the log of a Function: all but the last begin something.
const (
	kindStep    = "step"
	kindSleep   = "sleep"
	kindReceive = "receive"
	kindAnswer  = "answer"
)

// stepEntry is an entry of the log.
type stepEntry struct {
	N           uint64          `json:"n"` // counted from 1
	Kind        string          `json:"kind"`
	Name        string          `json:"name,omitempty"`
	At          time.Time       `json:"at,omitzero"`
	Value       json.RawMessage `json:"value,omitempty"`
	Error       *string         `json:"error,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`
	Timeout     bool            `json:"timeout,omitempty"`
}

func (e stepEntry) text() string {
	switch e.Kind {
	case kindSleep:
		return "a sleep"
	case kindReceive:
		return fmt.Sprintf("receiving from %q", e.Name)
	}
	return fmt.Sprintf("step %q", e.Name)
}

// step is a step or a sleep of a run.
type step struct {
	stepEntry
	answer *stepEntry // nil until there is one; over is closed then, or when there will be none
	again  bool       // it began in another process
	over   chan struct{}
}

// execution is a Function that is called.
type execution struct {
	runs  *Runs
	a     *active
	ctx   context.Context // of the run
	log   []*step
	next  int
	steps sync.WaitGroup

	mu   sync.Mutex
	size int   // of the log
	why  error // of the early end of its goroutine
}

// execute calls a Function, and returns once nothing of it is under way.
func (r *Runs) execute(ctx context.Context, a *active, f Function, input json.RawMessage, log [][]byte) (result host.Result, err error) {
	x := &execution{runs: r, a: a, ctx: ctx}
	if x.log, err = readSteps(log); err != nil {
		return result, err
	}
	for _, e := range log {
		x.size += len(e)
	}
	var value any
	returned := make(chan error, 1)
	go func() {
		failed := error(&parkError{"its function ended its goroutine"})
		defer func() {
			if v := recover(); v != nil {
				failed = panicked("its function", v)
			}
			returned <- failed
		}()
		v, err := f(context.WithValue(ctx, executionKey{}, x), input)
		switch {
		case errors.As(err, new(*host.InputError)):
			failed = err
		case err != nil:
			failed = &functionError{printable.Short(err.Error(), maxText)}
		default:
			value, failed = v, nil
		}
	}()
	err = <-returned
	x.steps.Wait()
	for _, s := range x.log[:x.next] {
		if s.answer != nil && s.answer.Interrupted {
			result.Usage.Interrupted++
		}
	}
	why := x.stop(errStopped)
	switch {
	case !errors.Is(why, errStopped):
		err = why // also if a deferred call went on
	case err == nil && x.next < len(x.log):
		err = &host.PartedError{Operation: uint64(x.next + 1), Expected: x.log[x.next].text(), Got: "the end of the function"}
	case err == nil:
		if result.Output, err = encode(value); err != nil {
			err = &functionError{"the result: " + err.Error()}
		}
		return result, err
	}
	// What the steps returned is not lost if the run goes on.
	if failed := a.journal.Commit(r.base); failed != nil && errors.As(err, new(*waitError)) { //nolint:contextcheck // also after the end of ctx
		err = failed
	}
	return result, err
}

// functionError is an error of a Function.
type functionError struct{ text string }

func (e *functionError) Error() string { return e.text }

func panicked(what string, v any) error {
	return &parkError{printable.Short(fmt.Sprintf("%s panicked: %v\n%s", what, v, debug.Stack()), 4<<10)}
}

// encode writes a value down.
func encode(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("it has %s of JSON; %s are allowed", printable.Size(int64(len(text))), printable.Size(maxValue))
	}
	return text, err
}

// isAnswer reports whether an entry of the log answers something that began.
func isAnswer(entry []byte) bool {
	var e struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(entry, &e) == nil && e.Kind == kindAnswer
}

// readSteps reads the log of a Function.
func readSteps(log [][]byte) (steps []*step, err error) {
	malformed := &host.StateError{Reason: "an entry of its log is malformed"}
	for _, text := range log {
		var e stepEntry
		if json.Unmarshal(text, &e) != nil {
			return nil, malformed
		}
		n := uint64(len(steps))
		switch {
		case e.Kind == kindAnswer && e.N >= 1 && e.N <= n && steps[e.N-1].Kind != kindSleep && steps[e.N-1].answer == nil && (e.Value == nil) != (e.Error == nil):
			steps[e.N-1].answer = &e
		case (e.Kind == kindStep || e.Kind == kindSleep || e.Kind == kindReceive) && e.N == n+1:
			steps = append(steps, &step{stepEntry: e, again: true, over: make(chan struct{})})
		default:
			return nil, malformed
		}
	}
	return steps, nil
}

// leave ends the goroutine of the Function, for the first reason that there was.
func (x *execution) leave(why error) {
	_ = x.stop(why)
	runtime.Goexit()
}

// stop has the execution make no more steps, and returns the first reason.
func (x *execution) stop(why error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.why == nil {
		x.why = why
	}
	return x.why
}

// begin takes the next step from the log, or writes it down.
func (x *execution) begin(kind, name string, at time.Time) *step {
	x.mu.Lock()
	stopped := x.why != nil
	x.mu.Unlock()
	if stopped || x.ctx.Err() != nil {
		x.leave(context.Cause(x.ctx))
	}
	got := stepEntry{N: uint64(x.next + 1), Kind: kind, Name: name, At: at}
	if x.next < len(x.log) {
		s := x.log[x.next]
		if s.Kind != kind || s.Name != name {
			x.leave(&host.PartedError{Operation: got.N, Expected: s.text(), Got: got.text()})
		}
		x.next++
		return s
	}
	switch {
	case len(name) > maxFunction:
		x.leave(&parkError{fmt.Sprintf("the name of step %d has %d bytes; %d are allowed", got.N, len(name), maxFunction)})
	case x.next >= maxSteps:
		x.leave(&host.LimitError{Limit: "steps", Value: strconv.Itoa(maxSteps)})
	}
	if err := x.append(got); err != nil {
		x.leave(err)
	}
	s := &step{stepEntry: got, over: make(chan struct{})}
	x.log = append(x.log, s)
	x.next++
	return s
}

// append adds an entry to the log.
func (x *execution) append(e stepEntry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write a step down: %w", err)
	}
	x.mu.Lock()
	x.size += len(text)
	full := x.size > maxHistory
	x.mu.Unlock()
	if full {
		return &host.LimitError{Limit: "bytes", Value: printable.Size(maxHistory), Detail: "of what the steps returned"}
	}
	return x.a.journal.append(text, e.Kind != kindAnswer)
}

// make makes a step and writes its answer down. An error ends the goroutine of the Function.
func (x *execution) make(s *step, repeatable bool, do func(context.Context) (any, error)) error {
	answer := stepEntry{N: s.N, Kind: kindAnswer}
	failed := func(text string) { answer.Error, answer.Value = &text, nil }
	if s.again && !repeatable {
		failed("the process ended meanwhile, so it may have happened")
		answer.Interrupted = true
	} else {
		if !s.again && !repeatable {
			if err := x.a.journal.Commit(x.ctx); err != nil {
				return err
			}
		}
		ctx := context.WithValue(x.ctx, executionKey{}, (*execution)(nil))
		value, err := do(context.WithValue(ctx, stepKey{}, fmt.Sprintf("%s/%d", x.a.name, firstOf(x.a.attempt)+s.N)))
		if err == nil {
			answer.Value, err = encode(value)
		}
		switch {
		case err != nil && x.ctx.Err() != nil:
			return context.Cause(x.ctx)
		case err != nil:
			failed(printable.Short(err.Error(), maxText))
		}
	}
	if err := x.append(answer); err != nil {
		return err
	}
	s.answer = &answer
	return nil
}

// wait waits for a time or an event. If that takes long, the goroutine of the Function ends.
func (x *execution) wait(w abi.Wait, event <-chan struct{}) {
	if event == nil && w.At.Sub(x.runs.now()) > x.runs.o.Idle {
		x.leave(&waitError{w})
	}
	var due <-chan time.Time
	if !w.At.IsZero() {
		timer := time.NewTimer(w.At.Sub(x.runs.now()))
		defer timer.Stop()
		due = timer.C
	}
	idle := time.NewTimer(x.runs.o.Idle)
	defer idle.Stop()
	select {
	case <-due:
	case <-event:
	case <-x.ctx.Done():
		x.leave(context.Cause(x.ctx))
	case <-idle.C:
		x.leave(&waitError{w})
	}
}

// receive returns the oldest message of a mailbox, or nil when it was waited for long enough.
func (x *execution) receive(mailbox string, timeout time.Duration) json.RawMessage {
	var until time.Time
	if timeout != 0 {
		until = x.runs.now().Add(timeout)
	}
	s := x.begin(kindReceive, mailbox, until)
	if s.answer != nil {
		return received(s.answer)
	}
	fail := func(err error) {
		if err != nil {
			x.leave(err)
		}
	}
	fail(x.a.journal.Commit(x.ctx)) // what was received before is not kept elsewhere from now on
	ctx := abi.WithOnce(x.ctx, abi.Once{Run: x.a.name, Sequence: firstOf(x.a.attempt) + s.N})
	for {
		ready := make(chan struct{})
		stop, err := mailboxes{x.a}.Watch(ctx, mailbox, func() { close(ready) })
		fail(err)
		m, ok, err := mailboxes{x.a}.Take(ctx, mailbox)
		fail(err)
		if late := !s.At.IsZero() && !x.runs.now().Before(s.At); ok || late {
			stop()
			answer := &stepEntry{N: s.N, Kind: kindAnswer, Value: json.RawMessage("null")}
			if ok {
				answer.Value = m.Data
			}
			answer.Timeout = !ok
			fail(x.append(*answer))
			s.answer = answer
			return received(answer)
		}
		func() {
			defer stop()
			x.wait(abi.Wait{At: s.At, Event: mailbox}, ready)
		}()
	}
}

// received returns the message of an answer, or nil if none came in time.
func received(answer *stepEntry) json.RawMessage {
	if answer.Timeout {
		return nil
	}
	return answer.Value
}
