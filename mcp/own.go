package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// hints are what a client may show about one of Stile's own tools.
type hints struct{ readOnly, destructive, open bool }

// manifestText is a JSON object, or the text of one, because models send both.
type manifestText struct{ json.RawMessage }

// schemas adds what the schemas derived from Go types lack.
var schemas = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[manifestText]():    {Types: []string{"object", "string"}},
}}

// schemaOf is the schema of one of our types.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](schemas)
	if err != nil {
		panic(err)
	}
	return s
}

// add adds one of Stile's own tools. Its input and output have the schemas of In and Out.
func add[In, Out any](e *endpoint, name, title, description string, h hints, do func(*request, context.Context, In) (*sdk.CallToolResult, error)) {
	output := schemaOf[Out]()
	// The parts of a cut output and errors have this form too.
	output.Required, output.AdditionalProperties = nil, nil
	tool := &sdk.Tool{
		Name: name, Title: title, Description: description, InputSchema: schemaOf[In](), OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: h.readOnly, DestructiveHint: &h.destructive, OpenWorldHint: &h.open},
	}
	if reflect.TypeFor[Out]() == reflect.TypeFor[plain]() {
		tool.OutputSchema = nil
	}
	if !e.builtin[name] { // those of the ladder are known beforehand, since they come and go while others read
		e.builtin[name] = true
	}
	input, err := schemaOf[In]().Resolve(nil)
	if err != nil {
		panic(err)
	}
	refuse := func(err error) (*sdk.CallToolResult, error) {
		result := &sdk.CallToolResult{}
		result.SetError(err)
		return result, nil
	}
	// The SDK's typed AddTool encodes arguments again, in its own order and spelling, and decodes the result.
	e.sdk.AddTool(tool, func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in In
		if err := e.traffic.rooms.decode(ctx, call.Params.Arguments, func() error { return readArguments(call.Params.Arguments, input, &in) }); err != nil {
			return refuse(err)
		}
		r, done, err := e.begin(call, tool)
		if err != nil {
			f, _ := e.explain(err, host.Usage{})
			return f.result(false), nil
		}
		defer done()
		r.builtin = true
		result, err := do(r, ctx, in)
		if err != nil {
			result, err = r.fail(err, host.Usage{})
		}
		if err != nil {
			return refuse(err)
		}
		return result, nil
	})
}

// readArguments checks arguments against the schema and decodes them into in. A client may omit them all.
func readArguments(arguments json.RawMessage, schema *jsonschema.Resolved, in any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	values := map[string]any{}
	if err := json.Unmarshal(arguments, &values); err != nil {
		return mistake("arguments: not a JSON object")
	}
	if err := schema.Validate(values); err != nil {
		return wrongArguments(err)
	}
	if err := json.Unmarshal(arguments, in); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

var missingNames = lazyregexp.New(`^required: missing properties: \[(.+)\]$`)

// wrongArguments explains to a model what the library found.
func wrongArguments(err error) error {
	place, text := "arguments", err.Error()
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		at, found, split := strings.Cut(rest, ": ")
		if !ok || !split {
			break
		}
		text = found
		if at != "root" {
			place = "arguments" + strings.ReplaceAll(strings.ReplaceAll(at, "/properties/", "."), "/items", "[]")
		}
	}
	if names := missingNames.FindStringSubmatch(text); names != nil {
		verb := " is missing"
		if strings.Contains(names[1], `" "`) {
			verb = " are missing"
		}
		text = strings.ReplaceAll(names[1], `" "`, `", "`) + verb
	}
	return mistake(place + ": " + text)
}
