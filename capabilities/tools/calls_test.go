package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

func parsed(text string) (Calls, *jsonform.Error) {
	r := jsonform.New("list", []byte(text))
	g, _ := parse(r, r.Parse()).(Calls)
	return g, r.Err
}

func TestPatterns(t *testing.T) {
	for text, wrong := range map[string]string{
		`["b_*", "a_get", "*", "*_list"]`:     "",
		`true`:                                "true where a list belongs",
		`[]`:                                  "the list is empty",
		`["a", 1]`:                            "a number where text belongs",
		`["a", "a"]`:                          `"a" is here twice`,
		`[""]`:                                `"" names no tools`,
		`["**"]`:                              `"**" names no tools`,
		`["a*b*"]`:                            `"a*b*" names no tools`,
		`["A_*"]`:                             `"A_*" names no tools`,
		`["a b"]`:                             `"a b" names no tools`,
		`["a.get"]`:                           `"a.get" names no tools`,
		`["a\u0000"]`:                         "names no tools",
		`["` + strings.Repeat("a", 65) + `"]`: "has 65 bytes",
		`[` + strings.Repeat(`"a",`, 32) + `"b"]`:      "the list has 33 elements",
		`["constructor", "__proto__", "then", "a__b"]`: "",
	} {
		_, err := parsed(text)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Problem(), wrong) {
			t.Errorf("%.40s: got %v, want %s", text, err, wrong)
		}
	}
	g, _ := parsed(`["b_*", "*_get", "exact"]`)
	if !slices.Equal(g.Patterns, []string{"*_get", "b_*", "exact"}) {
		t.Errorf("got %v", g.Patterns)
	}
	for name, is := range map[string]bool{"b_x": true, "b_": true, "b": false, "a_get": true, "_get": true, "get": false, "exact": true, "exactly": false} {
		if g.Names(name) != is {
			t.Errorf("%s: %t", name, !is)
		}
	}
	if g, _ := parsed(`["a_*_b"]`); g.Names("a_b") || !g.Names("a__b") {
		t.Error("what is before and after the star overlaps")
	}
}

