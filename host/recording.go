package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/turns"
)

// Recorder takes recordings of calls. It must be safe for concurrent use.
type Recorder interface {
	// Record takes the recording of a finished call, before its Do returns. The recorder owns the recording from then on. It may
	// wait for room until the call's ctx ends. No call fails because of its recorder, so the recorder must itself report recordings
	// that it cannot keep.
	Record(ctx context.Context, r *Recording)
}

// Recording is everything that a call depended on, and its result. [Component.Replay] runs the same call again from it.
type Recording struct {
	// Component is the digest of the component, its image included: see [Component.Digest].
	Component string
	Tool      string
	// Extension is that of the request.
	Extension string
	// Code is the text of the request's [Code]. SourceMap is its source map, if Outcome has a stack.
	Code      string
	SourceMap []byte
	// Input is JSON. It is nil if Cut is "input".
	Input []byte
	// Bindings are the interfaces of the call's env by name.
	Bindings map[string]string
	// WASI is that of the request.
	WASI   abi.WASI
	Limits Limits
	// Started is when the call began, and Duration how long it took.
	Started  time.Time
	Duration time.Duration
	// Operations has the call's operations and their answers, in a form that [Recording.Operation] reads. Recorded is their
	// number.
	Operations []byte
	Recorded   int
	// Cut says why the recording is incomplete: "bytes" if it reached Options.RecordBytes, a million operations or four million values, "memory" if all recordings together
	// reached Options.RecordMemory, "input" if input and code alone exceed
	// Options.RecordBytes. Operations has the operations before that. Cut
	// is empty for a complete recording.
	Cut string
	// Redacted is set if Redact replaced something. A replay gets the replacement.
	Redacted bool
	// Output is the result, if there is one. If it would have made the recording too large, OutputDigest is its SHA-256 in hex
	// instead.
	Output       []byte
	OutputDigest string
	Outcome      Outcome
	Usage        Usage
}

