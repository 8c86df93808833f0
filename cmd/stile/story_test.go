package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestStory is the life of an extension, over a real connection of the Model Context Protocol. An agent writes it, a person
// approves it, it is called, the server restarts, an update requests more and waits, and it is revoked during a call.
func TestStory(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	asked := make(chan struct{}, 1)
	answer := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- struct{}{}
			<-answer
		}
		_, _ = fmt.Fprintf(w, "%s%s", r.Host[:strings.IndexByte(r.Host, ':')], r.URL.Path)
	}))
	t.Cleanup(site.Close)
	t.Cleanup(sync.OnceFunc(func() { close(answer) }))
	_, port, _ := strings.Cut(site.Listener.Addr().String(), ":")
	// The operator says where the names are.
	policy := []byte(`{"hosts": {"api.example.test": "127.0.0.1", "more.example.test": "127.0.0.1"}}`)
	if err := os.WriteFile(filepath.Join(h.dir, "policy.json"), policy, 0o600); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))

	var server *exec.Cmd
	var session *sdk.ClientSession
	start := func() {
		var address string
		server, address, _ = h.serve()
		session = connect(t, &sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: client(t, token), MaxRetries: -1})
	}
	// write has the agent write a version, and returns the outcome.
	write := func(version string, hosts ...string) (state string, release int64, digest string) {
		t.Helper()
		rules := make([]string, len(hosts))
		for i, host := range hosts {
			rules[i] = fmt.Sprintf(`{"scheme": "http", "host": %q, "port": %s}`, host, port)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "extension_write", Arguments: map[string]any{
			"manifest": fmt.Sprintf(`{"name": "api", "version": %q, "description": "Asks a service", "tools": ["get", "wait"], "bindings": {"api": {"http": [%s]}}}`,
				version, strings.Join(rules, ", ")),
			"source": fmt.Sprintf(`import { extension } from "stile";
const get = (path: string) => async (_: unknown, env: any) => (await env.api.fetch("http://api.example.test:%s" + path)).text();
export default extension({ tools: {
	get: { description: "Asks", run: async (input: unknown, env: any) => (await get("/quick")(input, env)) + " %s" },
	wait: { description: "Asks and waits", run: get("/slow") },
} });`, port, version),
		}})
		if err != nil || r.IsError {
			t.Fatalf("write %s: %v %s", version, err, text(r))
		}
		var written struct {
			State   string
			Release int64
			Digest  string
		}
		data, err := json.Marshal(r.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		return written.State, written.Release, written.Digest
	}
	offers := func(tool string) bool {
		t.Helper()
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Tools, func(offered *sdk.Tool) bool { return offered.Name == tool })
	}
	approve := func(release int64, digest string) {
		t.Helper()
		h.stile("ext", "approve", fmt.Sprint(release), "--yes", "--digest", digest)
	}

	start()
	state, release, digest := write("1.0.0", "api.example.test")
	if state != "pending" || offers("api_get") {
		t.Fatalf("what asks for a host is %s before a person said yes", state)
	}
	approve(release, digest)
	says(t, session, "api_get", `"api.example.test/quick 1.0.0"`)
	if !offers("api_get") {
		t.Error("what can be called is not listed")
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = session.Close() // the server may have ended first
	if err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	start()
	if !offers("api_get") {
		t.Fatal("the tool is gone after a restart")
	}
	says(t, session, "api_get", `"api.example.test/quick 1.0.0"`)

	state, release, digest = write("2.0.0", "api.example.test", "more.example.test")
	if state != "pending" {
		t.Fatalf("an update that asks for one host more is %s", state)
	}
	says(t, session, "api_get", `"api.example.test/quick 1.0.0"`)
	approve(release, digest)
	h.eventually(func() bool { return (<-call(h.ctx, session, "api_get")).text == `"api.example.test/quick 2.0.0"` })

	waits := call(h.ctx, session, "api_wait")
	<-asked
	h.stile("ext", "revoke", "api", "--scope", "agent:claude", "--yes")
	if a := <-waits; a.err != nil || !strings.Contains(a.text, "revoked") {
		t.Errorf("the call under way: %q, %v", a.text, a.err)
	}
	if offers("api_get") {
		t.Error("the tools are there after they were revoked")
	}
	h.stile("audit", "verify")
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = session.Close()
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}
