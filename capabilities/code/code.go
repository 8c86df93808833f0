// Package code lets a guest run code that it gets at run time, such as a model's: it implements the interface stile:capability/code in
// Go. A [Grant] says with which of the caller's bindings such code may run, and what it may take. The creator of the grant hands in
// what evaluates code.
package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/calls"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/code.wit.
const Interface = "stile:capability/code@0.1.0"

// ConsoleBinding is the name of the console that code has if its caller passes on nothing of that name.
const ConsoleBinding = "console"

// Program is code that is to run once.
type Program struct {
	// Name is its name in errors and stacks. Its ending names the language.
	Name string
	// Text is the body of an async function with the parameters input, env and tools.
	Text string
	// Input is text that should be JSON.
	Input []byte
	// Env are the bindings that the caller passes on, and a console. The evaluator may add others that reach nothing outside the call.
	Env map[string]abi.Capability
	// Limits are those of the grant. The caller's apply too.
	Limits Limits
}

// Evaluator runs code in a fresh instance. At the end, it calls done once, on any goroutine, or panics instead. It should return while the
// code waits. ctx ends with the call that started the code; the code must then end soon, and its processor time counts there. The
// output is JSON. The guest sees the text of an *[abi.Error] and of a *[ThrownError], and no text of other errors.
type Evaluator func(ctx context.Context, p Program, done func(output []byte, err error))

// ThrownError is what code threw. Its texts are the code's, made printable and bounded.
type ThrownError struct{ Failure abi.Failure }

// frameAt is the place in the first frame of a stack.
var frameAt = lazyregexp.New(`^\s*at [^\n]*?\(?([A-Za-z0-9_.-]+:[0-9]+:[0-9]+)\)?(\n|$)`)

// Error implements error. It begins with the place where it was thrown, such as "code.ts:3:7", if that is known.
func (e *ThrownError) Error() string {
	text := cmp.Or(e.Failure.Name, "Error")
	if e.Failure.Message != "" {
		text += ": " + e.Failure.Message
	}
	if at := frameAt.FindStringSubmatch(e.Failure.Stack); at != nil {
		text = at[1] + ": " + text
	}
	return text
}

// Unwrap returns the error for the guest.
func (e *ThrownError) Unwrap() error { return abi.Errorf(abi.CodeUnavailable, "%s", e.Error()) }

// Limits bound the code that one call runs through one binding. A zero field means its default.
type Limits struct {
	// Runs is how often a call runs code. Default 100.
	Runs int
	// CPU is processor time of one run, in whole seconds. Default 1 s. It counts as the caller's too.
	CPU time.Duration
	// Memory is of one run, in whole MiB. Default 64 MiB, and never more than the caller has.
	Memory int64
	// Bytes is how long the code and its input may be together, and how long its result. Default 256 KiB.
	Bytes int64
}

// The defaults, and the most that a grant can have.
var (
	usual = Limits{Runs: 100, CPU: time.Second, Memory: 64 << 20, Bytes: 256 << 10}
	most  = Limits{Runs: 10_000, CPU: 600 * time.Second, Memory: 4 << 30, Bytes: 1 << 20}
)

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Runs, usual.Runs), cmp.Or(l.CPU, usual.CPU), cmp.Or(l.Memory, usual.Memory), cmp.Or(l.Bytes, usual.Bytes)}
}

// within are limits that are nowhere above others. Both have their defaults.
func (l Limits) within(most Limits) Limits {
	return Limits{min(l.Runs, most.Runs), min(l.CPU, most.CPU), min(l.Memory, most.Memory), min(l.Bytes, most.Bytes)}
}

// Grant is the right to run code. It is an abi.Opener, so each call has runs of its own. It is immutable, safe for concurrent use, and needs
// no closing. A guest cannot pass it on.
type Grant struct {
	rights   Rights
	limits   Limits // of rights, with the defaults
	evaluate Evaluator
}

// New returns the grant of rights.
func New(g Rights, e Evaluator) *Grant {
	return &Grant{g, g.Limits.withDefaults(), e}
}

// Interface implements [abi.Capability].
func (*Grant) Interface() string { return Interface }

// Fixed implements [abi.Fixed].
func (*Grant) Fixed() string { return "code runs only with bindings of the call that has it" }

