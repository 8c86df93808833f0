package lifecycle

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// A migrated store no longer counts callers' mistakes against a tool.
func TestMigrateFailures(t *testing.T) {
	h := newHome(t)
	old := schema
	old.Migrations = schema.Migrations[:2]
	db, err := sqlite.Open(t.Context(), filepath.Join(h.options.Dir, File), old)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(c *sqlite.Conn) error {
		for _, query := range []string{
			`INSERT INTO usage VALUES ('agent:a', 'geo', 'find', 30, 25, 0, 'input'), ('agent:a', 'geo', 'other', 2, 1, 0, 'input')`,
			`INSERT INTO call (scope, extension, tool, digest, started, duration, outcome) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
				SELECT 'agent:a', 'geo', 'find', '', 0, 0, 'input' FROM n UNION ALL SELECT 'agent:a', 'geo', 'find', '', 0, 0, 'trap'`,
		} {
			if _, err := c.Exec(t.Context(), query); err != nil {
				return err
			}
		}
		return nil
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := h.open()
	for tool, want := range map[string]int64{"find": 5, "other": 1} {
		var failures int64
		err := m.db.Read(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT failures FROM usage WHERE tool = ?", tool).Scan(&failures)
		})
		if err != nil || failures != want {
			t.Errorf("%s has %d failures, %v; want %d", tool, failures, err, want)
		}
	}
}

// When a newer program changes the schema of the store, a process of an older one starts no more calls: it could not write them down. And
// it writes no more versions, because the newer program would not know what belongs to them.
func TestNewerProgram(t *testing.T) {
	h := newHome(t)
	m := h.open()
	write(t, m, draft("one", "1", ""))
	says(t, m, "one_get", "1")
	before := schema
	t.Cleanup(func() { schema = before })
	schema.Migrations = append(slices.Clone(schema.Migrations), "CREATE TABLE later (x)")
	newer := h.open()
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "one_get"}); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("the older program calls: %v", err)
	}
	if _, err := m.Write(t.Context(), draft("two", "2", "")); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("the older program writes: %v", err)
	}
	says(t, newer, "one_get", "1")
	if found := offered(t, newer, agent); len(found) != 1 {
		t.Errorf("the newer program offers %+v", found)
	}
}
