package abi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Repeat says what may be done with an operation of a durable call that goes on in another process.
type Repeat uint8

const (
	// Interrupts is the default: the operation has an effect, so it is never executed twice. If the process ended during it, the guest
	// gets [ErrInterrupted]. What its result holds ends with the process.
	Interrupts Repeat = iota
	// Reads has no effect outside of the call: nothing has to be written down before it.
	Reads
	// Derives has no effect either, and returns handles that are made again by calling it again on the same value with the same arguments.
	Derives
	// Repeats has an effect that comes about once, however often the operation is executed with the same [Once].
	Repeats
)

// Repeatable is a Go value that says for its functions what may be done with them in a durable call. Functions of other values interrupt.
type Repeatable interface {
	// Repeat says it for a function by its WIT name, such as "bucket.get", and its arguments as WIT values. It must say the same in every process.
	Repeat(function string, args []Value) Repeat
}

// Rememberer is a [Repeatable] value that is asked whether an operation has come about, before it is executed again. It must then refuse a change by
// an operation that comes before the last that it knows of the run. The results of its functions that repeat have no content.
type Rememberer interface {
	// Remembers reports whether the operation [OnceOf] has come about.
	Remembers(ctx context.Context) (bool, error)
}

// Lasting is a Go value behind a handle that a sleeping call can write down. The handle of a value that is neither Lasting, nor what an
// operation that [Derives] returned, nor the binding itself keeps its call awake.
type Lasting interface {
	// Save returns what [Restorer.Restore] makes the value of again. See [MaxSaved] for how large it may be. It reports false if the call must not sleep as long as the value is in its present
	// state. A state that comes with false serves calls whose process ended.
	Save() (state []byte, ok bool)
}

// Restorer is the Go value that the `get` of a binding returns, for bindings that make [Lasting] values or pollables that last.
type Restorer interface {
	// Restore makes a value of the resource with this WIT name again. Do not trust that the binding allows today what it allowed when the state was
	// saved: an error such as [ErrDenied] becomes the answer to everything that the guest does with the handle.
	Restore(ctx context.Context, resource string, state []byte) (any, error)
}

// RestorerOf returns the [Restorer] of a binding's value: the value itself, or what its method Restorer returns. A value whose functions include one that is called `restore` needs that method.
func RestorerOf(value any) (r Restorer, ok bool) {
	if r, ok = value.(Restorer); ok {
		return r, true
	}
	if of, has := value.(interface{ Restorer() Restorer }); has {
		return of.Restorer(), true
	}
	return nil, false
}

// MaxSaved is the most bytes that the states of a call's [Lasting] values, other than pollables, may have together. A call with more stays awake.
const MaxSaved = 64 << 10

// Reopener is an [Opener] whose values keep something for the length of a call, such as what is used of a budget. Opened values are [Lasting]. A durable call opens them at its beginning, and
// writes their states down after each operation that changes one. If a value's Save reports false, the call stays awake, and the state counts if its process ends.
type Reopener interface {
	Opener
	// Reopen is Open for a call that goes on. The state is what the opened value's Save returned.
	Reopen(ctx context.Context, state []byte) (any, error)
}

// Wait says what makes a pollable ready, for a call that sleeps: a time, or an event that somebody else announces. State is what
// [Restorer.Restore] makes the pollable of again.
type Wait struct {
	At    time.Time // zero if no time does
	Event string    // empty if no event does
	State []byte
}

// Once names an operation of a durable call: no two have the same.
type Once struct {
	Run      string
	Sequence uint64
	// Secret is the run's, for [Once.Key].
	Secret string
}

// Key is a name of the operation for others, such as the server that a request goes to. Nobody who does not know the secret can tell it.
func (o Once) Key() string {
	h := hmac.New(sha256.New, []byte(o.Secret))
	_, _ = fmt.Fprintf(h, "stile once\x00%s\x00%d", o.Run, o.Sequence) // it never fails
	return hex.EncodeToString(h.Sum(nil)[:16])
}

type onceKey struct{}

