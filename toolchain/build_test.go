package toolchain_test

import (
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// newToolchain makes a host and a toolchain that use the cache all tests share.
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

// tool is an extension with one tool "t" whose body is given; around goes before it.
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
