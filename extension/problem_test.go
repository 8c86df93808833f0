package extension

import "testing"

// The name of a file begins no line of its own, and moves no cursor.
func TestProblemOfHostileFile(t *testing.T) {
	p := Problem{File: "a\nstile: all is well\t\x1b[2J.ts", Line: 2, Text: "no", Snippet: "x\n^"}
	if got, want := p.String(), "a\\nstile: all is well\\t\\x1b[2J.ts:2: no\n    x\n    ^"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A problem of an input says where in it.
func TestProblemOfInput(t *testing.T) {
	p := Problem{Path: "/a\nb", Text: "got string, want number"}
	if got, want := p.String(), "/a\\nb: got string, want number"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
