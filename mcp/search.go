package mcp

import (
	"cmp"
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	captools "github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/ladder"
)

// A model that has thousands of tools reads a few hundred tokens of them: the lines that code_search finds, and the types that code_describe
// writes. Both answers have a limit that does not depend on how many tools there are.

type searchInput struct {
	Query string `json:"query" jsonschema:"what it should do, in plain words, with the service's name"`
	Limit int    `json:"limit,omitempty" jsonschema:"default 5"`
}

type describeInput struct {
	Names []string `json:"names" jsonschema:"e.g. [\"github.create_pr\"]; [\"github.create_pr/labels\"] for one field"`
}

// plain is the output of a tool that answers with text: it has no schema, and is not sent twice.
type plain struct{}

const maxFound = 20 // tools of one answer

// addSearch offers what finds tools for code.
func (e *endpoint) addSearch() {
	add[searchInput, plain](e, ladder.SearchTool, "Find tools",
		"Finds tools that code_run can call, by what they do. Answers one line each: how to call it, and what it does. If none fits, search again with words of the answer.", hints{readOnly: true}, inTurn(e.places.reading, (*request).search))
	add[describeInput, plain](e, ladder.DescribeTool, "Show types of tools",
		"Shows in TypeScript what some tools take, with comments.", hints{readOnly: true}, inTurn(e.places.reading, (*request).describe))
}

func (r *request) search(_ context.Context, in searchInput) (*sdk.CallToolResult, error) {
	limit := min(cmp.Or(max(in.Limit, 0), 5), maxFound)
	found := r.options.Manager.Finder(r.viewer).Search(printable.Cut(in.Query, 1<<10), limit)
	if len(found) == 0 {
		return said("No tool fits. Other words may find one; extension_write makes one."), nil
	}
	return said(captools.Lines(found)), nil
}

func (r *request) describe(_ context.Context, in describeInput) (*sdk.CallToolResult, error) {
	if len(in.Names) == 0 {
		return nil, mistake("names is empty; code_search finds names")
	}
	for i, name := range in.Names {
		if in.Names[i] = printable.Cut(name, 1<<10); i > 1000 {
			return nil, mistake(fmt.Sprintf("names has %d names; at most %d are described at once", len(in.Names), captools.MaxNames))
		}
	}
	return said(captools.Signatures(r.options.Manager.Finder(r.viewer), in.Names)), nil
}

// said is a result that is text.
func said(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}
