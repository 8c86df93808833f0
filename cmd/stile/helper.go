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

// findHelper returns the path of a program that does what few need and that would make this one much larger: beside this program, or else
// in PATH.
func findHelper(name, use string) (string, error) {
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
		return "", &usageError{fmt.Errorf("the program %s, which %s, is neither beside %s nor in PATH: make build in Stile's source builds it, into bin", name, use, self)}
	}
	return path, nil
}

// helper is a command of a helper program, which ends with ctx.
func helper(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
