package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// A draft that is refused before anything is bundled for it costs nothing. An error for exceeding the limit names the limit and when it ends.
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
		d.Manifest, d.Entry = []byte(`{"name": "one", "verzion": "1"}`), "absent.ts"
		if _, err := m.Write(t.Context(), d); err == nil || errors.As(err, new(*BudgetError)) {
			t.Fatalf("got %v, want what is wrong with the manifest", err)
		}
	}
	// A draft that is refused later counts, because it was built.
	if _, err := m.Write(t.Context(), draft("one", "(", "")); err == nil || errors.As(err, new(*BudgetError)) {
		t.Fatalf("got %v, want what is wrong with the source", err)
	}
	_, err := m.Write(t.Context(), draft("one", "4", ""))
	budget, ok := errors.AsType[*BudgetError](err)
	if !ok || !budget.Next.Equal(first.Add(time.Hour)) || budget.Limit != 2 {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`; what a person adds at a terminal does not count; this line of policy.json would raise it: "limits": { "buildsPerHour": 4 }`, budget.Next.UTC().Format(time.RFC3339)} {
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

// An agent sends drafts that are refused before anything is bundled for them, so they are no builds. The audit log has the first of each hour, and how
// many more there were.
func TestRefusalsAreBounded(t *testing.T) {
	h := newHome(t)
	now := time.UnixMilli(1_800_000_000_000)
	h.options.Now = func() time.Time { return now }
	one, two := h.open(), h.open()
	refuse := func(m *Manager, scope extension.Scope) {
		t.Helper()
		d := draft("one", "1", "")
		d.Scope, d.Author = scope, scope.String()
		d.Manifest, d.Entry = []byte(`{"name": "one", "`+strings.Repeat("\u202e", 200)+`": 1}`), "absent.ts"
		if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) {
			t.Fatal(err)
		}
	}
	size := func() (bytes int) {
		t.Helper()
		if err := one.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT sum(length(entry)) FROM audit").Scan(&bytes)
		}); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	for range refusedPerHour / 2 {
		refuse(one, own)
		refuse(two, own)
	}
	full := size()
	for range 50 {
		refuse(one, own)
		refuse(two, own)
		now = now.Add(30 * time.Second)
	}
	if grown := size() - full; grown != 0 {
		t.Errorf("the log of %d bytes has grown by %d", full, grown)
	}
	refuse(two, extension.Scope{Kind: extension.Agent, Owner: "b"}) // nobody takes what is another's
	now = now.Add(time.Hour)
	refuse(one, own)
	entries, err := two.Audit(t.Context(), refusedPerHour+10)
	if err != nil || len(entries) != refusedPerHour+3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if e := entries[2]; e.Scope != "agent:b" {
		t.Errorf("got %+v", e)
	}
	if e := entries[1]; e.By != "host" || e.Scope != own.String() || e.Reason != "100 more drafts were refused before they were built, from 2027-01-15T08:00:00Z" {
		t.Errorf("got %+v", e)
	}
	if _, _, err := two.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}

