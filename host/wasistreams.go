package host

import (
	"fmt"

	"github.com/stilehost/stile/abi"
)

// inputStream is a stream that WASI's bindings serve. A fault of either stream ends the operation, and the stream goes on.
type inputStream interface {
	// read returns some bytes, at most this many, and none only at the end. It waits for them if it should.
	read(c *call, most uint64, wait bool) (b []byte, ended bool, _ *streamFailure, _ error)
}

// outputStream is likewise.
type outputStream interface {
	permits(c *call) (uint64, bool) // it reports whether the stream is open
	write(c *call, data []byte) (closed bool, _ *streamFailure, _ error)
	flush(c *call) (closed bool, _ *streamFailure, _ error)
}

// streamFailure is the value of a handle of wasi:io/error.
type streamFailure struct {
	file fault  // for filesystem-error-code
	http string // for http-error-code: a case of its variant
	size uint64 // its payload, if that is a number
	text string
}

// fileStream is a file from a position on: a stream of a descriptor.
type fileStream struct {
	d       *descriptor
	at      uint64
	appends bool
}

// Close implements [io.Closer].
func (s *fileStream) Close() error { return s.d.Close() }

// Size implements [abi.Sized].
func (s *fileStream) Size() int { return s.d.Size() }

// stream makes a stream of a descriptor, which it keeps open.
func (o *fileOp) stream(at uint64, appends bool) error {
	d := *o.d
	d.dir.hold()
	rep, err := o.c.addDescriptor(o.f.Result.Ok.Resource, &fileStream{d: &d, at: at, appends: appends})
	if err != nil {
		return err
	}
	return o.ok(rep)
}

func readStream(o *fileOp) error {
	switch {
	case o.d.isDirectory():
		return o.fail(faultIsDirectory)
	case !o.d.read:
		return o.fail(faultBadDescriptor)
	}
	return o.stream(o.args[1].(uint64), false)
}

func (o *fileOp) writeStream(at uint64, appends bool) error {
	if f := o.d.writable(); f != "" {
		return o.fail(f)
	}
	return o.stream(at, appends)
}

func fileFailure(f fault) *streamFailure {
	if f == "" {
		return nil
	}
	return &streamFailure{file: f, text: string(f)}
}

func (s *fileStream) read(c *call, most uint64, _ bool) ([]byte, bool, *streamFailure, error) {
	b, f, err := c.readFile(s.d, s.at, most)
	s.at += uint64(len(b))
	return b, err == nil && f == "" && len(b) == 0 && most > 0, fileFailure(f), err
}

func (s *fileStream) permits(*call) (uint64, bool) { return worldPermit, true }

func (s *fileStream) write(c *call, data []byte) (bool, *streamFailure, error) {
	var f fault
	var err error
	if s.appends {
		f, err = c.appendFile(s.d, data)
	} else if s.at+uint64(len(data)) < s.at {
		f = faultTooLarge
	} else {
		f, err = c.writeFile(s.d, s.at, data)
	}
	if f == "" && err == nil {
		s.at += uint64(len(data))
	}
	return false, fileFailure(f), err
}

func (s *fileStream) flush(*call) (bool, *streamFailure, error) { return false, nil, nil }

// streamResult is the result of a stream's function whose error is stream-error.
func (c *call) streamResult(t *abi.Type, v abi.Value, closed bool, failed *streamFailure, err error) (abi.Value, error) {
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		i, ok := caseOf(t.Err, "last-operation-failed")
		if ok && t.Err.Cases[i].Type != nil && t.Err.Cases[i].Type.Kind == abi.KindOwn {
			rep, err := c.handles.addForeign(&handle{resource: t.Err.Cases[i].Type.Resource, value: failed})
			if err != nil {
				return nil, err
			}
			return abi.Variant{Case: 1, Value: abi.Variant{Case: i, Value: rep}}, nil
		}
		fallthrough
	case closed:
		v, ok := refuse(t) // as closed
		if !ok {
			return nil, &TrapError{Reason: "WASI: a stream of a component that knows no closed ones"}
		}
		return v, nil
	default:
		return okResult(v), nil
	}
}