// TestPatternsCover checks that patterns cover no others that admit a name which they do not.
func TestPatternsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab]{0,3}\*?[ab]{0,3}`).Filter(isPattern)
		list := rapid.SliceOfN(pattern, 1, 3)
		allowed, asked := Calls{Patterns: list.Draw(t, "allowed")}, Calls{Patterns: list.Draw(t, "asked")}
		if !allowed.Covers(asked) {
			return
		}
		p := rapid.SampledFrom(asked.Patterns).Draw(t, "pattern")
		name := strings.ReplaceAll(p, "*", rapid.StringMatching(`[ab]{0,6}`).Draw(t, "rest"))
		if !allowed.Names(name) {
			t.Errorf("%v covers %v, and does not admit %s", allowed.Patterns, asked.Patterns, name)
		}
	})
}

// may is a grant that covers what is not larger.
type may int

func (may) Kind() *capability.Kind    { return &capability.Kind{Name: "may"} }
func (may) Interface() string         { return "acme:x/may" }
func (g may) Document() any           { return int(g) }
func (g may) Describe() []string      { return []string{fmt.Sprintf("may do %d", g)} }
func (g may) Authority() []string     { return []string{fmt.Sprintf("may %d", g)} }
func (g may) Size() (rules, work int) { return 1, 1 }
func (g may) Reach() (bool, bool)     { return g > 1, g > 2 }
func (g may) Covers(asked capability.Grant) bool {
	a, ok := asked.(may)
	return ok && a <= g
}

func TestCalleesCover(t *testing.T) {
	callee := func(scope, name string, does may, tools ...string) capability.Callee {
		return capability.Callee{Scope: scope, Extension: name, Tools: tools, Grants: map[string]capability.Grant{"x": does}}
	}
	inner := callee("shared", "b", 1)
	inner.Inner = []string{"b_get"}
	approved := Calls{Patterns: []string{"*"}}.WithCallees([]capability.Callee{callee("shared", "a", 2, "a_get", "a_list"), inner})
	deeper := callee("shared", "a", 1)
	deeper.Inner = []string{"a_get"}
	for name, c := range map[string]struct {
		now []capability.Callee
		is  bool
	}{
		"nothing":                       {[]capability.Callee{}, true},
		"the same":                      {approved.Callees(), true},
		"less":                          {[]capability.Callee{callee("shared", "a", 1, "a_list")}, true},
		"without grants":                {[]capability.Callee{{Scope: "shared", Extension: "a", Tools: []string{"a_get"}}}, true},
		"more":                          {[]capability.Callee{callee("shared", "a", 3, "a_get")}, false},
		"another tool":                  {[]capability.Callee{callee("shared", "a", 1, "a_get", "a_put")}, false},
		"another scope":                 {[]capability.Callee{callee("agent:a", "a", 1, "a_get")}, false},
		"another extension":             {[]capability.Callee{callee("shared", "c", 0, "a_get")}, false},
		"an inner tool directly":        {[]capability.Callee{callee("shared", "b", 1, "b_get")}, false},
		"a direct tool as an inner one": {[]capability.Callee{deeper}, true},
	} {
		if approved.Covers(approved.WithCallees(c.now)) != c.is {
			t.Errorf("%s: %t", name, !c.is)
		}
	}
	if approved.Covers(Calls{Patterns: []string{"a_get"}}) {
		t.Error("what patterns mean is not known")
	}
	if !(Calls{Patterns: []string{"a_*"}}).Covers(approved) || (Calls{Patterns: []string{"a_g*"}}).Covers(approved) {
		t.Error("patterns of a policy speak of the tools that the binding may call itself")
	}
	if (Rights{Files: []string{"a.ts"}}).Covers(approved) || approved.Covers(Rights{Files: []string{"a.ts"}}) {
		t.Error("files are no patterns")
	}
	if got, want := approved.Describe(), []string{
		"may call a_get, a_list of a in shared", "makes a in shared act, which may do 2", "makes other callees call b_get of b in shared", "makes b in shared act, which may do 1",
	}; !slices.Equal(got, want) {
		t.Errorf("a person reads %q", got)
	}
	if changes, open := capability.Reaches(approved); !changes || open {
		t.Errorf("it reaches %t, %t", changes, open)
	}
	if changes, open := capability.Reaches(Calls{}); !changes || !open {
		t.Error("what is not known can reach everything")
	}
}

// TestUnnamed names the line of a manifest that would allow a call, if the name can be in one.
func TestUnnamed(t *testing.T) {
	g := Calls{Patterns: []string{"b_*"}}
	for name, want := range map[string]string{
		"a_get": `"bindings": { "helpers": {"tools":["a_get","b_*"]} }`, "*": "", "A": "", "": "", strings.Repeat("a", 65): "", "a\"}": "",
	} {
		var e *abi.Error
		if !errors.As(g.Unnamed(name), &e) || e.Denial == nil {
			t.Fatalf("%q: no denial", name)
		}
		got := ""
		if e.Denial.Wants != nil {
			got = e.Denial.Wants.Remedy("helpers")
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func TestTypes(t *testing.T) {
	got := Types([]Typed{
		{Description{"a_get", "Gets */ it", `{"type": "object", "properties": {"id": {"type": "integer"}, "deep": {"type": "object", "properties": {"x": {"type": "string"}}}}, "required": ["id"]}`}, `{"type": "array", "items": {"type": "string"}}`},
		{Description{"a_now", "", `{"type": "object"}`}, ""},
		{Description{"a_bad", "", `{`}, `{`},
	})
	for _, want := range []string{
		"ToolCalls & {\n", "/** Gets * / it */", "a_get(input: {\n", "id: number;", "deep?: {", "): Promise<string[]>;\n", "a_now(input?: Record<string, any>): Promise<any>;\n", "a_bad(input?: any): Promise<any>;\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	var many []Typed
	for i := range MaxCalled {
		many = append(many, Typed{Description{Name: fmt.Sprintf("a_%d", i), InputSchema: `{"type": "object", "properties": {` + strings.Repeat(fmt.Sprintf(`"f%d": {"type": "string"}, `, i), 1) + `"long": {"enum": ["` + strings.Repeat("x", 1000) + `"]}}}`}, ""})
	}
	if got := Types(many); len(got) > typesBytes+MaxCalled*60 {
		t.Errorf("the types have %d bytes", len(got))
	}
}
