package lifecycle

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// callsAndDecisions writes batches of calls as the ledger does, and a decision after each.
func callsAndDecisions(t *testing.T, m *Manager, batches int) {
	t.Helper()
	l := &ledger{m: m}
	batch := make([]used, ledgerBatch)
	for i := range batch {
		batch[i] = used{scope: own.String(), extension: "x", tool: fmt.Sprint("t", i), outcome: "ok", by: "agent:a"}
	}
	for range batches {
		if err := errors.Join(m.writeCalls(t.Context(), batch), l.trim(t.Context()), m.Refuse(t.Context(), draft("x", "1", ""), "no")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuditedCallsAreBounded fills the audit log with calls. The oldest go, each decision stays, and entries say what went. The log can be
// verified, also together with archives, and shows whatever else is missing.
func TestAuditedCallsAreBounded(t *testing.T) {
	const batches = 60
	h := newHome(t)
	h.policyOf(`{"limits": {"auditedCalls": "1MiB"}}`)
	now := time.UnixMilli(1_800_000_000_000)
	h.options.Now = func() time.Time { now = now.Add(time.Hour); return now } // so that each refusal has an entry
	h.options.poll = time.Hour
	m := h.open()
	callsAndDecisions(t, m, batches)
	kinds := func() (calls, refusals, trims int) {
		t.Helper()
		entries, err := m.Audit(t.Context(), 100_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch e.Kind {
			case "call":
				calls++
			case "refuse":
				refusals++
			case "trim":
				trims++
				if e.Calls == 0 || e.By != "host" || !strings.Contains(e.Reason, fmt.Sprint(e.Calls, " calls until 2027-")) || !strings.Contains(e.Reason, "limits.auditedCalls is 1 MiB") {
					t.Errorf("got %+v", e)
				}
			default:
				t.Errorf("got %+v", e)
			}
		}
		return calls, refusals, trims
	}
	calls, refusals, trims := kinds()
	if refusals != batches || trims == 0 || trims > batches*ledgerBatch/200 || calls == 0 || calls > 1<<20/rowBytes {
		t.Errorf("%d calls, %d refusals, %d trims", calls, refusals, trims)
	}
	var rows, bytes int
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), "SELECT count(*), sum(length(entry) + 64) FROM audit").Scan(&rows, &bytes)
	}); err != nil || bytes > 3<<19 || rows > calls+refusals*2+trims*2+2*ledgerBatch {
		t.Errorf("%d rows of %d bytes, %v", rows, bytes, err)
	}
	verify := func(archives ...string) error {
		var readers []io.Reader
		for _, a := range archives {
			readers = append(readers, strings.NewReader(a))
		}
		n, _, err := m.VerifyAudit(t.Context(), readers...)
		if want := int64(calls + refusals + trims); err == nil && n <= want {
			t.Errorf("%d entries, and %d are there", n, want)
		}
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"a decision between dropped calls": "UPDATE audit SET entry = 'null' WHERE id = (SELECT min(id) FROM audit WHERE entry LIKE '%refuse%')",
		"a call that was not dropped":      "UPDATE audit SET entry = 'null' WHERE id = (SELECT max(id) FROM audit WHERE entry LIKE '%call%')",
		"the row of dropped calls":         "DELETE FROM audit WHERE id = (SELECT min(id) FROM audit WHERE entry = 'null')",
		"the entry that says it":           "DELETE FROM audit WHERE entry LIKE '%trim%'",
		"more calls":                       "UPDATE head SET dropped = dropped + 200",
	} {
		alter(t, m, "CREATE TABLE kept AS SELECT * FROM audit")
		alter(t, m, "CREATE TABLE kept_head AS SELECT * FROM head")
		alter(t, m, query)
		if err := verify(); !errors.As(err, new(*TamperedError)) {
			t.Errorf("%s is missing: %v", name, err)
		}
		for _, back := range []string{"DELETE FROM audit", "INSERT INTO audit SELECT * FROM kept", "UPDATE head SET dropped = (SELECT dropped FROM kept_head)", "DROP TABLE kept", "DROP TABLE kept_head"} {
			alter(t, m, back)
		}
	}
	var archives []string
	for range 2 {
		var to memory
		if _, err := m.ArchiveAudit(t.Context(), now.Add(-48*time.Hour), person, &to); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, to.String())
		if err := errors.Join(verify(), verify(archives...)); err != nil {
			t.Fatal(err)
		}
		callsAndDecisions(t, m, batches)
		if err := errors.Join(verify(), verify(archives...)); err != nil {
			t.Fatal(err)
		}
	}
	first := archives[0]
	if at := strings.Index(first, `"entry":{"kind":"refuse"`); at < 0 {
		t.Error("no decision is in the archive")
	} else {
		end := at + strings.Index(first[at:], `,"hash"`)
		if err := verify(first[:at]+`"entry":null`+first[end:], archives[1]); !errors.As(err, new(*TamperedError)) {
			t.Errorf("a decision of an archive is missing: %v", err)
		}
	}
}

// TestTrimEnds ends the trimming of the log after each of its transactions. The log can be verified, and the next ones complete it.
func TestTrimEnds(t *testing.T) {
	for end := range 5 {
		h := newHome(t)
		h.options.poll = time.Hour
		m := h.open()
		manyEntries(t, m, 16*forgottenAtOnce)
		h.policyOf(`{"limits": {"auditedCalls": "1MiB"}}`)
		m.SetPolicy(h.options.Policy)
		ctx, cancel, work := endedAfter(t, end)
		l := &ledger{m: m}
		for range 10 {
			_ = l.trim(ctx) // it was ended
		}
		cancel()
		if _, _, err := m.VerifyAudit(t.Context()); err != nil {
			t.Errorf("ended after %d: %v", end, err)
		}
		for range 10 {
			if err := l.trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var rows, gone int
		if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT count(*), sum(entry = 'null') FROM audit").Scan(&rows, &gone)
		}); err != nil || gone != 1 || rows > 12*forgottenAtOnce || work.most > forgottenAtOnce+10 {
			t.Errorf("ended after %d: %d rows, %d of them for dropped calls, at most %d in one transaction, %v", end, rows, gone, work.most, err)
		}
		if _, _, err := m.VerifyAudit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
