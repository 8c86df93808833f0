package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// Bounds of wasi:http in one call.
const (
	// maxWorldBytes is what all fields and bodies of requests hold together: names, values and bytes, and fieldCost for each field.
	maxWorldBytes = 512 * kib
	fieldCost     = 64
	// maxBody is how many bytes of a request's body are kept until it ends: what a client takes without a blob.
	maxBody = abi.MaxBytes
	// maxURL is the length of an authority, and of a path with its query.
	maxURL = 8 * kib
)

// takeBytes counts bytes that a value of wasi:http holds in the host.
func (w *world) takeBytes(n int) error {
	if w.bytes+n > maxWorldBytes {
		return &LimitError{Limit: "bytes", Value: printable.Size(maxWorldBytes), Detail: "in the headers and bodies of wasi:http requests together"}
	}
	w.bytes += n
	return nil
}

// httpFields are the fields of a request or response.
type httpFields struct {
	world *world
	list  []httpField
	fixed bool // the guest cannot change them
	held  int  // bytes of the world's
}

type httpField struct {
	name  string
	value []byte
}

// Close implements [io.Closer].
func (f *httpFields) Close() error {
	f.world.bytes -= f.held
	f.held = 0
	return nil
}

// add adds a field.
func (f *httpFields) add(name string, value []byte) error {
	n := fieldCost + len(name) + len(value)
	if err := f.world.takeBytes(n); err != nil {
		return err
	}
	f.held += n
	f.list = append(f.list, httpField{name, bytes.Clone(value)})
	return nil
}

// remove removes all fields of a name.
func (f *httpFields) remove(name string) {
	f.list = slices.DeleteFunc(f.list, func(one httpField) bool {
		if !strings.EqualFold(one.name, name) {
			return false
		}
		n := fieldCost + len(one.name) + len(one.value)
		f.held -= n
		f.world.bytes -= n
		return true
	})
}

// copied is a copy.
func (f *httpFields) copied(fixed bool) (*httpFields, error) {
	same := &httpFields{world: f.world, fixed: fixed}
	for _, one := range f.list {
		if err := same.add(one.name, one.value); err != nil {
			_ = same.Close() // it does not fail
			return nil, err
		}
	}
	return same, nil
}

// fieldProblem is the case of header-error for a field, or nothing.
func fieldProblem(name string, values ...[]byte) string {
	const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(token, r) }) {
		return "invalid-syntax"
	}
	for _, v := range values {
		if !utf8.Valid(v) || bytes.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return "invalid-syntax"
		}
	}
	switch strings.ToLower(name) {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "transfer-encoding", "upgrade", "host", "http2-settings", "te", "trailer":
		return "forbidden"
	}
	return ""
}

// httpRequest is a request that the guest makes.
type httpRequest struct {
	headers                 *httpFields
	method                  abi.Variant // of the component's own types
	scheme, path, authority abi.Variant
	methodType, schemeType  *abi.Type
	body                    *httpBody // nil without one
}

// Close implements [io.Closer].
func (r *httpRequest) Close() error {
	if r.body != nil && r.body.state != bodyOpen { // its handle is gone
		r.body.free()
	}
	return r.headers.Close()
}

// httpOptions are the timeouts of a request, in nanoseconds, by name.
type httpOptions struct{ timeouts map[string]uint64 }

// httpBody is the body of a request.
type httpBody struct {
	world   *world
	data    []byte
	taken   bool           // the guest has its stream
	state   int            // of the constants below
	pending *httpFuture    // of the request that waits for the end of the body
	failed  *streamFailure // why nothing more can be written
}

const (
	bodyOpen = iota
	bodyDone
	bodyDropped
)

// Close implements [io.Closer]: a body that is dropped has not ended, so its request is never made.
func (b *httpBody) Close() error {
	if b.state == bodyOpen {
		b.state = bodyDropped
	}
	b.free()
	return nil
}

func (b *httpBody) free() {
	b.world.bytes -= len(b.data)
	b.data = nil
}

// httpBodyWriter is the stream of a body.
type httpBodyWriter struct{ body *httpBody }

func (s httpBodyWriter) permits(*call) (uint64, bool) {
	return worldPermit, s.body.state == bodyOpen
}

