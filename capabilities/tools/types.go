package tools

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/schematype"
)

// Typed is a tool with the schema of its result, JSON or empty.
type Typed struct {
	Description
	OutputSchema string
}

// typesBytes is how long the types of one binding are, about. Tools for which there is no room take and return anything.
const typesBytes = 64 << 10

// exact shows all of a schema that a type can say.
var exact = schematype.Detail{Depth: 12, Comment: 200, Optional: 1000}

// Types returns the TypeScript type of a binding that can call some tools by their full names. It names the type ToolCalls of the SDK.
func Types(tools []Typed) string {
	var b strings.Builder
	b.WriteString("ToolCalls & {\n")
	room := typesBytes
	for _, t := range tools {
		input, optional := typeOf(t.InputSchema, room)
		output, _ := typeOf(t.OutputSchema, room)
		mark := ""
		if optional {
			mark = "?"
		}
		line := fmt.Sprintf("      %s(input%s: %s): Promise<%s>;\n", t.Name, mark, input, output)
		if about := schematype.Comment(t.Description.Description, 300); about != "" {
			line = "      /** " + about + " */\n" + line
		}
		room -= min(room, len(line))
		b.WriteString(line)
	}
	b.WriteString("    }")
	return b.String()
}

// typeOf is the type of a schema, or any if a type would say less than the schema or take too much room. optional reports whether it
// requires nothing.
func typeOf(schema string, room int) (text string, optional bool) {
	if schema == "" {
		return "any", false
	}
	s := schematype.Parse(schema)
	text, less, ok := s.TypeWithin(exact, room)
	if less || !ok {
		text = "any"
	}
	return text, !s.Requires()
}