// find returns the value of a handle in an argument.
func (c *call) argument(f *abi.Func, args []abi.Value, i int) (any, error) {
	h, err := c.handles.find(args[i].(abi.Rep), f.Params[i].Type.Resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return h.value, nil
}

// onOutput is through for a function of output streams: of one that a binding serves, do is called.
func onOutput(do func(c *call, s outputStream, args []abi.Value) (v abi.Value, closed bool, _ *streamFailure, _ error),
	otherwise func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error),
) func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	return func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
		value, err := c.argument(f, args, 0)
		if err != nil {
			return nil, err
		}
		s, ok := value.(outputStream)
		switch {
		case !ok && otherwise == nil:
			return gated(c, args)
		case !ok:
			return otherwise(c, gated, f, args)
		}
		v, closed, failed, err := do(c, s, args)
		return c.streamResult(f.Result, v, closed, failed, err)
	}
}

func streamWrite(c *call, s outputStream, args []abi.Value) (abi.Value, bool, *streamFailure, error) {
	closed, failed, err := s.write(c, args[1].([]byte))
	return nil, closed, failed, err
}

func streamZeros(c *call, s outputStream, args []abi.Value) (abi.Value, bool, *streamFailure, error) {
	n := args[1].(uint64)
	if n > worldPermit {
		return nil, false, nil, &TrapError{Reason: fmt.Sprintf("write-zeroes of %d bytes, which is more than check-write permits", n)}
	}
	closed, failed, err := s.write(c, make([]byte, n))
	return nil, closed, failed, err
}

func streamPermits(c *call, s outputStream, _ []abi.Value) (abi.Value, bool, *streamFailure, error) {
	n, open := s.permits(c)
	return n, !open, nil, nil
}

func streamFlush(c *call, s outputStream, _ []abi.Value) (abi.Value, bool, *streamFailure, error) {
	closed, failed, err := s.flush(c)
	return nil, closed, failed, err
}

// streamSplice moves bytes from a stream into another.
func streamSplice(wait bool) func(c *call, s outputStream, args []abi.Value, from inputStream) (abi.Value, bool, *streamFailure, error) {
	return func(c *call, s outputStream, args []abi.Value, from inputStream) (abi.Value, bool, *streamFailure, error) {
		n, open := s.permits(c)
		if !open {
			return nil, true, nil, nil
		}
		b, ended, failed, err := from.read(c, min(n, args[2].(uint64)), wait)
		if err != nil || failed != nil || ended {
			return nil, ended, failed, err
		}
		closed, failed, err := s.write(c, b)
		return uint64(len(b)), closed, failed, err
	}
}

func onSplice(wait bool) func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	splice := streamSplice(wait)
	return func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
		value, err := c.argument(f, args, 1)
		if err != nil {
			return nil, err
		}
		from, ok := value.(inputStream)
		return onOutput(func(c *call, s outputStream, args []abi.Value) (abi.Value, bool, *streamFailure, error) {
			if !ok {
				return nil, true, nil, nil
			}
			return splice(c, s, args, from)
		}, nil)(c, gated, f, args)
	}
}

// onInput is onOutput for input streams. Skipped bytes are read, and not passed.
func onInput(wait, skip bool) func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	return func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
		value, err := c.argument(f, args, 0)
		if err != nil {
			return nil, err
		}
		s, ok := value.(inputStream)
		if !ok {
			return gated(c, args)
		}
		b, closed, failed, err := s.read(c, min(args[1].(uint64), abi.MaxBytes), wait)
		var v abi.Value = b
		if skip {
			v = uint64(len(b))
		}
		return c.streamResult(f.Result, v, closed, failed, err)
	}
}

// awaited is what a pollable can be for, besides a time.
type awaited interface {
	// waits returns a new handle of a pollable of the binding, or whether it is ready. Neither means that it never comes.
	waits(c *call) (rep abi.Rep, ready bool, err error)
}

