package browser

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/turns"
)

// TestIdlePageGivesItsPlace has one agent's pages, which last, take all places. Another agent gets one at once: the page that nobody uses
// closes, and its owner is told. A page of a call stays, also between its actions.
func TestIdlePageGivesItsPlace(t *testing.T) {
	url, rule := serve(t, html(`<title>ok</title><p>fine`))
	site := capability.NewSite(t.TempDir(), nil)
	site.Configure(Kind, EngineOptions{Tabs: 2})
	defer func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	}()
	greedy, other := turns.For(t.Context(), "agent:greedy"), turns.For(t.Context(), "agent:other")
	lasting := func() *Grant {
		g, err := Rights{Rules: ruleList(rule)}.Last(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		return g.(*Grant)
	}
	session := func(ctx context.Context, g *Grant) *Session {
		s, err := g.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.(*Session)
	}
	read := func(ctx context.Context, s *Session) error {
		p, err := s.Text(ctx, nil)
		_, err = take(t, p, err) //nolint:contextcheck // it has the test's
		return err
	}
	open := func(ctx context.Context, s *Session) {
		t.Helper()
		p, err := s.Open(ctx, url)
		if _, err = take(t, p, err); err != nil { //nolint:contextcheck // it has the test's
			t.Fatal(err)
		}
	}
	mine, idle, theirs := lasting(), lasting(), lasting()
	working := session(greedy, mine)
	open(greedy, working)
	resting := session(greedy, idle)
	open(greedy, resting)
	for range 2 { // closing again counts once
		if err := resting.Close(); err != nil {
			t.Fatal(err)
		}
	}
	another := session(other, theirs)
	open(other, another)
	if err := read(greedy, working); err != nil {
		t.Errorf("the page of a call that is under way: %v", err)
	}
	if err := another.Close(); err != nil {
		t.Fatal(err)
	}
	back := session(greedy, idle)
	if err := read(greedy, back); !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "others waited") {
		t.Errorf("the owner of the page that closed: %v", err)
	}
	open(greedy, back)
	if err := read(greedy, back); err != nil {
		t.Errorf("the new page: %v", err)
	}
	for _, s := range []*Session{back, working} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
