// Package trials runs trials in a C program, directly over wasmtime's C API.
package trials

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed program/trials.c
var source []byte

// Compile builds the program in dir, against the headers and the library of the Go module wasmtime-go. It must run where the Go
// command knows that module.
func Compile(ctx context.Context, dir string) (program string, err error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/bytecodealliance/wasmtime-go/v44").Output()
	if err != nil {
		return "", fmt.Errorf("find wasmtime-go: %w", err)
	}
	build := filepath.Join(strings.TrimSpace(string(module)), "build")
	system := map[string]string{"darwin": "macos"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	file := filepath.Join(dir, "trials.c")
	program = filepath.Join(dir, "trials")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O2", "-o", program, file, "-I", filepath.Join(build, "include"),
		"-L", filepath.Join(build, system+"-"+machine), "-lwasmtime", "-lm", "-ldl", "-pthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile the C program: %w\n%s", err, out)
	}
	return program, nil
}
