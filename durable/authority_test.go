package durable_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// TestAuthority takes the authority of a run away before it begins, while it is awake, and for a time.
func TestAuthority(t *testing.T) {
	cacheDir, keyDir := cachetest.Dirs(t)
	dir := t.TempDir()
	s, err := open(t.Context(), t.TempDir(), cacheDir, keyDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	spec := program(t, s, cacheDir, keyDir, `
		await env.store.increment("awake", 1);
		while (!(await env.store.get("go"))) await new Promise(r => setTimeout(r, 5));
		return await env.store.increment("n", 1);`)
	bucket, err := kv.Open(t.Context(), filepath.Join(dir, "kv.db"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	var authority func(context.Context) durable.Authority
	runs, err := durable.Open(t.Context(), durable.Options{Dir: dir, Key: key, Host: s.host, Request: func(ctx context.Context, run durable.Info) (durable.Authority, error) {
		if run.Pinned != "version 1" {
			t.Errorf("what is pinned is %q", run.Pinned)
		}
		a := authority(ctx)
		a.Request.Env = host.Env{"clock": clock.System(), "store": bucket.Bucket(run.Name)}
		return a, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runs.Close() })
	runs.Work()
	spec.Pinned = "version 1"
	start := func() string {
		t.Helper()
		info, _, err := runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return info.Name
	}
	awake := func(name string) {
		t.Helper()
		for {
			v, err := bucket.Bucket(name).Get(t.Context(), "awake")
			if err != nil {
				t.Fatal(err)
			}
			if v != nil {
				return
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("it does not begin")
			}
		}
	}
	wait := func(name string) durable.Result {
		t.Helper()
		r, err := runs.Wait(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	// Away while it is awake: parked, and it ends only when it has got authority again.
	take := make(chan context.CancelCauseFunc, 2)
	told := make(chan error, 2)
	authority = func(ctx context.Context) durable.Authority {
		under, cancel := context.WithCancelCause(ctx)
		take <- cancel
		return durable.Authority{Context: under, Release: func() { cancel(nil) }, Ended: func(_ host.Result, err error) { told <- err }}
	}
	name := start()
	awake(name)
	(<-take)(errors.New("the extension was revoked"))
	if r := wait(name); r.State != durable.Parked || r.Reason != "the extension was revoked" {
		t.Fatalf("%s: %s", r.State, r.Reason)
	}
	if len(told) > 0 {
		t.Error("a parked run has not ended")
	}
	if err := bucket.Bucket(name).Set(t.Context(), "go", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Retry(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if r := wait(name); r.State != durable.Done || string(r.Output) != "1" {
		t.Fatalf("%s: %s %s %s", r.State, r.Reason, r.Outcome, r.Output)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}

	// Not the right one when it begins: it gets another.
	began := 0
	authority = func(context.Context) durable.Authority {
		return durable.Authority{Request: host.Request{Begin: func(context.Context) error {
			if began++; began < 3 {
				return errors.New("the policy changed meanwhile")
			}
			return nil
		}}}
	}
	name = start()
	if err := bucket.Bucket(name).Set(t.Context(), "go", "1"); err != nil {
		t.Fatal(err)
	}
	if r := wait(name); r.State != durable.Done || began != 3 {
		t.Fatalf("%s after %d: %s %s", r.State, began, r.Reason, r.Outcome)
	}
}
