package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// request is one tools/call.
type request struct {
	*endpoint
	session *session
	call    *sdk.CallToolRequest
	tool    *sdk.Tool
	builtin bool // the tool is one of Stile's own
	logs    logs

	mu      sync.Mutex
	unsent  []logged          // not yet sent to the client
	report  *console.Progress // the newest, until it is sent
	reports bool              // the tool reports its progress itself
	busy    bool              // a goroutine is sending
	awaited string            // the durable run whose end it waits for
	sending sync.WaitGroup

	telling sync.Mutex
	step    float64 // of the last progress
	told    bool    // there was one
}

type logged struct {
	level   console.Level
	message string
}

// begin admits a call, unless the session, the agent or the server has too many under way. done releases it.
func (e *endpoint) begin(call *sdk.CallToolRequest, tool *sdk.Tool) (r *request, done func(), err error) {
	s := e.session(call.Session, call.Extra)
	if err := s.calls.begin(); err != nil {
		return nil, nil, err
	}
	if err := e.calls.begin(); err != nil {
		s.calls.end()
		return nil, nil, err
	}
	if !e.places.calls.Take(e.viewer.String(), 1) {
		e.calls.end()
		s.calls.end()
		return nil, nil, &crowdedError{"all agents together", maxServerCalls, ", and an agent no more than remain for others"}
	}
	r = &request{endpoint: e, session: s, call: call, tool: tool}
	return r, func() {
		r.sending.Wait() // nothing is sent after the answer
		e.places.calls.Give(e.viewer.String(), 1)
		e.calls.end()
		s.calls.end()
	}, nil
}

// caller calls a registered tool.
func (e *endpoint) caller(name string, o *offer) sdk.ToolHandler {
	return func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		tool, err := o.shown(ctx, e)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
		}
		r, done, err := e.begin(call, tool)
		if err != nil {
			f, _ := e.explain(err, host.Usage{})
			return f.result(tool.OutputSchema != nil), nil
		}
		defer done()
		defer r.tick(ctx)()
		arguments, again, err := r.inputs(ctx)
		if err != nil {
			return r.fail(err, host.Usage{})
		}
		// What a person gave is for the version that the form named.
		do := func(arguments json.RawMessage, digest string) (host.Result, error) {
			return e.options.Manager.Call(ctx, lifecycle.Call{
				Viewer: e.viewer, Tool: tool.Name, Input: arguments, Digest: digest, Log: r.log(ctx), Progress: r.reported(ctx), Limits: e.options.Limits,
				Allowed: allowed(call.Extra),
			})
		}
		durable := false
		if e.options.Runs != nil {
			if d, ok := e.options.Manager.DurableTool(ctx, e.viewer, tool.Name); ok {
				durable = true
				do = func(arguments json.RawMessage, digest string) (host.Result, error) {
					return r.durably(ctx, d, arguments, digest)
				}
			}
		}
		digest := ""
		if again {
			digest = digestOf(tool)
		}
		result, err := do(arguments, digest)
		if err != nil && !again { // a person is asked once at most
			arguments, asks, wrong := r.complete(ctx, err, arguments)
			switch {
			case wrong != nil:
				return r.fail(wrong, host.Usage{})
			case asks != nil:
				return asks, nil
			case arguments != nil:
				result, err = do(arguments, digestOf(tool))
			}
		}
		if errors.As(err, new(*lifecycle.UnknownToolError)) { // the tool was removed just now
			if why := e.missing(ctx, tool.Name); why != nil {
				err = why
			}
		}
		if replaced, ok := errors.AsType[*lifecycle.ReplacedError](err); ok {
			err = mistake(replaced.Error())
		}
		if goes, ok := errors.AsType[*goesOnError](err); ok {
			return goes.result()
		}
		if err != nil {
			return r.fail(err, result.Usage)
		}
		if durable {
			return r.reply(result.Output, nil)
		}
		var keeps func([]byte) bool
		if tool.OutputSchema != nil {
			keeps = func(part []byte) bool { return result.Keeps(ctx, part) == nil }
		}
		return r.reply(result.Output, keeps)
	}
}

// fail reports a failure. A cancelled call gets no answer.
func (r *request) fail(err error, usage host.Usage) (*sdk.CallToolResult, error) {
	f, ok := r.explain(err, usage)
	if !ok {
		r.options.Logger.Error("a call over MCP", "tool", r.tool.Name, "error", err)
	}
	if f.Kind == "cancelled" {
		return nil, errors.New(f.Message)
	}
	f.Logs = r.logs.last()
	return f.result(!r.builtin && r.tool.OutputSchema != nil), nil
}

