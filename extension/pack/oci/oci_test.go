package oci_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.uber.org/goleak"
	"oras.land/oras-go/v2"
	layout "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/oci"
	"github.com/stilehost/stile/internal/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var plain = oci.Options{PlainHTTP: true}

func sample() *pack.Pack {
	return &pack.Pack{
		Manifest: []byte(`{"name":"notes"}`), Files: map[string][]byte{"tool.ts": []byte("export default 1;\n"), "a/b.ts": {}}, Entry: "tool.ts",
		Component: bytes.Repeat([]byte("\x00asm"), 50_000), Engine: "engine-x0123", Lock: []byte("{}"), SBOM: []byte(`{"bomFormat":"CycloneDX"}`), Definitions: []byte("[]"),
	}
}

func another() *pack.Pack {
	p := sample()
	p.Component = []byte("another")
	return p
}

func digest(t *testing.T, p *pack.Pack) string {
	t.Helper()
	d, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newRegistry is a registry as others run it, in memory.
func newRegistry(referrers bool) http.Handler {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
}

// serve returns the host and port at which h answers.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// counted counts requests by method and the first word of what they ask for.
type counted struct {
	http.Handler
	mu   sync.Mutex
	seen map[string]int
}

func count(h http.Handler) *counted { return &counted{Handler: h, seen: map[string]int{}} }

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	for _, what := range []string{"/blobs/uploads/", "/blobs/", "/manifests/", "/referrers/"} {
		if strings.Contains(r.URL.Path, what) {
			c.seen[r.Method+" "+strings.Trim(what, "/")]++
			break
		}
	}
	c.mu.Unlock()
	c.Handler.ServeHTTP(w, r)
}

func (c *counted) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = map[string]int{}
	return seen
}