func (s httpBodyWriter) write(_ *call, data []byte) (closed bool, _ *streamFailure, _ error) {
	b := s.body
	switch {
	case b.failed != nil:
		return false, b.failed, nil
	case b.state != bodyOpen:
		return true, nil, nil
	case len(b.data)+len(data) > maxBody:
		b.failed = &streamFailure{http: "HTTP-request-body-size", size: maxBody, text: fmt.Sprintf("the body of a request has at most %d bytes", maxBody)}
		return false, b.failed, nil
	}
	if err := b.world.takeBytes(len(data)); err != nil {
		return false, nil, err
	}
	b.data = append(b.data, data...)
	return false, nil, nil
}

func (s httpBodyWriter) flush(*call) (closed bool, _ *streamFailure, _ error) {
	return s.body.state != bodyOpen, s.body.failed, nil
}

// httpExchange is an exchange of the binding, which a future, a response and its streams share.
type httpExchange struct {
	call  *call
	rep   abi.Rep
	users int
}

func (e *httpExchange) hold() *httpExchange { e.users++; return e }

// Close gives up one use. The last one ends the exchange.
func (e *httpExchange) Close() error {
	if e.users--; e.users > 0 || e.call.handles.open[e.rep] == nil {
		return nil
	}
	return e.call.handles.remove(e.rep).close()
}

// do calls a method of the exchange.
func (e *httpExchange) do(method string, args ...abi.Value) (abi.Value, *abi.Error, error) {
	return e.call.through(httpInterface+"#[method]exchange."+method, append([]abi.Value{e.rep}, args...)...)
}

// The cases of stage in the interface http.
const (
	stageHead = iota
	stageBody
)

// subscribe is a pollable of the binding for a stage.
func (e *httpExchange) subscribe(stage abi.Variant) (abi.Rep, error) {
	v, _, err := e.do("subscribe", stage)
	if err != nil {
		return 0, err
	}
	return v.(abi.Rep), nil
}

// httpFuture is a response that may come.
type httpFuture struct {
	call     *call
	request  *httpRequest // until it is made
	timeout  uint64       // in nanoseconds; 0 is none
	exchange *httpExchange
	failed   *streamFailure
	taken    bool
}

// Close implements [io.Closer].
func (f *httpFuture) Close() error {
	if f.request != nil {
		_ = f.request.Close() // it does not fail
		f.request = nil
	}
	if f.exchange == nil {
		return nil
	}
	e := f.exchange
	f.exchange = nil
	return e.Close()
}

// waits implements [awaited].
func (f *httpFuture) waits(*call) (rep abi.Rep, ready bool, err error) {
	if f.request != nil && f.request.body != nil && f.request.body.state == bodyDropped {
		f.failed = &streamFailure{http: "HTTP-protocol-error", text: "the body of the request was dropped before it had ended"}
		_ = f.request.Close() // it does not fail
		f.request = nil
	}
	switch {
	case f.failed != nil || f.taken:
		return 0, true, nil
	case f.exchange == nil:
		return 0, false, nil // its body has not ended
	default:
		rep, err = f.exchange.subscribe(abi.Variant{Case: stageHead})
		return rep, false, err
	}
}

// httpResponse is what came, up to the body.
type httpResponse struct {
	exchange *httpExchange
	status   uint16
	headers  *httpFields
	consumed bool
}

// Close implements [io.Closer].
func (r *httpResponse) Close() error { return errors.Join(r.headers.Close(), r.exchange.Close()) }

// httpIncoming is the body of a response, and its stream.
type httpIncoming struct {
	exchange *httpExchange
	streamed bool
	at       uint64
	ended    bool
}

// Close implements [io.Closer].
func (b *httpIncoming) Close() error { return b.exchange.Close() }

// httpIncomingStream is the stream of a body.
type httpIncomingStream struct{ body *httpIncoming }

// Close implements [io.Closer].
func (s httpIncomingStream) Close() error { return s.body.Close() }

func (s httpIncomingStream) waits(*call) (rep abi.Rep, ready bool, err error) {
	if s.body.ended {
		return 0, true, nil
	}
	rep, err = s.body.exchange.subscribe(abi.Variant{Case: stageBody, Value: s.body.at})
	return rep, false, err
}

