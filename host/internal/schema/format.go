package schema

import (
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/printable"
)

// maxFormatted is the longest string with a format, in bytes, because some formats split the string before they look at it.
const maxFormatted = 64 << 10

// formats are the asserted formats, whatever the $schema. Others only
// inform readers: "regex" would parse an input's patterns, and the idn-
// formats need tables of names.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
	"relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// boundFormat returns the check of a format with a bound on its length. It is nil if the format is not asserted.
func boundFormat(f *jsonschema.Format) *jsonschema.Format {
	if f == nil || !slices.Contains(formats, f.Name) {
		return nil
	}
	return &jsonschema.Format{Name: f.Name, Validate: func(v any) error {
		if text, ok := v.(string); ok && len(text) > maxFormatted {
			return fmt.Errorf("it has more than %s", printable.Size(maxFormatted))
		}
		return f.Validate(v)
	}}
}