func push(t *testing.T, ref string, p *pack.Pack, signatures ...pack.Signature) string {
	t.Helper()
	d, err := oci.Push(t.Context(), ref, p, signatures, plain)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pull(t *testing.T, ref string, opts oci.Options) *oci.Pulled {
	t.Helper()
	p, err := oci.Pull(t.Context(), ref, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func signature(t *testing.T, p *pack.Pack) (pack.Signature, ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := pack.Sign(private, digest(t, p), "ada", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s, public
}

func TestPushPull(t *testing.T) {
	for name, referrers := range map[string]bool{"with referrers": true, "without referrers": false} {
		t.Run(name, func(t *testing.T) {
			h := count(newRegistry(referrers))
			repository := serve(t, h) + "/team/notes"
			p := sample()
			first, key := signature(t, p)
			d := push(t, repository+":1.0.0", p, first)
			for _, ref := range []string{repository + ":1.0.0", repository + "@" + d} {
				got := pull(t, ref, plain)
				if digest(t, got.Pack) != digest(t, p) || got.Digest != d || len(got.Signatures) != 1 {
					t.Errorf("%s: got %s with %d signatures, want %s", ref, got.Digest, len(got.Signatures), d)
				}
				if signer, err := pack.Verify(got.Pack, got.Signatures, []ed25519.PublicKey{key}); err != nil || signer.Who != "ada" {
					t.Errorf("%s: signed by %+v, %v", ref, signer, err)
				}
			}

			second, key := signature(t, p)
			h.reset()
			push(t, repository+":latest", p, second)
			if n := h.reset()["POST blobs/uploads"]; n != 1 {
				t.Errorf("%d blobs were sent for one signature", n)
			}
			got := pull(t, repository+":latest", plain)
			if _, err := pack.Verify(got.Pack, got.Signatures, []ed25519.PublicKey{key}); err != nil || len(got.Signatures) != 2 || got.Digest != d {
				t.Errorf("got %s with %d signatures, %v", got.Digest, len(got.Signatures), err)
			}
			if d := push(t, repository+"@"+d, p); d != got.Digest {
				t.Errorf("pushed by digest as %s", d)
			}
		})
	}
}

// TestFileAndRegistryAgree lets the library of a registry tool copy the file to a registry.
func TestFileAndRegistryAgree(t *testing.T) {
	p := sample()
	s, key := signature(t, p)
	name := filepath.Join(t.TempDir(), "notes.tar")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pack.Write(f, p, s), f.Close()); err != nil {
		t.Fatal(err)
	}
	from, err := layout.NewFromTar(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Artifact()
	if err != nil {
		t.Fatal(err)
	}
	repository := serve(t, newRegistry(true)) + "/notes"
	to, err := remote.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	to.PlainHTTP = true
	to.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := oras.ExtendedCopyGraph(t.Context(), from, to, a.Manifest, oras.DefaultExtendedCopyGraphOptions); err != nil {
		t.Fatal(err)
	}
	got := pull(t, repository+"@"+a.Manifest.Digest.String(), plain)
	if _, err := pack.Verify(got.Pack, got.Signatures, []ed25519.PublicKey{key}); err != nil || digest(t, got.Pack) != digest(t, p) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestReferences(t *testing.T) {
	host := serve(t, newRegistry(true))
	for _, ref := range []string{
		"", "notes", host + "/notes", host + "/notes:", host + "/notes@sha256:12", host + "/notes@md5:d41d8cd98f00b204e9800998ecf8427e",
		host + "/Notes:1", host + "/../notes:1", host + "/notes:a/b", "http://" + host + "/notes:1", "user@" + host + "/notes:1", host + "/notes:\x1b[2J",
	} {
		_, err := oci.Pull(t.Context(), ref, plain)
		fails(t, err, oci.ErrReference)
		_, err = oci.Push(t.Context(), ref, sample(), nil, plain)
		fails(t, err, oci.ErrReference)
	}
	_, err := oci.Push(t.Context(), host+"/notes@"+digest(t, sample()), sample(), nil, plain)
	fails(t, err, oci.ErrReference)
	_, err = oci.Push(t.Context(), host+"/notes:1", &pack.Pack{}, nil, plain)
	fails(t, err, pack.ErrMissing)
}

func TestPullLimits(t *testing.T) {
	h := count(newRegistry(true))
	ref := serve(t, h) + "/notes:1"
	p := sample()
	a, _ := signature(t, p)
	b, _ := signature(t, p)
	push(t, ref, p, a, b)
	h.reset()
	_, err := oci.Pull(t.Context(), ref, oci.Options{PlainHTTP: true, Limits: pack.Limits{Component: 1000}})
	fails(t, err, pack.ErrTooLarge)
	if n := h.reset()["GET blobs"]; n != 3 { // config, source, manifest
		t.Errorf("%d blobs were asked for", n)
	}
	_, err = oci.Pull(t.Context(), ref, oci.Options{PlainHTTP: true, Limits: pack.Limits{Signatures: 1}})
	fails(t, err, pack.ErrTooLarge)
}

// memory is a cache that believes everything.
type memory map[string][]byte

func (m memory) Get(kind, key string) ([]byte, bool, error) {
	b, ok := m[kind+" "+key]
	return b, ok, nil
}

func (m memory) Put(kind, key string, b []byte) error {
	m[kind+" "+key] = b
	return nil
}

var _ oci.Cache = (*cache.Cache)(nil)

func TestCache(t *testing.T) {
	h := count(newRegistry(true))
	repository := serve(t, h) + "/notes"
	s, _ := signature(t, sample())
	d := push(t, repository+":1", sample(), s)
	kept := memory{}
	opts := oci.Options{PlainHTTP: true, Cache: kept}
	pull(t, repository+":1", opts)
	h.reset()

	pull(t, repository+":1", opts)
	if got := h.reset(); got["GET blobs"] != 0 || got["GET manifests"] != 1 {
		t.Errorf("by tag, from the cache: %v", got)
	}
	pull(t, repository+"@"+d, opts) // a tag's manifest is not kept by its digest
	h.reset()
	pull(t, repository+"@"+d, opts)
	if got := h.reset(); got["GET blobs"]+got["GET manifests"] != 0 || got["GET referrers"] != 1 {
		t.Errorf("by digest, from the cache: %v", got)
	}

	// Whatever stands in the cache under a digest, it is not used unless it has that digest.
	good := slices.Sorted(func(yield func(string) bool) {
		for key := range kept {
			if !yield(key) {
				return
			}
		}
	})
	for _, key := range good {
		for _, bad := range [][]byte{nil, []byte("evil"), append(bytes.Clone(kept[key]), 'x')} {
			was := kept[key]
			kept[key] = bad
			if got := pull(t, repository+"@"+d, opts); digest(t, got.Pack) != digest(t, sample()) || len(got.Signatures) != 1 {
				t.Errorf("%s: got %+v", key, got)
			}
			if !bytes.Equal(kept[key], was) {
				t.Errorf("%s was not put right", key)
			}
		}
	}
}

type broken struct{}

func (broken) Get(string, string) ([]byte, bool, error) { return []byte("x"), true, io.ErrClosedPipe }
func (broken) Put(string, string, []byte) error         { return io.ErrClosedPipe }

func TestBrokenCache(t *testing.T) {
	ref := serve(t, newRegistry(true)) + "/notes:1"
	push(t, ref, sample())
	pull(t, ref, oci.Options{PlainHTTP: true, Cache: broken{}})
}

// TestBusyRegistry has no time for the first request of each kind.
func TestBusyRegistry(t *testing.T) {
	busy := map[string]int{"GET /v2/notes/manifests/1": 429, "POST /v2/notes/blobs/uploads/": 503, "PUT /v2/notes/manifests/1": 502}
	h := &intercepted{Handler: newRegistry(true)}
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		what := r.Method + " " + r.URL.Path
		status := busy[what]
		delete(busy, what)
		if status != 0 {
			w.WriteHeader(status)
		}
		return status != 0
	}
	ref := serve(t, h) + "/notes:1"
	push(t, ref, sample())
	if got := pull(t, ref, plain); digest(t, got.Pack) != digest(t, sample()) {
		t.Errorf("got %+v", got)
	}
	if len(busy) > 0 {
		t.Errorf("not asked for %v", busy)
	}
}

func TestCancel(t *testing.T) {
	for _, what := range []string{"/manifests/", "/blobs/", "/referrers/"} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			next := newRegistry(true)
			waiting := false
			host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if waiting && strings.Contains(r.URL.Path, what) {
					w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex) // else the client asks for referrers in the older way
					_, _ = w.Write([]byte("{"))                                 // no length, which the client would complain about first
					_ = http.NewResponseController(w).Flush()
					cancel()
					<-r.Context().Done()
					return
				}
				next.ServeHTTP(w, r)
			}))
			push(t, host+"/notes:1", sample())
			waiting = true
			_, err := oci.Pull(ctx, host+"/notes:1", plain)
			fails(t, err, context.Canceled)
			_, err = oci.Push(ctx, host+"/notes:2", another(), nil, plain)
			fails(t, err, context.Canceled)
		})
	}
}

// fails checks that an error is of this package, wraps want if that is not nil, and shows nothing that could mislead a terminal.
func fails(t *testing.T, err, want error) {
	t.Helper()
	if _, ok := errors.AsType[*oci.Error](err); !ok || want != nil && !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\u202e") {
		t.Errorf("%q", err)
	}
}
