package schematype

import (
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// valid reports whether a text is a type of TypeScript.
func valid(text string) bool {
	return len(api.Transform("let x: "+text+";", api.TransformOptions{Loader: api.LoaderTS}).Errors) == 0
}

func TestType(t *testing.T) {
	whole := Detail{Depth: 5, Comment: 100, Optional: 10}
	for _, c := range []struct {
		schema string
		detail Detail
		want   string
		less   bool
	}{
		{`{"type":"string"}`, whole, "string", false},
		{`{"type":["string","null"]}`, whole, "string | null", false},
		{`{"type":"integer"}`, whole, "number", false},
		{`{"enum":["a",1,true,null,"a"]}`, whole, `"a" | 1 | true | null`, false},
		{`{"const":"*/"}`, whole, `"*\/"`, false},
		{`{"type":"array","items":{"type":["string","null"]}}`, whole, "(string | null)[]", false},
		{`{"type":"array","items":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"number"}]}}`, whole, "({\n  a?: string;\n} | number)[]", false},
		{`{"type":"array"}`, whole, "any[]", false},
		{`{"type":"object","properties":{"b":{"type":"number","default":3,"maximum":9},"a":{"type":"string","description":"The */ a"},"c d":{}},"required":["b"]}`, whole, "{\n  /** (default 3, at most 9) */\n  b: number;\n  /** The * / a */\n  a?: string;\n  \"c d\"?: any;\n}", false},
		{`{"type":"object","additionalProperties":{"type":"number"}}`, whole, "Record<string, number>", false},
		{`{"type":"object","additionalProperties":false}`, whole, "{}", false},
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, whole, "string | number", false},
		{`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`, whole, "{\n  a?: string;\n} & {\n  b?: string;\n}", false},
		{`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, whole, "{\n  next?: any;\n}", true},
		{`{"$ref":"https://example.com/x"}`, whole, "any", false},
		{`{"$ref":"#"}`, whole, "any", true},
		{`true`, whole, "any", false},
		{`false`, whole, "never", false},
		{`{`, whole, "any", false},
		{`[]`, whole, "any", false},
		{strings.Repeat("[", 300_000), whole, "any", false},
		{`{"type":"object","properties":{"o":{"type":"object","properties":{"x":{},"y":{}}}},"required":["o"]}`, Detail{Depth: 1}, "{\n  o: Record<string, any> /* x, y */;\n}", true},
		{`{"type":"object","properties":{"a":{},"b":{},"c":{}},"required":["a"]}`, Detail{Depth: 1}, "{\n  a: any;\n  // optional, not shown: b, c\n}", true},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{}},"required":["a"]}`, Detail{Depth: 1, Line: true}, "{a: string, ...}", false},
	} {
		got, less := Parse(c.schema).Type(c.detail)
		if got != c.want || less != c.less {
			t.Errorf("%.100s: got %s, %v, want %s", c.schema, got, less, c.want)
		}
		if !c.detail.Line && !valid(got) {
			t.Errorf("this is no type: %s", got)
		}
	}
}

func TestField(t *testing.T) {
	s := Parse(`{"$defs":{"l":{"type":"object","properties":{"color":{"type":"string"}}}},"properties":{"labels":{"type":"array","items":{"$ref":"#/$defs/l"}}}}`)
	for _, step := range []string{"labels", "[]", "color"} {
		var ok bool
		if s, ok = s.Field(step); !ok {
			t.Fatalf("there is no %s", step)
		}
	}
	if got, _ := s.Type(Detail{}); got != "string" {
		t.Errorf("got %s", got)
	}
	if _, ok := s.Field("x"); ok {
		t.Error("there is a field")
	}
}

// Types are whole, whatever the schema is and however little is shown.
func FuzzType(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a\"*/":{"type":"string","description":"*/ //\n\u202e` + "`" + `","enum":["*/","\\"]},"__proto__":{}},"required":["zz"]}`,
		`{"allOf":[{"$ref":"#"},{"anyOf":[true,false,{"type":["array","object"],"items":{"oneOf":[{"type":"null"}]}}]}]}`, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		`{"type":"array","items":{"allOf":[{"type":"object","properties":{"x":{"items":{"enum":[1e400,-1]}}}}]}}`, `{"type":"number","default":"\u2028","minimum":1e999,"description":"a\\"}`,
	} {
		f.Add(schema)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		for _, d := range []Detail{{Depth: 4, Comment: 80, Optional: 20}, {Depth: 1, Comment: 20, Optional: 1}, {}} {
			if text, _ := Parse(schema).Type(d); !valid(text) {
				t.Fatalf("%q: this is no type: %s", schema, text)
			}
		}
	})
}
