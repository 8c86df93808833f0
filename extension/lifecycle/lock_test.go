package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// manyEntries puts entries into the log.
func manyEntries(t *testing.T, m *Manager, n int) {
	t.Helper()
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{Kind: "call", By: "user:x", Tool: fmt.Sprint("t", i)}
		}
		return audit(t.Context(), c, m.options.Now(), entries...)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestArchivingLetsOthersWrite moves many entries to an archive in transactions of a bounded number of rows. It is done or not, wherever it
// ends, and what is left in the store is no part of the log.
func TestArchivingLetsOthersWrite(t *testing.T) {
	const entries = 2*forgottenAtOnce + 500
	for end := range 5 { // after so many transactions; 0 is never
		h := newHome(t)
		now := time.Now()
		h.options.Now = func() time.Time { return now }
		m := h.open()
		manyEntries(t, m, entries)
		now = now.Add(48 * time.Hour)
		other, err := sqlite.Open(t.Context(), m.options.Dir+"/"+File, schema)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		transactions, most := 0, int64(0)
		ctx = sqlite.Observe(ctx, func() func(int64) {
			transactions++
			return func(changes int64) {
				if most = max(most, changes); transactions == end {
					cancel()
				}
				if err := other.Update(t.Context(), func(c *sqlite.Conn) error { // between two of them
					_, err := c.Exec(t.Context(), "UPDATE head SET generation = generation")
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
		var to memory
		moved, err := m.ArchiveAudit(ctx, now, person, &to)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) || err == nil && moved != entries {
			t.Fatalf("moved %d, %v", moved, err)
		}
		if most > forgottenAtOnce+10 || end == 0 && transactions < 4 {
			t.Errorf("%d transactions, at most %d rows in one", transactions, most)
		}
		archives := to.String()
		if err != nil {
			archives = ""
		}
		n, _, err := m.VerifyAudit(t.Context(), strings.NewReader(archives))
		if want := int64(entries + 1); err != nil || n != want {
			t.Errorf("ended after %d: %d entries, want %d, %v", end, n, want, err)
		}
		if list, err := m.Audit(t.Context(), 10); err != nil || len(list) != 1 || list[0].Kind != "archive" {
			t.Errorf("ended after %d: %+v, %v", end, list, err)
		}
		if _, err := m.ArchiveAudit(t.Context(), now, person, new(memory)); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT count(*) FROM audit").Scan(&left)
		}); err != nil || left != 1 {
			t.Errorf("ended after %d: %d rows are left, %v", end, left, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
