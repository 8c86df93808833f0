package main

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"a release", "v1.2.3", nil, "v1.2.3"},
		{"a commit that go knows", "v0.0.0-20260102030405-0123456789ab", nil, "v0.0.0-20260102030405-0123456789ab"},
		{"no commit", "(devel)", nil, "v" + unreleased + "-dev"},
		{"a test", "", nil, "v" + unreleased + "-dev"},
		{"a commit", "(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}}, "v" + unreleased + "-dev+0123456789ab"},
		{"a commit and changes", "(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}, "v" + unreleased + "-dev+0123456789ab.dirty"},
		{"a short commit", "(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "01"}}, "v" + unreleased + "-dev+01"},
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}); got != c.want {
			t.Errorf("%s: got %s instead of %s", c.name, got, c.want)
		}
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, newest, _ := strings.Cut(string(changes), "\n## "); !strings.HasPrefix(newest, unreleased+" ") {
		t.Errorf("the newest version of the changelog is not %s", unreleased)
	}
}
