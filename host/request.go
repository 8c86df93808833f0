package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/abi"
)

// Request is one call of a tool.
type Request struct {
	Tool string
	// Code, if not nil, runs instead of the component's own code. The component must export stile:extension/evaluator.
	Code *Code
	// Name is the call's name in errors when other tools start it. Default: Tool.
	Name string
	// Extension names what the tool belongs to, such as an extension or a file. Only the recording has it, up to 256 bytes.
	Extension string
	// User is whose call it is, such as an agent. One user has at most three quarters of Options.Instances, and a free one goes to the
	// user who has the fewest. Turns to execute are shared fairly too. Default: the caller's, for a call that another call starts. Calls of nobody
	// share what is there.
	User string
	// Input is JSON. An empty one means `{}`.
	Input []byte
	// Env is the whole authority of the call.
	Env Env
	// Vars are what the component's code reads as configuration: a JSON object of at most [MaxVars] bytes. They are data, and no secret: a
	// recording has them if the code read them. Tools that the call starts have their own. Empty means `{}`.
	Vars []byte
	// WASI says which bindings of Env serve files and http of WASI 0.2. Each must be there, and of the right interface.
	WASI abi.WASI
	// Limits that are not zero override the host's defaults.
	Limits Limits
	// Approved, if not nil, are the definitions a person approved: only these tools can be called, with these schemas.
	Approved []abi.Definition
	// Observe, if not nil, receives every operation once, after it ends. Two calls of it never overlap.
	Observe func(Operation)
	// Idle, if not nil, is called when the guest waits and nothing is ready, before the host waits. If it returns true, the host checks
	// again. This lets a test clock advance instead of waiting.
	Idle func() bool
	// Recorder receives the recording of this call. Default: Options.Recorder.
	Recorder Recorder
	// Begin, if not nil, is called after the call has waited for its place, before any guest code runs. Its error becomes the call's
	// error; such a call never begins and is not recorded.
	Begin func(context.Context) error
	// Durable, if not nil, makes the call durable. The component must not use WASI, and the request must have no Code. A call that goes on has
	// the tool and the input that it began with. Its wall clock counts the time that it does not sleep.
	Durable *Durable

	record *record
	replay *player
}

// MaxVars is the largest [Request.Vars] in bytes.
const MaxVars = 64 * kib

// vars is what the guest reads.
func (r *Request) vars() string { return cmp.Or(string(r.Vars), "{}") }

// checkVars refuses vars that no guest could read.
func (r *Request) checkVars() error {
	text := bytes.TrimSpace(r.Vars)
	switch {
	case len(r.Vars) > MaxVars:
		return fmt.Errorf("the vars of a call have %d bytes; %d are allowed", len(r.Vars), MaxVars)
	case len(r.Vars) > 0 && (len(text) == 0 || text[0] != '{' || !json.Valid(text)):
		return errors.New("the vars of a call are no JSON object")
	default:
		return nil
	}
}

// Code is a program that comes with a call. A toolchain makes it from the author's source. It is trusted no more than a component.
type Code struct {
	// Text is an ES module. Stacks call it [BundleName]. It counts towards the limit on input.
	Text string
	// SourceMap, if not nil, returns the source map from Text to the author's files. It is called only to show a stack.
	SourceMap func() []byte
}

func (c *Code) text() string {
	if c == nil {
		return ""
	}
	return c.Text
}

func (c *Code) sourceMap() []byte {
	if c == nil || c.SourceMap == nil {
		return nil
	}
	return c.SourceMap()
}

// Result is the result of a call. Do also returns its Usage together with an error.
type Result struct {
	// Output is valid JSON.
	Output []byte
	Usage  Usage
	Phases Phases

	keeps func(ctx context.Context, output []byte) error
}

// Keeps checks whether another output, such as a part of Output to show instead, also fits the tool's output schema.
func (r Result) Keeps(ctx context.Context, output []byte) error {
	if r.keeps == nil {
		return nil
	}
	return r.keeps(ctx, output)
}

// Phases says where the wall-clock time of a call went. The rest is spent on input and output.
type Phases struct {
	// Open is the time from the start of the call, or from when an instance was free, to an empty store. Instantiate is the time to
	// make the instance. Run is the time of the guest and its capabilities. Close is the time to drop everything.
	Open, Instantiate, Run, Close time.Duration
}

// Usage counts the resources that a call consumed.
type Usage struct {
	// CPU is processor time, as [Limits] counts it, without the time of tools that the call started.
	CPU time.Duration
	// Operations is how many imported functions were called.
	Operations int
	// Denials are the host's record of denied operations, each once, in order. The guest may have continued after them. There are at
	// most 100, with texts of some 64 KiB, and the last one is the latest. DenialsDropped counts the others.
	Denials        []abi.Denial
	DenialsDropped int
	// Interrupted is how many operations of a durable call were answered with [abi.ErrInterrupted].
	Interrupted int
}
