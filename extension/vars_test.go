package extension

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func varsManifest(t testing.TB, vars string) *Manifest {
	t.Helper()
	m, err := Parse([]byte(with(`"vars": ` + vars)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestConfigure fills defaults, takes what a person set, and leaves out what does not fit.
func TestConfigure(t *testing.T) {
	m := varsManifest(t, `{"team": {"type": "string", "default": "core"}, "limit": {"type": "integer", "maximum": 9, "default": 3}, "note": {"type": "string"}}`)
	for _, c := range []struct {
		set  map[string]json.RawMessage
		want string
		says []string
	}{
		{nil, `{"limit":3,"team":"core"}`, nil},
		{map[string]json.RawMessage{"note": []byte(`"x"`), "limit": []byte("4")}, `{"limit":4,"note":"x","team":"core"}`, nil},
		{map[string]json.RawMessage{"limit": []byte("10"), "note": []byte("1"), "gone": []byte("true"), "__proto__": []byte("{}")}, `{"limit":3,"team":"core"}`, []string{"limit", "note", "__proto__", "gone"}},
	} {
		states := m.Configure(c.set)
		var unfit []string
		for _, s := range states {
			if s.Unfit != "" {
				unfit = append(unfit, s.Var.Name)
			}
		}
		if got := string(VarsText(states)); got != c.want || !slices.Equal(unfit, c.says) {
			t.Errorf("%s: got %s, %q", c.set, got, unfit)
		}
	}
}

// TestHugeVars sets and declares as much as possible.
func TestHugeVars(t *testing.T) {
	long := `"` + strings.Repeat("x", 5<<10) + `"`
	m := varsManifest(t, `{"a": {"type": "string"}}`)
	if _, err := m.CheckVar("a", json.RawMessage(long)); err == nil || !strings.Contains(err.Error(), "4096 are allowed") {
		t.Errorf("a value of 5 KiB: %v", err)
	}
	set := map[string]json.RawMessage{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		set[name] = json.RawMessage(long[:4000])
	}
	if TooManyVars(set) == nil {
		t.Error("20,000 bytes of values are allowed")
	}
	var vars []string
	for i := range 65 {
		vars = append(vars, `"v`+string(rune('a'+i/10))+string(rune('a'+i%10))+`": {"type": "boolean"}`)
	}
	if _, err := Parse([]byte(with(`"vars": {` + strings.Join(vars, ",") + `}`))); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("65 vars: %v", err)
	}
}

func TestVarTypes(t *testing.T) {
	m := varsManifest(t, `{"team": {"type": "string", "enum": ["a\"b", "c"], "default": "c", "description": "Ends */ } here"}, "list": {"type": "array", "items": {"type": "string"}}, "n": {"type": "number"}}`)
	want := "readonly list?: readonly (string)[];\nreadonly n?: number;\n/** Ends *\u200b/ } here */ readonly team: \"a\\\"b\" | \"c\";"
	if got := strings.Join(VarTypes(m.Vars), "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestParseVar(t *testing.T) {
	m := varsManifest(t, `{"team": {"type": "string"}, "limit": {"type": "integer"}, "on": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}}`)
	for given, want := range map[string]string{
		"team=12":      `"12"`,
		"team=a=b":     `"a=b"`,
		"limit=3":      "3",
		"on=true":      "true",
		"limit=1.5":    "the value of limit must be a whole number",
		"limit=1e400":  "the value of limit must be a number",
		"limit= 1 2":   "the value of limit is more than one value",
		"on=yes":       "the value of on is not JSON; write 'on=true'",
		"tags=bug":     `the value of tags is not JSON; write 'tags=["bug"]'`,
		"tags=[a":      `the value of tags is not JSON; write 'tags=["a"]'`,
		"limit=it's":   "the value of limit is not JSON; write 'limit=3'",
		"tem=x":        `there is no var "tem"; did you mean team?`,
		"team":         "the form is NAME=VALUE",
		"__proto__={}": "must start with a-z",
	} {
		_, value, err := ParseVar(m, given)
		got := string(value)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
	for given, want := range map[string]string{"a=1": "1", "a=x": `"x"`, "a=": `""`, `a={"b":[1]}`: `{"b":[1]}`} {
		if _, value, err := ParseVar(nil, given); err != nil || string(value) != want {
			t.Errorf("without a manifest, %s: got %s, %v", given, value, err)
		}
	}
}

// All vars that are wrong are named at once, and no var is there then.
func TestManyWrongVars(t *testing.T) {
	_, err := Parse([]byte(with(`"vars": {"a": {"type": "string", "default": 5}, "b": {"type": "object"}, "good": {"type": "boolean"}, "api_token": {"type": "string"}, "X": {"type": "string"}, "c": {}}`)))
	wrong, ok := errors.AsType[*ManifestError](err)
	if !ok {
		t.Fatal(err)
	}
	var places []string
	for _, p := range wrong.Problems() {
		place, _, _ := strings.Cut(p.Text, ": ")
		places = append(places, place)
	}
	if got, want := strings.Join(places, " "), "vars.a.default vars.b.type vars.api_token vars.X vars.c"; got != want || !wrong.Gaps.Vars || len(wrong.Partial.Vars) > 0 {
		t.Errorf("problems at %s, want %s; gaps %v, vars %v", got, want, wrong.Gaps, wrong.Partial.Vars)
	}
}