func (s httpIncomingStream) read(c *call, most uint64, wait bool) ([]byte, bool, *streamFailure, error) {
	b := s.body
	if b.ended || most == 0 {
		return nil, b.ended, nil, nil
	}
	if !wait {
		rep, _, err := s.waits(c)
		if err != nil {
			return nil, false, nil, err
		}
		v, err := c.gate(c.host.wasi[abi.PollInterface+"#[method]pollable.ready"], []abi.Value{rep})
		if dropped := c.dropRep(rep); err == nil {
			err = dropped
		}
		if err != nil || !v.(bool) {
			return []byte{}, false, nil, err
		}
	}
	part := abi.Variant{Case: 1, Value: []abi.Value{b.at, uint32(min(most, abi.MaxBytes))}}
	v, failed, err := b.exchange.do("blob", part)
	if err != nil || failed != nil {
		return nil, false, c.httpFailure(failed, "HTTP-response-incomplete"), err
	}
	content := v.(abi.Rep)
	v, failed, err = c.through(blobInterface+"#[method]blob.bytes", content, uint64(0), uint32(abi.MaxBytes))
	if dropped := c.dropRep(content); err == nil {
		err = dropped
	}
	if err != nil || failed != nil {
		return nil, false, c.httpFailure(failed, "HTTP-response-incomplete"), err
	}
	data := v.([]byte)
	b.at += uint64(len(data))
	b.ended = len(data) == 0
	return data, b.ended, nil, nil
}

// dropRep drops a handle of WASI's own.
func (c *call) dropRep(rep abi.Rep) error {
	if rep == 0 || c.handles.open[rep] == nil {
		return nil
	}
	return c.handles.remove(rep).close()
}

// httpFailure is the failure of a binding as wasi:http has it.
func (c *call) httpFailure(e *abi.Error, unavailable string) *streamFailure {
	if e == nil {
		return nil
	}
	f := &streamFailure{text: e.Error(), size: math.MaxUint64}
	switch e.Code {
	case abi.CodeDenied, abi.CodeRevoked, abi.CodeExpired:
		f.http = "HTTP-request-denied"
		if e.Denial == nil {
			c.wasi().note(f.text)
		}
	case abi.CodeTimedOut:
		f.http = "HTTP-response-timeout"
	case abi.CodeTooLarge:
		f.http, f.size = "HTTP-response-body-size", e.Size
	case abi.CodeUnavailable:
		f.http = unavailable
		c.wasi().note(f.text)
	default:
		f.http = "internal-error"
	}
	return f
}

// errorCode makes the case of a failure, in the error-code that the component declares.
func (f *streamFailure) errorCode(t *abi.Type) abi.Value {
	i, ok := caseOf(t, f.http)
	if !ok {
		i, ok = caseOf(t, "internal-error")
	}
	if !ok {
		return abi.Variant{}
	}
	payload := t.Cases[i].Type
	v, _ := zero(payload) // error-code holds no handles: see emptyAnswer
	if payload != nil && payload.Kind == abi.KindOption {
		switch {
		case payload.Elem.Kind == abi.KindString:
			v = abi.Variant{Case: 1, Value: printable.Short(f.text, 4*kib)}
		case payload.Elem.Kind == abi.KindU64 && f.size != math.MaxUint64:
			v = abi.Variant{Case: 1, Value: f.size}
		case payload.Elem.Kind == abi.KindU32 && f.size <= math.MaxUint32:
			v = abi.Variant{Case: 1, Value: uint32(f.size)}
		}
	}
	return abi.Variant{Case: i, Value: v}
}

const saysHTTP = "by the binding of http that `wasi` names"

