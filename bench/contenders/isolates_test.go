package contenders

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/bench"
)

// others skips a test of what is not ours unless STILE_TEST_CONTENDERS is set, as `make test-bench` does: such tests take minutes and
// install what they test.
func others(t *testing.T) {
	t.Helper()
	if os.Getenv("STILE_TEST_CONTENDERS") == "" {
		t.Skip("set STILE_TEST_CONTENDERS=1, or run make test-bench")
	}
}

// TestStarts has each contender answer for each of its tasks, in a run of one round; the run checks the answers. Only
// componentize-js-build, which takes 20 seconds a trial, is left out.
func TestStarts(t *testing.T) {
	others(t)
	program := filepath.Join(t.TempDir(), "stile")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/stile")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []*bench.Contender{
		stile, stileEval, stileBuild, stileHello, stileCLI, floor, extism, componentizeJS, helloProcess, nodeProcess, denoProcess, bunProcess,
		nodeVM, nodeWorker, denoWorker, bunWorker, isolatedVM, quickJS, workerd,
	} {
		t.Run(c.Name, func(t *testing.T) { run(t, c, program, "start") })
	}
}

// TestHeld has each keep 20 isolates, and end them.
func TestHeld(t *testing.T) {
	others(t)
	for _, c := range []*bench.Contender{
		nodeProcess, denoProcess, bunProcess, nodeVM, nodeWorker, denoWorker, bunWorker, isolatedVM, quickJS, workerd,
	} {
		t.Run(c.Name, func(t *testing.T) { run(t, c, "", "memory") })
	}
}

func TestWork(t *testing.T) {
	others(t)
	for _, c := range []*bench.Contender{stile, nodeProcess, nodeJitless} {
		t.Run(c.Name, func(t *testing.T) { run(t, c, "", "work") })
	}
}

// TestCancelled ends runs in the middle.
func TestCancelled(t *testing.T) {
	others(t)
	for _, c := range []*bench.Contender{nodeProcess, nodeWorker, workerd} {
		for _, measurement := range []string{"start", "memory"} {
			t.Run(c.Name+" "+measurement, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := options(t, c, "", measurement)
				o.Progress = func(what string, _, _ int) {
					if strings.HasPrefix(what, measurement) {
						time.AfterFunc(50*time.Millisecond, cancel)
					}
				}
				o.Size.Trials = [3]int{100_000, 100_000, 100_000}
				if err := bench.Run(ctx, o); err == nil {
					t.Log("it was faster")
				}
				if left := children(t); len(left) > 0 {
					t.Errorf("processes are left: %s", left)
				}
			})
		}
	}
}

func options(t *testing.T, c *bench.Contender, program, measurement string) bench.Options {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Options{
		Contenders: []*bench.Contender{c}, Only: []string{measurement}, Dir: t.TempDir(),
		Size:      bench.Size{Rounds: 1, Trials: [3]int{2, 2, 2}, Live: 20},
		Workbench: bench.Workbench{Cache: filepath.Join(cache, "stile", "bench"), Stile: program, Engine: os.Getenv("STILE_ENGINE")},
	}
}

func run(t *testing.T, c *bench.Contender, program, measurement string) {
	t.Helper()
	o := options(t, c, program, measurement)
	if err := bench.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	lines, err := bench.ReadLines(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tasks, figures := 0, 0
	for _, l := range lines {
		switch {
		case l.Contender != nil && l.Contender.Reason != "" && l.Contender.Install != "":
			t.Skip(l.Contender.Reason)
		case l.Contender != nil && l.Contender.Reason != "":
			t.Error(l.Contender.Reason)
		case l.Contender != nil:
			tasks++
		case l.Start != nil || l.Memory != nil || l.Work != nil:
			figures++
		}
	}
	if figures == 0 || figures < tasks {
		t.Errorf("%d figures of %d tasks", figures, tasks)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %s", left)
	}
}

// children are the processes whose parent this one is.
func children(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var pid, parent int
		var name, state string
		content, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		if n, _ := fmt.Sscan(string(content), &pid, &name, &state, &parent); n == 4 && parent == os.Getpid() {
			names = append(names, name)
		}
	}
	return names
}
