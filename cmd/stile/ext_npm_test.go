package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// publish is an npm registry that has version 1.0.0 of one package.
func publish(t *testing.T, name, code string) *httptest.Server {
	t.Helper()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for _, file := range [][2]string{{"package.json", `{"name":"` + name + `","version":"1.0.0","type":"module"}`}, {"index.js", code}} {
		text := file[1]
		if err := w.WriteHeader(&tar.Header{Name: "package/" + file[0], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(archive.Bytes())
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/" + name:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "time": map[string]string{"1.0.0": "2020-01-01T00:00:00Z"},
				"versions": map[string]any{"1.0.0": map[string]any{"name": name, "version": "1.0.0", "dist": map[string]string{
					"tarball": server.URL + "/" + name + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				}}},
			})
		case "/" + name + ".tgz":
			_, _ = w.Write(archive.Bytes())
		default:
			http.NotFound(w, r)
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Facts about packages are reported when they arrive, and wherever a person decides. Their lock file can be read.
func TestPackages(t *testing.T) {
	h := newHome(t)
	h.stile("ext", "add", h.extension("uses", "0.9.0", "return 1")) // which needs the engine, from the real registry
	registry := publish(t, "zodd", "export default 1")
	h.env = append(h.env, "npm_config_registry="+registry.URL+"/")
	dir := h.extension("uses", "1.0.0", `return (await import("zodd")).default`)
	c := h.command("ext", "add", dir)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if want := "stile: warning: package zodd 1.0.0: Its name is close to that of the popular package zod.\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("said %q, want %q", stderr.String(), want)
	}
	_, integrity, _ := strings.Cut(h.stile("ext", "show", "2", "--json"), `"integrity": "`)
	integrity, _, _ = strings.Cut(integrity, `"`)
	if !strings.HasPrefix(integrity, "sha512-") {
		t.Fatalf("the integrity is %q", integrity)
	}
	texts := map[string]string{"terminal": h.stile("ext", "show", "2"), "page": h.page("uses"), "question": h.question("uses", `return (await import("zodd")).default`)}
	for where, text := range texts {
		for _, want := range []string{
			"only compute, with code of 1 npm package", "Decide whether you trust its packages", "It names no licence.",
			"package zodd 1.0.0: Its name is close to that of the popular package zod.", "The code imports it, and the manifest's dependencies do not name it.",
			"zodd", "1.0.0", "no licence named", integrity, "new package: zodd 1.0.0",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s does not say %q:\n%s", where, want, text)
			}
		}
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal([]byte(h.stile("ext", "source", "2", "package-lock.json")), &lock); err != nil || lock.Packages["node_modules/zodd"].Version != "1.0.0" {
		t.Errorf("the lockfile has %v, %v", lock, err)
	}
	if err := h.command("ext", "source", "1", "package-lock.json").Run(); err == nil {
		t.Error("an extension without packages has a lockfile")
	}
}

// page is the page on which a person decides about the only pending request.
func (h *home) page(name string) string {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "operator")
	_, address, stderr := h.serve("--listen", "127.0.0.1:0", "--operator-token-file", file)
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	token, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Jar: jar}
	get := func(method, url, form string) (at *neturl.URL, text string) {
		h.t.Helper()
		r, err := http.NewRequestWithContext(h.ctx, method, url, strings.NewReader(form))
		if err != nil {
			h.t.Fatal(err)
		}
		if form != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		response, err := c.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			h.t.Fatal(response.Status, err)
		}
		return response.Request.URL, html.UnescapeString(string(body))
	}
	overview, text := get(http.MethodPost, "http://"+address+"/sign-in", "token="+strings.TrimSpace(string(token)))
	_, id, _ := strings.Cut(text, `<a href="requests/`)
	id, _, _ = strings.Cut(id, `"`)
	_, text = get(http.MethodGet, overview.JoinPath("requests", id).String(), "")
	if !strings.Contains(text, name+" 1.0.0") {
		h.t.Fatalf("no page of %s: %s", name, text)
	}
	return text
}

// question is the question that an agent's client asks its person when the agent rewrites an extension with this code.
func (h *home) question(name, body string) (asked string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "policy.json"), []byte(`{"persons": ["editor"]}`), 0o600); err != nil {
		h.t.Fatal(err)
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked = r.Params.Message
		return &sdk.ElicitResult{Action: "cancel"}, nil
	}})
	session, err := c.Connect(h.ctx, &sdk.CommandTransport{Command: h.command("mcp")}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = session.Close() }() // only the question matters
	for _, version := range [][2]string{{"0.9.0", "return 1"}, {"1.0.0", body}} {
		dir := h.extension(name, version[0], version[1])
		draft := map[string]string{}
		for key, file := range map[string]string{"manifest": "manifest.json", "source": "tool.ts"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				h.t.Fatal(err)
			}
			draft[key] = string(text)
		}
		if r, err := session.CallTool(h.ctx, &sdk.CallToolParams{Name: "extension_write", Arguments: draft}); err != nil || r.IsError {
			h.t.Fatal(err, r)
		}
	}
	return asked
}
