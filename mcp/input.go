package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/formfield"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

const (
	inputName = "input" // of a question for input, in versions of the protocol that ask by an answer

	inputTime  = 5 * time.Minute // that a person has for it
	inputPause = time.Minute     // without questions for input, after a person gave none

	// An answer over HTTP has at most maxLater bytes, and a character at most 4.
	maxInputFields = 8
	maxInputChars  = 900 // of all texts that a person gives

	maxInputName = 64  // bytes
	maxInputText = 300 // bytes of what the author says about a field
	maxChoices   = 64
	maxChoice    = 100 // bytes
)

// inputQuestion is what a person is asked for: required properties of a tool's input that a call lacks.
type inputQuestion struct {
	tool, digest string
	names        []string // in the order of the schema
	schema       map[string]any
}

// inputAnswer is what a person gave, by the names of properties.
type inputAnswer map[string]json.RawMessage

// canAsk reports whether the client can show its person a form.
func (r *request) canAsk() bool {
	can := r.call.ClientCapabilities()
	return r.call.ClientInfo() != nil && can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// inputs returns the arguments of a call. If the client repeats a call with what a person gave, they have it, and again is true.
func (r *request) inputs(ctx context.Context) (arguments json.RawMessage, again bool, err error) {
	arguments = r.call.Params.Arguments
	if r.call.Params.RequestState == "" && len(r.call.Params.InputResponses) == 0 {
		return arguments, false, nil
	}
	q, ok := r.session.inputs.get(r.call.Params.RequestState, true)
	if !ok || q.tool != r.tool.Name || q.digest != digestOf(r.tool) {
		return nil, true, mistake("this question was answered already, or never asked")
	}
	r.session.answered()
	var still *inputQuestion // the arguments may have changed
	if err := r.traffic.rooms.decode(ctx, arguments, func() error { still = r.lacking(arguments); return nil }); err != nil || still == nil {
		return arguments, true, err
	}
	still.names = slices.DeleteFunc(still.names, func(name string) bool { return !slices.Contains(q.names, name) })
	said, _ := r.call.Params.InputResponses[inputName].(*sdk.ElicitResult)
	given, err := r.given(ctx, still, said)
	if err != nil {
		return nil, true, err
	}
	arguments, err = given.added(arguments)
	return arguments, true, err
}

func digestOf(t *sdk.Tool) string {
	digest, _ := t.Meta["stile/digest"].(string)
	return digest
}

// complete makes the client ask its person for what a call lacks that failed for it. It returns the arguments with the answer, or a result
// that asks. Without either, the call stays failed.
func (r *request) complete(ctx context.Context, failed error, arguments json.RawMessage) (json.RawMessage, *sdk.CallToolResult, error) {
	invalid, ok := errors.AsType[*host.InputError](failed)
	// All that is missing in one object is one problem. If there are others, the model has to correct them first.
	if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Path != "" || !r.canAsk() || r.session.pausing() {
		return nil, nil, nil
	}
	var q *inputQuestion
	if err := r.traffic.rooms.decode(ctx, arguments, func() error { q = r.lacking(arguments); return nil }); err != nil || q == nil {
		return nil, nil, err
	}
	if !r.session.opens() { // a person who declines one form must not find others behind it
		return nil, nil, nil
	}
	params := &sdk.ElicitParams{Mode: "form", Message: q.message(r), RequestedSchema: q.schema}
	if r.call.ProtocolVersion() >= sessionless {
		return nil, &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{inputName: params}, RequestState: r.session.inputs.put(q, 1)}, nil
	}
	defer r.session.answered()
	answered, err := r.options.Manager.Asking(r.viewer)
	if err != nil { // its other questions come first
		return nil, nil, nil
	}
	defer answered()
	asking, cancel := context.WithTimeout(ctx, inputTime)
	defer cancel()
	said, err := r.call.Session.Elicit(asking, params)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		r.options.Logger.Warn("ask a person for input", "error", printable.Short(err.Error(), 1000))
		r.session.pause()
		return nil, nil, nil
	}
	given, err := r.given(ctx, q, said)
	if err != nil || given == nil {
		return nil, nil, err
	}
	arguments, err = given.added(arguments)
	return arguments, nil, err
}

