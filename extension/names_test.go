package extension

import (
	"slices"
	"strings"
	"testing"
)

func TestToolName(t *testing.T) {
	for _, tt := range []struct{ extension, tool, want string }{
		{"github", "create_pr", "github_create_pr"},
		{"a-b", "c", "a_b_c"},
		{"a", "b_c", "a_b_c"},
		{"A-B", "C", "a_b_c"},
		{"a.b", "c d", "a_b_c_d"},
		{"\u0430", "\u202ec", "___c"},
		{"a\x00\xff", "\n", "a____"},
	} {
		if got := ToolName(tt.extension, tt.tool); got != tt.want {
			t.Errorf("%q, %q: got %q", tt.extension, tt.tool, got)
		}
	}
}

func TestCheckNames(t *testing.T) {
	held := map[string]string{"a_b_c": `the extension "a"`}
	for _, tt := range []struct{ name, extension, tool, want string }{
		{"free", "notes", "remove", ""},
		{"its own", "notes", "add", ""},
		{"a collision", "a-b", "c", `manifest.json: the tool c would be called a_b_c, which a tool of the extension "a" is called already; write another name`},
		{"Stile's own", "extension", "write", "manifest.json: the tool write would be called extension_write, and such names are reserved for Stile; write another name for the extension"},
		{"Stile's own, generate", "extension", "generate", "manifest.json: the tool generate would be called extension_generate, and such names are reserved for Stile; write another name for the extension"},
		{"like Stile's own", "extension-list", "all", "manifest.json: the tool all would be called extension_list_all, and such names are reserved for Stile; write another name for the extension"},
		{"code", "code", "run", "manifest.json: the tool run would be called code_run, and such names are reserved for Stile; write another name for the extension"},
		{"stile", "stile-x", "y", "manifest.json: the tool y would be called stile_x_y, and such names are reserved for Stile; write another name for the extension"},
		{"nearly Stile's own", "codes", "run", ""},
		{"extensions", "extensions", "write", ""},
		{"a Cyrillic letter", "n\u043etes", "add", `manifest.json: the tool "add" of "n\u043etes" cannot be registered; write names of a-z and 0-9`},
		{"a fullwidth tool", "notes", "\uff41dd", `manifest.json: the tool "\uff41dd" of "notes" cannot be registered; write names of a-z and 0-9`},
		{"capitals", "Notes", "add", `manifest.json: the tool "add" of "Notes" cannot be registered; write names of a-z and 0-9`},
		{"a dash in a tool", "notes", "a-b", `manifest.json: the tool "a-b" of "notes" cannot be registered; write names of a-z and 0-9`},
		{"as long as can be", strings.Repeat("a", 32), strings.Repeat("b", 31), ""},
		{
			"too long", strings.Repeat("a", 33), "b" + strings.Repeat("c", 30),
			"manifest.json: the tool b" + strings.Repeat("c", 30) + " would be called " + strings.Repeat("a", 33) + "_b" + strings.Repeat("c", 30) + ", which has 65 bytes; 64 are allowed; write a shorter name",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &Manifest{Name: tt.extension, Tools: []string{tt.tool}}
			var got []string
			for _, p := range m.CheckNames(nil, func(tool string) string { return held[tool] }) {
				got = append(got, p.String())
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
	m := &Manifest{Name: "notes", Tools: []string{"add"}, Bindings: []Binding{{Name: "runs"}, {Name: "run"}, {Name: "vars"}}}
	want := []string{
		"manifest.json: the binding runs cannot be granted: env.runs is reserved for Stile; write another name for the binding",
		"manifest.json: the binding vars cannot be granted: env.vars is reserved for Stile; write another name for the binding",
	}
	var got []string
	for _, p := range m.CheckNames(nil, func(string) string { return "" }) {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, tool := range []string{
		"extension_write", "extension_generate", "extension_list", "extension_source", "extension_test", "extension_remove", "extension_stats", "code_run", "code", "stile_x", "extension",
		"workspace_read", "browser", "sandbox_run", "agent_x", "context_get", "sql_query", "run_list", "schema_x",
	} {
		if !Reserved(tool) {
			t.Errorf("%s is free", tool)
		}
	}
	for _, tool := range []string{"", "github_create_pr", "extensions_x", "stiles", "decode_run", "workspaces_x", "my_run_x", "rune"} {
		if Reserved(tool) {
			t.Errorf("%s is reserved", tool)
		}
	}
}
