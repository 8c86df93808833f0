// Package bench gives the same work, in the same run, to several ways of running unreviewed code: this host, processes, containers
// and other isolates. README.md in its folder has the method.
package bench

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Level is how much was done before a trial begins. Figures of different levels never share a column.
type Level string

// The levels.
const (
	NewCode    Level = "L0" // new code, in a new isolate
	NewIsolate Level = "L1" // stored code, in a new isolate
	Live       Level = "L2" // an isolate that has answered before
	NewHost    Level = "L3" // stored code, and the program that hosts isolates starts too
)

// Contender is one way to run a tool.
type Contender struct {
	// Name is its name for --with and --require: lower case, unique. Title is for tables and plots.
	Name, Title string
	// Boundary is what separates the tool from the machine. Limits is what is bounded as it runs here. Both are short.
	Boundary, Limits string
	Level            Level
	Tasks            []Task
	// Own is set for this host, of which more isolates are kept.
	Own bool
	// Prepare prepares what users have ready before the first call: an image, a cache, a server. It returns an *UnavailableError if
	// something is missing. ctx ends after the preparation.
	Prepare func(ctx context.Context, w *Workbench, task Task) (Runner, error)
}

func (c *Contender) does(t Task) bool { return slices.Contains(c.Tasks, t) }

// Runner is a prepared contender. Run may be called from many goroutines at once. Close is called once, when no Run is active. It
// leaves no process, container or file.
type Runner interface {
	Run(ctx context.Context, t Trial) (Answer, error)
	Close() error
}

// Trial is one start of an isolate.
type Trial struct {
	// Source is the tool in JavaScript: different code for each trial at [NewCode], and otherwise that of [Workbench.Source] with
	// [StoredID].
	Source string
	Input  []byte // JSON
}

// Answer is the result of a trial.
type Answer struct {
	Output []byte // JSON
	// At is when the caller had all of it. Zero means when Run returned, with the isolate gone.
	At time.Time
}

// Holder is a Runner that can keep isolates.
type Holder interface {
	Runner
	// Hold starts n isolates. Each answers a call and then idles. ctx ends after the start.
	Hold(ctx context.Context, n int) (Held, error)
}

// Held is a set of idle isolates.
type Held struct {
	// Processes are all that run for these isolates, including helpers, but not daemons that serve any number of them.
	Processes []int
	// Daemons are those daemons.
	Daemons []int
	Release func() error
}

// UnavailableError says why a contender cannot take part, and what would help.
type UnavailableError struct {
	Reason  string
	Install string // a command; empty if none would help
}

func (e *UnavailableError) Error() string {
	if e.Install == "" {
		return e.Reason
	}
	return e.Reason + "; install it with: " + e.Install
}

// Unavailable returns an UnavailableError without a remedy.
func Unavailable(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...)}
}

// Workbench is where contenders work.
type Workbench struct {
	// Dir belongs to the contenders, and is removed at the end of the run. Cache is kept for later runs: packages, root file
	// systems.
	Dir, Cache string
	// Self is the program `stile-bench`, for measurements that need a separate process. Stile is the program `stile`.
	Self, Stile string
	// Engine is where the toolchain takes the JavaScript engine from. See toolchain.Options.
	Engine string
	// Log receives the output of the contenders' programs.
	Log io.Writer
}

// Folder makes a new folder in w.Dir.
func (w *Workbench) Folder(name string) (string, error) { return makeFolder(w.Dir, name) }

// Kept returns a path in w.Cache. If it is missing, fill makes it. An incomplete result is never seen.
func (w *Workbench) Kept(name string, fill func(dir string) error) (string, error) {
	return keep(filepath.Join(w.Cache, name), fill)
}

// Find returns the path of a command, or an *UnavailableError that names the package that has it.
func Find(command, install string) (string, error) {
	path, err := exec.LookPath(command)
	if err != nil {
		return "", &UnavailableError{Reason: command + " is not installed", Install: install}
	}
	return path, nil
}

// Command returns a command that runs in dir and ends with ctx. It leaves out environment variables that steer runtimes. Its errors
// show what it wrote to stderr.
func (w *Workbench) Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, Environment()
	return cmd
}
