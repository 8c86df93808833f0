package jsonform

import (
	"bytes"
	"encoding/json"
)

// Encode returns the JSON of a value without escapes for HTML and without a newline at its end. indent is for one level; without it
// the JSON is one line.
func Encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
