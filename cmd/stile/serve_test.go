package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/errkind"
)

// connect connects a client.
func connect(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // the server may be gone
	return session
}

// text is the text that a tool returned.
func text(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// says calls a tool and checks what it returns.
func says(t *testing.T, session *sdk.ClientSession, tool, want string) {
	t.Helper()
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool})
	if err != nil || r.IsError || text(r) != want {
		t.Fatalf("%s: got %+v, %v, want %s", tool, r, err, want)
	}
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// client is a separate client for each test, so that no connection outlives it.
func client(t *testing.T, token string) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{token, transport}}
}

// answer is the result of a call.
type answer struct {
	text string
	err  error
}

// call begins a call, and returns a channel for its answer.
func call(ctx context.Context, session *sdk.ClientSession, tool string) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool})
		if err != nil {
			answers <- answer{err: err}
			return
		}
		answers <- answer{text: text(r)}
	}()
	return answers
}

// TestMCP serves a client on stdin and stdout. When it is told to stop during a call, it lets the call finish.
func TestMCP(t *testing.T) {
	t.Parallel()
	h, site := newHome(t), newSite(t)
	h.stile("ext", "add", h.extension("quick", "1.0.0", "return 42"))
	h.stile("ext", "add", h.fetches("slow", site.address))
	h.approveAll()
	server := h.command("mcp", "--agent", "claude")
	session := connect(t, &sdk.CommandTransport{Command: server})
	says(t, session, "quick_get", "42")
	// Another process changes a tool and adds one.
	h.stile("ext", "add", h.extension("quick", "1.1.0", "return 44"))
	h.stile("ext", "add", h.extension("later", "1.0.0", "return 43"))
	h.eventually(func() bool { return (<-call(h.ctx, session, "quick_get")).text == "44" })
	h.eventually(func() bool { return (<-call(h.ctx, session, "later_get")).text == "43" })

	answers := call(h.ctx, session, "slow_get")
	<-site.asked
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.eventually(func() bool { return (<-call(h.ctx, session, "quick_get")).err != nil })
	site.answer()
	if a := <-answers; a.err != nil || a.text != "200" {
		t.Errorf("got %+v", a)
	}
	_ = session.Wait() // the server ends, whatever the client observes
	_ = session.Close()
	if code := server.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	h.stile("audit", "verify")
}

// eventually waits for an effect of another process.
func (h *home) eventually(is func() bool) {
	h.t.Helper()
	for !is() {
		if h.ctx.Err() != nil {
			h.t.Fatal(h.ctx.Err())
		}
	}
}

