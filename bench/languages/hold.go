package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/stilehost/stile/bench/internal/measure"
)

// held is the private memory, in KiB, of a process in which n calls of a component have worked and wait.
func (l *lab) held(ctx context.Context, s *subject, n int) (kib float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-hold", strconv.Itoa(n), "-component", s.file, "-folder", filepath.Dir(s.file))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil && line != "ready\n" {
		err = fmt.Errorf("the process with the calls says %q", line)
	}
	if err == nil {
		var m measure.MemoryOf
		m, err = measure.Memory(cmd.Process.Pid)
		kib = m.Private
	}
	return kib, errors.Join(err, in.Close(), cmd.Wait())
}

// holdCalls keeps n calls waiting, says so in a line on out, and ends them when in ends.
func holdCalls(ctx context.Context, n int, file, folder string, in io.Reader, out io.Writer) (err error) {
	h, tools, err := openHost(ctx, filepath.Join(folder, "cache"), n+10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close(), h.Close()) }()
	wasm, err := os.ReadFile(file) //nolint:gosec // the parent names it
	if err != nil {
		return err
	}
	c, err := h.Load(ctx, wasm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	waiting, ended := make(chan struct{}, n), make(chan error, n)
	p, err := openPlaces(ctx, folder, waiting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	calls, end := context.WithCancel(ctx)
	defer end()
	for range n {
		go func() {
			_, err := c.Call(calls, "search_notes", []byte(searchInput), p.env())
			ended <- err
		}()
		select { // one after the other
		case <-waiting:
		case err := <-ended:
			return fmt.Errorf("a call did not wait: %w", err)
		}
	}
	debug.FreeOSMemory()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	_, _ = bufio.NewReader(in).ReadString('\n') // until it ends
	end()
	for range n {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("a call ended by itself: %w", err)
		}
	}
	return nil
}
