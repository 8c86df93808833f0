package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed native/trials.c
var trialsSource []byte

// compileTrials builds the C program against the headers and the library that the Go module wasmtime-go ships.
func compileTrials(ctx context.Context, dir string) (program string, err error) {
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
	source := filepath.Join(dir, "trials.c")
	program = filepath.Join(dir, "trials")
	if err := os.WriteFile(source, trialsSource, 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O2", "-o", program, source, "-I", filepath.Join(build, "include"),
		"-L", filepath.Join(build, system+"-"+machine), "-lwasmtime", "-lm", "-ldl", "-pthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile the C program: %w\n%s", err, out)
	}
	return program, nil
}

// native is a running C program.
type native struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startNative(ctx context.Context, program string, args ...string) (*native, error) {
	n := &native{cmd: exec.CommandContext(ctx, program, args...)}
	n.cmd.Stderr = os.Stderr
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return n, n.cmd.Start()
}

// round runs trials, of which each has two durations in microseconds.
func (n *native) round(trials int) (first, second []float64, err error) {
	if _, err := fmt.Fprintln(n.in, trials); err != nil {
		return nil, nil, fmt.Errorf("ask the C program: %w", err)
	}
	for range trials {
		var a, b float64
		if _, err := fmt.Fscanln(n.out, &a, &b); err != nil {
			return nil, nil, fmt.Errorf("read the C program's trials: %w", err)
		}
		first, second = append(first, a/1e3), append(second, b/1e3)
	}
	return first, second, nil
}

// close lets the program end, which it does at the end of its input.
func (n *native) close() error {
	return errors.Join(n.in.Close(), n.cmd.Wait())
}
