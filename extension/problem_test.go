package extension

import "testing"

// The name of a file begins no line of its own, and moves no cursor.
func TestProblemOfHostileFile(t *testing.T) {
	p := Problem{File: "a\nstile: all is well\t\x1b[2J.ts", Line: 2, Text: "no", Snippet: "x\n^"}
	if got, want := p.String(), "a\\nstile: all is well\\t\\x1b[2J.ts:2: no\n    x\n    ^"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
