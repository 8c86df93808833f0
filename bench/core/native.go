package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

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

// round runs trials, each with two durations in microseconds.
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

// close ends the program by closing its input.
func (n *native) close() error {
	return errors.Join(n.in.Close(), n.cmd.Wait())
}
