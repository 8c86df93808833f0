// Package child runs a program for work that cannot be stopped within this process. The operating system limits the program's
// processor time and memory. The program ends with its context and, on Linux, with this process, however that ends.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// MaxWords is how many bytes of a program's messages are kept.
const MaxWords = 4 << 10

// Limits bound a process.
type Limits struct {
	// Time is processor time from then on, when Confine is called. The process compares every 10 ms and ends itself; the system ends it
	// one to three seconds later.
	Time time.Duration
	// Memory is what the process may reserve for stacks and heaps, used or not.
	Memory int64
	// Resident is memory in use besides what is in use then, compared every 10 ms, on Linux only. 0 means no limit besides Memory.
	Resident int64
}

// Confine sets the limits of this process permanently. From then on, it cannot open or write any file.
func Confine(to Limits) error {
	resident, err := residentMemory()
	if err != nil {
		return err
	}
	used, before := processorTime(), resident()
	// The first timer makes Go open what timers need.
	watch := time.NewTicker(watched)
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{syscall.RLIMIT_CORE, 0},
		{syscall.RLIMIT_FSIZE, 0},
		{syscall.RLIMIT_NOFILE, 0},
		{syscall.RLIMIT_CPU, uint64((used+to.Time)/time.Second) + 2},
		{syscall.RLIMIT_DATA, uint64(to.Memory)},
	} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return err
		}
	}
	go func() {
		for range watch.C {
			switch {
			case processorTime()-used > to.Time:
				end(LimitTime)
			case to.Resident > 0 && resident()-before > to.Resident:
				end(LimitMemory)
			}
		}
	}()
	return nil
}

// watched is how often a process compares itself with its limits.
const watched = 10 * time.Millisecond

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // the system's own limit remains
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ended is what a process says before it ends itself.
const ended = "this process has reached its limit of "

func end(limit string) {
	_, _ = os.Stderr.WriteString(ended + limit)
	os.Exit(1)
}

// The limits that can end a process.
const (
	LimitTime   = "processor time"
	LimitMemory = "memory"
)

// Error reports a program that failed.
type Error struct {
	// Limit is the limit that the process reached, LimitTime or LimitMemory. It is empty if it failed for another reason.
	Limit string
	// Reason is the text of the system and the program, at most a little more than MaxWords. It may contain any characters.
	Reason string
}

func (e *Error) Error() string {
	if e.Limit != "" {
		return "it was ended by its limit of " + e.Limit
	}
	return e.Reason
}

// Run starts the program of a command line with env as its whole environment. talk writes to its standard input and reads from its
// standard output. Run returns when the process has ended, and kills it when ctx ends or talk fails. Errors are that of ctx or a
// *Error.
func Run(ctx context.Context, commandLine, env []string, most Limits, talk func(to io.WriteCloser, from io.Reader) error) error {
	process, kill := context.WithCancel(ctx)
	defer kill()
	words := &beginning{}
	cmd := exec.CommandContext(process, commandLine[0], commandLine[1:]...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, words, time.Second
	endWithParent(cmd)
	to, err := cmd.StdinPipe()
	if err != nil {
		return &Error{Reason: err.Error()}
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return &Error{Reason: err.Error()}
	}
	runtime.LockOSThread() // the system ends the process together with the thread that started it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &Error{Reason: err.Error()}
	}
	talked := make(chan error, 1)
	go func() {
		err := talk(to, from)
		if err != nil {
			kill()
		}
		_, _ = to.Close(), from.Close() // the process may be gone
		talked <- err
	}()
	said := <-talked
	err = cmd.Wait()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.HasSuffix(words.String(), ended+LimitTime), failed && exit.UserTime()+exit.SystemTime() > most.Time+time.Second:
		return &Error{Limit: LimitTime}
	case strings.HasSuffix(words.String(), ended+LimitMemory), OutOfMemory(words.String()):
		return &Error{Limit: LimitMemory}
	case err != nil || said != nil:
		return &Error{Reason: strings.TrimSpace(fmt.Sprintf("%v: %s", errors.Join(said, err), words))}
	}
	return nil
}

// WithMemory returns the command line of a program that does not limit itself. The operating system limits the memory that the program and
// all that it starts may each allocate, in bytes. macOS does not enforce this limit.
func WithMemory(most int64, commandLine ...string) []string {
	// A lower limit of this process stays.
	return append([]string{"/bin/sh", "-c", `ulimit -d "$0" 2>/dev/null; exec "$@"`, strconv.FormatInt(most>>10, 10)}, commandLine...)
}

var outOfMemory = lazyregexp.New(`memory allocation of \d+ bytes failed|[Cc]annot allocate memory|out of memory|Array buffer allocation failed|bad_alloc|[Rr]esource temporarily unavailable|errno=11\b`)

// OutOfMemory matches the messages of Go, Rust, C++, Node.js and the system when memory runs out, or does not suffice for a thread's stack.
func OutOfMemory(words string) bool { return outOfMemory.MatchString(words) }

// beginning keeps the first MaxWords bytes that are written to it.
type beginning struct{ bytes.Buffer }

func (b *beginning) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), MaxWords-b.Len())])
	return len(p), nil
}
