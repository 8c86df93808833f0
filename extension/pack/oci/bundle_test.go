package oci_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/oci"
)

// attach puts something beside a pack in a registry, as cosign sign does with a bundle.
func attach(t *testing.T, repository string, p *pack.Pack, artifactType, layerType string, b []byte) {
	t.Helper()
	attachAs(t, repository, p, artifactType, artifactType, layerType, b) // the registry of the tests lists by the type of the config
}

func attachAs(t *testing.T, repository string, p *pack.Pack, artifactType, configType, layerType string, b []byte) {
	t.Helper()
	to, err := remote.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	to.PlainHTTP = true
	to.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := p.Artifact()
	if err != nil {
		t.Fatal(err)
	}
	layer := content.NewDescriptorFromBytes(layerType, b)
	if err := to.Push(t.Context(), layer, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	config := content.NewDescriptorFromBytes(configType, ocispec.DescriptorEmptyJSON.Data)
	if err := to.Push(t.Context(), config, bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)); err != nil {
		t.Fatal(err)
	}
	subject := ocispec.Descriptor{MediaType: a.Manifest.MediaType, Digest: a.Manifest.Digest, Size: a.Manifest.Size}
	if _, err := oras.PackManifest(t.Context(), to, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
		Subject: &subject, ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope"},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestBundles(t *testing.T) {
	for name, referrers := range map[string]bool{"with referrers": true, "without referrers": false} {
		t.Run(name, func(t *testing.T) {
			repository := serve(t, newRegistry(referrers)) + "/notes"
			p := sample()
			s, _ := signature(t, p)
			ref := repository + "@" + push(t, repository+":1", p, s)
			asked := oci.Options{PlainHTTP: true, Bundles: true}
			if got := pull(t, ref, asked); len(got.Bundles) != 0 || len(got.Signatures) != 1 {
				t.Errorf("got %+v", got)
			}
			with := plain
			with.Attach = []byte("one")
			for range 2 { // what is there already stays one
				if _, err := oci.Push(t.Context(), repository+":1", p, nil, with); err != nil {
					t.Fatal(err)
				}
			}
			attach(t, repository, p, pack.BundleType, pack.BundleType, []byte("two"))
			attachAs(t, repository, p, pack.BundleType, ocispec.MediaTypeEmptyJSON, pack.BundleType, []byte("four")) // as cosign 3.0 is listed
			attachAs(t, repository, p, "application/vnd.example", ocispec.MediaTypeEmptyJSON, pack.BundleType, []byte("five"))
			attach(t, repository, p, "application/vnd.example", pack.BundleType, []byte("three"))
			if got := pull(t, ref, plain); len(got.Bundles) != 0 || len(got.Signatures) != 1 {
				t.Errorf("got %+v", got)
			}
			found := map[string]bool{}
			for _, b := range pull(t, ref, asked).Bundles {
				found[string(b)] = true
			}
			if len(found) != 3 || !found["one"] || !found["two"] || !found["four"] {
				t.Errorf("got %v", found)
			}
		})
	}
}

func TestHostileBundles(t *testing.T) {
	asked := oci.Options{PlainHTTP: true, Bundles: true}
	for _, c := range []struct {
		name   string
		attach func(*testing.T, string)
		want   error
	}{
		{"another layer", func(t *testing.T, r string) { attach(t, r, sample(), pack.BundleType, "text/plain", []byte("x")) }, pack.ErrFormat},
		{"too large", func(t *testing.T, r string) {
			attach(t, r, sample(), pack.BundleType, pack.BundleType, make([]byte, pack.MaxBundle+1))
		}, pack.ErrTooLarge},
		{"too many", func(t *testing.T, r string) {
			for i := range 17 {
				attach(t, r, sample(), pack.BundleType, pack.BundleType, fmt.Append(nil, i))
			}
		}, pack.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			repository := serve(t, newRegistry(true)) + "/notes"
			push(t, repository+":1", sample())
			c.attach(t, repository)
			if _, err := oci.Pull(t.Context(), repository+":1", plain); err != nil {
				t.Errorf("nobody asked for bundles: %v", err)
			}
			_, err := oci.Pull(t.Context(), repository+":1", asked)
			fails(t, err, c.want)
		})
	}

	store := newRegistry(true)
	h := &intercepted{Handler: store}
	repository := serve(t, h) + "/notes"
	push(t, repository+":1", sample())
	attach(t, repository, sample(), pack.BundleType, pack.BundleType, []byte("good"))
	h.attack = func(w http.ResponseWriter, r *http.Request) bool {
		if get(r, godigest.FromString("good").String()) {
			_, _ = w.Write([]byte("evil"))
			return true
		}
		return false
	}
	_, err := oci.Pull(t.Context(), repository+":1", asked)
	fails(t, err, pack.ErrDigest)
}
