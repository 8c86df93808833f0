package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const typescript = "typescript"

// language is a way to write a guest. The first one is what others are compared with.
type language struct {
	name, title string
	build       func(context.Context, *workplace) ([]byte, error)
}

// missingError says that a language's toolchain is not here, and what installs it.
type missingError struct{ reason, install string }

func (e *missingError) Error() string { return e.reason + "; to install it: " + e.install }

// workplace is where a language's component is built.
type workplace struct {
	root, dir string
	kept      string // where packages of npm stay
	host      *host.Host
	tools     *toolchain.Toolchain
	toolchain string // its name and version, which build says
}

func languages() []language {
	return []language{
		{typescript, "TypeScript", buildTypeScript},
		{"rust", "Rust", buildRust},
		{"c", "C", buildC},
		{"go", "Go", buildGo},
		{"javascript", "JavaScript, componentize-js", buildJavaScript},
		{"python", "Python, componentize-py", buildPython},
	}
}

// example is a file or folder of the example.
func (w *workplace) example(name ...string) string {
	return filepath.Join(append([]string{w.root, "examples", "notes"}, name...)...)
}

// find returns the path of a program.
func find(program, install string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", &missingError{program + " is not installed", install}
	}
	return path, nil
}

// do runs a program and returns the first line that it prints.
func do(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", filepath.Base(program), err, out, failure.Bytes())
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

// componentize makes a component of a core module, as stile componentize does.
func (w *workplace) componentize(ctx context.Context, file string) ([]byte, error) {
	core, err := os.ReadFile(file) //nolint:gosec // a toolchain wrote it
	if err != nil {
		return nil, err
	}
	made, err := toolchain.Preinitialize(ctx, toolchain.ExtensionWorld(w.host.WIT()), core)
	if err != nil {
		return nil, err
	}
	return made.Component, nil
}

func buildTypeScript(ctx context.Context, w *workplace) (_ []byte, err error) {
	w.toolchain = "Stile"
	source, tree, err := toolchain.Open(w.example("notes.ts"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	return w.tools.Assemble(ctx, source, false)
}

func buildRust(ctx context.Context, w *workplace) ([]byte, error) {
	const target = "wasm32-unknown-unknown"
	rustc, err := find("rustc", "rustup, or apt-get install rustc cargo")
	if err != nil {
		return nil, err
	}
	root, err := do(ctx, "", nil, rustc, "--print", "sysroot")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "lib", "rustlib", target)); err != nil {
		return nil, &missingError{"rustc cannot build for " + target, "rustup target add " + target}
	}
	cargo, err := find("cargo", "rustup, or apt-get install cargo")
	if err != nil {
		return nil, err
	}
	if w.toolchain, err = do(ctx, "", nil, rustc, "--version"); err != nil {
		return nil, err
	}
	if _, err := do(ctx, "", nil, cargo, "build", "--quiet", "--locked", "--release", "--target", target, "--manifest-path", w.example("rust", "Cargo.toml"), "--target-dir", w.dir); err != nil {
		return nil, err
	}
	return w.componentize(ctx, filepath.Join(w.dir, target, "release", "notes.wasm"))
}

func buildC(ctx context.Context, w *workplace) ([]byte, error) {
	clang, err := find("clang", "apt-get install clang lld")
	if err != nil {
		return nil, err
	}
	if w.toolchain, err = do(ctx, "", nil, clang, "--version"); err != nil {
		return nil, err
	}
	core, sdk := filepath.Join(w.dir, "core.wasm"), filepath.Join(w.root, "guest-sdk", "c")
	if _, err := do(ctx, "", nil, clang, "--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Wl,--no-entry", "-Wl,--stack-first", "-std=c11",
		"-I", sdk, "-o", core, w.example("c", "notes.c"), filepath.Join(sdk, "stile.c")); err != nil {
		return nil, err
	}
	return w.componentize(ctx, core)
}

func buildGo(ctx context.Context, w *workplace) ([]byte, error) {
	program, err := find("go", "https://go.dev/dl")
	if err != nil {
		return nil, err
	}
	if w.toolchain, err = do(ctx, "", nil, program, "env", "GOVERSION"); err != nil {
		return nil, err
	}
	core := filepath.Join(w.dir, "core.wasm")
	env := []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off"}
	if _, err := do(ctx, w.example("go"), env, program, "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", core, "."); err != nil {
		return nil, err
	}
	return w.componentize(ctx, core)
}

func buildJavaScript(ctx context.Context, w *workplace) ([]byte, error) {
	node, err := find("node", "apt-get install nodejs npm")
	if err != nil {
		return nil, err
	}
	const pinned = "@bytecodealliance/componentize-js@0.23.0"
	modules, err := (&bench.Workbench{Cache: w.kept}).InstallNPM(ctx, false, pinned)
	if err != nil {
		return nil, &missingError{err.Error(), "npm install " + pinned}
	}
	w.toolchain = "componentize-js 0.23.0"
	cli := filepath.Join(modules, "node_modules", "@bytecodealliance", "componentize-js", "src", "cli.js")
	return w.foreign(ctx, w.example("javascript"), node, cli, "app.js", "-w", filepath.Join(w.root, "wit"), "-n", "with-everything", "-o")
}

func buildPython(ctx context.Context, w *workplace) ([]byte, error) {
	program, err := find("componentize-py", "pip install componentize-py==0.25.1")
	if err != nil {
		return nil, err
	}
	if w.toolchain, err = do(ctx, "", nil, program, "--version"); err != nil {
		return nil, err
	}
	return w.foreign(ctx, w.example("python"), program, "-d", filepath.Join(w.root, "wit"), "-w", "with-everything", "componentize", "app", "-o")
}

// foreign makes a component by a toolchain that writes one to the file after its last argument.
func (w *workplace) foreign(ctx context.Context, folder, program string, args ...string) ([]byte, error) {
	if _, err := os.Stat(folder); err != nil {
		return nil, &missingError{"this repository has no example in it", "a later version"}
	}
	made := filepath.Join(w.dir, "made.wasm")
	if _, err := do(ctx, folder, []string{"PYTHONDONTWRITEBYTECODE=1"}, program, append(args, made)...); err != nil {
		return nil, err
	}
	return os.ReadFile(made) //nolint:gosec // a toolchain wrote it
}

// checkAnswer compares an answer with what it must be.
func checkAnswer(out []byte) error {
	var got, want any
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(searchOutput), &want); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("a wrong answer: %.200q instead of %.200q", out, searchOutput)
	}
	return nil
}
