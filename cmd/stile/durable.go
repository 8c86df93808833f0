package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/private"
)

// runsKey is the file with the key of runs, in STILE_HOME.
const runsKey = "runs.key"

// durableFlags make a call durable.
type durableFlags struct {
	Durable  bool          `help:"Write the call down as it goes, so that it sleeps without memory and outlives this process. stile runs shows it."`
	Detach   bool          `help:"With --durable, print the run and return at once. It goes on in stile runs work, serve or mcp."`
	Key      *string       `placeholder:"KEY" help:"With --durable, a name of yours for the run: to start it again finds the same run."`
	Deadline time.Duration `placeholder:"TIME" help:"With --durable, how long the run may take, time asleep included. Default: what the manifest says of the tool, or 720h."`
	Retry    *int          `placeholder:"N" help:"With --durable, begin again up to N times if the tool fails with an error of its own: after 1 s, 2 s, 4 s and so on, at most 1 h apart. Default: what the manifest says of the tool, or 0."`
	Cron     string        `placeholder:"EXPR" help:"With --durable and --key, start the run at these times instead, as in \"30 9 * * 1-5\". The key names the schedule. stile runs work, serve or mcp starts its runs; stile runs schedule shows it."`
	Zone     string        `placeholder:"ZONE" help:"With --cron, its time zone, such as Europe/Berlin. Default: UTC."`
	Missed   string        `placeholder:"once|skip|all" help:"With --cron, what becomes of times that pass while nothing works on runs: one run for all of them, none, or one for each of the last 100. Default: once."`
	Overlap  string        `placeholder:"skip|allow" help:"With --cron, what happens at a time at which the last run has not ended: no run, or another. Default: skip."`
}

func (f durableFlags) check() error {
	if f.Retry != nil && (*f.Retry < 0 || *f.Retry >= durable.MaxAttempts) {
		return usagef("--retry: %d is not from 0 to %d", *f.Retry, durable.MaxAttempts-1)
	}
	switch {
	case f.Key != nil && *f.Key == "":
		return usagef("--key: it is empty; give a name, or leave it out")
	case f.Deadline < 0 || f.Deadline > extension.MaxDeadline:
		return usagef("--deadline: %v is not from 0 to %v", f.Deadline, extension.MaxDeadline)
	case f.Cron == "" && (f.Zone != "" || f.Missed != "" || f.Overlap != ""):
		return usagef("--zone, --missed and --overlap are for schedules; add --cron")
	case f.Cron != "" && f.Key == nil:
		return usagef("--cron: the schedule needs a name; add --key")
	case f.Durable || !f.Detach && f.Key == nil && f.Deadline == 0 && f.Retry == nil:
		return nil
	}
	return usagef("--detach, --key, --deadline, --retry and --cron are for durable calls; add --durable")
}

// durableTarget says where the authority of a run comes from: the command line of stile run, or the approval of an extension.
type durableTarget struct {
	Run  *runTarget           `json:"run,omitempty"`
	Call *lifecycle.RunTarget `json:"call,omitempty"`
}

// targetOf reads where the authority of a run comes from.
func targetOf(run durable.Info) (t durableTarget, err error) {
	if err = json.Unmarshal([]byte(run.Target), &t); err == nil && (t.Run == nil) == (t.Call == nil) {
		err = errors.New("it is neither of a command line nor of an extension")
	}
	if err != nil {
		err = fmt.Errorf("read what run %s may do: %w", run.Name, err)
	}
	return t, err
}

// drainRuns closes the runs once those of this process have ended or sleep, but no later than after most.
func drainRuns(ctx context.Context, runs *durable.Runs, most time.Duration) error {
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	runs.Drain(draining)
	return runs.Close() //nolint:contextcheck // what ended is written down after the end of ctx
}

// callOf says whose a run of an extension is.
func callOf(run durable.Info) (lifecycle.RunTarget, bool) {
	if t, err := targetOf(run); err == nil && t.Call != nil {
		return *t.Call, true
	}
	return lifecycle.RunTarget{}, false
}

// starterOf is the tool that started a run, or called it, or empty.
func starterOf(run durable.Info) string {
	var pin lifecycle.RunPin
	if json.Unmarshal([]byte(run.Pinned), &pin) != nil || len(pin.Callers) == 0 {
		return ""
	}
	return pin.Callers[len(pin.Callers)-1].Tool
}

