package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

type listInput struct {
	Query string `json:"query,omitempty" jsonschema:"what a tool is to do, in a few words; without it all extensions are listed"`
	Tag   string `json:"tag,omitempty" jsonschema:"only what has this tag"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many; default 50"`
}

type listOutput struct {
	// Tools are the results of a query, the best first. Without a query, Extensions are all there are.
	Tools      []foundOutput     `json:"tools,omitempty" jsonschema:"active tools that fit the query, the best first"`
	Extensions []extensionOutput `json:"extensions,omitempty"`
	Message    string            `json:"message,omitempty"`
}

type foundOutput struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitempty"`
	Extension   string   `json:"extension"`
	Scope       string   `json:"scope"`
}

type extensionOutput struct {
	Name        string           `json:"name"`
	Scope       string           `json:"scope"`
	Description string           `json:"description,omitempty"`
	Tags        []string         `json:"tags,omitempty"`
	Version     string           `json:"version,omitempty"`
	State       string           `json:"state" jsonschema:"active, pending, or quarantined"`
	Digest      string           `json:"digest" jsonschema:"of the active version, or else of the pending one"`
	NoSource    bool             `json:"no_source,omitempty" jsonschema:"it is a component without source to read"`
	Pending     *pendingOutput   `json:"pending,omitempty" jsonschema:"what waits for a person"`
	Tools       []listToolOutput `json:"tools,omitempty"`
	Problem     string           `json:"problem,omitempty"`
}

type pendingOutput struct {
	Release int64  `json:"release"`
	Digest  string `json:"digest"`
}

type listToolOutput struct {
	toolOutput
	ShadowedBy string `json:"shadowed_by,omitempty" jsonschema:"the scope whose tool of this name is called instead"`
}

type namedInput struct {
	Extension string `json:"extension" jsonschema:"the name of the extension"`
	Version   string `json:"version,omitempty" jsonschema:"the digest of a version, or its first characters, at least 6; default the active one, or else the pending one"`
}

type sourceOutput struct {
	Extension string            `json:"extension"`
	Scope     string            `json:"scope"`
	State     string            `json:"state"`
	Digest    string            `json:"digest"`
	Author    string            `json:"author"`
	Manifest  string            `json:"manifest"`
	Entry     string            `json:"entry,omitempty"`
	Files     map[string]string `json:"files"`
	// Component describes a component without source.
	Component string `json:"component,omitempty" jsonschema:"what is known of it, if it is a component without source to read"`
}

type testInput struct {
	namedInput
	Tests []json.RawMessage `json:"tests,omitempty" jsonschema:"tests to run in place of those of the manifest, in the form that they have there"`
}

type testsOutput struct {
	Digest string       `json:"digest"`
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Tests  []testOutput `json:"tests"`
}

type removeInput struct {
	Extension string `json:"extension" jsonschema:"the name of an extension of yours"`
	Reason    string `json:"reason,omitempty"`
}

type removeOutput struct {
	Extension string `json:"extension"`
	Scope     string `json:"scope"`
	State     string `json:"state"`
}

func (e *endpoint) addKeeping() {
	add[listInput, listOutput](e, "extension_list", "List or search extensions",
		"Lists the extensions that you can use, or searches their tools by what they do. Search before you write, because a suitable tool may exist already.", hints{readOnly: true}, inTurn(e.places.reading, (*request).list))
	add[namedInput, sourceOutput](e, "extension_source", "Read the source of an extension",
		"Returns the manifest and the source files of an extension.", hints{readOnly: true}, inTurn(e.places.reading, (*request).source))
	add[testInput, testsOutput](e, "extension_test", "Test an extension",
		"Runs the tests of an extension again, or other tests, in the sandbox. Nothing outside is reached: bindings give the answers that the test lists.", hints{readOnly: true}, inTurn(e.places.testing, (*request).test))
	add[removeInput, removeOutput](e, "extension_remove", "Remove an extension",
		"Removes one of your extensions: its tools disappear, and running calls end. Only a person can remove extensions of the user and shared ones.", hints{destructive: true}, (*request).remove)
	add[statsInput, statsOutput](e, "extension_stats", "Tool statistics",
		"Reports how often the tools were called, how many calls failed and why, how long they take, and which of your extensions are unused.", hints{readOnly: true}, inTurn(e.places.reading, (*request).stats))
}