// Quick implements [abi.Quick].
func (*Grant) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener]; the value is a [*Runner].
func (g *Grant) Open(ctx context.Context) (any, error) {
	return &Runner{grant: g, room: calls.NewRoom(ctx, calls.DefaultHeld), logs: abi.OfCall(ctx, logsKey{}, func() *blob.Quota { return logs(turns.User(ctx)) })}, nil
}

// Save implements [abi.Lasting]: it returns how often the call has run code.
func (r *Runner) Save() (state []byte, ok bool) {
	return strconv.AppendInt(nil, r.runs.Load(), 10), true
}

// Reopen implements [abi.Reopener]: a call that goes on has the runs that were left.
func (g *Grant) Reopen(ctx context.Context, state []byte) (any, error) {
	n, err := strconv.ParseInt(string(state), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read how often a call has run code: %w", err)
	}
	opened, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	opened.(*Runner).runs.Store(n)
	return opened, nil
}

// Runner runs the code of one call: the resource `runner`. It is safe for concurrent use.
type Runner struct {
	grant *Grant
	room  *calls.Room
	logs  *blob.Quota
	runs  atomic.Int64
}

// Fixed implements [abi.Fixed].
func (r *Runner) Fixed() string { return r.grant.Fixed() }

// Quick implements [abi.Quick].
func (*Runner) Quick() []string { return []string{"runner.start"} }

// The processor time that a start is charged for what the host does with each byte of code before esbuild does: it looks for nesting and
// for what takes long. esbuild's own time is charged when it is known.
const scanTime = 20 * time.Nanosecond

// programName is a name that means the same in a message, a stack and a source map.
var programName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// Start starts code, passes env on to it, and returns at once. It fails with abi.ErrDenied if env has a binding that the grant does not let
// code have, and with abi.ErrExhausted if the code is too long, there were too many runs, or the host holds too much for the call.
// [Pending.Take] reports any other error. The code ends with the call of the guest that started it.
func (r *Runner) Start(ctx context.Context, text, name, input string, env abi.Env) (*Pending, error) {
	limits := r.grant.limits
	size := len(text) + len(input)
	if int64(size) > limits.Bytes {
		return nil, abi.Spent("bytes of code and input", limits.Bytes, "bytes")
	}
	if !programName.MatchString(name) {
		return nil, abi.Errorf(abi.CodeInvalid, `%s cannot name code; write a name like "code.ts"`, jsonform.Quote(name))
	}
	if err := r.grant.rights.allows(env); err != nil {
		return nil, err
	}
	if n := r.runs.Add(1); n > int64(limits.Runs) {
		r.runs.Add(-1)
		return nil, abi.Spent("runs of code", limits.Runs, "runs")
	}
	if err := abi.Work(ctx, scanTime*time.Duration(len(text))); err != nil {
		return nil, err
	}
	// The texts of a guest may be parts of larger ones.
	p := Program{Name: strings.Clone(name), Text: strings.Clone(text), Input: []byte(input), Limits: limits}
	run := &Pending{logs: r.logs, written: &log{quota: r.logs}}
	var err error
	run.Call, err = r.room.Start(ctx, size, env, func(ctx context.Context, env map[string]abi.Capability, done func([]byte, error)) {
		if p.Env = env; env[ConsoleBinding] == nil {
			env[ConsoleBinding] = run.written
		}
		r.grant.evaluate(ctx, p, func(output []byte, err error) {
			if thrown, ok := errors.AsType[*ThrownError](err); ok {
				run.keep(thrown.Failure)
			}
			done(output, err)
		})
	})
	if err != nil {
		return nil, err
	}
	return run, nil
}

// allows checks what a guest passes on to code.
func (g Rights) allows(env abi.Env) error {
	var lacks []string
	for name := range env.Capabilities() {
		if origin := env.Origin(name); !slices.Contains(g.Env, origin) && !slices.Contains(lacks, origin) {
			lacks = append(lacks, origin)
		}
	}
	if lacks == nil {
		return nil
	}
	slices.Sort(lacks)
	reason := "code may have none of the caller's bindings"
	if len(g.Env) > 0 {
		reason = "code may have only " + strings.Join(g.Env, ", ")
	}
	wants := g
	wants.Env = slices.Sorted(slices.Values(slices.Concat(g.Env, lacks)))
	return abi.Deny(abi.Denial{
		Operation: "pass " + printable.Short(strings.Join(lacks, ", "), 200) + " on to code", Reason: reason,
		Wants: capability.Wanted{Grant: wants},
	})
}