// httpFuncs are the functions of wasi:http that a client uses.
func httpFuncs(all map[string]worldFunc) {
	const types = "wasi:http/types#"
	pure := func(name, shape string, do func(o *httpOp) (abi.Value, error)) {
		all[types+name] = worldFunc{shape: shape, says: "for requests " + saysHTTP, answer: func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
			return do(&httpOp{c, f, args})
		}}
	}
	outside := func(name, shape string, do func(o *httpOp) (abi.Value, error)) {
		all[name] = worldFunc{shape: shape, says: saysHTTP + "; without one, refused with HTTP-request-denied", uses: httpInterface, through: func(c *call, _ answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
			return do(&httpOp{c, f, args})
		}}
	}
	pure("[constructor]fields", "func() -> own<fields>", func(o *httpOp) (abi.Value, error) { return o.give(o.f.Result, &httpFields{world: o.c.wasi()}) })
	pure("[static]fields.from-list", "func(list<tuple<string,list<u8>>>) -> result<own<fields>,variant>", fieldsFromList)
	pure("[method]fields.get", "func(borrow<fields>,string) -> list<list<u8>>", fieldsGet)
	pure("[method]fields.has", "func(borrow<fields>,string) -> bool", fieldsHas)
	pure("[method]fields.set", "func(borrow<fields>,string,list<list<u8>>) -> result<_,variant>", fieldsSet)
	pure("[method]fields.append", "func(borrow<fields>,string,list<u8>) -> result<_,variant>", fieldsAppend)
	pure("[method]fields.delete", "func(borrow<fields>,string) -> result<_,variant>", fieldsDelete)
	pure("[method]fields.entries", "func(borrow<fields>) -> list<tuple<string,list<u8>>>", fieldsEntries)
	pure("[method]fields.clone", "func(borrow<fields>) -> own<fields>", fieldsClone)

	pure("[constructor]outgoing-request", "func(own<fields>) -> own<outgoing-request>", newOutgoing)
	pure("[method]outgoing-request.body", "func(borrow<outgoing-request>) -> result<own<outgoing-body>,_>", outgoingBody)
	pure("[method]outgoing-request.method", "func(borrow<outgoing-request>) -> variant", func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpRequest](o, 0)
		if err != nil {
			return nil, err
		}
		return o.methodOf(r), nil
	})
	pure("[method]outgoing-request.set-method", "func(borrow<outgoing-request>,variant) -> result", setMethod)
	for _, part := range []string{"path-with-query", "authority"} {
		pure("[method]outgoing-request."+part, "func(borrow<outgoing-request>) -> option<string>", partOf(part))
		pure("[method]outgoing-request.set-"+part, "func(borrow<outgoing-request>,option<string>) -> result", setPart(part))
	}
	pure("[method]outgoing-request.scheme", "func(borrow<outgoing-request>) -> option<variant>", partOf("scheme"))
	pure("[method]outgoing-request.set-scheme", "func(borrow<outgoing-request>,option<variant>) -> result", setPart("scheme"))
	pure("[method]outgoing-request.headers", "func(borrow<outgoing-request>) -> own<fields>", func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpRequest](o, 0)
		if err != nil {
			return nil, err
		}
		return o.giveFields(o.f.Result, r.headers)
	})
	pure("[constructor]request-options", "func() -> own<request-options>", func(o *httpOp) (abi.Value, error) {
		return o.give(o.f.Result, &httpOptions{map[string]uint64{}})
	})
	for _, name := range []string{"connect-timeout", "first-byte-timeout", "between-bytes-timeout"} {
		pure("[method]request-options."+name, "func(borrow<request-options>) -> option<u64>", func(o *httpOp) (abi.Value, error) {
			r, err := argument[*httpOptions](o, 0)
			if err != nil {
				return nil, err
			}
			if n, has := r.timeouts[name]; has {
				return abi.Variant{Case: 1, Value: n}, nil
			}
			return abi.Variant{}, nil
		})
		pure("[method]request-options.set-"+name, "func(borrow<request-options>,option<u64>) -> result", func(o *httpOp) (abi.Value, error) {
			r, err := argument[*httpOptions](o, 0)
			if err != nil {
				return nil, err
			}
			delete(r.timeouts, name)
			if given := o.args[1].(abi.Variant); given.Case == 1 {
				r.timeouts[name] = given.Value.(uint64)
			}
			return okResult(nil), nil
		})
	}
	outside("wasi:http/outgoing-handler#handle", "func(own<outgoing-request>,option<own<request-options>>) -> result<own<future-incoming-response>,variant>", handleOutgoing)
	pure("[method]outgoing-body.write", "func(borrow<outgoing-body>) -> result<own<output-stream>,_>", func(o *httpOp) (abi.Value, error) {
		b, err := argument[*httpBody](o, 0)
		if err != nil || b.taken {
			return abi.Variant{Case: 1}, err
		}
		b.taken = true
		return o.giveOk(httpBodyWriter{b})
	})
	outside(types+"[static]outgoing-body.finish", "func(own<outgoing-body>,option<own<fields>>) -> result<_,variant>", finishBody)
	outside(types+"[method]future-incoming-response.subscribe", "func(borrow<future-incoming-response>) -> own<pollable>", func(o *httpOp) (abi.Value, error) {
		f, err := argument[*httpFuture](o, 0)
		if err != nil {
			return nil, err
		}
		return o.c.subscribeTo(o.f, f)
	})
	outside(types+"[method]future-incoming-response.get", "func(borrow<future-incoming-response>) -> option<result<result<own<incoming-response>,variant>,_>>", futureGet)
	pure("[method]incoming-response.status", "func(borrow<incoming-response>) -> u16", func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpResponse](o, 0)
		if err != nil {
			return nil, err
		}
		return r.status, nil
	})
	pure("[method]incoming-response.headers", "func(borrow<incoming-response>) -> own<fields>", func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpResponse](o, 0)
		if err != nil {
			return nil, err
		}
		return o.giveFields(o.f.Result, r.headers)
	})
	pure("[method]incoming-response.consume", "func(borrow<incoming-response>) -> result<own<incoming-body>,_>", func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpResponse](o, 0)
		if err != nil || r.consumed {
			return abi.Variant{Case: 1}, err
		}
		r.consumed = true
		return o.giveOk(&httpIncoming{exchange: r.exchange.hold()})
	})
	pure("[method]incoming-body.stream", "func(borrow<incoming-body>) -> result<own<input-stream>,_>", func(o *httpOp) (abi.Value, error) {
		b, err := argument[*httpIncoming](o, 0)
		if err != nil || b.streamed {
			return abi.Variant{Case: 1}, err
		}
		b.streamed = true
		b.exchange.hold()
		return o.giveOk(httpIncomingStream{b})
	})
	pure("[static]incoming-body.finish", "func(own<incoming-body>) -> own<future-trailers>", func(o *httpOp) (abi.Value, error) {
		if _, err := argument[*httpIncoming](o, 0); err != nil {
			return nil, err
		}
		if err := o.c.handles.remove(o.args[0].(abi.Rep)).close(); err != nil {
			return nil, err
		}
		return o.give(o.f.Result, &httpTrailers{})
	})
	pure("[method]future-trailers.subscribe", "func(borrow<future-trailers>) -> own<pollable>", func(o *httpOp) (abi.Value, error) { return readyHandle(o.c, o.f, o.args) })
	pure("[method]future-trailers.get", "func(borrow<future-trailers>) -> option<result<result<option<own<fields>>,variant>,_>>", func(o *httpOp) (abi.Value, error) {
		t, err := argument[*httpTrailers](o, 0)
		if err != nil {
			return nil, err
		}
		if t.taken {
			return abi.Variant{Case: 1, Value: abi.Variant{Case: 1}}, nil
		}
		t.taken = true
		return abi.Variant{Case: 1, Value: okResult(okResult(abi.Variant{}))}, nil
	})
	pure("http-error-code", "func(borrow<error>) -> option<variant>", func(o *httpOp) (abi.Value, error) {
		value, err := o.c.argument(o.f, o.args, 0)
		if failed, ok := value.(*streamFailure); ok && failed.http != "" {
			return abi.Variant{Case: 1, Value: failed.errorCode(o.f.Result.Elem)}, nil
		}
		return abi.Variant{}, err
	})
	all[types+"[static]response-outparam.set"] = worldFunc{shape: "func(own<response-outparam>,result<own<outgoing-response>,variant>)", says: "ends the call", answer: func(*call, *abi.Func, []abi.Value) (abi.Value, error) {
		return nil, &TrapError{Reason: "wasi:http/types#[static]response-outparam.set: a component answers no requests of http here"}
	}}
}

