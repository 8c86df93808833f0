package linediff

import "testing"

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
