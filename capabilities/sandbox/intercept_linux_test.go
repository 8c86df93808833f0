package sandbox_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log"
	nethttp "net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/capability"
)

type vault map[string]string

func (v vault) Get(_ context.Context, name string) (string, error) {
	if secret, ok := v[name]; ok {
		return secret, nil
	}
	return "", errors.New("there is no such secret")
}

// secret is the credential of tests, as git servers take it.
const secret = "bot:t0ken+with/signs-and-length"

// secure serves TLS on loopback as example.com. It returns options of sandboxes at a site that knows the server's address and authority, and
// a rule for the server.
func secure(t *testing.T, h nethttp.Handler) (sandbox.Options, http.Rule) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	o := home(t)
	o.Site = capability.NewSite(t.TempDir(), func(capability.Level, string) {})
	t.Cleanup(func() { _ = o.Site.Close() })
	o.Site.Configure(http.Kind, http.Options{RootCAs: roots, Credentials: vault{"git": secret}})
	o.Site.SetHosts(map[string][]netip.Addr{"example.com": {netip.MustParseAddr("127.0.0.1")}, "a.example.com": {netip.MustParseAddr("127.0.0.1")}})
	return o, http.Rule{Host: "example.com", Port: uint16(port)}
}

// origin is the URL of a rule's server.
func origin(r http.Rule) string { return "https://" + r.Host + ":" + strconv.Itoa(int(r.Port)) }

// repositories has two repositories that a server keeps for those who know the secret, and counts requests that had it.
func repositories(t *testing.T) (h nethttp.Handler, seen *atomic.Int64) {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"private", "other"} {
		bare := filepath.Join(root, "team", name+".git")
		for _, args := range [][]string{
			{"init", "-q", "--bare", "-b", "main", bare},
			{"-C", bare, "config", "http.receivepack", "true"},
		} {
			git(t, args...)
		}
		work := t.TempDir()
		if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, "-C", work, "init", "-q", "-b", "main")
		git(t, "-C", work, "add", ".")
		git(t, "-C", work, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first of "+name)
		git(t, "-C", work, "push", "-q", bare, "main")
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(git(t, "--exec-path")), "git-http-backend"), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot"},
	}
	seen = new(atomic.Int64)
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		user, password, _ := r.BasicAuth()
		if user+":"+password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			nethttp.Error(w, "who are you?", nethttp.StatusUnauthorized)
			return
		}
		seen.Add(1)
		if r.URL.Path == "/team/private.git/echo" {
			_, _ = io.WriteString(w, "you sent "+r.Header.Get("Authorization")+" and "+password)
			return
		}
		backend.ServeHTTP(w, r)
	}), seen
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// spellings are forms in which the secret could be somewhere.
func spellings() []string {
	_, password, _ := strings.Cut(secret, ":")
	return []string{password, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(password)}
}

