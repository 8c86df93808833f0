package generate

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

func TestNames(t *testing.T) {
	for _, test := range []struct{ description, want string }{
		{"Please make me a tool that converts kilometres to miles and back", "converts-kilometres-miles"},
		{"GitHub: list the open issues!", "github-list-open"},
		{"Größe ändern", "my-tool"},
		{"2 numbers", "numbers"},
		{"ビルド", "my-tool"},
		{"a-b", "b"},
		{strings.Repeat("x", 100), "my-tool"},
	} {
		got := nameFrom(test.description, "my__tool_")
		if got != test.want || !extension.IsName(got) {
			t.Errorf("%q: %q, want %q", test.description, got, test.want)
		}
	}
}
