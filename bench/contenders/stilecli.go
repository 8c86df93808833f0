package contenders

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

// stileCLI is the command: a host that starts, makes one call and ends. The call is not recorded.
var stileCLI = &bench.Contender{
	Name: "stile-cli", Title: "stile run", Boundary: stileBoundary, Limits: stileLimits, Level: bench.NewHost, Tasks: inputOnly,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		dir, err := w.Folder("stile-cli")
		if err != nil {
			return nil, err
		}
		tool := fmt.Sprintf(extensions[task], bench.Source(task, bench.StoredID))
		if err := bench.WriteFiles(dir, map[string]string{"tool.ts": tool}); err != nil {
			return nil, err
		}
		c := stileCommand{w, dir}
		return c, bench.Do(c.command(ctx, "build", "tool.ts", "--output", "tool.wasm"))
	},
}

type stileCommand struct {
	w   *bench.Workbench
	dir string
}

func (c stileCommand) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := c.w.Command(ctx, c.dir, c.w.Stile, args...)
	cmd.Env = append(cmd.Env, "STILE_HOME="+filepath.Join(c.dir, "home"), "STILE_CACHE="+filepath.Join(c.dir, "cache"),
		"STILE_ENGINE="+c.w.Engine, "STILE_KEYRING=off", "STILE_RECORD=off")
	return cmd
}

func (c stileCommand) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	return bench.Pipe(c.command(ctx, "run", "tool.wasm", "tool", "--input", "-"), t.Input)
}

func (stileCommand) Close() error { return nil }
