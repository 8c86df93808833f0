package contenders

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

const runscVersion = "v0.0.0-20260905035102-160fafc42237"

var gvisor = &bench.Contender{
	Name: "gvisor", Title: "Node.js in gVisor", Boundary: "a kernel in user space (systrap), namespaces", Limits: "memory, processes, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		runsc, err := findRunsc(ctx, w)
		if err != nil {
			return nil, err
		}
		return openOCI(ctx, w, task, "gvisor", runsc, "--platform=systrap", "--network=none")
	},
}

// findRunsc returns an installed runsc, or builds one.
func findRunsc(ctx context.Context, w *bench.Workbench) (string, error) {
	if path, err := exec.LookPath("runsc"); err == nil {
		return path, nil
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return "", bench.Unavailable("runsc is not installed, and there is no go to build it with")
	}
	dir, err := w.Kept("runsc/"+runscVersion, func(dir string) error {
		for _, args := range [][]string{
			{"mod", "init", "runsc"},
			{"get", "-tool", "gvisor.dev/gvisor/runsc@" + runscVersion},
			{"build", "-o", "runsc", "gvisor.dev/gvisor/runsc"},
		} {
			cmd := exec.CommandContext(ctx, compiler, args...) // with the environment's proxies
			cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off")
			if err := bench.Do(cmd); err != nil {
				return bench.Unavailable("runsc is not installed and cannot be built: %v", err)
			}
		}
		return nil
	})
	return filepath.Join(dir, "runsc"), err
}
