package contenders

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/stilehost/stile/bench"
)

var denoProcess = &bench.Contender{
	Name: "deno", Title: "Deno process", Boundary: "permissions of Deno", Limits: "none",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Compute, bench.File},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		deno, cache, err := installDeno(ctx, w)
		if err != nil {
			return nil, err
		}
		args := denoRun(deno)
		if task == bench.File {
			args = append(args, "--allow-read=state", "--allow-write=state")
		}
		i := &interpreter{w: w, args: args, env: []string{cache}, shell: map[bench.Task]string{
			bench.Compute: `
console.log(JSON.stringify(tool(await new Response(Deno.stdin.readable).json())));
`,
			bench.File: `
const files = { read: Deno.readTextFile, write: Deno.writeTextFile };
console.log(JSON.stringify(await tool(await new Response(Deno.stdin.readable).json(), files)));
`,
		}}
		return i.prepare(task)
	},
}

var denoWorker = &bench.Contender{
	Name: "deno-worker", Title: "Deno worker", Boundary: "permissions of Deno", Limits: "none", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: inProcess("web-worker.mjs", func(ctx context.Context, w *bench.Workbench) (launch, error) {
		deno, cache, err := installDeno(ctx, w)
		return launch{args: append(denoRun(deno), "--unstable-worker-options"), env: []string{cache}}, err
	}),
}

// denoRun runs a script with Deno, without permissions and without loading anything.
func denoRun(deno string) []string {
	return []string{deno, "run", "--quiet", "--no-prompt", "--no-check", "--no-config", "--no-lock", "--no-remote", "--no-npm"}
}

// installDeno returns the program, and the variable that names its cache.
func installDeno(ctx context.Context, w *bench.Workbench) (program, cache string, err error) {
	system := map[string]string{"linux": "linux", "darwin": "darwin"}[runtime.GOOS]
	machine := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	name := system + "-" + machine
	if system == "linux" {
		name += "-glibc"
	}
	dir, err := w.InstallNPM(ctx, false, "deno@2.9.6")
	return filepath.Join(dir, "node_modules", "@deno", name, "deno"), "DENO_DIR=" + filepath.Join(w.Dir, "deno"), err
}
