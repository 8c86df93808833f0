package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/lifecycle"
)

// TestStartedRunsAreMetered has an extension start runs, send these signals, and cancel them, faster than strangers could post.
func TestStartedRunsAreMetered(t *testing.T) {
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
	c := &childRuns{changes: newMeter(postBurst)}
	if _, err := c.SignalRun(t.Context(), "a", "x", "go", "a test", []byte("1"), ""); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("without runs: %v", err)
	}
	c.runs.Store(store)
	for _, whose := range []string{"a", "b"} {
		run, err := store.StartFor(t.Context(), whose, "", []byte("{}"), func() (durable.Spec, error) { return durable.Spec{Function: "f"}, nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []struct {
			what string
			do   func(n int) error
		}{
			{"signals", func(n int) error {
				_, err := c.SignalRun(t.Context(), whose, run, "go"+string(rune('a'+n/durable.MaxMessages)), "a test", []byte("1"), "")
				return err
			}},
			{"starts", func(int) error {
				_, err := c.StartRun(t.Context(), whose, "", []byte("{}"), func() (lifecycle.Run, error) { return lifecycle.Run{}, errNone })
				if errors.Is(err, errNone) { // it may start one
					err = nil
				}
				return err
			}},
			{"cancels", func(int) error { return c.CancelRun(t.Context(), whose, run) }},
		} {
			done := 0
			for err = nil; err == nil && done < 10*postBurst; done++ {
				err = kind.do(done)
			}
			if !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), kind.what) || done <= postBurst {
				t.Errorf("%d %s of %s: %v", done, kind.what, whose, err)
			}
		}
	}
}

var errNone = errors.New("there is nothing to start")