const (
	defaultList = 50
	maxList     = 1000
)

func (r *request) list(ctx context.Context, in listInput) (*sdk.CallToolResult, error) {
	limit := min(cmp.Or(max(in.Limit, 0), defaultList), maxList)
	without := func(tags []string) bool { return in.Tag != "" && !slices.Contains(tags, in.Tag) }
	var out listOutput
	if in.Query != "" {
		found, err := r.options.Manager.Search(ctx, r.viewer, in.Query, maxList)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(f lifecycle.Found) bool { return without(f.Tags) })
		for _, f := range found[:min(limit, len(found))] {
			out.Tools = append(out.Tools, foundOutput{f.Name, printable.Short(f.Description, 500), f.Tags, f.Extension, f.Scope.String()})
		}
		if len(found) == 0 {
			out.Message = "No tool fits; extension_write makes one."
		}
		return r.answer(out)
	}
	all, err := r.options.Manager.Overview(ctx, r.viewer)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x lifecycle.Extension) bool { return without(x.Tags) })
	if len(all) == 0 && in.Tag != "" {
		out.Message = "No extension has this tag."
	}
	if len(all) > limit {
		out.Message = fmt.Sprintf("There are %d; %d are listed. A query finds the others.", len(all), limit)
		all = all[:limit]
	}
	for _, x := range all {
		out.Extensions = append(out.Extensions, extensionOf(x))
	}
	return r.answer(out)
}

func extensionOf(x lifecycle.Extension) extensionOutput {
	out := extensionOutput{Name: x.Name, Scope: x.Scope.String(), Description: printable.Short(x.Description, 500), Tags: x.Tags, Version: x.Version, NoSource: x.NoSource, Problem: printable.Text(x.Problem)}
	if x.Pending != nil {
		out.State, out.Digest = string(lifecycle.Pending), x.Pending.Digest
		out.Pending = &pendingOutput{x.Pending.ID, x.Pending.Digest}
	}
	if x.Active != nil {
		out.State, out.Digest = string(lifecycle.Active), x.Active.Digest
		if x.Active.Quarantine != "" {
			out.State, out.Problem = "quarantined", printable.Text(x.Active.Quarantine)
		}
	}
	for _, t := range x.Tools {
		tool := listToolOutput{toolOutput: toolOutput{Name: t.Name, Description: printable.Short(t.Description, 200)}}
		if t.ShadowedBy != nil {
			tool.ShadowedBy = t.ShadowedBy.String()
		}
		out.Tools = append(out.Tools, tool)
	}
	return out
}

// find finds a release of an extension that the viewer sees. It does not find other agents' versions.
func (r *request) find(ctx context.Context, in namedInput) (lifecycle.Release, error) {
	if in.Version == "" {
		return r.options.Manager.Find(ctx, r.viewer, in.Extension)
	}
	return r.options.Manager.FindVersion(ctx, r.viewer, in.Extension, in.Version)
}

