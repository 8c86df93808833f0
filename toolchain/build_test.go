package toolchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// newToolchain makes a host and a toolchain with the cache that all tests share.
func newToolchain(t testing.TB, o host.Options) (*host.Host, *toolchain.Toolchain) {
	t.Helper()
	o.CacheDir, o.KeyDir = cachetest.Dirs(t)
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	tools, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tools.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, tools
}

// source is a source tree of one file.
func source(text string) toolchain.Source {
	return toolchain.Source{FS: fstest.MapFS{"tool.ts": {Data: []byte(text)}}, Entry: "tool.ts"}
}

// tool is an extension with one tool "t" with this body; around goes before it.
func tool(around, body string) toolchain.Source {
	return source(`import { extension, DeniedError } from "stile";
` + around + `
export default extension({ tools: { t: { description: "test", input: { type: "object" }, run: async (input: any, env: any) => {
` + body + `
} } } });
`)
}

func build(t testing.TB, tools *toolchain.Toolchain, s toolchain.Source) *host.Component {
	t.Helper()
	c, err := tools.Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestToolsShareCode loads tools whose source differs. The host compiles one component for those with the same bindings.
func TestToolsShareCode(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{})
	dir, keyDir := t.TempDir(), t.TempDir()
	load := func(wasm []byte, want string) {
		t.Helper()
		h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { // which waits until all is in the cache
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		name, engine := tools.Engine()
		if err := h.AddModuleNamed(t.Context(), name, engine); err != nil {
			t.Fatal(err)
		}
		loaded, err := h.Load(t.Context(), wasm)
		if err != nil {
			t.Fatal(err)
		}
		out, err := loaded.Call(t.Context(), "t", nil, nil)
		if err != nil || string(out) != want {
			t.Errorf("got %s, %v, want %s", out, err, want)
		}
	}
	for i, c := range []struct {
		source     toolchain.Source
		want       string
		components int // compiled so far
	}{
		{tool("", `return 1;`), "1", 1},
		{tool(`const many = "`+strings.Repeat("x", 2000)+`";`, `return many.length;`), "2000", 1},
		{tool("", `return new Date(0).getTime();`), "0", 2}, // it imports the clock
		{tool("", `return [4].map((n) => n)[0];`), "4", 2},
	} {
		wasm, err := tools.Assemble(t.Context(), c.source, false)
		if err != nil {
			t.Fatal(err)
		}
		load(wasm, c.want)
		for kind, want := range map[string]int{"component": c.components, "image": i + 1} {
			if entries, err := os.ReadDir(filepath.Join(dir, kind)); err != nil || len(entries) != want {
				t.Errorf("after %d tools: %d of kind %s are compiled, %v, want %d", i+1, len(entries), kind, err, want)
			}
		}
	}
}

// TestNoBindings has an empty map of bindings. Nothing is imported for them, whatever the code names, unlike without a map.
func TestNoBindings(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{})
	for name, test := range map[string]struct {
		bindings map[string]string
		imported bool
	}{"unknown": {nil, true}, "none": {map[string]string{}, false}, "one": {map[string]string{"kv": "stile:capability/kv@0.1.0"}, true}} {
		s := tool("", `return await env.kv.get("a");`)
		s.Bindings = test.bindings
		imports := build(t, tools, s).Imports()
		if slices.ContainsFunc(imports, func(i host.Import) bool { return strings.Contains(i.Name, "/kv@") }) != test.imported {
			t.Errorf("bindings %s: kv is imported: %t, want %t", name, !test.imported, test.imported)
		}
	}
}

// A source with Absent is built although parts of it are missing, so that the rest can be seen: what is not there gives more of itself, and tools
// that extension() refuses say why.
func TestSourceWithAbsent(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	files := fstest.MapFS{"tool.ts": {Data: []byte(`import { extension, file, DeniedError } from "stile";
import gone, { part, Base } from "./gone";
import { z } from "no-such-package";
import net from "node:net";
const schema = z.object({ a: z.string().optional() }), made = new part.Thing(gone);
class Own extends Base { own = net.connect(made) }
new Own();
const later = () => require(["a", "b"].join("/"));
export default extension({ tools: {
  good: { description: "Good", run: () => [schema, file, DeniedError] },
  bad: { description: "", run: () => 1 },
  "Bad name": { description: "Bad", run: () => 1 },
} });`)}}
	source := toolchain.Source{FS: files, Entry: "tool.ts"}
	if _, err := tools.Build(t.Context(), source); !errors.As(err, new(*toolchain.BuildError)) {
		t.Fatalf("got %v", err)
	}
	source.Absent = true
	c, err := tools.Build(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	described, err := c.Tools(t.Context())
	if err != nil || len(described) != 3 {
		t.Fatal(described, err)
	}
	for i, want := range []string{"", "tools.bad.description: text is wanted", "tools.Bad name: a tool's name is made of"} {
		if why, refused := toolchain.RefusedTool(described[i]); refused != (want != "") || refused && !strings.HasPrefix(why, want) {
			t.Errorf("%s: %q", described[i].Name, why)
		}
	}
	// What is made of it is in no schema.
	files["tool.ts"].Data = []byte(`import { extension } from "stile";
import { z } from "no-such-package";
export default extension({ tools: { get: { description: "Gets", input: { type: "object", properties: z.properties, required: ["a"], additionalProperties: false }, run: () => 1 } } });`)
	if c, err = tools.Build(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	described, err = c.Tools(t.Context())
	if err != nil || len(described) != 1 {
		t.Fatal(described, err)
	}
	if why, refused := toolchain.RefusedTool(described[0]); why != "" || !refused {
		t.Errorf("got %q, %s", why, described[0].InputSchema)
	}
}
