package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
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
			INSERT INTO call (scope, extension, tool, duration) SELECT 'agent:a', 'answer', 'get', i * 1000 FROM n`, tt.calls))
		list, err := m.List(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if s := list[0].Tools[0].Stats; s.P50.Milliseconds() != tt.p50 || s.P95.Milliseconds() != tt.p95 {
			t.Errorf("of %d calls that took 1, 2, ... milliseconds: %v and %v, want %d and %d", tt.calls, s.P50, s.P95, tt.p50, tt.p95)
		}
	}
}

// Statistics of many tools take few queries: listing them takes a bounded work for each tool.
func TestStatisticsOfManyTools(t *testing.T) {
	const tools = 250
	h := newHome(t)
	h.options.poll = time.Hour
	m := h.open()
	names := make([]string, tools)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	source := fmt.Sprintf(`import { extension } from "stile"; const tools: any = {};
for (let i = 0; i < %d; i++) tools["t" + i] = { description: "T", input: { type: "object" }, run: async () => 1 };
export default extension({ tools });`, tools)
	write(t, m, tool("many", strings.Join(names, ","), source, ""))
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		for _, query := range []string{
			`INSERT INTO usage VALUES ('agent:a', 'many', 't0', 1300, 7, 5000, 'an error'), ('agent:a', 'many', 't1', 1, 0, 6000, ''), ('agent:a', 'gone', 't0', 1, 0, 0, ''), ('shared', 'many', 't2', 1, 0, 0, '')`,
			`INSERT INTO call (scope, extension, tool, duration) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1300)
				SELECT 'agent:a', 'many', 't0', i FROM n UNION ALL SELECT 'agent:a', 'many', 't1', 9`,
		} {
			if _, err := c.Exec(t.Context(), query); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	list, err := m.Statistics(t.Context(), agent)
	if err != nil || len(list) != 1 || len(list[0].Tools) != tools {
		t.Fatalf("got %+v, %v", list, err)
	}
	for _, tool := range list[0].Tools {
		var want Stats
		switch tool.Name {
		case "many_t0": // of the last 1,000 calls
			want = Stats{Calls: 1300, Failures: 7, P50: 800 * time.Microsecond, P95: 1250 * time.Microsecond, LastUsed: time.UnixMilli(5000), LastError: "an error"}
		case "many_t1":
			want = Stats{Calls: 1, P50: 9 * time.Microsecond, P95: 9 * time.Microsecond, LastUsed: time.UnixMilli(6000)}
		}
		if tool.Stats != want {
			t.Errorf("%s: got %+v, want %+v", tool.Name, tool.Stats, want)
		}
	}
	for name, list := range map[string]func(context.Context, Viewer) ([]Extension, error){"statistics": m.Statistics, "overview": m.Overview} {
		allocations := testing.AllocsPerRun(5, func() {
			if _, err := list(t.Context(), agent); err != nil {
				t.Error(err)
			}
		})
		if each := allocations / tools; each > 25 { // a query takes 50 and more
			t.Errorf("%s: %v allocations for each tool", name, each)
		} else {
			t.Logf("%s: %v allocations for each tool", name, each)
		}
	}
}
