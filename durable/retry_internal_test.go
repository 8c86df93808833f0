package durable

import (
	"errors"
	"testing"

	"github.com/stilehost/stile/internal/sqlite"
)

// TestRetryIsNotLimited has a run begin again although as many of the same are there as may be, and another of its schedule. It counts for them then.
func TestRetryIsNotLimited(t *testing.T) {
	r := functions(t)
	start := func() (Info, error) {
		run, _, err := r.Start(t.Context(), Spec{Function: "f", Whose: "somebody", Most: 1})
		return run, err
	}
	first, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := r.Cancel(t.Context(), first.Name); err != nil || !ok {
		t.Fatal(ok, err)
	}
	second, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE run SET schedule = 'each'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.Retry(t.Context(), first.Name); err != nil || !ok {
		t.Error(ok, err)
	}
	if ok, err := r.Cancel(t.Context(), second.Name); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := start(); !errors.As(err, new(*CrowdedError)) {
		t.Errorf("it does not count: %v", err)
	}
}