// httpTrailers are those of a response, which are not passed on.
type httpTrailers struct{ taken bool }

// httpOp is one function of wasi:http at work.
type httpOp struct {
	c    *call
	f    *abi.Func
	args []abi.Value
}

// argument is the value of a handle, which must be a T.
func argument[T any](o *httpOp, i int) (T, error) {
	value, err := o.c.argument(o.f, o.args, i)
	v, ok := value.(T)
	if err == nil && !ok {
		err = &TrapError{Reason: o.f.Name + " of a handle that leads nowhere"}
	}
	return v, err
}

// give makes a handle.
func (o *httpOp) give(t *abi.Type, value any) (abi.Value, error) {
	rep, err := o.c.handles.addForeign(&handle{resource: t.Resource, value: value})
	if err != nil {
		h := handle{value: value}
		return nil, errors.Join(err, h.close())
	}
	return rep, nil
}

// giveOk makes a handle in the result.
func (o *httpOp) giveOk(value any) (abi.Value, error) {
	rep, err := o.give(o.f.Result.Ok, value)
	if err != nil {
		return nil, err
	}
	return okResult(rep), nil
}

// giveFields makes a handle of a copy that cannot be changed.
func (o *httpOp) giveFields(t *abi.Type, fields *httpFields) (abi.Value, error) {
	same, err := fields.copied(true)
	if err != nil {
		return nil, err
	}
	return o.give(t, same)
}

// headerError is a header-error as the result.
func headerError(t *abi.Type, name string) abi.Value {
	i, _ := caseOf(t.Err, name)
	payload, _ := zero(t.Err.Cases[i].Type)
	return abi.Variant{Case: 1, Value: abi.Variant{Case: i, Value: payload}}
}

