//go:build long

package typecheck

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain/npm"
)

var packageLine = regexp.MustCompile(`(?m)^// package: (.+)@([^@\n]+)$`)

// TestLongPackageTypes checks the types of the tools on packages that make packages calls, with the types that these packages bring. All of
// them do what they should or are refused for another reason, so there is nothing to be said of their types.
func TestLongPackageTypes(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../toolchain/npm/testdata/packages/*.js")
	if err != nil || len(names) < 85 {
		t.Fatalf("%d packages, %v", len(names), err)
	}
	checker := newChecker(t, 0)
	dir, keys := cachetest.Dirs(t)
	client, err := npm.New(npm.Options{CacheDir: dir, KeyDir: keys, MaxPackages: 3000, MaxFiles: 200_000, MaxBytes: 1 << 30, Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	typed, warned := 0, 0
	for group := range slices.Chunk(names, 20) { // what npm says about all of them at once is too much
		request := npm.Request{Dependencies: map[string]string{}, Types: true}
		texts := map[string][]byte{}
		for _, name := range group {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(name)] = text
			for _, m := range packageLine.FindAllSubmatch(text, -1) {
				request.Dependencies[string(m[1])] = string(m[2])
			}
		}
		res, err := client.Resolve(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range texts {
			if bytes.Contains(text, []byte("require(")) {
				continue
			}
			files := map[string]string{"tool.ts": string(text)}
			if len(imported(res.FS, request.Dependencies, files).Files) > 0 {
				typed++
			}
			err := checker.Check(t.Context(), Request{
				Files: map[string][]byte{"tool.ts": text}, Entry: "tool.ts", Bindings: bindings, Packages: npm.Tree(fstest.MapFS{}, res.FS), Dependencies: request.Dependencies,
				Warn: func(text string) { warned++; t.Logf("%s: %s", name, text) },
			})
			if err != nil {
				t.Errorf("%s: %v", strings.TrimSuffix(name, ".js"), err)
			}
		}
	}
	t.Logf("%d of %d tools with types of packages, %d without some", typed, len(names), warned)
	if typed < 40 {
		t.Errorf("only %d packages bring types", typed)
	}
}
