package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ociRuntime is the program that makes containers: all that a box asks of it.
type ociRuntime interface {
	// run is the command that makes a container and stays until its first process ends. It then removes the container.
	run(bundle, id string) *exec.Cmd
	// exec is the command that starts a process in a container and ends with it. below names a cgroup below the container's. The file
	// pid gets the number of the process.
	exec(id, process, below, log, pid string) *exec.Cmd
	// remove deletes what is left of a container whose processes have ended.
	remove(ctx context.Context, id string) error
}

// program is a runtime with the common command line.
type program struct {
	path, state string
	crun        bool
	unified     bool
}

// findRuntime returns the runtime of a name, or the first that is installed. crun starts processes in a quarter of runc's time.
func findRuntime(name, state string, unified bool) (ociRuntime, string, error) {
	names := []string{"crun", "runc"}
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return program{path, state, strings.HasPrefix(filepath.Base(path), "crun"), unified}, path, nil
		}
	}
	return nil, "", fmt.Errorf("%w: neither crun nor runc is installed (tried %s)", ErrUnavailable, strings.Join(names, ", "))
}

func (p program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append([]string{"--root", p.state}, args...)...) //nolint:noctx // a box ends its programs itself, in the right order
	cmd.Env = []string{searchPath, "XDG_RUNTIME_DIR=" + p.state}
	cmd.Dir = "/"
	return cmd
}

func (p program) run(bundle, id string) *exec.Cmd {
	return p.command("--log", filepath.Join(bundle, "log"), "--log-format", "json", "run", "--pid-file", filepath.Join(bundle, "pid"), "--bundle", bundle, id)
}

func (p program) exec(id, process, below, log, pid string) *exec.Cmd {
	if p.crun {
		return p.command("--log", log, "--log-format", "json", "exec", "--pid-file", pid, "--cgroup", below, "--process", process, id)
	}
	if !p.unified {
		below = "freezer:" + below
	}
	// A process that is started while the others stand still begins when they continue.
	return p.command("--log", log, "--log-format", "json", "exec", "--ignore-paused", "--pid-file", pid, "--cgroup", below, "--process", process, id)
}

func (p program) remove(ctx context.Context, id string) error {
	cmd := p.command("delete", "--force", id)
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("not exist")) {
		return nil
	}
	return err
}

// said is what a runtime wrote to its log: the last message.
func said(in *os.Root, log string) string {
	text, err := in.ReadFile(log)
	if err != nil {
		return ""
	}
	last := ""
	for line := range bytes.Lines(text) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && (entry.Level == "error" || entry.Level == "fatal") {
			last = entry.Msg
		}
	}
	return last
}

// startProblem tells a guest why a program could not be started, without names of this machine.
func startProblem(message string) string {
	lower := strings.ToLower(message)
	switch {
	case message == "":
		return ""
	case strings.Contains(lower, "chdir") || strings.Contains(lower, "cwd"):
		return "there is no such folder to run it in"
	case strings.Contains(lower, "not found") || strings.Contains(lower, "no such file"):
		return "there is no such program"
	case strings.Contains(lower, "permission denied"), strings.Contains(lower, "exec format"), strings.Contains(lower, "is a directory"):
		return "it cannot be executed"
	case strings.Contains(lower, "argument list too long"):
		return "its arguments are too long"
	case strings.Contains(lower, "resource temporarily unavailable"), strings.Contains(lower, "cannot allocate memory"):
		return "the sandbox has no room for another process"
	default:
		return "the runtime failed"
	}
}

// ignoreKilled drops the error of a program that ended in any way.
func ignoreKilled(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}
