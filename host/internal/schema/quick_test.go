package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// quickSchemas are schemas that quick knows, and values at the edges of what it reads.
var quickSchemas = []struct {
	schema string
	values []string
}{
	{`true`, []string{
		`null`, `[true,false,{}]`, `-0`, `0.50`, `"\"\\\/\b\f\n\r\t"`, "\"\x7f\xff\u00e9\"", ` { "a" : [ 1 , "b" ] , "" : { } } `, "1\x00", `01`, `1.`, `-`, `.5`,
		`1e5`, `"\u0041"`, `nul`, `nulll`, `truefalse`, `[1,]`, `[,1]`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, "\"\n\"", `"`, ``, ` `, `{} {}`, "\ufeff1",
		strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat("1", 401), "-0." + strings.Repeat("1", 399),
	}},
	{
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":["string","null"]},"c":{"type":"integer"},"d":{"enum":["x","é",1,null]},"e":true},"required":["a","c"]}`,
		[]string{
			`{"a":1.5,"b":"t","c":-2,"d":"x","e":[{}]}`, `{"a":1,"c":1.0}`, `{"a":1,"c":1.5}`, `{"c":1,"a":0,"b":null,"other":{"a":"b"}}`, `{"a":1}`, `{"a":"1","c":1}`,
			`{"a":"1","a":1,"c":1}`, `{"a":1,"a":"1","c":1}`, `{"a":1,"c":1,"d":"\u0078"}`, `{"a":1,"c":1,"d":"é"}`, `{"a":1,"c":1,"d":1}`, `{"a":1,"\u0063":1}`, `[]`, `null`,
		},
	},
	{
		`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"on":{"type":"boolean"},"é":{"type":"string"}},"required":["on"],"additionalProperties":false}},"rest":{"additionalProperties":{"type":"integer"}}}}`,
		[]string{
			`{"list":[{"on":true},{"on":false}],"rest":{"x":1,"y":-20}}`, `{"list":[{"on":true,"off":1}]}`, `{"list":[{"on":true,"é":1}]}`, `{"list":[{}]}`, `{"list":[]}`,
			`{"rest":{"x":"1"}}`, `{"rest":[1]}`, `{"list":[{"on":1}]}`, `{"list":{}}`, "{\"list\":[{\"on\":true,\"\xff\":\"\"}]}",
		},
	},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","description":"d","additionalProperties":{"type":["array","boolean"]}}`, []string{`{"a":[1],"b":true}`, `{"a":1}`, `1`}},
}

// TestQuickIsRight changes each byte of the values to others, takes it out, and puts others before it. Whatever quick accepts is JSON, and
// the library accepts it too.
func TestQuickIsRight(t *testing.T) {
	const bytes = "\x00\x1f\t\n \"\\/,.:[]{}+-019aetnfu\x7f\x80\xc3\xff"
	for _, c := range quickSchemas {
		s, err := NewCompiler().Compile(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		if s.quick == nil {
			t.Fatalf("%s is not quick", c.schema)
		}
		accepted := 0
		check := func(text string) {
			if !s.quick.accepts([]byte(text)) {
				return
			}
			accepted++
			if err := s.validate(t.Context(), NewRoom(), []byte(text)); err != nil || !json.Valid([]byte(text)) {
				t.Errorf("%s accepts %q: %v", c.schema, text, err)
			}
		}
		for _, v := range c.values {
			check(v)
			for i := range min(len(v), 200) {
				check(v[:i] + v[i+1:])
				for _, b := range []byte(bytes) {
					check(v[:i] + string([]byte{b}) + v[i:])
					check(v[:i] + string([]byte{b}) + v[i+1:])
				}
			}
		}
		if !s.quick.accepts([]byte(c.values[0])) || accepted < 5 {
			t.Errorf("%s accepts %d, and %s: %v", c.schema, accepted, c.values[0], s.quick.accepts([]byte(c.values[0])))
		}
	}
}

// TestQuickKnowsItsKeywords compiles schemas with each keyword that asserts something else: the library must see all values.
func TestQuickKnowsItsKeywords(t *testing.T) {
	for _, text := range []string{
		`{"not":true}`, `false`, `{"properties":{"a":false}}`, `{"items":{"const":1}}`, `{"additionalProperties":{"minimum":1}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`,
		`{"allOf":[{"type":"null"}]}`, `{"anyOf":[{"type":"null"}]}`, `{"oneOf":[{"type":"null"}]}`, `{"if":true,"then":{"type":"null"}}`, `{"if":false,"else":{"type":"null"}}`,
		`{"format":"date"}`, `{"maxProperties":1}`, `{"minProperties":1}`, `{"propertyNames":{"maxLength":1}}`, `{"patternProperties":{"a":false}}`,
		`{"dependentRequired":{"a":["b"]}}`, `{"dependentSchemas":{"a":false}}`, `{"unevaluatedProperties":false}`, `{"minItems":1}`, `{"maxItems":1}`, `{"uniqueItems":true}`,
		`{"contains":{"type":"null"}}`, `{"prefixItems":[{"type":"null"}]}`, `{"unevaluatedItems":false}`, `{"minLength":1}`, `{"maxLength":1}`, `{"pattern":"a"}`,
		`{"maximum":1}`, `{"minimum":1}`, `{"exclusiveMaximum":1}`, `{"exclusiveMinimum":1}`, `{"multipleOf":2}`, `{"required":["a"]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"null"}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`,
	} {
		s, err := NewCompiler().Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if s.quick != nil {
			t.Errorf("%s is quick", text)
		}
	}
}

func FuzzQuick(f *testing.F) {
	var schemas []*Schema
	for _, c := range quickSchemas {
		s, err := NewCompiler().Compile(c.schema)
		if err != nil {
			f.Fatal(err)
		}
		schemas = append(schemas, s)
		for _, v := range c.values {
			f.Add([]byte(v))
		}
	}
	room := NewRoom()
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, s := range schemas {
			if !s.quick.accepts(text) {
				continue
			}
			if err := s.validate(t.Context(), room, text); err != nil || !json.Valid(text) {
				t.Errorf("%s accepts %q: %v", quickSchemas[i].schema, text, err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	s, err := NewCompiler().Compile(`{"type":"object","properties":{"lat1":{"type":"number"},"lon1":{"type":"number"},"lat2":{"type":"number"},"lon2":{"type":"number"},"unit":{"type":"string"}},"required":["lat1","lon1","lat2","lon2"]}`)
	if err != nil {
		b.Fatal(err)
	}
	room, input := NewRoom(), []byte(`{"lat1":48.8566,"lon1":2.3522,"lat2":51.5074,"lon2":-0.1278}`)
	for name, validate := range map[string]func() error{
		"quick":   func() error { return s.Validate(b.Context(), room, input) },
		"library": func() error { return s.validate(b.Context(), room, input) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := validate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