// lacking returns the question for what arguments lack. It is nil if that is nothing, or nothing that a person can be asked for.
func (r *request) lacking(arguments json.RawMessage) *inputQuestion {
	given := map[string]json.RawMessage{}
	text, _ := r.tool.InputSchema.(json.RawMessage)
	var schema struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(arguments) > 0 && json.Unmarshal(arguments, &given) != nil || json.Unmarshal(text, &schema) != nil {
		return nil
	}
	q := &inputQuestion{tool: r.tool.Name, digest: digestOf(r.tool)}
	fields := make(map[string]any)
	for _, name := range schema.Required {
		if _, has := given[name]; has || fields[name] != nil {
			continue
		}
		field := inputField(name, schema.Properties[name])
		if field == nil || len(fields) == maxInputFields { // one that nobody is asked for, and the others do not help
			return nil
		}
		fields[name], q.names = field, append(q.names, name)
	}
	if len(fields) == 0 {
		return nil
	}
	for _, name := range q.names { // so that the client tells the person
		field := fields[name].(map[string]any)
		if field["type"] != formfield.String || field["enum"] != nil {
			continue
		}
		most, least := maxInputChars/len(fields), 0
		if n, ok := field["minLength"].(int); ok {
			least = n
		}
		if n, ok := field["maxLength"].(int); ok {
			most = min(most, n)
		}
		if least > most {
			return nil
		}
		field["maxLength"] = most
	}
	q.schema = map[string]any{"type": "object", "properties": fields, "required": q.names}
	return q
}

// inputWord is the form of the names that a person is asked for. They are part of Stile's sentence, so they cannot be one themselves.
var inputWord = lazyregexp.New(`^[$\p{L}\p{N}_][$\p{L}\p{M}\p{N}_]*([.-][$\p{L}\p{N}_][$\p{L}\p{M}\p{N}_]*)*$`)

// inputField returns the field of a form for a property, or nil if it is a secret or has no form: the protocol has fields for texts, numbers,
// yes or no, and choices only. The call is validated by the whole schema afterwards.
func inputField(name string, schema json.RawMessage) map[string]any {
	var p struct {
		Type         any      `json:"type"`
		Title        string   `json:"title"`
		Description  string   `json:"description"`
		Format       string   `json:"format"`
		WriteOnly    bool     `json:"writeOnly"`
		Enum         []string `json:"enum"`
		Minimum      *float64 `json:"minimum"`
		Maximum      *float64 `json:"maximum"`
		MinLength    *int     `json:"minLength"`
		MaxLength    *int     `json:"maxLength"`
		Ref          any      `json:"$ref"`
		DynamicRef   any      `json:"$dynamicRef"`
		RecursiveRef any      `json:"$recursiveRef"`
		AllOf        any      `json:"allOf"`
		AnyOf        any      `json:"anyOf"`
		OneOf        any      `json:"oneOf"`
	}
	if json.Unmarshal(schema, &p) != nil || len(name) > maxInputName || !inputWord.MatchString(name) || printable.NextUnseen(name) >= 0 {
		return nil
	}
	if p.WriteOnly || p.Ref != nil || p.DynamicRef != nil || p.RecursiveRef != nil || p.AllOf != nil || p.AnyOf != nil || p.OneOf != nil {
		return nil
	}
	if slices.ContainsFunc([]string{name, p.Title, p.Description, p.Format}, formfield.Secret) {
		return nil
	}
	field := map[string]any{}
	if said := strings.Join(strings.Fields(cmp.Or(p.Description, p.Title)), " "); said != "" { // on one line, so that none looks like Stile's
		field["description"] = printable.Short(said, maxInputText)
	}
	switch p.Type {
	case nil:
		if p.Enum == nil {
			return nil
		}
		p.Type = formfield.String
	case formfield.String, formfield.Boolean:
	case formfield.Number, formfield.Integer:
		if p.Minimum != nil {
			field["minimum"] = *p.Minimum
		}
		if p.Maximum != nil {
			field["maximum"] = *p.Maximum
		}
	default:
		return nil
	}
	field["type"] = p.Type
	if p.Type == formfield.String {
		if p.Enum != nil {
			if len(p.Enum) == 0 || len(p.Enum) > maxChoices || slices.ContainsFunc(p.Enum, func(c string) bool { return len(c) > maxChoice || printable.NextUnseen(c) >= 0 }) {
				return nil
			}
			field["enum"] = p.Enum
		}
		if p.MinLength != nil && *p.MinLength > 0 {
			field["minLength"] = *p.MinLength
		}
		if p.MaxLength != nil && *p.MaxLength >= 0 {
			field["maxLength"] = *p.MaxLength
		}
		if slices.Contains([]string{"email", "uri", "date", "date-time"}, p.Format) {
			field["format"] = p.Format
		}
	}
	return field
}