// TestClonePrivate clones a private repository over https, with no token in the sandbox. Rules by path and method allow to read one
// repository, and neither to push to it nor to read another one.
func TestClonePrivate(t *testing.T) {
	h, seen := repositories(t)
	o, rule := secure(t, h)
	rule.Credential, rule.As = "git", "basic"
	refs, pack, echo := rule, rule, rule
	refs.Path = "/team/private.git/info/refs"
	pack.Path, pack.Methods = "/team/private.git/git-upload-pack", []string{"POST"}
	echo.Path = "/team/private.git/echo"
	s := open(t, o, sandbox.Rights{Network: []http.Rule{refs, pack, echo}, Intercept: true})
	at := origin(rule)
	got := run(t, s, "git clone -q "+at+"/team/private.git && cd private && git log --oneline && cat README.md && git fetch -q && git ls-remote")
	if got.Code != 0 || !strings.Contains(got.stdout, "first of private") || !strings.Contains(got.stdout, "of private\n") {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.stdout, got.stderr)
	}
	if seen.Load() == 0 {
		t.Error("no request had the credential")
	}

	const identity = "git config user.email a@example.com; git config user.name a; "
	got = run(t, s, "cd private; "+identity+"echo x >> README.md; git commit -qam second && git push -q origin HEAD")
	if got.Code == 0 || !strings.Contains(got.stderr, "403") || !strings.Contains(got.stderr, "stile: denied: POST "+at+"/team/private.git/git-receive-pack") ||
		!strings.Contains(got.stderr, `a rule of the network that allows it: {"host":"example.com"`) {
		t.Errorf("push: exit code %d\n%s%s", got.Code, got.stdout, got.stderr)
	}
	for _, path := range []string{
		"/team/other.git", "/team/private.git/../other.git", "/team/private.git%2f..%2fother.git", "/team/private.git/info/refs/..%2f..%2f..%2fother.git", "/team%2fother.git",
	} {
		if got := run(t, s, "git clone -q '"+at+path+"' other"); got.Code == 0 || strings.Contains(got.stdout+got.stderr, "of other") {
			t.Errorf("%s: exit code %d\n%s%s", path, got.Code, got.stdout, got.stderr)
		}
	}

	everything := must(t, s, "curl -sS "+at+"/team/private.git/echo") +
		must(t, s, "env; tr '\\0' '\\n' < /proc/self/environ; git config --list; cat /dev/authorities.pem") +
		must(t, s, "cd private; GIT_TRACE=1 GIT_TRACE_CURL=1 GIT_TRACE_REDACT=0 git fetch 2>&1; curl -svS "+at+"/team/private.git/info/refs?service=git-upload-pack 2>&1 | cat -v") +
		must(t, s, "find /work /home /tmp /run -type f -exec cat {} + | cat -v")
	if !strings.Contains(everything, "you sent Basic ***") || !strings.Contains(everything, "git-upload-pack") || strings.Contains(everything, "PRIVATE KEY") {
		t.Errorf("got %s", everything)
	}
	for _, form := range spellings() {
		if strings.Contains(everything, form) {
			t.Errorf("the sandbox has the secret as %q", form)
		}
	}
}

// raw sends bytes within TLS through the proxy: node raw.js HOST:PORT SERVERNAME PROTOCOL BYTES. It prints what comes back.
const raw = `
const net = require("net"), tls = require("tls");
const [at, name, protocol, bytes] = process.argv.slice(2);
const proxy = new URL(process.env.https_proxy);
const socket = net.connect(proxy.port, proxy.hostname, () => socket.write("CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n"));
const fail = (e) => { console.log("failed: " + (e.code || e.message)); process.exit(); };
socket.on("error", fail);
socket.once("data", (data) => {
  const line = data.toString().split("\r\n")[0];
  if (!line.includes(" 200 ")) { console.log("CONNECT: " + line); process.exit(); }
  const inside = tls.connect({ socket, servername: name, ALPNProtocols: [protocol] }, () => inside.write(bytes.replaceAll("\\r\\n", "\r\n")));
  inside.on("error", fail);
  inside.on("data", (data) => { process.stdout.write(data); });
  inside.on("end", () => process.exit());
  setTimeout(() => process.exit(), 2000);
});
`

