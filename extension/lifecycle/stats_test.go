package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
)

// Callers' mistakes do not count against a tool: they neither prune nor suspend it.
func TestCallersFaultsAreNotTheTools(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"failuresBeforeBreak": 2}}`)
	m := h.open()
	write(t, m, tool("geo", "find", `import { extension } from "stile";
export default extension({ tools: { find: { description: "Finds", input: { type: "object", required: ["place"], properties: { place: { type: "string" } } },
	run: (input) => { if (input.place === "nowhere") throw new Error("no such place"); return 1; } } } });`, ""))
	call := func(ctx context.Context, input string) error {
		_, err := m.Call(ctx, Call{Viewer: agent, Tool: "geo_find", Input: []byte(input)})
		return err
	}
	for range 7 {
		if err := call(t.Context(), `{"place": "Bern"}`); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if err := call(t.Context(), `{}`); !errors.As(err, new(*host.InputError)) {
			t.Fatalf("got %v", err)
		}
	}
	if err := call(t.Context(), `{"place": "nowhere"}`); !errors.As(err, new(*host.GuestError)) {
		t.Fatalf("got %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = h.open()
	list, err := m.List(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	if s := list[0].Tools[0].Stats; s.Calls != 28 || s.Failures != 1 || s.LastError == "" || s.Score() < 90 {
		t.Errorf("got %+v, score %d", s, s.Score())
	}
	if all, err := m.Prune(t.Context(), own, time.Hour); err != nil || len(all) > 0 {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestToolFailed(t *testing.T) {
	for _, tt := range []struct {
		err    error
		failed bool
	}{
		{nil, false},
		{&host.GuestError{}, true},
		{&host.DeniedError{}, true},
		{&host.LimitError{}, true},
		{&host.TrapError{}, true},
		{&host.DefinitionError{}, true},
		{&host.InputError{}, false},
		{&host.GrantError{}, false},
		{&RevokedError{}, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false},
		{errors.New("a fault of the host"), false},
	} {
		if how := outcome(tt.err); toolFailed(how) != tt.failed {
			t.Errorf("%T is %q: counts: %v", tt.err, how, !tt.failed)
		}
	}
}

// Percentiles are nearest ranks: that share of the calls took no longer. For few calls, the last one is the longest.
func TestPercentiles(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "1", ""))
	alter(t, m, "INSERT INTO usage VALUES ('agent:a', 'answer', 'get', 1, 0, 1, '')")
	for _, tt := range []struct{ calls, p50, p95 int64 }{{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {10, 5, 10}, {19, 10, 19}, {20, 10, 19}, {21, 11, 20}, {100, 50, 95}} {
		alter(t, m, "DELETE FROM call")
		alter(t, m, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO call (scope, extension, tool, digest, started, duration, outcome) SELECT 'agent:a', 'answer', 'get', '', 0, i * 1000, 'ok' FROM n`, tt.calls))
		list, err := m.List(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if s := list[0].Tools[0].Stats; s.P50.Milliseconds() != tt.p50 || s.P95.Milliseconds() != tt.p95 {
			t.Errorf("of %d calls that took 1, 2, ... milliseconds: %v and %v, want %d and %d", tt.calls, s.P50, s.P95, tt.p50, tt.p95)
		}
	}
}