// Pending is code that runs: the resource `pending`. It is safe for concurrent use. Its holder closes it.
type Pending struct {
	*calls.Call
	logs    *blob.Quota
	written *log

	mu      sync.Mutex
	failure *abi.Failure
	kept    int64 // bytes of logs, for failure
}

// shortFailure is how many bytes of each text are kept of a failure for which there is no room.
const shortFailure = 256

func (p *Pending) keep(f abi.Failure) {
	size := int64(len(f.Name) + len(f.Message) + len(f.Stack))
	if err := p.logs.Reserve(size); err != nil {
		f = abi.Failure{Name: printable.Short(f.Name, shortFailure), Message: printable.Short(f.Message, shortFailure)}
		size = 0 // as small as what a run takes anyway
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure, p.kept = &f, size
}

// Quick implements [abi.Quick].
func (*Pending) Quick() []string {
	return []string{"pending.subscribe", "pending.thrown", "pending.log"}
}

// Lists implements [abi.Bounded].
func (*Pending) Lists() map[string]int { return map[string]int{"pending.log.result": maxLines} }

// Thrown returns what the code threw. It is nil if the code has not ended, or not that way. The error is always nil, and is there for the
// end of a grant.
func (p *Pending) Thrown(context.Context) (*abi.Failure, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure, nil
}

// Log returns what the code has logged since the last call. The error is as for Thrown.
func (p *Pending) Log(context.Context) ([]Line, error) { return p.written.take(), nil }

// Close ends the code if it still runs, and returns when it has ended. Closing again does nothing.
func (p *Pending) Close() error {
	err := p.Call.Close()
	p.written.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs.Release(p.kept)
	p.kept = 0
	return err
}

// Line is a line of a log: the record `line`.
type Line struct {
	Level capability.Level
	Text  string
}

// What one run can log, and what a line takes besides its text. The logs and failures of the runs of one call, and of all calls of the
// process, have bounds too.
const (
	maxLines  = 500
	maxLog    = 16 << 10
	perLine   = 64
	maxLogs   = 1 << 20
	freeLogs  = 16 << 10
	sumLogs   = 16 << 20
	truncated = "the rest of the log is left out"
)

var allLogs = blob.NewCommon("bytes of logs and failures of code", sumLogs)

func logs(user string) *blob.Quota {
	return allLogs.Part(user, "bytes of logs and failures of the code of one call", maxLogs, freeLogs)
}

type logsKey struct{}

// log is the console of a run. It is not [console.To], whose limit all calls of a chain share.
type log struct {
	quota *blob.Quota

	mu     sync.Mutex
	lines  []Line
	count  int
	bytes  int
	kept   int64 // bytes of quota
	full   bool
	closed bool
}

// Interface implements [abi.Capability].
func (*log) Interface() string { return "stile:capability/console@0.1.0" }

// Quick implements [abi.Quick].
func (*log) Quick() []string { return []string{"get", "console.log", "console.progress"} }

// Progress implements the method `progress` of a console. Nobody is told.
func (*log) Progress(context.Context, float64, *float64, string) {}

// Log implements the method `log` of a console.
func (l *log) Log(_ context.Context, level capability.Level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full || l.closed {
		return
	}
	room := maxLog - l.bytes
	head := printable.Cut(message, max(room, 0)) // before cleaning, so that the limit bounds the work too
	clean := printable.Text(head)
	text := printable.Cut(clean, max(room, 0))
	size := int64(len(text) + perLine)
	switch {
	case room <= 0, l.count == maxLines-1, l.quota.Reserve(size) != nil:
		l.full = true
	default:
		l.kept += size
		l.add(level, text)
		l.full = len(head) < len(message) || len(text) < len(clean)
	}
	if l.full {
		l.add(capability.Warn, truncated)
	}
}

// add adds a line. The caller holds mu.
func (l *log) add(level capability.Level, text string) {
	l.lines = append(l.lines, Line{level, text})
	l.count++
	l.bytes += len(text) + 1
}

func (l *log) take() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	l.quota.Release(l.kept)
	l.kept = 0
	return lines
}

func (l *log) close() {
	l.take()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// showTime and showSize are numbers in the units of a manifest.
func showTime(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
func showSize(n int64) string         { return fmt.Sprintf("%d MiB", n>>20) }