func fieldsFromList(o *httpOp) (abi.Value, error) {
	fields := &httpFields{world: o.c.wasi()}
	for _, e := range o.args[0].([]abi.Value) {
		pair := e.([]abi.Value)
		name, value := pair[0].(string), pair[1].([]byte)
		problem, err := fieldProblem(name, value), error(nil)
		if problem == "" {
			err = fields.add(name, value)
		}
		if err != nil || problem != "" {
			_ = fields.Close() // it does not fail
			return headerError(o.f.Result, problem), err
		}
	}
	return o.giveOk(fields)
}

func fieldsGet(o *httpOp) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	values := []abi.Value{}
	for _, one := range fields.list {
		if strings.EqualFold(one.name, o.args[1].(string)) {
			values = append(values, one.value)
		}
	}
	return values, nil
}

func fieldsHas(o *httpOp) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	return slices.ContainsFunc(fields.list, func(one httpField) bool { return strings.EqualFold(one.name, o.args[1].(string)) }), nil
}

// change changes fields, if they can be.
func (o *httpOp) change(do func(f *httpFields, name string) error, values ...[]byte) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	name := o.args[1].(string)
	if fields.fixed {
		return headerError(o.f.Result, "immutable"), nil
	}
	if problem := fieldProblem(name, values...); problem != "" {
		return headerError(o.f.Result, problem), nil
	}
	if err := do(fields, name); err != nil {
		return nil, err
	}
	return okResult(nil), nil
}

func fieldsSet(o *httpOp) (abi.Value, error) {
	var values [][]byte
	for _, v := range o.args[2].([]abi.Value) {
		values = append(values, v.([]byte))
	}
	return o.change(func(f *httpFields, name string) error {
		f.remove(name)
		for _, v := range values {
			if err := f.add(name, v); err != nil {
				return err
			}
		}
		return nil
	}, values...)
}

func fieldsAppend(o *httpOp) (abi.Value, error) {
	value := o.args[2].([]byte)
	return o.change(func(f *httpFields, name string) error { return f.add(name, value) }, value)
}

func fieldsDelete(o *httpOp) (abi.Value, error) {
	return o.change(func(f *httpFields, name string) error { f.remove(name); return nil })
}

func fieldsEntries(o *httpOp) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	all := make([]abi.Value, len(fields.list))
	for i, one := range fields.list {
		all[i] = []abi.Value{one.name, one.value}
	}
	return all, nil
}

func fieldsClone(o *httpOp) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	same, err := fields.copied(false)
	if err != nil {
		return nil, err
	}
	return o.give(o.f.Result, same)
}

func newOutgoing(o *httpOp) (abi.Value, error) {
	fields, err := argument[*httpFields](o, 0)
	if err != nil {
		return nil, err
	}
	o.c.handles.remove(o.args[0].(abi.Rep))
	return o.give(o.f.Result, &httpRequest{headers: fields})
}

func outgoingBody(o *httpOp) (abi.Value, error) {
	r, err := argument[*httpRequest](o, 0)
	if err != nil || r.body != nil {
		return abi.Variant{Case: 1}, err
	}
	r.body = &httpBody{world: o.c.wasi()}
	return o.giveOk(r.body)
}

// methodOf is the method of a request in the type of the result. The first case is that of a new request.
func (o *httpOp) methodOf(r *httpRequest) abi.Value {
	if r.methodType == nil {
		i, _ := caseOf(o.f.Result, "get")
		return abi.Variant{Case: i}
	}
	return r.method
}

func setMethod(o *httpOp) (abi.Value, error) {
	r, err := argument[*httpRequest](o, 0)
	if err != nil {
		return nil, err
	}
	t, v := o.f.Params[1].Type, o.args[1].(abi.Variant)
	if fieldProblem(methodName(t, v)) == "invalid-syntax" {
		return abi.Variant{Case: 1}, nil
	}
	r.methodType, r.method = t, v
	return okResult(nil), nil
}

// methodName is the method of http.
func methodName(t *abi.Type, v abi.Variant) string {
	if t == nil {
		return "GET"
	}
	if other, ok := v.Value.(string); ok {
		return other
	}
	return strings.ToUpper(t.Cases[v.Case].Name)
}

// part is a field of the request for a part of the URL.
func (r *httpRequest) part(name string) *abi.Variant {
	switch name {
	case "scheme":
		return &r.scheme
	case "authority":
		return &r.authority
	default:
		return &r.path
	}
}

