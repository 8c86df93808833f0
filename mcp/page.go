package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxPage is how many bytes of definitions one answer to tools/list has, unless it has only one tool. An agent can have tools of 200 MiB.
const maxPage = 2 << 20

// definitionSize is how many bytes of text a tool has in a list.
func definitionSize(t *sdk.Tool) int64 {
	return int64(len(t.Name) + len(t.Description) + schemaSize(t.InputSchema) + schemaSize(t.OutputSchema))
}

// schemaSize is the size of a schema from schemaText. Those of Stile's own tools are small.
func schemaSize(schema any) int {
	text, _ := schema.(json.RawMessage)
	return len(text)
}

// cursorAfter is the SDK's cursor for the page after a tool.
func cursorAfter(name string) string {
	var text bytes.Buffer
	_ = gob.NewEncoder(&text).Encode(struct{ LastUID string }{name}) // a string in memory
	return base64.URLEncoding.EncodeToString(text.Bytes())
}
