package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// tables are sources of one file of 10 MB each, with what the tool find returns for the row 77777.
func tables() map[string]map[string]string {
	var js, csv strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&js, "{ \"id\": %d, \"name\": \"the name of row %d\", \"score\": %d.5, \"tags\": [\"t%d\", \"u\"], \"on\": true, \"no\": null },\n", i, i, i, i%100)
		fmt.Fprintf(&csv, "%d,the name of row %[1]d,%[1]d.5,%s\n", i, strings.Repeat("a value, ", 7))
	}
	rows := "[" + strings.TrimSuffix(js.String(), ",\n") + "]"
	const find = "export function find(id: number): string { return rows[id]!.name; }\n"
	return map[string]map[string]string{
		"text":       {"tool.ts": `import text from "./data.txt"; export function find(id: number): string { return text.split("\n")[id]!.split(",")[1]!; }`, "data.txt": csv.String()},
		"JSON":       {"tool.ts": `import rows from "./data.json"; ` + find, "data.json": rows},
		"TypeScript": {"tool.ts": `import { rows } from "./data.ts"; ` + find, "data.ts": "export const rows = " + rows + ";"},
		"JavaScript": {"tool.ts": `import { rows } from "./data.js"; ` + find, "data.js": "export const rows = " + rows + ";"},
		"the entry":  {"tool.ts": "const rows = " + rows + ";\nexport function find(id: number): string { return new Uint8Array(24 << 20).length > id ? rows[id]!.name : \"\"; }\n"},
	}
}

// TestTables adds extensions with a table of 10 MB, as data, as a module and as the entry itself, with types, and calls them.
func TestTables(t *testing.T) {
	h := newHome(t)
	cacheDir, keyDir := cachetest.Dirs(t)
	roomy, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir, MaxComponent: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roomy.Close() })
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.New(t.Context(), roomy, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir, Bundler: []string{os.Args[0], asBundler, log}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	h.options.Host, h.options.Toolchain, h.options.Bundler = roomy, func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }, []string{os.Args[0], asBundler, log}
	h.options.Types = newTypes(t, h.options.Toolchain)
	m := h.open()
	n := 0
	for name, files := range tables() {
		n++
		extensionName, permissions := fmt.Sprint("table", n), ""
		if name == "JSON" {
			permissions = `{"kv": true}` // a person is asked
		}
		d := tool(extensionName, "find", "", permissions)
		for file, text := range files {
			d.Files[file] = []byte(text)
		}
		w, err := m.Write(t.Context(), d)
		if err != nil || w.Unchecked != nil {
			t.Errorf("%s: %v, %v", name, err, w)
			continue
		}
		if name == "JSON" {
			review, err := m.Review(t.Context(), w.Release.ID)
			if err != nil || !strings.Contains(review.Code, "the name of row 77777") {
				t.Errorf("%s: the review has %d bytes, %v", name, len(review.Code), err)
			}
			approve(t, m, w.Release)
		}
		t.Logf("%s: built in %v, %d bytes", name, w.Took, w.Version.Report.ComponentSize)
		r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: extensionName + "_find", Input: []byte(`{"id": 77777}`)})
		if err != nil || string(r.Output) != `"the name of row 77777"` {
			t.Errorf("%s: %s, %v", name, r.Output, err)
		}
	}
}