func partOf(name string) func(o *httpOp) (abi.Value, error) {
	return func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpRequest](o, 0)
		if err != nil {
			return nil, err
		}
		return *r.part(name), nil
	}
}

// setPart sets a part of the URL. What the whole means, and whether it is allowed, is up to the binding.
func setPart(name string) func(o *httpOp) (abi.Value, error) {
	return func(o *httpOp) (abi.Value, error) {
		r, err := argument[*httpRequest](o, 0)
		if err != nil {
			return nil, err
		}
		given := o.args[1].(abi.Variant)
		text, _ := given.Value.(string)
		switch {
		case len(text) > maxURL, strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return abi.Variant{Case: 1}, nil
		case name == "authority" && strings.ContainsAny(text, `/\?#@`):
			return abi.Variant{Case: 1}, nil
		case name == "path-with-query" && text != "" && text[0] != '/' && text[0] != '?':
			return abi.Variant{Case: 1}, nil
		}
		if name == "scheme" {
			r.schemeType = o.f.Params[1].Type.Elem
		}
		*r.part(name) = given
		return okResult(nil), nil
	}
}

// url is the URL of the request. It is empty if there can be none.
func (r *httpRequest) url() string {
	scheme := "https"
	if r.scheme.Case == 1 {
		s := r.scheme.Value.(abi.Variant)
		if other, ok := s.Value.(string); ok {
			scheme = other
		} else {
			scheme = strings.ToLower(r.schemeType.Cases[s.Case].Name)
		}
	}
	authority, _ := r.authority.Value.(string)
	path, _ := r.path.Value.(string)
	if authority == "" || scheme != "http" && scheme != "https" {
		return ""
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

// refused is an error-code as the result.
func (o *httpOp) refused(f *streamFailure) abi.Value {
	return abi.Variant{Case: 1, Value: f.errorCode(o.f.Result.Err)}
}

func handleOutgoing(o *httpOp) (abi.Value, error) {
	c := o.c
	r, err := argument[*httpRequest](o, 0)
	if err != nil {
		return nil, err
	}
	future := &httpFuture{call: c, request: r}
	options := o.args[1].(abi.Variant)
	if options.Case == 1 {
		h, err := c.handles.find(options.Value.(abi.Rep), o.f.Params[1].Type.Elem.Resource)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.f.Name, err)
		}
		if given, ok := h.value.(*httpOptions); ok {
			future.timeout = given.sum()
		}
	}
	for i, p := range o.f.Params { // they are the host's now
		c.handles.forget(p.Type, o.args[i])
	}
	name := c.served().HTTP
	switch {
	case name == "":
		_ = r.Close() // it does not fail
		d := abi.Denial{Operation: o.f.Interface.Name + "#" + o.f.Name, Reason: "no binding serves it; a manifest names one in \"wasi\": {\"http\": NAME}"}
		c.usage.record(d)
		c.wasi().note("denied: " + d.Operation + ": " + d.Reason)
		return o.refused(&streamFailure{http: "HTTP-request-denied", text: d.Reason}), nil
	case r.url() == "":
		_ = r.Close()
		return o.refused(&streamFailure{http: "HTTP-request-URI-invalid", text: "a URL has an authority, and the scheme http or https"}), nil
	case r.body == nil || r.body.state == bodyDone:
		if err := future.start(); err != nil {
			return nil, err
		}
		if future.failed != nil {
			return o.refused(future.failed), nil
		}
	default:
		r.body.pending = future
	}
	return o.giveOk(future)
}

// sum is the time that the whole exchange has, in nanoseconds.
func (h *httpOptions) sum() (total uint64) {
	for _, n := range h.timeouts {
		if total += n; total < n {
			return math.MaxUint64
		}
	}
	return total
}

// start makes the request.
func (f *httpFuture) start() error {
	c, r := f.call, f.request
	f.request = nil
	defer func() { _ = r.Close() }() // it does not fail
	rep, failed, err := c.client()
	if err != nil {
		return err
	}
	if failed == nil {
		headers := []abi.Value{}
		for _, one := range r.headers.list {
			switch strings.ToLower(one.name) {
			case "content-length", "accept-encoding": // the binding makes them
			default:
				headers = append(headers, []abi.Value{one.name, string(one.value)})
			}
		}
		const contentNone, contentBytes, redirectManual = 0, 2, 1
		content := abi.Variant{Case: contentNone}
		if r.body != nil && len(r.body.data) > 0 {
			content = abi.Variant{Case: contentBytes, Value: bytes.Clone(r.body.data)}
			r.body.free()
		}
		timeout := abi.Variant{}
		if f.timeout > 0 {
			timeout = abi.Variant{Case: 1, Value: uint32(min(max(f.timeout/1_000_000, 1), math.MaxUint32))}
		}
		var v abi.Value
		v, failed, err = c.through(httpInterface+"#[method]client.start", rep, []abi.Value{methodName(r.methodType, r.method), r.url(), headers, content, abi.Variant{Case: redirectManual}, timeout})
		if err != nil {
			return err
		}
		if failed == nil {
			f.exchange = (&httpExchange{call: c, rep: v.(abi.Rep)}).hold()
			return nil
		}
	}
	f.failed = c.httpFailure(failed, "destination-unavailable")
	return nil
}

