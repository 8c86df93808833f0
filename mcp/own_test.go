package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
)

// counted is a text that counts its reads.
type counted string

var readings int

func (c *counted) UnmarshalJSON(text []byte) error {
	readings++
	return json.Unmarshal(text, (*string)(c))
}

type ownInput struct {
	Text  counted `json:"text"`
	Count int     `json:"count,omitempty"`
}

type ownOutput struct {
	Text string `json:"text"`
}

// Arguments are read once, unchanged, and only if they match the schema.
func TestOwnArguments(t *testing.T) {
	h := newHome(t, "{}")
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	add[ownInput, ownOutput](e, "own_echo", "Echo", "Echoes.", hints{}, func(r *request, _ context.Context, in ownInput) (*sdk.CallToolResult, error) {
		calls++
		if in.Text == "fail" {
			return nil, errors.New("it failed")
		}
		return r.answer(ownOutput{string(in.Text)})
	})
	c := h.client()
	for _, p := range []struct {
		name, arguments, says string
		ok                    bool
	}{
		{"as they should be", `{"text":"a\u003cb"}`, `a\u003cb`, true},
		{"twice the same name", `{"text":"first","text":"last"}`, "last", true},
		{"none", ``, `arguments: "text" is missing`, false},
		{"nothing", `null`, `arguments: "text" is missing`, false},
		{"no object", `["text"]`, "arguments: not a JSON object", false},
		{"another type", `{"text":1}`, `arguments.text: type: 1 has type "integer", want "string"`, false},
		{"another spelling", `{"Text":"a"}`, "Text", false},
		{"one more", `{"text":"a","more":1}`, `arguments: unexpected additional properties ["more"]`, false},
		{"a fraction", `{"text":"a","count":1.5}`, `arguments.count: type: 1.5 has type "number", want "integer"`, false},
	} {
		t.Run(p.name, func(t *testing.T) {
			readings, calls = 0, 0
			params := &sdk.CallToolParams{Name: "own_echo"}
			if p.arguments != "" {
				params.Arguments = json.RawMessage(p.arguments)
			}
			r, err := c.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			if r.IsError == p.ok || !strings.Contains(text(r), p.says) || (calls == 1) != p.ok {
				t.Errorf("%d calls: %s", calls, text(r))
			}
			if want := strings.Count(p.arguments, `"text":"`); p.ok && readings != want {
				t.Errorf("read %d times, and it is there %d times", readings, want)
			}
		})
	}
	if r := c.tool("own_echo", map[string]any{"text": "fail"}); !r.IsError {
		t.Error(text(r))
	}
}

// TestNumbersInSchemas checks the numbers that descriptions of inputs state.
func TestNumbersInSchemas(t *testing.T) {
	for _, c := range []struct {
		schema          *jsonschema.Schema
		property, words string
	}{
		{schemaOf[listInput](), "limit", fmt.Sprintf("default %d", defaultList)},
		{schemaOf[namedInput](), "version", fmt.Sprintf("at least %d;", lifecycle.MinDigest)},
		{schemaOf[statsInput](), "unused_days", fmt.Sprintf("default %d", lifecycle.DefaultUnused/(24*time.Hour))},
	} {
		if p := c.schema.Properties[c.property]; p == nil || !strings.Contains(p.Description, c.words) {
			t.Errorf("%s does not say %q", c.property, c.words)
		}
	}
}
