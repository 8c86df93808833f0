package pull_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.uber.org/goleak"

	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/capabilities/sandbox/images/pull"
	"github.com/stilehost/stile/internal/disktest"
	client "github.com/stilehost/stile/internal/registry"
)

// pulling names a reference and a folder, in which a test starts this program to pull.
const pulling = "STILE_TEST_PULL"

func TestMain(m *testing.M) {
	if ref, dir, is := strings.Cut(os.Getenv(pulling), " "); is {
		_, _ = pull.Image(context.Background(), dir, "x", ref, plain)
		return
	}
	goleak.VerifyTestMain(m)
}

// archive is a tar archive of files.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(tree), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostile is a registry as others run it, in memory, whose answers an attacker can replace. attack returns false to let one pass.
type hostile struct {
	http.Handler
	attack func(http.ResponseWriter, *http.Request) bool
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.attack == nil || !h.attack(w, r) {
		h.Handler.ServeHTTP(w, r)
	}
}

func serve(t *testing.T) (*hostile, string) {
	t.Helper()
	h := &hostile{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, strings.TrimPrefix(s.URL, "http://")
}

// publisher puts blobs and manifests into a repository.
type publisher struct {
	t *testing.T
	*client.Client
}

func publish(t *testing.T, host string) publisher {
	t.Helper()
	c, err := client.Connect(host+"/team/tools:1", client.Options{PlainHTTP: true, Metadata: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return publisher{t, c}
}

// put uploads content, and manifests under a tag if there is one.
func (p publisher) put(mediaType string, content any, tag string) v1.Descriptor {
	p.t.Helper()
	data, ok := content.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(content); err != nil {
			p.t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	var err error
	if tag == "" {
		err = p.Push(p.t.Context(), d, bytes.NewReader(data))
	} else {
		err = p.PushReference(p.t.Context(), d, bytes.NewReader(data), tag)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// image uploads an image of layers, which are of a type each.
func (p publisher) image(tag string, layers ...v1.Descriptor) v1.Descriptor {
	p.t.Helper()
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Layers: layers}
	m.SchemaVersion = 2
	m.Config = p.put(v1.MediaTypeImageConfig, v1.Image{Config: v1.ImageConfig{Env: []string{"A=b", "HOME=/evil"}}}, "")
	return p.put(v1.MediaTypeImageManifest, m, tag)
}

func (p publisher) index(tag, mediaType string, all ...v1.Descriptor) v1.Descriptor {
	i := v1.Index{MediaType: mediaType, Manifests: all}
	i.SchemaVersion = 2
	return p.put(mediaType, i, tag)
}

func on(d v1.Descriptor, os, architecture string) v1.Descriptor {
	d.Platform = &v1.Platform{OS: os, Architecture: architecture}
	return d
}

var plain = pull.Impatient(pull.Options{PlainHTTP: true})

// left fails if a pull has left anything but images of these names.
func left(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	have := map[string]bool{".lock": true}
	for _, e := range entries {
		have[e.Name()] = true
	}
	want := map[string]bool{".lock": true}
	for _, n := range names {
		want[n] = true
	}
	if !maps.Equal(have, want) {
		t.Errorf("left: %v", have)
	}
}

// TestPull pulls images of several forms by tag and digest.
func TestPull(t *testing.T) {
	_, host := serve(t)
	p := publish(t, host)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two := archive(t, map[string]string{"bin/a": "one", "bin/gone": "x"}), archive(t, map[string]string{"bin/b": "two", "bin/.wh.gone": ""})
	small := p.image("oci", p.put(v1.MediaTypeImageLayerGzip, zipped(t, one), ""), p.put(v1.MediaTypeImageLayerZstd, z.EncodeAll(two, nil), ""))
	p.image("tar", p.put(v1.MediaTypeImageLayer, one, ""), p.put(v1.MediaTypeImageLayer, two, ""))
	docker := v1.Manifest{MediaType: "application/vnd.docker.distribution.manifest.v2+json"}
	docker.SchemaVersion = 2
	docker.Config = p.put("application/vnd.docker.container.image.v1+json", v1.Image{}, "")
	for _, l := range [][]byte{one, two} {
		docker.Layers = append(docker.Layers, p.put("application/vnd.docker.image.rootfs.diff.tar.gzip", zipped(t, l), ""))
	}
	dockerized := p.put(docker.MediaType, docker, "docker")
	other := p.image("", p.put(v1.MediaTypeImageLayerGzip, zipped(t, archive(t, map[string]string{"other": "x"})), ""))
	inner := p.index("", v1.MediaTypeImageIndex, on(other, "windows", runtime.GOARCH), on(small, "linux", runtime.GOARCH), on(other, "unknown", "unknown"))
	p.index("nested", v1.MediaTypeImageIndex, inner)
	p.index("list", "application/vnd.docker.distribution.manifest.list.v2+json", on(other, "linux", "s390x"), on(dockerized, "linux", runtime.GOARCH))
	dir := t.TempDir()
	for _, ref := range []string{":oci", ":tar", ":docker", ":nested", ":list", "@" + small.Digest.String(), "@" + inner.Digest.String()} {
		var told []images.Progress
		o := plain
		o.Progress = func(p images.Progress) { told = append(told, p) }
		i, err := pull.Image(t.Context(), dir, "x", host+"/team/tools"+ref, o)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		root := filepath.Join(dir, "x", "root")
		a, _ := os.ReadFile(filepath.Join(root, "bin", "a"))
		b, _ := os.ReadFile(filepath.Join(root, "bin", "b"))
		_, gone := os.Stat(filepath.Join(root, "bin", "gone"))
		if string(a)+string(b) != "onetwo" || gone == nil || i.Source != "OCI image "+host+"/team/tools"+ref {
			t.Errorf("%s: %q %q %v %+v", ref, a, b, gone, i)
		}
		if strings.Contains(ref, "oci") || strings.Contains(ref, "nested") {
			if i.Digest != small.Digest.String() || strings.Join(i.Env, " ") != "A=b" {
				t.Errorf("%s: %+v", ref, i)
			}
		}
		if len(told) < 2 || told[1].Layer != 2 || told[1].Layers != 2 || told[1].Bytes == 0 || told[1].Total <= told[1].Bytes {
			t.Errorf("%s: told %+v", ref, told)
		}
	}
	left(t, dir, "x")
	for ref, want := range map[string]error{host + "/team/tools": pull.ErrReference, "team tools:1": pull.ErrReference, host + "/team/tools:none": nil} {
		_, err := pull.Image(t.Context(), dir, "x", ref, plain)
		if known := (*pull.Error)(nil); !errors.As(err, &known) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	left(t, dir, "x")
}

func answer(w http.ResponseWriter, mediaType string, data []byte) bool {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
	return true
}

func get(r *http.Request, what string) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, what)
}

// endless writes until the other side has enough, and counts.
func endless(w io.Writer, n *atomic.Int64) {
	for b := make([]byte, 64<<10); ; {
		m, err := w.Write(b)
		n.Add(int64(m))
		if err != nil {
			return
		}
	}
}

// TestHostileRegistry pulls from a registry that serves something else than it should. Nothing of it stays, and what was there before does.
func TestHostileRegistry(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	noise := make([]byte, 300_000)
	for i, at := range noise {
		noise[i] = byte(i*i*i>>7) ^ at
	}
	layer := zipped(t, archive(t, map[string]string{"a": string(noise)}))
	good := p.put(v1.MediaTypeImageLayerGzip, layer, "")
	image := p.image("1", good)
	evil := zipped(t, archive(t, map[string]string{"evil": "x"}))
	evilLayer := p.put(v1.MediaTypeImageLayerGzip, evil, "")
	other := p.image("", evilLayer)
	otherText, _, err := p.Manifest(t.Context(), other.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*v1.Descriptor)) v1.Descriptor {
		d := good
		change(&d)
		return d
	}
	nested := image
	for range 10 {
		nested = p.index("", v1.MediaTypeImageIndex, nested)
	}
	p.index("nested", v1.MediaTypeImageIndex, nested)
	p.index("itself", v1.MediaTypeImageIndex, v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: nested.Digest, Size: nested.Size + 1})
	p.index("other", v1.MediaTypeImageIndex, on(image, "linux", "s390x"))
	p.index("none", v1.MediaTypeImageIndex)
	p.index("two", v1.MediaTypeImageIndex, image, other)
	p.put(v1.MediaTypeImageIndex, map[string]any{"schemaVersion": 2, "mediaType": v1.MediaTypeImageIndex, "manifests": []any{}, "layers": []any{good}, "config": good}, "both")
	p.image("huge", with(func(d *v1.Descriptor) { d.Size = 1 << 40 }))
	p.image("negative", with(func(d *v1.Descriptor) { d.Size = -1 }))
	p.image("small", with(func(d *v1.Descriptor) { d.Size = 10 }))
	p.image("foreign", with(func(d *v1.Descriptor) { d.MediaType = "application/vnd.evil+exe" }))
	many := make([]v1.Descriptor, 600)
	for i := range many {
		many[i] = good
	}
	p.image("many", many...)
	var tricks bytes.Buffer
	w := tar.NewWriter(&tricks)
	if err := w.WriteHeader(&tar.Header{Name: "../../../../../../../../../../../tmp/stile-out", Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p.image("path-trick", p.put(v1.MediaTypeImageLayer, tricks.Bytes(), ""))

	dir := t.TempDir()
	if _, err := pull.Image(t.Context(), dir, "x", host+"/team/tools:1", plain); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	var broken int
	for _, c := range []struct {
		name, ref string
		attack    func(http.ResponseWriter, *http.Request) bool
		want      string // part of the error; empty for none
	}{
		{"another layer", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, good.Digest.String()) && answer(w, "application/octet-stream", append(bytes.Clone(evil), make([]byte, len(layer)-len(evil))...))
		}, "has another digest"},
		{"a layer that is too short", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, good.Digest.String()) && answer(w, "application/octet-stream", layer[:1000])
		}, "mismatch Content-Length"},
		{"a layer that ends early, always", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, good.Digest.String()) {
				broken++
				w.Header().Set("Content-Length", strconv.Itoa(len(layer)))
				_, _ = w.Write(layer[:1000])
			}
			return get(r, good.Digest.String())
		}, "unexpected EOF"},
		{"a layer without end", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, good.Digest.String()) {
				_, _ = w.Write(layer)
				endless(w, &sent)
			}
			return get(r, good.Digest.String())
		}, "has another digest"},
		{"a manifest without end", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, "/manifests/") {
				w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
				endless(w, &sent)
			}
			return get(r, "/manifests/")
		}, "pull "},
		{"another manifest for a digest", "@" + image.Digest.String(), func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", image.Digest.String())
			return get(r, "/manifests/") && answer(w, v1.MediaTypeImageManifest, otherText)
		}, "digest"},
		{"a manifest that says it is an index", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, v1.MediaTypeImageIndex, otherText)
		}, "is not what its media type"},
		{"an error with escapes", ":1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"\u001b[2Jall is well\u202e\u0000"}]}`))
			return true
		}, "all is well"},
		{"indexes in indexes", ":nested", nil, "without end"},
		{"an index of another size", ":itself", nil, "mismatch"},
		{"no image for this platform", ":other", nil, "no image for linux"},
		{"no image", ":none", nil, "no image for linux"},
		{"two images", ":two", nil, "there are 2 images"},
		{"another kind of digest", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, v1.MediaTypeImageIndex, []byte(`{"manifests":[{"mediaType":"`+v1.MediaTypeImageManifest+`","digest":"md5:d41d8cd98f00b204e9800998ecf8427e","size":2}]}`))
		}, "is no SHA-256"},
		{"a digest that is a path", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, v1.MediaTypeImageIndex, []byte(`{"manifests":[{"mediaType":"`+v1.MediaTypeImageManifest+`","digest":"sha256:../../../etc/passwd","size":2}]}`))
		}, "is no SHA-256"},
		{"an index that is a manifest", ":both", nil, "is not what its media type"},
		{"a layer of a terabyte", ":huge", nil, "the layers have more than"},
		{"a layer of a negative size", ":negative", nil, "the layers have more than"},
		{"a layer of another size", ":small", nil, "mismatch"},
		{"a layer of another type", ":foreign", nil, "is not known"},
		{"600 layers", ":many", nil, "at most 512"},
		{"a path that leads out", ":path-trick", nil, ""},
	} {
		h.attack = c.attack
		name := "bad"
		i, err := pull.Image(t.Context(), dir, name, host+"/team/tools"+c.ref, plain)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", c.name, i, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\x00\u202e") {
			t.Errorf("%s: the error is not printable: %q", c.name, err)
		}
		if strings.HasPrefix(c.name, "a layer that ends early") { // what came of it may help the next pull
			if err := os.RemoveAll(filepath.Join(dir, ".layers")); err != nil {
				t.Error(err)
			}
		}
		if err != nil {
			left(t, dir, "x")
		}
	}
	if _, err := os.Stat("/tmp/stile-out"); err == nil {
		t.Error("a layer has left its folder")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "bad", "root", "tmp", "stile-out")); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were read of what has no end", n)
	}
	if broken > 10 {
		t.Errorf("a broken layer was asked for %d times", broken)
	}
}

