package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/internal/registry"
)

// publishImage puts an image with this machine's shell into a registry, as sandboxes/shell:1.
func publishImage(t *testing.T, host string) {
	t.Helper()
	needs, err := exec.CommandContext(t.Context(), "ldd", "/bin/sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(needs), -1), "/bin/sh") {
		data, err := os.ReadFile(file)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(file, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := registry.Connect(host+"/sandboxes/shell:1", registry.Options{PlainHTTP: true, Metadata: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	put := func(mediaType string, content any, tag string) v1.Descriptor {
		data, ok := content.([]byte)
		if !ok {
			if data, err = json.Marshal(content); err != nil {
				t.Fatal(err)
			}
		}
		d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
		if tag == "" {
			err = c.Push(t.Context(), d, bytes.NewReader(data))
		} else {
			err = c.PushReference(t.Context(), d, bytes.NewReader(data), tag)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: put(v1.MediaTypeImageConfig, v1.Image{}, "")}
	m.SchemaVersion, m.Layers = 2, []v1.Descriptor{put(v1.MediaTypeImageLayer, layer.Bytes(), "")}
	put(v1.MediaTypeImageManifest, m, "1")
}
