package durable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
)

// count reads a number from the file.
func (s *stored) count(t *testing.T, query string) (n int64) {
	t.Helper()
	db := s.file(t)
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(query, err)
	}
	return n
}

// TestCodeIsRemoved removes runs of two components that import the same module. What no run needs is removed with its last run, and nothing else.
func TestCodeIsRemoved(t *testing.T) {
	s := newStored(t)
	var runs []string
	for _, body := range []string{`return 1;`, `return 2;`} {
		spec := program(t, s.shop, s.cacheDir, s.keyDir, body)
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, info.Name)
	}
	s.runs.Work()
	for i, name := range runs {
		if r, err := s.runs.Wait(t.Context(), name); err != nil || r.State != durable.Done {
			t.Fatal(r.State, r.Reason, err)
		}
		const code = `SELECT count(*) FROM code`
		if n := s.count(t, code); n != int64(3-i) {
			t.Errorf("%d rows of code, want %d", n, 3-i)
		}
		if removed, err := s.runs.Remove(t.Context(), name); err != nil || !removed {
			t.Fatal(removed, err)
		}
	}
	if n := s.count(t, `SELECT (SELECT count(*) FROM code) + (SELECT count(*) FROM import)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `return 1;`) // the code comes back
	info, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.runs.Wait(t.Context(), info.Name); err != nil || string(r.Output) != "1" {
		t.Error(r.State, r.Reason, err)
	}
}

// TestEndedAreKept has more runs end than are kept. The newest are, sleeping and parked ones are, and the file gets smaller again.
func TestEndedAreKept(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `if (input.sleep) await env.clock.sleep(input.sleep); return input.text.length;`)
	start := func(input string) string {
		t.Helper()
		spec.Input = []byte(input)
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return info.Name
	}
	asleep := start(`{"sleep": 3600000, "text": ""}`)
	random := func(i int) string { // that does not become smaller
		b := make([]byte, 0, 40_000)
		for n := uint64(i + 1); len(b) < cap(b); n = n*6364136223846793005 + 1442695040888963407 {
			b = fmt.Appendf(b, "%016x", n)
		}
		return string(b)
	}
	var names []string
	for i := range 600 {
		names = append(names, start(`{"text": "`+random(i)+`"}`))
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(s.dir, durable.File))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	s.runs.Work()
	var ended []time.Time
	for _, name := range names {
		r, err := s.runs.Wait(t.Context(), name)
		if err != nil || r.State != durable.Done {
			t.Fatal(r.State, r.Reason, err)
		}
		ended = append(ended, r.Changed)
	}
	s.until(t, asleep, durable.Asleep)
	s.change(t)
	before := size()
	s.options = append(s.options, func(o *durable.Options) { o.MaxEnded = 10 })
	s.change(t)
	s.runs.Work()
	for s.count(t, `SELECT count(*) FROM run`) != 11 || s.count(t, `PRAGMA freelist_count`) > 1024 {
		<-time.After(5 * time.Millisecond)
	}
	var removed, kept []time.Time
	for i, name := range names {
		if _, err := s.runs.Get(t.Context(), name); err == nil {
			kept = append(kept, ended[i])
		} else {
			removed = append(removed, ended[i])
		}
	}
	if oldest, newest := slices.MinFunc(kept, time.Time.Compare), slices.MaxFunc(removed, time.Time.Compare); oldest.Before(newest) {
		t.Errorf("a run is kept that ended at %v, and one is not that ended at %v", oldest, newest)
	}
	s.until(t, asleep, durable.Asleep)
	s.change(t) // closing writes the log into the file
	if after := size(); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
}
