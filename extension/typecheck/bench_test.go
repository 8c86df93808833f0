package typecheck

import (
	"os"
	"testing"
)

// One check of an example, in an instance of its own.
func BenchmarkCheck(b *testing.B) {
	c := newChecker(b, 0)
	text, err := os.ReadFile("../../examples/notes.ts")
	if err != nil {
		b.Fatal(err)
	}
	r := Request{Files: map[string][]byte{"tool.ts": text}, Entry: "tool.ts", Bindings: bindings}
	for b.Loop() {
		if err := c.Check(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
