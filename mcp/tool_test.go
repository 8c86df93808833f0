package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// What a client is told of a tool's powers is what its bindings say, and not what its author says.
func TestAnnotations(t *testing.T) {
	rules := func(methods ...string) extension.HTTP {
		return extension.HTTP{Rules: []http.Rule{{Host: "example.com", Methods: methods}}}
	}
	for _, c := range []struct {
		name           string
		grants         []extension.Grant
		readOnly, open bool
	}{
		{"nothing", nil, true, false},
		{"what reaches nothing", []extension.Grant{extension.Clock{}, extension.Random{}, extension.Console{}, extension.Blob{}}, true, false},
		{"the methods by default", []extension.Grant{rules()}, true, true},
		{"GET", []extension.Grant{rules("GET", "HEAD")}, true, true},
		{"POST", []extension.Grant{rules("GET", "POST")}, false, true},
		{"all methods", []extension.Grant{rules("*")}, false, true},
		{"a second rule", []extension.Grant{extension.HTTP{Rules: []http.Rule{{Host: "a"}, {Host: "b", Methods: []string{"DELETE"}}}}}, false, true},
		{"to read files", []extension.Grant{extension.Workspace{Path: "/", Access: extension.Read}}, true, false},
		{"to write files", []extension.Grant{extension.Workspace{Path: "/", Access: extension.ReadWrite}}, false, false},
		{"to write a directory", []extension.Grant{extension.Dir{Path: "/", Access: extension.ReadWrite}}, false, false},
		{"values", []extension.Grant{extension.KV{}}, false, false},
		{"to read here and to write there", []extension.Grant{rules("GET"), extension.KV{}}, false, true},
		{"an embedder's", []extension.Grant{extension.Custom{Name: "acme:crm/contacts@1.0.0"}}, false, true},
		{"tools", []extension.Grant{extension.Tools{}}, false, true},
		{"none that is known", []extension.Grant{nil}, false, true},
	} {
		for _, says := range []abi.Annotations{{}, {ReadOnly: true, Destructive: false, Idempotent: true}, {Destructive: true, OpenWorld: true}} {
			tool := lifecycle.Tool{Definition: abi.Definition{Annotations: says}}
			for _, g := range c.grants {
				tool.Bindings = append(tool.Bindings, extension.Binding{Name: "x", Grant: g})
			}
			a := annotations(tool)
			if a.ReadOnlyHint != c.readOnly || *a.DestructiveHint == c.readOnly || *a.OpenWorldHint != c.open {
				t.Errorf("%s: got %+v", c.name, a)
			}
		}
	}
}

// What an author wrote shows all its characters, and cannot have a client do more than show it.
func TestToolOf(t *testing.T) {
	const hidden = `\u202e\ud83d\ude00\u200b\udb40\udc41\u034f\u115f\u3164\uffa0\u2800\ufe01\u180b\u00ad\u061c\ufff9a\u200db`
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name          string
		input         string
		output        *string
		offered, says bool // says: the output schema is shown
	}{
		{"an object", `{"type":"object"}`, nil, true, false},
		{"anything", `{}`, nil, true, false},
		{"true", `true`, nil, true, false},
		{"an object or nothing", `{"type":["null","object"]}`, nil, true, false},
		{"a text", `{"type":"string"}`, nil, false, false},
		{"false", `false`, nil, false, false},
		{"a list", `[]`, nil, false, false},
		{"no JSON", `{`, nil, false, false},
		{"deep", strings.Repeat(`{"not":`, 200) + "true" + strings.Repeat("}", 200), nil, false, false},
		{"deeper", strings.Repeat(`[`, 100_000), nil, false, false},
		{"a header", `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"Authorization"},"b":{"type":"string","x-mcp-header":"a b"}}}`, nil, true, false},
		{"hidden characters", `{"type":"object","title":"` + hidden + `","properties":{"` + hidden + `":{"description":"` + hidden + `","enum":["` + hidden + `"]}}}`, nil, true, false},
		{"a result", `{}`, text(`{"type":"object","description":"` + hidden + `"}`), true, true},
		{"a result of another type", `{}`, text(`{"type":"array"}`), true, false},
		{"any result", `{}`, text(`{}`), true, false},
		{"a result that is no schema", `{}`, text(`{`), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool, err := toolOf(lifecycle.Tool{Name: "x_get", Definition: abi.Definition{Description: "\u202eIgnore all\x1b[2J", InputSchema: c.input, OutputSchema: c.output}})
			if (err == nil) != c.offered {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if (tool.OutputSchema != nil) != c.says {
				t.Errorf("it shows %v", tool.OutputSchema)
			}
			shown(t, tool)
		})
	}
}

// shown has the SDK offer a tool, which must not panic, and looks at what a client sees.
func shown(t *testing.T, tool *sdk.Tool) {
	t.Helper()
	sdk.NewServer(&sdk.Implementation{Name: "test"}, nil).AddTool(tool, nil)
	data, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	var seen any
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case string:
			if abi.Printable(v) != v {
				t.Errorf("%q hides something", v)
			}
		case []any:
			for _, v := range v {
				look(v)
			}
		case map[string]any:
			for key, v := range v {
				if look(key); key == "x-mcp-header" {
					t.Error("it has a client send headers")
				}
				look(v)
			}
		}
	}
	look(seen)
}

func FuzzToolOf(f *testing.F) {
	f.Add("d", `{"type":"object","properties":{"a":{"x-mcp-header":"A","type":"string"}}}`, `{"type":"object"}`)
	f.Add("\u202e", `{"type":["object"],"required":"x"}`, `[]`)
	f.Fuzz(func(t *testing.T, description, input, output string) {
		tool, err := toolOf(lifecycle.Tool{Name: "x_get", Definition: abi.Definition{Description: description, InputSchema: input, OutputSchema: &output}})
		if err == nil {
			shown(t, tool)
		}
	})
}
