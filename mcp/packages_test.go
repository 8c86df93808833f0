package mcp

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain/npm"
)

// A client that wants progress reads which packages come, how many there are, and how large they are.
func TestPackagesProgress(t *testing.T) {
	h := newHome(t, preApproved)
	_, keyDir := cachetest.Dirs(t)
	packages, err := npm.New(npm.Options{CacheDir: t.TempDir(), KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packages.Close() })
	h.options.Packages = packages
	h.with(func(*Options) {})
	c := h.client()
	params := &sdk.CallToolParams{Name: "extension_write", Arguments: object{
		"types":    false,
		"manifest": object{"name": "odd", "version": "1.0.0", "description": "A test", "tools": []string{"get"}, "dependencies": object{"is-odd": "3.0.1"}},
		"source":   `import odd from "is-odd"; import { extension } from "stile"; export default extension({ tools: { get: { description: "Gets", run: async () => odd(3) } } });`,
	}}
	params.SetProgressToken("p")
	if r, err := c.CallTool(t.Context(), params); err != nil || r.IsError {
		t.Fatal(err, text(r))
	}
	var messages []string
	for len(c.passed) > 0 {
		messages = append(messages, (<-c.passed).Message)
	}
	if !slices.ContainsFunc(messages, func(m string) bool {
		return strings.HasPrefix(m, "resolve: is-") && strings.Contains(m, ", 2 of 2 packages, ") && strings.Contains(m, " of ")
	}) {
		t.Errorf("got %q", messages)
	}
}