// Outcome is how a call ended, or how an operation ended its call.
type Outcome struct {
	// Kind is "ok", "failed" (the tool), "input", "unknown-tool", "denied", "limit", "trap", "grant" (a [GrantError]),
	// "load", "definition", "code" (a [CodeError]), "cancelled", "closed" (the host), or "fault" of the host, with no
	// further detail.
	Kind string `json:"kind"`
	// Message is the error's text, printable. For a denial, it is the text that the guest saw, without private remedies.
	Message string `json:"message,omitempty"`
	// Stack is the tool's, for "failed" and "code".
	Stack string `json:"stack,omitempty"`
	// Limit, Value, Detail and Claimed are those of a [LimitError].
	Limit   string `json:"limit,omitempty"`
	Value   string `json:"value,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
}

// The kinds of outcome that this package distinguishes.
const (
	kindOK        = "ok"
	kindLimit     = "limit"
	kindTrap      = "trap"
	kindCancelled = "cancelled"
	kindClosed    = "closed"
	kindFault     = "fault"
)

// outcome describes how a call of ctx ended with err.
func outcome(ctx context.Context, err error) Outcome {
	o := OutcomeOf(err)
	if o.Kind == kindFault && ctx.Err() != nil && !errors.As(err, new(*recordedError)) {
		return cancelled
	}
	return o
}

// cancelled is the outcome of a call that its caller cancelled.
var cancelled = Outcome{Kind: kindCancelled, Message: "the caller cancelled the call"}

// Words returns the message without what the host adds to it: what the tool threw, or a denial without its remedy.
func (o Outcome) Words() string {
	switch o.Kind {
	case "failed":
		return strings.TrimPrefix(o.Message, toolFailed)
	case "denied":
		text, _, _ := strings.Cut(o.Message, toAllow)
		return text
	default:
		return o.Message
	}
}

// OutcomeOf is the outcome of a call that ended with err.
func OutcomeOf(err error) Outcome {
	var (
		denied     *DeniedError
		limit      *LimitError
		guest      *GuestError
		trap       *TrapError
		input      *InputError
		unknown    *UnknownToolError
		load       *LoadError
		definition *DefinitionError
		code       *CodeError
		ended      *GrantError
		recorded   *recordedError
	)
	switch {
	case err == nil:
		return Outcome{Kind: kindOK}
	case errors.As(err, &recorded):
		return recorded.Outcome
	case errors.As(err, &denied):
		return Outcome{Kind: "denied", Message: (&DeniedError{shared(denied.Denial)}).Error()}
	case errors.As(err, &limit):
		return Outcome{Kind: kindLimit, Message: limit.Error(), Limit: limit.Limit, Value: limit.Value, Detail: limit.Detail, Claimed: limit.Claimed}
	case errors.As(err, &guest):
		return Outcome{Kind: "failed", Message: guest.Error(), Stack: guest.Failure.Stack}
	case errors.As(err, &trap):
		return Outcome{Kind: kindTrap, Message: trap.text()}
	case errors.As(err, &input):
		return Outcome{Kind: "input", Message: input.Error()}
	case errors.As(err, &unknown):
		return Outcome{Kind: "unknown-tool", Message: unknown.Error()}
	case errors.As(err, &ended):
		return Outcome{Kind: "grant", Message: ended.Error()}
	case errors.As(err, &load):
		return Outcome{Kind: "load", Message: load.Error()}
	case errors.As(err, &definition):
		return Outcome{Kind: "definition", Message: definition.Error()}
	case errors.As(err, &code):
		return Outcome{Kind: "code", Message: code.Error(), Stack: code.Failure.Stack}
	case errors.Is(err, ErrClosed):
		return Outcome{Kind: kindClosed, Message: ErrClosed.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return cancelled
	default:
		return Outcome{Kind: kindFault, Message: "a fault of the host"} // its text may contain secrets
	}
}

// err returns an error that has this outcome.
func (o Outcome) err() error {
	switch o.Kind {
	case kindClosed:
		return ErrClosed
	case kindCancelled:
		return context.Canceled
	default:
		return &recordedError{o}
	}
}

// recordedError ends a replay as the recorded operation ended its call.
type recordedError struct{ Outcome }

func (e *recordedError) Error() string { return e.String() }

// timed reports whether the outcome depended on when it happened, which no recording can repeat.
func (o Outcome) timed() bool {
	return o.Kind == kindCancelled || o.Kind == kindClosed || o.Kind == kindLimit && slices.Contains([]string{"cpu", "wall", "engine"}, o.Limit)
}

// shared returns a denial without the parts that only the person may know.
func shared(d abi.Denial) abi.Denial {
	if d.Private {
		d.Remedy = ""
	}
	return d
}

const (
	// recordShare is how much of the host's memory each recording may hold without a reservation.
	recordShare = 64 * kib
	// recordStart is the initial size of a recording's buffer.
	recordStart = kib
)

// maxRecorded is how many operations a recording has at most. Each takes up to 300 bytes when it is read.
const maxRecorded = 1 << 20

// maxName is how many bytes of the name of an interface, a function or a binding are read.
const maxName = 256

// record is the recording of a running call.
type record struct {
	host    *Host
	user    string // as in Request, or the caller's
	started time.Time
	enc     encoder
	// functions are those that earlier operations named. A later operation gives the index.
	functions []*operation
	recorded  int
	cut       string
	reserved  int64 // of the host's memory for recordings, beyond the share of each
}

func (h *Host) newRecord(user string) *record {
	return &record{
		host: h, user: user, started: time.Now(),
		enc: encoder{buf: make([]byte, 0, recordStart), max: h.options.RecordBytes, redact: h.options.Redact},
	}
}

// share returns what the recording takes of the memory that each may have.
func (r *record) share() int64 {
	if r == nil {
		return 0
	}
	return int64(cap(r.enc.buf)) - r.reserved
}

// The answer of an operation is a value, or the error that ended the call.
const (
	answerValue = iota
	answerError
)

// operation adds a finished operation. Once one does not fit, no more are added.
func (r *record) operation(c *call, op *operation, binding string, args []abi.Value, result abi.Value, err error) {
	if r.cut != "" {
		return
	}
	e := &r.enc
	start, known := len(e.buf), len(r.functions)
	index := slices.Index(r.functions, op)
	if index >= 0 {
		e.number(uint64(index))
	} else {
		e.number(uint64(known))
		put(e, appendString(appendString(nil, op.fn.Interface.Name), op.fn.Name))
		r.functions = append(r.functions, op)
	}
	e.text(binding)
	e.arguments(op.fn.Params, args)
	if err == nil {
		e.byte(answerValue)
		e.sized(func() { e.value(op.fn.Result, result) })
	} else {
		o := e.outcome(outcome(c.ctx, c.explain(err)))
		text, _ := json.Marshal(o) // strings and a bool can be marshalled
		e.byte(answerError)
		e.sized(func() { put(e, text) })
	}
	switch {
	case e.full || r.recorded == maxRecorded:
		r.cut = "bytes"
	case !r.reserve():
		r.cut = "memory"
	default:
		r.recorded++
		return
	}
	e.buf, r.functions = e.buf[:start], r.functions[:known]
}

func appendString(b []byte, s string) []byte {
	return append(append(b, byte(len(s)>>8), byte(len(s))), s...)
}

// reserve accounts for the memory that the recording holds.
func (r *record) reserve() bool {
	more := int64(cap(r.enc.buf)) - recordShare - r.reserved
	if more <= 0 {
		return true
	}
	if !r.host.recording.Take(r.user, more) {
		return false
	}
	r.reserved += more
	return true
}

// end hands the recording over. From then on, it does not count towards the host's memory.
func (r *record) end(ctx context.Context, c *Component, request *Request, result Result, err error, to Recorder) {
	e, o := &r.enc, r.host.options
	out := &Recording{
		Component: c.digest, Tool: string(e.without([]byte(printable.Short(request.Tool, 256)))), Extension: string(e.without([]byte(printable.Short(request.Extension, 256)))), Limits: r.host.limits(request, frameOf(ctx)), Started: r.started, Duration: time.Since(r.started),
		Recorded: r.recorded, Operations: e.buf, Cut: r.cut, Usage: result.Usage, Outcome: e.outcome(outcome(ctx, err)),
	}
	if len(request.Env) > 0 {
		out.Bindings = make(map[string]string, len(request.Env))
	}
	for name, c := range request.Env {
		if inside, _, err := unwrap(c); err == nil {
			out.Bindings[string(e.without([]byte(name)))] = inside.Interface()
		}
	}
	out.WASI = e.wasi(request.WASI)
	out.Usage.Denials = slices.Clone(out.Usage.Denials)
	for i, d := range out.Usage.Denials {
		out.Usage.Denials[i] = e.denial(shared(d))
	}
	if len(request.Input)+len(request.Code.text()) <= o.RecordBytes {
		out.Input = bytes.Clone(e.without(request.Input)) // the caller's own
		out.Code = string(e.without([]byte(request.Code.text())))
		if out.Outcome.Stack != "" {
			out.SourceMap = request.Code.sourceMap()
		}
	} else {
		out.Operations, out.Recorded, out.Cut = nil, 0, "input"
	}
	if err == nil {
		out.keepOutput(e.without(result.Output), o.RecordBytes)
	}
	out.Redacted = e.altered
	r.host.recording.Give(r.user, r.reserved)
	if r.user != "" {
		ctx = turns.For(ctx, r.user)
	}
	to.Record(ctx, out)
}

// wasi redacts names and paths.
func (e *encoder) wasi(w abi.WASI) (redacted abi.WASI) {
	for at, name := range w.Filesystem {
		if redacted.Filesystem == nil {
			redacted.Filesystem = make(map[string]string, len(w.Filesystem))
		}
		redacted.Filesystem[string(e.without([]byte(at)))] = string(e.without([]byte(name)))
	}
	redacted.HTTP = string(e.without([]byte(w.HTTP)))
	return redacted
}

// outcome redacts an outcome.
func (e *encoder) outcome(o Outcome) Outcome {
	for _, text := range []*string{&o.Message, &o.Stack, &o.Detail} {
		*text = string(e.without([]byte(*text)))
	}
	return o
}

// denial redacts a denial.
func (e *encoder) denial(d abi.Denial) abi.Denial {
	for _, text := range []*string{&d.Binding, &d.Operation, &d.Reason, &d.Remedy} {
		*text = string(e.without([]byte(*text)))
	}
	d.Wants = nil
	return d
}

// keepOutput stores the output, or its digest if the recording would exceed max bytes with it.
func (r *Recording) keepOutput(output []byte, max int) {
	if len(r.Operations)+len(output) > max {
		r.OutputDigest = sha256hex.Of(output)
		return
	}
	r.Output = bytes.Clone(output) // the caller has the original
}

// DamagedError reports a recording whose operations cannot be read.
type DamagedError struct {
	// Operation is the number of the unreadable operation, counted from 1.
	Operation int
	Reason    string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the recording is damaged at operation %d: %s", e.Operation, e.Reason)
}

// RecordedOperation is one operation of a recording, as text for people: control and direction characters are escaped, and long
// texts are cut.
type RecordedOperation struct {
	Interface string `json:"interface"`
	Func      string `json:"function"`
	Binding   string `json:"binding,omitempty"`
	// Args is like `#2, "a key"`, or "sha256:..." for long arguments.
	Args string `json:"arguments"`
	// Answer is like `ok(some("a value"))`. It is empty if the operation ended the call; then Error is set.
	Answer string   `json:"answer,omitempty"`
	Error  *Outcome `json:"error,omitempty"`
}

