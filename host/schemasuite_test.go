package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sync/semaphore"

	"github.com/stilehost/stile/internal/suite"
)

// remotes has the documents that the suite serves at an address. No tool's schema has any such.
type remotes struct{ fs.FS }

func (r remotes) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, "http://localhost:1234/")
	if !ok {
		return noLoader{}.Load(url)
	}
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(f)
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

// tally counts tests that pass, those of a schema that is refused, by why, and those that end otherwise, by file.
type tally struct {
	passed         int
	refused, wrong map[string]int
}

// TestSchemaSuite runs JSON-Schema-Test-Suite. Where its default is that "format" asserts nothing, ours is that it does.
func TestSchemaSuite(t *testing.T) {
	files, err := fs.Sub(suite.Module(t, "github.com/kaptinlin/jsonschema"), "testdata/JSON-Schema-Test-Suite")
	if err != nil {
		t.Fatal(err)
	}
	const (
		dynamic = "$dynamicRef and $recursiveRef are not supported; use $ref"
		// A document of the suite's names no $schema and so is one of 2020-12, where $id has no fragment.
		fragment = `/definitions/A/$id: '#foo' does not match pattern '^[^#]*#?$'`
	)
	// What is not asserted: expressions, and what needs tables of names.
	annotations := map[string]int{"idn-email.json": 2, "idn-hostname.json": 29, "regex.json": 1}
	for _, c := range []struct {
		draft, files, schema string
		want                 tally
	}{
		{"draft2020-12", "*.json", "", tally{1174, map[string]int{dynamic: 48}, map[string]int{"format.json": len(formats)}}},
		{"draft2020-12", "optional/format/*.json", "", tally{446, map[string]int{}, annotations}},
		{"draft7", "*.json", "http://json-schema.org/draft-07/schema#", tally{904, map[string]int{fragment: 2}, map[string]int{}}},
		{"draft7", "optional/format/*.json", "http://json-schema.org/draft-07/schema#", tally{391, map[string]int{}, annotations}},
	} {
		t.Run(c.draft+" "+c.files, func(t *testing.T) {
			names, err := fs.Glob(files, "tests/"+c.draft+"/"+c.files)
			if err != nil {
				t.Fatal(err)
			}
			got := tally{refused: map[string]int{}, wrong: map[string]int{}}
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
					got.run(t, name, c.schema, files, g)
				}
			}
			if got.passed != c.want.passed || !maps.Equal(got.refused, c.want.refused) || !maps.Equal(got.wrong, c.want.wrong) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// run runs a group of tests. dialect is the $schema of a schema that names none.
func (c *tally) run(t *testing.T, name, dialect string, files fs.FS, g suiteGroup) {
	t.Helper()
	documents, err := fs.Sub(files, "remotes")
	if err != nil {
		t.Fatal(err)
	}
	text := g.Schema
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) == nil && object["$schema"] == nil && dialect != "" {
		object["$schema"] = fmt.Appendf(nil, "%q", dialect)
		if text, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	compiler := compiler{loader: remotes{documents}, schemas: map[string]*schema{}, patterns: map[string]*pattern{}}
	s, err := compiler.compile(string(text))
	if err != nil {
		c.refused[err.Error()] += len(g.Tests)
		return
	}
	for _, test := range g.Tests {
		err := s.validate(t.Context(), semaphore.NewWeighted(maxValidating), test.Data)
		if err != nil && !errors.As(err, new(*InputError)) {
			t.Errorf("%s: %s: %s: %v", name, g.Description, test.Description, err)
		}
		if (err == nil) == test.Valid {
			c.passed++
			continue
		}
		c.wrong[path.Base(name)]++
		if asserted := strings.HasSuffix(test.Description, "is only an annotation by default"); asserted == (err == nil) {
			t.Errorf("%s: %s: %s: %v", name, g.Description, test.Description, err)
		}
	}
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
			compiler := compiler{loader: noLoader{}, schemas: map[string]*schema{}, patterns: map[string]*pattern{}}
			s, err := compiler.compile(fmt.Sprintf(`{%s"format":%q}`, dialect, c.format))
			if err != nil {
				t.Fatal(err)
			}
			check := func(v any) error {
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				return s.validate(t.Context(), semaphore.NewWeighted(maxValidating), text)
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
