// Package thirdparty has the tests of other projects' suites, which hold this host, its toolchain and its JavaScript to what others expect. The
// JSON files say which version of each suite, how many of its tests pass, and which fail for what reason. ../README.md says how to run them.
package thirdparty

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/suite"
)

// TestReport checks that the report has the counts and reasons of the records.
func TestReport(t *testing.T) {
	found, err := filepath.Glob("*.json")
	if err != nil || len(found) == 0 {
		t.Fatalf("found %v, %v", found, err)
	}
	var records []*suite.Record
	for _, file := range found {
		r, err := suite.ReadRecord(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Digest) != 64 || r.Pass == 0 || r.Version == "" || r.Source == "" {
			t.Errorf("%s: it lacks a version, a source, a digest or counts", file)
		}
		records = append(records, r)
	}
	const file = "../REPORT.md"
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := markdown(records)
	if strings.Contains(string(report), want) {
		return
	}
	if os.Getenv(suite.UpdateVariable) == "" {
		t.Fatalf("%s must have the section that %s=1 go test ./conformance/thirdparty -run TestReport writes:\n%s", file, suite.UpdateVariable, want)
	}
	before, section, _ := strings.Cut(string(report), heading)
	if at := strings.Index(section, "\n## "); at >= 0 {
		want += section[at:]
	}
	if err := os.WriteFile(file, []byte(strings.TrimSpace(before)+"\n\n"+want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// beside is the table of a record with a peer.
func beside(r *suite.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe same files run in %s %s, with the same code around them. The record names each test that passes only there.\n\n", r.Peer.Name, r.Peer.Version)
	fmt.Fprintf(&b, "| folder | %s that apply | stile | %s | pass only with %[2]s |\n|---|---|---|---|---|\n", r.What, r.Peer.Name)
	all := suite.Count{Folder: "all"}
	only := 0
	for _, c := range r.Peer.Folders {
		n := 0
		for _, g := range r.Behind {
			for _, name := range g.Tests {
				if strings.HasPrefix(name, c.Folder+"/") {
					n++
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", c.Folder, c.Tests, c.Pass, c.Peer, n)
		all.Tests, all.Pass, all.Peer, only = all.Tests+c.Tests, all.Pass+c.Pass, all.Peer+c.Peer, only+n
	}
	fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", all.Folder, all.Tests, all.Pass, all.Peer, only)
	return b.String()
}

const heading = "## Third-party suites\n"

func markdown(records []*suite.Record) string {
	var b strings.Builder
	b.WriteString(heading + `
The tests of other projects, at the versions that [thirdparty](thirdparty) names. A run fails if a test fails that is not listed there, or one that is listed passes.

| suite | version | what is counted | pass | fail | expected-fail | skip |
|---|---|---|---|---|---|---|
`)
	for _, r := range records {
		skipped := 0
		for _, n := range r.Skipped {
			skipped += n
		}
		fmt.Fprintf(&b, "| %s | `%.12s` | %s | %d | 0 | %d | %d |\n", r.Title, r.Version, r.What, r.Pass, r.ExpectedFailures(), skipped)
	}
	for _, r := range records {
		fmt.Fprintf(&b, "\n### %s\n\n", r.Title)
		groups := slices.Clone(r.Expected)
		slices.SortStableFunc(groups, func(a, b suite.Group) int { return len(b.Tests) - len(a.Tests) })
		for _, g := range groups {
			fmt.Fprintf(&b, "- expected-fail, %d: %s\n", len(g.Tests), g.Reason)
		}
		behind := slices.Clone(r.Behind)
		slices.SortStableFunc(behind, func(a, b suite.Group) int { return len(b.Tests) - len(a.Tests) })
		for _, g := range behind {
			fmt.Fprintf(&b, "- expected-fail, passes with %s, %d: %s\n", r.Peer.Name, len(g.Tests), g.Reason)
		}
		reasons := slices.Sorted(maps.Keys(r.Skipped))
		slices.SortStableFunc(reasons, func(a, b string) int { return r.Skipped[b] - r.Skipped[a] })
		for _, reason := range reasons {
			fmt.Fprintf(&b, "- skip, %d: %s\n", r.Skipped[reason], reason)
		}
		if r.Peer != nil {
			b.WriteString(beside(r))
		}
	}
	return b.String()
}
