package extension

import "testing"

// A file name cannot begin a line or move the cursor.
func TestProblemOfHostileFile(t *testing.T) {
	p := Problem{File: "a\nstile: all is well\t\x1b[2J.ts", Line: 2, Text: "no", Snippet: "x\n^"}
	if got, want := p.String(), "a\\nstile: all is well\\t\\x1b[2J.ts:2: no\n    x\n    ^"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A problem of an input names its place.
func TestProblemOfInput(t *testing.T) {
	p := Problem{Path: "/a\nb", Text: "got string, want number"}
	if got, want := p.String(), "/a\\nb: got string, want number"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
