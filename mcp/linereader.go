package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/stilehost/stile/internal/jsonform"
)

// lineReader passes on only lines that are messages, and answers the others.
type lineReader struct {
	lines  *bufio.Reader
	refuse io.Writer
}

// next returns the next message, or the error that ends the connection.
func (r *lineReader) next(ctx context.Context) arrival {
	for {
		shared := &body{}
		line, outline, err := r.line(shared)
		var m jsonrpc.Message
		var stowed map[string]json.RawMessage
		var id json.RawMessage
		var bad *jsonrpc.Error
		switch {
		case outline != nil:
			id, bad = idOf(outline.text), invalid("%v", outline.why)
		case len(line) == 0:
		default:
			if busy := shared.parse(ctx); busy != nil {
				id, bad = idOf(line), invalid("%v", busy)
			} else {
				m, stowed, id, bad = readLine(line)
			}
		}
		shared.parsed()
		if m != nil {
			return arrival{message: m, stowed: stowed, shared: shared}
		}
		shared.giveBack()
		if bad != nil {
			err = r.answer(id, bad)
		}
		if err != nil {
			return arrival{shared: shared, err: err}
		}
	}
}

// line reads a line without its end and surrounding space, which takes its share of the process's bodies as it arrives. Of a line that
// is too long, that finds no room, or that does not arrive in time, it keeps only an outline, and returns why.
func (r *lineReader) line(shared *body) (line []byte, short *outline, err error) {
	a := arriving{shared: shared}
	defer a.stop()
	for {
		part, err := r.lines.ReadSlice('\n')
		a.add(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			a.stop()
			if a.short.why == nil {
				return bytes.TrimSpace(a.line), nil, err
			}
			return nil, &a.short, err
		}
	}
}

// arriving is a line of which a part has arrived.
type arriving struct {
	late *time.Timer

	mu     sync.Mutex
	shared *body
	line   []byte
	short  outline // if the line has several parts or is refused
}

// add takes the next part. The first part of an unfinished line starts the time in which the rest must arrive, because the line takes
// room that others need.
func (a *arriving) add(part []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.late == nil && !bytes.HasSuffix(part, []byte("\n")) {
		a.late = time.AfterFunc(readTime, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.cut(fmt.Errorf("a line did not arrive within %v", readTime))
		})
	}
	switch {
	case a.short.why != nil:
	case len(a.line)+len(part) > maxLine+len("\r\n"):
		a.cut(fmt.Errorf("a line has more than %d MiB", maxLine>>20))
	case !a.shared.growOrGiveBack(int64(len(part))):
		a.cut(errBusy)
	default:
		a.line = append(a.line, part...)
	}
	if a.late != nil || a.short.why != nil {
		a.short.add(part)
	}
}

// cut keeps only the outline of the line, and gives its share back.
func (a *arriving) cut(why error) {
	if a.short.why != nil || a.shared == nil {
		return
	}
	a.short.why, a.line = why, nil
	a.shared.giveBack()
}

// stop ends the time. The caller owns the share now.
func (a *arriving) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.late != nil {
		a.late.Stop()
	}
	a.shared = nil
}

// outline is a message of which only the top level is kept, and at most maxFirst bytes of it, to tell its id.
type outline struct {
	why     error // the message is refused
	text    []byte
	depth   int
	quoted  bool
	escaped bool
}

func (o *outline) add(part []byte) {
	for _, c := range part {
		keep := o.depth <= 1
		switch {
		case o.escaped:
			o.escaped = false
		case o.quoted:
			o.quoted, o.escaped = c != '"', c == '\\'
		case c == '"':
			o.quoted = true
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
			keep = o.depth <= 1
		}
		if keep && len(o.text) < maxFirst {
			o.text = append(o.text, c)
		}
	}
}

// readLine returns the message of a line and the arguments that it took out of it, or else what is wrong and which id to answer to, if the
// line has one.
func readLine(line []byte) (m jsonrpc.Message, stowed map[string]json.RawMessage, id json.RawMessage, bad *jsonrpc.Error) {
	switch {
	case !json.Valid(line):
		return nil, nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is not JSON"}
	case line[0] == '[':
		return nil, nil, nil, invalid("a line is a JSON array; send one message per line")
	}
	messages, id, bad := checkMessages(line)
	if bad != nil {
		return nil, nil, id, bad
	}
	rest, stowed, bad := stow(line, maxRest)
	if bad != nil {
		return nil, nil, idOf(line), bad
	}
	if stowed == nil && len(messages) == 1 && jsonform.Depth(line) <= maxNested {
		if r := messages[0].request(); r != nil {
			return r, nil, nil, nil
		}
	}
	m, err := jsonrpc.DecodeMessage(rest)
	if err != nil {
		return nil, nil, nil, invalid("a line is not a JSON-RPC message")
	}
	return m, stowed, nil, nil
}

// maxNested is how deep JSON may be nested. The SDK says so of a line that is nested deeper.
const maxNested = 1000

// request is a request with an id, as the SDK would decode it with much more garbage. It is nil for any other message.
func (m message) request() *jsonrpc.Request {
	var method string
	var id any
	params := m["params"]
	if string(m["jsonrpc"]) != `"2.0"` || m["result"] != nil || m["error"] != nil || len(m["method"]) == 0 || m["method"][0] != '"' || len(params) == 0 || params[0] == 'n' ||
		json.Unmarshal(m["method"], &method) != nil || len(m["id"]) == 0 || json.Unmarshal(m["id"], &id) != nil {
		return nil
	}
	made, err := jsonrpc.MakeID(id)
	if err != nil || !made.IsValid() {
		return nil
	}
	return &jsonrpc.Request{ID: made, Method: method, Params: params}
}

// answer answers a line that does not reach the SDK.
func (r *lineReader) answer(id json.RawMessage, bad *jsonrpc.Error) error {
	text, err := errorMessage(id, bad)
	if err != nil {
		return err
	}
	_, err = r.refuse.Write(append(text, '\n'))
	return err
}
