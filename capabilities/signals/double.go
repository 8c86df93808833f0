package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/printable"
)

// scripted are the mailboxes of a test.
type scripted struct {
	test *double.Test

	mu       sync.Mutex
	messages map[string][]json.RawMessage
}

// Interface implements [abi.Capability].
func (*scripted) Interface() string { return Interface }

// Receive implements the method `receive`. What waits has its message from the start.
func (s *scripted) Receive(_ context.Context, mailbox string, milliseconds *uint64) (*awaited, error) {
	if !abi.IsMailbox(mailbox) {
		return nil, errName(mailbox)
	}
	p := &awaited{clock: s.test.Clock}
	if milliseconds != nil && *milliseconds <= uint64(math.MaxInt64/time.Millisecond) {
		p.until = s.test.Clock.Time().Add(time.Duration(*milliseconds) * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch all := s.messages[mailbox]; {
	case len(all) > 0:
		s.messages[mailbox] = all[1:]
		p.message = &Message{string(all[0]), "the test", uint64(max(0, s.test.Clock.Time().UnixMilli()))}
	case p.until.IsZero():
		return nil, s.test.Unanswered("a message in "+printable.Line(mailbox), fmt.Sprintf(`%q: [{}]`, mailbox))
	}
	return p, nil
}

// URL implements the method `url`.
func (s *scripted) URL(_ context.Context, mailbox string) (string, error) {
	if !abi.IsMailbox(mailbox) {
		return "", errName(mailbox)
	}
	return "https://signals.test.invalid/" + mailbox, nil
}

// awaited is a wait of a test. Its time passes as that of the test's clock.
type awaited struct {
	clock *double.Clock
	until time.Time

	mu      sync.Mutex
	message *Message
}

func (p *awaited) left() time.Duration { return max(0, p.until.Sub(p.clock.Time())) }

// Subscribe implements the method `subscribe`.
func (p *awaited) Subscribe(ctx context.Context) (*abi.Pollable, error) {
	p.mu.Lock()
	has := p.message != nil
	p.mu.Unlock()
	switch {
	case has:
		return abi.Ready(), nil
	case p.until.IsZero():
		return new(abi.Pollable), nil
	}
	return p.clock.Subscribe(ctx, uint64(p.left()))
}

// Take implements the method `take`.
func (p *awaited) Take(context.Context) (*Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.message
	p.message = nil
	if m == nil && !p.until.IsZero() && p.left() == 0 {
		return nil, abi.ErrTimedOut
	}
	return m, nil
}
