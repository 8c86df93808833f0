package mcp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// maxSchemaDepth is how deep a schema that is shown nests; the host allows no more either.
const maxSchemaDepth = 128

// toolOf is how a client sees a tool. What its author wrote shows all its characters.
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
	input["type"] = "object" // the protocol demands that it is said
	tool.InputSchema = input
	if t.Definition.OutputSchema != nil {
		schema, err := readSchema(*t.Definition.OutputSchema)
		if err != nil {
			return nil, err
		}
		// Clients before 2026-07-28 refuse a whole list of tools for one with another result than an object.
		if output, ok := schema.(map[string]any); ok && output["type"] == "object" {
			tool.OutputSchema = output
		}
	}
	return tool, nil
}

// admitsObject says of the type of a schema whether an object can be of it.
func admitsObject(typ any) bool {
	several, _ := typ.([]any)
	return typ == nil || typ == "object" || slices.Contains(several, any("object"))
}

// readSchema reads a schema as it can be shown.
func readSchema(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var schema any
	if err := d.Decode(&schema); err != nil {
		return nil, err
	}
	return printableJSON(schema, 0)
}

// printableJSON has every text in a schema show all its characters, and takes out what would have a client send headers.
func printableJSON(value any, depth int) (any, error) {
	if depth > maxSchemaDepth {
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

// annotations say what a tool may do by the bindings that it has. What its author says of it is believed where it claims no less.
func annotations(t lifecycle.Tool) *sdk.ToolAnnotations {
	changes, open := false, false
	for _, b := range t.Bindings {
		c, o := reach(b.Grant)
		changes, open = changes || c, open || o
	}
	return &sdk.ToolAnnotations{
		ReadOnlyHint: !changes, DestructiveHint: &changes, OpenWorldHint: &open,
		IdempotentHint: !changes || t.Definition.Annotations.Idempotent,
	}
}

// reach says of a grant whether it can change something, and whether it reaches beyond this machine.
func reach(g capability.Grant) (changes, open bool) {
	if r, ok := g.(capability.Reacher); ok {
		return r.Reach()
	}
	harmless := g != nil && g.Kind().Harmless
	return !harmless, !harmless
}