// log takes what a tool logs. It sends it to a client that wants it, without making the tool wait, and keeps the end to show if the
// call fails.
func (r *request) log(ctx context.Context) func(console.Level, string) {
	return func(level console.Level, message string) {
		message = printable.Text(message)
		r.logs.add(level.String(), message)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unsent = append(r.unsent, logged{level, message}) // a call logs no more than a console takes
		if !r.busy {
			r.busy = true
			r.sending.Go(func() { r.send(ctx) })
		}
	}
}

// send sends log lines until none is left.
func (r *request) send(ctx context.Context) {
	for {
		r.mu.Lock()
		lines, report := r.unsent, r.report
		r.unsent, r.report = nil, nil
		r.busy = len(lines) > 0 || report != nil
		r.mu.Unlock()
		if len(lines) == 0 && report == nil {
			return
		}
		if report != nil {
			r.progress(ctx, report.Done, report.Total, report.Message)
		}
		for _, l := range lines {
			_ = r.call.Session.Log(ctx, &sdk.LoggingMessageParams{Level: levels[l.level], Logger: r.tool.Name, Data: l.message}) //nolint:staticcheck // as in newEndpoint; a client that is gone reads no log
		}
	}
}

// levels maps the levels of a console to those of RFC 5424.
var levels = map[console.Level]sdk.LoggingLevel{ //nolint:staticcheck // as in newEndpoint
	console.Trace: "debug", console.Debug: "debug", console.Info: "info", console.Warn: "warning", console.Error: "error",
}

// reported takes how far a tool says it is, and sends it to a client that wants it, without making the tool wait. The newest report counts.
func (r *request) reported(ctx context.Context) func(console.Progress) {
	if r.call.Params.GetProgressToken() == nil {
		return nil
	}
	return func(p console.Progress) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report, r.reports = &p, true
		if !r.busy {
			r.busy = true
			r.sending.Go(func() { r.send(ctx) })
		}
	}
}

// progress tells a client that wants to know how much of a total a call has done. The protocol asks that the number rises each time.
func (r *request) progress(ctx context.Context, step, total float64, text string) {
	token := r.call.Params.GetProgressToken()
	if token == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.told {
		step = max(step, r.step+1e-6, math.Nextafter(r.step, math.Inf(1)))
	}
	r.step, r.told = step, true
	_ = r.call.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that is gone needs no progress
		ProgressToken: token, Progress: step, Total: total, Message: printable.Short(text, 500),
	})
}

// tick reports progress each second until stop is called, if the client wants it: the seconds so far and the last log line. A tool that
// reports its progress itself is not timed.
func (r *request) tick(ctx context.Context) (stop func()) {
	if r.call.Params.GetProgressToken() == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	seconds, stopTicks := r.options.ticks(time.Second)
	var wait sync.WaitGroup
	wait.Go(func() {
		for told := 0; ; {
			select {
			case now := <-seconds:
				if passed := int(now.Sub(began) / time.Second); passed > told {
					told = passed
					r.mu.Lock()
					itself, run := r.reports, r.awaited
					r.mu.Unlock()
					if !itself {
						r.progress(ctx, float64(passed), 0, cmp.Or(r.where(ctx, run), r.logs.message()))
					}
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		stopTicks()
		wait.Wait() // nothing is sent after the answer
	}
}

// logs keeps the last lines of a log.
type logs struct {
	mu     sync.Mutex
	lines  []string
	latest string // the last message, without its level
	bytes  int
	cut    bool
}

const maxLogs = 4 << 10 // bytes of a log that are shown

func (l *logs) add(level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = message
	line := printable.Cut(level+": "+message, maxLogs)
	l.lines, l.bytes = append(l.lines, line), l.bytes+len(line)+1
	for l.bytes > maxLogs && len(l.lines) > 1 {
		l.bytes -= len(l.lines[0]) + 1
		l.lines, l.cut = l.lines[1:], true
	}
}

func (l *logs) message() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest
}

func (l *logs) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return append([]string{"..."}, l.lines...)
	}
	return l.lines
}

// answer is the answer of one of Stile's own tools.
func (r *request) answer(value any) (*sdk.CallToolResult, error) {
	output, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return r.reply(output, nil)
}
