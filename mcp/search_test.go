package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension/lifecycle"
)

// TestSearch finds and describes tools of the agent, and no others.
func TestSearch(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	other := h.person(lifecycle.Viewer{User: "tom", Agent: "bob"}, "test", nil)
	does[writeOutput](c, "extension_write", tools("my-count", nil, object{"add": "input.n + 1"}))
	for _, look := range []struct {
		tool      string
		arguments object
		want      string
	}{
		{"code_search", object{"query": "counts, adding"}, "tools.my.count_add({...}): "},
		{"code_search", object{"query": "nothing like it"}, "No tool fits"},
		{"code_describe", object{"names": []string{"tools.my.count_add"}}, "tools.my.count_add(input: "},
		{"code_describe", object{"names": []string{"my_count_add"}}, "tools.my.count_add(input: "},
		{"code_describe", object{"names": []string{"my_count_sub"}}, `// there is no tool "my_count_sub"; there are my_count_add`},
	} {
		if got := text(c.tool(look.tool, look.arguments)); !strings.Contains(got, look.want) {
			t.Errorf("%s %v: got %s", look.tool, look.arguments, got)
		}
		if got := text(other.tool(look.tool, look.arguments)); strings.Contains(got, "count_add({") || strings.Contains(got, "(input") || strings.Contains(got, "there are") {
			t.Errorf("%s %v: another agent got %s", look.tool, look.arguments, got)
		}
	}
	for code, want := range map[string]string{
		`return await tools.describe("my_count_add");`:                             "tools.my.count_add(input: ",
		`return (await tools.search("add to a count")).map((t) => t.name).join();`: "my_count_add",
		`return await tools.my.count_add({ n: 1 });`:                               "2",
	} {
		if got := fmt.Sprint(does[codeOutput](c, "code_run", object{"code": code}).Result); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", code, got)
		}
	}
	if f := failed(t, c.tool("code_describe", object{"names": []string{}})); f.Kind != "input" {
		t.Errorf("got %+v", f)
	}
	does[removeOutput](c, "extension_remove", object{"extension": "my-count"})
	if got := text(c.tool("code_search", object{"query": "counts, adding"})); strings.Contains(got, "add") {
		t.Errorf("a removed tool is found: %s", got)
	}
}
