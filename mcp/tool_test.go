package mcp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	captools "github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// What a client is told of a tool's powers is what its bindings say, and not what its author says.
func TestAnnotations(t *testing.T) {
	rules := func(methods ...string) http.Rights {
		return http.Rights{Rules: []http.Rule{{Host: "example.com", Methods: methods}}}
	}
	for _, c := range []struct {
		name           string
		grants         []capability.Grant
		readOnly, open bool
	}{
		{"nothing", nil, true, false},
		{"what reaches nothing", []capability.Grant{clock.Kind.On(), random.Kind.On(), console.Kind.On(), blob.Kind.On()}, true, false},
		{"the methods by default", []capability.Grant{rules()}, true, true},
		{"GET", []capability.Grant{rules("GET", "HEAD")}, true, true},
		{"POST", []capability.Grant{rules("GET", "POST")}, false, true},
		{"all methods", []capability.Grant{rules("*")}, false, true},
		{"a second rule", []capability.Grant{http.Rights{Rules: []http.Rule{{Host: "a"}, {Host: "b", Methods: []string{"DELETE"}}}}}, false, true},
		{"to read files", []capability.Grant{workspace.Rights{Path: "/", Access: workspace.Read}}, true, false},
		{"to write files", []capability.Grant{workspace.Rights{Path: "/", Access: workspace.ReadWrite}}, false, false},
		{"to write a directory", []capability.Grant{workspace.DiskRights{Path: "/", Access: workspace.ReadWrite}}, false, false},
		{"values", []capability.Grant{kv.Rights{}}, false, false},
		{"to read here and to write there", []capability.Grant{rules("GET"), kv.Rights{}}, false, true},
		{"an embedder's", []capability.Grant{capability.Custom{Name: "acme:crm/contacts@1.0.0"}}, false, true},
		{"tools", []capability.Grant{captools.Rights{}}, false, true},
		{"none that is known", []capability.Grant{nil}, false, true},
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
			if printable.Text(v) != v {
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

// The first request of an agent decodes no schemas, however many are offered: those of a page when a client lists it, and one when its tool is
// called.
func TestSchemasAreDecodedWhenShown(t *testing.T) {
	const tools = 7
	h := newHome(t, `{}`)
	names := make([]string, tools)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	source := fmt.Sprintf(`import { extension } from "stile"; const tools: any = {};
for (let i = 0; i < %d; i++) tools["t" + i] = { description: "T", input: { type: "object", default: Array(80000).fill([]) }, run: async () => i };
export default extension({ tools });`, tools)
	manifest, err := json.Marshal(map[string]any{"name": "large", "version": "1.0.0", "description": "Large schemas", "tools": names})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.manager.Write(t.Context(), lifecycle.Draft{
		Scope: extension.Scope{Kind: extension.Agent, Owner: "alice"}, Manifest: manifest, Files: map[string][]byte{"tool.ts": []byte(source)}, Author: "agent:alice", Via: "test",
	}); err != nil {
		t.Fatal(err)
	}
	h.close()
	h.open()
	c := h.client()
	took := func(do func() error) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) >> 20
	}
	first := took(func() error {
		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "code_run", Arguments: map[string]any{}})
		return err
	})
	list := took(func() error {
		page, err := c.ListTools(t.Context(), nil)
		if err == nil && !slices.ContainsFunc(page.Tools, func(tool *sdk.Tool) bool {
			schema, _ := tool.InputSchema.(map[string]any)
			items, _ := schema["default"].([]any)
			return tool.Name == "large_t3" && len(items) == 80000 && tool.Meta["stile/extension"] == "large"
		}) {
			t.Error("a schema is not listed")
		}
		return err
	})
	again := took(func() error { _, err := c.ListTools(t.Context(), nil); return err })
	if first > 4 || list < 100 {
		t.Errorf("the first request took %d MiB, the list %d, and the next list %d", first, list, again)
	}
	t.Logf("the first request took %d MiB, the list %d, and the next list %d", first, list, again)
}
