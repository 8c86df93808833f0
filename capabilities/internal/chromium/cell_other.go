//go:build !linux

package chromium

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// cell is where a browser runs. Only Linux can confine it.
type cell struct{ dir string }

// LackError says why a browser cannot be confined here.
type LackError struct{ Reason string }

// Error implements error.
func (e *LackError) Error() string { return "Chromium cannot be confined here: " + e.Reason }

func newCell(o Options) (*cell, error) {
	if !o.Unconfined {
		return nil, &LackError{"only Linux has the namespaces"}
	}
	dir, err := os.MkdirTemp("", "stile-browser-")
	if err != nil {
		return nil, err
	}
	return &cell{dir}, nil
}

func (c *cell) start(cmd *exec.Cmd, _ Options) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

func (c *cell) kill(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	_ = p.Kill()
}

func (c *cell) close() error                          { return os.RemoveAll(c.dir) }
func (c *cell) open(path string) (*os.File, error)    { return os.Open(path) }
func (c *cell) removeAll(path string) error           { return os.RemoveAll(path) }
func memoryOf(int) (total int64, pages []pageProcess) { return 0, nil }

func processorOf(int) time.Duration { return 0 }

func lowPriority(int, bool) {}

func proportional(int) int64 { return 0 }

func sandboxed(int) error { return nil } // nothing here says