// Builds count from their beginning, in all processes, whether they end or not.
func TestBudgetOfBuildsUnderWay(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 2}}`)
	one, two := h.open(), h.open()
	d := draft("one", "1", "")
	ctx, cancel := context.WithCancel(t.Context())
	d.Progress = func(s extension.Stage) {
		if s == extension.StageBundle {
			cancel()
		}
	}
	if _, err := one.Write(ctx, d); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d.Progress = func(s extension.Stage) {
		if s != extension.StageBundle {
			return
		}
		for _, m := range []*Manager{one, two} {
			if _, err := m.Write(t.Context(), draft("two", "2", "")); !errors.As(err, new(*BudgetError)) {
				t.Errorf("while the second builds: got %v", err)
			}
		}
	}
	write(t, one, d)
	if _, err := two.BeginGeneration(t.Context(), d); !errors.As(err, new(*BudgetError)) {
		t.Errorf("got %v", err)
	}
}

// Sources that are active or wait already need no build, so they are accepted when no build is left. Everything else is refused before
// it is built.
func TestBudgetOfUnchangedSources(t *testing.T) {
	for state, permissions := range map[State]string{Active: "", Pending: `{"network": ["api.example.com"]}`} {
		t.Run(string(state), func(t *testing.T) {
			h := newHome(t)
			h.policyOf(`{"limits": {"buildsPerHour": 1}}`)
			m := h.open()
			first := write(t, m, draft("one", "1", permissions))
			if first.Release.State != state {
				t.Fatalf("it is %s", first.Release.State)
			}
			for range 3 {
				if w := write(t, m, draft("one", "1", permissions)); w.Version.Digest != first.Version.Digest || w.Release.State != state {
					t.Errorf("got %+v", w.Release)
				}
			}
			if _, err := m.Try(t.Context(), draft("one", "1", permissions)); err != nil {
				t.Errorf("its tests: %v", err)
			}
			for name, change := range map[string]func(*Draft){
				"the source":     func(d *Draft) { *d = draft("one", "2", permissions) },
				"the manifest":   func(d *Draft) { d.Manifest = append(d.Manifest, ' ') },
				"another name":   func(d *Draft) { *d = draft("two", "1", permissions) },
				"no name":        func(d *Draft) { d.Manifest = []byte("{") },
				"one file more":  func(d *Draft) { d.Files["other.ts"] = nil },
				"a renamed file": func(d *Draft) { d.Files = map[string][]byte{"index.ts": d.Files["tool.ts"]} },
				"another entry":  func(d *Draft) { d.Entry = "index.ts" },
			} {
				d := draft("one", "1", permissions)
				change(&d)
				d.Progress = func(s extension.Stage) { t.Errorf("%s is changed: the stage %s begins", name, s) }
				if _, err := m.Write(t.Context(), d); !errors.As(err, new(*BudgetError)) {
					t.Errorf("%s is changed: got %v", name, err)
				}
			}
		})
	}
}

// A generation counts once, or as often as its drafts were built. If the limit is exceeded, the caller is told before a model is called.
func TestBudgetOfGenerations(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 3}}`)
	now := time.UnixMilli(1_800_000_000_000)
	h.options.Now = func() time.Time { return now }
	m := h.open()
	d := draft("one", "1", "")
	begin := func() *Generation {
		t.Helper()
		g, err := m.BeginGeneration(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	end := func(g *Generation) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.End(ctx, "tokens: 12 in, 3 out"); err != nil {
			t.Fatal(err)
		}
	}
	full := func(when string) {
		t.Helper()
		if _, err := m.BeginGeneration(t.Context(), d); !errors.As(err, new(*BudgetError)) {
			t.Fatalf("%s: got %v", when, err)
		}
	}
	// Generations in progress reserve room.
	one, two, three := begin(), begin(), begin()
	full("under way")
	// The first produced nothing. The second was refused before anything was bundled for it, so it has no build either.
	end(one)
	wrong := d
	wrong.Manifest, wrong.Entry = []byte(`{"name": "one", "verzion": "1"}`), "absent.ts"
	if _, err := two.Write(t.Context(), wrong); !errors.As(err, new(*extension.ProblemsError)) {
		t.Fatal(err)
	}
	end(two)
	// The third uses the remaining room, with its own scope and author. Then there is none for another draft of it.
	elsewhere := d
	elsewhere.Scope, elsewhere.Author = extension.Scope{Kind: extension.Shared}, "user:tom"
	w, err := three.Write(t.Context(), elsewhere)
	if err != nil || w.Release.Scope != own || w.Release.Author != "agent:a" {
		t.Fatalf("got %+v, %v", w, err)
	}
	if _, err := three.Write(t.Context(), draft("one", "2", "")); !errors.As(err, new(*BudgetError)) {
		t.Fatalf("beyond the budget: got %v", err)
	}
	end(three)
	full("used up")
	if _, err := m.Write(t.Context(), draft("one", "2", "")); !errors.As(err, new(*BudgetError)) {
		t.Fatalf("write: got %v", err)
	}
	log, err := m.Audit(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, e := range log {
		if e.Kind == "generate" {
			outcomes = append(outcomes, e.Outcome)
			if e.By != "agent:a" || e.Via != "test" || e.Scope != own.String() || e.Reason != "tokens: 12 in, 3 out" {
				t.Errorf("entry is %+v", e)
			}
		}
	}
	if strings.Join(outcomes, " ") != "built nothing nothing" {
		t.Errorf("outcomes are %v", outcomes)
	}
	now = now.Add(time.Hour)
	end(begin())
}

// TestDefinitionsAreBounded activates extensions with large definitions, which every process keeps in memory, until their scope has no room, and
// then until no scope has.
func TestDefinitionsAreBounded(t *testing.T) {
	m := newHome(t).open()
	active := 0
	for _, err := m.Write(t.Context(), large("a0")); err == nil && active < 20; _, err = m.Write(t.Context(), large(fmt.Sprint("a", active))) {
		active++
	}
	const size = largeTools * largeDescription
	if most := maxScopeDefinitions / size; active != most {
		t.Errorf("%d are active, want %d", active, most)
	}
	_, err := m.Write(t.Context(), large("more"))
	if full, ok := errors.AsType[*BudgetError](err); !ok || full.Limit != maxScopeDefinitions || strings.Contains(err.Error(), "policy.json") {
		t.Errorf("got %v", err)
	}
	write(t, m, draft("small", "1", "")) // there is room for it
	another := large("other")
	another.Scope = extension.Scope{Kind: extension.Shared}
	asked := write(t, m, another).Release // a request that waits takes no memory
	for i := range maxDefinitions/size - active {
		alter(t, m, fmt.Sprintf(`INSERT INTO release (scope, name, digest, state, author, asked)
			SELECT 'agent:of%d', name, digest, 'active', author, asked FROM release WHERE scope = 'agent:a' AND name = 'a0'`, i))
	}
	d := person
	d.Release, d.Digest = asked.ID, asked.Digest
	if _, err := m.Approve(t.Context(), d); !errors.As(err, new(*BudgetError)) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Remove(t.Context(), own, "a1", person); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Approve(t.Context(), d); err != nil {
		t.Error(err)
	}
}
