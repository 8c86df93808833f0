package toolchain

import (
	"fmt"
	"strings"
	"testing"
)

// TestFileGlobs has lists of sideEffects in package.json that make matching slow. Such a list counts as missing, so no file is dropped.
func TestFileGlobs(t *testing.T) {
	repeat := func(n int, glob string) (list []any) {
		for i := range n {
			list = append(list, fmt.Sprintf(glob, i))
		}
		return list
	}
	long := "%d/" + strings.Repeat("*a", 120)
	for _, tt := range []struct {
		name            string
		list            []any
		refused         bool
		matches, others []string
	}{
		{name: "none", others: []string{"a.js"}},
		{
			name: "usual", list: []any{"./effect.js", "dist/**/*.css", "*.scss", "x?.js"}, matches: []string{"effect.js", "a/effect.js", "dist/a/b.css", "dist/b.css", "a/b.scss", "x1.js"},
			others: []string{"effect.jsx", "a.css", "dist/a/b.js", "x/.js"},
		},
		{name: "1,000 files", list: repeat(1000, "./dist/components/"+strings.Repeat("name/", 20)+"%d.js"), matches: []string{"dist/components/" + strings.Repeat("name/", 20) + "999.js"}, others: []string{"dist/999.js"}},
		{name: "1,000 long globs", list: repeat(1000, long), refused: true},
		{name: "20 long globs", list: repeat(20, long), refused: true},
		{name: "names in any folder", list: repeat(1000, "name-%d.js"), refused: true},
		{name: "too many", list: repeat(1001, "a/%d.js"), refused: true},
		{name: "a glob that is too long", list: []any{strings.Repeat("a", 257)}, refused: true},
		{name: "no text", list: []any{1.0}, refused: true},
	} {
		g := newFileGlobs(tt.list)
		if (g == nil) != tt.refused {
			t.Errorf("%s: refused %v", tt.name, g == nil)
			continue
		}
		for _, name := range tt.matches {
			if !g.match(name) {
				t.Errorf("%s: %s does not match", tt.name, name)
			}
		}
		for _, name := range tt.others {
			if g.match(name) {
				t.Errorf("%s: %s matches", tt.name, name)
			}
		}
	}
}

// BenchmarkFileGlobs matches the longest list with a path of 200 bytes.
func BenchmarkFileGlobs(b *testing.B) {
	var list []any
	for range 3 {
		list = append(list, strings.Repeat("*a", 126)+"b")
	}
	g, name := newFileGlobs(list), strings.Repeat("a", 200)
	for b.Loop() {
		g.match(name)
	}
}
