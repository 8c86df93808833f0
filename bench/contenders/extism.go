package contenders

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/bench"
)

// extism runs Extism's Go SDK in a separate program, with a precompiled plug-in of half a kilobyte. The compiler that makes plug-ins
// from JavaScript is not in a package registry, so there is no JavaScript plug-in.
var extism = &bench.Contender{
	Name: "extism", Title: "Extism (wazero), no JavaScript", Boundary: "WebAssembly", Limits: "wall clock",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Hello},
	Prepare: func(ctx context.Context, w *bench.Workbench, _ bench.Task) (bench.Runner, error) {
		program, err := buildExtism(ctx, w)
		if err != nil {
			return nil, err
		}
		text, err := drivers.ReadFile("drivers/hello-extism.wat")
		if err != nil {
			return nil, err
		}
		plugin, err := wasmtime.Wat2Wasm(string(text))
		if err != nil {
			return nil, err
		}
		dir, err := w.Folder("extism")
		if err != nil {
			return nil, err
		}
		if err := bench.WriteFiles(dir, map[string]string{"plugin.wasm": string(plugin)}); err != nil {
			return nil, err
		}
		return startDriver(w, w.Command(context.WithoutCancel(ctx), dir, program, "plugin.wasm"))
	},
}

// buildExtism builds the program. The Go command must run in Stile's source tree.
func buildExtism(ctx context.Context, w *bench.Workbench) (string, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/stilehost/stile").Output()
	if err != nil {
		return "", bench.Unavailable("it is built where Stile's source is, with go: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(module)), "bench", "contenders", "extism")
	dir, err := w.Folder("extism")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "extism")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Env = source, append(os.Environ(), "GOWORK=off")
	if err := bench.Do(build); err != nil {
		return "", bench.Unavailable("it cannot be built: %v", err)
	}
	return program, nil
}
