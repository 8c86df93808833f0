package toolchain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/usagetest"
)

// largeSource is a module in one file of 10 MB: what a table of data looks like, or what is made to take the bundler or the engine long.
type largeSource struct {
	builds bool
	text   func() string
}

var largeSources = map[string]largeSource{
	"one template": {true, func() string { return "export default `" + strings.Repeat("x", 10<<20) + "`.length" }},
	"a comment":    {true, func() string { return "/*" + strings.Repeat("x", 10<<20) + "*/export default 1" }},
	"keys":         {false, func() string { return "export default {" + numbered(800_000, "k%d:%d,") + "}" }},
	"deep lists":   {false, func() string { return "export default " + strings.Repeat("[", 5<<20) + strings.Repeat("]", 5<<20) }},
	"deep templates": {false, func() string {
		return "export default " + strings.Repeat("`${", 10<<20/5) + "1" + strings.Repeat("}`", 10<<20/5)
	}},
	"deep functions": {false, func() string { return "export default " + strings.Repeat("()=>", 10<<20/4) + "1" }},
	"a long sum":     {false, func() string { return "let a=1;export default " + strings.Repeat("a+", 10<<20/2) + "1" }},
}

// What a build of a large source may take in this process. The bundler has limits in its own.
const (
	mostCPU    = largeCPU + 10*time.Second
	mostMemory = 1 << 20 // KiB
)

// TestLargeSources builds large sources in one file. Each builds, or is refused for a limit or as what its author can change, and takes bounded
// time and memory.
func TestLargeSources(t *testing.T) { buildLarge(t, largeSources) }

func buildLarge(t *testing.T, sources map[string]largeSource) {
	dir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := New(t.Context(), h, Options{CacheDir: dir, KeyDir: keyDir, Bundler: helper("bundle")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	const main = `import v from "./data"; import { extension } from "stile"; export default extension({ tools: { t: { description: "t", run: async () => String(v) } } })`
	for name, c := range sources {
		t.Run(name, func(t *testing.T) {
			text := c.text()
			if len(text) < 10<<20-100 {
				t.Fatalf("it has %d bytes", len(text))
			}
			before, began, start := usagetest.Peak(), time.Now(), usagetest.Processor()
			_, err := chain.Assemble(t.Context(), Source{FS: tree(map[string]string{"main.ts": main, "data.ts": text}), Entry: "main.ts"}, false)
			took, grew := usagetest.Processor()-start, usagetest.Peak()-before
			t.Logf("%v, %v of processor time here, %d MiB: %.200v", time.Since(began), took, grew>>10, err)
			if took > mostCPU || grew > mostMemory {
				t.Errorf("it took %v and %d KiB", took, grew)
			}
			if c.builds && err != nil {
				t.Errorf("got %.300v", err)
			}
			if err != nil && !errors.As(err, new(*BuildError)) && !errors.As(err, new(*host.LimitError)) {
				t.Errorf("got %T", err)
			}
		})
	}
}
