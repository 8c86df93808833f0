package inspect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestUnsatisfiable(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","enum":[]}`:                                                                                             "/enum: the list of values is empty",
		`{"type":"string","enum":[1,2]}`:                                                                                          "/enum: none of its values fits",
		`{"type":"integer","minimum":3,"enum":[1,2]}`:                                                                             "/enum: none of its values fits",
		`{"type":"integer","const":1.5}`:                                                                                          "/const: none of its values",
		`{"type":"number","minimum":2,"maximum":1}`:                                                                               "the minimum 2 is above",
		`{"type":"number","exclusiveMinimum":1,"maximum":1}`:                                                                      "the minimum 1 is above",
		`{"type":"integer","minimum":1.2,"maximum":1.8}`:                                                                          "no integer between",
		`{"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":-1}`:                                                          "no integer between",
		`{"type":"string","minLength":3,"maxLength":2}`:                                                                           "minLength 3 is above maxLength 2",
		`{"type":"array","minItems":3,"maxItems":2}`:                                                                              "minItems 3 is above maxItems 2",
		`{"type":"array","minItems":1,"items":{"type":"string","enum":[]}}`:                                                       "/items/enum: the list of values is empty",
		`{"type":"array","minItems":2,"prefixItems":[{"type":"string"}],"items":false}`:                                           "/items: false admits nothing",
		`{"type":"array","minItems":1,"prefixItems":[false]}`:                                                                     "/prefixItems/0: false admits nothing",
		`{"type":"object","required":["a"],"additionalProperties":false}`:                                                         `/required: the property "a" is required, and additionalProperties forbids it`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"number","minimum":1,"maximum":0}}}`:                         `/properties/a: the property "a" is required, and no value of it is possible: the minimum 1`,
		`{"type":"object","required":["a","b"],"maxProperties":1}`:                                                                "2 properties are required",
		`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"null","enum":[]}}}`: "the list of values is empty",
		`{"type":"object","allOf":[{"type":"string"}]}`:                                                                           "no value is of the type that allOf asks for",
		`{"type":"object","anyOf":[{"type":"string"},false]}`:                                                                     "no value is of the type that anyOf",
		`{"oneOf":[{"type":"string","minLength":2,"maxLength":1},{"enum":[]}]}`:                                                   "the list of values is empty",
		`{"type":"object","not":{}}`:                                                                                              "/not: everything is excluded",
		`false`:                                                                                                                   "false admits nothing",

		`true`: "", `{}`: "",
		`{"minimum":2,"maximum":1}`:                                                                            "", // a string
		`{"type":["number","null"],"minimum":2,"maximum":1}`:                                                   "",
		`{"type":"string","enum":["a",1]}`:                                                                     "",
		`{"type":"number","minimum":1,"maximum":1}`:                                                            "",
		`{"type":"integer","minimum":0.5,"maximum":1}`:                                                         "",
		`{"type":["integer","number"],"minimum":1.2,"maximum":1.8}`:                                            "",
		`{"type":"array","items":false}`:                                                                       "", // the empty list
		`{"type":"array","minItems":1,"prefixItems":[{}],"items":false}`:                                       "",
		`{"type":"object","properties":{"a":false}}`:                                                           "",
		`{"type":"object","required":["a"],"patternProperties":{"^a":{}},"additionalProperties":false}`:        "",
		`{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`: "",
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","enum":[]}`:  "",
		`{"allOf":[{"type":"object","required":["a"],"properties":{"a":{}}},{"type":"object","additionalProperties":{"type":"string"}}]}`: "",
		`{"type":"string","enum":["ab"],"maxLength":2}`:          "",
		`{"type":"string","const":"\ud83d\ude00","maxLength":1}`: "",
		`{"$ref":"other.json","type":"string"}`:                  "",
		`{"anyOf":[false,{"type":"string"}],"type":"string"}`:    "",
	} {
		path, why, found := Unsatisfiable(schema)
		if got := path + ": " + why; found != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v; want %q", schema, got, found, want)
		}
	}
}

// The time is that of reading the schema, also where references meet again and again.
func TestUnsatisfiableWork(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 2000 {
		next := strings.Repeat(`{"$ref":"#/$defs/a`+json.Number(itoa(i+1)).String()+`"},`, 10)
		b.WriteString(`"a` + itoa(i) + `":{"allOf":[` + strings.TrimSuffix(next, ",") + `]},`)
	}
	b.WriteString(`"a2000":{}}}`)
	if _, _, found := Unsatisfiable(b.String()); found { // each reference on its own, it would take for ever
		t.Error("found one")
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// FuzzUnsatisfiable has no schema that a value satisfies and that is said to have none.
func FuzzUnsatisfiable(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","required":["a"],"additionalProperties":false}`, `{"type":"string","enum":["a"]}`, `{"anyOf":[false,{"const":[]}]}`,
		`{"type":"integer","minimum":0,"maximum":1}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":["array","null"],"minItems":1}}}`, `{"not":{"type":"string"}}`,
	} {
		for _, value := range []string{`{"a":1}`, `"a"`, `[]`, `1`, `null`} {
			f.Add(seed, value)
		}
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		if len(schema) > 4096 || strings.Contains(schema, "$id") {
			t.Skip()
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Skip()
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
		if err != nil {
			t.Skip()
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		if err := c.AddResource("mem:///a.json", document); err != nil {
			t.Skip()
		}
		s, err := c.Compile("mem:///a.json")
		if err != nil || s.Validate(instance) != nil {
			t.Skip()
		}
		if path, why, found := Unsatisfiable(schema); found {
			t.Errorf("%s accepts %s, and %s: %s", schema, value, path, why)
		}
	})
}