// String is the operation in one line.
func (o RecordedOperation) String() string {
	text := o.Interface + "#" + o.Func + "(" + o.Args + ")"
	if o.Error != nil {
		return text + " ended the call: " + line(o.Error.Message)
	}
	if o.Answer != "" {
		text += " = " + o.Answer
	}
	return text
}

const (
	// maxShown is how many bytes of arguments or an answer are shown.
	maxShown = 200
	// maxShownText is how many bytes of text all operations have.
	maxShownText = 128 * mib
)

// All reads the recorded operations. known has their interfaces, such as those of [Host.WIT]; the values of others are not shown. If
// it returns a *[DamagedError], it also returns the operations before the damage.
func (r *Recording) All(known *abi.Resolve) ([]RecordedOperation, error) {
	list, err := r.parse(known)
	shown := make([]RecordedOperation, 0, len(list))
	d, size := &decoder{}, 0
	for i, o := range list {
		one := o.shown(d)
		if d.values > maxRecordedValues {
			return shown, &DamagedError{i + 1, errManyValues.Error()} // d may have read something else since
		}
		if size += one.size(); size > maxShownText {
			return shown, &DamagedError{i + 1, fmt.Sprintf("with it, the operations are more than %s of text", printable.Size(maxShownText))}
		}
		shown = append(shown, one)
	}
	return shown, err
}

