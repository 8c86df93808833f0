package durable

import (
	"strings"
	"testing"
)

// A message that is nested deeper than encoding/json reads is no broken JSON, and is not called so.
func TestNestedTooDeep(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001): true,
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000): false,
		`"exceeded max depth`: false,
		`{"a": 1}`:            false,
	} {
		if nestedTooDeep([]byte(text)) != want {
			t.Errorf("%.20s of %d bytes: want %t", text, len(text), want)
		}
	}
}
