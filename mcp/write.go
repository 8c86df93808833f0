package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/guest-sdk/typescript"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// writeDescription is all that an agent needs to write an extension.
var writeDescription = "Writes an extension: one or several tools in TypeScript, which run in a sandbox. It is checked, built and tested; then its tools are in the list, as EXTENSION_TOOL, " +
	"or it waits for a person when it asks for more than the operator's policy approves by itself. An extension of the same name is updated; when anything fails, what was there stays. " +
	"All problems of the manifest and the code come at once, with what to write instead.\n\n" + typescript.Author()

type writeInput struct {
	Manifest  manifestText      `json:"manifest" jsonschema:"the manifest: a JSON object"`
	Source    string            `json:"source,omitempty" jsonschema:"the TypeScript source, when it is one file"`
	Files     map[string]string `json:"files,omitempty" jsonschema:"the sources by path, when there are several; in place of source"`
	Component string            `json:"component,omitempty" jsonschema:"in place of source: a WebAssembly component that exports stile:extension/tools, in base64; as nobody can read it, a person always decides"`
	Entry     string            `json:"entry,omitempty" jsonschema:"the path in files of the module with the default export; default index.ts or the like"`
	Types     *bool             `json:"types,omitempty" jsonschema:"false leaves out the check of types, which is made before anything is run"`
	scopeInput
}

type scopeInput struct {
	Scope string `json:"scope,omitempty" jsonschema:"for whom it is: agent (you, the default), user, or shared; of the latter a person decides"`
}

type generateInput struct {
	Description string `json:"description" jsonschema:"what the tools are to do, with inputs, results and the services to use"`
	New         bool   `json:"new,omitempty" jsonschema:"write another one though there are tools that seem to do it"`
	scopeInput
}

