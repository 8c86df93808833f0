//go:build long

package thirdparty

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/suite"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/guesttest"
)

const tool = `import { extension } from "stile";
export default extension({ tools: { t: { description: "a tool", run: async (_: unknown, env: any) => [await env.store.get("k"), new Date()] } } });`

// TestLongWasmTools checks that wasm-tools reads the folder wit, and accepts the components of the toolchain: in both forms, and those made of
// core modules with WASI preview 1.
func TestLongWasmTools(t *testing.T) {
	tools := suite.WasmTools(t)
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), tools, args...).CombinedOutput()
		if err != nil {
			t.Errorf("wasm-tools %s: %v\n%.2000s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	contract := filepath.Join("..", "..", "wit")
	text := run("component", "wit", contract)
	for _, want := range []string{"package stile:extension@0.1.0;", "world with-everything {"} {
		if !strings.Contains(text, want) {
			t.Errorf("wasm-tools component wit finds no %q in\n%s", want, text)
		}
	}

	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	dir, keys := cachetest.Dirs(t)
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	source := toolchain.Source{FS: fstest.MapFS{"tool.ts": {Data: []byte(tool)}}, Entry: "tool.ts", Bindings: map[string]string{"store": "stile:capability/kv@0.1.0"}}
	components := map[string][]byte{
		"core.wasm": guesttest.Guest{Imports: `(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))`}.Component(t),
	}
	for file, standalone := range map[string]bool{"shared.wasm": false, "standalone.wasm": true} {
		if components[file], err = chain.Assemble(t.Context(), source, standalone); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	for file, wasm := range components {
		path := filepath.Join(folder, file)
		if err := os.WriteFile(path, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		run("validate", path)
		world := run("component", "wit", path)
		for _, want := range []string{"world root {", "export stile:extension/tools@0.1.0;"} {
			if !strings.Contains(world, want) {
				t.Errorf("%s: its world has no %q:\n%s", file, want, world)
			}
		}
		if file != "core.wasm" && !strings.Contains(world, "import stile:capability/kv@0.1.0;") {
			t.Errorf("%s: its world does not import kv:\n%s", file, world)
		}
	}
	broken := filepath.Join(folder, "broken.wasm")
	if err := os.WriteFile(broken, components["core.wasm"][:len(components["core.wasm"])-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), tools, "validate", broken).Run(); err == nil {
		t.Error("wasm-tools accepts a component that is cut short")
	}
}
