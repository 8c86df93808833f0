package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func makeFolder(parent, name string) (string, error) {
	return os.MkdirTemp(parent, strings.ReplaceAll(name, "/", "-")+"-")
}

func keep(path string, fill func(dir string) error) (_ string, err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(filepath.Dir(path), ".half-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(half)) }()
	if err := os.Chmod(half, 0o755); err != nil {
		return "", err
	}
	if err := fill(half); err != nil {
		return "", err
	}
	if err := os.Rename(half, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// steering are the variables that change how runtimes behave. Some cost milliseconds at each start.
var steering = []string{"NODE_", "NPM_", "npm_", "DENO_", "BUN_", "V8_", "LD_", "GO", "SSL_", "STILE_"}

// Environment is that of this process without variables that steer a runtime.
func Environment() []string {
	var env []string
variables:
	for _, v := range os.Environ() {
		for _, prefix := range steering {
			if strings.HasPrefix(v, prefix) {
				continue variables
			}
		}
		env = append(env, v)
	}
	return env
}

// Pipe runs cmd to its end with an input. It returns what cmd wrote to stdout, and when that was complete. The error of a failed
// command has the end of its stderr.
func Pipe(cmd *exec.Cmd, input []byte) (Answer, error) {
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, 5*time.Second
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Answer{}, err
	}
	if err := cmd.Start(); err != nil {
		return Answer{}, err
	}
	output, readErr := io.ReadAll(out)
	at := time.Now()
	if err := errors.Join(cmd.Wait(), readErr); err != nil {
		return Answer{}, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, tail(stderr.Bytes()))
	}
	return Answer{bytes.TrimSpace(output), at}, nil
}

// Do runs cmd to its end for its effects.
func Do(cmd *exec.Cmd) error {
	_, err := Pipe(cmd, nil)
	return err
}

func tail(b []byte) string {
	const most = 2000
	b = bytes.TrimSpace(b)
	return string(b[max(0, len(b)-most):])
}

// WriteFiles writes files by name into dir.
func WriteFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// InstallNPM installs packages, given as name@version, with or without their own scripts, and returns the folder with node_modules.
// The folder is kept for later runs.
func (w *Workbench) InstallNPM(ctx context.Context, scripts bool, packages ...string) (string, error) {
	npm, err := Find("npm", "apt-get install npm")
	if err != nil {
		return "", err
	}
	return w.Kept("npm/"+strings.NewReplacer("/", "_").Replace(strings.Join(packages, "+")), func(dir string) error {
		if err := WriteFiles(dir, map[string]string{"package.json": "{}"}); err != nil {
			return err
		}
		args := append([]string{"install", "--no-audit", "--no-fund"}, packages...)
		if !scripts {
			args = append(args, "--ignore-scripts")
		}
		cmd := exec.CommandContext(ctx, npm, args...)
		cmd.Dir = dir
		if err := Do(cmd); err != nil {
			return &UnavailableError{Reason: "npm cannot install it: " + err.Error()}
		}
		return nil
	})
}
