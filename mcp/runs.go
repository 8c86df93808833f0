package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// Runs are what a server needs for durable calls. All fields are required.
type Runs struct {
	Store *durable.Runs
	// Spec returns what a run is started with in the store, and Target whose run it is; ok is false for one of no extension.
	Spec   func(ctx context.Context, run lifecycle.Run, input []byte) (durable.Spec, error)
	Target func(run durable.Info) (t lifecycle.RunTarget, ok bool)
}

const (
	// answerTime is how long a call of a durable tool waits for its end before it answers with its run.
	answerTime = 20 * time.Second
	// maxWait is how long run_result may wait.
	maxWait = 60 * time.Second
	// maxRuns is how many runs of an agent may not have ended.
	maxRuns = 1000
	// shownRuns is how many runs run_status lists.
	shownRuns = 20
	// shownInput is how many bytes of its input run_status shows of each.
	shownInput = 200
)

const (
	runStatusTool = "run_status"
	runResultTool = "run_result"
	runCancelTool = "run_cancel"
)

var runTools = []string{runStatusTool, runResultTool, runCancelTool}

type runInput struct {
	Run string `json:"run" jsonschema:"the run, as the call answered"`
}

type statusInput struct {
	Run string `json:"run,omitempty" jsonschema:"the run, as the call answered. Default: your newest runs"`
}

type resultInput struct {
	Run  string  `json:"run" jsonschema:"the run, as the call answered"`
	Wait float64 `json:"wait,omitempty" jsonschema:"how many seconds to wait for its end, at most 60. Default 20"`
}

// runState is what a model learns about a run.
type runState struct {
	Run   string `json:"run" jsonschema:"its name"`
	State string `json:"state" jsonschema:"ready and running: it goes on. asleep: it waits. done, failed, cancelled: it has ended. parked: it cannot go on without a person"`
	Tool  string `json:"tool,omitempty" jsonschema:"the tool that was called"`
	Input string `json:"input,omitempty" jsonschema:"what it was called with, cut after 200 bytes"`
	// Since is when it came into the state.
	Since    string `json:"since,omitempty" jsonschema:"since when it is in this state"`
	Wakes    string `json:"wakes,omitempty" jsonschema:"when it goes on, if it waits for a time"`
	Waits    string `json:"waits,omitempty" jsonschema:"what else it waits for, such as signals of a person in a mailbox"`
	Deadline string `json:"deadline,omitempty" jsonschema:"when it is ended, however far it is"`
	Next     string `json:"next,omitempty" jsonschema:"what to do"`
}

type statusOutput struct {
	Runs []runState `json:"runs" jsonschema:"the newest first"`
}

type cancelOutput = runState

// goesOnError ends a request whose run has not ended.
type goesOnError struct{ run durable.Info }

// Error implements error.
func (*goesOnError) Error() string { return "the run goes on" }

// result tells a model that the run goes on, and what to do.
func (g *goesOnError) result() (*sdk.CallToolResult, error) {
	s := runState{Run: g.run.Name, State: string(g.run.State)}
	s.next(g.run)
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}

// next says what to do about a run.
func (s *runState) next(run durable.Info) {
	switch state := durable.State(s.State); {
	case state == durable.Parked:
		s.Next = "It cannot go on. Tell your user: stile runs show " + s.Run + " says why."
	case state == durable.Done, state == durable.Failed:
		s.Next = runResultTool + " returns its result."
	case state == durable.Cancelled:
		s.Next = "It was ended."
	case run.Cancelled:
		s.Next = "It was told to end, and cleans up. Do not wait for it."
	case run.Blocked != nil:
		other := run.Blocked.Run
		s.Next = "It called run " + other + ", which is parked, so it cannot go on. Tell your user: stile runs show " + other + " says why, and stile runs retry " + other + " has both go on. " + runCancelTool + " ends it."
	default:
		s.Next = "It goes on without you, so do not call the tool again. " + runResultTool + " waits for its result, " + runCancelTool + " ends it."
	}
}

// durably starts a run of a durable tool, and waits a little for its end. The end of ctx does not end the run.
func (r *request) durably(ctx context.Context, d extension.Durable, arguments json.RawMessage, digest string) (result host.Result, err error) {
	runs := r.options.Runs
	run, err := r.options.Manager.PrepareRun(ctx, lifecycle.Call{
		Viewer: r.viewer, Tool: r.tool.Name, Input: arguments, Digest: digest, Limits: r.options.Limits, Allowed: allowed(r.call.Extra), Via: lifecycle.ViaMCP,
	})
	if err != nil {
		return result, err
	}
	spec, err := runs.Spec(ctx, run, arguments)
	if err != nil {
		return result, err
	}
	spec.Deadline, spec.Whose, spec.Most = d.Deadline, r.viewer.String(), maxRuns
	info, _, err := runs.Store.Start(ctx, spec)
	if crowded, ok := errors.AsType[*durable.CrowdedError](err); ok {
		return result, mistake(crowded.Error() + ": " + runStatusTool + " lists yours")
	}
	if err != nil {
		return result, err
	}
	return r.await(ctx, info, r.options.patience)
}

// await waits for the end of a run. If it has none by then, the error is a *[goesOnError].
func (r *request) await(ctx context.Context, run durable.Info, most time.Duration) (result host.Result, err error) {
	r.mu.Lock()
	r.awaited = run.Name
	r.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ended, err := r.options.Runs.Store.Wait(waiting, run.Name)
	switch {
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	case waiting.Err() != nil && !ended.State.Final():
		if ended.Name == "" {
			ended.Info = run
		}
		return result, &goesOnError{ended.Info}
	case err != nil:
		return result, err
	case ended.State == durable.Parked:
		s := r.state(ctx, ended.Info)
		return result, mistake("run " + ended.Name + " is parked. " + s.Next)
	case ended.State == durable.Cancelled:
		return result, mistake("run " + ended.Name + " was cancelled")
	}
	result.Output, result.Usage = ended.Output, ended.Usage
	return result, ended.Err()
}