// serve starts a server and returns its address once it listens.
func (h *home) serve(args ...string) (server *exec.Cmd, address string, stderr *bufio.Reader) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "address")
	if len(args) == 0 {
		args = []string{"--listen", "127.0.0.1:0"}
	}
	server = h.command(append([]string{"serve", "--address-file", file}, args...)...)
	pipe, err := server.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		h.t.Fatal(err)
	}
	stderr = bufio.NewReader(pipe)
	line, err := stderr.ReadString('\n')
	if err != nil || !strings.Contains(line, "/mcp") {
		h.t.Fatalf("it does not listen: %q, %v", line, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	return server, strings.TrimSpace(string(text)), stderr
}

// TestServe serves only agents with tokens. When it is told to stop, it accepts no more calls and lets running ones finish.
func TestServe(t *testing.T) {
	t.Parallel()
	h, site := newHome(t), newSite(t)
	h.stile("ext", "add", h.extension("quick", "1.0.0", "return 42"))
	h.stile("ext", "add", h.fetches("slow", site.address))
	h.approveAll()
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	server, address, stderr := h.serve()
	endpoint := "http://" + address + "/mcp"
	for name, change := range map[string]func(*http.Request){
		"without a token":    func(r *http.Request) { r.Header.Del("Authorization") },
		"with another token": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:len(token)-1]+"x") },
		"with the hash":      func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+hashToken(token)) },
		"another host":       func(r *http.Request) { r.Host = "evil.example" },
		"another origin":     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		}
		change(r)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode < 400 {
			t.Errorf("%s: status %d", name, response.StatusCode)
		}
	}
	// It reconnects when a stream ends, as clients do. Otherwise the end of the notification stream would end the running call.
	session := connect(t, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client(t, token)})
	says(t, session, "quick_get", "42")

	// A token that is created meanwhile is valid, and one that is revoked is not.
	second := strings.TrimSpace(h.stile("serve", "token", "add", "other"))
	other := connect(t, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client(t, second), MaxRetries: -1})
	says(t, other, "quick_get", "42")
	h.stile("serve", "token", "remove", "other")
	if r, err := other.CallTool(t.Context(), &sdk.CallToolParams{Name: "quick_get"}); err == nil {
		t.Errorf("a token that was taken back got %+v", r)
	}

	answers := call(h.ctx, session, "slow_get")
	<-site.asked
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for { // until it says so
		line, err := stderr.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "waiting up to 30s for 1 request under way") {
			break
		}
	}
	// Not in this session: a failed call ends the session and the running call.
	late := client(t, token)
	h.eventually(func() bool {
		r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := late.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	})
	site.answer()
	if a := <-answers; a.err != nil || a.text != "200" {
		t.Errorf("the call under way: %q, %v", a.text, a.err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
	h.stile("audit", "verify")
	data, err := os.ReadFile(filepath.Join(h.dir, tokensName))
	if err != nil || strings.Contains(string(data), token) {
		t.Errorf("the file of tokens holds one: %s, %v", data, err)
	}
}

// TestServeOwnListener has a tool send a request to its own server, which its manifest names and a person approved.
func TestServeOwnListener(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	server, address, _ := h.serve()
	h.stile("ext", "add", h.fetches("own", address))
	h.approveAll()
	session := connect(t, &sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: client(t, token), MaxRetries: -1})
	var got answer
	h.eventually(func() bool { got = <-call(h.ctx, session, "own_get"); return got.err == nil })
	if !strings.Contains(got.text, "listen") {
		t.Errorf("got %s", got.text)
	}
	if out, err := h.command("ext", "call", "own_get").Output(); err != nil || strings.TrimSpace(string(out)) != "200" {
		t.Errorf("the same from another process: %s, %v", out, err) // shows that a rule would allow it
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// TestServeConnections has strangers open twice as many connections as the server has at once, and read nothing of what they ask for. Those
// that come are answered, and the connections of an agent and of a person stay.
func TestServeConnections(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	operator := filepath.Join(t.TempDir(), "operator")
	_, address, _ := h.serve("--listen", "127.0.0.1:0", "--operator-token-file", operator)
	open := func() net.Conn {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ask := func(c net.Conn, method, path, body string, headers ...string) (status int, header http.Header) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s", method, path, address, len(body), strings.Join(headers, "\r\n")+"\r\n", body); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode, answer.Header
	}
	text, err := os.ReadFile(operator)
	if err != nil {
		t.Fatal(err)
	}
	agent, person := open(), open()
	initialize := func(c net.Conn) {
		t.Helper()
		status, _ := ask(c, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`,
			"Authorization: Bearer "+token, "Content-Type: application/json", "Accept: application/json, text/event-stream")
		if status != http.StatusOK {
			t.Errorf("an agent gets status %d", status)
		}
	}
	initialize(agent)
	_, signedIn := ask(person, "POST", "/sign-in", url.Values{"token": {strings.TrimSpace(string(text))}}.Encode(), "Content-Type: application/x-www-form-urlencoded")
	cookie, _, _ := strings.Cut(signedIn.Get("Set-Cookie"), ";")
	look := func() {
		t.Helper()
		if status, _ := ask(person, "GET", signedIn.Get("Location"), "", "Cookie: "+cookie); status != http.StatusOK {
			t.Errorf("a person gets status %d", status)
		}
	}
	look()
	deaf := []byte(strings.Repeat("GET /style.css HTTP/1.1\r\nHost: "+address+"\r\n\r\n", 100))
	for i := range 2 * maxConnections {
		c := open()
		if _, err := c.Write(deaf); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	initialize(open())
	initialize(agent)
	look()
}

// TestServeOperatorToken shows the operator token only on a terminal.
func TestServeOperatorToken(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	person, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	server := h.command("serve", "--listen", "127.0.0.1:0")
	server.Stderr = terminal
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(person)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "the operator token of the pages is ") {
			break
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	server, _, stderr := h.serve()
	if line, err := stderr.ReadString('\n'); err != nil || !strings.Contains(line, "nobody can open the pages") || !strings.Contains(line, "--operator-token-file") {
		t.Errorf("off a terminal it says %q, %v", line, err)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line, err := stderr.ReadString('\n'); err == nil; line, err = stderr.ReadString('\n') {
		if strings.Contains(line, "operator token") {
			t.Errorf("it says %q to what is no terminal", line)
		}
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// TestServeOperatorTokenFile signs in with the token in a file that only its owner can read, and that is deleted afterwards.
func TestServeOperatorTokenFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "operator")
	server, address, stderr := h.serve("--listen", "127.0.0.1:0", "--operator-token-file", file)
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("got %v, %v", info, err)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{strings.TrimSpace(string(token)): http.StatusSeeOther, "wrong": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, "http://"+address+"/sign-in", strings.NewReader("token="+text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		transport := &http.Transport{DisableKeepAlives: true}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("%q: status %d, want %d", text, response.StatusCode, want)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line, err := stderr.ReadString('\n'); err == nil; line, err = stderr.ReadString('\n') {
		if strings.Contains(line, strings.TrimSpace(string(token))) {
			t.Errorf("it says %q to what is no terminal", line)
		}
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// TestLendFile does not replace files that others can read, follow links, or delete another owner's files.
func TestLendFile(t *testing.T) {
	dir := t.TempDir()
	open, link, mine := filepath.Join(dir, "open"), filepath.Join(dir, "link"), filepath.Join(dir, "mine")
	if err := os.WriteFile(open, []byte("open"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{open, link, dir} {
		if _, err := lendFile(name, []byte("token")); !errkind.Is[*usageError](err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, want := range map[string]string{open: "open", mine: "before"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
	remove, err := lendFile(mine, []byte("token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := writePrivate(mine, []byte("another's")); err != nil {
		t.Fatal(err)
	}
	remove()
	if text, err := os.ReadFile(mine); err != nil || string(text) != "another's" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestServeTLS serves over TLS under the names of the certificate, and no others.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.stile("ext", "add", h.extension("quick", "1.0.0", "return 42"))
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	cert, key, roots := certificate(t, "agents.example.test")
	server, address, _ := h.serve("--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	named := &http.Client{Transport: bearer{token, transport}}
	says(t, connect(t, &sdk.StreamableClientTransport{Endpoint: "https://agents.example.test:" + port + "/mcp", HTTPClient: named, MaxRetries: -1}), "quick_get", "42")
	for _, path := range []string{"/mcp", "/"} {
		r, err := http.NewRequestWithContext(h.ctx, http.MethodGet, "https://agents.example.test:"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example.test"
		response, err := named.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s under another name: status %d", path, response.StatusCode)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// certificate writes a self-signed certificate for a name.
func certificate(t *testing.T, name string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, roots
}

// A server follows changes of its operator's policy. It ignores an invalid policy, and does not return to the default when the file is
// deleted.
func TestServePolicy(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	_, address, stderr := h.serve()
	session := connect(t, &sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: client(t, token), MaxRetries: -1})
	file := filepath.Join(h.dir, "policy.json")
	tells := func(want string) {
		t.Helper()
		for {
			line, err := stderr.ReadString('\n')
			if err != nil {
				t.Fatalf("it does not tell that %q: %v", want, err)
			}
			if strings.Contains(line, want) {
				return
			}
		}
	}
	put := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		tells(want)
	}
	writes := func(name, want string) {
		t.Helper()
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "extension_write", Arguments: map[string]any{
			"manifest": fmt.Sprintf(`{"name": %q, "version": "1.0.0", "description": "Keeps", "tools": ["get"], "permissions": {"kv": true}}`, name),
			"source": `import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", run: async (_: unknown, env: any) => (await env.kv.get("k")) ?? "none" } } });`,
		}})
		if err != nil || !strings.Contains(text(r), want) {
			t.Fatalf("%s: %v %s", name, err, text(r))
		}
	}
	writes("one", "pending")
	put(`{"approve": [{"permissions": {"kv": true}}]}`, "policy.json changed; the new policy is in force")
	writes("two", "active")
	says(t, session, "two_get", `"none"`)
	put(`{`, "not valid, so the previous policy stays in force")
	says(t, session, "two_get", `"none"`)
	put(`{"ceiling": {"permissions": {"workspace": "read"}}}`, "the new policy is in force")
	if r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "two_get"}); err != nil || !r.IsError {
		t.Errorf("above the ceiling: %v, %s", err, text(r))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	tells("policy.json is gone; the previous policy stays in force until there is a new one")
	if r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "two_get"}); err != nil || !r.IsError {
		t.Errorf("above the ceiling that is gone: %v, %s", err, text(r))
	}
}