// client is the handle of the binding that serves http.
func (c *call) client() (abi.Rep, *abi.Error, error) {
	w := c.wasi()
	if w.client != 0 {
		return w.client, nil, nil
	}
	if err := c.openEnv(); err != nil {
		return 0, nil, err
	}
	v, failed, err := c.through(httpInterface+"#get", ownEnv, c.served().HTTP)
	if err != nil || failed != nil {
		return 0, failed, err
	}
	w.client = v.(abi.Rep)
	return w.client, nil, nil
}

func finishBody(o *httpOp) (abi.Value, error) {
	b, err := argument[*httpBody](o, 0)
	if err != nil {
		return nil, err
	}
	trailers := o.args[1].(abi.Variant).Case == 1
	o.c.handles.forget(o.f.Params[0].Type, o.args[0])
	if trailers {
		if err := o.c.handles.remove(o.args[1].(abi.Variant).Value.(abi.Rep)).close(); err != nil {
			return nil, err
		}
	}
	future := b.pending
	b.pending = nil
	refused := b.failed
	switch {
	case trailers:
		refused = &streamFailure{http: "HTTP-request-trailer-section-size", size: 0, text: "a request has no trailers here"}
	case refused == nil && b.state != bodyOpen:
		refused = &streamFailure{http: "HTTP-protocol-error", text: "the body has ended already"}
	}
	if refused != nil {
		b.state = bodyDropped
		b.free()
		if future != nil && future.request != nil {
			_ = future.request.Close() // it does not fail
			future.request, future.failed = nil, refused
		}
		return o.refused(refused), nil
	}
	b.state = bodyDone
	if future == nil || future.request == nil {
		return okResult(nil), nil
	}
	if err := future.start(); err != nil {
		return nil, err
	}
	if future.failed != nil {
		return o.refused(future.failed), nil
	}
	return okResult(nil), nil
}

func futureGet(o *httpOp) (abi.Value, error) {
	f, err := argument[*httpFuture](o, 0)
	if err != nil {
		return nil, err
	}
	some := func(v abi.Value) abi.Value { return abi.Variant{Case: 1, Value: v} }
	if f.taken {
		return some(abi.Variant{Case: 1}), nil
	}
	rep, ready, err := f.waits(o.c)
	if err != nil {
		return nil, err
	}
	if rep != 0 {
		v, err := o.c.gate(o.c.host.wasi[abi.PollInterface+"#[method]pollable.ready"], []abi.Value{rep})
		if dropped := o.c.dropRep(rep); err == nil {
			err = dropped
		}
		if err != nil {
			return nil, err
		}
		ready = v.(bool)
	}
	if !ready {
		return abi.Variant{}, nil
	}
	f.taken = true
	answer := o.f.Result.Elem.Ok
	if f.failed == nil {
		v, failed, err := f.exchange.do("head")
		if err != nil {
			return nil, err
		}
		if failed == nil {
			response, err := o.response(f.exchange, v)
			if err != nil {
				return nil, err
			}
			rep, err := o.give(answer.Ok, response)
			if err != nil {
				return nil, err
			}
			return some(okResult(okResult(rep))), nil
		}
		f.failed = o.c.httpFailure(failed, "destination-unavailable")
	}
	return some(okResult(abi.Variant{Case: 1, Value: f.failed.errorCode(answer.Err)})), nil
}

// response is the response of a head of the binding.
func (o *httpOp) response(e *httpExchange, head abi.Value) (*httpResponse, error) {
	fields := head.([]abi.Value)
	r := &httpResponse{exchange: e.hold(), status: fields[0].(uint16), headers: &httpFields{world: o.c.wasi(), fixed: true}}
	for _, h := range fields[3].([]abi.Value) {
		pair := h.([]abi.Value)
		if err := r.headers.add(pair[0].(string), []byte(pair[1].(string))); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}