// size is how many bytes of text the operation has.
func (o RecordedOperation) size() int {
	n := len(o.Interface) + len(o.Func) + len(o.Binding) + len(o.Args) + len(o.Answer)
	if e := o.Error; e != nil {
		n += len(e.Kind) + len(e.Message) + len(e.Stack) + len(e.Limit) + len(e.Value) + len(e.Detail)
	}
	return n
}

// recordedOperation is one operation in its recorded form.
type recordedOperation struct {
	iface, name, binding string
	fn                   *abi.Func // nil if the function is not known
	args                 []byte    // with their kind
	answer               []byte
	outcome              *Outcome // set if it ended the call
}

// line makes text of a recording safe for a terminal, on one line.
func line(s string) string { return lineOf(s, 4*kib) }

func lineOf(s string, max int) string {
	return strings.Join(strings.Fields(printable.Short(s, max)), " ")
}

func (r *Recording) parse(known *abi.Resolve) ([]recordedOperation, error) {
	d := &decoder{rest: r.Operations}
	var functions, list []recordedOperation
	name := func() string {
		length := d.take(2)
		if length == nil {
			return ""
		}
		return lineOf(string(d.take(uint64(length[0])<<8|uint64(length[1]))), maxName)
	}
	for len(d.rest) > 0 && d.err == nil {
		if len(list) == maxRecorded {
			d.fail(fmt.Errorf("more than %d operations", maxRecorded))
			break
		}
		index := int(d.number(uint64(len(functions))))
		if index == len(functions) {
			f := recordedOperation{iface: name(), name: name()}
			if i := known.Interface(f.iface); i != nil {
				f.fn = funcNamed(i, f.name)
			}
			functions = append(functions, f)
		}
		o := functions[index]
		o.binding = lineOf(string(d.bytes()), maxName)
		kind := d.number(argsDigest)
		o.args = append([]byte{byte(kind)}, d.sized()...)
		if answer := d.number(answerError); answer == answerValue {
			o.answer = d.sized()
		} else {
			o.outcome = &Outcome{}
			if err := json.Unmarshal(d.sized(), o.outcome); err != nil {
				d.fail(errMalformed)
			}
		}
		if d.err == nil {
			list = append(list, o)
		}
	}
	if d.err == nil && len(list) != r.Recorded {
		d.err = fmt.Errorf("%d operations, not %d", len(list), r.Recorded)
	}
	if d.err != nil {
		return list, &DamagedError{len(list) + 1, d.err.Error()}
	}
	return list, nil
}

// key returns equal keys for operations that do the same.
func (o recordedOperation) key() string { return o.iface + "#" + o.name + "\x00" + string(o.args) }

// shown reads an operation with d, which counts the values of all operations.
func (o recordedOperation) shown(d *decoder) RecordedOperation {
	s := RecordedOperation{Interface: o.iface, Func: o.name, Binding: o.binding, Args: "...", Answer: "...", Error: o.outcome}
	if o.args[0] == argsDigest {
		s.Args = fmt.Sprintf("sha256:%x", o.args[min(len(o.args), 9):])
	}
	if o.outcome != nil {
		shown := *o.outcome
		for _, text := range []*string{&shown.Kind, &shown.Message, &shown.Stack, &shown.Limit, &shown.Value, &shown.Detail} {
			*text = printable.Short(*text, 4*kib)
		}
		s.Answer, s.Error = "", &shown
	}
	if o.fn == nil {
		return s
	}
	if o.args[0] == argsWhole {
		d.rest, d.err = o.args[1:], nil
		var text []byte
		for i, p := range o.fn.Params {
			v := d.value(p.Type)
			if d.err != nil {
				text = append(text, "(damaged)"...)
				break
			}
			if i > 0 {
				text = append(text, ", "...)
			}
			text = appendText(text, p.Type, v, maxShown)
		}
		s.Args = printable.Short(string(text), maxShown)
	}
	if o.outcome == nil {
		d.rest, d.err = o.answer, nil
		v := d.value(o.fn.Result)
		if d.err != nil {
			s.Answer = "(damaged)"
		} else {
			s.Answer = printable.Short(string(appendText(nil, o.fn.Result, v, maxShown)), maxShown)
		}
	}
	return s
}
