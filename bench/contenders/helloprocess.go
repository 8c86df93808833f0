package contenders

import (
	"context"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

// helloProcess is the smallest possible process: a static C binary, started from this process.
var helloProcess = &bench.Contender{
	Name: "hello-process", Title: "Static C process", Boundary: "none", Limits: "none",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Hello},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		cc, err := findCC()
		if err != nil {
			return nil, err
		}
		dir, err := w.Folder("hello")
		if err != nil {
			return nil, err
		}
		if err := bench.WriteFiles(dir, map[string]string{"hello.c": bench.Source(task, bench.StoredID)}); err != nil {
			return nil, err
		}
		program := filepath.Join(dir, "hello")
		return helloRunner{w, program}, bench.Do(w.Command(ctx, dir, cc, "-static", "-O2", "-o", program, "hello.c"))
	},
}

func findCC() (string, error) { return bench.Find("cc", "apt-get install build-essential") }

type helloRunner struct {
	w       *bench.Workbench
	program string
}

func (r helloRunner) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	return bench.Pipe(r.w.Command(ctx, "", r.program), t.Input)
}

func (helloRunner) Close() error { return nil }
