// Package calls runs what the guests of calls start: tools of others, or code. It bounds what the host holds for that, for each call and for
// the process, and keeps the result until the guest takes it.
package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// DefaultHeld is how many bytes the host holds for one call at a time, unless its opener says otherwise.
const DefaultHeld = 16 << 20

// Room is where one call holds what it starts, and what that starts in turn. It is safe for concurrent use.
type Room struct {
	held         *blob.Quota
	small, large *blob.Quota // inputs
	running      *blob.Quota
	failures     *blob.Quota
}

// Apart returns the room of no call.
func Apart(bytes int64) *Room {
	return &Room{held(bytes).quota(), inputs(smallInputs, ""), inputs(largeInputs, ""), running(""), failures("")}
}

// NewRoom returns the room of the call of ctx. Rooms of a call with the same bytes share them, and all share the rest.
func NewRoom(ctx context.Context, bytes int64) *Room {
	h, user := held(bytes), turns.User(ctx)
	return &Room{
		held:  abi.OfCall(ctx, h, h.quota),
		small: inputs(smallInputs, user), large: inputs(largeInputs, user),
		running:  abi.OfCall(ctx, runningKey{}, func() *blob.Quota { return running(user) }),
		failures: abi.OfCall(ctx, failuresKey{}, func() *blob.Quota { return failures(user) }),
	}
}

// Of what all calls of the process have together, each user has a share.

// The process holds at most so many bytes of inputs for the tools of all calls, in memory: of inputs of at most smallInput bytes, which
// never compete with larger ones, and of the others. Results are in blobs, whose memory is bounded too.
const (
	smallInput = 16 << 10
	maxSmall   = 16 << 20
	maxLarge   = 32 << 20
)

var (
	smallInputs = blob.NewCommon("bytes of small inputs for the tools of all calls", maxSmall)
	largeInputs = blob.NewCommon("bytes of inputs for the tools of all calls", maxLarge)
)

func inputs(all *blob.Common, user string) *blob.Quota { return all.Part(user, "", math.MaxInt64, 0) }

// perBinding is what each binding takes that is passed to a tool. Those that perTool does not include count as bytes of the input.
const perBinding, freeBindings = 512, 8

// of is what an input of n bytes counts toward, of the call and of the process.
func (r *Room) of(n int64) blob.Quotas {
	if n <= smallInput {
		return blob.Quotas{r.held, r.small}
	}
	return blob.Quotas{r.held, r.large}
}

// MaxRunning is how many tools and pieces of code one call has running at once, those through others included.
const MaxRunning = 1_000

// A tool that runs, or waits, takes the host about this much besides its input and its guest. All calls of the process have 10,000 of them,
// besides 16 for each call.
const (
	perTool   = 8 << 10
	maxTools  = MaxRunning * perTool
	freeTools = 16 * perTool
)

var allTools = blob.NewCommon("bytes of tools that the tools of all calls have started", 10_000*perTool)

func running(user string) *blob.Quota {
	return allTools.Part(user, "bytes of tools that the tools of one call have started", maxTools, freeTools)
}

type runningKey struct{}

// The process keeps at most so many bytes of errors of tools that nobody has taken, and some for each call besides. Those beyond are
// shortened.
const (
	maxErrors  = 1 << 20
	freeErrors = 64 << 10
	shortError = 256
)

var allErrors = blob.NewCommon("bytes of errors of the tools of all calls", 32<<20)

func failures(user string) *blob.Quota {
	return allErrors.Part(user, "bytes of errors of the tools of one call", maxErrors, freeErrors)
}

type failuresKey struct{}

// held is how many bytes a call may hold.
type held int64

func (h held) quota() *blob.Quota { return blob.NewQuota("bytes held for tools", int64(h)) }

// startTime is the processor time that a start is charged for the host's work outside of both guests: finding what runs, opening
// its env, accounting for the call and dropping everything. Without it, a tool that does nothing would cost the host twice as
// much as its caller is charged.
const startTime = 300 * time.Microsecond

// Pay charges the guest of ctx for the start of something, with so many bytes of text.
func Pay(ctx context.Context, text int) error {
	if err := abi.Work(ctx, startTime); err != nil {
		return err
	}
	return abi.Charge(ctx, text)
}

// Start calls run on a goroutine of its own, with what the guest passes on in env, and returns at once. text is what the guest passed
// besides, of which run keeps nothing more. ctx is the guest's; that of run also ends with the call that Start returns. At the end, run
// calls done once, on any goroutine, or panics instead. It should return while it waits. Start fails with abi.ErrExhausted if the host
// holds too much.
func (r *Room) Start(ctx context.Context, text int, env abi.Env, run func(ctx context.Context, env map[string]abi.Capability, done func(output []byte, err error))) (*Call, error) {
	if err := Pay(ctx, text); err != nil {
		return nil, err
	}
	capabilities := env.Capabilities() // here, because the guest continues
	size := int64(text + perBinding*max(0, len(capabilities)-freeBindings))
	for _, c := range capabilities {
		if s, ok := c.(abi.Sized); ok {
			size += int64(s.Size())
		}
	}
	room := r.of(size)
	if err := room.Reserve(size); err != nil {
		return nil, err
	}
	if err := r.running.Reserve(perTool); err != nil {
		room.Release(size)
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Call{cancel: cancel, failures: r.failures}
	var once sync.Once
	end := func(keep func() error) {
		once.Do(func() {
			defer c.done.SetReady()
			defer cancel()
			defer room.Release(size)
			defer r.running.Release(perTool)
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
		run(ctx, capabilities, func(output []byte, err error) {
			end(func() error { return c.keep(ctx, r.held, output, err) })
		})
	}()
	return c, nil
}

// Call is what runs. It is safe for concurrent use. Its holder closes it. Its methods implement resources like `pending` of
// stile:capability/tools.
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
