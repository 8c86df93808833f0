package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// exampleAnswers are answers for a test.
const exampleAnswers = `{"stash": {"page": 3}, "cancelAfter": "72h"}`

// newDouble makes a run that has a stash from the start, and is cancelled at a time of the test.
func newDouble(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	return scriptedWith(t, answers, nil)
}

// scriptedWith is newDouble for a run that may start others, if rights are given.
func scriptedWith(t *double.Test, answers json.RawMessage, rights *Starts) (abi.Capability, error) {
	s := &scripted{clock: t.Clock, test: t, rights: rights, script: double.NewScript[outcome](nil), started: map[string]outcome{}, keys: map[[2]string]string{}, signalled: map[[3]string]bool{}}
	if answers == nil {
		return s, nil
	}
	var given struct {
		Stash       json.RawMessage `json:"stash"`
		CancelAfter *string         `json:"cancelAfter"`

		Starts map[string]double.Answers[outcome] `json:"starts"`
	}
	if err := double.Strict(answers, &given); err != nil {
		return nil, t.Wrong(": this is not what a test can say of a run", exampleAnswers)
	}
	if given.Stash != nil {
		text, err := compact(string(given.Stash))
		if err != nil {
			return nil, t.Wrong(".stash: it is too large", exampleAnswers)
		}
		s.stash = text
	}
	if given.CancelAfter != nil {
		after, err := time.ParseDuration(*given.CancelAfter)
		if err != nil || after < 0 {
			return nil, t.Wrong(".cancelAfter: this is not a length of time", exampleAnswers)
		}
		s.cancel = new(t.Clock.Time().Add(after))
	}
	for name, all := range given.Starts {
		if rights == nil || !rights.Names(name) {
			return nil, t.Wrong(fmt.Sprintf(".starts[%s]: the binding cannot start a tool of that name", double.Quoted(name)), "a name that the binding's start has")
		}
		if slices.ContainsFunc(all.List, func(o outcome) bool { return (o.Output == nil) == (o.Error == nil) }) {
			return nil, t.Wrong(fmt.Sprintf(".starts[%s] needs either output or error", double.Quoted(name)), `{"output": {}} or {"error": "what went wrong"}`)
		}
	}
	s.script = double.NewScript(given.Starts)
	return s, nil
}

// outcome is how a run ends that a test starts: one of its fields.
type outcome struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *string         `json:"error,omitempty"`

	tool  string
	ended time.Time

	cancelled bool
}

// scripted is the run of a test.
type scripted struct {
	clock  *double.Clock
	cancel *time.Time // nil for never
	test   *double.Test
	rights *Starts
	script *double.Script[outcome]

	mu      sync.Mutex
	stash   []byte
	started map[string]outcome   // by the run's id
	keys    map[[2]string]string // ids by tool and key

	signalled map[[3]string]bool // by run, mailbox and key
}

// Start implements the method `start`. The run has ended when it returns.
func (s *scripted) Start(_ context.Context, tool, _ string, key *string) (string, error) {
	if s.rights == nil {
		return "", wanting(tool)
	}
	if !s.rights.Names(tool) {
		return "", s.rights.Unnamed(tool)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != nil && s.keys[[2]string{tool, *key}] != "" {
		return s.keys[[2]string{tool, *key}], nil
	}
	o, _, ok := s.script.Next(tool)
	if !ok {
		return "", s.test.Unanswered("a run of the tool "+double.Quoted(tool), `"starts": {`+double.Quoted(tool)+`: {"output": {}}}`)
	}
	if len(s.started) == maxDoubled {
		return "", abi.Errorf(abi.CodeExhausted, "limit reached: %d runs that a test starts", maxDoubled)
	}
	o.tool, o.ended = tool, s.clock.Time()
	id := fmt.Sprint("run", len(s.started)+1)
	if s.started[id] = o; key != nil {
		s.keys[[2]string{tool, *key}] = id
	}
	return id, nil
}

// maxDoubled is how many runs a test can start.
const maxDoubled = 1000

// Ended implements the method `ended`.
func (*scripted) Ended(context.Context, string) (*abi.Pollable, error) { return abi.Ready(), nil }

// Outcome implements the method `outcome`.
func (s *scripted) Outcome(ctx context.Context, run string) (string, error) {
	s.mu.Lock()
	o, ok := s.started[run]
	s.mu.Unlock()
	switch {
	case !ok:
		return "", errNotStarted(run)
	case o.cancelled:
		return "", abi.Errorf(abi.CodeUnavailable, "%s: its run was cancelled", o.tool)
	case o.Error != nil:
		return "", abi.Errorf(abi.CodeUnavailable, "%s: %s", o.tool, *o.Error)
	}
	return string(o.Output), abi.Charge(ctx, len(o.Output))
}

// Status implements the method `status`.
func (s *scripted) Status(ctx context.Context, run string) (Status, error) {
	s.mu.Lock()
	o, ok := s.started[run]
	s.mu.Unlock()
	if !ok {
		return Status{}, errNotStarted(run)
	}
	status := Status{State: Done, Since: uint64(o.ended.UnixMilli())}
	switch {
	case o.cancelled:
		status.State = Cancelled
	case o.Error != nil:
		status.State, status.Reason = Failed, new(o.tool+": "+*o.Error)
		return status, abi.Charge(ctx, len(*status.Reason))
	}
	return status, nil
}

// Signal implements the method `signal`. The run takes everything: what a test says of it is its end.
func (s *scripted) Signal(_ context.Context, run, mailbox, data string, key *string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.started[run]
	name, err := keyOf(key)
	switch {
	case err != nil:
		return false, err
	case !ok:
		return false, errNotStarted(run)
	case !abi.IsMailbox(mailbox):
		return false, errMailbox(mailbox)
	case len(data) > maxSignal:
		return false, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(data))}
	case name == "":
		return true, nil
	}
	at := [3]string{run, mailbox, name}
	if s.signalled[at] {
		return false, nil
	}
	if len(s.signalled) == maxDoubled {
		return false, abi.Errorf(abi.CodeExhausted, "limit reached: %d signals with keys that a test sends", maxDoubled)
	}
	s.signalled[at] = true
	return true, nil
}

// Cancel implements the method `cancel`.
func (s *scripted) Cancel(_ context.Context, run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.started[run]
	if !ok {
		return errNotStarted(run)
	}
	o.cancelled, o.ended = true, s.clock.Time()
	s.started[run] = o
	return nil
}

// Lists implements [abi.Bounded].
func (*scripted) Lists() map[string]int { return new(Control).Lists() }

// Interface implements [abi.Capability].
func (*scripted) Interface() string { return Interface }

// Cancelled implements the method `cancelled`.
func (s *scripted) Cancelled(ctx context.Context) (*abi.Pollable, error) {
	if s.cancel == nil {
		return new(abi.Pollable), nil
	}
	return s.clock.Subscribe(ctx, uint64(max(0, s.cancel.Sub(s.clock.Time()))))
}

// KeepAwake implements the method `keep-awake`.
func (*scripted) KeepAwake(context.Context) *Awake { return new(Awake) }

// Stash implements the method `stash`.
func (s *scripted) Stash(_ context.Context, value string) error {
	text, err := compact(value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stash = text
	return nil
}

// Recover implements the method `recover`.
func (s *scripted) Recover(context.Context) (*string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stash == nil {
		return nil, nil
	}
	return new(string(s.stash)), nil
}
