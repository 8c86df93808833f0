package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// question is what a person is asked to approve. It is bound to the release and the digest that are shown.
type question struct {
	out     writeOutput
	grants  []extension.Binding // what the release would get
	version *lifecycle.Version  // what the release would offer, and its packages
}

const (
	questionName = "approve"
	maxText      = 1000 // bytes of a tool's text in a question
)

// person returns the name of the client if the operator's policy says that a person uses it, and the client can ask that person.
// Otherwise it is empty.
func (r *request) person() string {
	if !r.canAsk() || !r.options.Manager.Policy().Person(r.call.ClientInfo().Name) {
		return ""
	}
	return r.call.ClientInfo().Name
}

// ask makes the client ask its person, if it can. Otherwise the request waits.
func (r *request) ask(ctx context.Context, q question) (*sdk.CallToolResult, error) {
	if r.person() == "" {
		return r.answer(q.out)
	}
	params := q.params(r.viewer)
	if params == nil {
		q.out.Message = "It asks for more than a question to your user can show. " + q.out.Message
		return r.answer(q.out)
	}
	q.version = nil // it may be large, and is no longer needed
	if r.call.ProtocolVersion() >= sessionless {
		return &sdk.CallToolResult{
			InputRequests: sdk.InputRequestMap{questionName: params},
			RequestState:  r.session.asking.put(q, 1),
		}, nil
	}
	asking, cancel := context.WithTimeout(ctx, keepFor)
	defer cancel()
	said, err := r.call.Session.Elicit(asking, params)
	if err != nil {
		q.out.Message = "Your user could not be asked. " + q.out.Message
		r.options.Logger.Warn("ask a person", "error", printable.Short(err.Error(), 1000))
		return r.answer(q.out)
	}
	return r.decide(ctx, q, said)
}

// answered returns the result of a call that the client repeats with a person's reply. It is nil for any other call. The state that
// the client sends must name an unanswered question of this session.
func (r *request) answered(ctx context.Context) (*sdk.CallToolResult, error) {
	if r.call.Params.RequestState == "" && len(r.call.Params.InputResponses) == 0 {
		return nil, nil
	}
	q, ok := r.session.asking.get(r.call.Params.RequestState, true)
	if !ok {
		return nil, mistake("this question was answered already, or never asked")
	}
	said, _ := r.call.Params.InputResponses[questionName].(*sdk.ElicitResult)
	return r.decide(ctx, q, said)
}

// decide carries out the person's reply. The caller has made sure that a person was asked.
func (r *request) decide(ctx context.Context, q question, said *sdk.ElicitResult) (*sdk.CallToolResult, error) {
	client := r.person()
	d := lifecycle.Decision{
		Release: q.out.Release, Digest: q.out.Digest, By: lifecycle.Viewer{User: cmp.Or(r.viewer.User, extension.Local)}.String(), Via: lifecycle.ViaElicitation + client,
	}
	var release lifecycle.Release
	var err error
	switch {
	case client != "" && said != nil && said.Action == "accept" && said.Content[questionName] == true:
		release, err = r.options.Manager.Approve(ctx, d)
	case client != "" && said != nil && said.Action == "decline":
		release, err = r.options.Manager.Deny(ctx, d)
	default: // including an unchanged form
		q.out.Message = "Your user did not decide now. " + q.out.Message
		return r.answer(q.out)
	}
	if err != nil {
		return nil, err
	}
	q.out.State = string(release.State)
	q.out.say()
	return r.answer(q.out)
}

// params returns the question as the person reads it. It is nil if there is more to decide than the question can show.
func (q question) params(v lifecycle.Viewer) *sdk.ElicitParams {
	var b strings.Builder
	fmt.Fprintf(&b, "The agent %s asks to use the extension %s %s (%s), which it wrote.\n", v.Agent, q.out.Extension, q.out.Version, q.out.Scope)
	for _, g := range q.grants {
		for _, line := range extension.Describe(g) {
			fmt.Fprintf(&b, "It %s (env.%s).\n", printable.Line(line), g.Name)
		}
	}
	if len(q.grants) == 0 {
		fmt.Fprintf(&b, "It may %s.\n", q.version.Computes())
	}
	for _, d := range q.version.Manifest.Durable {
		fmt.Fprintf(&b, "Its %s.\n", d)
	}
	if !q.version.HasSource() {
		b.WriteString("It is a component, with no source to read. What is known of it:\n" + q.version.Report.Text())
	}
	if len(q.out.Changes) > 0 {
		b.WriteString("What is different from before:\n" + strings.Join(q.out.Changes, "\n") + "\n")
	}
	if packages := q.version.PackageLines(); len(packages) > 0 {
		fmt.Fprintf(&b, "Its npm packages:\n%s\n", strings.Join(append(packages, q.version.Report.PackageChanges()...), "\n"))
	}
	if len(q.out.Warnings) > 0 {
		b.WriteString("Decide whether you trust its packages:\n" + strings.Join(q.out.Warnings, "\n") + "\n")
	}
	shows := "shows the code"
	if !q.version.HasSource() {
		shows = "shows more"
	}
	fmt.Fprintf(&b, "Request %d, version %s. `stile ext show %d` %s.", q.out.Release, lifecycle.ShortDigest(q.out.Digest), q.out.Release, shows)
	if b.Len() > maxMessage {
		return nil
	}
	// The author's own words come last, so that they take no room from the authority. For each tool, the question shows
	// everything that an agent reads about it, or only its size.
	left, size := 0, 0
	for _, t := range q.version.Tools {
		var line strings.Builder
		fmt.Fprintf(&line, "\nTool %s:", extension.ToolName(q.out.Extension, t.Name))
		for _, text := range extension.ToolTexts(t) {
			if text.Place != "" {
				line.WriteString("\n  " + text.Place + ":")
			}
			shown := extension.Shorten(text.Text, maxText)
			line.WriteString(" " + shown)
			if shown != text.Text {
				fmt.Fprintf(&line, " `stile ext show %d --full` shows it.", q.out.Release)
			}
		}
		if b.Len()+line.Len() > maxMessage-200 { // leaves room to mention what is left out
			left, size = left+1, size+line.Len()
			continue
		}
		b.WriteString(line.String())
	}
	if left > 0 {
		fmt.Fprintf(&b, "\nAnd %d more tools, whose descriptions and schemas have no room here: %d bytes, which `stile ext show %d --full` shows.", left, size, q.out.Release)
	}
	return &sdk.ElicitParams{
		Mode:    "form",
		Message: b.String(),
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{questionName},
			"properties": map[string]any{questionName: map[string]any{"type": "boolean", "title": "Let it use this", "default": false}},
		},
	}
}
