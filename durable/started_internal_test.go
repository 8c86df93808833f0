package durable

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stilehost/stile/internal/sqlite"
)

// allocates is how many bytes something allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTellingIsSmall ends a run for which others wait whose inputs are large. Nobody can write while these are told.
func TestTellingIsSmall(t *testing.T) {
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), Functions: map[string]Function{"f": nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	input := make([]byte, 1<<20)
	if _, err := rand.Read(input); err != nil {
		t.Fatal(err)
	}
	large, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 20
	for range waiters {
		if _, _, err := r.Start(t.Context(), Spec{Function: "f", Input: large}); err != nil {
			t.Fatal(err)
		}
	}
	run, _, err := r.Start(t.Context(), Spec{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		if _, err := c.Exec(t.Context(), `INSERT INTO awaited SELECT (SELECT id FROM run WHERE name = ?1), id FROM run WHERE name <> ?1`, run.Name); err != nil {
			return err
		}
		w, err := findRun(t.Context(), c, run.Name)
		if err != nil {
			return err
		}
		if bytes := allocates(func() { err = r.tellWaiting(t.Context(), c, w) }); bytes > 1<<20 {
			t.Errorf("to tell %d runs allocates %d bytes", waiters, bytes)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var told int
	if err := r.db.Read(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT count(*) FROM message`).Scan(&told)
	}); err != nil || told != waiters {
		t.Errorf("%d runs were told: %v", told, err)
	}
}

// TestCancelIsSmall asks again and again for the end of a run that is awake and has a long log, which only its process cuts.
func TestCancelIsSmall(t *testing.T) {
	steps, stop := make(chan struct{}), make(chan struct{})
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), Functions: map[string]Function{"f": Func(func(ctx context.Context, _ any) (any, error) {
		for range 64 {
			if _, err := Step(ctx, "log", func(context.Context) (string, error) {
				text := make([]byte, 16<<10)
				_, err := rand.Read(text)
				return hex.EncodeToString(text), err
			}); err != nil {
				return nil, err
			}
		}
		close(steps)
		<-stop
		return nil, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	run, _, err := r.Start(t.Context(), Spec{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	r.Work()
	<-steps
	defer close(stop)
	const times = 20
	if bytes := allocates(func() {
		for range times {
			if asked, err := r.Cancel(t.Context(), run.Name); err != nil || !asked {
				t.Error(asked, err)
			}
		}
	}); bytes > times<<16 {
		t.Errorf("to cancel a run %d times allocates %d bytes", times, bytes)
	}
}
