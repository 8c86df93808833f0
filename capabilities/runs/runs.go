// Package runs is what a durable call can say about itself, and how a call starts runs of tools: the capability stile:capability/runs. The run comes with the call, from
// [abi.RunOf]. A call that is not durable has none.
package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/runs.wit.
const Interface = "stile:capability/runs@0.1.0"

// Control is the right of a call to control its own run, and with a Starter to start others. It is safe for concurrent use.
type Control struct {
	// Starter starts runs. Without one, there are none to start.
	Starter Starter
}

// Interface implements [abi.Capability].
func (*Control) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Control) Quick() []string { return []string{"get", "control.keep-awake"} }

// Repeat implements [abi.Repeatable].
func (*Control) Repeat(function string, _ []abi.Value) abi.Repeat {
	switch function {
	case "control.stash", "control.start", "control.signal", "control.cancel":
		return abi.Repeats
	default:
		return abi.Reads
	}
}

func errNotDurable() error {
	return abi.Errorf(abi.CodeUnavailable, "this call is not durable, so it has no run; start it with --durable")
}

// Cancelled returns a pollable that is ready once somebody has asked for the end of the run. The run listens from now on: see [abi.Run]. The error is
// [abi.ErrUnavailable] if the call is not durable.
func (*Control) Cancelled(ctx context.Context) (*abi.Pollable, error) {
	run := abi.RunOf(ctx)
	if run == nil {
		return nil, errNotDurable()
	}
	if err := run.Listen(ctx); err != nil {
		return nil, err
	}
	return await(ctx)
}

// await waits for the message that the run is to end.
func await(ctx context.Context) (*abi.Pollable, error) {
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return nil, abi.ErrRevoked
	}
	stop := func() {}
	ready := abi.NewPollable(func() { stop() })
	ready.Lasts(abi.Wait{Event: abi.CancelMailbox, State: []byte(abi.CancelMailbox)})
	end, err := of.Watch(ctx, abi.CancelMailbox, ready.SetReady)
	if err != nil {
		return nil, err
	}
	stop = end
	return ready, nil
}

// KeepAwake keeps the call from sleeping until the handle is dropped.
func (*Control) KeepAwake(context.Context) *Awake { return new(Awake) }

// Awake is a value of the resource `awake`.
type Awake struct{}

// Save implements [abi.Lasting]: the log can make the value again, and a call that has it does not sleep.
func (*Awake) Save() (state []byte, ok bool) { return []byte("awake"), false }

// Stash keeps JSON with the run. The error is [abi.ErrUnavailable] if the call is not durable, [abi.ErrTooLarge] beyond [abi.MaxStash], and
// [abi.ErrInvalid] if the text is no JSON.
func (*Control) Stash(ctx context.Context, value string) error {
	run := abi.RunOf(ctx)
	if run == nil {
		return errNotDurable()
	}
	text, err := compact(value)
	if err != nil {
		return err
	}
	return run.Stash(ctx, text)
}

func compact(value string) ([]byte, error) {
	if len(value) > abi.MaxStash {
		return nil, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(value))}
	}
	var text bytes.Buffer
	if json.Compact(&text, []byte(value)) != nil || !utf8.ValidString(value) {
		return nil, abi.Errorf(abi.CodeInvalid, "what is stashed is not JSON")
	}
	return text.Bytes(), nil
}

// Recover returns what the run keeps, or nil. The error is [abi.ErrUnavailable] if the call is not durable.
func (*Control) Recover(ctx context.Context) (*string, error) {
	run := abi.RunOf(ctx)
	if run == nil {
		return nil, errNotDurable()
	}
	value, ok, err := run.Stashed(ctx)
	if err != nil || !ok {
		return nil, err
	}
	if err := abi.Charge(ctx, len(value)); err != nil {
		return nil, err
	}
	text := string(value)
	return &text, nil
}

// Restore implements [abi.Restorer].
func (c *Control) Restore(ctx context.Context, resource string, state []byte) (any, error) {
	switch run, of := strings.CutPrefix(string(state), startedState); {
	case resource != "pollable":
		return new(Awake), nil
	case of:
		return c.Ended(ctx, run)
	default:
		return await(ctx)
	}
}
