package host_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
)

// withSection appends a custom section to a component.
func withSection(wasm []byte, name, content string) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), content...)
	return append(binary.AppendUvarint(append(slices.Clip(wasm), 0), uint64(len(body))), body...)
}

func TestMapStack(t *testing.T) {
	const stack = "Error: no\n    at run (extension.js:2:9)\n    at <anonymous> (native)\n    at extension.js:1:1\n"
	for _, c := range []struct{ name, sourceMap, want string }{
		{"two lines", `{"version":3,"sources":["a.ts","b.ts"],"names":["x"],"mappings":"AAAA;EACA,GCEIA"}`, "at run b.ts:4:5, at a.ts:1:1"},
		{"a root", `{"version":3,"sourceRoot":"src","sources":["a.ts"],"mappings":"AAAA"}`, "at src/a.ts:1:1"},
		{"text from no file", `{"version":3,"sources":["a.ts"],"mappings":"A,CAAC"}`, ""},
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
			for _, f := range host.MapStack([]byte(c.sourceMap), stack) {
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
		frames := host.MapStack([]byte(c.text), stack)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 24<<20 || (len(frames) == 1) != c.reads {
			t.Errorf("%s: %d bytes took %d, %v", name, len(c.text), took, frames)
		}
	}
}

// TestMappedFrames shows a stack whose frames the guest has mapped itself, or forged: those that name files of the source are kept, as they are.
func TestMappedFrames(t *testing.T) {
	h := newHost(t, host.Options{})
	stack := "    at a (extension.js:1:1)\n    at b (a.ts:7:8)\n    at c (./extension.js:9:9)\n    at d (/etc/passwd:1:1)\n" +
		"    at e (lib/extension.js:1:1)\n    at f (native)\n    at g (:0:1)\n    at h (b.ts:1:1)\nCaused by x\n"
	wasm := componentize(t, guest{
		data: literal(stack),
		call: fmt.Sprintf(`(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 2048) (i32.const %d)) (i32.const 128)`, len(stack)),
	}.core())
	c, err := h.Load(t.Context(), withSection(wasm, "stile:source-map", `{"version":3,"sources":["a.ts","extension.js","lib/extension.js"],"mappings":"AAAA"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "    at a (a.ts:1:1)\n    at b (a.ts:7:8)\n    at c (./extension.js:9:9)\n    at e (lib/extension.js:1:1)\nCaused by x\n"
	_, err = c.Call(t.Context(), "t", nil, nil)
	if failed, ok := errors.AsType[*host.GuestError](err); !ok || failed.Failure.Stack != want {
		t.Errorf("got %v", err)
	}
}

func FuzzMapStack(f *testing.F) {
	f.Add(`["a.ts","b.ts"]`, "AAAA;EACA,GCEIA,DD+/////D")
	f.Add(`[]`, "ggggggggB;;A,,")
	f.Fuzz(func(t *testing.T, sources, mappings string) {
		text := fmt.Sprintf(`{"version":3,"sources":%s,"mappings":%q}`, sources, mappings)
		for _, frame := range host.MapStack([]byte(text), "at extension.js:1:1\nat extension.js:2:5\nat extension.js:99999999999999999999:5") {
			if frame.Line < 1 || frame.Column < 1 {
				t.Errorf("%+v", frame)
			}
		}
	})
}

// TestHostileSections loads a component whose custom sections are an attack on who reads them.
func TestHostileSections(t *testing.T) {
	h := newHost(t, host.Options{})
	stack := "    at run (extension.js:1:1)\n"
	wasm := componentize(t, guest{
		data: literal(stack),
		call: fmt.Sprintf(`(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 2048) (i32.const %d)) (i32.const 128)`, len(stack)),
	}.core())
	for _, name := range []string{"stile:\x1b[2J", "stile:Meta", "stile:", "stile:a\nb", "other", "stile:meta"} {
		wasm = withSection(wasm, name, "x")
	}
	c, err := h.Load(t.Context(), withSection(wasm, "stile:source-map", `{"version":3,"sections":[{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Sections() {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz:-") != "" || name == "stile:" {
			t.Errorf("section %q", name)
		}
	}
	if string(c.Section("stile:meta")) != "x" {
		t.Error("the section stile:meta is missing")
	}
	for range 64 {
		wasm = withSection(wasm, "stile:meta", "x")
	}
	var refused *host.LoadError
	if _, err := h.Load(t.Context(), wasm); !errors.As(err, &refused) || !strings.Contains(err.Error(), "more than 64 custom sections") {
		t.Errorf("got %v", err)
	}
	var failed *host.GuestError
	if _, err = c.Call(t.Context(), "t", nil, nil); !errors.As(err, &failed) || failed.Failure.Stack != stack {
		t.Errorf("got %v", err)
	}
}
