package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// toolOf returns a tool as a client sees it. It makes hidden characters in the author's texts visible.
func toolOf(t lifecycle.Tool) (*sdk.Tool, error) {
	tool := &sdk.Tool{
		Name: t.Name, Description: printable.Text(t.Definition.Description), Annotations: annotations(t),
		Meta: sdk.Meta{"stile/extension": t.Extension, "stile/scope": t.Scope.String(), "stile/digest": t.Digest},
	}
	schema, err := readSchema(t.Definition.InputSchema)
	if err != nil {
		return nil, err
	}
	if schema == true {
		schema = map[string]any{}
	}
	input, ok := schema.(map[string]any)
	if !ok || !admitsObject(input["type"]) {
		return nil, errors.New("its input is not an object")
	}
	input["type"] = "object" // the protocol requires it
	if tool.InputSchema, err = schemaText(input); err != nil {
		return nil, err
	}
	if t.Durable != nil {
		tool.Description += fmt.Sprintf("\nIt is durable: if it has not ended after %d s, it answers {\"run\": ..., \"state\": ...} and goes on. %s then waits for its result.", int(answerTime/time.Second), runResultTool)
	}
	if t.Definition.OutputSchema != nil && t.Durable == nil { // a durable tool may answer with its run instead
		schema, err := readSchema(*t.Definition.OutputSchema)
		if err != nil {
			return nil, err
		}
		// Clients before 2026-07-28 refuse the whole list if one tool's result is not an object.
		if output, ok := schema.(map[string]any); ok && output["type"] == "object" {
			if tool.OutputSchema, err = schemaText(output); err != nil {
				return nil, err
			}
		}
	}
	return tool, nil
}

// schemaText is a schema as text. A tool is kept as long as it is offered, and decoded values take up to 20 times the memory of their text.
func schemaText(schema map[string]any) (json.RawMessage, error) { return json.Marshal(schema) }

// admitsObject reports whether an object can match the type of a schema.
func admitsObject(typ any) bool {
	several, _ := typ.([]any)
	return typ == nil || typ == "object" || slices.Contains(several, any("object"))
}

// readSchema reads a schema and makes it safe to show.
func readSchema(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var schema any
	if err := d.Decode(&schema); err != nil {
		return nil, err
	}
	return printableJSON(schema, 0)
}

// printableJSON makes hidden characters in a schema visible, and removes what would make a client send headers.
func printableJSON(value any, depth int) (any, error) {
	if depth > host.MaxSchemaDepth {
		return nil, errors.New("its schema is nested too deep")
	}
	var err error
	switch v := value.(type) {
	case string:
		return printable.Text(v), nil
	case []any:
		for i := range v {
			if v[i], err = printableJSON(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, field := range v {
			if key == "x-mcp-header" {
				continue
			}
			if made[printable.Text(key)], err = printableJSON(field, depth+1); err != nil {
				return nil, err
			}
		}
		return made, nil
	default:
		return v, nil
	}
}

// annotations says what a tool may do according to its bindings. The author's hints count only if they claim at least as much.
func annotations(t lifecycle.Tool) *sdk.ToolAnnotations {
	changes, open := false, false
	for _, b := range t.Bindings {
		c, o := capability.Reaches(b.Grant)
		changes, open = changes || c, open || o
	}
	return &sdk.ToolAnnotations{
		ReadOnlyHint: !changes, DestructiveHint: &changes, OpenWorldHint: &open,
		IdempotentHint: !changes || t.Definition.Annotations.Idempotent,
	}
}
