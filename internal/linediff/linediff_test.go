package linediff

import (
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	for _, c := range []struct{ old, changed, want string }{
		{"", "", ""},
		{"a\n", "a\n", ""},
		{"", "a\nb", "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"},
		{"a\n", "", "--- x\n+++ y\n@@ -1,1 +0,0 @@\n-a\n"},
		{"1\n2\n3\n4\n5\n", "1\n2\n3\n4\n6\n", "--- x\n+++ y\n@@ -2,4 +2,4 @@\n 2\n 3\n 4\n-5\n+6\n"},
	} {
		if got := Unified("x", "y", c.old, c.changed); got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.old, c.changed, got, c.want)
		}
	}
}

// TestMost has diffs with a header for each seven lines, also with long numbers.
func TestMost(t *testing.T) {
	far := strings.Repeat("\n", 1_000_000)
	for _, c := range [][2]string{
		{"", ""},
		{"", "x"},
		{"x", ""},
		{"x", "y"},
		{"", far},
		{far, ""},
		{strings.Repeat("\n", 100), strings.Repeat("x\n", 100)},
		{strings.Repeat("x\n\n\n\n\n\n\n", 100), strings.Repeat("\n\n\n\n\n\n\n", 100)},
		{far + strings.Repeat("x\n\n\n\n\n\n\n", 100), far + strings.Repeat("\n\n\n\n\n\n\n", 100)},
	} {
		diff := Unified("x", "y", c[0], c[1])
		if most := Most("x", "y", c[0], c[1]); int64(len(diff)) > most || most > 3*int64(len(c[0])+len(c[1]))*3+200 {
			t.Errorf("%.10q and %.10q: %d bytes, at most %d expected", c[0], c[1], len(diff), most)
		}
	}
}
