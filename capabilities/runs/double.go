package runs

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// exampleAnswers are answers for a test.
const exampleAnswers = `{"stash": {"page": 3}, "cancelAfter": "72h"}`

// newDouble makes a run that has a stash from the start, and is cancelled at a time of the test.
func newDouble(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	s := &scripted{clock: t.Clock}
	if answers == nil {
		return s, nil
	}
	var given struct {
		Stash       json.RawMessage `json:"stash"`
		CancelAfter *string         `json:"cancelAfter"`
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
	return s, nil
}

// scripted is the run of a test.
type scripted struct {
	clock  *double.Clock
	cancel *time.Time // nil for never

	mu    sync.Mutex
	stash []byte
}

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
