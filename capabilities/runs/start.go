package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/calls"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/internal/printable"
)

// Starter starts tools as runs, which are independent of the call that starts them. A run is reached only by whoever started it. It is safe for concurrent use.
type Starter interface {
	// Start starts a tool and returns the id of its run. With a key, it finds the run of the tool that it has started with the key. In a durable call, the operation [abi.OnceOf] starts
	// at most one run.
	Start(ctx context.Context, tool string, input []byte, key string) (id string, err error)
	// Await has the durable call of whose operation ctx is get a message in [abi.RunMailbox] when a run has ended. It reports true if that has ended or is not there.
	Await(ctx context.Context, id string) (over bool, err error)
	// Wait waits until a run has ended or is parked.
	Wait(ctx context.Context, id string) error
	// Take returns how a run ended. It reports false if it has not. It may be done again. The failure is an *[abi.Error], and the error is [abi.ErrNotFound] if there is no such run.
	Take(ctx context.Context, id string) (e tools.Ended, ok bool, err error)
	// Status returns where a run is. The error is [abi.ErrNotFound] if there is no such run.
	Status(ctx context.Context, id string) (Status, error)
	// Signal delivers a message to a mailbox of a run, and says from whom. It reports false if the mailbox has had one with this key, if that is not empty. In a durable call, the
	// operation [abi.OnceOf] does so once. The error is [abi.ErrNotFound] if there is no such run, [abi.ErrUnavailable] if it has ended, and [abi.ErrExhausted] if it has no room.
	Signal(ctx context.Context, id, mailbox string, data []byte, key string) (delivered bool, err error)
	// Cancel asks for the end of a run, unless it has ended. In a durable call, the operation [abi.OnceOf] does so once. The error is [abi.ErrNotFound] if there is no such run.
	Cancel(ctx context.Context, id string) error
}

// State is where a run is: the enum `state`.
type State uint8

// The states, in the order of the enum.
const (
	Ready State = iota
	Running
	Asleep
	Done
	Failed
	Cancelled
	Parked
)

// Status is where a run is: the record `status`. Times are in milliseconds since 1970-01-01T00:00:00Z.
type Status struct {
	State State
	// Since is when it came into the state.
	Since uint64
	// Wakes is when it goes on, if it waits for a time.
	Wakes *uint64
	// Mailboxes are those from which it waits for messages: at most MaxMailboxes.
	Mailboxes []string
	// Reason says why it failed or is parked.
	Reason *string
}

// MaxMailboxes is how many mailboxes a status names.
const MaxMailboxes = 64

// MaxKey is the longest key of a run or of a message in bytes.
const MaxKey = 256

// startedState begins the state of a pollable for the end of a run.
const startedState = "run:"

// Start starts a tool as a run, and returns its id. The error is [abi.ErrUnavailable] if the program has no runs, and a denial if the binding does not name the tool.
func (c *Control) Start(ctx context.Context, tool, input string, key *string) (string, error) {
	name, err := keyOf(key)
	if err != nil {
		return "", err
	}
	if c.Starter == nil {
		return "", wanting(tool)
	}
	if err := calls.Pay(ctx, len(input)+len(name)); err != nil {
		return "", err
	}
	return c.Starter.Start(ctx, tool, []byte(input), name)
}

func keyOf(key *string) (string, error) {
	switch {
	case key == nil:
		return "", nil
	case *key == "" || len(*key) > MaxKey || !utf8.ValidString(*key):
		return "", abi.Errorf(abi.CodeInvalid, "a key is text of 1 to %d bytes", MaxKey)
	}
	return *key, nil
}

func errNotStarted(run string) error {
	return abi.Errorf(abi.CodeNotFound, "this extension has started no run %q, or the run is not kept any more", printable.Short(run, 40))
}

// maxID bounds the names of runs, which a guest can make up.
const maxID = 64

