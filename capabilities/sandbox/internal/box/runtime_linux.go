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
	"strconv"
	"strings"
	"time"
)

// ociRuntime is the program that makes containers: all that a box asks of it.
type ociRuntime interface {
	// name says what it is.
	name() string
	// prepare gets ready what run needs, once the file systems are there. programs are folders of this machine that belong in the root, and
	// files are others.
	prepare(ctx context.Context, b *Box, o Options, l Limits, programs []string, files []mount) error
	// run is the command that makes the container and stays until its first process ends. It then removes the container.
	run(b *Box, l Limits) *exec.Cmd
	// begin starts a command of the runtime, where it finds what it needs.
	begin(b *Box, cmd *exec.Cmd) error
	// started returns the number of the first process, once commands can be started beside it. It is 0 before.
	started(ctx context.Context, b *Box) (int, error)
	// furnish completes a container whose first process has started, and sees to it that nothing is in it that does not belong there.
	furnish(b *Box) error
	// exec is a process in the container. It is in a cgroup of its own, of which below is the last name.
	exec(b *Box, below string, p Process) (*command, error)
	// grace is how long run takes to end after the container.
	grace() time.Duration
	// remove deletes what is left of the container if run was killed.
	remove(b *Box) error
}

// findRuntime returns the runtime of a name, or the first that is installed. crun starts processes in a quarter of runc's time, and engines
// take longer.
func findRuntime(name string) (ociRuntime, error) {
	names := Runtimes
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		switch base := filepath.Base(path); {
		case strings.HasPrefix(base, "podman"):
			return newPodman(path)
		case strings.HasPrefix(base, "docker"):
			return newDocker(path)
		default:
			return program{path, strings.HasPrefix(base, "crun")}, nil
		}
	}
	return nil, fmt.Errorf("%w: none of %s is installed", ErrUnavailable, strings.Join(names, ", "))
}

// program is a runtime with the common command line: crun or runc.
type program struct {
	path string
	crun bool
}

const stateDir = runDir + "/state"

func (p program) name() string { return p.path }

func (p program) prepare(_ context.Context, b *Box, _ Options, l Limits, programs []string, files []mount) error {
	s := newSpec(b.root, rootDir, filesDir, initFile, b.cgroup, b.first, l, programs)
	s.Mounts = append(s.Mounts, files...)
	config, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return errors.Join(b.thread.run(b.own), b.run.Mkdir("state", 0o711), b.run.WriteFile("config.json", config, 0o600))
}

func (p program) begin(b *Box, cmd *exec.Cmd) error { return b.thread.run(cmd.Start) }
func (program) furnish(*Box) error                  { return nil }
func (program) remove(*Box) error                   { return nil } // its state is in the memory of the thread, and clean removes the cgroups
func (program) grace() time.Duration                { return 20 * time.Millisecond }

func (p program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append([]string{"--root", stateDir}, args...)...) //nolint:noctx // a box ends its programs itself, in the right order
	cmd.Env = []string{searchPath, "XDG_RUNTIME_DIR=" + stateDir}
	cmd.Dir = "/"
	return cmd
}

func (p program) run(b *Box, _ Limits) *exec.Cmd {
	return p.command("--log", runDir+"/log", "--log-format", "json", "run", "--pid-file", runDir+"/pid", "--bundle", runDir, b.id)
}

// started reads what the runtime writes down. The first process runs before it has.
func (p program) started(_ context.Context, b *Box) (int, error) {
	text, err := b.run.ReadFile("pid")
	if err != nil || len(text) == 0 {
		return 0, ignoreMissing(err)
	}
	for _, file := range []string{"status", "state.json"} { // crun's and runc's
		if text, err := b.run.ReadFile("state/" + b.id + "/" + file); err == nil && json.Valid(text) {
			pid, err := b.run.ReadFile("pid")
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(strings.TrimSpace(string(pid)))
		}
	}
	return 0, nil
}

func (p program) exec(b *Box, below string, process Process) (*command, error) {
	config, err := json.Marshal(b.root.newProcess(process.Args, process.Env, process.Dir))
	if err != nil {
		return nil, err
	}
	file, log, pid := below+".json", below+".log", below+".pid"
	if err := b.run.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	args := []string{"--log", runDir + "/" + log, "--log-format", "json", "exec", "--pid-file", runDir + "/" + pid, "--process", runDir + "/" + file, "--cgroup"}
	switch {
	case p.crun:
		args = append(args, below, b.id)
	case b.cgroups.unified:
		args = append(args, below, "--ignore-paused", b.id) // a process that is started while the others stand still begins when they continue
	default:
		args = append(args, "freezer:"+below, "--ignore-paused", b.id)
	}
	return &command{
		cmd: p.command(args...), process: process,
		pid: func() int {
			text, _ := b.run.ReadFile(pid)
			n, _ := strconv.Atoi(string(text))
			return n
		},
		problem: func() string { return startProblem(said(b.run, log)) },
		done:    func() { _, _, _ = b.run.Remove(file), b.run.Remove(log), b.run.Remove(pid) },
	}, nil
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

// Why a program could not be started.
const (
	noFolder      = "there is no such folder to run it in"
	noProgram     = "there is no such program"
	notExecutable = "it cannot be executed"
	tooLong       = "its arguments are too long"
	noRoom        = "the sandbox has no room for another process"
	otherProblem  = "the runtime failed"
)

// startProblem tells a guest why a program could not be started, without names of this machine.
func startProblem(message string) string {
	lower := strings.ToLower(message)
	switch {
	case message == "":
		return ""
	case strings.Contains(lower, "chdir") || strings.Contains(lower, "cwd"):
		return noFolder
	case strings.Contains(lower, "not found") || strings.Contains(lower, "no such file"):
		return noProgram
	case strings.Contains(lower, "permission denied"), strings.Contains(lower, "exec format"), strings.Contains(lower, "is a directory"):
		return notExecutable
	case strings.Contains(lower, "argument list too long"):
		return tooLong
	case strings.Contains(lower, "resource temporarily unavailable"), strings.Contains(lower, "cannot allocate memory"):
		return noRoom
	default:
		return otherProblem
	}
}

// ignoreKilled drops the error of a program that ended in any way.
func ignoreKilled(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}
