// Package protocol has the messages between a runner of the conformance suite and a host that it tests: JSON objects, one a line, on the
// host's standard input and output. conformance/README.md describes them for authors of hosts. Start starts a host program and speaks to it.
package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the protocol. It changes when a host that follows the old one would misread a message.
const Version = 1

// MaxLine is the largest line in bytes, in both directions.
const MaxLine = 8 << 20

// Request is what the runner sends. Exactly one of the pointers that Op needs is set.
type Request struct {
	ID int    `json:"id"`
	Op string `json:"op"` // hello, call, revoke or cancel

	Protocol int   `json:"protocol,omitempty"` // hello: the version that the runner speaks
	Call     *Call `json:"call,omitempty"`     // call

	Of      int    `json:"of,omitempty"`      // revoke, cancel: the id of the call
	Binding string `json:"binding,omitempty"` // revoke
	Reason  string `json:"reason,omitempty"`  // revoke
}

// Call is a call of one tool in a fresh instance.
type Call struct {
	// Component is the path of the component's file.
	Component string `json:"component"`
	Tool      string `json:"tool"`
	// Input is JSON text.
	Input string `json:"input"`
	// Env is the whole authority of the call.
	Env    map[string]Binding `json:"env,omitempty"`
	Limits Limits             `json:"limits,omitzero"`
	// Names has the answers of the resolver, which knows no other name. The n-th look-up of a name gets the n-th answer, and every later
	// one the last.
	Names map[string][][]string `json:"names,omitempty"`
}

// Limits bound a call. Zero means the host's default.
type Limits struct {
	Memory  int64 `json:"memory,omitempty"` // bytes of a linear memory
	CPU     int64 `json:"cpu,omitempty"`    // milliseconds of processor time
	Wall    int64 `json:"wall,omitempty"`   // milliseconds
	Input   int   `json:"input,omitempty"`  // bytes of JSON
	Output  int   `json:"output,omitempty"` // bytes of JSON
	Handles int   `json:"handles,omitempty"`
	Pending int   `json:"pending,omitempty"`
}

// Binding is a capability that a call gets.
type Binding struct {
	Kind string `json:"kind"` // http, workspace, browser, kv, clock, random, console or blob
	// Rules are those of http and browser.
	Rules []Rule `json:"rules,omitempty"`
	// Held and Received bound http: the bytes of responses that the host holds at once, and that a call receives in all.
	Held     int64 `json:"held,omitempty"`
	Received int64 `json:"received,omitempty"`
	// Directory is the folder of a workspace, and Access is read or read-write.
	Directory string `json:"directory,omitempty"`
	Access    string `json:"access,omitempty"`
	// Store names the bucket of a kv. Buckets of other names are other buckets. They last until the host ends.
	Store string `json:"store,omitempty"`
	// Bytes is what blobs of one call may hold.
	Bytes int64  `json:"bytes,omitempty"`
	Grant *Grant `json:"grant,omitempty"`
}

// Rule allows requests, as docs/capabilities.md says.
type Rule struct {
	Scheme  string   `json:"scheme,omitempty"`
	Host    string   `json:"host"`
	Port    uint16   `json:"port,omitempty"`
	Methods []string `json:"methods,omitempty"`
	Path    string   `json:"path,omitempty"`
	Headers []string `json:"headers,omitempty"`
	// MaxResponse is in bytes.
	MaxResponse int64 `json:"maxResponse,omitempty"`
	// Addresses may be dialled although they are not public, as CIDR prefixes.
	Addresses []string `json:"addresses,omitempty"`
}

// Grant bounds a binding. Zero means no bound. A binding without one can be revoked too.
type Grant struct {
	Operations int64 `json:"operations,omitempty"`
	Bytes      int64 `json:"bytes,omitempty"`
	// Expires is in milliseconds from the start of the call. Negative means that it has expired already.
	Expires int64 `json:"expires,omitempty"`
}

// Response is what the host answers. Error says that it could not do what was asked.
type Response struct {
	ID     int     `json:"id"`
	Hello  *Hello  `json:"hello,omitempty"`
	Result *Result `json:"result,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Hello says what the host is and what it has. The runner skips cases that need more.
type Hello struct {
	Protocol int      `json:"protocol"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Kinds    []string `json:"kinds"`
}

// Outcomes of a call.
const (
	OK           = "ok"
	Failed       = "failed"        // the tool failed
	Denied       = "denied"        // a denial ended the call
	Limit        = "limit"         // a limit ended the call
	Trapped      = "trap"          // the guest did something that WebAssembly or the contract forbids
	Ended        = "ended"         // a grant ended during an operation that cannot return an error
	Refused      = "refused"       // the host does not load the component, or does not accept the description of its tools
	UnknownTool  = "unknown-tool"  //
	InvalidInput = "invalid-input" //
	Cancelled    = "cancelled"     //
	Fault        = "fault"         // the host failed
)

// Result is how a call ended.
type Result struct {
	Outcome string `json:"outcome"`
	// Output is JSON text, of the outcome ok.
	Output string `json:"output,omitempty"`
	// Limit names the limit: memory, cpu, wall, stack, input, output, handles, pending, bytes.
	Limit string `json:"limit,omitempty"`
	// Denial is that of the outcome denied.
	Denial *Denial `json:"denial,omitempty"`
	// Message is for people.
	Message string `json:"message,omitempty"`
	// Operations are the methods called on handles of the env and of what was derived from them, in order of their end.
	Operations []Operation `json:"operations,omitempty"`
	Log        []string    `json:"log,omitempty"`
}

// Denial is the record `denial` of stile:capability/types.
type Denial struct {
	Binding   string `json:"binding"`
	Operation string `json:"operation"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy"`
}

// Operation is one use of a capability.
type Operation struct {
	Binding string `json:"binding"`
	// Func is the resource and the method: "client.start".
	Func string `json:"func"`
	// Error is the case of the variant `error` that was returned.
	Error string `json:"error,omitempty"`
}

// ErrLine reports a line that is too long.
var ErrLine = fmt.Errorf("a line has more than %d bytes", MaxLine)

// Reader reads messages. It is not safe for concurrent use.
type Reader struct{ lines *bufio.Scanner }

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	return &Reader{lines}
}

// Read reads the next message into v. Its errors are io.EOF, ErrLine, a *LineError for a line that is not such a message, and those of
// the reader. After a *LineError the next line can be read.
func (r *Reader) Read(v any) error {
	if !r.lines.Scan() {
		err := r.lines.Err()
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return ErrLine
		case err != nil:
			return err
		}
		return io.EOF
	}
	line := r.lines.Bytes()
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		return &LineError{Line: string(line[:min(len(line), 200)]), Err: err}
	}
	return nil
}

// LineError reports a line that is not a message of the protocol.
type LineError struct {
	Line string // its beginning
	Err  error
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("the line %q is no message: %v", e.Line, e.Err)
}

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Write writes a message as one line.
func Write(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) >= MaxLine {
		return ErrLine
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
