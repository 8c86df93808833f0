package contenders

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/stilehost/stile/bench"
)

// holdProcess starts a program that keeps isolates. The program writes a line when they idle, and ends when its input does.
func holdProcess(cmd *exec.Cmd) (bench.Held, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return bench.Held{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return bench.Held{}, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return bench.Held{}, err
	}
	release := func() error {
		err := in.Close()
		_, _ = io.Copy(io.Discard, out)
		return errors.Join(err, cmd.Wait())
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		err = errors.Join(err, release())
		return bench.Held{}, fmt.Errorf("the isolates are not ready: %w: %s%.2000s", err, line, stderr.String())
	}
	return bench.Held{Processes: []int{cmd.Process.Pid}, Release: release}, nil
}