// runTarget is the command line and the manifest, as they were when stile run started the run.
type runTarget struct {
	Bind       []string        `json:"bind,omitempty"`
	Manifest   string          `json:"manifest,omitempty"`
	Text       json.RawMessage `json:"text,omitempty"`
	NoDefaults bool            `json:"noDefaults,omitempty"`
	Vars       json.RawMessage `json:"vars,omitempty"`
	Limits     host.Limits     `json:"limits,omitzero"`
	Extension  string          `json:"extension,omitempty"`
}

// fixedSpecs makes the paths of folders absolute, because a run goes on in another folder.
func fixedSpecs(specs []string) ([]string, error) {
	fixed := make([]string, len(specs))
	for i, spec := range specs {
		name, what, _ := strings.Cut(spec, "=")
		switch kind, rest, _ := strings.Cut(what, ":"); kind {
		case "dir":
			path, options, _ := strings.Cut(rest, ",")
			abs, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			if what = "dir:" + abs; options != "" {
				what += "," + options
			}
		case "tools":
			return nil, usagef("--durable: the binding %s gives tools of files, which do not go on in another process; bind what they need to this tool", line(name, 100))
		}
		fixed[i] = name + "=" + what
	}
	return fixed, nil
}

// bindings are those that the command line had.
func (t runTarget) bindings() ([]extension.Binding, error) {
	given, err := extension.ParseSpecs(capabilities.Builtin, t.Bind)
	if err != nil {
		return nil, err
	}
	var asked, defaults []extension.Binding
	if t.Text != nil {
		m, err := extension.Parse(t.Text)
		if err != nil {
			return nil, err
		}
		asked = m.OwnRun(t.Manifest)
	}
	if !t.NoDefaults {
		defaults = extension.Defaults(capabilities.Builtin)
	}
	return extension.Merge(given, asked, defaults), nil
}

// runsKept is how much is kept of runs: of those that have ended, and of those that sleep.
type runsKept struct {
	ended         int
	bytes, asleep int64
}

// parseRunsKept reads limits like "ended=10000,bytes=256MiB".
func parseRunsKept(text string) (k runsKept, err error) {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "":
		case "ended":
			var n int64
			n, err = parseCount(value)
			k.ended = int(n)
		case "bytes":
			k.bytes, err = printable.ParseSize(value)
		case "asleep":
			k.asleep, err = printable.ParseSize(value)
		default:
			err = fmt.Errorf("%q is not ended, bytes or asleep", name)
		}
		if err != nil {
			return runsKept{}, err
		}
	}
	return k, nil
}

// hasRunsKey refuses runs without their key: what a new key would write could not be read once the old one is back. The key is made before the runs, so it looks
// for them first.
func hasRunsKey(home string) error {
	key := filepath.Join(home, runsKey)
	if _, err := os.Lstat(filepath.Join(home, durable.File)); err != nil {
		return nil
	}
	if _, err := os.Lstat(key); errors.Is(err, fs.ErrNotExist) {
		return &runsKeyError{key}
	}
	return nil
}

// runsKeyError reports runs whose key is missing.
type runsKeyError struct{ key string }

func (e *runsKeyError) problem() string { return e.key + " is missing" }

func (*runsKeyError) remedy() string {
	return "restore it from a backup, or move " + durable.File + " away to begin anew"
}

func (e *runsKeyError) Error() string { return e.problem() + ": " + e.remedy() }

