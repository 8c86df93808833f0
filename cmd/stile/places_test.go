package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

// TestBuildsOfProcesses takes all places for builds: another process waits until one is free.
func TestBuildsOfProcesses(t *testing.T) {
	h := newHome(t)
	cache, _ := cachetest.Dirs(t)
	tool := filepath.Join(h.extension("builds", "1.0.0", "return "+strconv.Quote(rand.Text())), "tool.ts") // the cache has no bundle of it
	lock := func(what string) *flock.Flock { return flock.New(filepath.Join(cache, "builds."+what)) }
	var places []*flock.Flock
	for n := range max(1, runtime.GOMAXPROCS(0)/2) {
		l := lock(fmt.Sprintf("place%d", n))
		if err := l.Lock(); err != nil {
			t.Fatal(err)
		}
		places = append(places, l)
	}
	built := make(chan error, 1)
	go func() { built <- h.command("build", tool, "-o", filepath.Join(t.TempDir(), "tool.wasm")).Run() }()
	for queued := false; !queued; runtime.Gosched() {
		select {
		case err := <-built:
			t.Fatalf("it was built without a place, %v", err)
		default:
		}
		next := lock("next")
		free, err := next.TryLock()
		if err = errors.Join(err, next.Close()); err != nil {
			t.Fatal(err)
		}
		queued = !free
	}
	for _, l := range places {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-built; err != nil {
		t.Error(errors.Join(err, h.ctx.Err()))
	}
}
