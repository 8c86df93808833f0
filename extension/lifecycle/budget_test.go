package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What is refused before it is built costs nothing, and who is over the limit is told which and until when.
func TestBudgetOfBuilds(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 2}}`)
	now := time.UnixMilli(1_800_000_000_000)
	h.options.Now = func() time.Time { return now }
	m := h.open()
	first := now
	write(t, m, draft("one", "1", ""))
	now = now.Add(10 * time.Minute)
	for range 5 {
		d := draft("one", "2", "")
		d.Manifest = []byte(`{"name": "one", "verzion": "1"}`)
		if _, err := m.Write(t.Context(), d); err == nil || errors.As(err, new(*BudgetError)) {
			t.Fatalf("got %v, want what is wrong with the manifest", err)
		}
	}
	// What is refused later was at work.
	if _, err := m.Write(t.Context(), draft("one", "(", "")); err == nil || errors.As(err, new(*BudgetError)) {
		t.Fatalf("got %v, want what is wrong with the source", err)
	}
	_, err := m.Write(t.Context(), draft("one", "4", ""))
	budget, ok := errors.AsType[*BudgetError](err)
	if !ok || !budget.Next.Equal(first.Add(time.Hour)) || budget.Limit != 2 {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"limits.buildsPerHour", "policy.json", budget.Next.UTC().Format(time.RFC3339)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
	now = budget.Next.Add(-time.Millisecond)
	if _, err := m.Write(t.Context(), draft("one", "4", "")); !errors.As(err, new(*BudgetError)) {
		t.Errorf("too early: %v", err)
	}
	now = budget.Next
	write(t, m, draft("one", "4", ""))
}