// openRuns opens the runs. Close them before the session. calls has the extensions. Without it, only runs of command lines can go on.
func (n *session) openRuns(ctx context.Context, s *streams, calls *lifecycle.Manager) (*durable.Runs, error) {
	if err := hasRunsKey(n.home); err != nil {
		return nil, err
	}
	key, err := private.Key(filepath.Join(n.home, runsKey), durable.KeySize)
	if err != nil {
		return nil, err
	}
	if err := n.secrets.redactAll(ctx, n.home); err != nil {
		n.secrets.hidden.Store(true)
		s.tell("the texts of runs are not shown, because they may have secrets in them", err)
	}
	runs, err := durable.Open(ctx, durable.Options{
		Dir: n.home, Key: key, Host: n.host, Logger: n.logger, MaxEnded: n.runs.ended, MaxEndedBytes: n.runs.bytes, MaxAsleepBytes: n.runs.asleep, URL: n.signals, Secret: n.secrets.Get,
		Request: func(ctx context.Context, run durable.Info) (a durable.Authority, err error) {
			t, err := targetOf(run)
			switch {
			case err != nil:
				return a, err
			case t.Call != nil:
				return authorityOf(ctx, calls, run, *t.Call)
			default:
				return n.authority(ctx, s, *t.Run)
			}
		},
	})
	if err == nil && calls != nil {
		n.children.changes = newMeter(postBurst)
		n.children.runs.Store(runs)
	}
	return runs, err
}

// childRuns are the calls of tools that runs make: [lifecycle.Runs].
type childRuns struct {
	of   *session
	runs atomic.Pointer[durable.Runs] // those of the process, once they are open; before, no run calls anything

	changes *meter // starts, signals and cancels of each extension and whoever calls it: all are written to the disk
}

// StartChild implements [lifecycle.Runs].
func (c *childRuns) StartChild(ctx context.Context, input []byte, prepare func() (lifecycle.Run, error)) error {
	return c.runs.Load().StartChild(ctx, func() (durable.Spec, error) {
		run, err := prepare()
		if err != nil {
			return durable.Spec{}, err
		}
		return c.of.specOf(ctx, run, input)
	})
}

// TakeChild implements [lifecycle.Runs].
func (c *childRuns) TakeChild(ctx context.Context, name string, sequence uint64) (tools.Ended, bool, error) {
	r, ok, err := c.runs.Load().TakeChild(ctx, sequence)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	return tools.Ended{Output: r.Output, Failure: r.Failure(name), CPU: r.Usage.CPU}, true, nil
}

// store are the runs of the process. The error is for a call that would start some, or reach some.
func (c *childRuns) store() (*durable.Runs, error) {
	if runs := c.runs.Load(); runs != nil {
		return runs, nil
	}
	return nil, abi.Errorf(abi.CodeUnavailable, "this call is not durable, and its program works on no runs: call it with --durable, or through stile mcp or stile serve")
}

// meter fails if somebody does too much of one kind to runs.
func (c *childRuns) meter(what, whose string) error {
	if c.changes.allow(what+" "+whose, time.Now()) {
		return nil
	}
	return abi.Errorf(abi.CodeExhausted, "limit reached: %d %s of runs at once, and then one each %v; try again later", postBurst, what, postEvery)
}

// StartRun implements [lifecycle.Runs].
func (c *childRuns) StartRun(ctx context.Context, whose, key string, input []byte, prepare func() (lifecycle.Run, error)) (string, error) {
	store, err := c.store()
	if err != nil {
		return "", err
	}
	return store.StartFor(ctx, whose, key, input, func() (durable.Spec, error) { // to find one costs little
		if err := c.meter("starts", whose); err != nil {
			return durable.Spec{}, err
		}
		run, err := prepare()
		if err != nil {
			return durable.Spec{}, err
		}
		return c.of.specOf(ctx, run, input)
	})
}

// AwaitRun implements [lifecycle.Runs].
func (c *childRuns) AwaitRun(ctx context.Context, whose, id string) (bool, error) {
	store, err := c.store()
	if err != nil {
		return false, err
	}
	return store.AwaitFor(ctx, whose, id)
}

// WaitRun implements [lifecycle.Runs].
func (c *childRuns) WaitRun(ctx context.Context, whose, id string) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	return store.WaitFor(ctx, whose, id)
}

// RunEnded implements [lifecycle.Runs].
func (c *childRuns) RunEnded(ctx context.Context, whose, id string) (tools.Ended, bool, error) {
	store, err := c.store()
	if err != nil {
		return tools.Ended{}, false, err
	}
	r, ok, err := store.ResultFor(ctx, whose, id)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	t, _ := callOf(r.Info)
	return tools.Ended{Output: r.Output, Failure: r.Failure(t.Tool)}, true, nil
}

// states are the states of runs as tools have them.
var states = map[durable.State]runs.State{
	durable.Ready: runs.Ready, durable.Running: runs.Running, durable.Asleep: runs.Asleep, durable.Done: runs.Done, durable.Failed: runs.Failed, durable.Cancelled: runs.Cancelled, durable.Parked: runs.Parked,
}

