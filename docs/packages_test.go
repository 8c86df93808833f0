package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goPackage is one that go list found.
type goPackage struct {
	ImportPath, Name, Dir, Doc         string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

var exampleFunc = regexp.MustCompile(`(?m)^func Example\w*\(\) {`)

// lacks returns what a reader misses in a package that others may import; empty if nothing.
func (p goPackage) lacks() (string, error) {
	if p.Name == "main" || len(p.GoFiles) == 0 || strings.Contains(p.ImportPath, "/internal/") {
		return "", nil
	}
	if !strings.HasPrefix(p.Doc, "Package "+p.Name+" ") {
		return fmt.Sprintf("a package comment that begins with Package %s", p.Name), nil
	}
	for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return "", err
		}
		if exampleFunc.Match(text) {
			return "", nil
		}
	}
	return "an example: a func Example in a test file", nil
}

// TestPackages holds that each package has a package comment and an example.
func TestPackages(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,Doc,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; checked++ {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if lack, err := p.lacks(); err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
		} else if lack != "" {
			t.Errorf("%s lacks %s", p.ImportPath, lack)
		}
	}
	if checked < 30 {
		t.Errorf("go list found %d packages", checked)
	}
}

// TestIncompletePackages has packages that lack something.
func TestIncompletePackages(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n", "b_test.go": "package a\n\nfunc Example() {\n}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const doc = "Package a does a thing."
	for _, tt := range []struct {
		path, name, doc string
		tests           []string
		want            string
	}{
		{"m/a", "a", doc, []string{"a_test.go", "b_test.go"}, ""},
		{"m/a", "a", doc, []string{"a_test.go"}, "an example: a func Example in a test file"},
		{"m/a", "a", doc, nil, "an example: a func Example in a test file"},
		{"m/a", "a", "", []string{"b_test.go"}, "a package comment that begins with Package a"},
		{"m/a", "a", "Package ab does a thing.", []string{"b_test.go"}, "a package comment that begins with Package a"},
		{"m/internal/a", "a", "", nil, ""},
		{"m/cmd/a", "main", "", nil, ""},
	} {
		p := goPackage{ImportPath: tt.path, Name: tt.name, Dir: dir, Doc: tt.doc, GoFiles: []string{"a.go"}, TestGoFiles: tt.tests}
		if got, err := p.lacks(); err != nil || got != tt.want {
			t.Errorf("%+v: got %q, %v; want %q", tt, got, err, tt.want)
		}
	}
}
