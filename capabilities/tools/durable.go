package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/calls"
	"github.com/stilehost/stile/internal/printable"
)

// Durable starts tools for durable calls, as durable calls of their own: they outlive the process, and their callers wait for them asleep. It is
// safe for concurrent use.
type Durable interface {
	// Can reports whether a tool can be called so. Others are called as by a call that is not durable.
	Can(tool string) bool
	// Start starts a tool in the name of the operation [abi.OnceOf]. If it is done again for the same operation, nothing else is started. An
	// *[abi.Error] becomes the result of the tool.
	Start(ctx context.Context, tool string, input []byte, env map[string]abi.Capability) error
	// Take returns how the tool ended that the operation with this number started. It reports false if that goes on. It may be done again. The failure is an *[abi.Error].
	Take(ctx context.Context, tool string, sequence uint64) (r Ended, ok bool, err error)
}

// Ended is how a tool ended.
type Ended struct {
	Output  []byte
	Failure error
	// CPU is the processor time that it took. Its caller is charged for it.
	CPU time.Duration
}

// durably is a toolbox of a durable call.
type durably struct {
	*Toolbox

	mu  sync.Mutex
	can map[string]bool // so that the log and what is done after that agree, whatever changes meanwhile
}

// Quick implements [abi.Quick].
func (*durably) Quick() []string { return []string{"get"} }

// Repeat implements [abi.Repeatable].
func (d *durably) Repeat(function string, args []abi.Value) abi.Repeat {
	if function != "toolbox.start" {
		return abi.Reads
	}
	if tool, _ := args[0].(string); d.durable(tool) {
		return abi.Repeats
	}
	return abi.Interrupts
}

func (d *durably) durable(tool string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	can, known := d.can[tool]
	if !known {
		if can = d.options.Durable.Can(tool); len(d.can) < maxKnown {
			d.can[tool] = can
		}
	}
	return can
}

// maxKnown bounds the tools of which a call knows whether they can be durable. A guest makes the names up.
const maxKnown = 1000

// Start implements the method `start`: it returns a *[Call] or a *[Child].
func (d *durably) Start(ctx context.Context, tool, input string, env abi.Env) (any, error) {
	once, ok := abi.OnceOf(ctx)
	if !ok || !d.durable(tool) {
		return d.Toolbox.Start(ctx, tool, input, env)
	}
	if _, err := d.options.Resolve(tool); err != nil {
		return nil, err
	}
	if err := calls.Pay(ctx, len(input)); err != nil {
		return nil, err
	}
	c := &Child{of: d.options.Durable, tool: tool, sequence: once.Sequence}
	err := d.options.Durable.Start(ctx, tool, []byte(input), env.Capabilities())
	if err != nil && !errors.As(err, &c.failed) {
		return nil, err
	}
	if c.failed != nil && len(c.failed.Detail) > maxFailed { // it is written down whenever the call sleeps
		short := *c.failed
		short.Detail = printable.Short(short.Detail, maxFailed)
		c.failed = &short
	}
	return c, nil
}

// Restore implements [abi.Restorer].
func (d *durably) Restore(ctx context.Context, resource string, state []byte) (any, error) {
	var s savedChild
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, fmt.Errorf("restore a call of a tool: %w", err)
	}
	c := &Child{of: d.options.Durable, tool: s.Tool, sequence: s.Sequence, failed: s.Failed}
	if resource == "pollable" {
		return c.Subscribe(ctx)
	}
	return c, nil
}

// Child is a tool that a durable call has called durably: the resource `pending`. It goes on without its handle, until the call ends. It is immutable and safe for
// concurrent use.
type Child struct {
	of       Durable
	tool     string
	sequence uint64
	failed   *abi.Error // why it did not begin
}

// maxFailed is how many bytes of the text of [Child.failed] are kept.
const maxFailed = 4 << 10

// savedChild is the state of a Child.
type savedChild struct {
	Tool     string     `json:"tool"`
	Sequence uint64     `json:"sequence"`
	Failed   *abi.Error `json:"failed,omitempty"`
}

// Repeat implements [abi.Repeatable]: a result is taken once.
func (c *Child) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "pending.take" && c.failed == nil {
		return abi.Repeats
	}
	return abi.Reads
}

// Save implements [abi.Lasting].
func (c *Child) Save() (state []byte, ok bool) {
	state, err := json.Marshal(savedChild{c.tool, c.sequence, c.failed})
	return state, err == nil
}

// Size implements [abi.Sized].
func (c *Child) Size() int {
	if c.failed == nil {
		return len(c.tool)
	}
	return len(c.tool) + len(c.failed.Detail)
}

// Subscribe returns a pollable that is ready once the tool has ended.
func (c *Child) Subscribe(ctx context.Context) (*abi.Pollable, error) {
	if c.failed != nil {
		return abi.Ready(), nil
	}
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return nil, abi.ErrRevoked
	}
	stop := func() {}
	ready := abi.NewPollable(func() { stop() })
	state, _ := c.Save()
	ready.Lasts(abi.Wait{Event: abi.ChildMailbox(c.sequence), State: state})
	end, err := of.Watch(ctx, abi.ChildMailbox(c.sequence), ready.SetReady)
	if err != nil {
		return nil, err
	}
	stop = end
	return ready, nil
}

// Take waits for the result of the tool and returns it as JSON. If the tool failed, Take returns its error.
func (c *Child) Take(ctx context.Context) (string, error) {
	if c.failed != nil {
		return "", c.failed
	}
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return "", abi.ErrRevoked
	}
	for {
		r, ok, err := c.of.Take(ctx, c.tool, c.sequence)
		switch {
		case err != nil:
			return "", err
		case ok:
			err := errors.Join(abi.Work(ctx, r.CPU), abi.Charge(ctx, len(r.Output)), abi.Room(ctx, int64(len(r.Output))))
			if err == nil {
				err = r.Failure
			}
			return string(r.Output), err
		}
		ended := make(chan struct{})
		stop, err := of.Watch(ctx, abi.ChildMailbox(c.sequence), sync.OnceFunc(func() { close(ended) }))
		if err != nil {
			return "", err
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return "", fmt.Errorf("wait for the tool: %w", ctx.Err())
		}
	}
}
