// Package tools lets a guest call other tools: it implements the interface stile:capability/tools in Go. A [Toolbox] finds tools by
// name and runs them concurrently with the guest; a [Call] is a running tool. The creator of the toolbox decides what a tool is and
// what it may do: host.Callee is a tool of a component.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/printable"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/tools.wit.
const Interface = "stile:capability/tools@0.1.0"

// Func starts a tool, on a goroutine of its own. At the tool's end, it calls done once, on any goroutine, or panics instead. It should
// return while the tool waits, so that nothing but memory waits with it. ctx ends with the call that started it; the tool must then end
// soon. name is the name that the guest used for the tool. input is text that should be JSON. env holds
// the bindings that the guest passes on to the tool. The output is JSON. The guest sees the
// text of an *[abi.Error], and no text of other errors.
type Func func(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func(output []byte, err error))

// Description is the record `description`: the information about a tool for guests.
type Description struct {
	// Name is the name to call the tool by, "<extension>_<tool>".
	Name        string
	Description string
	// InputSchema is JSON.
	InputSchema string
}

// Options configures a [Toolbox].
type Options struct {
	// Resolve finds the tool of a name. It fails with abi.ErrNotFound, or with an *abi.Error that says why the tool cannot be
	// called. It must be safe for concurrent use and quick.
	Resolve func(name string) (Func, error)
	// Finder finds the tools for search and describe. Default: there are none to find.
	Finder Finder
	// Held is how many bytes the host holds for one call at a time: inputs and results of the tools that it started, directly or
	// through others. Results are in memory as blobs are, or else in a temporary file. Inputs are in memory, at most 48 MiB for all
	// calls of the process. Default 16 MiB.
	Held int64
}

// Toolbox is the right to call some tools. It is an abi.Opener, so each call has the whole of Held to itself, shared by its bindings
// and by the calls it starts. It is immutable, safe
// for concurrent use, and needs no closing. The calls made with it need closing.
type Toolbox struct {
	options  Options
	held     *blob.Quota
	running  *blob.Quota
	failures *blob.Quota
}

// New returns a toolbox.
func New(o Options) (*Toolbox, error) {
	if o.Resolve == nil {
		return nil, errors.New("tools: Options.Resolve is required")
	}
	if o.Finder == nil {
		o.Finder = nothing{}
	}
	o.Held = cmp.Or(o.Held, 16<<20)
	return &Toolbox{options: o, held: held(o.Held).quota(), running: running(), failures: failures()}, nil
}

// With returns a toolbox that has the tools of another one too. If both have a name, t's tool is called and found.
func (t *Toolbox) With(more *Toolbox) *Toolbox {
	whole := *t
	whole.options.Resolve = func(name string) (Func, error) {
		run, err := t.options.Resolve(name)
		if errors.Is(err, abi.ErrNotFound) {
			return more.options.Resolve(name)
		}
		return run, err
	}
	whole.options.Finder = both{t.options.Finder, more.options.Finder}
	return &whole
}

// The process holds at most so many bytes of inputs for the tools of all calls, in memory: of inputs of at most smallInput bytes, which
// never compete with larger ones, and of the others. Results are in blobs, whose memory is bounded too.
const (
	smallInput = 16 << 10
	maxSmall   = 16 << 20
	maxLarge   = 32 << 20
)

var (
	smallInputs = blob.NewQuota("bytes of small inputs for the tools of all calls", maxSmall)
	largeInputs = blob.NewQuota("bytes of inputs for the tools of all calls", maxLarge)
)

// perBinding is what each binding takes that is passed to a tool. Those that perTool does not include count as bytes of the input.
const perBinding, freeBindings = 512, 8

// room is what an input of n bytes counts toward, of the call and of the process.
func (t *Toolbox) room(n int64) blob.Quotas {
	if n <= smallInput {
		return blob.Quotas{t.held, smallInputs}
	}
	return blob.Quotas{t.held, largeInputs}
}

