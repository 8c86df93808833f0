package contenders

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/bench"
)

func TestContainers(t *testing.T) {
	others(t)
	cache := os.Getenv("STILE_BENCH_CACHE") // of a run before, or else everything is made anew
	if cache == "" {
		cache = t.TempDir()
	}
	for _, c := range containerised {
		for _, task := range c.Tasks {
			t.Run(c.Name+"/"+string(task), func(t *testing.T) {
				w := &bench.Workbench{Dir: t.TempDir(), Cache: cache, Log: io.Discard}
				r, err := bench.Probe(t.Context(), w, c, task)
				if unavailable, ok := errors.AsType[*bench.UnavailableError](err); ok {
					t.Skip(unavailable)
				}
				if err != nil {
					t.Fatal(err)
				}
				marks, err := filepath.Glob(filepath.Join(w.Dir, "stile-*"))
				if err != nil || len(marks) != 1 {
					t.Errorf("it works in %v: %v", marks, err)
				}
				if h, ok := r.(bench.Holder); ok && task == bench.Compute {
					holdTwo(t, h)
					ended(t, r)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				for _, mark := range marks {
					nothingLeft(t, filepath.Base(mark))
				}
				if left, err := os.ReadDir(w.Dir); err != nil || len(left) > 0 {
					t.Errorf("files are left: %v, %v", left, err)
				}
			})
		}
	}
}

func holdTwo(t *testing.T, h bench.Holder) {
	held, err := h.Hold(t.Context(), 2)
	if err != nil {
		t.Fatal(errors.Join(err, h.Close()))
	}
	if len(held.Processes) < 2 {
		t.Errorf("2 are held by %d processes", len(held.Processes))
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}

// ended has a trial and a hold end early, each at another moment.
func ended(t *testing.T, r bench.Runner) {
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if _, err := r.Run(ctx, bench.Trial{Input: bench.HoldInput()}); err == nil && after == 0 {
			t.Error("a trial goes on when its caller has given up")
		}
		if held, err := r.(bench.Holder).Hold(ctx, 2); err == nil {
			t.Error(errors.New("two are held when the caller has given up"), held.Release())
		}
		cancel()
	}
}

func nothingLeft(t *testing.T, mark string) {
	if pids := processesOf(mark); len(pids) > 0 {
		t.Errorf("processes of %s are left: %v", mark, pids)
	}
	files, _ := filepath.Glob("/run/*/*/*/" + mark + "*") // the pattern is right
	if paths := slices.Concat(cgroupsOf(mark), mountsOf(mark), files); len(paths) > 0 {
		t.Errorf("cgroups, mounts or files of %s are left: %v", mark, paths)
	}
}
