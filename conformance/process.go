package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/conformance/protocol"
)

const (
	helloTime = time.Minute      // until a host says what it is
	endTime   = 10 * time.Second // until a host ends after its input does
	tailBytes = 4 << 10          // of a host's stderr that errors show
)

// HostError reports a host program that cannot be tested any further: it does not start, ended, or broke the protocol.
type HostError struct {
	Reason string
	// Stderr is the end of what it wrote there.
	Stderr string
}

// Error implements error.
func (e *HostError) Error() string {
	if e.Stderr == "" {
		return "the host program " + e.Reason
	}
	return "the host program " + e.Reason + "; its last words were:\n" + e.Stderr
}

// process is a host program under way.
type process struct {
	hello protocol.Hello

	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *tail
	done   chan struct{} // closed when nothing more is read

	writing sync.Mutex

	mu      sync.Mutex
	next    int
	waiting map[int]chan protocol.Response
	failed  string // why nothing more is read, once that is so
}

// startHost starts a host and asks what it is.
func startHost(ctx context.Context, command []string, patience time.Duration) (*process, error) {
	p := &process{stderr: &tail{}, done: make(chan struct{}), waiting: map[int]chan protocol.Response{}}
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // close ends it, politely first
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.cmd.Stderr, p.cmd.WaitDelay = in, p.stderr, time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, &HostError{Reason: "does not start: " + err.Error()}
	}
	go p.read(out)
	r, err := p.ask(ctx, protocol.Request{Op: "hello", Protocol: protocol.Version}, patience)
	switch {
	case err != nil:
	case r.Error != "":
		err = &HostError{Reason: "refuses the protocol: " + r.Error}
	case r.Hello == nil || r.Hello.Name == "":
		err = &HostError{Reason: "does not say its name"}
	case r.Hello.Protocol != protocol.Version:
		err = &HostError{Reason: fmt.Sprintf("speaks version %d of the protocol, and this runner version %d", r.Hello.Protocol, protocol.Version)}
	default:
		p.hello = *r.Hello
		return p, nil
	}
	p.close()
	if broken, ok := errors.AsType[*HostError](err); ok {
		broken.Stderr = p.stderr.String() // all of it, now that the process has ended
	}
	return nil, err
}

// read hands answers to those who wait for them.
func (p *process) read(out io.Reader) {
	defer close(p.done)
	answers := protocol.NewReader(out)
	var err error
	for {
		var r protocol.Response
		if err = answers.Read(&r); err != nil {
			break
		}
		p.mu.Lock()
		waiting := p.waiting[r.ID]
		delete(p.waiting, r.ID)
		p.mu.Unlock()
		if waiting == nil {
			err = fmt.Errorf("it answers request %d, which is not open", r.ID)
			break
		}
		waiting <- r
	}
	reason := "broke the protocol: " + err.Error()
	if errors.Is(err, io.EOF) {
		reason = "ended"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = reason
	for id, waiting := range p.waiting {
		delete(p.waiting, id)
		close(waiting)
	}
}

// send sends a request and returns where its answer will come; a channel that is closed means that none will.
func (p *process) send(r protocol.Request) (int, <-chan protocol.Response, error) {
	answer := make(chan protocol.Response, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != "" {
		return 0, nil, &HostError{Reason: p.failed}
	}
	p.next++
	r.ID = p.next
	p.waiting[r.ID] = answer
	// A host that does not read must not hold up the runner. What the suite's cases ask for is far smaller than a line may be, so if the
	// write fails, the host is gone, which read finds out.
	go func() {
		p.writing.Lock()
		defer p.writing.Unlock()
		_ = protocol.Write(p.in, r)
	}()
	return r.ID, answer, nil
}

// await waits for an answer.
func (p *process) await(ctx context.Context, answer <-chan protocol.Response, patience time.Duration) (protocol.Response, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r, ok := <-answer:
		if !ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			return r, &HostError{Reason: p.failed}
		}
		return r, nil
	case <-late.C:
		return protocol.Response{}, &HostError{Reason: fmt.Sprintf("did not answer within %v", patience)}
	case <-ctx.Done():
		return protocol.Response{}, ctx.Err()
	}
}

func (p *process) ask(ctx context.Context, r protocol.Request, patience time.Duration) (protocol.Response, error) {
	_, answer, err := p.send(r)
	if err != nil {
		return protocol.Response{}, err
	}
	return p.await(ctx, answer, patience)
}

// close ends the host: its input first, and then the process.
func (p *process) close() {
	_ = p.in.Close()                                                     // it may be gone
	late := time.AfterFunc(endTime, func() { _ = p.cmd.Process.Kill() }) // it may have ended
	defer late.Stop()
	<-p.done
	_ = p.cmd.Wait() // its exit code says nothing about its answers
}

// kill ends the host at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	p.close()
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