// A tool that runs, or waits, takes the host about this much besides its input and its guest. One call has at most 1,000 of them at once,
// through others included. All calls of the process have 10,000 of them, besides 16 for each call.
const (
	perTool   = 8 << 10
	maxTools  = 1_000 * perTool
	freeTools = 16 * perTool
)

var allTools = blob.NewQuota("bytes of tools that the tools of all calls have started", 10_000*perTool)

func running() *blob.Quota {
	return allTools.Part("bytes of tools that the tools of one call have started", maxTools, freeTools)
}

type runningKey struct{}

// The process keeps at most so many bytes of errors of tools that nobody has taken, and some for each call besides. Those beyond are
// shortened.
const (
	maxErrors  = 1 << 20
	freeErrors = 64 << 10
	shortError = 256
)

var allErrors = blob.NewQuota("bytes of errors of the tools of all calls", 32<<20)

func failures() *blob.Quota {
	return allErrors.Part("bytes of errors of the tools of one call", maxErrors, freeErrors)
}

type failuresKey struct{}

// held is how many bytes a call may hold. Toolboxes of a call with equal limits share one quota.
type held int64

func (h held) quota() *blob.Quota { return blob.NewQuota("bytes held for tools", int64(h)) }

// Interface implements abi.Capability.
func (t *Toolbox) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Toolbox) Quick() []string { return []string{"get", "toolbox.start"} }

// Lists implements [abi.Bounded].
func (*Toolbox) Lists() map[string]int {
	return map[string]int{"toolbox.search.result": maxFound, "toolbox.describe.names": maxDescribed}
}

// Open implements abi.Opener: it returns a *Toolbox with the same options.
func (t *Toolbox) Open(ctx context.Context) (any, error) {
	h := held(t.options.Held)
	return &Toolbox{
		options: t.options, held: abi.OfCall(ctx, h, h.quota),
		running: abi.OfCall(ctx, runningKey{}, running), failures: abi.OfCall(ctx, failuresKey{}, failures),
	}, nil
}

const (
	// maxFound is how many tools one search finds at most.
	maxFound = 100
	// maxDescribed is how many names one description has at most. Only the first [MaxNames] are described.
	maxDescribed = 100
	// startTime is the processor time that a start is charged for the host's work outside of both guests: finding the tool, opening
	// its env, accounting for the call and dropping everything. Without it, a tool that does nothing would cost the host twice as
	// much as its caller is charged.
	startTime = 300 * time.Microsecond
	// maxQuery is the longest query in bytes. A longer one would keep the host busy for a guest.
	maxQuery = 1 << 10
)

// Search returns at most limit tools, and at most 100, that fit the words of query, the best first. An empty query matches all tools, and
// one of more than 1 KiB none.
func (t *Toolbox) Search(_ context.Context, query string, limit uint32) []Description {
	if len(query) > maxQuery {
		return nil
	}
	found := t.options.Finder.Search(query, min(maxFound, int(limit)))
	return found[:min(len(found), maxFound, int(limit))]
}

// Describe describes tools in TypeScript, as [Signatures] does.
func (t *Toolbox) Describe(_ context.Context, names []string) string {
	for i := range names {
		names[i] = printable.Cut(names[i], maxQuery)
	}
	return Signatures(t.options.Finder, names)
}

