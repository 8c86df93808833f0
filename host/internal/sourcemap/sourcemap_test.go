package sourcemap

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// mapStack maps a stack by a source map, which maps nothing if it cannot be read.
func mapStack(text, stack string) []Frame {
	m, err := Read([]byte(text))
	if err != nil {
		return nil
	}
	return m.Frames(stack)
}

func TestMapStack(t *testing.T) {
	const stack = "Error: no\n    at run (extension.js:2:9)\n    at <anonymous> (native)\n    at extension.js:1:1\n"
	for _, c := range []struct{ name, sourceMap, want string }{
		{"two lines", `{"version":3,"sources":["a.ts","b.ts"],"names":["x"],"mappings":"AAAA;EACA,GCEIA"}`, "at run b.ts:4:5, at a.ts:1:1"},
		{"a root", `{"version":3,"sourceRoot":"src","sources":["a.ts"],"mappings":"AAAA"}`, "at src/a.ts:1:1"},
		{"text from no file", `{"version":3,"sources":["a.ts"],"mappings":"A,CAAC"}`, ""},
		{"text from a file without a name", `{"version":3,"sources":["a.ts",""],"mappings":"AAAA;ACAA"}`, "at a.ts:1:1"},
		{"an empty map", `{"version":3,"sources":[],"mappings":""}`, ""},
		{"sections", `{"version":3,"sections":[{}]}`, ""},
		{"sections that are null", `{"version":3,"sections":null,"sources":["a.ts"],"mappings":"AAAA"}`, ""},
		{"another version", `{"version":2,"sources":["a.ts"],"mappings":"AAAA"}`, ""},
		{"no files", `{"version":3,"sources":[],"mappings":"AAAA"}`, ""},
		{"a file past the last", `{"version":3,"sources":["a.ts"],"mappings":"ACAA"}`, ""},
		{"a file before the first", `{"version":3,"sources":["a.ts"],"mappings":"ADAA"}`, ""},
		{"a line past all", `{"version":3,"sources":["a.ts"],"mappings":"AA+/////DA,AA+/////DA"}`, ""},
		{"a column before the first", `{"version":3,"sources":["a.ts"],"mappings":"DAAA"}`, ""},
		{"a number without end", `{"version":3,"sources":["a.ts"],"mappings":"AAgggggggBAA"}`, ""},
		{"a number cut off", `{"version":3,"sources":["a.ts"],"mappings":"AAg"}`, ""},
		{"two numbers", `{"version":3,"sources":["a.ts"],"mappings":"AA"}`, ""},
		{"six numbers", `{"version":3,"sources":["a.ts"],"mappings":"AAAAAA"}`, ""},
		{"not base 64", `{"version":3,"sources":["a.ts"],"mappings":"AA A"}`, ""},
		{"not JSON", `{`, ""},
		{"a long root", `{"version":3,"sourceRoot":"` + strings.Repeat("a", 1<<20) + `","sources":["a.ts"],"mappings":"AAAA"}`, ""},
		{"a long root for many files", `{"version":3,"sourceRoot":"` + strings.Repeat("a", 900) + `","sources":["a.ts"` + strings.Repeat(`,""`, 60_000) + `],"mappings":"AAAA"}`, ""},
		{"a long path", `{"version":3,"sources":["` + strings.Repeat("a", 1<<20) + `"],"mappings":"AAAA"}`, ""},
		{"more than 8 MiB", `{"version":3,"sources":["a.ts"],"mappings":"AAAA` + strings.Repeat(";", 8<<20) + `"}`, ""},
		{"too many mappings", `{"version":3,"sources":["a.ts"],"mappings":"` + strings.Repeat("AAAA,", 1<<20) + `AAAA"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range mapStack(c.sourceMap, stack) {
				got = append(got, fmt.Sprintf("%s %s:%d:%d", f.Call, f.File, f.Line, f.Column))
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestSourcesAreCounted has source maps of millions of files, which take many times their bytes when they are decoded.
func TestSourcesAreCounted(t *testing.T) {
	const stack = "    at run (extension.js:1:1)\n"
	files := func(item string, n int) string {
		return `{"version":3,"sources":["a.ts"` + strings.Repeat(","+item, n) + `],"mappings":"AAAA"}`
	}
	for name, c := range map[string]struct {
		text  string
		reads bool
	}{
		"empty names": {files(`""`, 2_700_000), false}, "nulls": {files("null", 1_600_000), false}, "numbers": {files("0", 4_000_000), false},
		"objects": {files("{}", 2_700_000), false}, "one too many": {files(`""`, 1<<16), false}, "as many as there may be": {files(`",\","`, 1<<16-1), true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames := mapStack(c.text, stack)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 24<<20 || (len(frames) == 1) != c.reads {
			t.Errorf("%s: %d bytes took %d, %v", name, len(c.text), took, frames)
		}
	}
}

func FuzzMapStack(f *testing.F) {
	f.Add(`["a.ts","b.ts"]`, "AAAA;EACA,GCEIA,DD+/////D")
	f.Add(`[]`, "ggggggggB;;A,,")
	f.Fuzz(func(t *testing.T, sources, mappings string) {
		text := fmt.Sprintf(`{"version":3,"sources":%s,"mappings":%q}`, sources, mappings)
		for _, frame := range mapStack(text, "    at extension.js:1:1\n    at extension.js:2:5\n    at extension.js:99999999999999999999:5") {
			if frame.Line < 1 || frame.Column < 1 {
				t.Errorf("%+v", frame)
			}
		}
	})
}
