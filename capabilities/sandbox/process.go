package sandbox

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/lazyregexp"
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

func hasNUL(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// Ending is the enum `ending`.
type Ending uint8

// The cases of the enum `ending`.
const (
	Exited Ending = iota
	TimedOut
	OutOfMemory
	Stopped
)

// Exit is the record `exit`.
type Exit struct {
	Code    uint32
	Ending  Ending
	Dropped uint64
}

// Part is the record `part`.
type Part struct {
	Offset uint64
	Stream Stream
	Bytes  []byte
}

// StageCase is a case of [Stage].
type StageCase uint8

// The cases of the variant `stage`.
const (
	StageOutput StageCase = iota
	StageEnded
)

// Stage is the variant `stage`.
type Stage struct {
	Case   StageCase
	Output *uint64
}

// startTime is the processor time that a start is charged for the host's own work: the runtime's, and the files that it needs.
const startTime = 10 * time.Millisecond

// Start is the method `start`.
func (s *Sandbox) Start(ctx context.Context, c Command) (*Process, error) {
	err := c.check()
	folder := ""
	if err == nil {
		folder, err = inWork("start in", c.Folder)
	}
	if err == nil {
		err = abi.Work(ctx, startTime)
	}
	if err == nil {
		err = abi.Charge(ctx, c.size())
	}
	var stdin io.Reader
	if err == nil {
		stdin, err = c.Stdin.reader(ctx)
	}
	if err == nil {
		err = s.begin(1)
	}
	if err != nil {
		c.Stdin.close()
		return nil, err
	}
	p := &Process{output: output{quota: s.output}}
	p.ctx, p.cancel = context.WithCancel(s.ctx)
	p.meter = ctx
	config := box.Process{Args: c.Argv, Dir: path.Join(box.Work, folder), Stdin: stdin, Output: p.write}
	for _, v := range c.Env {
		config.Env = append(config.Env, v.Name+"="+v.Value)
	}
	limit := c.duration(s.grant.limits.Time)
	go func() { //nolint:contextcheck // the process ends with the sandbox, or when it is stopped
		defer s.end(1)
		defer c.Stdin.close()
		p.run(s, config, limit)
	}()
	return p, nil
}

func (i Input) reader(ctx context.Context) (io.Reader, error) {
	switch {
	case i.Text != nil:
		if len(*i.Text) > maxInput {
			return nil, &abi.Error{Code: abi.CodeTooLarge, Size: maxInput}
		}
		return strings.NewReader(*i.Text), abi.Charge(ctx, len(*i.Text))
	case i.Blob != nil:
		return i.Blob.Reader(), abi.Charge(ctx, int(i.Blob.Size(ctx)))
	default:
		return strings.NewReader(""), nil
	}
}

// inWork checks a folder of the working tree, and returns it without "." and "..".
func inWork(operation, folder string) (string, error) {
	if len(folder) > 4096 || hasNUL(folder) {
		return "", abi.Errorf(abi.CodeInvalid, "the folder has %d bytes or a zero byte", len(folder))
	}
	clean := path.Clean("/" + folder)
	if path.IsAbs(folder) {
		rest, ok := strings.CutPrefix(clean+"/", box.Work+"/")
		if !ok {
			return "", abi.Errorf(abi.CodeInvalid, "%s %.200q: a folder is below %s", operation, folder, box.Work)
		}
		clean = "/" + strings.TrimSuffix(rest, "/")
	} else if c := path.Clean(folder); c == ".." || strings.HasPrefix(c, "../") {
		return "", abi.Errorf(abi.CodeInvalid, "%s %.200q: a folder is below %s", operation, folder, box.Work)
	}
	return strings.TrimPrefix(clean, "/"), nil
}

// Process is a running command: the resource `process`. It is safe for concurrent use. Its holder closes it.
type Process struct {
	ctx    context.Context //nolint:containedctx // ends the process
	cancel context.CancelFunc
	meter  context.Context //nolint:containedctx // of the operation that started it, which pays for its output
	output output

	mu   sync.Mutex
	exit Exit
	err  error
	done abi.Pollable
}

func (p *Process) run(s *Sandbox, config box.Process, limit time.Duration) {
	defer p.done.SetReady()
	defer p.output.end()
	defer p.cancel()
	m, err := s.open(p.ctx, false)
	if err != nil {
		p.fail(s, err)
		return
	}
	s.held.run(1)
	defer s.held.run(-1)
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	exit, err := m.run(ctx, config)
	if err != nil {
		if p.ctx.Err() == nil {
			if known, ok := errors.AsType[*box.StartError](err); !ok {
				if _, ok := errors.AsType[*abi.Error](err); !ok {
					s.grant.log.Error("a command in a sandbox", "error", err)
				}
			} else {
				err = known
			}
		}
		p.fail(s, startError(err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = Exit{Code: uint32(max(exit.Code, 0)), Dropped: p.output.dropped}
	switch {
	case exit.Killed && p.ctx.Err() != nil:
		p.exit.Ending = Stopped
	case exit.Killed:
		p.exit.Ending = TimedOut
	case exit.Memory && exit.Code != 0:
		p.exit.Ending = OutOfMemory
	}
}

// killed is the exit code of a process that is killed.
const killed = 128 + 9

func (p *Process) fail(s *Sandbox, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil && s.ctx.Err() == nil { // it was stopped before it began
		p.exit = Exit{Code: killed, Ending: Stopped}
		return
	}
	p.err = err
	if _, ok := errors.AsType[*abi.Error](err); !ok && p.ctx.Err() == nil {
		p.err = abi.Errorf(abi.CodeUnavailable, "the sandbox failed")
	}
}

// write keeps output. A call that has no bytes left is not paid for more, so the process ends.
func (p *Process) write(stream box.Stream, part []byte) {
	if err := abi.Charge(p.meter, len(part)); err != nil {
		p.cancel()
		return
	}
	// Copying and dropping it takes about a nanosecond for each byte.
	if err := abi.Work(p.meter, time.Duration(len(part))); err != nil {
		p.cancel()
		return
	}
	p.output.add(stream, part)
}

// Quick implements [abi.Quick].
func (*Process) Quick() []string {
	return []string{"process.subscribe", "process.read", "process.stop"}
}

// Lists implements [abi.Bounded].
func (*Process) Lists() map[string]int {
	return map[string]int{"process.read.result.bytes": abi.MaxBytes}
}

// Subscribe is the method `subscribe`.
func (p *Process) Subscribe(_ context.Context, stage Stage) *abi.Pollable {
	if stage.Case == StageEnded {
		return &p.done
	}
	return p.output.subscribe(*stage.Output)
}

// Read is the method `read`.
func (p *Process) Read(_ context.Context, offset uint64) (*Part, error) {
	return p.output.read(offset), nil
}

// Take waits until the process has ended.
func (p *Process) Take(ctx context.Context) (Exit, error) {
	if err := p.done.Wait(ctx); err != nil {
		return Exit{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, p.err
}

// Stop ends the process. It does not wait until it has ended.
func (p *Process) Stop(context.Context) { p.cancel() }

// Close ends the process, and returns when it has ended.
func (p *Process) Close() error {
	p.cancel()
	<-p.done.Done()
	p.output.close()
	return nil
}
