package durable

import (
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// TestSuspectsAlone has runs that may have ended their processes: they are taken one after the other, and hold nobody else up. None waits for another for long.
func TestSuspectsAlone(t *testing.T) {
	r := functions(t)
	var ids []int64
	for range 4 {
		r.started(t)
		ids = append(ids, int64(len(ids)+1))
	}
	var taken []row
	take := func(ids ...int64) {
		t.Helper()
		if err := r.db.Update(t.Context(), func(c *sqlite.Conn) (err error) {
			taken, err = r.takeReady(t.Context(), c, ids, r.now())
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE run SET crashes = CASE id WHEN 1 THEN 3 WHEN 2 THEN 4 WHEN 3 THEN 2 ELSE 5 END`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	take(ids...)
	if len(taken) != 3 || taken[0].id != 1 || taken[1].id != 3 || taken[2].id != 4 { // the last is parked at once
		t.Fatalf("%d were taken", len(taken))
	}
	now := time.Now()
	r.mu.Lock()
	r.active[1] = &active{runs: r, id: 1, alone: now.Add(aloneTime)}
	r.mu.Unlock()
	take(2)
	if due, _, err := r.due(t.Context(), r.now(), 10); err != nil || len(due) != 0 || len(taken) != 0 {
		t.Errorf("runs %d are due, and %d were taken: %v", due, len(taken), err)
	}
	r.only = []string{r.name(t, 2)}
	if due, _, err := r.due(t.Context(), r.now(), 10); err != nil || len(due) != 0 {
		t.Errorf("runs %d are due: %v", due, err)
	}
	r.only = nil
	if !r.trying(now) || r.trying(now.Add(aloneTime)) {
		t.Error("a suspect does not let the next one in")
	}
	r.mu.Lock()
	delete(r.active, 1)
	r.mu.Unlock()
	if take(2); len(taken) != 1 {
		t.Error("the next one is not taken")
	}
}

// name is what a run is called.
func (r *Runs) name(t *testing.T, id int64) (name string) {
	t.Helper()
	if err := r.db.Read(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT name FROM run WHERE id = ?`, id).Scan(&name)
	}); err != nil {
		t.Fatal(err)
	}
	return name
}
