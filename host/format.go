package host

import (
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxFormatted is the most bytes that a string with a format may have: some are split before they are looked at.
const maxFormatted = 64 * kib

// formats are asserted, whatever the $schema. Any other says something to readers only: "regex" would have an input's
// patterns parsed, and the idn- ones need tables of names.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
	"relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// boundFormat is a format as it is asserted; nil where it is not.
func boundFormat(f *jsonschema.Format) *jsonschema.Format {
	if f == nil || !slices.Contains(formats, f.Name) {
		return nil
	}
	return &jsonschema.Format{Name: f.Name, Validate: func(v any) error {
		if text, ok := v.(string); ok && len(text) > maxFormatted {
			return fmt.Errorf("it has more than %s", size(maxFormatted))
		}
		return f.Validate(v)
	}}
}
