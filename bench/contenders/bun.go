package contenders

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/stilehost/stile/bench"
)

var bunProcess = &bench.Contender{
	Name: "bun", Title: "Bun process", Boundary: "none", Limits: "none",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Compute, bench.File},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		bun, err := installBun(ctx, w)
		if err != nil {
			return nil, err
		}
		i := &interpreter{w: w, args: bunRun(bun), shell: nodeShell}
		return i.prepare(task)
	},
}

var bunWorker = &bench.Contender{
	Name: "bun-worker", Title: "Bun worker", Boundary: "none", Limits: "none", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: inProcess("web-worker.mjs", func(ctx context.Context, w *bench.Workbench) (launch, error) {
		bun, err := installBun(ctx, w)
		return launch{args: bunRun(bun)}, err
	}),
}

// bunRun runs a script with Bun, without installing what it imports.
func bunRun(bun string) []string { return []string{bun, "run", "--no-install"} }

func installBun(ctx context.Context, w *bench.Workbench) (string, error) {
	machine := map[string]string{"amd64": "x64", "arm64": "aarch64"}[runtime.GOARCH]
	dir, err := w.InstallNPM(ctx, false, "bun@1.4.5")
	return filepath.Join(dir, "node_modules", "@oven", "bun-"+runtime.GOOS+"-"+machine, "bin", "bun"), err
}
