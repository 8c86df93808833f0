package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// findHelper returns the path of a helper program: the one in this program's folder, otherwise the one in PATH. A helper does
// something that few people need and that would make this program much larger.
func findHelper(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if path, err := exec.LookPath(beside); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &usageError{fmt.Errorf("the program %s, which %s, is neither beside %s nor in PATH: run make build in Stile's source, which writes it to bin", name, helperUse(name), self)}
	}
	return path, nil
}

const (
	benchHelper    = "stile-bench"
	sigstoreHelper = "stile-sigstore"
)

// helperUse says what each helper program does.
func helperUse(name string) string {
	if name == sigstoreHelper {
		return "verifies Sigstore bundles"
	}
	return "measures Stile beside other isolates"
}

// helper returns a command that runs a helper program, and ends with ctx.
func helper(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