// TestContinue has connections that break in the middle of a layer, at registries that can continue and that cannot.
func TestContinue(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	text := strings.Repeat("0123456789abcdef", 20_000)
	layer := archive(t, map[string]string{"a": text})
	good := p.put(v1.MediaTypeImageLayer, layer, "")
	p.image("1", good)
	for _, ranges := range []bool{true, false} {
		asked := 0
		h.attack = func(w http.ResponseWriter, r *http.Request) bool {
			if !get(r, good.Digest.String()) {
				return false
			}
			asked++
			from := 0
			if ranges {
				w.Header().Set("Accept-Ranges", "bytes")
				if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(layer)-1, len(layer)))
					w.Header().Set("Content-Length", strconv.Itoa(len(layer)-from))
					w.WriteHeader(http.StatusPartialContent)
				}
			}
			if from == 0 {
				w.Header().Set("Content-Length", strconv.Itoa(len(layer)))
			}
			to := len(layer)
			if asked < 4 {
				to = min(len(layer), 100_000*asked)
			}
			_, _ = w.Write(layer[from:max(from, to)])
			return true // a connection with less than it stated breaks
		}
		dir := t.TempDir()
		if _, err := pull.Image(t.Context(), dir, "x", host+"/team/tools:1", plain); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "x", "root", "a")); err != nil || string(got) != text {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if asked < 3 {
			t.Errorf("asked %d times", asked)
		}
	}
}

