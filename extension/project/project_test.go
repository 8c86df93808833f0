package project

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// Every project has a manifest that is valid, names that are paths, and nothing left to fill in.
func TestNew(t *testing.T) {
	for _, language := range Languages() {
		p, err := New("my-tools-2", language)
		if err != nil {
			t.Fatal(err)
		}
		m, err := extension.Parse(p.Files["my-tools-2.json"])
		if err != nil || m.Name != "my-tools-2" || len(m.Tests) != len(m.Tools) {
			t.Errorf("%s: the manifest is %+v, %v", language, m, err)
		}
		for name, data := range p.Files {
			if !fs.ValidPath(name) || strings.HasSuffix(name, ".tmpl") || len(data) == 0 {
				t.Errorf("%s: %s has %d bytes", language, name, len(data))
			}
			if text := string(data); !strings.HasPrefix(name, "stile/") && strings.Contains(text, "{{") && !strings.Contains(text, `{{"`) {
				t.Errorf("%s: %s has something to fill in: %s", language, name, text)
			}
		}
		for _, command := range []string{p.Test, p.Run, p.Add} {
			if !strings.Contains(string(p.Files["README.md"]), command+"\n") {
				t.Errorf("%s: README.md does not have %s", language, command)
			}
		}
	}
	for _, c := range []struct {
		name, language string
		want           error
	}{
		{"x", "cobol", ErrLanguage},
		{"x", "", ErrLanguage},
		{"", "go", ErrName},
		{"../x", "go", ErrName},
		{"X", "go", ErrName},
		{"a/b", "go", ErrName},
		{"-a", "go", ErrName},
		{strings.Repeat("a", 65), "go", ErrName},
	} {
		if _, err := New(c.name, c.language); !errors.Is(err, c.want) {
			t.Errorf("%q in %q: %v", c.name, c.language, err)
		}
	}
}
