package toolchain

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
)

// tool builds an extension with one tool, "t", of the body of its function. extra are more of its tools.
func (s *scripts) tool(t *testing.T, body, extra string) *host.Component {
	t.Helper()
	text := `import { extension } from "stile";
const caught = async (what: () => unknown) => { try { await what(); return "done"; } catch (e) { return e.code + ": " + e.message; } };
export default extension({ tools: { t: { description: "Tests", run: async (input, env) => {` + body + `} }, ` + extra + `} });`
	c, err := s.toolchain.Build(t.Context(), Source{FS: fstest.MapFS{"t.ts": &fstest.MapFile{Data: []byte(text)}}, Entry: "t.ts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestGrantsInTypeScript revokes grants of real capabilities while tools use handles derived from them. Logging triggers
// the revocation. The capability that moves bytes charges them to the budget.
func TestGrantsInTypeScript(t *testing.T) {
	s := newScripts(t)
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("begun"))
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/endless" {
			<-r.Context().Done()
			close(gone)
		}
	}))
	defer server.Close()
	rule, err := httpcap.ParseRule(server.URL + "/**")
	if err != nil {
		t.Fatal(err)
	}
	const revoked = `"revoked: the grant was revoked: by the owner"`
	for _, c := range []struct {
		name, body, want string
		options          host.GrantOptions
	}{
		{"in the middle of a body", `const r = await env.api.fetch(input.site + "/endless"); console.log("revoke"); return caught(() => r.text());`, revoked, host.GrantOptions{}},
		{"a narrowed client", `const n = await env.api.narrow([{ host: "127.0.0.1" }]); console.log("revoke"); return caught(() => n.fetch(input.site + "/"));`, revoked, host.GrantOptions{}},
		{"a body that is there", `const r = await env.api.fetch(input.site + "/"); await r.clone().text(); console.log("revoke"); return caught(() => env.api.fetch(input.site + "/"));`, revoked, host.GrantOptions{}},
		{"a subdirectory", `await env.files.makeDirectory("a"); const d = await env.files.subdirectory("a"); const ro = await d.readOnly();
			console.log("revoke"); return caught(() => ro.list(""));`, revoked, host.GrantOptions{}},
		{"a blob, in a capability of another grant", `const b = await env.blobs.createBlob(["x"]); console.log("revoke"); return caught(() => env.free.write("b", b));`, revoked, host.GrantOptions{}},
		{
			"a budget that narrowing would escape", `const two = await (await env.files.subdirectory("a")).readOnly(); return caught(() => two.list(""));`,
			`"exhausted: exhausted: operations: 2"`,
			host.GrantOptions{Operations: 2},
		},
		{
			"bytes", `await env.values.set("k", "123"); await env.values.get("k"); return caught(() => env.values.set("k", "1234"));`,
			`"exhausted: exhausted: bytes: 10"`,
			host.GrantOptions{Bytes: 10},
		},
		{
			"bytes of a file, in a subdirectory", `const d = await env.files.readOnly(); await env.files.write("five", "12345"); await d.read("five"); return caught(() => d.read("five"));`,
			`"exhausted: exhausted: bytes: 10"`,
			host.GrantOptions{Bytes: 10},
		},
		{
			"exchanges that fail", `for (let i = 0; i < 1100; i++) await caught(() => env.api.fetch(input.site + "/moved", { redirect: "error" })); return "none is kept";`,
			`"none is kept"`,
			host.GrantOptions{},
		},
		{
			"bytes of the network, by a narrowed client", `const n = await env.api.narrow([{ scheme: "http", host: "127.0.0.1", port: Number(input.site.split(":")[2]) }]);
				await (await n.fetch(input.site + "/")).text(); return caught(() => n.fetch(input.site + "/?" + "x".repeat(900)));`,
			`"exhausted: exhausted: bytes: 1000"`,
			host.GrantOptions{Bytes: 1000},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := s.workspace.Workspace("grants")
			grant := func(capability abi.Capability) *host.Grant { return host.NewGrant(capability, c.options) }
			api, under, blobs, values := grant(httpcap.Allow(rule)), grant(files), grant(blob.NewStore(blob.StoreOptions{})), grant(s.kv.Bucket("grants"))
			r, err := s.tool(t, c.body, "").Do(t.Context(), host.Request{Tool: "t", Input: []byte(`{"site":"` + server.URL + `"}`), Limits: host.Limits{CPU: time.Minute}, Env: host.Env{
				"api": api, "files": under, "free": host.NewGrant(files, host.GrantOptions{}), "blobs": blobs, "values": values,
				"console": console.To(func(console.Level, string) {
					for _, g := range []*host.Grant{api, under, blobs, values} {
						g.Revoke("by the owner")
					}
				}),
			}})
			if err != nil || string(r.Output) != c.want {
				t.Errorf("got %s, %v, want %s", r.Output, err, c.want)
			}
			if strings.Contains(c.body, "endless") {
				<-gone // the server has seen the disconnection
			}
		})
	}
}
