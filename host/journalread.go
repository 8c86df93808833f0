package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// LoggedOperation is an operation in the log of a durable call, as text for people: control and direction characters are escaped, long texts are cut,
// and what recordings leave out is left out, and so is what nobody can guess of a mailbox's address.
type LoggedOperation struct {
	// Binding is the name in the env that the operation goes through. Function is what the tool calls, such as "increment", or "exchange.head" for
	// another value than the binding itself.
	Binding, Function string
	// Args is like `"a key", 1`, without the value whose function it is.
	Args string
	// Open says that the log has no answer.
	Open bool
	// Answer is like `some("a value")`. Code is the case of the error if it is one, such as "denied"; Answer is then what the error says.
	Answer, Code string
}

// String is the operation in one line, without its answer.
func (o LoggedOperation) String() string {
	name := o.Function
	if o.Binding != "" {
		name = o.Binding + "." + name
	}
	return name + "(" + o.Args + ")"
}

// LogReader reads the log of a durable call for people: the entries that a [Journal] got, one after the other. They may come from anywhere. It is not safe
// for concurrent use.
type LogReader struct {
	host *Host
	open *entry // has begun, and has no answer yet
}

// NewLogReader returns a reader that knows the interfaces of the host.
func (h *Host) NewLogReader() *LogReader { return &LogReader{host: h} }

// BeginsOperation reports whether an entry of a log begins an operation, rather than that it answers one.
func BeginsOperation(entry []byte) bool {
	return len(entry) > 0 && !slices.Contains([]byte{entryAnswer, entryUsed}, entry[0]&^entryNamed)
}

// Read reads the next entry. It reports false if the entry is about no operation. Of an operation that is open, the next is the answer: Read returns the
// operation again then. A log that is read from its middle may begin with such an answer, which Read refuses with a *[StateError], as everything
// else that no call has written.
func (r *LogReader) Read(logged []byte) (o LoggedOperation, ok bool, err error) {
	e, err := readLogged(logged)
	switch {
	case err != nil:
		return o, false, err
	case e.kind == entryUsed:
		return o, false, nil
	case (e.kind == entryAnswer) != (r.open != nil):
		return o, false, &StateError{"its log has an answer to nothing, or lacks one"}
	case e.kind == entryAnswer:
		e.name, e.binding, e.args = r.open.name, r.open.binding, r.open.args
		r.open = nil
	case e.kind != entryWhole:
		r.open = &e
		return r.host.logged(e, true), true, nil
	}
	return r.host.logged(e, false), true, nil
}

// Redact returns text without the secrets that recordings leave out.
func (h *Host) Redact(text []byte) []byte {
	e := encoder{redact: h.options.Redact}
	return e.without(text)
}

// maxLogged is how many bytes of an answer are read for people. A value takes up to 60 times its bytes when it is read.
const maxLogged = 64 * kib

func (h *Host) logged(e entry, open bool) LoggedOperation {
	iface, function, _ := strings.Cut(e.name, "#")
	o := LoggedOperation{Binding: h.shownLine(e.binding), Function: function, Open: open}
	var f *abi.Func
	if known := h.known.Interface(iface); known != nil {
		if f = funcNamed(known, function); f != nil {
			o.Function = functionWords(known, f)
		}
	}
	switch {
	case f == nil:
	case f.Interface.Name == abi.PollInterface: // of handles, which say nothing to people
		o.Function = "wait"
		return o
	case f.Resource == nil && o.Binding == "":
		o.Binding = "env"
	}
	o.Args = h.loggedArgs(f, e.args)
	if open {
		return o
	}
	switch {
	case f == nil:
		o.Answer = "..."
	case len(e.answer) > maxLogged:
		o.Answer = fmt.Sprintf("(%d bytes)", len(e.answer))
	default:
		o.Answer, o.Code = h.loggedAnswer(f.Result, e.answer)
	}
	if e.name == addressOperation && o.Code == "" {
		o.Answer = withoutToken(o.Answer)
	}
	return o
}

// addressOperation makes the address of a mailbox, whose last part is a secret.
const addressOperation = abi.CapabilityPackage + "signals@0.1.0#[method]mailboxes.url"

// HiddenAddress stands where people are shown an address of a mailbox, in place of the part that nobody can guess.
const HiddenAddress = "[address]"

// withoutToken is the quoted text of an address without its last part.
func withoutToken(quoted string) string {
	if i := strings.LastIndexByte(quoted, '/'); i >= 0 {
		return quoted[:i+1] + HiddenAddress + `"`
	}
	return HiddenAddress
}

// functionWords is what an author calls a function.
func functionWords(of *abi.Interface, f *abi.Func) string {
	resource, method, ok := strings.Cut(strings.TrimPrefix(f.Name, "[method]"), ".")
	if !ok {
		return camel(resource)
	}
	get := funcNamed(of, "get")
	if get != nil && get.Result != nil && get.Result.Ok != nil && get.Result.Ok.Resource == f.Resource {
		return camel(method)
	}
	return camel(resource) + "." + camel(method)
}

// camel turns "compare-and-set" into "compareAndSet".
func camel(kebab string) string {
	parts := strings.Split(kebab, "-")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// shownLine is a text that is safe for people, on one line and without secrets.
func (h *Host) shownLine(s string) string { return lineOf(string(h.Redact([]byte(s))), maxName) }

func (h *Host) loggedArgs(f *abi.Func, args []byte) string {
	if args[0] == argsDigest {
		if len(args) < 9 {
			return "(damaged)"
		}
		return fmt.Sprintf("(%d bytes)", binary.LittleEndian.Uint64(args[1:]))
	}
	if f == nil {
		return "..."
	}
	d := &decoder{rest: args[1:]}
	var text []byte
	for i, p := range f.Params {
		v := d.value(p.Type)
		if d.err != nil {
			return "(damaged)"
		}
		if i == 0 && p.Type.Kind == abi.KindBorrow { // the value itself, or the env
			continue
		}
		if len(text) > 0 {
			text = append(text, ", "...)
		}
		if v = h.kept(p.Type, v); v == nil {
			return "(damaged)"
		}
		text = appendText(text, p.Type, v, maxShown)
	}
	return printable.Short(string(text), maxShown)
}

// kept is a value as a recording keeps it: without secrets.
func (h *Host) kept(t *abi.Type, v abi.Value) abi.Value {
	e := encoder{max: math.MaxInt, redact: h.options.Redact}
	e.value(t, v)
	d := &decoder{rest: e.buf}
	if v = d.value(t); d.end() != nil {
		return nil
	}
	return v
}

func (h *Host) loggedAnswer(t *abi.Type, answer []byte) (text, code string) {
	d := &decoder{rest: answer}
	v := d.value(t)
	if d.end() != nil {
		return "(damaged)", ""
	}
	if t == nil {
		return "", ""
	}
	if v = h.kept(t, v); v == nil {
		return "(damaged)", ""
	}
	if t.Kind == abi.KindResult {
		c := v.(abi.Variant)
		payload, _ := caseType(t, c.Case)
		v = c.Value
		if c.Case == 1 {
			code = "error"
			if payload != nil && payload.Kind == abi.KindVariant {
				of := v.(abi.Variant)
				code = caseName(payload, of.Case)
				payload, _ = caseType(payload, of.Case)
				v = of.Value
			}
		}
		t = payload
	}
	if t != nil && t.Kind == abi.KindOwn { // its number says nothing to people
		return "", code
	}
	return printable.Short(string(appendText(nil, t, v, maxShown)), maxShown), code
}
