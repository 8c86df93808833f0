package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
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
	// Peer is another implementation that runs the same tests. Behind are the tests that are expected to fail although they pass there;
	// Expected has the others then.
	Peer   *Peer   `json:"peer,omitempty"`
	Behind []Group `json:"behind,omitempty"`

	file string
}

// Peer is how the tests of a suite end with another implementation.
type Peer struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Folders []Count `json:"folders"`
}

// Count is the tests of one of a record's paths. Tests are all that either implementation has, Pass those that pass here, and Peer those that
// pass with the other one.
type Count struct {
	Folder string `json:"folder"`
	Tests  int    `json:"tests"`
	Pass   int    `json:"pass"`
	Peer   int    `json:"peer"`
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
	for _, g := range slices.Concat(r.Expected, r.Behind) {
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
	for _, g := range slices.Concat(r.Omitted, r.Expected, r.Behind) {
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
	r.judge(t, outcomes, nil)
}

// JudgeBeside does the same, and compares how the tests end with the record's peer, of this version: it also fails the test if one that fails
// here and passes there is not listed as such, one that is listed does not pass there, or the counts are others.
func (r *Record) JudgeBeside(t testing.TB, outcomes []Outcome, version string, peer []Outcome) {
	t.Helper()
	if r.Peer == nil || len(peer) == 0 {
		t.Fatalf("%s has no peer, or the peer no test", r.Title)
	}
	if os.Getenv(UpdateVariable) != "" {
		r.Peer.Version = version
	}
	r.judge(t, outcomes, peer)
}

func (r *Record) judge(t testing.TB, outcomes, peer []Outcome) {
	t.Helper()
	if len(outcomes) == 0 {
		t.Fatalf("%s has no test", r.Title)
	}
	outcomes = r.complete(outcomes, peer)
	if os.Getenv(UpdateVariable) != "" {
		r.update(t, outcomes, peer)
		return
	}
	for _, problem := range r.compare(outcomes, peer) {
		t.Error(problem)
	}
}

// complete adds tests that are not there or were skipped, and pass with the peer.
func (r *Record) complete(outcomes, peer []Outcome) []Outcome {
	there := passing(peer)
	for _, g := range r.Behind {
		for _, name := range g.Tests {
			if peer == nil {
				there[name] = true
			}
		}
	}
	outcomes = slices.DeleteFunc(outcomes, func(o Outcome) bool {
		if o.Skipped != "" && there[o.Name] {
			return true
		}
		delete(there, o.Name)
		return false
	})
	for _, name := range slices.Sorted(maps.Keys(there)) {
		outcomes = append(outcomes, Outcome{Name: name, Failed: "it is not there"})
	}
	return outcomes
}

// passing are the names of the tests that pass.
func passing(outcomes []Outcome) map[string]bool {
	pass := map[string]bool{}
	for _, o := range outcomes {
		if o.Skipped == "" && o.Failed == "" {
			pass[o.Name] = true
		}
	}
	return pass
}

// beside counts the tests below each path, here and with the peer.
func (r *Record) beside(outcomes, peer []Outcome) []Count {
	here, there := passing(outcomes), passing(peer)
	all := map[string]bool{}
	for _, o := range slices.Concat(peer, outcomes) {
		all[o.Name] = o.Skipped == ""
	}
	var counts []Count
	for _, folder := range r.Paths {
		c := Count{Folder: folder}
		for name, counts := range all {
			if !counts || !strings.HasPrefix(name, folder+"/") {
				continue
			}
			c.Tests++
			if here[name] {
				c.Pass++
			}
			if there[name] {
				c.Peer++
			}
		}
		if c.Tests > 0 {
			counts = append(counts, c)
		}
	}
	return counts
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

func (r *Record) compare(outcomes, peer []Outcome) (problems []string) {
	pass, skipped, failed := counted(outcomes)
	listed := map[string]bool{}
	for _, g := range slices.Concat(r.Expected, r.Behind) {
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
	if peer != nil {
		problems = append(problems, r.comparePeer(outcomes, peer)...)
	}
	return problems
}

func (r *Record) comparePeer(outcomes, peer []Outcome) (problems []string) {
	there := passing(peer)
	for _, g := range r.Behind {
		for _, name := range g.Tests {
			if !there[name] {
				problems = append(problems, fmt.Sprintf("%s: it does not pass with %s, and %s says so", name, r.Peer.Name, r.file))
			}
		}
	}
	for _, g := range r.Expected {
		for _, name := range g.Tests {
			if there[name] {
				problems = append(problems, fmt.Sprintf("%s: it passes with %s, and %s does not say so", name, r.Peer.Name, r.file))
			}
		}
	}
	if counts := r.beside(outcomes, peer); !slices.Equal(counts, r.Peer.Folders) && len(problems) == 0 {
		problems = append(problems, fmt.Sprintf("the counts beside %s are %v, %s says %v", r.Peer.Name, counts, r.file, r.Peer.Folders))
	}
	return problems
}

func (r *Record) update(t testing.TB, outcomes, peer []Outcome) {
	t.Helper()
	pass, skipped, failed := counted(outcomes)
	r.Pass, r.Skipped = pass, skipped
	for _, o := range outcomes {
		if _, ok := failed[o.Name]; ok {
			t.Logf("%s: %.300s", o.Name, o.Failed)
		}
	}
	// With a peer, its outcomes say which list a failure belongs to; without, those that were listed stay where they are.
	there := passing(peer)
	if peer == nil {
		for _, g := range r.Behind {
			for _, name := range g.Tests {
				there[name] = true
			}
		}
	} else {
		r.Peer.Folders = r.beside(outcomes, peer)
	}
	groups := slices.Concat(r.Expected, r.Behind)
	slices.SortStableFunc(groups, func(a, b Group) int { return strings.Compare(a.Reason, b.Reason) })
	r.Expected, r.Behind = nil, nil
	for _, g := range groups {
		var kept []string
		for _, name := range g.Tests {
			if _, still := failed[name]; still {
				kept = append(kept, name)
				delete(failed, name)
			}
		}
		r.expect(g.Reason, kept, there)
	}
	r.expect("", slices.Collect(maps.Keys(failed)), there)
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

// expect lists tests with a reason, by whether they pass with the peer.
func (r *Record) expect(reason string, tests []string, there map[string]bool) {
	slices.Sort(tests)
	for _, name := range tests {
		list := &r.Expected
		if there[name] {
			list = &r.Behind
		}
		if n := len(*list); n == 0 || (*list)[n-1].Reason != reason {
			*list = append(*list, Group{Reason: reason})
		}
		last := &(*list)[len(*list)-1]
		last.Tests = append(last.Tests, name)
	}
}
