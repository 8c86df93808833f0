package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/durable"
)

// TestStartedSignalsAreMetered has an extension send a run more signals at once than strangers could post.
func TestStartedSignalsAreMetered(t *testing.T) {
	store, err := durable.Open(t.Context(), durable.Options{
		Dir: t.TempDir(), Key: bytes.Repeat([]byte{1}, durable.KeySize),
		Functions: map[string]durable.Function{"f": durable.Func(func(context.Context, string) (string, error) { return "", nil })},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := &childRuns{signals: newMeter(postBurst)}
	if _, err := c.SignalRun(t.Context(), "a", "x", "go", "a test", []byte("1"), ""); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("without runs: %v", err)
	}
	c.runs.Store(store)
	for _, whose := range []string{"a", "b"} {
		run, err := store.StartFor(t.Context(), whose, "", []byte("{}"), func() (durable.Spec, error) { return durable.Spec{Function: "f"}, nil })
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for ; err == nil && sent < 10*postBurst; sent++ {
			_, err = c.SignalRun(t.Context(), whose, run, "go"+string(rune('a'+sent/durable.MaxMessages)), "a test", []byte("1"), "")
		}
		if !errors.Is(err, abi.ErrExhausted) || sent <= postBurst {
			t.Errorf("%d signals of %s were sent: %v", sent, whose, err)
		}
	}
}