// TestCredentials has a registry that wants a password, and sends its clients elsewhere for layers.
func TestCredentials(t *testing.T) {
	const password = "pa55word-of-a-registry"
	h, host := serve(t)
	p := publish(t, host)
	good := p.put(v1.MediaTypeImageLayer, archive(t, map[string]string{"a": "x"}), "")
	p.image("1", good)
	data, err := p.Blobs().Fetch(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(data)
	if err := errors.Join(err, data.Close()); err != nil {
		t.Fatal(err)
	}
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Header, r.URL))
		answer(w, "application/octet-stream", layer)
	}))
	defer elsewhere.Close()
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		if user, given, _ := r.BasicAuth(); user != "ann" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"you sent `+given+`"}]}`)
			return true
		}
		if get(r, good.Digest.String()) {
			http.Redirect(w, r, elsewhere.URL+"/layer", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	ref, dir := host+"/team/tools:1", t.TempDir()
	o := plain
	o.Username, o.Password = "ann", password
	if _, err := pull.Image(t.Context(), dir, "x", ref, o); err != nil {
		t.Error(err)
	}
	if len(seen) != 1 || strings.Contains(seen[0], "Authorization") || strings.Contains(seen[0], password) {
		t.Errorf("the other host saw %s", seen)
	}
	o.Username = "bob"
	if _, err := pull.Image(t.Context(), dir, "y", ref, o); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("got %v", err)
	}
	left(t, dir, "x")
}

// TestHTTPS has a registry with a certificate that sends its clients to addresses of this machine, without TLS, or has a certificate that
// nobody vouches for.
func TestHTTPS(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	good := p.put(v1.MediaTypeImageLayer, archive(t, map[string]string{"a": "x"}), "")
	p.image("1", good)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	asked := 0
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer inside.Close()
	ref, dir := strings.TrimPrefix(s.URL, "https://")+"/team/tools:1", t.TempDir()
	o := pull.Impatient(pull.Options{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	if _, err := pull.Image(t.Context(), dir, "x", ref, o); err != nil {
		t.Error(err)
	}
	if _, err := pull.Image(t.Context(), dir, "y", ref, pull.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	for to, want := range map[string]error{
		inside.URL + "/": pull.ErrAddress,
		"https://169.254.169.254/latest/meta-data/": pull.ErrAddress,
		"https://[fd00::1]/":                        pull.ErrAddress,
		"http://" + host + "/":                      pull.ErrScheme,
		"file:///etc/passwd":                        nil,
	} {
		h.attack = func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, "/blobs/") {
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			}
			return get(r, "/blobs/")
		}
		if _, err := pull.Image(t.Context(), dir, "y", ref, o); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if asked > 0 {
		t.Errorf("what is inside was asked %d times", asked)
	}
	if _, err := pull.Image(t.Context(), dir, "y", "192.0.2.1:5000/team/tools:1", plain); !errors.Is(err, pull.ErrAddress) {
		t.Errorf("plain http beyond this machine: %v", err)
	}
	left(t, dir, "x")
}

// TestCancelled ends a pull in the middle of a layer.
func TestCancelled(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	good := p.put(v1.MediaTypeImageLayer, archive(t, map[string]string{"a": strings.Repeat("x", 1<<20)}), "")
	p.image("1", good)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		if !get(r, good.Digest.String()) {
			return false
		}
		w.Header().Set("Content-Length", strconv.FormatInt(good.Size, 10))
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
		return true
	}
	dir := t.TempDir()
	began := time.Now()
	if _, err := pull.Image(ctx, dir, "x", host+"/team/tools:1", plain); !errors.Is(err, context.Canceled) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	left(t, dir)
}

// TestKilled kills a program in the middle of a layer. The next pull removes what it left.
func TestKilled(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	good := p.put(v1.MediaTypeImageLayer, archive(t, map[string]string{"a": strings.Repeat("x", 1<<20)}), "")
	p.image("1", good)
	begun, over := make(chan struct{}), make(chan struct{})
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		if !get(r, good.Digest.String()) {
			return false
		}
		w.Header().Set("Content-Length", strconv.FormatInt(good.Size, 10))
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-over
		return true
	}
	ref, dir := host+"/team/tools:1", t.TempDir()
	program := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very program
	program.Env = append(os.Environ(), pulling+"="+ref+" "+dir)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	close(over)
	if entries, err := filepath.Glob(filepath.Join(dir, ".making-*")); err != nil || len(entries) != 1 {
		t.Errorf("the killed program left %v, %v", entries, err)
	}
	h.attack = nil
	if _, err := pull.Image(t.Context(), dir, "x", ref, plain); err != nil {
		t.Error(err)
	}
	left(t, dir, "x")
}

// TestResumed ends pulls in every way, and pulls again. Layers that came are not asked for again, and of one that came in part, the rest is.
func TestResumed(t *testing.T) {
	h, host := serve(t)
	p := publish(t, host)
	noise := make([]byte, 600_000)
	for i := range noise {
		noise[i] = byte(i * i * i >> 7)
	}
	firstText, secondText := archive(t, map[string]string{"a": string(noise)}), archive(t, map[string]string{"b": string(noise)})
	first, second := p.put(v1.MediaTypeImageLayer, firstText, ""), p.put(v1.MediaTypeImageLayer, secondText, "")
	p.image("1", first, second)
	ref := host + "/team/tools:1"
	const part = 300_000
	// asked are where the bytes of each layer began that were asked for last.
	var mu sync.Mutex
	asked := map[digest.Digest]int{}
	// halt has the second layer stop after its first part, until it is over.
	var halting bool
	var began func()
	var ended <-chan struct{}
	serving := func(halt bool, begun func(), over <-chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		clear(asked)
		halting, began, ended = halt, begun, over
	}
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		for d, text := range map[digest.Digest][]byte{first.Digest: firstText, second.Digest: secondText} {
			if !get(r, d.String()) {
				continue
			}
			from := 0
			w.Header().Set("Accept-Ranges", "bytes")
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(text)-from))
			if from > 0 {
				w.WriteHeader(http.StatusPartialContent)
			}
			mu.Lock()
			asked[d] = from
			halt, begun, over := halting, began, ended
			mu.Unlock()
			if !halt || d == first.Digest {
				_, _ = w.Write(text[from:])
				return true
			}
			_, _ = w.Write(text[from:part])
			_ = http.NewResponseController(w).Flush()
			begun()
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return true
		}
		return false
	}
	has := func(dir string) int64 {
		info, err := os.Stat(filepath.Join(dir, ".layers", second.Digest.Encoded()))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	arrived := func(dir string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); has(dir) < part && time.Now().Before(end); {
			runtime.Gosched()
		}
	}
	whole := func(dir string, want map[digest.Digest]int) {
		t.Helper()
		serving(false, nil, nil)
		if _, err := pull.Image(t.Context(), dir, "x", ref, plain); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if text, err := os.ReadFile(filepath.Join(dir, "x", "root", name)); err != nil || !bytes.Equal(text, noise) {
				t.Errorf("%s has %d bytes, %v", name, len(text), err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if !maps.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
		left(t, dir, "x")
	}

	all, rest := map[digest.Digest]int{first.Digest: 0, second.Digest: 0}, map[digest.Digest]int{second.Digest: part}

	t.Run("killed", func(t *testing.T) {
		dir, over := t.TempDir(), make(chan struct{})
		serving(true, func() {}, over)
		program := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very program
		program.Env = append(os.Environ(), pulling+"="+ref+" "+dir)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		arrived(dir)
		_ = program.Process.Kill()
		_ = program.Wait() // it was killed
		close(over)
		whole(dir, rest)
	})
	t.Run("cancelled", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		serving(true, func() { go func() { arrived(dir); cancel() }() }, nil)
		if _, err := pull.Image(ctx, dir, "x", ref, plain); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		left(t, dir, ".layers")
		whole(dir, rest)
	})
	t.Run("damaged", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".layers"), 0o700); err != nil {
			t.Fatal(err)
		}
		for d, text := range map[digest.Digest][]byte{first.Digest: make([]byte, len(firstText)), second.Digest: []byte("no layer")} {
			if err := os.WriteFile(filepath.Join(dir, ".layers", d.Encoded()), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		whole(dir, all)
	})
	t.Run("old", func(t *testing.T) {
		dir := t.TempDir()
		old := filepath.Join(dir, ".layers", strings.Repeat("0", 64))
		if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o700), os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Now(), time.Now().Add(-25*time.Hour))); err != nil {
			t.Fatal(err)
		}
		whole(dir, all)
	})
	t.Run("twice at once", func(t *testing.T) {
		dir := t.TempDir()
		serving(false, nil, nil)
		var both sync.WaitGroup
		for _, name := range []string{"x", "y"} {
			both.Go(func() {
				if _, err := pull.Image(t.Context(), dir, name, ref, plain); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		left(t, dir, "x", "y")
	})
}

// TestFullDisk pulls onto a disk that is too small, and again when there is room.
func TestFullDisk(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	_, host := serve(t)
	p := publish(t, host)
	p.image("large", p.put(v1.MediaTypeImageLayerGzip, zipped(t, archive(t, map[string]string{"a": strings.Repeat("x", 8<<20)})), ""))
	p.image("small", p.put(v1.MediaTypeImageLayerGzip, zipped(t, archive(t, map[string]string{"a": "x"})), ""))
	dir := t.TempDir()
	disktest.Mount(t, dir, "size=4m")
	if _, err := pull.Image(t.Context(), dir, "x", host+"/team/tools:large", plain); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
	left(t, dir)
	if _, err := pull.Image(t.Context(), dir, "x", host+"/team/tools:small", plain); err != nil {
		t.Error(err)
	}
	left(t, dir, "x")
}
