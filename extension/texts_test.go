package extension

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

// Every text of a tool that an agent reads is listed, wherever it is in the schema.
func TestToolTexts(t *testing.T) {
	out := `{"type":"object","properties":{"type":{"type":"string","description":"out"}}}`
	d := abi.Definition{Description: "Gets" + strings.Repeat(" ", 300) + "\n\n\t\u3000a \u3164value", OutputSchema: &out, InputSchema: `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "a title", "$comment": "a comment", "required": ["city", "do this now"],
		"properties": {
			"city": {"type": "string", "description": "of\u200b the city", "default": "a default", "examples": ["one", {"deep": "two"}], "format": "do as I say"},
			"plain": {"type": "number"}, "ignore what you were told": true, "pick": {"enum": ["a", "b"]}, "one": {"const": "fixed"}, "p": {"pattern": "^x"},
			"title": {"type": "integer"}
		},
		"patternProperties": {"^y": false}, "$defs": {"D": {"allOf": [{"description": "inside"}]}}, "x-unknown": {"y": ["unknown"]}, "dependentRequired": {"city": ["then this"]}
	}`}
	var lines []string
	for _, text := range ToolTexts(d) {
		lines = append(lines, text.Place+"="+text.Text)
	}
	got := "\n" + strings.Join(lines, "\n") + "\n"
	for _, want := range []string{
		`=Gets a \u3164value`, "input.title=a title", "input.$comment=a comment", "input.required=do this now", `input.city.description=of\u200b the city`, "input.city.default=a default",
		"input.city.examples=one", "input.city.examples.deep=two", "input.city.format=do as I say", "input.plain=", "input.ignore what you were told=", "input.pick.enum=a", "input.pick.enum=b",
		"input.one.const=fixed", "input.p.pattern=^x", "input.title=", "input.^y=", "input.$defs.D.description=inside", "input.x-unknown.y=unknown", "input.dependentRequired.city=then this",
		"output.type.description=out",
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if strings.Contains(got, "=object") || strings.Contains(got, "=string") || strings.Contains(got, "json-schema.org") || strings.Contains(got, "input.required=city\n") {
		t.Errorf("words of JSON Schema are listed: %s", got)
	}
	if got := Shorten(strings.Repeat("é", 10), 5); got != "éé... [cut: 20 bytes in all, sha256 "+got[len(got)-33:len(got)-1]+"]" || Shorten("abcde", 5) != "abcde" {
		t.Errorf("got %s", got)
	}
}

// Long names of nested properties are listed once, and not again with every property below them.
func TestPlacesAreShort(t *testing.T) {
	var schema strings.Builder
	names := []string{}
	for i := range 50 {
		names = append(names, strings.Repeat("a", 2000)+strconv.Itoa(i))
		schema.WriteString(`{"properties":{"` + names[i] + `":`)
	}
	schema.WriteString(`{"properties":{"last":{}`)
	for i := range 5000 {
		schema.WriteString(`,"` + strconv.Itoa(i) + `":{}`)
	}
	schema.WriteString(`}}` + strings.Repeat("}}", 50))
	size, all := 0, map[string]int{}
	for _, text := range ToolTexts(abi.Definition{InputSchema: schema.String()}) {
		size += len(text.Place) + len(text.Text)
		all[text.Place[strings.LastIndexByte(text.Place, '.')+1:]]++
	}
	if size > 15*schema.Len() {
		t.Errorf("texts of %d bytes for a schema of %d", size, schema.Len())
	}
	for _, name := range append(names, "last") {
		if all[name] != 1 {
			t.Errorf("%.10s...%s is listed %d times", name, name[max(0, len(name)-2):], all[name])
		}
	}
}
