package guests

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the columns of the languages that are tested into conformance/REPORT.md")

// matrix is the table of languages and cases. Its columns are languages, after those of the case.
const matrix = "| case | tool | expected |"

// checkMatrix compares what became of the cases in a language, by the beginning of their row, with its column of the table in
// conformance/REPORT.md. Every language that is tested has a column.
func checkMatrix(t *testing.T, language string, verdicts map[string]string) {
	t.Helper()
	page := filepath.Join("..", "conformance", "REPORT.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fillMatrix(string(text), language, verdicts)
	switch {
	case err != nil:
		t.Errorf("%s: %v", page, err)
	case bytes.Equal(text, []byte(got)):
	case *update:
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another column for %s; it must have %v, which -update writes", page, language, verdicts)
	}
}

// fillMatrix returns the page with the column of a language filled in.
func fillMatrix(page, language string, verdicts map[string]string) (string, error) {
	before, rest, found := strings.Cut(page, matrix)
	if !found {
		return "", fmt.Errorf("there is no table %q", matrix)
	}
	head, rest, _ := strings.Cut(rest, "\n")
	at := slices.Index(strings.Split(head, "|"), " "+language+" ")
	if at < 0 {
		return "", fmt.Errorf("the table has no column for %s", language)
	}
	left := maps.Clone(verdicts)
	var out strings.Builder
	out.WriteString(before + matrix + head + "\n")
	for line := range strings.Lines(rest) {
		for row, verdict := range left {
			if cells, ok := strings.CutPrefix(line, row); ok {
				all := strings.Split(cells, "|")
				if at >= len(all) {
					return "", fmt.Errorf("the row %q is too short", row)
				}
				all[at] = " " + verdict + " "
				line = row + strings.Join(all, "|")
				delete(left, row)
			}
		}
		out.WriteString(line)
	}
	if len(left) > 0 {
		return "", fmt.Errorf("the table lacks the rows %q", slices.Sorted(maps.Keys(left)))
	}
	return out.String(), nil
}

// A column that says something else than what happened, a language without a column and a case without a row are found.
func TestMatrix(t *testing.T) {
	const page = "text\n\n" + matrix + " go | c |\n|---|---|---|---|---|\n| 1 | `a` | result | pass | pass |\n| 2 | `b` | denied | pass | fail |\n\nmore\n"
	const one, two = "| 1 | `a` | result |", "| 2 | `b` | denied |"
	for _, tt := range []struct {
		language string
		verdicts map[string]string
		same     bool
		problem  string
	}{
		{"go", map[string]string{one: "pass", two: "pass"}, true, ""},
		{"c", map[string]string{one: "pass", two: "fail"}, true, ""},
		{"c", map[string]string{one: "pass", two: "pass"}, false, ""},
		{"rust", map[string]string{one: "pass", two: "pass"}, false, "no column for rust"},
		{"go", map[string]string{one: "pass", "| 3 | `c` | result |": "pass"}, false, "lacks the rows"},
	} {
		got, err := fillMatrix(page, tt.language, tt.verdicts)
		if (got == page) != tt.same || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s %v: got %q, %v", tt.language, tt.verdicts, got, err)
		}
	}
}
