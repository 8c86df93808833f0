package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
)

// The upper rungs over MCP: a page and a container that last between the calls of one agent, pictures, and a policy that takes them away.
func TestUpperRungs(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Home</title><h1>Stiles</h1>"))
	}))
	defer site.Close()
	at := netip.MustParseAddrPort(site.Listener.Addr().String())
	h := newHome(t, fmt.Sprintf(`{"ladder": [{"agents": ["alice", "bob"], "rung": "sandbox", "bindings": {
		"workspace": {"workspace": {"path": "/", "access": "read-write"}},
		"browser": {"browser": [{"scheme": "http", "host": %q, "port": %d}]},
		"sandbox": {"sandbox": {"image": "host", "memory": "256MiB"}}
	}}]}`, at.Addr(), at.Port()))
	h.options.State.Configure(httpcap.Kind, httpcap.Options{}) // real connections
	c := h.client()
	open := object{"url": site.URL + "/"}
	if got := text(c.tool("browser_open", open)); !strings.Contains(got, "# Stiles") {
		t.Fatalf("got %s", got)
	}
	if got := text(c.tool("browser_read", object{})); !strings.Contains(got, "# Stiles") {
		t.Errorf("the page does not last: %s", got)
	}
	picture := c.tool("browser_screenshot", object{})
	if image, ok := picture.Content[0].(*sdk.ImageContent); !ok || image.MIMEType != "image/png" || len(image.Data) < 1000 {
		t.Errorf("got %+v", picture)
	}
	if got := text(c.tool("sandbox_run", object{"command": "echo kept > /tmp/kept; echo new > file.txt"})); !strings.Contains(got, "added file.txt") {
		t.Errorf("got %s", got)
	}
	if got := text(c.tool("sandbox_run", object{"command": "cat /tmp/kept"})); !strings.Contains(got, "kept") {
		t.Errorf("the container does not last: %s", got)
	}
	if got := text(c.tool("workspace_read", object{"path": "file.txt"})); !strings.Contains(got, "new") {
		t.Errorf("got %s", got)
	}
	bob := h.person(lifecycle.Viewer{User: "tom", Agent: "bob"}, "test", nil)
	if got := text(bob.tool("browser_read", object{})); !strings.Contains(got, "no page is open") {
		t.Errorf("another agent reads %s", got)
	}
	if got := text(bob.tool("sandbox_run", object{"command": "cat /tmp/kept"})); !strings.Contains(got, "exit code 1") {
		t.Errorf("another agent has %s", got)
	}
	p, err := policy.Parse([]byte(`{"ladder": [{"rung": "isolate", "permissions": {"workspace": "read"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	h.manager.SetPolicy(p)
	for tool, arguments := range map[string]object{"browser_read": {}, "sandbox_run": {"command": "cat /tmp/kept"}} {
		if r := c.tool(tool, arguments); failed(t, r).Kind != "refused" || !strings.Contains(text(r), "needs the rung") {
			t.Errorf("%s after it was taken away: %s", tool, text(r))
		}
	}
	if p, err = policy.Parse([]byte(`{"ladder": [{"rung": "sandbox", "bindings": {"workspace": {"workspace": {}}, "sandbox": {"sandbox": {"image": "host", "memory": "256MiB"}}}}]}`)); err != nil {
		t.Fatal(err)
	}
	h.manager.SetPolicy(p)
	if got := text(c.tool("sandbox_run", object{"command": "cat /tmp/kept", "sync": false})); !strings.Contains(got, "exit code 1") {
		t.Errorf("the container outlives the policy: %s", got)
	}
}
