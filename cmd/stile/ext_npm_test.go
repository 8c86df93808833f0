package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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

// What is to be known of packages is said when they come in, and what pins them can be read.
func TestPackages(t *testing.T) {
	h := newHome(t)
	h.stile("ext", "add", h.extension("plain", "1.0.0", "return 1")) // which needs the engine, from the real registry
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
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal([]byte(h.stile("ext", "source", "uses", "package-lock.json")), &lock); err != nil || lock.Packages["node_modules/zodd"].Version != "1.0.0" {
		t.Errorf("the lockfile has %v, %v", lock, err)
	}
	if err := h.command("ext", "source", "plain", "package-lock.json").Run(); err == nil {
		t.Error("an extension without packages has a lockfile")
	}
}
