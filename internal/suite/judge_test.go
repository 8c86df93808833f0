package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// judged reads a record with one test that is expected to fail, and compares outcomes with it.
func judged(t *testing.T, outcomes ...Outcome) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "some.json")
	if err := os.WriteFile(file, []byte(`{"title": "a suite", "paths": ["."], "pass": 1, "skipped": {"elsewhere": 1}, "expected": [{"reason": "because", "tests": ["bad"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.compare(outcomes, nil), "\n")
}

func TestJudge(t *testing.T) {
	good, bad, skipped := Outcome{Name: "good"}, Outcome{Name: "bad", Failed: "it is wrong"}, Outcome{Name: "other", Skipped: "elsewhere"}
	for _, test := range []struct {
		name     string
		outcomes []Outcome
		want     string // "" if nothing is wrong
	}{
		{"as recorded", []Outcome{good, bad, skipped}, ""},
		{"a failure that is not listed", []Outcome{{Name: "good", Failed: "oh"}, bad, skipped}, "good: oh"},
		{"a listed failure that passes", []Outcome{good, {Name: "bad"}, skipped}, "bad: it does not fail"},
		{"a listed failure that is gone", []Outcome{good, skipped}, "bad: it does not fail"},
		{"a listed failure that is skipped", []Outcome{good, {Name: "bad", Skipped: "elsewhere"}, skipped}, "bad: it does not fail"},
		{"a test that is gone", []Outcome{bad, skipped}, "0 tests pass"},
		{"a further test", []Outcome{good, {Name: "new"}, bad, skipped}, "2 tests pass"},
		{"fewer skipped", []Outcome{good, bad}, "skipped for 0 reasons"},
		{"more skipped", []Outcome{good, bad, skipped, skipped}, "2 tests are skipped (elsewhere)"},
		{"skipped for another reason", []Outcome{good, bad, {Name: "other", Skipped: "unknown"}}, "1 tests are skipped (unknown)"},
	} {
		if got := judged(t, test.outcomes...); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Beside a peer, a failure is in the list for what passes there, or in the other one, and each folder has its counts.
func TestJudgeBeside(t *testing.T) {
	good, bad := Outcome{Name: "a/good"}, func(name string) Outcome { return Outcome{Name: "a/" + name, Failed: "it is wrong"} }
	for _, test := range []struct {
		name           string
		outcomes, peer []Outcome
		want           string // "" if nothing is wrong
	}{
		{"as recorded", []Outcome{good, bad("both"), bad("here")}, []Outcome{good, bad("both"), {Name: "a/here"}}, ""},
		{"it passes there and is not listed so", []Outcome{good, bad("both"), bad("here")}, []Outcome{good, {Name: "a/both"}, {Name: "a/here"}}, "a/both: it passes with Other"},
		{"it is listed so and fails there", []Outcome{good, bad("both"), bad("here")}, []Outcome{good, bad("both"), bad("here")}, "a/here: it does not pass with Other"},
		{"other counts there", []Outcome{good, bad("both"), bad("here")}, []Outcome{bad("good"), bad("both"), {Name: "a/here"}}, "the counts beside Other"},
		{"a test that only the peer has", []Outcome{good, bad("both"), bad("here")}, []Outcome{good, bad("both"), {Name: "a/here"}, {Name: "a/new"}}, "a/new: it is not there"},
		{"a test that is skipped and passes there", []Outcome{good, bad("both"), bad("here"), {Name: "a/new", Skipped: "elsewhere"}}, []Outcome{good, bad("both"), {Name: "a/here"}, {Name: "a/new"}}, "a/new: it is not there"},
		{"without the peer", []Outcome{good, bad("both"), bad("here")}, nil, ""},
		{"without the peer, a file that ends early", []Outcome{good, bad("both")}, nil, ""},
		{"without the peer, a listed failure that passes", []Outcome{good, bad("both"), {Name: "a/here"}}, nil, "a/here: it does not fail"},
	} {
		r := &Record{
			file: "some.json", Paths: []string{"a", "b"}, Pass: 1, Expected: []Group{{"because", []string{"a/both"}}}, Behind: []Group{{"why", []string{"a/here"}}},
			Peer: &Peer{Name: "Other", Folders: []Count{{"a", 3, 1, 2}}},
		}
		got := strings.Join(r.compare(r.complete(test.outcomes, test.peer), test.peer), "\n")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestRecordNeedsReasons(t *testing.T) {
	for _, test := range []struct{ groups, want string }{
		{`[{"reason": " ", "tests": ["a"]}]`, `without a reason, such as "a"`},
		{`[{"reason": "x", "tests": ["a"]}, {"reason": "y", "tests": ["a"]}]`, `"a" is listed twice`},
		{`[{"why": "x"}]`, `unknown field "why"`},
	} {
		file := filepath.Join(t.TempDir(), "some.json")
		if err := os.WriteFile(file, []byte(`{"title": "a suite", "expected": `+test.groups+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRecord(file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.groups, err, test.want)
		}
	}
}

// A digest is of names and contents of all files that are run.
func TestDigestOfFiles(t *testing.T) {
	r := &Record{Paths: []string{"a", "b"}, Omitted: []Group{{"too large", []string{"a/large*"}}}}
	var digests []string
	for _, files := range []fstest.MapFS{
		{"a/x": {Data: []byte("1")}, "b": {Data: []byte("2")}, "c": {Data: []byte("3")}, "a/large.js": {Data: []byte("4")}},
		{"a/x": {Data: []byte("1")}, "b": {Data: []byte("2")}},
		{"a/x": {Data: []byte("2")}, "b": {Data: []byte("2")}},
		{"a/y": {Data: []byte("1")}, "b": {Data: []byte("2")}},
	} {
		digest, err := r.digestOf(files)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Error("files that are not run change the digest")
	}
	slices.Sort(digests)
	if n := len(slices.Compact(digests)); n != 3 {
		t.Errorf("3 sets of files have %d digests", n)
	}
	if _, err := r.digestOf(fstest.MapFS{"a/x": {}}); err == nil || !strings.Contains(fmt.Sprint(err), "b") {
		t.Errorf("a missing folder: %v", err)
	}
}
