// Package bench puts ways to run code that nobody has reviewed on the same work in the same run: this host, processes,
// containers and other isolates. README.md in its folder has the method.
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

// Level is how much was done before a trial begins. Figures of two levels are never in one column.
type Level string

// The levels.
const (
	NewCode    Level = "L0" // code that was never seen, in a new isolate
	NewIsolate Level = "L1" // stored code, in a new isolate
	Live       Level = "L2" // an isolate that has answered before
	NewHost    Level = "L3" // stored code, and the program that hosts isolates starts as well
)

// Contender is one way to run a tool.
type Contender struct {
	// Name is what --with and --require call it: lower case, unique. Title is for tables and plots.
	Name, Title string
	// Boundary is what stands between the tool and the machine, Limits what is bounded as it runs here. Short.
	Boundary, Limits string
	Level            Level
	Tasks            []Task
	// Own is set for this host, of which more isolates are kept.
	Own bool
	// Prepare makes ready what its users have ready before the first call: an image, a cache, a server. It returns an
	// *UnavailableError where something lacks. ctx ends with the preparing.
	Prepare func(ctx context.Context, w *Workbench, task Task) (Runner, error)
}

func (c *Contender) does(t Task) bool { return slices.Contains(c.Tasks, t) }

// Runner is a contender that is ready. Run may be called from many goroutines at once, Close once, when none goes on; it leaves
// no process, container or file.
type Runner interface {
	Run(ctx context.Context, t Trial) (Answer, error)
	Close() error
}

// Trial is one start of an isolate.
type Trial struct {
	// Source is the tool in JavaScript: other code in each trial at [NewCode], and that of [Workbench.Source] with [StoredID]
	// elsewhere.
	Source string
	Input  []byte // JSON
}

// Answer is what a trial gave.
type Answer struct {
	Output []byte // JSON
	// At is when the caller had all of it. Zero says when Run returned, with the isolate gone.
	At time.Time
}

// Holder is a Runner that can keep isolates.
type Holder interface {
	Runner
	// Hold starts n isolates, each of which answers a call and then idles. ctx ends with the starting.
	Hold(ctx context.Context, n int) (Held, error)
}

// Held is isolates that idle.
type Held struct {
	// Processes are all that run for these isolates, helpers included, but not daemons that are there for any number of them.
	Processes []int
	// Daemons are those.
	Daemons []int
	Release func() error
}

// UnavailableError says why a contender cannot take part, and what would help.
type UnavailableError struct {
	Reason  string
	Install string // a command; empty when none would help
}

func (e *UnavailableError) Error() string {
	if e.Install == "" {
		return e.Reason
	}
	return e.Reason + "; install it with: " + e.Install
}

// Unavailable is an UnavailableError without a remedy.
func Unavailable(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...)}
}

// Workbench is where contenders work.
type Workbench struct {
	// Dir is theirs alone, and removed at the end of the run. Cache is kept for later runs: packages, root file systems.
	Dir, Cache string
	// Self is the program `stile-bench`, for what has to be measured in a process of its own, and Stile the program `stile`.
	Self, Stile string
	// Engine is where the toolchain takes the JavaScript engine from; see toolchain.Options.
	Engine string
	// Log receives what the programs say that contenders are made of.
	Log io.Writer
}

// Folder makes a new folder in w.Dir.
func (w *Workbench) Folder(name string) (string, error) { return makeFolder(w.Dir, name) }

// Kept returns a path in w.Cache, for what fill puts there if it is not there yet. What is half made is never seen.
func (w *Workbench) Kept(name string, fill func(dir string) error) (string, error) {
	return keep(filepath.Join(w.Cache, name), fill)
}

// Find returns the path of a command, or an *UnavailableError that names the package which has it.
func Find(command, install string) (string, error) {
	path, err := exec.LookPath(command)
	if err != nil {
		return "", &UnavailableError{Reason: command + " is not installed", Install: install}
	}
	return path, nil
}

// Command is a command that runs in dir, without what the environment says to runtimes, and ends with ctx. Its errors show what
// it wrote to stderr.
func (w *Workbench) Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, environment()
	return cmd
}