// A call that outlasts the server's grace period is ended, and its client is told.
func TestServeCut(t *testing.T) {
	t.Parallel()
	h, site := newHome(t), newSite(t)
	h.stile("ext", "add", h.fetches("slow", site.address))
	h.approveAll()
	token := strings.TrimSpace(h.stile("serve", "token", "add", "claude"))
	server, address, _ := h.serve("--listen", "127.0.0.1:0", "--drain", "10ms")
	session := connect(t, &sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: client(t, token)})
	answers := call(h.ctx, session, "slow_get")
	<-site.asked
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.err == nil || !strings.Contains(a.err.Error(), "the session is over") {
		t.Errorf("the call that was cut: %q, %v", a.text, a.err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

// TestKilledTokens kills commands that change the tokens as soon as they write. Each change is complete or absent, and the next change
// removes half-written data.
func TestKilledTokens(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "tokens.json")
	files := func() (names, states []string) {
		entries, err := os.ReadDir(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // it may have been deleted
				names, states = append(names, e.Name()), append(states, fmt.Sprint(e.Name(), info.Size(), info.ModTime()))
			}
		}
		return names, states
	}
	h.stile("serve", "token", "add", "first", "--token-file", file)
	kept := []string{filepath.Base(file), filepath.Base(file) + ".lock", filepath.Base(file) + ".spare"}
	there := 1
	for n := range 8 {
		add := h.command("serve", "token", "add", fmt.Sprintf("agent-%d", n), "--token-file", file)
		if err := add.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- add.Wait() }()
		_, before := files()
		for _, now := files(); slices.Equal(now, before) && len(ended) == 0; _, now = files() {
		}
		_ = add.Process.Kill() // it may have ended
		if err := <-ended; err == nil {
			t.Logf("change %d was done before it was killed", n)
		}
		tokens, err := readTokens(file)
		if err != nil || len(tokens) != there && len(tokens) != there+1 {
			t.Fatalf("%d tokens, %v; there were %d", len(tokens), err, there)
		}
		there = len(tokens)
	}
	h.stile("serve", "token", "remove", "first", "--token-file", file)
	if got, _ := files(); !slices.Equal(got, kept) {
		t.Errorf("there are %q", got)
	}
}
