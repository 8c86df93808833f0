package box

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// launch is how an engine starts a process of a box: init/init.c says what happens inside.
type launch struct {
	token string
	text  []byte // what to run
	// place puts the process into its cgroup, and returns its number.
	place func() (int, error)
	ready chan struct{} // closed when the process waits to be put there
	pid   atomic.Int64

	mu     sync.Mutex
	begun  bool
	failed bool   // the program was not started
	held   []byte // output that could be the message of a failure
	engine []byte // what the engine says before the process waits
	errno  byte
}

// maxEngine bounds what is kept of an engine's own messages.
const maxEngine = 4 << 10

// filter returns what of the output is the program's. end says that there is no more.
func (l *launch) filter(stream Stream, part []byte, end bool) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		if stream == Stderr || len(part) == 0 {
			l.engine = append(l.engine, part[:min(len(part), maxEngine-len(l.engine))]...)
			return nil
		}
		l.begun = true
		close(l.ready)
		part = part[1:]
	}
	if stream == Stderr || l.held == nil && l.errno == passed {
		return part
	}
	l.held = append(l.held, part...)
	message := []byte(l.token)
	switch {
	case len(l.held) <= len(message) && bytes.HasPrefix(message, l.held) && !end:
		return nil // as long as it could be one
	case len(l.held) == len(message)+1 && bytes.HasPrefix(l.held, message):
		if !end {
			return nil
		}
		l.failed, l.errno = true, l.held[len(message)]
		return nil
	}
	part = l.held
	l.held, l.errno = nil, passed
	return part
}

// passed is no number of an error: output is the program's from now on.
const passed = 0xff

// problem says why the program was not started. "" means that it was.
func (l *launch) problem() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return otherProblem
	}
	if !l.failed {
		return ""
	}
	switch unix.Errno(l.errno) {
	case 0:
		return noFolder
	case unix.ENOENT:
		return noProgram
	case unix.EACCES, unix.ENOEXEC, unix.EISDIR, unix.ENOTDIR, unix.EPERM, unix.ELOOP:
		return notExecutable
	case unix.E2BIG:
		return tooLong
	case unix.EAGAIN, unix.ENOMEM:
		return noRoom
	default:
		return otherProblem
	}
}

// tell puts the process into its cgroup, once it is there, and tells it what to run. It returns without an error if the process has ended.
func (l *launch) tell(to io.Writer, ended <-chan struct{}) error {
	select {
	case <-l.ready:
	case <-ended:
		return nil
	}
	pid, err := l.place()
	if err != nil {
		return err
	}
	l.pid.Store(int64(pid))
	_, _ = to.Write(l.text) // unless it was killed
	return nil
}

// said is what the engine said, if the process never began.
func (l *launch) said() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun {
		return nil
	}
	return errors.New("the engine starts no process: " + string(bytes.TrimSpace(l.engine)))
}
