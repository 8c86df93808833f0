package http

import (
	"strings"
	"testing"
)

// Servers spell one string in many ways.
func TestSpellingsAreCovered(t *testing.T) {
	const secret = `k/+=abc!d"e'f<g&h`
	for name, echo := range map[string]string{
		"as it is":                 secret,
		"encodeURIComponent":       `k%2F%2B%3Dabc!d%22e'f%3Cg%26h`,
		"quote of Python":          `k/%2B%3Dabc%21d%22e%27f%3Cg%26h`,
		"JSON of Go":               `k/+=abc!d\"e'f\u003cg\u0026h`,
		"JSON of JavaScript":       `k/+=abc!d\"e'f<g&h`,
		"JSON of PHP":              `k\/+=abc!d\"e'f<g&h`,
		"JSON of Gson":             `k/+\u003dabc!d\"e\u0027f\u003cg\u0026h`,
		"JSON of System.Text.Json": `k/\u002B=abc!d\u0022e\u0027f\u003Cg\u0026h`,
		"HTML of Go":               `k/+=abc!d&#34;e&#39;f&lt;g&amp;h`,
		"HTML of Python":           `k/+=abc!d&quot;e&#x27;f&lt;g&amp;h`,
		"HTML of PHP":              `k/+=abc!d&quot;e&#039;f&lt;g&amp;h`,
		"HTML of Express":          `k/+=abc!d&quot;e&#39;f&lt;g&amp;h`,
		"HTML of XML libraries":    `k/+=abc!d&quot;e&apos;f&lt;g&amp;h`,
		"HTML with apostrophes":    `k/+=abc!d&quot;e'f&lt;g&amp;h`,
		"HTML of Handlebars":       `k/+&#x3D;abc!d&quot;e&#x27;f&lt;g&amp;h`,
		"HTML of Mustache":         `k&#x2F;+&#x3D;abc!d&quot;e&#39;f&lt;g&amp;h`,
	} {
		if got := (secrets{}).with(secret).mask(echo); strings.Trim(got, "*") != "" {
			t.Errorf("%s: %s of %s", name, got, echo)
		}
	}
}