// Start starts a tool, passes env on to it, and returns at once. It fails with abi.ErrNotFound if there is no such tool, and with
// abi.ErrExhausted if the host holds too much for the call. [Call.Take] reports any other error. The tool ends with the call of the
// guest that started it.
func (t *Toolbox) Start(ctx context.Context, tool, input string, env abi.Env) (*Call, error) {
	run, err := t.options.Resolve(tool)
	if err != nil {
		return nil, err
	}
	if err := abi.Work(ctx, startTime); err != nil {
		return nil, err
	}
	if err := abi.Charge(ctx, len(input)); err != nil {
		return nil, err
	}
	capabilities := env.Capabilities() // here, because the guest continues
	size := int64(len(input) + perBinding*max(0, len(capabilities)-freeBindings))
	for _, c := range capabilities {
		if s, ok := c.(abi.Sized); ok {
			size += int64(s.Size())
		}
	}
	room := t.room(size)
	if err := room.Reserve(size); err != nil {
		return nil, err
	}
	if err := t.running.Reserve(perTool); err != nil {
		room.Release(size)
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Call{cancel: cancel, failures: t.failures}
	text := []byte(input)
	var once sync.Once
	end := func(keep func() error) {
		once.Do(func() {
			defer c.done.SetReady()
			defer cancel()
			defer room.Release(size)
			defer t.running.Release(perTool)
			defer func() { c.panicked = recover() }() // Take repeats the panic on its own goroutine, where the host expects it
			c.fail(keep())
		})
	}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				end(func() error { panic(p) })
			}
		}()
		run(ctx, tool, text, capabilities, func(output []byte, err error) {
			end(func() error { return c.keep(ctx, t.held, output, err) })
		})
	}()
	return c, nil
}

// Call is a running tool: the resource `pending`. It is safe for concurrent use. Its holder closes it.
type Call struct {
	cancel context.CancelFunc
	// done is ready when output, err or panicked is set.
	done     abi.Pollable
	output   *blob.Blob // closed with the call; nil after an error
	err      error
	panicked any
	failures *blob.Quota
	forget   sync.Once
	kept     int64 // bytes of failures
}

// keep keeps the output of a tool, unless it failed.
func (c *Call) keep(ctx context.Context, held *blob.Quota, output []byte, err error) error {
	if err == nil {
		err = abi.Charge(ctx, len(output))
	}
	if err != nil {
		return err
	}
	b := blob.NewBuilder(blob.Options{Limit: max(1, int64(len(output))), Quota: held})
	if _, err = b.Write(output); err == nil {
		c.output, err = b.Blob()
	}
	if err != nil {
		err = errors.Join(err, b.Close())
	}
	return err
}

// fail keeps an error until Close: what the guest sees of it, without its cause, which may hold more text.
func (c *Call) fail(err error) {
	shown, ok := errors.AsType[*abi.Error](err)
	if !ok {
		c.err = err
		return
	}
	n := len(shown.Detail)
	if d := shown.Denial; d != nil {
		n += len(d.Operation) + len(d.Reason) + len(d.Remedy)
	}
	if n > shortError {
		if c.failures.Reserve(int64(n)) == nil {
			c.kept = int64(n)
		} else {
			shown = shortened(shown)
		}
	}
	c.err = shown
}

func shortened(e *abi.Error) *abi.Error {
	short := *e
	short.Detail = printable.Short(e.Detail, shortError)
	if d := e.Denial; d != nil {
		short.Denial = &abi.Denial{
			Binding: d.Binding, Operation: printable.Short(d.Operation, shortError), Reason: printable.Short(d.Reason, shortError), Private: d.Private,
		}
	}
	return &short
}

// Quick implements [abi.Quick].
func (*Call) Quick() []string { return []string{"pending.subscribe"} }

// Subscribe returns a pollable that is ready when Take answers without waiting.
func (c *Call) Subscribe(context.Context) *abi.Pollable { return &c.done }

// Take waits for the result of the tool and returns it as JSON. If the tool failed, Take returns its error.
func (c *Call) Take(ctx context.Context) (string, error) {
	if err := c.done.Wait(ctx); err != nil {
		return "", fmt.Errorf("wait for the tool: %w", err)
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	if c.err != nil {
		return "", c.err
	}
	if err := abi.Room(ctx, c.output.Reader().Size()); err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(c.output.Reader().Size()))
	_, err := io.Copy(&text, c.output.Reader())
	return text.String(), err
}

// Close ends the tool if it still runs, and returns when it has ended. Closing again does nothing.
func (c *Call) Close() error {
	c.cancel()
	<-c.done.Done()
	c.forget.Do(func() { c.failures.Release(c.kept) })
	if c.output == nil {
		return nil
	}
	return c.output.Close()
}
