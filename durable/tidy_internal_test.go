package durable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// TestRetriedIsKept has a run begin again that is about to be removed.
func TestRetriedIsKept(t *testing.T) {
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), MaxEnded: 1, Functions: map[string]Function{"f": nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for i := range 3 {
		run, _, err := r.Start(t.Context(), Spec{Function: "f", Key: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Cancel(t.Context(), run.Name); err != nil {
			t.Fatal(err)
		}
	}
	old, err := r.old(t.Context())
	if err != nil || len(old) != 2 {
		t.Fatal(old, err)
	}
	run, _, err := r.Start(t.Context(), Spec{Function: "f", Key: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Retry(t.Context(), run.Name); err != nil || !again {
		t.Fatal(again, err)
	}
	if err := r.removeEnded(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if now, err := r.Get(t.Context(), run.Name); err != nil || now.State != Ready {
		t.Errorf("the run that began again is %s: %v", now.State, err)
	}
	if all, err := r.List(t.Context(), "", 10); err != nil || len(all) != 2 {
		t.Errorf("%d runs are there: %v", len(all), err)
	}
}

// TestOddState has a file whose text is not ours.
func TestOddState(t *testing.T) {
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), Functions: map[string]Function{"f": nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	run, _, err := r.Start(t.Context(), Spec{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE run SET state = 'done' || char(27) || '[31m'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if now, err := r.Get(t.Context(), run.Name); err != nil || now.State != "unknown" {
		t.Errorf("it is %q: %v", now.State, err)
	}
}

// TestCommittedOnly has the disk fail after a part of a log was committed, so that the process does not know of it. The run goes on from what is there.
func TestCommittedOnly(t *testing.T) {
	var r *Runs
	calls := 0
	fails := func(ctx context.Context, _ struct{}) (int, error) {
		calls++
		if _, err := Step(ctx, "a", func(context.Context) (int, error) { return 1, nil }, Repeatable); err != nil || calls > 1 {
			return calls, err
		}
		for _, a := range r.active {
			batches, tag := a.batches, a.tag
			if err := a.journal.Commit(ctx); err != nil {
				return 0, err
			}
			a.batches, a.tag, a.journal.fault = batches, tag, errors.New("the disk failed")
		}
		return 0, errors.New("fails")
	}
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), Functions: map[string]Function{"f": Func(fails)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	run, _, err := r.Start(t.Context(), Spec{Function: "f", Retry: Retry{Attempts: 3, Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	r.Work()
	result, err := r.Wait(t.Context(), run.Name)
	if err != nil || result.State != Done || string(result.Output) != "2" || len(result.Attempts) != 0 {
		t.Errorf("got %s %s, %q: %v", result.State, result.Output, result.Reason, err)
	}
}