func (r *request) source(ctx context.Context, in namedInput) (*sdk.CallToolResult, error) {
	release, err := r.find(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := r.options.Manager.Version(ctx, release.Digest)
	if err != nil {
		return nil, err
	}
	out := sourceOutput{
		Extension: release.Name, Scope: release.Scope.String(), State: string(release.State), Digest: v.Digest, Author: release.Author,
		Manifest: string(v.ManifestText()), Entry: v.Entry, Files: map[string]string{},
	}
	if !v.HasSource() {
		out.Component = v.Report.Text()
	}
	for name, data := range v.Files {
		out.Files[name] = string(data)
	}
	text, err := jsonform.Encode(out, "") // with escapes for HTML, it could have six times as many bytes
	if err != nil {
		return nil, err
	}
	return r.reply(text, nil)
}

func (r *request) test(ctx context.Context, in testInput) (*sdk.CallToolResult, error) {
	release, err := r.find(ctx, in.namedInput)
	if err != nil {
		return nil, err
	}
	tests, err := r.readTests(ctx, release, in.Tests)
	if err != nil {
		return nil, err
	}
	results, err := r.options.Manager.Test(ctx, release.Digest, tests...)
	if err != nil {
		return nil, err
	}
	out := testsOutput{Digest: release.Digest, Tests: testsOf(results)}
	for _, t := range results {
		if t.Passed {
			out.Passed++
		} else {
			out.Failed++
		}
	}
	return r.answer(out)
}

// readTests reads tests as if they stood in the manifest of a release.
func (r *request) readTests(ctx context.Context, release lifecycle.Release, tests []json.RawMessage) ([]extension.Test, error) {
	if len(tests) == 0 {
		return nil, nil // the release's own tests
	}
	v, err := r.options.Manager.Version(ctx, release.Digest)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(v.Manifest.Canonical(), &fields); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	if fields["tests"], err = json.Marshal(tests); err != nil {
		return nil, mistake("tests must be a list of JSON objects")
	}
	text, err := jsonform.Encode(fields, "  ")
	if err != nil {
		return nil, fmt.Errorf("write a manifest: %w", err)
	}
	m, err := extension.ParseWith(r.options.Manager.Kinds(), text)
	if err != nil {
		return nil, err
	}
	return m.Tests, nil
}

func (r *request) remove(ctx context.Context, in removeInput) (*sdk.CallToolResult, error) {
	release, err := r.options.Manager.Remove(ctx, r.own(), in.Extension, lifecycle.Decision{By: r.viewer.String(), Via: lifecycle.ViaMCP, Reason: printable.Short(in.Reason, 500)})
	if err != nil {
		return nil, r.notOwn(ctx, in.Extension, err)
	}
	return r.answer(removeOutput{release.Name, release.Scope.String(), string(release.State)})
}

type statsInput struct {
	UnusedDays int `json:"unused_days,omitempty" jsonschema:"from how many days without a call on an extension counts as unused; default 30"`
}

type statsOutput struct {
	Tools    []toolStats      `json:"tools"`
	Prunable []prunableOutput `json:"prunable" jsonschema:"extensions of yours that could go"`
}

type toolStats struct {
	Name      string    `json:"name"`
	Scope     string    `json:"scope"`
	Calls     int64     `json:"calls"`
	Failures  int64     `json:"failures"`
	ErrorRate float64   `json:"error_rate"`
	P50MS     float64   `json:"p50_ms"`
	P95MS     float64   `json:"p95_ms"`
	Score     int       `json:"score" jsonschema:"from 0 to 100: how many of its calls succeed"`
	LastUsed  time.Time `json:"last_used,omitzero"`
	LastError string    `json:"last_error,omitempty"`
}

type prunableOutput struct {
	Extension string `json:"extension"`
	Reason    string `json:"reason"`
}

func (r *request) stats(ctx context.Context, in statsInput) (*sdk.CallToolResult, error) {
	const day = 24 * time.Hour
	all, err := r.options.Manager.Statistics(ctx, r.viewer)
	if err != nil {
		return nil, err
	}
	out := statsOutput{Tools: []toolStats{}, Prunable: []prunableOutput{}}
	for _, x := range all {
		for _, t := range x.Tools {
			s := t.Stats
			out.Tools = append(out.Tools, toolStats{
				t.Name, x.Scope.String(), s.Calls, s.Failures, s.ErrorRate(), milliseconds(s.P50), milliseconds(s.P95), s.Score(), s.LastUsed, printable.Text(s.LastError),
			})
		}
	}
	days := min(cmp.Or(max(in.UnusedDays, 0), int(lifecycle.DefaultUnused/day)), 36500)
	prunable, err := r.options.Manager.Prune(ctx, r.own(), time.Duration(days)*day)
	if err != nil {
		return nil, err
	}
	for _, p := range prunable {
		out.Prunable = append(out.Prunable, prunableOutput{p.Release.Name, p.Reason})
	}
	return r.answer(out)
}