// RunStatus implements [lifecycle.Runs].
func (c *childRuns) RunStatus(ctx context.Context, whose, id string) (s runs.Status, err error) {
	store, err := c.store()
	if err != nil {
		return s, err
	}
	r, err := store.StatusFor(ctx, whose, id)
	if err != nil {
		return s, err
	}
	s = runs.Status{State: states[r.State], Since: uint64(r.Changed.UnixMilli()), Mailboxes: r.Mailboxes}
	if !r.Wake.IsZero() {
		s.Wakes = new(uint64(r.Wake.UnixMilli()))
	}
	if r.State == durable.Failed {
		t, _ := callOf(r.Info)
		s.Reason = new(r.Failure(t.Tool).Error())
	}
	if r.State == durable.Parked { // the reason is for people: it can say things about this machine
		s.Reason = new("it waits for a person: stile runs show " + id + " says why")
	}
	return s, nil
}

// SignalRun implements [lifecycle.Runs].
func (c *childRuns) SignalRun(ctx context.Context, whose, id, mailbox, from string, data []byte, key string) (bool, error) {
	store, err := c.store()
	if err != nil {
		return false, err
	}
	if err := c.meter("signals", whose); err != nil {
		return false, err
	}
	return store.SignalFor(ctx, whose, id, mailbox, durable.Message{Data: data, Key: key, From: from})
}

// CancelRun implements [lifecycle.Runs].
func (c *childRuns) CancelRun(ctx context.Context, whose, id string) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	if err := c.meter("cancels", whose); err != nil {
		return err
	}
	return store.CancelFor(ctx, whose, id)
}

// authority is what a run of a command line may do, at the time at which it goes on.
func (n *session) authority(ctx context.Context, s *streams, t runTarget) (a durable.Authority, err error) {
	bindings, err := t.bindings()
	if err != nil {
		return a, err
	}
	state := n.newState(s)
	a.Release = func() { s.tell("close what a run used", state.Close()) }
	env, err := state.Env(ctx, bindings)
	if err != nil {
		a.Release()
		return durable.Authority{}, err
	}
	a.Request = host.Request{Env: env, Vars: t.Vars, Limits: t.Limits, Extension: t.Extension}
	return a, nil
}

// authorityOf is what a run of an extension may do, at the time at which it goes on.
func authorityOf(ctx context.Context, calls *lifecycle.Manager, run durable.Info, t lifecycle.RunTarget) (a durable.Authority, err error) {
	if calls == nil {
		return a, errors.New("it is a call of an extension, and this process has none open; stile runs resume carries it on")
	}
	var pin lifecycle.RunPin
	if err := json.Unmarshal([]byte(run.Pinned), &pin); err != nil {
		return a, fmt.Errorf("read with which version run %s began: %w", run.Name, err)
	}
	awake, err := calls.Wake(ctx, t, pin)
	if of, ok := errors.AsType[*lifecycle.CallerError](err); ok {
		err = &durable.RefusedError{Caller: of.Caller, Reason: of.Error()}
	}
	return durable.Authority(awake), err
}

// modules are the core modules that a component of the toolchain imports.
func (n *session) modules(ctx context.Context, names []string) (durable.Modules, error) {
	if len(names) == 0 {
		return nil, nil
	}
	t, err := n.toolchain(ctx)
	if err != nil {
		return nil, err
	}
	name, engine := t.Engine()
	if len(names) > 1 || names[0] != name {
		return nil, fmt.Errorf("the component imports %s, and this Stile has %s", printable.Short(strings.Join(names, ", "), 200), name)
	}
	return durable.Modules{name: engine}, nil
}

