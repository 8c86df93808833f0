package oci_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/oci"
	"github.com/stilehost/stile/internal/usagetest"
)

// intercepted is a registry whose answers an attacker can replace. attack returns false to let one pass.
type intercepted struct {
	http.Handler
	attack func(http.ResponseWriter, *http.Request) bool
}

func (i *intercepted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if i.attack == nil || !i.attack(w, r) {
		i.Handler.ServeHTTP(w, r)
	}
}

func get(r *http.Request, what string) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, what)
}

// endless writes until the other side has enough, and counts.
func endless(w io.Writer, start string, n *atomic.Int64) {
	b := append([]byte(start), bytes.Repeat([]byte(" "), 64<<10)...)
	for {
		m, err := w.Write(b)
		n.Add(int64(m))
		if err != nil {
			return
		}
	}
}

func TestHostileRegistry(t *testing.T) {
	p := sample()
	a, err := p.Artifact()
	if err != nil {
		t.Fatal(err)
	}
	component := godigest.FromBytes(p.Component).String()
	manifest := a.Blobs[a.Manifest.Digest]
	other, err := another().Artifact()
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, mediaType string, b []byte) bool {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b)
		return true
	}
	index := func(w http.ResponseWriter, manifests string) bool {
		return answer(w, ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[`+manifests+`]}`))
	}
	var sent atomic.Int64
	for _, c := range []struct {
		name   string
		ref    string
		attack func(http.ResponseWriter, *http.Request) bool
		want   error // nil: any
	}{
		{"another blob", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, component) && answer(w, "application/wasm", bytes.Repeat([]byte("evil"), 50_000))
		}, pack.ErrDigest},
		{"another blob that says it is the one", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", component)
			return get(r, component) && answer(w, "application/wasm", bytes.Repeat([]byte("evil"), 50_000))
		}, pack.ErrDigest},
		{"a blob cut short", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if !get(r, component) {
				return false
			}
			w.Header().Set("Content-Length", "200000")
			_, _ = w.Write(p.Component[:1000])
			return true
		}, io.ErrUnexpectedEOF},
		{"a blob that is too short", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, component) && answer(w, "application/wasm", p.Component[:1000])
		}, nil},
		{"a blob that is too long", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, component) && answer(w, "application/wasm", append(bytes.Clone(p.Component), 'x'))
		}, nil},
		{"a blob without end", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, component) {
				endless(w, string(p.Component), &sent)
			}
			return get(r, component)
		}, pack.ErrDigest},
		{"a manifest without end", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, "/manifests/") {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				endless(w, string(manifest), &sent)
			}
			return get(r, "/manifests/")
		}, nil},
		{"referrers without end", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, "/referrers/") {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
				endless(w, `{"manifests":[`, &sent)
			}
			return get(r, "/referrers/")
		}, nil},
		{"an error without end", ":1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotImplemented) // which is not tried again
			endless(w, `{"errors":[`, &sent)
			return true
		}, nil},
		{"an error with escapes", ":1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"\u001b[2Jall is well\u202e\u0000"}]}`))
			return true
		}, nil},
		{"another manifest for a digest", "@" + a.Manifest.Digest.String(), func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, ocispec.MediaTypeImageManifest, other.Blobs[other.Manifest.Digest])
		}, nil},
		{"another manifest for a digest that says it is the one", "@" + a.Manifest.Digest.String(), func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", a.Manifest.Digest.String())
			return get(r, "/manifests/") && answer(w, ocispec.MediaTypeImageManifest, other.Blobs[other.Manifest.Digest])
		}, pack.ErrDigest},
		{"an image", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, ocispec.MediaTypeImageManifest, bytes.Replace(manifest, []byte(pack.ArtifactType), []byte("text/plain"), 1))
		}, pack.ErrMediaType},
		{"an index", ":1", func(w http.ResponseWriter, r *http.Request) bool { return get(r, "/manifests/") && index(w, "") }, pack.ErrMediaType},
		{"a part larger than allowed", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/manifests/") && answer(w, ocispec.MediaTypeImageManifest, bytes.Replace(manifest, []byte(`"size":200000`), []byte(`"size":900000000000`), 1))
		}, pack.ErrTooLarge},
		{"a manifest that is not there", ":2", nil, nil},
		{"a blob that is not there", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, component) {
				w.WriteHeader(http.StatusNotFound)
			}
			return get(r, component)
		}, nil},
		{"redirects in circles", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, nil},
		{"referrers in circles", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Link", `<`+r.URL.Path+`>; rel="next"`)
			return get(r, "/referrers/") && index(w, "")
		}, errdef.ErrTooManyPages},
		{"a redirect to another scheme", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusTemporaryRedirect)
			return true
		}, oci.ErrScheme},
		{"a redirect to a file", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusTemporaryRedirect)
			return true
		}, oci.ErrScheme},
		{"a redirect out of this machine", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
			return true
		}, oci.ErrAddress},
		{"referrers with a digest that is a path", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/referrers/") && index(w, `{"artifactType":"`+pack.SignatureType+`","digest":"../tags/list","size":1}`)
		}, pack.ErrFormat},
		{"the pack as its own signature", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			return get(r, "/referrers/") && index(w, `{"artifactType":"`+pack.SignatureType+`","digest":"`+a.Manifest.Digest.String()+`","size":1}`)
		}, pack.ErrMediaType},
		{"many signatures", ":1", func(w http.ResponseWriter, r *http.Request) bool {
			one := `{"artifactType":"` + pack.SignatureType + `","digest":"` + a.Manifest.Digest.String() + `","size":1}`
			return get(r, "/referrers/") && index(w, strings.Repeat(one+",", 1000)+one)
		}, pack.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &intercepted{Handler: newRegistry(true)}
			repository := serve(t, h) + "/notes"
			push(t, repository+":1", p)
			h.attack = func(w http.ResponseWriter, r *http.Request) bool { return c.attack != nil && c.attack(w, r) }
			sent.Store(0)
			got, err := oci.Pull(t.Context(), repository+c.ref, plain)
			fails(t, err, c.want)
			if got != nil {
				t.Errorf("got %+v", got)
			}
			if n := sent.Load(); n > 32<<20 {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}

// TestReferrersTakeLittle pulls a pack from a registry whose page of referrers lists as many as fit: a byte of JSON can take
// 200 in memory.
func TestReferrersTakeLittle(t *testing.T) {
	const inside, most = "STILE_TEST_REFERRER", 128 << 10 // KiB
	if one := os.Getenv(inside); one != "" {
		h := &intercepted{Handler: newRegistry(true)}
		ref := serve(t, h) + "/notes:1"
		push(t, ref, sample())
		pages := 0
		for _, size := range []int{500 << 10, 4_000_000} {
			list := []byte(`{"manifests":[` + strings.Repeat(one+",", size/(len(one)+1)) + one + `]}`)
			h.attack = func(w http.ResponseWriter, r *http.Request) bool {
				if !get(r, "/referrers/") {
					return false
				}
				w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
				if pages++; pages%4 != 0 {
					w.Header().Set("Link", `<`+r.URL.Path+`>; rel="next"`)
				}
				_, _ = w.Write(list)
				return true
			}
			pulled := func() {
				_, err := oci.Pull(t.Context(), ref, plain)
				if refused := size > 512<<10 || strings.HasPrefix(one, "{}"); err == nil == refused {
					t.Errorf("a page of %d bytes: %v", size, err)
				}
			}
			if size > 512<<10 {
				usagetest.Tell(t, pulled)
			} else {
				pulled()
			}
		}
		return
	}
	for _, one := range []string{
		`{}`,
		`{"artifactType":"x"}`,
		`{"artifactType":"x","annotations":{"":""}}`,
		`{"artifactType":"x","platform":{}}`,
		`{"artifactType":"x","urls":[` + strings.Repeat(`"",`, 1000) + `""]}`,
	} {
		t.Run(one[:min(len(one), 40)], func(t *testing.T) {
			kib, out, err := usagetest.Grown(t, "TestReferrersTakeLittle", inside+"="+one)
			if err != nil || kib > most {
				t.Errorf("it took %d KiB, want at most %d: %v\n%s", kib, most, err, out)
			}
			t.Logf("%d KiB", kib)
		})
	}
}

// TestTagMoves has the tag lead elsewhere after each request: what is pulled is one pack, and it is the one of the digest.
func TestTagMoves(t *testing.T) {
	for _, sized := range []bool{true, false} { // without a size, oras asks twice
		h := &intercepted{Handler: newRegistry(true)}
		repository := serve(t, h) + "/notes"
		packs := map[string]*pack.Pack{push(t, repository+":1", sample()): sample(), push(t, repository+":2", another()): another()}
		turn := 0
		h.attack = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/manifests/1") {
				return false
			}
			turn++
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "1") + strconv.Itoa(1+turn%2)
			if r.Method == http.MethodGet && !sized {
				answer := httptest.NewRecorder()
				h.Handler.ServeHTTP(answer, r)
				w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(answer.Body.Bytes())
				return true
			}
			return false
		}
		for range 4 {
			got := pull(t, repository+":1", plain)
			if want := packs[got.Digest]; want == nil || digest(t, got.Pack) != digest(t, want) {
				t.Errorf("got %s", got.Digest)
			}
		}
		if turn < 4 || !sized && turn != 8 {
			t.Errorf("the tag was asked for %d times", turn)
		}
	}
}

func TestErrorOfRegistry(t *testing.T) {
	_, err := oci.Pull(t.Context(), serve(t, newRegistry(true))+"/notes:1", plain)
	fails(t, err, errdef.ErrNotFound)
	_, err = oci.Pull(t.Context(), serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))+"/notes:1", plain)
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); !ok || answer.StatusCode != http.StatusTeapot {
		t.Errorf("got %v", err)
	}
}
