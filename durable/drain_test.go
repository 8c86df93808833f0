package durable_test

import (
	"context"
	"testing"

	"github.com/stilehost/stile/durable"
)

// TestDrain has a process end while one run is awake and another could begin: the first reaches its sleep, the second is left to others.
func TestDrain(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		for (let i = 0; i < 50; i++) { await env.store.increment("n", 1); await env.clock.sleep(5); }
		await env.clock.sleep(3600_000);`)
	spec.Target = "first"
	first, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, first.Name, durable.Running)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.runs.Drain(ended) // it takes no more from now on
	second, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Drain(t.Context())
	if r, err := s.runs.Get(t.Context(), first.Name); err != nil || r.State != durable.Asleep {
		t.Errorf("got %+v, %v", r, err)
	}
	if n, err := s.bucket.Bucket("first").Get(t.Context(), "n"); err != nil || *n != "50" {
		t.Errorf("got %v, %v", n, err)
	}
	if r, err := s.runs.Get(t.Context(), second.Name); err != nil || r.State != durable.Ready {
		t.Errorf("got %+v, %v", r, err)
	}
}