// TestInterceptAttacks leaves a path, a host and a protocol in every way that a program of the sandbox has.
func TestInterceptAttacks(t *testing.T) {
	var leaked atomic.Int64
	var at string
	o, rule := secure(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch {
		case r.URL.Path == "/in/away":
			nethttp.Redirect(w, r, at+"/out", nethttp.StatusFound)
		case r.URL.Path == "/in/elsewhere":
			nethttp.Redirect(w, r, "https://other.example/in/", nethttp.StatusFound)
		case r.URL.Path == "/in/metadata":
			nethttp.Redirect(w, r, "http://169.254.169.254/", nethttp.StatusFound)
		case !strings.HasPrefix(r.URL.Path, "/in/") || !strings.HasPrefix(r.Host, "example.com:") && !strings.HasPrefix(r.Host, "127.0.0.1:"):
			leaked.Add(1)
		}
		_, _ = io.WriteString(w, "served "+r.Proto+" "+r.Header.Get("Authorization"))
	}))
	at = origin(rule)
	rule.Path, rule.Credential = "/in/**", "git"
	plainServer := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) { _, _ = io.WriteString(w, "plain "+r.URL.Path) }))
	defer plainServer.Close()
	plain, err := http.ParseRule(plainServer.URL + "/in/**")
	if err != nil {
		t.Fatal(err)
	}
	literal := rule
	literal.Host, literal.Credential = "127.0.0.1", ""
	s := open(t, o, sandbox.Rights{Network: []http.Rule{rule, plain, literal}, Intercept: true})
	must(t, s, "cat > raw.js <<'EOF'"+raw+"EOF\n")
	host := strings.TrimPrefix(at, "https://")
	node := func(at, name, protocol, bytes string) string {
		return "node raw.js " + at + " '" + name + "' " + protocol + " '" + bytes + "'"
	}
	request := `GET /in/a HTTP/1.1\r\nHost: ` + host + `\r\nConnection: close\r\n\r\n`
	for _, c := range []struct{ what, command, want string }{
		{"what is allowed", "curl -sS " + at + "/in/a", "served HTTP/1.1 Bearer ***"},
		{"raw", node(host, "example.com", "http/1.1", request), "served"},
		{"a client that prefers HTTP/2", "curl -sS --http2 " + at + "/in/a", "served HTTP/1.1"},
		{"an address that a rule names", "curl -sS --noproxy '' https://127.0.0.1:" + strconv.Itoa(int(rule.Port)) + "/in/a", "served"},
		{"a request without TLS", "curl -sS --noproxy '' " + plainServer.URL + "/in/a", "plain /in/a"},
		{"the same in a tunnel", "curl -sS --noproxy '' --proxytunnel " + plainServer.URL + "/in/a", "plain /in/a"},

		{"another path", "curl -sS " + at + "/out", "denied: GET"},
		{"another path without TLS", "curl -sS --noproxy '' " + plainServer.URL + "/out", "denied: GET"},
		{"dots", "curl -sS --path-as-is " + at + "/in/../out", "denied: GET"},
		{"encoded slashes", "curl -sS --path-as-is " + at + "/in/..%2fout " + at + "/in/a%2f..%2f..%2fout " + at + "/in%2f..%2fout", "hides a slash or a dot segment"},
		{"a slash encoded twice", "curl -sS --path-as-is " + at + "/in/..%252fout", "hides a slash or a dot segment"},
		{"another method", "curl -sS -X DELETE " + at + "/in/a", "denied: DELETE"},
		{"a header that changes the method", "curl -sS -H 'X-HTTP-Method-Override: DELETE' " + at + "/in/a", "x-http-method-override"},
		{"a header that changes the path", "curl -sS -H 'X-Rewrite-URL: /out' " + at + "/in/a", "x-rewrite-url"},
		{"another Host", "curl -sS -H 'Host: other.example' " + at + "/in/a", "names the host"},
		{"a redirect to another path", "curl -sSL " + at + "/in/away", "denied: GET"},
		{"a redirect to another host", "curl -sSL " + at + "/in/elsewhere 2>&1", "403"},
		{"a redirect to an address", "curl -sSL --noproxy '' " + at + "/in/metadata", "denied"},
		{"another host", "curl -sS https://other.example/in/a 2>&1", "403"},
		{"an address that no rule names", "curl -sS --noproxy '' https://127.0.0.2:" + strconv.Itoa(int(rule.Port)) + "/in/a 2>&1", "403"},
		{"a handshake for another server", node(host, "other.example", "http/1.1", request), "failed: "},
		{"a handshake for a host that another rule names", node(host, "a.example.com", "http/1.1", request), "failed: "},
		{"only HTTP/2", node(host, "example.com", "h2", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`), "failed: "},
		{"HTTP/2 unasked", node(host, "example.com", "http/1.1", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`), "400 Bad Request"},
		{"an upgrade to HTTP/2", node(host, "example.com", "http/1.1", `GET /in/a HTTP/1.1\r\nHost: `+host+`\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`), "served HTTP/1.1"},
		{"a WebSocket beside a credential", node(host, "example.com", "http/1.1", `GET /in/a HTTP/1.1\r\nHost: `+host+`\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`), "WebSocket"},
		{"a request in another", node(host, "example.com", "http/1.1", `GET /in/a HTTP/1.1\r\nHost: `+host+`\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /out HTTP/1.1\r\nHost: x\r\n\r\n`), "400 Bad Request"},
		{"a tunnel in a tunnel", node(host, "example.com", "http/1.1", `CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n`), "400 Bad Request"},
		{"no TLS in the tunnel", "curl -sS --proxytunnel http://" + host + "/in/a 2>&1", "curl: "},
		{"a program that pins the server's key", "curl -sS --pinnedpubkey sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= " + at + "/in/a 2>&1", "curl: (90)"},
		{"a program that trusts other authorities", "openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -out own.pem -subj /CN=own 2> /dev/null; curl -sS --cacert own.pem " + at + "/in/a 2>&1", "curl: (60)"},
		{"a forged credential", "curl -sS -H 'Authorization: Basic Zm9yZ2Vk' " + at + "/in/a", "Bearer ***"},
		{"a slice of the echo", "curl -sS -r 7-20 " + at + "/in/a", "served"},
	} {
		got := run(t, s, c.command)
		if !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.what, got.Code, got.stdout, got.stderr)
		}
		for _, form := range spellings() {
			if strings.Contains(got.stdout+got.stderr, form) {
				t.Errorf("%s: the secret comes out", c.what)
			}
		}
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("%d requests got out", n)
	}
	if got := run(t, s, "echo x > /dev/authorities.pem; rm -f /dev/authorities.pem /etc/ssl/certs/ca-certificates.crt; mv /dev/authorities.pem /dev/x; tail -n 1 /dev/authorities.pem"); strings.TrimSpace(got.stdout) != "-----END CERTIFICATE-----" || !strings.Contains(got.stderr, "ead-only") {
		t.Errorf("the list can be changed: %s%s", got.stdout, got.stderr)
	}
}

