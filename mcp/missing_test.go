package mcp

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// A call of a tool that exists but cannot be called gets the reason, if the caller may know of the tool.
func TestMissing(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	own := extension.Scope{Kind: extension.Agent, Owner: "alice"}
	by := lifecycle.Decision{By: "user:tom", Via: "terminal", Reason: "enough\x1b[2J"}
	write := func(name string, permissions object) writeOutput {
		return does[writeOutput](c, "extension_write", draft(name, "1", permissions))
	}
	network := object{"network": []string{"api.example.test"}}
	pending := write("my-pending", network)
	write("revoked", nil)
	if _, err := h.manager.Revoke(t.Context(), own, "revoked", by); err != nil {
		t.Fatal(err)
	}
	refused := write("refused", network)
	if _, err := h.manager.Deny(t.Context(), lifecycle.Decision{Release: refused.Release, Digest: refused.Digest, By: by.By, Via: by.Via, Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	write("removed", nil)
	does[removeOutput](c, "extension_remove", object{"extension": "removed", "reason": "old"})
	write("update", nil)
	update := does[writeOutput](c, "extension_write", tools("update", network, object{"get": "1", "more": "2"}))
	for tool, want := range map[string]string{
		"my_pending_get": fmt.Sprintf("waits in scope agent:alice as request %d, which only a person can approve", pending.Release),
		"update_more":    fmt.Sprintf("waits in scope agent:alice as request %d, which only a person can approve", update.Release),
		"revoked_get":    "was revoked by user:tom (enough",
		"refused_get":    fmt.Sprintf("was denied by user:tom (no) in scope agent:alice (request %d)", refused.Release),
		"removed_get":    "was removed by agent:alice (old)",
	} {
		if r := c.tool(tool, nil); !r.IsError || !strings.Contains(text(r), want) || strings.Contains(text(r), "\x1b") {
			t.Errorf("%s: got %s", tool, text(r))
		}
	}
	c.says("update_get", "1")
	bob := h.person(lifecycle.Viewer{User: "tom", Agent: "bob"}, "test", nil)
	for _, call := range []struct {
		c    *client
		tool string
	}{{c, "never_get"}, {c, "my_pending_other"}, {c, strings.Repeat("_", 10_000)}, {c, ""}, {bob, "my_pending_get"}, {bob, "revoked_get"}} {
		if r, err := call.c.CallTool(t.Context(), &sdk.CallToolParams{Name: call.tool}); err == nil {
			t.Errorf("%.20s: got %s", call.tool, text(r))
		}
	}
}

// An agent cannot remove a user's or a shared extension, and the error says so.
func TestRemoveOfOthers(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	for _, scope := range []string{"user", "shared"} {
		d := draft("of-"+scope, "1", nil)
		d["scope"] = scope
		w := does[writeOutput](c, "extension_write", d)
		r := c.tool("extension_remove", object{"extension": "of-" + scope})
		if f := failed(t, r); f.Kind != "refused" || !strings.Contains(f.Message, "only a person can remove it") || !strings.Contains(f.Message, w.Scope) {
			t.Errorf("got %+v", f)
		}
	}
	if f := failed(t, c.tool("extension_remove", object{"extension": "never"})); f.Kind != "input" {
		t.Errorf("got %+v", f)
	}
}
