//go:build long

package toolchain

import (
	"strings"
	"testing"
)

// TestLongLargeSources builds large sources that take the bundler or the engine many seconds.
func TestLongLargeSources(t *testing.T) {
	buildLarge(t, map[string]largeSource{
		"one text":             {true, func() string { return `export default "` + strings.Repeat("x", 10<<20) + `".length` }},
		"a table of numbers":   {false, func() string { return "export default [" + strings.Repeat("12345678,", 10<<20/9) + "]" }},
		"a table of texts":     {false, func() string { return "export default [" + strings.Repeat(`"a text",`, 10<<20/9) + "]" }},
		"a name":               {true, func() string { return "const " + strings.Repeat("x", 10<<20) + "=1;export default 1" }},
		"one line":             {false, func() string { return "let a=0;" + strings.Repeat("a++;", 10<<20/4) + "export default a" }},
		"a million functions":  {false, func() string { return numbered(1_000_000, "function f%d(){}") + "export default [f0,eval]" }},
		"functions in use":     {false, func() string { return "export default [" + strings.Repeat("function(){},", 10<<20/13) + "]" }},
		"patterns":             {false, func() string { return "export default [" + strings.Repeat("/(a|b)+/u,", 10<<20/10) + "]" }},
		"templates with parts": {false, func() string { return "let a=1;export default [" + strings.Repeat("`${a}`,", 10<<20/7) + "]" }},
		"texts of a table": {true, func() string {
			return "export default JSON.parse('[" + strings.Repeat(`"a text of a table of data with 50 characters ......",`, 10<<20/54) + `""]').length`
		}},
	})
}
