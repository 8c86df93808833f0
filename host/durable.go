package host

import (
	"context"
	"fmt"
	"time"

	"github.com/stilehost/stile/abi"
)

// Durable makes a call durable: what it did is written down as it goes, so that it can go on in another process, at the await at which it was.
// Such a call is not recorded as well, because its log is the recording.
type Durable struct {
	// Run names the call in every process: see [abi.Once].
	Run string
	// Secret is for [abi.Once.Key]: the same in every process, and known to nobody else.
	Secret string
	// First is the number of the call's first operation, for a run that begins again: see [abi.Once]. It stays the same when the call goes on.
	First uint64
	// Journal keeps the log.
	Journal Journal
	// State is where the call goes on: that of an [AsleepError]. It is nil for a call that begins. The host trusts it, so it must come from nobody
	// else.
	State []byte
	// Log has the entries that the journal got after State, or since the call began.
	Log [][]byte
	// Mailboxes are what [abi.MailboxesOf] returns to capabilities. Default: the call has none.
	Mailboxes abi.Mailboxes
	// Control is what [abi.RunOf] returns to capabilities. Default: they see no run.
	Control abi.Run
	// Idle is how long a call waits before it sleeps, if it can. It sleeps earlier if less than a quarter of [Options.PackedMemory] is free. Zero means
	// that it never sleeps.
	Idle time.Duration
}

// Journal keeps the log of a durable call. The calls of its methods do not overlap.
type Journal interface {
	// Append adds an entry to the log. It does not wait for the disk. An error ends the call, as when the run belongs to another process now.
	Append(entry []byte) error
	// Commit returns once the entries are on the disk. The host waits for it before each operation that has an effect. Whoever made the call
	// commits before anybody sees its result.
	Commit(ctx context.Context) error
}

// AsleepError is the error of a durable call that sleeps instead of waiting. The call goes on with its state, which says everything that
// earlier entries of the log do.
type AsleepError struct {
	State []byte
	// Waits are what the call waits for. It goes on when one of these comes about; any other time is too early, but does no harm.
	Waits []abi.Wait
}

func (e *AsleepError) Error() string { return "the call sleeps" }

// PartedError reports a durable call that cannot go on, because it does something else than what its log says.
type PartedError struct {
	// Operation is its number in the run, counted from 1.
	Operation uint64
	// Expected is what the log says and Got what the call did, as text for people.
	Expected, Got string
}

func (e *PartedError) Error() string {
	return fmt.Sprintf("the run cannot go on: its log says that operation %d was %s, and it is %s now", e.Operation, e.Expected, e.Got)
}

// StateError reports a state or an entry of a log with which a call cannot go on.
type StateError struct{ Reason string }

func (e *StateError) Error() string { return "the run cannot go on: " + e.Reason }
