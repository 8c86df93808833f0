package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FolderVariable names the folder that holds the suites that no package client can fetch, each in the folder of its name. UpdateVariable,
// if it is not empty, makes [Record.Judge] write what it finds instead of comparing.
const (
	FolderVariable = "STILE_SUITES"
	UpdateVariable = "STILE_SUITES_UPDATE"
)

// Outcome is how one test of a suite ended.
type Outcome struct {
	Name string
	// Skipped says why the test does not apply here. Such tests are counted by this text.
	Skipped string
	// Failed says what went wrong. It is empty for a test that passed.
	Failed string
}

// Record is what is known of a suite: which one it is, how many of its tests pass, and which are expected to fail.
type Record struct {
	// Title names the suite in reports, Source is where it comes from, and Version its revision there.
	Title   string `json:"title"`
	Source  string `json:"source"`
	Version string `json:"version"`
	// Paths are the folders and files that are used, and Digest is the SHA-256 of all files below them that are not
	// omitted, with their paths.
	Paths  []string `json:"paths"`
	Digest string   `json:"digest"`
	// What says what one test is.
	What    string         `json:"what"`
	Pass    int            `json:"pass"`
	Skipped map[string]int `json:"skipped,omitempty"`
	// Omitted are patterns of files, in the form of path.Match, that are not run.
	Omitted  []Group `json:"omitted,omitempty"`
	Expected []Group `json:"expected,omitempty"`

	file string
}

// Omits returns why a file is not run, or nothing.
func (r *Record) Omits(file string) string {
	for _, g := range r.Omitted {
		for _, pattern := range g.Tests {
			if ok, _ := path.Match(pattern, file); ok {
				return g.Reason
			}
		}
	}
	return ""
}

// Group is tests with one reason.
type Group struct {
	Reason string   `json:"reason"`
	Tests  []string `json:"tests"`
}

// ExpectedFailures is how many tests are expected to fail.
func (r *Record) ExpectedFailures() (n int) {
	for _, g := range r.Expected {
		n += len(g.Tests)
	}
	return n
}

// ReadRecord reads a record, and checks that each test in it is listed once, with a reason. It also returns a record that lacks reasons.
func ReadRecord(file string) (*Record, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	r := &Record{file: file}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	seen := map[string]bool{}
	for _, g := range slices.Concat(r.Omitted, r.Expected) {
		if strings.TrimSpace(g.Reason) == "" {
			return r, fmt.Errorf("%s: %d tests are expected to fail without a reason, such as %q", file, len(g.Tests), slices.Concat(g.Tests, []string{""})[0])
		}
		for _, name := range g.Tests {
			if seen[name] {
				return nil, fmt.Errorf("%s: %q is listed twice", file, name)
			}
			seen[name] = true
		}
	}
	return r, nil
}

// Open returns the record of a suite, and its files in the folder that FolderVariable names. Without the variable, it skips the test. Files
// that are not those of the record fail it.
func Open(t testing.TB, record string) (*Record, string) {
	t.Helper()
	above := os.Getenv(FolderVariable)
	if above == "" {
		t.Skipf("%s names no folder with the suite; conformance/README.md says how to make one", FolderVariable)
	}
	updating := os.Getenv(UpdateVariable) != ""
	r, err := ReadRecord(record)
	if err != nil && (r == nil || !updating) {
		t.Fatal(err)
	}
	folder := filepath.Join(above, strings.TrimSuffix(filepath.Base(record), ".json"))
	digest, err := r.digestOf(os.DirFS(folder))
	if err != nil {
		t.Fatalf("read %s: %v", r.Title, err)
	}
	if digest != r.Digest {
		if !updating {
			t.Fatalf("%s does not have the files of version %s: their digest is %s, want %s", folder, r.Version, digest, r.Digest)
		}
		r.Digest = digest
	}
	return r, folder
}

func (r *Record) digestOf(files fs.FS) (string, error) {
	sum := sha256.New()
	for _, below := range r.Paths {
		err := fs.WalkDir(files, below, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || r.Omits(name) != "" {
				return err
			}
			data, err := fs.ReadFile(files, name)
			if err == nil {
				of := sha256.Sum256(data)
				_, _ = fmt.Fprintf(sum, "%x %s\n", of, name)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Judge fails the test if a test that is not listed has failed, one that is listed has passed or was not there, or the counts are others.
// If UpdateVariable is set, it writes the record instead; failures that were not listed get a group without a reason, which [ReadRecord]
// refuses.
func (r *Record) Judge(t testing.TB, outcomes []Outcome) {
	t.Helper()
	if len(outcomes) == 0 {
		t.Fatalf("%s has no test", r.Title)
	}
	if os.Getenv(UpdateVariable) != "" {
		r.update(t, outcomes)
		return
	}
	for _, problem := range r.compare(outcomes) {
		t.Error(problem)
	}
}

// counted are outcomes by what they are.
func counted(outcomes []Outcome) (pass int, skipped map[string]int, failed map[string]string) {
	skipped, failed = map[string]int{}, map[string]string{}
	for _, o := range outcomes {
		switch {
		case o.Skipped != "":
			skipped[o.Skipped]++
		case o.Failed != "":
			failed[o.Name] = o.Failed
		default:
			pass++
		}
	}
	return pass, skipped, failed
}

func (r *Record) compare(outcomes []Outcome) (problems []string) {
	pass, skipped, failed := counted(outcomes)
	listed := map[string]bool{}
	for _, g := range r.Expected {
		for _, name := range g.Tests {
			listed[name] = true
			if _, ok := failed[name]; !ok {
				problems = append(problems, fmt.Sprintf("%s: it does not fail, and %s lists it as a failure", name, r.file))
			}
		}
	}
	for _, o := range outcomes {
		if o.Skipped == "" && o.Failed != "" && !listed[o.Name] {
			problems = append(problems, fmt.Sprintf("%s: %s", o.Name, o.Failed))
		}
	}
	if pass != r.Pass && len(problems) == 0 {
		problems = append(problems, fmt.Sprintf("%d tests pass, %s says %d", pass, r.file, r.Pass))
	}
	if len(skipped) != len(r.Skipped) {
		problems = append(problems, fmt.Sprintf("tests are skipped for %d reasons, %s says %d", len(skipped), r.file, len(r.Skipped)))
	}
	for reason, n := range skipped {
		if r.Skipped[reason] != n {
			problems = append(problems, fmt.Sprintf("%d tests are skipped (%s), %s says %d", n, reason, r.file, r.Skipped[reason]))
		}
	}
	return problems
}

func (r *Record) update(t testing.TB, outcomes []Outcome) {
	t.Helper()
	pass, skipped, failed := counted(outcomes)
	r.Pass, r.Skipped = pass, skipped
	for _, o := range outcomes {
		if _, ok := failed[o.Name]; ok {
			t.Logf("%s: %.300s", o.Name, o.Failed)
		}
	}
	groups := r.Expected
	r.Expected = nil
	for _, g := range groups {
		g.Tests = slices.DeleteFunc(g.Tests, func(name string) bool {
			_, still := failed[name]
			delete(failed, name)
			return !still
		})
		if len(g.Tests) > 0 {
			slices.Sort(g.Tests)
			r.Expected = append(r.Expected, g)
		}
	}
	if len(failed) > 0 {
		var fresh Group
		for name := range failed {
			fresh.Tests = append(fresh.Tests, name)
		}
		slices.Sort(fresh.Tests)
		r.Expected = append(r.Expected, fresh)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s: %d pass, %d expected to fail", r.file, r.Pass, r.ExpectedFailures())
}