// WithOnce returns a context for one operation of a durable call.
func WithOnce(ctx context.Context, o Once) context.Context {
	return context.WithValue(ctx, onceKey{}, o)
}

// OnceOf returns the name of the operation. It reports false if the call is not durable.
func OnceOf(ctx context.Context) (o Once, ok bool) {
	o, _ = ctx.Value(onceKey{}).(Once)
	return o, o != Once{}
}

// Mailboxes are where messages for a durable call arrive. They are safe for concurrent use.
type Mailboxes interface {
	// Take gives the operation [OnceOf] the oldest message of a mailbox. A repetition of the operation gets the same message, and no other
	// operation does. It reports false if there is none.
	Take(ctx context.Context, mailbox string) (m Message, ok bool, err error)
	// Watch calls ready, once, as soon as a mailbox has a message that nobody has taken: at once, if it has one. stop ends this. A [Wait] whose event is
	// the mailbox's name makes a sleeping call go on then.
	Watch(ctx context.Context, mailbox string, ready func()) (stop func(), err error)
	// Address returns the URL to which anybody who has it can post messages for a mailbox, as long as the call goes on. A mailbox has one for each way in which
	// posts are verified. The error is [ErrUnavailable] if nothing is reachable from outside, and [ErrExhausted] if too many mailboxes have one.
	Address(ctx context.Context, mailbox string, verify Verify) (url string, err error)
}

// Verify says how posts to an address must be signed. The zero value takes all posts.
type Verify struct {
	// Secret is the name of the secret with which they are signed.
	Secret string `json:"secret"`
	// As is github, stripe, hex:HEADER or base64:HEADER: where the signature is, and in which form.
	As string `json:"as"`
}

// Message is a message from a mailbox. Data is JSON that must not be trusted, and From says where it comes from.
type Message struct {
	Data     []byte
	From     string
	Received time.Time
}

// MailboxNames describes the names that mailboxes can have to which people and programs deliver.
const MailboxNames = "1 to 64 letters, digits, -, _ and ."

// IsMailbox reports whether people and programs can deliver to a mailbox of this name.
func IsMailbox(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// ChildMailbox is the mailbox of a durable call in which a message says that another durable call has ended, which the operation with this number started.
func ChildMailbox(sequence uint64) string { return fmt.Sprint("child:", sequence) }

// RunMailbox is the mailbox of a durable call in which a message says that a run of this name has ended.
func RunMailbox(run string) string { return "run:" + run }

type mailboxesKey struct{}

// WithMailboxes returns a context for the operations of a durable call. nil means that the call has none.
func WithMailboxes(ctx context.Context, m Mailboxes) context.Context {
	return context.WithValue(ctx, mailboxesKey{}, m)
}

// MailboxesOf returns the mailboxes of the call whose operation ctx is. It returns nil if the call has none.
func MailboxesOf(ctx context.Context) Mailboxes {
	m, _ := ctx.Value(mailboxesKey{}).(Mailboxes)
	return m
}

// Run is the run of a durable call. It is safe for concurrent use.
type Run interface {
	// Listen says that the call wants to know when somebody asks for its end. From now on it is not ended at once then: the mailbox [CancelMailbox] has a
	// message, and the call some time for its own end.
	Listen(ctx context.Context) error
	// Stash keeps JSON of at most [MaxStash] bytes with the run, in place of what it kept before, for the operation [OnceOf]. Later attempts of the run
	// have it too.
	Stash(ctx context.Context, value []byte) error
	// Stashed returns what the run keeps. It reports false if it keeps nothing.
	Stashed(ctx context.Context) (value []byte, ok bool, err error)
}

// CancelMailbox is the mailbox of the message that a run is to end. It is no [IsMailbox].
const CancelMailbox = ":cancel"

// MaxStash is the most bytes of [Run.Stash].
const MaxStash = 64 << 10

type runKey struct{}

// WithRun returns a context for the operations of a durable call. nil means that the call has no run.
func WithRun(ctx context.Context, r Run) context.Context {
	return context.WithValue(ctx, runKey{}, r)
}

// RunOf returns the run of the call whose operation ctx is. It returns nil if the call has none.
func RunOf(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	return r
}
