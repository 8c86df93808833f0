//go:build long

package guests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
)

// rustWASI builds testdata/wasi/rust, whose code uses the standard library and the crate wasi, and nothing of Stile.
func rustWASI(t *testing.T) []byte {
	t.Helper()
	const triple = "wasm32-wasip2"
	root, err := exec.CommandContext(t.Context(), "rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Skipf("Rust is not installed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", triple)); err != nil {
		t.Skipf("Rust cannot build for %s; to install it: rustup target add %[1]s", triple)
	}
	target := t.TempDir()
	cargo := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--locked", "--release", "--target", triple, "--target-dir", target)
	cargo.Dir = filepath.Join("testdata", "wasi", "rust")
	if output, err := cargo.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", err, output)
	}
	wasm, err := os.ReadFile(filepath.Join(target, triple, "release", "files.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// An unmodified program of Rust uses most of std::fs.
func TestLongFilesRust(t *testing.T) {
	l := newLanguages(t)
	c := l.load(t, rustWASI(t))
	for name, place := range filePlaces(t) {
		testFiles(t, name, c, place, func(path string) string { return fmt.Sprintf("%q", path) })
	}
}

// lastRecording keeps the recording of the last call.
type lastRecording struct{ *host.Recording }

// Record implements [host.Recorder].
func (r *lastRecording) Record(_ context.Context, recording *host.Recording) { r.Recording = recording }

// A client of http on Rust's crate wasi speaks to a server of this machine, within the rules of a binding.
func TestLongWebRust(t *testing.T) {
	l := newLanguages(t)
	c := l.load(t, rustWASI(t))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/open/large":
			for range 30 {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				w.(http.Flusher).Flush()
			}
		case "/open/redirect":
			http.Redirect(w, r, "/closed", http.StatusFound)
		default:
			body, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s %d %v", r.Method, r.URL, len(body), err)
		}
	}))
	defer site.Close()
	port := site.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	env := host.Env{"api": httpcap.Allow(httpcap.Rule{Scheme: "http", Host: "127.0.0.1", Port: port, Methods: []string{"GET", "POST"}, Path: "/open/**"})}
	const plain = "text/plain; charset=utf-8 "
	for _, test := range []struct{ input, want string }{
		{site.URL + "/open/a?b=c", "200 " + plain + "GET /open/a?b=c 0 <nil>"},
		{site.URL + "/open/a " + strings.Repeat("y", 200_000), "200 " + plain + "POST /open/a 200000 <nil>"},
		{site.URL + "/open/large", "200 " + plain + "3000000 bytes"},
		{site.URL + "/open/a " + strings.Repeat("y", 300_000), "LastOperationFailed"},
		{site.URL + "/open/redirect", "302 text/html; charset=utf-8 <a href=\"/closed\">Found</a>.\n\n"},
		{site.URL + "/closed", "HttpRequestDenied; denied: GET " + site.URL + "/closed through \"api\": "},
		{"http://127.0.0.1:1/open/a", "HttpRequestDenied"},
	} {
		var recorded lastRecording
		input, err := json.Marshal(test.input)
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Do(t.Context(), host.Request{Tool: "get", Input: input, Env: env, WASI: abi.WASI{HTTP: "api"}, Recorder: &recorded})
		var got string
		if err != nil {
			got = err.Error()
		} else if failed := json.Unmarshal(result.Output, &got); failed != nil {
			t.Fatal(failed)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%.100s: %s, want %s", test.input, got, test.want)
		}
		if again, err := c.Replay(t.Context(), recorded.Recording, host.ReplayOptions{}); err != nil || !again.Same && !again.Cut {
			t.Errorf("%.100s: the replay differs: %v, %+v", test.input, err, again)
		}
	}
}
