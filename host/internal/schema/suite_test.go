package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/suite"
)

// remotes has the documents that the suite serves at an address, and the $schema of those that name none. No tool's schema has any such.
type remotes struct {
	fs.FS
	dialect string
}

func (r remotes) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, "http://localhost:1234/")
	if !ok {
		return noLoader{}.Load(url)
	}
	text, err := fs.ReadFile(r, "remotes/"+name)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(inDialect(text, r.dialect)))
}

// inDialect adds a $schema to one that names none.
func inDialect(text []byte, dialect string) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil || object["$schema"] != nil || dialect == "" {
		return text
	}
	object["$schema"] = fmt.Appendf(nil, "%q", dialect)
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestSchemaSuite runs JSON-Schema-Test-Suite, and compares the tests that do not pass with testdata/suite.txt. Where the
// suite's default is that "format" asserts nothing, ours is that it does.
func TestSchemaSuite(t *testing.T) {
	files, err := fs.Sub(suite.Module(t, "github.com/kaptinlin/jsonschema"), "testdata/JSON-Schema-Test-Suite")
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile("testdata/suite.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tests, dialect string
		count          int
	}{
		{"draft2020-12", "", 1238},
		{"draft2020-12/optional/format", "", 478},
		{"draft2019-09", "https://json-schema.org/draft/2019-09/schema", 1220},
		{"draft7", "http://json-schema.org/draft-07/schema#", 906},
		{"draft7/optional/format", "http://json-schema.org/draft-07/schema#", 423},
	} {
		t.Run(c.tests, func(t *testing.T) {
			names, err := fs.Glob(files, "tests/"+c.tests+"/*.json")
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			var failed []string
			for _, name := range names {
				text, err := fs.ReadFile(files, name)
				if err != nil {
					t.Fatal(err)
				}
				var groups []suiteGroup
				if err := json.Unmarshal(text, &groups); err != nil {
					t.Fatal(err)
				}
				for _, g := range groups {
					count += len(g.Tests)
					for _, test := range g.failed(t, remotes{files, c.dialect}) {
						failed = append(failed, strings.TrimPrefix(name, "tests/")+": "+g.Description+": "+test)
					}
				}
			}
			if count != c.count {
				t.Errorf("%d tests, want %d", count, c.count)
			}
			var want []string
			for line := range strings.Lines(string(known)) {
				if file, _, _ := strings.Cut(line, ":"); path.Dir(file) == c.tests {
					want = append(want, strings.TrimSpace(line))
				}
			}
			if !slices.Equal(failed, want) {
				t.Errorf("these do not pass:\n%s\nwant\n%s", strings.Join(failed, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// failed runs the tests of a group and names those that do not pass.
func (g *suiteGroup) failed(t *testing.T, documents remotes) (failed []string) {
	t.Helper()
	compiler := NewCompiler()
	compiler.loader = documents
	room := NewRoom()
	s, err := compiler.Compile(string(inDialect(g.Schema, documents.dialect)))
	for _, test := range g.Tests {
		if err != nil {
			failed = append(failed, test.Description+": refused: "+err.Error())
			continue
		}
		err := s.validate(t.Context(), room, test.Data)
		if quick := s.quick.accepts(test.Data); quick && err != nil {
			t.Errorf("%s: %s: quick accepts it: %v", g.Description, test.Description, err)
		}
		if err != nil && !errors.As(err, new(*InvalidError)) {
			t.Errorf("%s: %s: %v", g.Description, test.Description, err)
		}
		if (err == nil) != test.Valid {
			failed = append(failed, test.Description)
		}
	}
	return failed
}

// A format means the same in every dialect.
func TestFormats(t *testing.T) {
	long := strings.Repeat("a", maxFormatted)
	for _, c := range []struct{ format, valid, invalid string }{
		{"date", "2024-02-29", "2023-02-29"},
		{"date-time", "2024-02-29T23:59:60Z", "2024-02-29 23:59"},
		{"duration", "P1DT2H", "1 day"},
		{"email", "a@example.com", "a at example.com"},
		{"hostname", "example.com", "-example.com"},
		{"ipv4", "127.0.0.1", "127.0.0.01"},
		{"ipv6", "::1", "::1%eth0"},
		{"iri", "https://example.com/ü", "/ü"},
		{"iri-reference", "/ü", `\ü`},
		{"json-pointer", "/a~1b", "/a~2b"},
		{"relative-json-pointer", "1/a", "/a"},
		{"time", "23:59:60Z", "23:59"},
		{"uri", "https://example.com/", "//example.com/"},
		{"uri-reference", "//example.com/", `\\example`},
		{"uri-template", "https://example.com/{id}", "https://example.com/{id"},
		{"uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08"},
		// Not asserted.
		{"regex", "(", ""},
		{"idn-email", "a", ""},
		{"idn-hostname", "\u302e", ""},
		{"semver", "a", ""},
		{"period", "a", ""},
		{"no-such", long + long, ""},
	} {
		for _, dialect := range []string{
			"", `"$schema":"https://json-schema.org/draft/2020-12/schema",`, `"$schema":"https://json-schema.org/draft/2019-09/schema",`,
			`"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"http://json-schema.org/draft-04/schema#",`,
		} {
			compiler := NewCompiler()
			s, err := compiler.Compile(fmt.Sprintf(`{%s"format":%q}`, dialect, c.format))
			if err != nil {
				t.Fatal(err)
			}
			check := func(v any) error {
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				return s.Validate(t.Context(), NewRoom(), text)
			}
			for _, v := range []any{c.valid, 1, nil, []string{c.invalid}} {
				if err := check(v); err != nil {
					t.Errorf("%s%s: %v: %v", dialect, c.format, v, err)
				}
			}
			if !slices.Contains(formats, c.format) {
				continue
			}
			want := fmt.Sprintf("%s does not have the format %q: ", jsonText(c.invalid), c.format)
			if err := check(c.invalid); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: %v, want %q", dialect, c.format, err, want)
			}
			if err := check(long + "a"); err == nil || !strings.Contains(err.Error(), "it has more than 64 KiB") {
				t.Errorf("%s%s of a long string: %.200v", dialect, c.format, err)
			}
		}
	}
}
