package oci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	refused "github.com/stilehost/stile/internal/registry"
	"github.com/stilehost/stile/wit/oci"
)

// newRegistry is a registry as others run it, in memory, that counts uploads.
func newRegistry(t *testing.T) (address string, uploads *int) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	uploads = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			*uploads++
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), uploads
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", ocispec.MediaTypeImageManifest)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, answer.Status, err, body)
	}
	return body
}

// The registry has what wkg expects: a manifest with a config of its type, and the binary as the only layer.
func TestPush(t *testing.T) {
	address, uploads := newRegistry(t)
	ref, wasm := address+"/contracts/some/types:1.0.0", []byte("\x00asm\x0d\x00\x01\x00")
	pushed, err := oci.Push(t.Context(), ref, wasm, []string{"some:types/all@1.0.0"}, oci.Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + address + "/v2/contracts/some/types/"
	text := get(t, base+"manifests/1.0.0")
	if d := digest.FromBytes(text).String(); d != pushed {
		t.Errorf("the manifest is %s, and Push says %s", d, pushed)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.SchemaVersion != 2 || manifest.MediaType != ocispec.MediaTypeImageManifest || manifest.Config.MediaType != "application/vnd.wasm.config.v0+json" ||
		len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != "application/wasm" {
		t.Errorf("the manifest is %s", text)
	}
	if got := get(t, base+"blobs/"+manifest.Layers[0].Digest.String()); !bytes.Equal(got, wasm) {
		t.Errorf("the layer is %q", got)
	}
	var config map[string]any
	if err := json.Unmarshal(get(t, base+"blobs/"+manifest.Config.Digest.String()), &config); err != nil {
		t.Fatal(err)
	}
	layers, _ := config["layerDigests"].([]any)
	if config["architecture"] != "wasm" || config["os"] != "wasip2" || len(layers) != 1 || layers[0] != manifest.Layers[0].Digest.String() {
		t.Errorf("the config is %v", config)
	}
	// Again, only the tag is set.
	before := *uploads
	again, err := oci.Push(t.Context(), ref, wasm, []string{"some:types/all@1.0.0"}, oci.Options{PlainHTTP: true})
	if err != nil || again != pushed || *uploads != before+1 {
		t.Errorf("again: %s, %v, %d uploads", again, err, *uploads-before)
	}
}

func TestPushFails(t *testing.T) {
	address, uploads := newRegistry(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		ref string
		is  error
	}{
		"no tag":         {t.Context(), address + "/some/types", refused.ErrReference},
		"a digest":       {t.Context(), address + "/some/types@" + digest.FromString("x").String(), refused.ErrReference},
		"not an address": {t.Context(), "some types:1", refused.ErrReference},
		"cancelled":      {cancelled, address + "/some/types:1", context.Canceled},
		"no registry":    {t.Context(), "127.0.0.1:1/some/types:1", nil},
	} {
		_, err := oci.Push(c.ctx, c.ref, []byte("x"), nil, oci.Options{PlainHTTP: true, Password: "sesame"})
		var known *refused.Error
		if !errors.As(err, &known) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if *uploads > 0 {
		t.Errorf("%d uploads", *uploads)
	}
}