// TestUpstreamIsVerified has a server whose certificate nobody signed, or that is for another name.
func TestUpstreamIsVerified(t *testing.T) {
	o, rule := secure(t, nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was asked") }))
	o.Site.SetHosts(map[string][]netip.Addr{"other.test": {netip.MustParseAddr("127.0.0.1")}, "example.com": {netip.MustParseAddr("127.0.0.1")}})
	other := rule
	other.Host = "other.test"
	s := open(t, o, sandbox.Rights{Network: []http.Rule{rule, other}, Intercept: true})
	if got := must(t, s, "curl -sS "+origin(other)); !strings.Contains(got, "x509: certificate") {
		t.Errorf("another name: %s", got)
	}
	o.Site.Configure(http.Kind, http.Options{RootCAs: x509.NewCertPool()})
	s = open(t, o, sandbox.Rights{Network: []http.Rule{rule}, Intercept: true})
	if got := must(t, s, "curl -sS "+origin(rule)); !strings.Contains(got, "x509: certificate signed by unknown authority") {
		t.Errorf("an unknown authority: %s", got)
	}
}

// TestTrust has programs verify what the proxy shows, by the variables that they read and by the system's list. Each sandbox has an authority
// of its own.
func TestTrust(t *testing.T) {
	o, rule := secure(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if text, ok := map[string]string{
			"/x/info/refs":                  "0123456789012345678901234567890123456789\trefs/heads/main\n",
			"/example.com/m/@v/list":        "v1.2.3\n",
			"/example.com/m/@v/v1.2.3.info": `{"Version": "v1.2.3", "Time": "2026-01-01T00:00:00Z"}`,
			"/example.com/m/@v/v1.2.3.mod":  "module example.com/m\n",
			"/left":                         `{"name": "left", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"name": "left", "version": "1.2.3"}}}`,
			"/simple/left/":                 `<a href="left-1.2.3-py3-none-any.whl">left</a>`,
			"/index/config.json":            `{"dl": "https://` + r.Host + `/dl", "api": "https://` + r.Host + `"}`,
			"/api/v1/crates":                `{"crates": [{"name": "left", "description": "crate", "max_version": "1.2.3"}], "meta": {"total": 1}}`,
		}[r.URL.Path]; ok {
			if strings.HasPrefix(text, "<") {
				w.Header().Set("Content-Type", "text/html")
			}
			_, _ = io.WriteString(w, text)
			return
		}
		_, _ = io.WriteString(w, "served")
	}))
	folder := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("this test needs %s: %v", name, err)
		}
		return strings.TrimSpace(string(out))
	}
	goroot, sysroot := folder("go", "env", "GOROOT"), folder("rustc", "--print", "sysroot")
	image, more := "host", []string{}
	for _, root := range []string{goroot, sysroot} {
		if !strings.HasPrefix(root, "/usr/") {
			more = append(more, root)
		}
	}
	if len(more) > 0 {
		image = "tools"
		if _, err := images.FromHost(filepath.Join(o.Dir, "images"), image, more, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, o, sandbox.Rights{Image: image, Network: []http.Rule{rule}, Intercept: true, Limits: sandbox.Limits{Memory: 2 << 30}})
	at := origin(rule)
	for _, c := range []struct{ program, command, want string }{
		{"curl", "curl -sS " + at, "served"},
		{"curl without variables", "env -i https_proxy=$https_proxy curl -sS " + at, "served"},
		{"wget", "wget -qO- " + at, "served"},
		{"wget without variables", "env -i https_proxy=$https_proxy wget -qO- " + at, "served"},
		{"git", "git ls-remote " + at + "/x", "refs/heads/main"},
		{"git without variables", "env -i https_proxy=$https_proxy git ls-remote " + at + "/x", "refs/heads/main"},
		{"Python without variables", "env -i https_proxy=$https_proxy python3 -c 'import urllib.request; print(urllib.request.urlopen(\"" + at + "\").read())'", "served"},
		{"openssl", "echo | openssl s_client -proxy ${https_proxy#http://} -connect " + strings.TrimPrefix(at, "https://") + " -servername example.com -verify_return_error 2>&1", "Verify return code: 0 (ok)"},
		{"Python", `python3 -c 'import urllib.request; print(urllib.request.urlopen("` + at + `").read())'`, "served"},
		{"npm", "npm view left version --registry " + at + "/ --no-update-notifier", "1.2.3"},
		{"Go", "HOME=/tmp GOTOOLCHAIN=local GOFLAGS=-mod=mod GONOSUMDB=* GONOSUMCHECK=1 GOPROXY=" + at + " " + goroot + "/bin/go list -m -versions example.com/m", "example.com/m v1.2.3"},
		{"Go without variables", "env -i HOME=/tmp https_proxy=$https_proxy GOTOOLCHAIN=local GOFLAGS=-mod=mod GONOSUMDB=* GOPROXY=" + at + " " + goroot + "/bin/go list -m -versions example.com/m", "example.com/m v1.2.3"},
		{"cargo", "HOME=/tmp " + sysroot + "/bin/cargo search left --index sparse+" + at + "/index/", `left = "1.2.3"`},
		{"pip", "PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip index versions left --index-url " + at + "/simple 2>&1", "1.2.3"},
	} {
		if got := run(t, s, c.command); !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.program, got.Code, got.stdout, got.stderr)
		}
	}
	authority := func(s *sandbox.Sandbox) string { return must(t, s, "tail -c 400 /dev/authorities.pem") }
	if authority(s) == authority(open(t, o, sandbox.Rights{Network: []http.Rule{rule}, Intercept: true})) {
		t.Error("two sandboxes have one authority")
	}
	if got := must(t, open(t, o, sandbox.Rights{Network: []http.Rule{{Host: rule.Host, Port: rule.Port}}}), "ls /dev/authorities.pem 2>&1 || true; echo $SSL_CERT_FILE; env -i https_proxy=$https_proxy curl -sS "+at+" 2>&1 || true"); !strings.Contains(got, "No such file") || !strings.Contains(got, "curl: (60)") {
		t.Errorf("without interception: %s", got)
	}
}
