package box

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is a process that runs in a box.
type command struct {
	cmd     *exec.Cmd
	process Process
	kill    func() error  // ends all that the process started
	pid     func() int    // of the process, 0 as long as it is not known
	problem func() string // why it was not started, once it has ended
	done    func()
	launch  *launch // if an engine starts it
	killed  bool
	output  sync.Mutex
}

// run runs the process until it ends. Processes that it started and that still have its output open do not keep it.
func (c *command) run(ctx context.Context, b *Box) error {
	var ends []*os.File // to close once the process has them
	var readers sync.WaitGroup
	var sources []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for stream, to := range []*io.Writer{&c.cmd.Stdout, &c.cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ends, sources...))
			return err
		}
		*to = w
		ends, sources = append(ends, w), append(sources, r)
		readers.Go(func() { c.read(r, Stream(stream)) })
	}
	var stdin *os.File
	if c.process.Stdin != nil || c.launch != nil {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ends, sources...))
			return err
		}
		c.cmd.Stdin, stdin = r, w
		ends = append(ends, r)
	}
	started := func() {}
	if c.launch != nil {
		b.starting.RLock()
		started = sync.OnceFunc(b.starting.RUnlock)
	}
	err := b.runtime.begin(b, c.cmd)
	closeAll(ends)
	if err != nil {
		started()
		closeAll(sources)
		readers.Wait()
		if stdin != nil {
			stdin.Close()
		}
		return err
	}
	ended := make(chan error, 1)
	waited := make(chan struct{})
	var writer sync.WaitGroup
	var placed error
	if stdin != nil {
		writer.Go(func() {
			defer stdin.Close()
			if c.launch != nil {
				if placed = c.launch.tell(stdin, waited); placed != nil {
					return
				}
				started()
			}
			if c.process.Stdin != nil {
				_, _ = io.Copy(stdin, c.process.Stdin) // a process need not read its input
			}
		})
	}
	go func() {
		err := c.cmd.Wait()
		close(waited)
		ended <- err
	}()
	go c.watch(waited)
	select {
	case err = <-ended:
	case <-ctx.Done():
		c.killed = true
		err = c.stop(ended)
	}
	if stdin != nil {
		_ = stdin.SetDeadline(time.Unix(1, 0)) // nobody reads the rest
	}
	writer.Wait()
	started()
	for _, r := range sources { // what has arrived is still read, without waiting for more
		_ = r.SetReadDeadline(time.Unix(1, 0))
	}
	readers.Wait()
	closeAll(sources)
	if c.launch != nil {
		c.give(Stdout, nil, true)
		if !c.killed {
			err = errors.Join(ignoreKilled(err), placed, c.launch.said())
		}
	}
	return ignoreKilled(err)
}

// give passes on output.
func (c *command) give(stream Stream, part []byte, end bool) {
	if c.launch != nil {
		part = c.launch.filter(stream, part, end)
	}
	if len(part) == 0 {
		return
	}
	c.output.Lock()
	defer c.output.Unlock()
	c.process.Output(stream, part)
}

// watch ends what the process left behind once it has ended, because runc waits until all of it has closed the output.
func (c *command) watch(waited <-chan struct{}) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	pid := 0
	for pid == 0 {
		select {
		case <-waited:
			return
		case <-tick.C:
			pid = c.pid()
		}
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err == nil {
		process := os.NewFile(uintptr(fd), "process")
		defer process.Close()
		go func() { <-waited; _ = process.SetReadDeadline(time.Unix(1, 0)) }()
		if raw, err := process.SyscallConn(); err == nil {
			first := true
			_ = raw.Read(func(uintptr) bool { // until it is readable, which means that the process has ended
				over := !first
				first = false
				return over
			})
		}
	}
	timer := time.NewTimer(20 * time.Millisecond) // in which the runtime usually ends by itself
	defer timer.Stop()
	select {
	case <-waited:
	case <-timer.C:
		_ = c.kill()
	}
}

// stop kills until the process has ended. It may not be in its cgroup yet when it is killed for the first time.
func (c *command) stop(ended chan error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		killErr := c.kill()
		if wait > 100*time.Millisecond {
			_ = c.cmd.Process.Kill() // the runtime itself hangs
		}
		timer := time.NewTimer(wait)
		select {
		case err := <-ended:
			timer.Stop()
			return errors.Join(ignoreKilled(err), c.kill(), killErr)
		case <-timer.C:
		}
	}
}

// read passes on output until the pipe ends or is interrupted, and then what it still holds.
func (c *command) read(r *os.File, stream Stream) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		c.give(stream, buffer[:max(n, 0)], false)
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		break
	}
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	_ = r.SetReadDeadline(time.Time{})
	for left := 1 << 20; left > 0; { // a pipe holds less, but others may still write
		n := 0
		if err := raw.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buffer)
			return true
		}); err != nil || n <= 0 {
			return
		}
		c.give(stream, buffer[:max(n, 0)], false)
		left -= n
	}
}

// exit is how the process ended.
func (c *command) exit() Exit {
	e := Exit{Code: c.cmd.ProcessState.ExitCode(), Killed: c.killed}
	if s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		e.Code = 128 + int(s.Signal())
	}
	return e
}
