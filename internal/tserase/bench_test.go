package tserase_test

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/tserase"
)

func BenchmarkBody(b *testing.B) {
	text := strings.Repeat("// a comment of a model, which says what the code below does\n", 12) +
		"const rows: { i: number; square: number }[] = Array.from({ length: 50 }, (_, i) => ({ i, square: i * i }));\nreturn [id, rows.filter((r) => r.i % 2).reduce((sum: number, r) => sum + r.square, 0)].join();"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tserase.Body(text); !ok {
			b.Fatal()
		}
	}
}