// Ended returns a pollable that is ready once a run has ended, or if there is none.
func (c *Control) Ended(ctx context.Context, run string) (*abi.Pollable, error) {
	if c.Starter == nil || len(run) > maxID {
		return nil, errNotStarted(run)
	}
	of := abi.MailboxesOf(ctx)
	if of == nil {
		if _, ok, err := c.Starter.Take(ctx, run); ok || err != nil {
			return abi.Ready(), nil //nolint:nilerr // Outcome says it
		}
		waiting, cancel := context.WithCancel(ctx)
		ready := abi.NewPollable(cancel)
		go func() {
			defer cancel()
			_ = c.Starter.Wait(waiting, run) // Outcome says why
			ready.SetReady()
		}()
		return ready, nil
	}
	over, err := c.Starter.Await(ctx, run)
	switch {
	case err != nil:
		return nil, err
	case over:
		return abi.Ready(), nil
	}
	stop := func() {}
	ready := abi.NewPollable(func() { stop() })
	ready.Lasts(abi.Wait{Event: abi.RunMailbox(run), State: []byte(startedState + run)})
	end, err := of.Watch(ctx, abi.RunMailbox(run), ready.SetReady)
	if err != nil {
		return nil, err
	}
	stop = end
	return ready, nil
}

// Outcome waits for the result of a run and returns it as JSON. If the tool failed, it returns its error.
func (c *Control) Outcome(ctx context.Context, run string) (string, error) {
	if c.Starter == nil || len(run) > maxID {
		return "", errNotStarted(run)
	}
	for {
		e, ok, err := c.Starter.Take(ctx, run)
		switch {
		case err != nil:
			return "", found(run, err)
		case ok:
			err := errors.Join(abi.Charge(ctx, len(e.Output)), abi.Room(ctx, int64(len(e.Output))))
			if err == nil {
				err = e.Failure
			}
			return string(e.Output), err
		}
		if err := c.wait(ctx, run); err != nil {
			return "", err
		}
	}
}

// wait waits for the end of a run.
func (c *Control) wait(ctx context.Context, run string) error {
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return c.Starter.Wait(ctx, run)
	}
	if over, err := c.Starter.Await(ctx, run); over || err != nil {
		return err
	}
	ended := make(chan struct{})
	stop, err := of.Watch(ctx, abi.RunMailbox(run), sync.OnceFunc(func() { close(ended) }))
	if err != nil {
		return err
	}
	defer stop()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the run: %w", ctx.Err())
	}
}

// found is an error about a run, which says what to think of a run that is not there.
func found(run string, err error) error {
	if errors.Is(err, abi.ErrNotFound) {
		return errNotStarted(run)
	}
	return err
}

// Status returns where a run is.
func (c *Control) Status(ctx context.Context, run string) (Status, error) {
	if c.Starter == nil || len(run) > maxID {
		return Status{}, errNotStarted(run)
	}
	s, err := c.Starter.Status(ctx, run)
	if err != nil {
		return Status{}, found(run, err)
	}
	size := 0
	s.Mailboxes = s.Mailboxes[:min(len(s.Mailboxes), MaxMailboxes)]
	for _, m := range s.Mailboxes {
		size += len(m)
	}
	if s.Reason != nil {
		size += len(*s.Reason)
	}
	return s, abi.Charge(ctx, size)
}

// Signal delivers JSON of at most 64 KiB to a mailbox of a run. It reports false if the mailbox has had a message with the key.
func (c *Control) Signal(ctx context.Context, run, mailbox, data string, key *string) (bool, error) {
	name, err := keyOf(key)
	switch {
	case err != nil:
		return false, err
	case c.Starter == nil || len(run) > maxID:
		return false, errNotStarted(run)
	case !abi.IsMailbox(mailbox):
		return false, errMailbox(mailbox)
	case len(data) > maxSignal:
		return false, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(data))}
	}
	if err := calls.Pay(ctx, len(data)+len(name)); err != nil {
		return false, err
	}
	delivered, err := c.Starter.Signal(ctx, run, mailbox, []byte(data), name)
	return delivered, found(run, err)
}

func errMailbox(name string) error {
	return abi.Errorf(abi.CodeInvalid, "%q cannot name a mailbox; use %s", printable.Short(name, 100), abi.MailboxNames)
}

// maxSignal is the most bytes of a message.
const maxSignal = 64 << 10

// Cancel asks for the end of a run, unless it has ended.
func (c *Control) Cancel(ctx context.Context, run string) error {
	if c.Starter == nil || len(run) > maxID {
		return errNotStarted(run)
	}
	if err := calls.Pay(ctx, 0); err != nil {
		return err
	}
	return found(run, c.Starter.Cancel(ctx, run))
}

// Lists implements [abi.Bounded].
func (*Control) Lists() map[string]int {
	return map[string]int{"control.status.result.mailboxes": MaxMailboxes}
}