// durably starts a run, and waits for it unless it is detached.
func (c *runCommand) durably(ctx context.Context, s *streams, n *session, p prepared, component *host.Component, wasm []byte) (err error) {
	if p.request.WASI.HTTP != "" || len(p.request.WASI.Filesystem) > 0 {
		return usagef("--durable: calls that use WASI cannot be written down")
	}
	t := runTarget{Manifest: c.Manifest, NoDefaults: c.NoDefaults, Vars: p.request.Vars, Limits: p.request.Limits, Extension: p.request.Extension}
	if t.Bind, err = fixedSpecs(c.Bind); err != nil {
		return err
	}
	if p.manifest != nil {
		t.Text = p.manifest.Canonical()
		if t.Manifest, err = filepath.Abs(c.Manifest); err != nil {
			return err
		}
	}
	if err := errors.Join(c.namesNoSecret(p.bindings), component.CheckInput(ctx, p.request)); err != nil {
		return err
	}
	spec := durable.Spec{Component: durable.Code{Digest: component.Digest(), Read: durable.CodeOf(wasm).Read}, Tool: c.Tool, Input: p.request.Input, Target: string(capability.JSON(durableTarget{Run: &t}))}
	if spec.Modules, err = n.modules(ctx, component.Modules()); err != nil {
		return err
	}
	runs, err := n.openRuns(ctx, s, nil)
	if err != nil {
		return err
	}
	return c.start(ctx, s, runs, spec, c.outputFlag)
}

// start starts a run, waits for it unless it is detached, and closes the runs.
func (f durableFlags) start(ctx context.Context, s *streams, runs *durable.Runs, spec durable.Spec, out outputFlag) (err error) {
	defer func() { err = errors.Join(err, runs.Close()) }() //nolint:contextcheck // what ended is written down after the end of ctx
	spec.Deadline = cmp.Or(f.Deadline, spec.Deadline)
	if f.Retry != nil {
		spec.Retry = durable.Retry{Attempts: *f.Retry + 1}
	}
	if f.Cron != "" {
		info, err := runs.AddSchedule(ctx, durable.Schedule{Name: *f.Key, Cron: f.Cron, Zone: f.Zone, Missed: f.Missed, Overlap: f.Overlap, Spec: spec})
		if errkind.Is[*durable.ScheduleError](err) {
			return &usageError{err}
		}
		if err != nil {
			return err
		}
		return printJSON(s.out, info)
	}
	if f.Key != nil {
		spec.Key = *f.Key
	}
	run, existed, err := runs.Start(ctx, spec)
	if errkind.Is[*durable.KeyError](err) || errkind.Is[*durable.SpecError](err) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	if f.Detach {
		return printJSON(s.out, map[string]string{"run": run.Name})
	}
	if existed {
		s.say("stile: the key finds run %s", run.Name)
	}
	runs.Work(run.Name)
	return waitForRun(ctx, s, runs, run.Name, out)
}

// specOf is what a run of an extension is started with.
func (n *session) specOf(ctx context.Context, run lifecycle.Run, input []byte) (spec durable.Spec, err error) {
	spec = durable.Spec{
		Component: durable.Code{Digest: run.Code, Read: run.Component}, Tool: run.Own, Input: input, Target: string(capability.JSON(durableTarget{Call: &run.RunTarget})), Pinned: string(capability.JSON(run.RunPin)),
		Deadline: run.Deadline, Retry: durable.Retry(run.Retry),
	}
	spec.Modules, err = n.modules(ctx, run.Modules)
	return spec, err
}

// waitForRun prints the result of a run.
func waitForRun(ctx context.Context, s *streams, runs *durable.Runs, name string, out outputFlag) error {
	r, err := awaitRun(ctx, s, runs, name)
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the run goes on with stile runs resume %s", errInterrupted, name)
	}
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return err
	}
	return out.result(s, r.Output)
}

// awaitRun returns how a run ended. Meanwhile it says when the run cannot go on without a person.
func awaitRun(ctx context.Context, s *streams, runs *durable.Runs, name string) (durable.Result, error) {
	said := ""
	for {
		waiting, cancel := context.WithTimeout(ctx, lookTime)
		r, err := runs.Wait(waiting, name)
		over := waiting.Err() == nil || ctx.Err() != nil || r.State.Final()
		cancel()
		if over {
			return r, err
		}
		run, err := runs.Get(ctx, name)
		if err != nil {
			return r, err
		}
		if b := runs.Redact(run).Blocked; b != nil && b.Run != said {
			said = b.Run
			s.say("stile: %s", blockedBy(b))
		}
	}
}

// lookTime is how often somebody who waits for a run looks whether it is blocked.
const lookTime = 2 * time.Second