// subscribeTo makes a pollable.
func (c *call) subscribeTo(f *abi.Func, of awaited) (abi.Value, error) {
	rep, err := c.handles.addForeign(&handle{resource: f.Result.Resource, value: &worldPollable{call: c, at: never, of: of}})
	if err != nil {
		return nil, err
	}
	return rep, nil
}

// subscribeStream is through for the pollable of a stream.
func subscribeStream(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	value, err := c.argument(f, args, 0)
	if err != nil {
		return nil, err
	}
	if of, ok := value.(awaited); ok {
		return c.subscribeTo(f, of)
	}
	return gated(c, args)
}

// closedStream answers a function of a stream that leads nowhere.
func closedStream(_ *call, f *abi.Func, _ []abi.Value) (abi.Value, error) {
	if v, ok := refuse(f.Result); ok {
		return v, nil
	}
	return nil, &TrapError{Reason: f.Name + " of a closed stream"}
}

const saysStream = "by the file or the body behind it; closed for others"

// streamFuncs are the functions of streams that bindings can serve.
func streamFuncs(all map[string]worldFunc) {
	const in, out = "wasi:io/streams#[method]input-stream.", streamFunc
	reads, skips := "func(borrow<input-stream>,u64) -> result<list<u8>,variant>", "func(borrow<input-stream>,u64) -> result<u64,variant>"
	zeros, splices := "func(borrow<output-stream>,u64) -> result<_,variant>", "func(borrow<output-stream>,borrow<input-stream>,u64) -> result<u64,variant>"
	all[in+"read"] = worldFunc{shape: reads, says: saysStream, answer: closedStream, through: onInput(false, false)}
	all[in+"blocking-read"] = worldFunc{shape: reads, says: saysStream, answer: closedStream, through: onInput(true, false)}
	all[in+"skip"] = worldFunc{shape: skips, says: saysStream, answer: closedStream, through: onInput(false, true)}
	all[in+"blocking-skip"] = worldFunc{shape: skips, says: saysStream, answer: closedStream, through: onInput(true, true)}
	all[out+"write-zeroes"] = worldFunc{shape: zeros, says: saysStream, answer: closedStream, through: onOutput(streamZeros, nil)}
	all[out+"blocking-write-zeroes-and-flush"] = worldFunc{shape: zeros, says: saysStream, answer: closedStream, through: onOutput(streamZeros, nil)}
	all[out+"splice"] = worldFunc{shape: splices, says: saysStream, answer: closedStream, through: onSplice(false)}
	all[out+"blocking-splice"] = worldFunc{shape: splices, says: saysStream, answer: closedStream, through: onSplice(true)}
	all["wasi:io/error#[method]error.to-debug-string"] = worldFunc{shape: "func(borrow<error>) -> string", says: "says what failed in a stream", answer: errorText}
	subscribe := all[in+"subscribe"]
	subscribe.says, subscribe.through = "is ready, or waits for a body", subscribeStream
	all[in+"subscribe"] = subscribe
	for name, through := range map[string]func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error){
		"write": onOutput(streamWrite, thenTell), "blocking-write-and-flush": onOutput(streamWrite, thenTell),
		"check-write": onOutput(streamPermits, nil), "flush": onOutput(streamFlush, nil), "blocking-flush": onOutput(streamFlush, nil),
	} {
		f := all[out+name]
		f.through = through
		all[out+name] = f
	}
}

func errorText(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	value, err := c.argument(f, args, 0)
	if failed, ok := value.(*streamFailure); ok {
		return failed.text, nil
	}
	return "", err
}

func filesystemErrorCode(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	value, err := c.argument(f, args, 0)
	if failed, ok := value.(*streamFailure); ok && failed.file != "" {
		if i, ok := caseOf(f.Result.Elem, string(failed.file)); ok {
			return abi.Variant{Case: 1, Value: abi.Variant{Case: i}}, nil
		}
	}
	return abi.Variant{}, err
}
