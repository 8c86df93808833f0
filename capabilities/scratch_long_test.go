//go:build long

package capabilities_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLongNewKind adds the kind in testdata/counter to a copy of this module: its folder, its WIT, and one line in
// capabilities.go. After `go generate` the tests of kinds pass, and the command line supports the kind everywhere: the binding, its
// TypeScript, a manifest's types and approval, recordings, and tests made from them.
func TestLongNewKind(t *testing.T) {
	module := filepath.Join(t.TempDir(), "stile")
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "bin", "out", "node_modules", "results"}, e.Name()):
			return filepath.SkipDir
		case e.Type().IsRegular():
			return copyFile(filepath.Join(module, "capabilities", path), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(module, "capabilities", "counter")
	if err := os.Rename(filepath.Join(module, "capabilities", "testdata", "counter"), folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(folder, "counter.wit"), filepath.Join(module, "wit", "deps", "capability", "counter.wit")); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(module, "capabilities", "capabilities.go")
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	registry := strings.Replace(string(text), "\ttools.Kind,\n", "\ttools.Kind,\n\t&counter.Kind.Kind,\n", 1)
	registry = strings.Replace(registry, "import (\n", "import (\n\t\"github.com/stilehost/stile/capabilities/counter\"\n", 1)
	if err := os.WriteFile(list, []byte(registry), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(dir, name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "STILE_HOME="+filepath.Join(module, "home"), "STILE_KEYRING=off", "STILE_USER=me")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(module, "go", "generate", "./capabilities", "./toolchain")
	run(module, "go", "vet", "./capabilities/...", "./host")
	run(module, "go", "test", "./capabilities", "./capabilities/counter")
	run(module, "go", "test", "-run", "TestEvery|TestList", "./host")
	run(module, "go", "test", "-run", "TestDeclarations|TestLayout", "./toolchain")
	stile := filepath.Join(module, "bin", "stile")
	run(module, "go", "build", "-o", stile, "./cmd/stile")

	work := filepath.Join(module, "work")
	files := map[string]string{
		"tool.ts": `import { extension } from "stile";
export default extension({ tools: { count: { description: "Counts", run: async (_: unknown, env) => {
	const sum: number = (await env.c.count()) + (await env.c.count(2));
	return { sum, seen: await env.c.seen() };
} } } });`,
		"manifest.json": `{"name": "count", "version": "1.0.0", "description": "Counts", "tools": ["count"], "bindings": {"c": {"counter": true}}}`,
	}
	for name, text := range files {
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"run tool.ts count --bind c=counter", `{"sum":4,"seen":[1,3]}`},
		{"types manifest.json -o -", "readonly c: Counter;"},
		{"calls test 1", `"expect": {`},
		{"ext add .", "count"},
		{"ext show count", "may count"},
	} {
		if out := run(work, stile, strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("stile %s: got %s, want %s", c.args, out, c.want)
		}
	}
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
