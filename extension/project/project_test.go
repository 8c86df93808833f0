package project

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// Every project has a manifest that is valid, names that are paths, and nothing left to fill in.
func TestNew(t *testing.T) {
	for _, language := range Languages() {
		for _, template := range Templates(language) {
			p, err := New("my-tools-2", language, template)
			if err != nil {
				t.Fatal(err)
			}
			manifest := p.Files["my-tools-2.json"]
			if template == "multi-file" {
				manifest = p.Files["src/manifest.json"]
			}
			m, err := extension.Parse(manifest)
			if err != nil || m.Name != "my-tools-2" || !slices.Equal(m.Tools, slices.Sorted(slices.Values(p.Tools))) {
				t.Errorf("%s, %s: the manifest is %+v, %v", language, template, m, err)
				continue
			}
			for _, tool := range m.Tools {
				if !slices.ContainsFunc(m.Tests, func(test extension.Test) bool { return test.Tool == tool }) {
					t.Errorf("%s, %s: %s has no test", language, template, tool)
				}
			}
			for name, data := range p.Files {
				if !fs.ValidPath(name) || strings.HasSuffix(name, ".tmpl") || len(data) == 0 {
					t.Errorf("%s, %s: %s has %d bytes", language, template, name, len(data))
				}
				if text := string(data); !strings.HasPrefix(name, "stile/") && strings.Contains(text, "{{") && !strings.Contains(text, `{{"`) {
					t.Errorf("%s, %s: %s has something to fill in: %s", language, template, name, text)
				}
			}
			for _, command := range []string{p.Test, p.Setup, p.Run, p.Add} {
				if !strings.Contains(string(p.Files["README.md"]), command+"\n") {
					t.Errorf("%s, %s: README.md does not have %s", language, template, command)
				}
			}
		}
	}
	for _, c := range []struct {
		name, language, template string
		want                     error
	}{
		{"x", "cobol", "", ErrLanguage},
		{"x", "", "", ErrLanguage},
		{"x", "typescript", "none", ErrTemplate},
		{"x", "go", "npm", ErrTemplate},
		{"", "go", "", ErrName},
		{"../x", "go", "", ErrName},
		{"X", "go", "", ErrName},
		{"a/b", "go", "", ErrName},
		{"-a", "go", "", ErrName},
		{strings.Repeat("a", 65), "go", "", ErrName},
		{"", "typescript", "multi-file", ErrName},
		{"stile-x", "typescript", "", ErrName}, // its tools would have reserved names
		{"code", "go", "", ErrName},
		{"sandbox-x", "typescript", "multi-file", ErrName},
		{strings.Repeat("a", 60), "typescript", "", ErrName}, // its tools would have too long names
	} {
		if _, err := New(c.name, c.language, c.template); !errors.Is(err, c.want) {
			t.Errorf("%q in %q of %q: %v", c.name, c.language, c.template, err)
		}
	}
}
