package inspect

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSchemasTakeLittle has short names stand for large types, in hundreds of places. Without a bound on what schemas are made from, the first
// two take gigabytes, and the others seconds.
func TestSchemasTakeLittle(t *testing.T) {
	repeat := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(line, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	numbers := "enum E {" + repeat(60_000, "a#,") + "}\n"
	letters := "type S = '" + strings.Repeat("x", 500<<10) + "'\n"
	same := "enum E {" + repeat(60_000, "a#='zz',") + "}\ninterface A {" + repeat(900, "m#:string;") + "zz:string}\ntype B = Omit<A,E>\n"
	failing := "type R = [" + repeat(20_000, "'a',") + "import]\n"
	results := repeat(250, "export function f#(a: string): R {}\n")
	for name, text := range map[string]string{
		"enum":          numbers + "export function f(a: {" + repeat(400, "f#:E;") + "}) {}",
		"enum, results": numbers + "export function f(): {" + repeat(400, "f#:E;") + "} {}",
		"member":        numbers + "type R = {" + repeat(300, "g#:E.a59999;") + "}\n" + results,
		"text":          letters + "export function f(a: {" + repeat(400, "f#:S;") + "}) {}",
		"omit":          same + "type R = {" + repeat(300, "g#:B;") + "}\n" + results,
		"no type":       failing + results,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, err := Derive(fstest.MapFS{"tool.ts": {Data: []byte(text)}}, "tool.ts")
			runtime.ReadMemStats(&after)
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 200 {
				t.Errorf("it took %d MiB", made)
			}
			if err != nil && !strings.Contains(err.Error(), "too much") && !strings.Contains(err.Error(), "too large") {
				t.Errorf("%.1000v", err)
			}
			if err == nil && strings.Contains(string(d.Text), "output") {
				t.Errorf("made %d bytes", len(d.Text))
			}
		})
	}
	if _, err := Derive(fstest.MapFS{"tool.ts": {Data: []byte("enum E {" + repeat(20_000, "a#,") + "}\nexport function f(a: E, b: E, c: E.a19999) {}")}}, "tool.ts"); err != nil {
		t.Errorf("a large type: %v", err)
	}
}
