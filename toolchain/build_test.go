package toolchain_test

import (
	"strconv"
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

// A large source nests twice as deep as others, and becomes a different component.
func TestLarge(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{})
	s := tool("", `let depth = 0; const deeper = (): void => { depth++; deeper(); }; try { deeper(); } catch {} return depth;`)
	var depths []int
	for _, s.Large = range []bool{false, true} {
		out, err := build(t, tools, s).Call(t.Context(), "t", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		depth, err := strconv.Atoi(string(out))
		if err != nil {
			t.Fatal(err)
		}
		depths = append(depths, depth)
	}
	if depths[0] < 100 || depths[1] < depths[0]*3/2 {
		t.Errorf("calls nest %d deep, of a large source %d", depths[0], depths[1])
	}
}