// message says who asks.
func (q *inputQuestion) message(r *request) string {
	return fmt.Sprintf("The extension %v (%v) asks, for its tool %s. The agent %s called it without: %s. What it says about them are its author's words. Give what the call shall have, or decline. Enter no secrets: no password, key or code.",
		r.tool.Meta["stile/extension"], r.tool.Meta["stile/scope"], q.tool, r.viewer.Agent, strings.Join(q.names, ", "))
}

// given checks a person's reply and writes into the audit log that there was one. It is nil if the person gave nothing.
func (r *request) given(ctx context.Context, q *inputQuestion, said *sdk.ElicitResult) (inputAnswer, error) {
	if said == nil || said.Action != "accept" {
		r.session.pause()
		return nil, nil
	}
	given := inputAnswer{}
	var names []string
	for _, name := range q.names { // and nothing else that came along
		value, has := said.Content[name]
		if !has {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil || len(text) > 4*maxInputChars {
			return nil, mistake(fmt.Sprintf("what your user gave for %s has more than %d bytes", name, 4*maxInputChars))
		}
		switch value.(type) {
		case string, float64, bool:
			given[name], names = text, append(names, name)
		default:
			return nil, mistake("what your user gave for " + name + " is no text, number, true or false")
		}
	}
	if len(given) == 0 {
		r.session.pause()
		return nil, nil
	}
	err := r.options.Manager.Gave(ctx, r.viewer, q.tool, names, lifecycle.Decision{
		Digest: q.digest, By: lifecycle.Viewer{User: cmp.Or(r.viewer.User, extension.Local)}.String(), Via: lifecycle.ViaElicitation + printable.Short(r.call.ClientInfo().Name, 100),
	})
	return given, err
}

// added returns arguments, which lack what was asked for, with an answer.
func (a inputAnswer) added(arguments json.RawMessage) (json.RawMessage, error) {
	if len(a) == 0 {
		return arguments, nil
	}
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 {
		return json.Marshal(a)
	}
	if text[0] != '{' || text[len(text)-1] != '}' {
		return nil, mistake("arguments: not a JSON object")
	}
	more, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(text[1:]); rest[0] == '}' {
		return more, nil
	}
	return slices.Concat(more[:len(more)-1], []byte(","), text[1:]), nil
}

// opens reports whether the client may show a form for input, because none is open.
func (p *peer) opens() bool {
	now, until := time.Now(), p.open.Load()
	return now.UnixNano() >= until && p.open.CompareAndSwap(until, now.Add(inputTime).UnixNano())
}

// answered says that no form is open.
func (p *peer) answered() { p.open.Store(0) }

// pause keeps a person from being asked for input again at once.
func (p *peer) pause() { p.paused.Store(time.Now().Add(inputPause).UnixNano()) }

func (p *peer) pausing() bool { return time.Now().UnixNano() < p.paused.Load() }