// writeOutput is the outcome of a draft.
type writeOutput struct {
	State     string `json:"state" jsonschema:"active: the tools can be called; pending: a person has to approve it first; existing: nothing was written, as these tools seem to do it"`
	Message   string `json:"message"`
	Extension string `json:"extension,omitempty"`
	Version   string `json:"version,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Release   int64  `json:"release,omitempty" jsonschema:"the number by which a person approves it"`
	Digest    string `json:"digest,omitempty"`
	// Unchanged is set if this version was active already.
	Unchanged bool         `json:"unchanged,omitempty"`
	Tools     []toolOutput `json:"tools"`
	Tests     []testOutput `json:"tests,omitempty"`
	// Uses is what it may use, by the names in env. Changes is the difference from the previous version. Cut is what the operator
	// forbids.
	Uses    map[string]any `json:"uses,omitempty" jsonschema:"what it may use, by the names in env"`
	Changes []string       `json:"changes,omitempty" jsonschema:"how what it may use differs from the version before"`
	Cut     []string       `json:"cut,omitempty" jsonschema:"what it asks for and does not get, as the operator allows it nobody"`
	// Warnings are about its packages.
	Warnings []string `json:"warnings,omitempty" jsonschema:"what is to be known of its npm packages"`
	// Unasked are bindings that its code uses without asking for them.
	Unasked []string `json:"unasked,omitempty" jsonschema:"bindings that the code uses if they are there and the manifest does not ask for"`
	// TookMS is how long each stage took, in milliseconds.
	TookMS map[string]float64 `json:"took_ms,omitempty" jsonschema:"how long each stage took, in milliseconds"`
	why    string             // why the release waits, if the policy says
	// Generation is what the model used to write it.
	Generation *Spent `json:"generation,omitempty" jsonschema:"what the model used that wrote it, in all and by its tries"`
}

type toolOutput struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type testOutput struct {
	Name    string             `json:"name,omitempty"`
	Tool    string             `json:"tool"`
	Passed  bool               `json:"passed"`
	Problem *extension.Problem `json:"problem,omitempty"`
	Logs    []string           `json:"logs,omitempty"`
	TookMS  float64            `json:"took_ms"`
}

func (e *endpoint) addWriting() {
	add[writeInput, writeOutput](e, "extension_write", "Write an extension", writeDescription, hints{open: true}, func(r *request, ctx context.Context, in writeInput) (*sdk.CallToolResult, error) {
		if result, err := r.answered(ctx); result != nil || err != nil {
			return result, err
		}
		draft, err := r.draft(ctx, in)
		if err != nil {
			return nil, err
		}
		written, err := e.options.Manager.Write(ctx, draft)
		if err != nil {
			return nil, err
		}
		return r.written(ctx, written, nil)
	})
	if e.options.Generate == nil {
		return
	}
	const description = "Has a model write an extension from a description, fixes it until it builds and passes its tests, and adds it as extension_write does. " +
		"It takes a while; when you can write the source yourself, extension_write is faster."
	add[generateInput, writeOutput](e, "extension_generate", "Generate an extension", description, hints{open: true}, func(r *request, ctx context.Context, in generateInput) (*sdk.CallToolResult, error) {
		if result, err := r.answered(ctx); result != nil || err != nil {
			return result, err
		}
		scope, err := e.scope(in.Scope)
		if err != nil {
			return nil, err
		}
		step := 0
		made, err := e.options.Generate(ctx, GenerateRequest{
			Description: in.Description, New: in.New, Scope: scope, Author: e.viewer.String(), Via: lifecycle.ViaMCP, Viewer: e.viewer,
			Progress: func(text string) { step++; r.progress(ctx, float64(step), 0, text) },
		})
		if err != nil {
			return r.ungenerated(err)
		}
		if made.Written == nil {
			return r.existing(made.Existing)
		}
		return r.written(ctx, made.Written, &made.Spent)
	})
}

// ungenerated explains why nothing was generated. The generator's own words go to the requester.
func (r *request) ungenerated(err error) (*sdk.CallToolResult, error) {
	if _, ok := r.explain(err, host.Usage{}); ok {
		return nil, err
	}
	f := failure{Kind: "failed", Message: printable.Short(err.Error(), maxMessage)}
	return f.result(false), nil
}

// existing offers existing extensions.
func (r *request) existing(found []lifecycle.Found) (*sdk.CallToolResult, error) {
	out := writeOutput{State: "existing", Tools: []toolOutput{}, Message: "These tools seem to do it already. If none does, call this again with new."}
	for _, f := range found {
		out.Tools = append(out.Tools, toolOutput{f.Name, printable.Text(f.Description)})
	}
	return r.answer(out)
}

func (r *request) draft(ctx context.Context, in writeInput) (lifecycle.Draft, error) {
	scope, err := r.scope(in.Scope)
	if err != nil {
		return lifecycle.Draft{}, err
	}
	d := lifecycle.Draft{Scope: scope, Entry: in.Entry, NoTypes: in.Types != nil && !*in.Types, Author: r.viewer.String(), Via: lifecycle.ViaMCP, Files: map[string][]byte{}}
	if d.Manifest, err = readManifest(in.Manifest.RawMessage); err != nil {
		return d, err
	}
	switch {
	case in.Source != "" && len(in.Files) > 0:
		return d, mistake("give source or files, not both")
	case in.Component != "" && (in.Source != "" || len(in.Files) > 0 || in.Entry != ""):
		return d, mistake("give a component or a source, not both")
	case in.Component != "":
		if d.Component, err = base64.StdEncoding.DecodeString(in.Component); err != nil {
			return d, mistake("component must be base64, with padding")
		}
		d.Files, d.Origin = nil, "the agent "+r.viewer.Agent
	case in.Source != "":
		d.Files["tool.ts"] = []byte(in.Source)
	default:
		for name, text := range in.Files {
			d.Files[name] = []byte(text)
		}
	}
	stages := extension.Stages(!d.NoTypes)
	at := func(stage extension.Stage) float64 { return float64(slices.Index(stages, stage)) }
	d.Progress = func(stage extension.Stage) { r.progress(ctx, at(stage), float64(len(stages)), string(stage)) }
	d.Working = func(stage extension.Stage, message string) {
		r.progress(ctx, at(stage), float64(len(stages)), string(stage)+": "+message)
	}
	return d, nil
}

// readManifest accepts a manifest as an object or as its text, and breaks it into lines, so that problems have places.
func readManifest(raw json.RawMessage) ([]byte, error) {
	if bytes.HasPrefix(raw, []byte{'"'}) {
		var text string
		err := json.Unmarshal(raw, &text)
		return []byte(text), err
	}
	if !json.Valid(raw) {
		return nil, mistake("manifest must be a JSON object")
	}
	return jsonform.Indent(raw, "  "), nil
}

// written reports the outcome of a draft. If the draft waits for a person, it has the client ask its person, if the client can.
func (r *request) written(ctx context.Context, w *lifecycle.Written, spent *Spent) (*sdk.CallToolResult, error) {
	out := &writeOutput{
		State: string(w.Release.State), Extension: w.Release.Name, Version: w.Version.Manifest.Version, Scope: w.Release.Scope.String(),
		Release: w.Release.ID, Digest: w.Release.Digest, Unchanged: w.Unchanged, Tools: []toolOutput{}, TookMS: map[string]float64{},
		Changes: texts(w.Changes), Cut: texts(w.Cut), Tests: testsOf(w.Tests), Generation: spent, Warnings: w.Version.Warnings(), Unasked: r.options.Manager.Unasked(w.Version),
	}
	for _, t := range w.Version.Tools {
		out.Tools = append(out.Tools, toolOutput{extension.ToolName(w.Release.Name, t.Name), printable.Text(t.Description)})
	}
	for stage, took := range w.Took {
		out.TookMS[string(stage)] = milliseconds(took)
	}
	granted, _ := r.options.Manager.Policy().Limit(w.Asked)
	var err error
	if out.Uses, err = uses(granted); err != nil {
		return nil, err
	}
	out.why = w.Why
	out.say()
	for _, text := range w.Untyped {
		out.Message += " " + printable.Short(text, maxMessage) + "."
	}
	if w.Unchecked != nil {
		out.Message += " " + printable.Short(w.Unchecked.Error(), maxMessage) + "."
	}
	if w.Release.State == lifecycle.Pending {
		return r.ask(ctx, question{*out, granted, w.Version})
	}
	return r.answer(out)
}

// say says what to do next.
func (o *writeOutput) say() {
	names := make([]string, len(o.Tools))
	for i, t := range o.Tools {
		names[i] = t.Name
	}
	if o.State == string(lifecycle.Active) {
		o.Message = strings.Join(names, ", ") + " can be called now."
		return
	}
	if o.State == string(lifecycle.Denied) {
		o.Message = "Your user refused it. Do not ask for the same again; ask your user what would be acceptable."
		return
	}
	why := "the policy leaves the decision to a person"
	if o.why != "" {
		why = printable.Short(o.why, 1000)
	}
	o.Message = fmt.Sprintf("It is built and waits for a person: %s. Tell your user to decide about request %d, with `stile ext approve %d` or on the page of `stile serve`; "+
		"no tool that you can call approves it. If another version is active, it stays in use meanwhile.", why, o.Release, o.Release)
}

// uses returns bindings in the form of a manifest.
func uses(bindings []extension.Binding) (map[string]any, error) {
	shown := map[string]any{}
	for _, b := range bindings {
		text, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("encode a binding: %w", err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return nil, fmt.Errorf("decode a binding: %w", err)
		}
		shown[b.Name] = value
	}
	return shown, nil
}

func texts(changes []extension.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, printable.Text(c.String()))
	}
	return all
}

func testsOf(results []trial.Result) []testOutput {
	var all []testOutput
	for _, t := range results {
		all = append(all, testOutput{printable.Text(t.Name), t.Tool, t.Passed, t.Problem, printed(t.Log), milliseconds(t.Duration)})
	}
	return all
}

func printed(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, printable.Text(line))
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
