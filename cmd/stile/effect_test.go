package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
)

// TestDecisionsTakeEffect has commands decide while one agent is served over HTTP and another one on stdin. The next list and the next
// call of both follow each command's reported decision.
func TestDecisionsTakeEffect(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	secret := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	_, address, stderr := h.serve()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	sessions := map[string]*sdk.ClientSession{
		"serve": connect(t, &sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: client(t, secret), MaxRetries: -1}),
		"mcp":   connect(t, &sdk.CommandTransport{Command: h.command("mcp", "--agent", "other")}),
	}
	// offers checks the list and a call of both.
	offers := func(when, want, why string) {
		t.Helper()
		for name, session := range sessions {
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			there := slices.ContainsFunc(list.Tools, func(t *sdk.Tool) bool { return t.Name == "quick_get" })
			r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "quick_get"})
			if err != nil { // like a tool that never existed
				r = &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
			}
			if want != "" && (!there || r.IsError || text(r) != want) || want == "" && (there || !r.IsError || !strings.Contains(text(r), why)) {
				t.Errorf("%s, %s: listed %v, and a call got %s", when, name, there, text(r))
			}
		}
	}
	for n := range 3 {
		h.stile("ext", "add", "--scope", "shared", h.extension("quick", fmt.Sprintf("1.%d.0", 2*n), fmt.Sprintf("return %d", 2*n)))
		offers("asked for", "", "")
		h.approveAll()
		offers("approved", fmt.Sprint(2*n), "")
		first := h.active("quick")
		h.stile("ext", "add", "--scope", "shared", h.extension("quick", fmt.Sprintf("1.%d.0", 2*n+1), fmt.Sprintf("return %d", 2*n+1)))
		h.approveAll()
		offers("another version", fmt.Sprint(2*n+1), "")
		h.stile("ext", "rollback", "quick", first, "--scope", "shared", "--yes")
		offers("rolled back", fmt.Sprint(2*n), "")
		h.stile("ext", "revoke", "quick", "--scope", "shared", "--reason", "it leaks", "--yes")
		offers("revoked", "", "quick was revoked by user:tom (it leaks)")
	}
}

// active is the digest of the version that is active in the shared scope.
func (h *home) active(name string) string {
	h.t.Helper()
	var all struct{ Releases []releaseJSON }
	if err := json.Unmarshal([]byte(h.stile("ext", "history", name, "--scope", "shared", "--json")), &all); err != nil {
		h.t.Fatal(err)
	}
	i := slices.IndexFunc(all.Releases, func(r releaseJSON) bool { return r.State == lifecycle.Active })
	if i < 0 {
		h.t.Fatalf("nothing is active: %+v", all)
	}
	return all.Releases[i].Digest
}

// TestEditsTakeEffect changes policy.json and the tokens 100 times each, in all ways in which files are changed. The next call follows each change.
func TestEditsTakeEffect(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	secret := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	_, address, stderr := h.serve()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	endpoint := "http://" + address + "/mcp"
	session := connect(t, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client(t, secret), MaxRetries: -1})
	policies := [2]string{`{"approve": [{"permissions": {"kv": true}}]}`, `{"ceiling": {"permissions": {"random": true}}}`}
	for i := range policies {
		policies[i] += strings.Repeat(" ", 80-len(policies[i])) // all of the same size
	}
	file := filepath.Join(h.dir, "policy.json")
	put := func(n int, text string) {
		t.Helper()
		name := file
		if n%3 == 0 { // or in place
			name += ".new"
		}
		err := os.WriteFile(name, []byte(text), 0o600)
		if err == nil && n%3 == 1 { // like a program that copies times, too
			err = os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0))
		}
		if err == nil && name != file {
			err = os.Rename(name, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(0, policies[0])
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "extension_write", Arguments: map[string]any{
		"manifest": `{"name": "keep", "version": "1.0.0", "description": "Keeps", "tools": ["get"], "permissions": {"kv": true}}`,
		"source": `import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", run: async (_: unknown, env: any) => (await env.kv.get("k")) ?? "none" } } });`,
	}})
	if err != nil || !strings.Contains(text(r), "active") {
		t.Fatal(err, text(r))
	}
	for n := range 100 {
		put(n, policies[n%2])
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "keep_get"})
		if err != nil || r.IsError != (n%2 == 1) {
			t.Errorf("edit %d: got %v, %s", n, err, text(r))
		}
	}

	tokens := filepath.Join(h.dir, tokensName)
	let, err := readTokens(tokens)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, secret)
	for n := range 100 {
		// The test changes them as the commands do.
		err := changeTokens(t.Context(), tokens, func([]token) ([]token, error) { return let[:n%2], nil })
		if err != nil {
			t.Fatal(err)
		}
		if status := ping(t.Context(), t, c, endpoint); (status != http.StatusUnauthorized) != (n%2 == 1) {
			t.Errorf("change %d: status %d", n, status)
		}
	}
}

// ping returns the status of a request.
func ping(ctx context.Context, t *testing.T, c *http.Client, endpoint string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
