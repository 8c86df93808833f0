package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/printable"
)

// TestExpression says how code calls a tool, in a form that the sugar understands.
func TestExpression(t *testing.T) {
	for name, want := range map[string]string{
		"github_create_pr": "tools.github.create_pr", "sum": "tools.sum", "search_x": `tools.call("search_x")`, "describe_it": `tools.call("describe_it")`, "call": `tools.call("call")`,
		"a_b.c": `tools.call("a_b.c")`, `x"y`: `tools.call("x\"y")`, "then_go": `tools.call("then_go")`,
	} {
		if got := Expression(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

const issue = `{"type":"object","properties":{"owner":{"type":"string","description":"Who owns it"},"title":{"type":"string"},"labels":{"type":"array","items":{"type":"object","properties":{"color":{"type":"string"}}}}},"required":["owner","title"]}`

func TestLine(t *testing.T) {
	for _, c := range []struct {
		d    Description
		want string
	}{
		{Description{"forge_create_issue", "Create an issue", issue}, "tools.forge.create_issue({owner: string, title: string, labels?: {...}[]}): Create an issue"},
		{Description{"forge_ping", "", `{"type":"object","additionalProperties":false}`}, "tools.forge.ping({})"},
		{Description{"a_b.c", "Does\nit\u202e", `{}`}, `tools.call("a_b.c", any): Does it\u202e`},
	} {
		if got := Line(c.d); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestSignatures(t *testing.T) {
	all := []Description{{"forge_create_issue", "Create an issue */ now", issue}, {"a_b.c", "", `{"type":"object"}`}}
	for i := range 12 {
		var props []string
		for n := range 300 {
			props = append(props, fmt.Sprintf(`"field_%d":{"type":"object","description":%q,"properties":{"x":{"enum":[%q]},"y\u202e*/":{"type":"string"}}}`, n, strings.Repeat("long */ ", 40), strings.Repeat("v", 30)))
		}
		all = append(all, Description{fmt.Sprintf("large_t%d", i), strings.Repeat("Much to say. ", 100), `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":["field_7","field_8"]}`})
	}
	catalog := NewCatalog(all)
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{[]string{"forge_create_issue"}, []string{"/** Create an issue * / now */\ntools.forge.create_issue(input: {\n  /** Who owns it */\n  owner: string;\n  title: string;\n  labels?: {\n    color?: string;\n  }[];\n}): Promise<any>\n"}},
		{[]string{"tools.forge.create_issue({})", "forge.create_issue/labels/[]"}, []string{"tools.forge.create_issue(input: {", "// forge_create_issue/labels/[]\n{\n  color?: string;\n}\n"}},
		{[]string{"forge_create_issue/nothing"}, []string{`has no field "nothing"`}},
		{[]string{"a_b.c"}, []string{`tools.call("a_b.c", input: Record<string, any>): Promise<any>`}},
		{[]string{"forge_make_issue"}, []string{`// there is no tool "forge_make_issue"; there are forge_create_issue`}},
		{[]string{"large_t0"}, []string{"  field_7: ", "  field_8: ", "// optional, not shown: ", "// Left out: parts of large_t0"}},
		{[]string{"large_t0", "large_t1", "large_t2", "large_t3", "large_t4", "large_t5", "large_t6", "large_t7", "large_t8", "large_t9", "large_t10"}, []string{"tools.large.t0(", "tools.large.t9(", "the tools after the first 10"}},
		{nil, []string{"search finds them"}},
		{[]string{strings.Repeat("x", 1<<20), "\u202e", "", "/", "a/b/c"}, []string{"there is no tool"}},
	} {
		got := Signatures(catalog, c.names)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%.80q: got\n%s\nwant %s", c.names, got, want)
			}
		}
		if at, _ := printable.NextHidden(got, 0); at >= 0 || len(got) > DescribedBytes || strings.Count(got, "/*") != strings.Count(got, "*/") {
			t.Errorf("%.80q: %d bytes, hidden at %d:\n%s", c.names, len(got), at, got)
		}
	}
	if got := Lines(catalog.Search("", 100)); len(got) > FoundBytes+100 || !strings.Contains(got, "more found; there is room for no more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}
