// Package signals lets a durable call wait for messages that others deliver to its mailboxes: the capability stile:capability/signals. The mailboxes come
// with the call, from [abi.MailboxesOf]. A call that is not durable has none. What arrives is untrusted.
package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/signals.wit.
const Interface = "stile:capability/signals@0.1.0"

// Mailboxes is the right to receive messages. Do not change it once it is in use. It is safe for concurrent use.
type Mailboxes struct {
	// Reachable is set if mailboxes may have addresses for strangers.
	Reachable bool
	// Verify says how posts to these addresses must be signed.
	Verify abi.Verify
	// Now is the wall clock, by which timeouts are counted. Default [time.Now].
	Now func() time.Time
}

func (m *Mailboxes) now() time.Time {
	if m.Now == nil {
		return time.Now().Round(0)
	}
	return m.Now().Round(0)
}

// Interface implements [abi.Capability].
func (*Mailboxes) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Mailboxes) Quick() []string { return []string{"get", "mailboxes.receive"} }

// Repeat implements [abi.Repeatable]: a mailbox has one address.
func (*Mailboxes) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "mailboxes.url" {
		return abi.Repeats
	}
	return abi.Reads
}

// URL returns an address to which anybody who has it can post messages for a mailbox. The error is [abi.ErrDenied] unless the binding is reachable.
func (m *Mailboxes) URL(ctx context.Context, mailbox string) (string, error) {
	switch {
	case !abi.IsMailbox(mailbox):
		return "", errName(mailbox)
	case !m.Reachable:
		return "", abi.Deny(abi.Denial{
			Operation: "an address for " + mailbox, Reason: "its mailboxes are not reachable from outside", Wants: capability.Wanted{Grant: Rights{Reachable: true}},
		})
	case abi.MailboxesOf(ctx) == nil:
		return "", errNotDurable()
	}
	return abi.MailboxesOf(ctx).Address(ctx, mailbox, m.Verify)
}

func errNotDurable() error {
	return abi.Errorf(abi.CodeUnavailable, "this call is not durable, so nobody can send it a signal; start it with --durable")
}

// Receive begins to wait for a message, at most so many milliseconds. The error is [abi.ErrUnavailable] if the call is not durable, and [abi.ErrInvalid] for a name that no mailbox can have.
func (m *Mailboxes) Receive(ctx context.Context, mailbox string, milliseconds *uint64) (*Pending, error) {
	switch {
	case abi.MailboxesOf(ctx) == nil:
		return nil, errNotDurable()
	case !abi.IsMailbox(mailbox):
		return nil, errName(mailbox)
	}
	p := &Pending{of: m, mailbox: mailbox}
	if milliseconds != nil && *milliseconds <= uint64(math.MaxInt64/time.Millisecond) { // more is longer than any run
		p.until = m.now().Add(time.Duration(*milliseconds) * time.Millisecond).UTC()
	}
	return p, nil
}

func errName(mailbox string) error {
	return abi.Errorf(abi.CodeInvalid, "%q cannot name a mailbox; use %s", printable.Short(mailbox, 100), abi.MailboxNames)
}

// Restore implements [abi.Restorer].
func (m *Mailboxes) Restore(ctx context.Context, resource string, state []byte) (any, error) {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, fmt.Errorf("restore what waits for a signal: %w", err)
	}
	p := &Pending{of: m, mailbox: s.Mailbox, until: s.Until}
	if resource == "pollable" {
		return p.Subscribe(ctx)
	}
	return p, nil
}

// Message is the record `message`.
type Message struct {
	Data     string
	From     string
	Received uint64
}

// Pending is a wait for a message: the resource `pending`. It is immutable and safe for concurrent use.
type Pending struct {
	of      *Mailboxes
	mailbox string
	until   time.Time // zero for ever
}

// saved is the state of a wait.
type saved struct {
	Mailbox string    `json:"mailbox"`
	Until   time.Time `json:"until,omitzero"`
}

// Repeat implements [abi.Repeatable]: a message is taken once.
func (*Pending) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "pending.take" {
		return abi.Repeats
	}
	return abi.Reads
}

// Save implements [abi.Lasting].
func (p *Pending) Save() (state []byte, ok bool) {
	state, err := json.Marshal(saved{p.mailbox, p.until})
	return state, err == nil
}

func (p *Pending) over() bool { return !p.until.IsZero() && !p.of.now().Before(p.until) }

// Subscribe returns a pollable that is ready once the mailbox has a message, or the time is over.
func (p *Pending) Subscribe(ctx context.Context) (*abi.Pollable, error) {
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return nil, abi.ErrRevoked
	}
	if p.over() {
		return abi.Ready(), nil
	}
	stop := func() {}
	var timer *time.Timer
	ready := abi.NewPollable(func() {
		stop()
		if timer != nil {
			timer.Stop()
		}
	})
	state, _ := p.Save()
	ready.Lasts(abi.Wait{At: p.until, Event: p.mailbox, State: state})
	end, err := of.Watch(ctx, p.mailbox, ready.SetReady)
	if err != nil {
		return nil, err
	}
	stop = end
	if !p.until.IsZero() {
		timer = time.AfterFunc(p.until.Sub(p.of.now()), ready.SetReady)
	}
	return ready, nil
}

// Take returns the oldest message of the mailbox, or nil. It fails with [abi.ErrTimedOut] if there is none and the time is over.
func (p *Pending) Take(ctx context.Context) (*Message, error) {
	of := abi.MailboxesOf(ctx)
	if of == nil {
		return nil, abi.ErrRevoked
	}
	m, ok, err := of.Take(ctx, p.mailbox)
	switch {
	case err != nil:
		return nil, err
	case ok:
		if err := abi.Charge(ctx, len(m.Data)); err != nil {
			return nil, err
		}
		return &Message{string(m.Data), m.From, uint64(max(0, m.Received.UnixMilli()))}, nil
	case p.over():
		return nil, abi.ErrTimedOut
	}
	return nil, nil
}
