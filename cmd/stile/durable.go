package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/private"
)

// runsKey is the file with the key of runs, in STILE_HOME.
const runsKey = "runs.key"

// durableFlags make a call durable.
type durableFlags struct {
	Durable  bool          `help:"Write the call down as it goes, so that it sleeps without memory and outlives this process. stile runs shows it."`
	Detach   bool          `help:"With --durable, print the run and return at once. It goes on in stile runs work, serve or mcp."`
	Key      string        `placeholder:"KEY" help:"With --durable, a name of yours for the run: to start it again finds the same run."`
	Deadline time.Duration `placeholder:"TIME" help:"With --durable, how long the run may take, time asleep included. Default: 720h."`
}

func (f durableFlags) check() error {
	if f.Durable || !f.Detach && f.Key == "" && f.Deadline == 0 {
		return nil
	}
	return usagef("--detach, --key and --deadline are for durable calls; add --durable")
}

// durableTarget says where the authority of a run comes from that stile run started: the command line and the manifest, as they were then.
type durableTarget struct {
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
func (t durableTarget) bindings() ([]extension.Binding, error) {
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

// openRuns opens the runs, with the authority that they may have in this process. Close them before the session.
func (n *session) openRuns(ctx context.Context, s *streams) (*durable.Runs, error) {
	key, err := private.Key(filepath.Join(n.home, runsKey), durable.KeySize)
	if err != nil {
		return nil, err
	}
	return durable.Open(ctx, durable.Options{
		Dir: n.home, Key: key, Host: n.host, Logger: n.logger,
		Request: func(ctx context.Context, run durable.Info) (durable.Authority, error) { return n.authority(ctx, s, run) },
	})
}

// authority is what a run may do, at the time at which it goes on.
func (n *session) authority(ctx context.Context, s *streams, run durable.Info) (a durable.Authority, err error) {
	var t durableTarget
	if err := json.Unmarshal([]byte(run.Target), &t); err != nil {
		return a, fmt.Errorf("read what run %s may do: %w", run.Name, err)
	}
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

// modules are the core modules that a component of the toolchain imports.
func (n *session) modules(ctx context.Context, wasm []byte) ([][]byte, error) {
	t, err := n.toolchain(ctx)
	if err != nil {
		return nil, err
	}
	name, engine := t.Engine()
	if !bytes.Contains(wasm, []byte(name)) {
		return nil, nil
	}
	module, err := engine(ctx)
	if err != nil {
		return nil, err
	}
	return [][]byte{module}, nil
}

// durably starts a run, and waits for it unless it is detached.
func (c *runCommand) durably(ctx context.Context, s *streams, n *session, p prepared, wasm []byte) (err error) {
	if p.request.WASI.HTTP != "" || len(p.request.WASI.Filesystem) > 0 {
		return usagef("--durable: calls that use WASI cannot be written down")
	}
	t := durableTarget{Manifest: c.Manifest, NoDefaults: c.NoDefaults, Vars: p.request.Vars, Limits: p.request.Limits, Extension: p.request.Extension}
	if t.Bind, err = fixedSpecs(c.Bind); err != nil {
		return err
	}
	if p.manifest != nil {
		t.Text = p.manifest.Canonical()
		if t.Manifest, err = filepath.Abs(c.Manifest); err != nil {
			return err
		}
	}
	if err := c.namesNoSecret(p.bindings); err != nil {
		return err
	}
	target, err := json.Marshal(t)
	if err != nil {
		return err
	}
	spec := durable.Spec{Key: c.Key, Component: wasm, Tool: c.Tool, Input: p.request.Input, Target: string(target), Deadline: c.Deadline}
	if spec.Modules, err = n.modules(ctx, wasm); err != nil {
		return err
	}
	runs, err := n.openRuns(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runs.Close()) }() //nolint:contextcheck // what ended is written down after the end of ctx
	run, existed, err := runs.Start(ctx, spec)
	if errkind.Is[*durable.KeyError](err) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	if c.Detach {
		return printJSON(s.out, map[string]string{"run": run.Name})
	}
	if existed {
		s.say("stile: the key finds run %s", run.Name)
	}
	runs.Work(run.Name)
	return waitForRun(ctx, s, runs, run.Name, c.outputFlag)
}

// waitForRun prints the result of a run.
func waitForRun(ctx context.Context, s *streams, runs *durable.Runs, name string, out outputFlag) error {
	r, err := runs.Wait(ctx, name)
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
