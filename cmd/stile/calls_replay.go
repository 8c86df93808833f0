package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/recording"
	"github.com/stilehost/stile/internal/printable"
)

type callsReplayCommand struct {
	ID       int64    `arg:"" complete:"call" help:"Number of the recording."`
	With     string   `placeholder:"FILE" help:"Replay with this extension (.ts, .js, .mjs or .wasm) instead of the recorded one."`
	LiveHTTP string   `name:"live-http" placeholder:"deny" help:"deny: continue after a difference; answer recorded operations in any order, and deny everything else. Default: end at the first difference."`
	Limit    []string `sep:"none" placeholder:"NAME=VALUE" help:"Limit of the replay, as in stile run. Can be repeated. Default: that of the recorded call, if it is no larger than the default of a call."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*callsReplayCommand) Help() string {
	return `The tool runs again and gets the recorded answers, including time and randomness. Nothing outside is touched: no capability is opened. The exit code is 1 if operations or output differ.

Examples:

    stile calls replay 12
    stile calls replay 12 --with github.ts --live-http=deny --json`
}

// replay is the outcome of one replay.
type replay struct {
	ID        int64              `json:"id"`
	Same      bool               `json:"same"`
	Component string             `json:"component"`
	Made      int                `json:"operations"` // of the recorded call
	Recorded  int                `json:"recorded"`   // of those
	Answered  int                `json:"answered"`   // of those
	Cut       bool               `json:"cut"`
	Timed     bool               `json:"timed"`
	Differs   []replayDifference `json:"differences"`
	NotListed int                `json:"differencesNotListed,omitempty"`
	Outcome   host.Outcome       `json:"outcome"`
	Output    any                `json:"output,omitempty"`
}

type replayDifference struct {
	// Operation is the number of the operation, counted from 1, or 0 for the outcome.
	Operation int    `json:"operation"`
	Expected  string `json:"expected,omitempty"`
	Got       string `json:"got,omitempty"`
}

// differsError reports a replay that differs from the recording.
type differsError struct{ text string }

func (e *differsError) Error() string { return e.text }

// Run implements the command.
func (c *callsReplayCommand) Run(ctx context.Context, s *streams) (err error) {
	if c.LiveHTTP != "" && c.LiveHTTP != "deny" {
		return usagef("--live-http=%s: the only choice is deny; a replay sends no requests", printable.Text(c.LiveHTTP))
	}
	limits, err := parseLimits(c.Limit)
	if err != nil {
		return err
	}
	r, store, err := recorded(ctx, c.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	n, err := openSession(ctx, s, sessionOptions{memory: limits.Memory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	component, err := c.component(ctx, n, store, r)
	if err != nil {
		return err
	}
	if r.Redacted { // then the replay is compared without secrets too
		if err := n.secrets.redactAll(ctx, n.home); err != nil {
			return err
		}
	}
	got, err := component.Replay(ctx, r, host.ReplayOptions{OtherComponent: c.With != "", Deny: c.LiveHTTP == "deny", Limits: limits})
	if err != nil {
		return fmt.Errorf("recording %d: %w", c.ID, err)
	}
	out := replay{
		ID: c.ID, Same: got.Same, Component: "sha256:" + component.Digest(), Made: r.Usage.Operations, Recorded: got.Recorded, Answered: got.Answered, Cut: got.Cut, Timed: got.Timed,
		Differs: []replayDifference{}, NotListed: got.DifferencesDropped, Outcome: got.Outcome, Output: jsonOrText(got.Output),
	}
	for _, d := range got.Differences {
		out.Differs = append(out.Differs, replayDifference(d))
	}
	if c.JSON {
		err = printJSON(s.out, out)
	} else {
		_, err = io.WriteString(s.out, out.text())
	}
	if err != nil || got.Same {
		return err
	}
	if got.Cut {
		return &differsError{fmt.Sprintf("recording %d is incomplete: it ends after %s, and so did the replay", c.ID, counted(got.Recorded, "operation"))}
	}
	text := fmt.Sprintf("the replay of %d differs", c.ID)
	if allowed := limitsOf(r.Limits)[got.Outcome.Limit]; allowed != "" && r.Outcome.Kind != got.Outcome.Kind {
		text += fmt.Sprintf(": it has no more than the default limits; --limit %s=%s allows what the recorded call had", got.Outcome.Limit, allowed)
	}
	return &differsError{text}
}

// component returns the recorded component, or the one of --with, built for the recorded bindings.
func (c *callsReplayCommand) component(ctx context.Context, n *session, store *recording.Store, r *host.Recording) (*host.Component, error) {
	if c.With != "" {
		bindings := extension.Known(extension.Defaults(capabilities.Builtin))
		maps.Copy(bindings, r.Bindings)
		component, _, err := n.load(ctx, entryOf(c.With), wants{bindings: bindings})
		return component, err
	}
	wasm, err := store.Component(ctx, r.Component)
	if errors.Is(err, recording.ErrNotFound) {
		return nil, usagef("the component of recording %d is not kept; name its file with --with", c.ID)
	}
	if err != nil {
		return nil, err
	}
	return n.loadComponent(ctx, fmt.Sprintf("the component of recording %d", c.ID), wasm)
}

// text returns a replay for a person.
func (p *replay) text() string {
	var b strings.Builder
	word := map[bool]string{true: "the same", false: "different"}[p.Same]
	if p.Cut {
		word = "not whole"
	}
	fmt.Fprintf(&b, "%s: %d of %d recorded operations were made, outcome %s\n", word, p.Answered, p.Recorded, cell(p.Outcome.String()))
	if more := p.Made - p.Recorded; more > 0 && !p.Cut {
		fmt.Fprintf(&b, "%s of WASI %s not recorded: WASI reaches nothing outside the call\n", counted(more, "operation"), map[bool]string{true: "was", false: "were"}[more == 1])
	}
	if p.Timed {
		b.WriteString("a clock or the caller ended the recorded call, so the two ends are not compared\n")
	}
	for _, d := range p.Differs {
		at := "outcome"
		if d.Operation > 0 {
			at = fmt.Sprintf("operation %d", d.Operation)
		}
		expected, got := d.Expected, d.Got
		if expected == "" {
			expected = "nothing more"
		}
		if got == "" {
			got = "nothing"
		}
		fmt.Fprintf(&b, "%s\n  expected  %s\n  got       %s\n", at, cell(expected), cell(got))
	}
	if p.NotListed > 0 {
		fmt.Fprintf(&b, "and %d more\n", p.NotListed)
	}
	return b.String()
}