// where says where the run is that a request waits for, as progress. It is empty if it waits for none.
func (r *request) where(ctx context.Context, run string) string {
	if run == "" {
		return ""
	}
	now, err := r.options.Runs.Store.Result(ctx, run)
	if err != nil {
		return ""
	}
	text := "run " + run + ": " + string(now.State)
	if !now.Wake.IsZero() {
		text += " until " + now.Wake.UTC().Format(time.RFC3339)
	}
	if waits := waitsFor(r.options.Runs.Store.RedactResult(now)); waits != "" {
		text += ", waits for " + waits
	}
	return text
}

// waitsFor says what a sleeping run waits for, other than a time.
func waitsFor(run durable.Result) string {
	var waits []string
	if text := run.WaitsFor(); text != "" {
		waits = append(waits, text)
	}
	if run.Blocked != nil {
		waits = append(waits, "run "+run.Blocked.Run+", which is parked")
	}
	return strings.Join(waits, ", and for ")
}

// state is what a model learns about a run.
func (e *endpoint) state(ctx context.Context, run durable.Info) runState {
	target, called := e.options.Runs.Target(run) // of what is written down, not of what is shown
	run = e.options.Runs.Store.Redact(run)
	s := runState{
		Run: run.Name, State: string(run.State), Since: run.Changed.UTC().Format(time.RFC3339), Deadline: run.Deadline.UTC().Format(time.RFC3339),
		Input: printable.Short(string(run.Input), shownInput),
	}
	if called {
		s.Tool = target.Tool
	}
	if !run.Wake.IsZero() {
		s.Wakes = run.Wake.UTC().Format(time.RFC3339)
	}
	if run.State == durable.Asleep || run.Blocked != nil {
		if now, err := e.options.Runs.Store.Result(ctx, run.Name); err == nil { // else the rest is still of use
			s.Waits = waitsFor(e.options.Runs.Store.RedactResult(now))
		}
	}
	s.next(run)
	return s
}

// run returns a run that the agent may know about.
func (e *endpoint) run(ctx context.Context, name string) (durable.Info, error) {
	unknown := mistake(fmt.Sprintf("you have no run %q; %s lists yours", printable.Short(name, 100), runStatusTool))
	run, err := e.options.Runs.Store.Get(ctx, name)
	if errors.As(err, new(*durable.UnknownError)) {
		return run, unknown
	}
	if err != nil {
		return run, err
	}
	if t, ok := e.options.Runs.Target(run); !ok || !t.Visible(e.viewer) {
		return run, unknown
	}
	return run, nil
}

// offerRuns offers the tools about runs, as long as the agent has durable tools. The caller holds mu.
func (e *endpoint) offerRuns(durable bool) {
	switch {
	case durable == e.runs:
	case durable:
		add[statusInput, statusOutput](e, runStatusTool, "Status of runs", "Says where runs of durable tools are: your own, which go on whether or not you wait for them.",
			hints{readOnly: true}, (*request).runStatus)
		add[resultInput, plain](e, runResultTool, "Result of a run", "Returns what the tool of a run returned, or its error. If the run has not ended, it waits up to so many seconds, and then answers {run, state}.",
			hints{readOnly: true}, (*request).runResult)
		add[runInput, cancelOutput](e, runCancelTool, "End a run", "Ends a run. What it has done stays done. Its tool may take some seconds to clean up.", hints{destructive: true}, (*request).runCancel)
	default:
		e.sdk.RemoveTools(runTools...)
	}
	e.runs = durable
}

func (r *request) runStatus(ctx context.Context, in statusInput) (*sdk.CallToolResult, error) {
	out := statusOutput{Runs: []runState{}}
	if in.Run != "" {
		run, err := r.run(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, r.state(ctx, run))
		return r.answer(out)
	}
	list, err := r.options.Runs.Store.ListOf(ctx, r.viewer.String(), "", shownRuns)
	if err != nil {
		return nil, err
	}
	for _, run := range list {
		if t, ok := r.options.Runs.Target(run); ok && t.Visible(r.viewer) {
			out.Runs = append(out.Runs, r.state(ctx, run))
		}
	}
	return r.answer(out)
}

func (r *request) runResult(ctx context.Context, in resultInput) (*sdk.CallToolResult, error) {
	run, err := r.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	wait := time.Duration(in.Wait * float64(time.Second))
	switch {
	case in.Wait == 0:
		wait = r.options.patience
	case in.Wait < 0 || in.Wait > maxWait.Seconds():
		return nil, mistake(fmt.Sprintf("wait is at most %d seconds", int(maxWait.Seconds())))
	}
	defer r.tick(ctx)()
	result, err := r.await(ctx, run, wait)
	if goes, ok := errors.AsType[*goesOnError](err); ok {
		return goes.result()
	}
	if err != nil {
		return r.fail(err, result.Usage)
	}
	r.builtin = false // the result is shown as that of the tool
	return r.reply(result.Output, nil)
}

func (r *request) runCancel(ctx context.Context, in runInput) (*sdk.CallToolResult, error) {
	run, err := r.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	if _, err := r.options.Runs.Store.Cancel(ctx, run.Name); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, r.options.patience)
	defer cancel()
	if _, err := r.options.Runs.Store.Wait(waiting, run.Name); err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if run, err = r.options.Runs.Store.Get(ctx, run.Name); err != nil {
		return nil, err
	}
	return r.answer(r.state(ctx, run))
}
