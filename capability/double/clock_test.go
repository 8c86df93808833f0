package double

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
)

func TestClock(t *testing.T) {
	c := NewClock()
	subscribe := func(d uint64) *abi.Pollable {
		t.Helper()
		p, err := c.Subscribe(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if c.Move() || c.Monotonic(t.Context()) != 0 || !subscribe(0).IsReady() {
		t.Error("time passes by itself")
	}
	never := subscribe(math.MaxUint64)
	late, early, same := subscribe(uint64(2*time.Hour)), subscribe(uint64(time.Hour)), subscribe(uint64(time.Hour))
	if early.IsReady() || !c.Move() || !early.IsReady() || !same.IsReady() || late.IsReady() {
		t.Error("waits do not end in their order")
	}
	if got := time.Duration(c.Monotonic(t.Context())); got != time.Hour || c.Now(t.Context()) != uint64(start.Add(time.Hour).UnixMilli()) {
		t.Errorf("the time is %s", got)
	}
	if after := subscribe(math.MaxInt64); after.IsReady() {
		t.Error("what is due after the end of time is ready")
	}
	if !c.Move() || !late.IsReady() || c.Move() || never.IsReady() {
		t.Error("the last wait does not end, or one that never does")
	}
	for range 2 * MaxWaits {
		if err := subscribe(1).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if c.Move() {
		t.Error("the clock waits for what was dropped")
	}
	for range MaxWaits {
		subscribe(1)
	}
	if _, err := c.Subscribe(t.Context(), 1); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("got %v", err)
	}
}
