package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
)

// hostileRegistry serves what an attacker publishes, to the real npm client.
type hostileRegistry struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	packages map[string]map[string]version // by name and version
	asked    []string
}

// version is one version of a package.
type version struct {
	fields  map[string]any          // of its package.json
	files   []tar.Header            // with their content in PAXRecords["content"]
	age     time.Duration           // default a year; below 0 the registry does not say
	sign    string                  // "good" or "bad"
	damage  func(tar []byte) []byte // makes the archive of the tar file; default gzip
	tarball func() string           // what the registry says each time; default its own URL
	archive []byte                  // made by publish
}

func newRegistry(t *testing.T) *hostileRegistry {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &hostileRegistry{key: key, packages: map[string]map[string]version{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), PAXRecords: map[string]string{"content": content}}
}

func (r *hostileRegistry) publish(t *testing.T, name, number string, v version) {
	t.Helper()
	fields := map[string]any{"name": name, "version": number, "license": "MIT"}
	maps.Copy(fields, v.fields)
	manifest, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range append([]tar.Header{file("package/package.json", string(manifest))}, v.files...) {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v.damage == nil {
		v.damage = zipped
	}
	v.archive, v.fields = v.damage(archive.Bytes()), fields
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packages[name] == nil {
		r.packages[name] = map[string]version{}
	}
	r.packages[name][number] = v
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // of a buffer, never fails
	_ = z.Close()
	return b.Bytes()
}

func integrity(archive []byte) string {
	sum := sha512.Sum512(archive)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP implements http.Handler: /<name> and /<name>/-/<version>.tgz.
func (r *hostileRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.Method+" "+q.URL.Path)
	name, number, isArchive := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/-/")
	versions, ok := r.packages[name]
	if !ok || q.Method != http.MethodGet {
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
		return
	}
	if isArchive {
		_, _ = w.Write(versions[strings.TrimSuffix(number, ".tgz")].archive)
		return
	}
	document := map[string]any{"name": name, "versions": map[string]any{}, "time": map[string]string{}}
	latest := ""
	for number, v := range versions {
		latest = max(latest, number)
		sum := integrity(v.archive)
		dist := map[string]any{"tarball": "http://" + q.Host + "/" + name + "/-/" + number + ".tgz", "integrity": sum}
		if v.tarball != nil {
			dist["tarball"] = v.tarball()
		}
		if v.sign != "" {
			signed := name + "@" + number + ":" + sum
			if v.sign == "bad" {
				signed = name + "@" + number + ":" + someDigest
			}
			digest := sha256.Sum256([]byte(signed))
			sig, _ := ecdsa.SignASN1(rand.Reader, r.key, digest[:])
			dist["signatures"] = []map[string]string{{"keyid": "SHA256:test", "sig": base64.StdEncoding.EncodeToString(sig)}}
		}
		fields := maps.Clone(v.fields)
		fields["dist"] = dist
		if served, ok := fields["served"].(map[string]any); ok { // what the registry says and the archive does not
			maps.Copy(fields, served)
		}
		document["versions"].(map[string]any)[number] = fields
		age := v.age
		if age == 0 {
			age = 365 * 24 * time.Hour
		}
		if age > 0 {
			document["time"].(map[string]string)[number] = time.Now().Add(-age).UTC().Format(time.RFC3339)
		}
	}
	document["dist-tags"] = map[string]string{"latest": latest}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// userOf are the settings of a user of a registry.
func userOf(registry, more string) *userSettings {
	return &userSettings{"registry=" + registry + "/\n" + more, map[string]string{"": registry + "/"}}
}

// client uses the registry, with an npm cache and a temporary folder of its own.
func (r *hostileRegistry) client(t *testing.T, o Options) *Client {
	t.Helper()
	o.CacheDir, o.KeyDir = filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "home")
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	c.user = userOf(r.URL, "fetch-retries=0\n")
	c.keys["SHA256:test"] = registryKey{PublicKey: &r.key.PublicKey}
	return c
}

func resolve(t *testing.T, c *Client, dependencies map[string]string) (*Resolution, error) {
	t.Helper()
	return c.Resolve(t.Context(), Request{Dependencies: dependencies})
}

func problems(t *testing.T, err error) string {
	t.Helper()
	bad, ok := errors.AsType[*toolchain.BuildError](err)
	if !ok {
		t.Fatalf("got %T %v, want problems", err, err)
	}
	for _, p := range bad.Problems {
		if p.Fix == "" || strings.ContainsAny(p.Text, "\x1b\u202e") {
			t.Errorf("problem %+v", p)
		}
	}
	return bad.Error()
}

// One resolution of packages that try everything an archive and a package.json can try.
func TestHostilePackages(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	outside := t.TempDir()
	marker := filepath.Join(outside, "marker")
	run := "echo ran > " + marker
	scripts := map[string]any{}
	for _, event := range []string{"preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare", "dependencies"} {
		scripts[event] = run
	}
	r.publish(t, "scripted", "1.0.0", version{fields: map[string]any{"scripts": scripts, "hasInstallScript": true, "bin": map[string]string{"npm": "x.js", "node": "x.js"}, "gypfile": true}, files: []tar.Header{
		file("package/x.js", "module.exports = 1"), file("package/binding.gyp", "{}"), file("package/.npmrc", "ignore-scripts=false"), file("package/x.d.ts", "export {}"),
		file("package/LICENSE.md", "free"), file("package/x.js.map", "{}"),
	}})
	r.publish(t, "climber", "1.0.0", version{files: []tar.Header{
		file("package/../../../../../../../.."+marker, "climbed"), file(marker, "absolute"), file("package/../victim/index.js", "stolen"), file("../victim/index.js", "stolen"),
		{Name: "package/link", Typeflag: tar.TypeSymlink, Linkname: outside, Mode: 0o777},
		file("package/link/marker", "through a link"),
		{Name: "package/passwd", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd", Mode: 0o777},
		{Name: "package/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd", Mode: 0o777},
		{Name: "package/hard2", Typeflag: tar.TypeLink, Linkname: "package/package.json", Mode: 0o777},
		{Name: "package/fifo", Typeflag: tar.TypeFifo, Mode: 0o777},
		file("package/index.js", "module.exports = 2"),
	}})
	r.publish(t, "victim", "1.0.0", version{files: []tar.Header{file("package/index.js", "module.exports = 'own'")}})
	r.publish(t, "liar", "1.0.0", version{fields: map[string]any{
		"served": map[string]any{"name": "liar", "version": "1.0.0", "license": "Proprietary", "deprecated": "use\nanother\x1b[31m"}, "name": "lodash", "version": "9.9.9",
	}, files: []tar.Header{file("package/index.js", "")}})
	r.publish(t, "optional", "1.0.0", version{fields: map[string]any{"optionalDependencies": map[string]string{"native": "1.0.0"}}, files: []tar.Header{file("package/index.js", "")}})
	r.publish(t, "native", "1.0.0", version{fields: map[string]any{"scripts": scripts}, files: []tar.Header{file("package/index.js", "")}})

	c := r.client(t, Options{})
	res, err := resolve(t, c, map[string]string{"scripted": "*", "climber": "1", "victim": "^1.0.0", "liar": "1.x", "optional": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("something was written outside: %v %v", left, err)
	}
	files := map[string]string{}
	if err := fs.WalkDir(res.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(res.FS, name)
		files[name] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := files["node_modules/victim/index.js"]; got != "module.exports = 'own'" {
		t.Errorf("the victim's file is %q", got)
	}
	for name, content := range files {
		if strings.Contains(content, "root:") || strings.Contains(name, ".bin") || strings.Contains(name, "native") || strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".map") {
			t.Errorf("%s is there: %.40q", name, content)
		}
	}
	if files["node_modules/scripted/LICENSE.md"] != "free" || files["node_modules/climber/index.js"] == "" {
		t.Errorf("files are missing: %v", sortedKeys(files))
	}
	if strings.Contains(string(res.Lock), r.URL) || strings.Contains(string(res.Lock), "resolved") {
		t.Errorf("the lock names the registry: %s", res.Lock)
	}
	said := map[string]string{}
	for _, p := range res.Packages {
		said[p.Name] = strings.Join(p.Warnings, " ")
		if p.Version != "1.0.0" || !p.Direct || p.Signature != SignatureNotOffered || p.Published.IsZero() || p.Size == 0 || !isSHA512(p.Integrity) {
			t.Errorf("%+v", p)
		}
	}
	if len(said) != 5 || !strings.Contains(said["scripted"], "script") || !strings.Contains(said["liar"], `calls it "lodash@9.9.9"`) || !strings.Contains(said["liar"], `use another\x1b`) {
		t.Errorf("said %q", said)
	}

	// The same lock gives the same files, with the registry and npm gone.
	offline, err := New(Options{CacheDir: c.o.CacheDir, KeyDir: c.o.KeyDir, NPM: "no-such-npm"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = offline.Close() }()
	offline.user = c.user // as npm said when it was there
	again, err := offline.Resolve(t.Context(), Request{Dependencies: map[string]string{"scripted": "*", "climber": "1", "victim": "^1.0.0", "liar": "1.x", "optional": "1"}, Lock: res.Lock})
	if err != nil {
		t.Fatal(err)
	}
	if string(again.Lock) != string(res.Lock) || len(again.Packages) != len(res.Packages) {
		t.Error("another lock came back")
	}
	for name, content := range files {
		if got, err := fs.ReadFile(again.FS, name); err != nil || string(got) != content {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}

// Each package asks for something outside the registry, differs from what was locked, or is too large.
func TestRefusedPackages(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	index := []tar.Header{file("package/index.js", "module.exports = 1")}
	for name, spec := range map[string]string{
		"wants-git": "git+ssh://git@127.0.0.1:1/q.git", "wants-url": r.URL + "/evil.tgz", "wants-file": "file:../q", "wants-missing": "^9.9.9",
	} {
		r.publish(t, name, "1.0.0", version{fields: map[string]any{"dependencies": map[string]string{"q": spec}}, files: index})
	}
	r.publish(t, "q", "1.0.0", version{files: index})
	r.publish(t, "bundles", "1.0.0", version{
		fields: map[string]any{"dependencies": map[string]string{"q": "*"}, "bundleDependencies": []string{"q"}},
		files:  append(index, file("package/node_modules/q/package.json", `{"name":"q","version":"1.0.0"}`), file("package/node_modules/q/index.js", "evil")),
	})
	r.publish(t, "smuggles", "1.0.0", version{files: append(index, file(`package/a\..\..\q\index.js`, "evil"))})
	r.publish(t, "fresh", "1.0.0", version{files: index, age: time.Hour})
	r.publish(t, "timeless", "1.0.0", version{files: index, age: -1})
	r.publish(t, "forged", "1.0.0", version{files: index, sign: "bad"})
	r.publish(t, "many-files", "1.0.0", version{files: append(index, many("package/f", 60)...)})
	r.publish(t, "big", "1.0.0", version{files: append(index, file("package/big.js", strings.Repeat("x", 70<<10)))})
	r.publish(t, "long-manifest", "1.0.0", version{files: append(index, file("package/package.json", `{"name":"long-manifest","version":"1.0.0","license":[`+strings.Repeat("[],", 400<<10)+`[]]}`))})
	for i := range 6 {
		r.publish(t, fmt.Sprintf("chain%d", i), "1.0.0", version{fields: map[string]any{"dependencies": map[string]string{fmt.Sprintf("chain%d", i+1): "*"}}, files: index})
	}
	r.publish(t, "chain6", "1.0.0", version{files: index})

	c := r.client(t, Options{MaxFiles: 50, MaxBytes: 64 << 10, MaxPackages: 5})
	// Older versions of npm fetch what a URL names before it is refused.
	refuses, err := exec.CommandContext(t.Context(), "npm", "config", "get", "allow-remote").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range r.asked {
			if strings.Contains(path, "evil") && strings.HasPrefix(string(refuses), "all") {
				t.Errorf("asked for %s", path)
			}
		}
	})
	for name, want := range map[string]string{
		"wants-git": "registry", "wants-url": "registry", "wants-file": "registry",
		"wants-missing": "q@^9.9.9", "nowhere": `"nowhere" is not in the registry`, "bundles": "brings", "fresh": "old enough", "timeless": "does not say when",
		"many-files": "more than 50 files", "big": "more than 64 KiB", "chain0": "7 packages",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := resolve(t, c, map[string]string{name: "*"})
			if err == nil {
				t.Fatal("resolved")
			}
			if got := problems(t, err); !strings.Contains(got, want) {
				t.Errorf("got %s, want %q", got, want)
			}
		})
	}
	t.Run("long-manifest", func(t *testing.T) {
		t.Parallel()
		_, err := resolve(t, r.client(t, Options{}), map[string]string{"long-manifest": "*"})
		if err == nil {
			t.Fatal("resolved")
		}
		if got := problems(t, err); !strings.Contains(got, "the package.json of long-manifest@1.0.0 has more than 1024 KiB") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("forged", func(t *testing.T) {
		t.Parallel()
		_, err := resolve(t, c, map[string]string{"forged": "*"})
		if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(bad.Problem, "signature of forged@1.0.0") || bad.Remedy == "" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("smuggles", func(t *testing.T) {
		t.Parallel()
		res, err := resolve(t, c, map[string]string{"smuggles": "*", "q": "*"})
		if err != nil {
			problems(t, err)
			return
		}
		if got, _ := fs.ReadFile(res.FS, "node_modules/q/index.js"); string(got) != "module.exports = 1" {
			t.Errorf("a file was replaced by %q", got)
		}
	})
	t.Run("tampered", func(t *testing.T) {
		t.Parallel()
		res, err := resolve(t, c, map[string]string{"q": "*"})
		if err != nil {
			t.Fatal(err)
		}
		lock := []byte(strings.Replace(string(res.Lock), res.Packages[0].Integrity, someDigest, 1))
		_, err = c.Resolve(t.Context(), Request{Dependencies: map[string]string{"q": "*"}, Lock: lock})
		if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(bad.Problem, "digest of q@1.0.0 differs") || bad.Remedy == "" || strings.Contains(err.Error(), "exit status") {
			t.Errorf("got %v", err)
		}
		lock = []byte(strings.Replace(string(res.Lock), `"version": "1.0.0"`, `"version": "1.0.1"`, 1))
		if _, err = c.Resolve(t.Context(), Request{Dependencies: map[string]string{"q": "*"}, Lock: lock}); err == nil {
			t.Error("a version that there is not was restored")
		}
	})
}

// An archive whose bytes differ from the registry's promise is fetched once and refused, with an error for the author. The user's
// settings make npm retry for long.
func TestOtherBytes(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	for name, path := range map[string]string{"q": "/q/-/1.0.0.tgz", "@scope/p": "/@scope/p/-/1.0.0.tgz"} {
		r.publish(t, name, "1.0.0", version{files: []tar.Header{file("package/index.js", "1")}, fields: map[string]any{
			"served": map[string]any{"dist": map[string]any{"tarball": r.URL + path, "integrity": someDigest}},
		}})
		c := r.client(t, Options{})
		c.user = userOf(r.URL, "")
		r.mu.Lock()
		r.asked = nil
		r.mu.Unlock()
		_, err := resolve(t, c, map[string]string{name: "*"})
		got := problems(t, err)
		if !strings.Contains(got, "the registry's archive of "+name+"@1.0.0 does not match the digest that the registry promises") || strings.Contains(got, "exit status") || strings.Contains(got, "lockfile") {
			t.Errorf("got %s", got)
		}
		r.mu.Lock()
		asked := strings.Count(strings.Join(r.asked, "\n"), "tgz")
		r.mu.Unlock()
		if asked != 1 {
			t.Errorf("it was asked for %d times", asked)
		}
	}
}

// TestArchivesOfOtherHosts has a registry name other hosts for its archives, which npm would ask from inside the operator's network.
func TestArchivesOfOtherHosts(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	var mu sync.Mutex
	var asked []string
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q.URL.Path)
	}))
	t.Cleanup(inside.Close)
	t.Cleanup(func() {
		if len(asked) > 0 {
			t.Errorf("another host was asked for %q", asked)
		}
	})
	host, own := strings.TrimPrefix(inside.URL, "http://"), strings.TrimPrefix(r.URL, "http://")
	index := []tar.Header{file("package/index.js", "1")}
	bundles := map[string]any{"dependencies": map[string]string{"q": "*"}, "bundleDependencies": []string{"q"}}
	c := r.client(t, Options{})
	for _, test := range []struct {
		name, tarball string
		fields        map[string]any
		want          string // a part of the error; empty where it resolves, or is not to
	}{
		{"another-host", inside.URL + "/a", nil, ""},
		{"another-name", "http://localhost:" + host[strings.Index(host, ":")+1:] + "/a", nil, ""},
		{"a-user", "http://" + own + "@" + host + "/a", nil, ""},
		{"a-backslash", "http://" + own + `\@` + host + "/a", nil, "no URL"},
		{"a-backslash-after", "http://" + host + `\@` + own + "/a", nil, "no URL"},
		{"two-slashes", "http://" + own + "//" + host + "/a", nil, ""},
		{"bundles", inside.URL + "/a", bundles, ""},
		{"shrinks", inside.URL + "/a", map[string]any{"_hasShrinkwrap": true}, ""},
		{"asks", "", map[string]any{"dependencies": map[string]string{"q": inside.URL + "/q.tgz"}}, ""},
	} {
		r.publish(t, test.name, "1.0.0", version{files: index, fields: test.fields, tarball: func() string { return test.tarball }})
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := resolve(t, c, map[string]string{test.name: "*"})
			bad, ok := errors.AsType[*toolchain.SetupError](err)
			if err == nil || test.want != "" && (!ok || !strings.Contains(bad.Problem, test.want) || bad.Remedy == "") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("another answer each time", func(t *testing.T) {
		t.Parallel()
		times := 0 // with the registry's lock
		r.publish(t, "turns", "1.0.0", version{files: index, tarball: func() string {
			if times++; times > 2 { // for the versions, and for the check
				return inside.URL + "/a"
			}
			return r.URL + "/turns/-/1.0.0.tgz"
		}})
		if _, err := resolve(t, r.client(t, Options{}), map[string]string{"turns": "*"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a mirror", func(t *testing.T) {
		t.Parallel()
		r.publish(t, "mirrored", "1.0.0", version{files: index, tarball: func() string { return "https://mirrored.example/mirrored/-/1.0.0.tgz" }})
		if _, err := resolve(t, c, map[string]string{"mirrored": "*"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a scope", func(t *testing.T) {
		t.Parallel()
		scoped := newRegistry(t)
		scoped.publish(t, "@scope/p", "1.0.0", version{files: index, fields: map[string]any{"dependencies": map[string]string{"other": "*"}}})
		r.publish(t, "other", "1.0.0", version{files: index})
		c := r.client(t, Options{})
		c.user = userOf(r.URL, "@scope:registry="+scoped.URL+"/\n")
		c.user.registries["@scope"] = scoped.URL + "/"
		res, err := resolve(t, c, map[string]string{"@scope/p": "*"})
		if err != nil || len(res.Packages) != 2 || strings.Contains(string(res.Lock), "resolved") {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

func TestTarball(t *testing.T) {
	const mirror, public = "https://mirror.example/npm/", "https://public.example/"
	for _, c := range []struct{ registry, archive, want string }{
		{public, "https://public.example/p/-/p.tgz", "https://public.example/p/-/p.tgz"},
		{public, "http://public.example/p/-/p.tgz", "https://public.example/p/-/p.tgz"},
		{public, "https://other.example/p.tgz", "https://public.example/p.tgz"},
		{mirror, "https://public.example/@a%2fb/-/b.tgz?x=1", "https://mirror.example/npm/@a%2fb/-/b.tgz?x=1"},
		{mirror, "https://public.example/npm/p.tgz", "https://mirror.example/npm/p.tgz"},
		{mirror, "http://public.example//evil.example/p.tgz", "https://mirror.example/npm/evil.example/p.tgz"},
		{mirror, "http://u:p@mirror.example/npm/p.tgz#f", "https://mirror.example/npm/p.tgz"},
		{mirror, "https://mirror.example/files/p.tgz", "https://mirror.example/files/p.tgz"},
		{mirror, "https://mirror.example:444/files/p.tgz", "https://mirror.example/npm/files/p.tgz"},
		{mirror, "https://mirror.example.evil.example/npm/p.tgz", "https://mirror.example/npm/p.tgz"},
		{"https://mirror.example:443/npm/", "https://Mirror.Example/files/p.tgz", "https://mirror.example:443/files/p.tgz"},
		{mirror, "//mirror.example/npm/p.tgz", ""},
		{mirror, "file:///etc/passwd", ""},
		{mirror, "git+ssh://git@mirror.example/q.git", ""},
		{mirror, "a.tgz", ""},
		{mirror, "", ""},
		{mirror, "http:mirror.example/a", ""},
		{"", "https://mirror.example/npm/p.tgz", ""},
		{"/", "/p.tgz", ""},
	} {
		if got, err := tarball(c.registry, c.archive); got != c.want || (err == nil) != (got != "") {
			t.Errorf("%s of %s: got %q, %v", c.archive, c.registry, got, err)
		}
	}
}

// A registry accepts connections and never answers. The client gives up, and the error says at which step.
func TestSilentRegistry(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	r.publish(t, "q", "1.0.0", version{files: []tar.Header{file("package/index.js", "1")}})
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for _, test := range []struct{ silent, want string }{
		{"/q", "npm was still asking the registry which versions there are after 1s"},
		{".tgz", "npm was still fetching packages from the registry after 1s"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if strings.HasSuffix(q.URL.Path, test.silent) {
				cancel(errTimeout)
				<-release
				return
			}
			r.ServeHTTP(w, q)
		}))
		t.Cleanup(server.CloseClientConnections)
		c := r.client(t, Options{Timeout: time.Second})
		c.user = userOf(server.URL, "")
		_, err := c.resolve(ctx, Request{Dependencies: map[string]string{"q": "*"}})
		if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(bad.Problem, test.want) || bad.Remedy == "" {
			t.Errorf("got %v, want %s", err, test.want)
		}
		if _, err = resolve(t, c, map[string]string{"q": "*"}); err == nil || !strings.Contains(err.Error(), "after 1s, which is the limit") {
			t.Errorf("got %v", err)
		}
	}
}

// TestResolutionsTakeTurns has one agent ask for many packages at once, of a registry that does not answer. Another agent's resolution is
// next when one of them ends.
func TestResolutionsTakeTurns(t *testing.T) {
	t.Parallel()
	const many = 10
	r := newRegistry(t)
	for _, name := range []string{"greedy", "other"} {
		r.publish(t, name, "1.0.0", version{files: []tar.Header{file("package/index.js", "1")}})
	}
	release, asked := make(chan struct{}), make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(q.URL.Path, "greedy") {
			<-release
		} else {
			asked <- struct{}{}
		}
		r.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	c := r.client(t, Options{})
	c.user = userOf(server.URL, "")
	greedy := turns.For(t.Context(), "agent:greedy")
	running, end := context.WithCancel(greedy)
	queued, leave := context.WithCancel(greedy)
	var ended sync.WaitGroup
	resolved := func(ctx context.Context, name string, want error) {
		ended.Go(func() {
			if _, err := c.Resolve(ctx, Request{Dependencies: map[string]string{name: "*"}}); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	waiting := func(n int) {
		for c.running.Waiting() != n {
			runtime.Gosched()
		}
	}
	places := max(1, runtime.GOMAXPROCS(0)/2)
	for n := range places + 1 { // the last of them waits, so that all places are taken
		resolved(running, "greedy", context.Canceled)
		waiting(n / places)
	}
	for n := range many {
		resolved(queued, "greedy", context.Canceled)
		waiting(n + 2)
	}
	resolved(turns.For(t.Context(), "agent:other"), "other", nil)
	waiting(many + 2)
	end()
	select {
	case <-asked:
	case <-time.After(2 * time.Minute): // it waits for all of them
		t.Error("another of many was next")
	}
	leave()
	ended.Wait()
}

// TestNPMCacheIsBounded fills npm's own cache: it is emptied once nobody uses it.
func TestNPMCacheIsBounded(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	for _, name := range []string{"one", "two"} {
		r.publish(t, name, "1.0.0", version{files: []tar.Header{file("package/index.js", "1")}})
	}
	c := r.client(t, Options{CacheDir: t.TempDir(), KeyDir: t.TempDir()})
	c.maxCache = 1 << 20
	large := filepath.Join(c.o.CacheDir, npmCacheName, "large")
	if err := errors.Join(os.MkdirAll(filepath.Dir(large), 0o700), os.WriteFile(large, make([]byte, 1<<20+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	other := flock.New(filepath.Join(c.o.CacheDir, npmCacheName+".lock"))
	if err := other.RLock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lock, err := c.shareCache(ctx); lock != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("beside another process: %v", err)
	}
	if _, err := os.Stat(large); err != nil {
		t.Errorf("it was emptied while another process used it: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := resolve(t, c, map[string]string{name: "*"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(large); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cache is still too large: %v", err)
	}
}

// TestResolutionsTakeLittle keeps ten resolutions of packages that do not compress, as calls of code do that wait for something.
func TestResolutionsTakeLittle(t *testing.T) {
	r := newRegistry(t)
	noise := make([]byte, 12<<20)
	_, _ = rand.Read(noise) // never fails
	r.publish(t, "large", "1.0.0", version{files: []tar.Header{file("package/index.js", "//"+base64.StdEncoding.EncodeToString(noise))}})
	c := r.client(t, Options{})
	var before, after runtime.MemStats
	var kept []*Resolution
	for i := range 10 {
		res, err := resolve(t, c, map[string]string{"large": "1"})
		if err != nil {
			t.Fatal(err)
		}
		if kept = append(kept, res); i == 0 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 4<<20 {
		t.Errorf("they take %d bytes", took)
	}
	if err := os.RemoveAll(c.o.CacheDir); err != nil { // what was resolved stays valid
		t.Fatal(err)
	}
	for _, res := range kept {
		if f, err := res.FS.Open("node_modules/large/index.js"); err != nil {
			t.Error(err)
		} else if n, err := io.Copy(io.Discard, f); err != nil || n < 16<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// TestMemoryIsBounded has a registry answer with what npm keeps in memory: text that never ends, and millions of small values.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	for name, part := range map[string]string{"text": strings.Repeat(" ", 1<<20), "values": strings.Repeat("[],", 1<<18)} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := fmt.Fprintf(w, `{"name": "p", "versions": {}, "values": [`)
			for n := 0; n < 768 && err == nil; n++ { // without its limit, npm fails with another message, because it makes one string of this
				_, err = io.WriteString(w, part)
			}
		}))
		t.Cleanup(server.Close)
		c := r.client(t, Options{})
		c.user, c.maxMemory = userOf(server.URL, "fetch-retries=0\n"), 320<<20
		_, err := resolve(t, c, map[string]string{"p": "*"})
		if got := problems(t, err); !strings.Contains(got, "npm needs more than 320 MiB of memory") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// npm only warns about files that it cannot write, and leaves them out or short. Such a package is refused. The error names the package
// if its archive is to blame, and otherwise the machine.
func TestUnwrittenFiles(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	index, long := file("package/index.js", ""), strings.Repeat("x", 300)
	for name, v := range map[string]version{
		"file": {files: []tar.Header{index, file("package/"+long+".js", "")}}, "@scope/folder": {files: []tar.Header{index, file("package/"+long+"/a.js", "")}},
		"deep":  {files: []tar.Header{index, file("package/"+strings.Repeat(long[:200]+"/", 25)+"a.js", "")}},
		"blame": {files: []tar.Header{index, file("package/project/node_modules/inner/"+long, "")}, fields: map[string]any{"dependencies": map[string]string{"inner": "*"}}},
		"inner": {files: []tar.Header{index}}, "clash": {files: []tar.Header{file("package/a", ""), file("package/a/b.js", "")}},
		"outer": {files: []tar.Header{index}, fields: map[string]any{"dependencies": map[string]string{"file": "*"}}},
	} {
		r.publish(t, name, "1.0.0", v)
	}
	full := filepath.Join(t.TempDir(), "npm")
	if err := os.WriteFile(full, []byte("#!/bin/sh\necho \"npm warn tar TAR_ENTRY_ERROR ENOSPC: no space left on device, write\" >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(t, r.client(t, Options{NPM: full}), map[string]string{"file": "1"})
	if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(bad.Problem, "npm cannot write (ENOSPC)") {
		t.Errorf("got %v", err)
	}
	c := r.client(t, Options{})
	for name, want := range map[string]string{
		"file": "file@1.0.0: " + longName, "@scope/folder": "@scope/folder@1.0.0: " + longName, "deep": "deep@1.0.0: " + longName, "blame": "blame@1.0.0: " + longName,
		"outer": "file@1.0.0: " + longName, "clash": "clash@1.0.0: a file and a folder of one name",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := resolve(t, c, map[string]string{name: "1"})
			if got := problems(t, err); !strings.Contains(got, "npm cannot unpack the archive of "+want+";") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// If an archive has the right digest and cannot be unpacked, the error blames the package.
func TestBrokenArchives(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	c := r.client(t, Options{MaxBytes: 1 << 20})
	for name, test := range map[string]struct {
		files  []tar.Header
		damage func(tar []byte) []byte
	}{
		"clash":    {files: []tar.Header{file("package/a", ""), file("package/a/b.js", "")}},
		"cut":      {damage: func(tar []byte) []byte { return zipped(tar[:600]) }},
		"checksum": {damage: func(tar []byte) []byte { z := zipped(tar); z[len(z)-8] ^= 1; return z }},
		"bomb":     {files: []tar.Header{file("package/index.js", strings.Repeat("\x00", 32<<20))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.publish(t, name, "1.0.0", version{files: test.files, damage: test.damage})
			_, err := resolve(t, c, map[string]string{name: "*"})
			if err == nil {
				t.Fatal("resolved")
			}
			got := problems(t, err)
			if !strings.Contains(got, "npm cannot unpack the archive of ") && (name != "bomb" || !strings.Contains(got, "iB are allowed")) { // older npm unpacks it
				t.Errorf("got %s", got)
			}
		})
	}
}

// Signatures made before a key expired stay valid; later ones are refused.
func TestExpiredKey(t *testing.T) {
	r := newRegistry(t)
	digest := sha256.Sum256([]byte("p@1.0.0:" + someDigest))
	sig, err := ecdsa.SignASN1(rand.Reader, r.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	c := r.client(t, Options{})
	expires := time.Date(2025, 1, 29, 0, 0, 0, 0, time.UTC)
	c.keys["SHA256:test"] = registryKey{&r.key.PublicKey, expires}
	for published, want := range map[time.Time]string{expires.Add(-time.Second): SignatureVerified, {}: SignatureVerified, expires: "", expires.Add(time.Hour): ""} {
		p := Package{Name: "p", Version: "1.0.0", Integrity: someDigest, Published: published}
		got, err := c.verify(p, []signature{{"SHA256:test", base64.StdEncoding.EncodeToString(sig)}})
		if bad, ok := errors.AsType[*toolchain.SetupError](err); got != want || (want == "") != (ok && strings.Contains(bad.Problem, "expired")) {
			t.Errorf("%s: got %q, %v", published, got, err)
		}
	}
	keys, err := parseKeys(registryKeys)
	if err != nil || len(keys) != 2 || !keys["SHA256:jl3bwswu80PjjokCgh0o2w5c2U4LhQAE57gj9cz1kzA"].expires.Equal(expires) {
		t.Errorf("the keys of the registry: %v %v", keys, err)
	}
}

func many(name string, n int) []tar.Header {
	var all []tar.Header
	for i := range n {
		all = append(all, file(fmt.Sprintf("%s%d.js", name, i), "1"))
	}
	return all
}

// Resolving passes over versions that are too young, keeps locked ones, and reports signatures.
func TestVersions(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	index := []tar.Header{file("package/index.js", "")}
	r.publish(t, "p", "1.0.0", version{files: index, sign: "good"})
	r.publish(t, "p", "1.1.0", version{files: index, sign: "good", age: 100 * time.Hour})
	r.publish(t, "p", "1.2.0", version{files: index, sign: "good", age: 10 * time.Hour})
	r.publish(t, "q", "1.0.0", version{files: index})
	c := r.client(t, Options{})
	want := func(what string, request Request, versions string) *Resolution {
		t.Helper()
		res, err := c.Resolve(t.Context(), request)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, p := range res.Packages {
			got = append(got, p.Name+"@"+p.Version+" "+p.Signature)
		}
		if strings.Join(got, ", ") != versions {
			t.Errorf("%s: got %q, want %q", what, got, versions)
		}
		return res
	}
	old := want("an old one", Request{Dependencies: map[string]string{"p": "1.0.x"}}, "p@1.0.0 verified")
	want("the newest that is old enough", Request{Imports: []string{"p/sub"}}, "p@1.1.0 verified")
	fresh := want("the newest of all", Request{Imports: []string{"p"}, AllowFresh: true}, "p@1.2.0 verified")
	kept := want("what is locked stays", Request{Dependencies: map[string]string{"p": "^1.0.0"}, Lock: old.Lock}, "p@1.0.0 verified")
	both := want("one more", Request{Dependencies: map[string]string{"p": "^1.0.0", "q": "1"}, Lock: kept.Lock}, "p@1.0.0 verified, q@1.0.0 not offered")
	if len(both.Packages[1].Warnings) != 1 || !strings.Contains(both.Packages[1].Warnings[0], "not signed") {
		t.Errorf("warnings %q", both.Packages[1].Warnings)
	}
	_, err := c.Resolve(t.Context(), Request{Imports: []string{"p"}, Lock: fresh.Lock})
	if got := problems(t, err); !strings.Contains(got, "p@1.2.0 was published 10 hours ago; it must be at least 72 hours old") {
		t.Errorf("a lock with a fresh version: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(ctx, Request{Imports: []string{"q"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	r.Close()
	_, err = c.Resolve(t.Context(), Request{Dependencies: map[string]string{"new": "1"}})
	if bad, ok := errors.AsType[*toolchain.SetupError](err); !ok || !strings.Contains(bad.Problem, "did not reach its registry") || bad.Remedy == "" {
		t.Errorf("no registry: %v", err)
	}
}
