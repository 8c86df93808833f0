package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/internal/printable"
)

const (
	endTime   = 10 * time.Second // until a host ends after its input does
	tailBytes = 4 << 10          // of a host's stderr that errors show
	maxName   = 200              // bytes of a host's name and version
)

// HostError reports a host program that cannot be tested any further: it does not start, ended, or broke the protocol.
type HostError struct {
	Reason string
	// Stderr is the end of what it wrote there.
	Stderr string
}

// Error implements error. It is printable, though the host wrote part of it.
func (e *HostError) Error() string {
	text := "the host program " + e.Reason
	if e.Stderr != "" {
		text += "; its last words were:\n" + e.Stderr
	}
	return printable.Text(text)
}

// Host is a host program under way. Several goroutines may use it. Whoever starts it calls Close or Kill, once.
type Host struct {
	hello Hello

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Closer
	stderr *tail
	done   chan struct{} // closed when nothing more is read

	writing sync.Mutex

	mu      sync.Mutex
	next    int
	waiting map[int]chan Response
	failed  string // why nothing more is read, once that is so
}

// Start starts a host program and asks what it is. env is its environment, that of this process if it is nil. patience is how long it
// may take to answer. The program runs until Close or Kill, also after ctx has ended. An error is a *HostError for the host's fault.
func Start(ctx context.Context, command, env []string, patience time.Duration) (*Host, error) {
	h := &Host{stderr: &tail{}, done: make(chan struct{}), waiting: map[int]chan Response{}}
	h.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // Close ends it, politely first
	h.cmd.Env = env
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.in, h.out, h.cmd.Stderr, h.cmd.WaitDelay = in, out, h.stderr, time.Second
	if err := h.cmd.Start(); err != nil {
		return nil, &HostError{Reason: "does not start: " + err.Error()}
	}
	go h.read(out)
	r, err := h.Ask(ctx, Request{Op: "hello", Protocol: Version}, patience)
	switch {
	case err != nil:
	case r.Error != "":
		err = &HostError{Reason: "refuses the protocol: " + r.Error}
	case r.Hello == nil || r.Hello.Name == "":
		err = &HostError{Reason: "does not say its name"}
	case r.Hello.Protocol != Version:
		err = &HostError{Reason: fmt.Sprintf("speaks version %d of the protocol, and this runner version %d", r.Hello.Protocol, Version)}
	default:
		h.hello = *r.Hello
		h.hello.Name, h.hello.Version = printable.OneLine(printable.Short(h.hello.Name, maxName)), printable.OneLine(printable.Short(h.hello.Version, maxName))
		return h, nil
	}
	h.Close()
	if broken, ok := errors.AsType[*HostError](err); ok {
		broken.Stderr = h.stderr.String() // all of it, now that the process has ended
	}
	return nil, err
}

// Hello is what the host said of itself. Its name and version are printable, and short.
func (h *Host) Hello() Hello { return h.hello }

// PID is the process that was started.
func (h *Host) PID() int { return h.cmd.Process.Pid }

// Stderr returns the end of what the host wrote there.
func (h *Host) Stderr() string { return h.stderr.String() }

// read hands answers to those who wait for them.
func (h *Host) read(out io.Reader) {
	defer close(h.done)
	answers := NewReader(out)
	var err error
	for {
		var r Response
		if err = answers.Read(&r); err != nil {
			break
		}
		h.mu.Lock()
		waiting := h.waiting[r.ID]
		delete(h.waiting, r.ID)
		h.mu.Unlock()
		if waiting == nil {
			err = fmt.Errorf("it answers request %d, which is not open", r.ID)
			break
		}
		waiting <- r
	}
	reason := "broke the protocol: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		reason = "ended"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = reason
	for id, waiting := range h.waiting {
		delete(h.waiting, id)
		close(waiting)
	}
}

// Send sends a request and returns where its answer will come; a channel that is closed means that none will.
func (h *Host) Send(r Request) (int, <-chan Response, error) {
	answer := make(chan Response, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != "" {
		return 0, nil, &HostError{Reason: h.failed}
	}
	h.next++
	r.ID = h.next
	h.waiting[r.ID] = answer
	// A host that does not read must not hold up the runner. What the suite's cases ask for is far smaller than a line may be, so if the
	// write fails, the host is gone, which read finds out.
	go func() {
		h.writing.Lock()
		defer h.writing.Unlock()
		_ = Write(h.in, r)
	}()
	return r.ID, answer, nil
}

// Await waits for an answer that Send promised. An error is a *HostError, or that of ctx.
func (h *Host) Await(ctx context.Context, answer <-chan Response, patience time.Duration) (Response, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r, ok := <-answer:
		if !ok {
			h.mu.Lock()
			defer h.mu.Unlock()
			return r, &HostError{Reason: h.failed}
		}
		return r, nil
	case <-late.C:
		return Response{}, &HostError{Reason: fmt.Sprintf("did not answer within %v", patience)}
	case <-ctx.Done():
		return Response{}, ctx.Err()
	}
}

// Ask sends a request and waits for its answer.
func (h *Host) Ask(ctx context.Context, r Request, patience time.Duration) (Response, error) {
	_, answer, err := h.Send(r)
	if err != nil {
		return Response{}, err
	}
	return h.Await(ctx, answer, patience)
}

// Close ends the host: its input first, and then the process.
func (h *Host) Close() {
	_ = h.in.Close() // it may be gone
	late := time.AfterFunc(endTime, h.end)
	defer late.Stop()
	<-h.done
	_ = h.cmd.Wait() // its exit code says nothing about its answers
}

// Kill ends the host at once.
func (h *Host) Kill() {
	h.end()
	h.Close()
}

// end ends the process and stops reading, because what the process started may keep its output open.
func (h *Host) end() {
	_ = h.cmd.Process.Kill() // it may have ended
	_ = h.out.Close()        // it may be closed
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(data), nil
}

// String returns the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "\uFFFD")
}
