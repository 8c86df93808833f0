package extension

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Text is one of the texts that an agent reads about a tool.
type Text struct {
	// Place is its position in the schemas, such as "input.city.description". It is empty for the tool's own description.
	Place string
	// Text is one printable line, with runs of white space folded, so that no part of it is out of sight. It is empty for the
	// name of a property that has no text.
	Text string
}

// plainWord matches values that need not be listed, of keywords whose values are words of JSON Schema.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_:/.#$-]{1,64}$`)

// structure are the keywords of a schema, as opposed to names that its author chose.
var structure = map[string]bool{
	"properties": true, "patternProperties": true, "additionalProperties": true, "items": true, "prefixItems": true, "allOf": true, "anyOf": true, "oneOf": true,
}

// ToolTexts returns all texts of a tool that an agent reads: its description, the names of properties, and every text in its schemas
// except words such as types.
func ToolTexts(d abi.Definition) []Text {
	texts := []Text{{"", folded(d.Description)}}
	schemas := []struct{ name, text string }{{"input", d.InputSchema}}
	if d.OutputSchema != nil {
		schemas = append(schemas, struct{ name, text string }{"output", *d.OutputSchema})
	}
	for _, s := range schemas {
		var schema any
		if err := json.Unmarshal([]byte(s.text), &schema); err != nil { // the host has already read it
			texts = append(texts, Text{s.name, folded(s.text)})
			continue
		}
		texts = schemaTexts(texts, s.name, "", false, schema)
	}
	return texts
}

// maxPlace is how much is shown of a long place, which is listed whole before, in the places below it.
const maxPlace = 100

// schemaTexts adds the texts of a value at a place. key is its keyword or name; named says that key is a name.
func schemaTexts(texts []Text, place, key string, named bool, value any) []Text {
	before := len(texts)
	if len(place) > 2*maxPlace { // what is below would repeat it
		texts = append(texts, Text{place, ""})
		place = Shorten(place, maxPlace)
	}
	switch v := value.(type) {
	case string:
		word := !named && slices.Contains([]string{"type", "format", "required", "$schema", "$ref"}, key)
		if !word || !plainWord.MatchString(v) {
			texts = append(texts, Text{place, folded(v)})
		}
	case []any:
		for _, item := range v {
			texts = schemaTexts(texts, place, key, named, item)
		}
	case map[string]any:
		names := !named && (key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions" || key == "dependentSchemas" || key == "dependentRequired")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below := place
			if names || !structure[name] {
				below += "." + folded(name)
			}
			texts = schemaTexts(texts, below, name, names, v[name])
		}
	}
	if named && len(texts) == before {
		texts = append(texts, Text{place, ""})
	}
	return texts
}

func folded(text string) string { return strings.Join(strings.Fields(printable.Text(text)), " ") }

// Shorten cuts text after a number of bytes, and appends its full length and digest.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... [cut: %s bytes in all, sha256 %.16x]", printable.Cut(text, most), humanize.Comma(int64(len(text))), sha256.Sum256([]byte(text)))
}
