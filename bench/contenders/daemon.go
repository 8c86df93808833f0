package contenders

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is a server that runs as long as its contender.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // the result of cmd, once it has ended
}

// startDaemon starts a server and waits until ready succeeds. The server's output goes to a file in dir.
func startDaemon(ctx context.Context, dir string, cmd *exec.Cmd, ready func() error) (_ *daemon, err error) {
	log, err := os.Create(filepath.Join(dir, "daemon.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is meant for us; stop stops it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, ended: make(chan struct{})}
	go func() { d.err = cmd.Wait(); close(d.ended) }()
	for {
		if err = ready(); err == nil {
			return d, nil
		}
		select {
		case <-d.ended:
		case <-time.After(100 * time.Millisecond):
			if ctx.Err() == nil {
				continue
			}
		}
		said, _ := os.ReadFile(log.Name())
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		return nil, errors.Join(fmt.Errorf("%s does not serve: %w: %s", cmd.Path, err, lines[len(lines)-1]), d.stop())
	}
}

// stop ends it, with its children.
func (d *daemon) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-d.ended:
		return nil
	case <-time.After(30 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.ended
		return fmt.Errorf("%s had to be killed", d.cmd.Path)
	}
}
