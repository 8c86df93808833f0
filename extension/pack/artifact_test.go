package pack_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/extension/pack"
)

// changed is the artifact of the sample, prepared for changes that keep the digests valid.
type changed struct {
	*pack.Artifact
	m ocispec.Manifest
}

func artifact(t *testing.T) *changed {
	t.Helper()
	a, err := sample().Artifact()
	if err != nil {
		t.Fatal(err)
	}
	c := &changed{Artifact: a}
	if err := json.Unmarshal(a.Blobs[a.Manifest.Digest], &c.m); err != nil {
		t.Fatal(err)
	}
	delete(a.Blobs, a.Manifest.Digest)
	return c
}

// put replaces the content that d refers to, with the right digest and size.
func (c *changed) put(d *ocispec.Descriptor, content []byte) {
	delete(c.Blobs, d.Digest)
	d.Digest, d.Size = godigest.FromBytes(content), int64(len(content))
	c.Blobs[d.Digest] = content
}

func (c *changed) file(t *testing.T) []byte {
	t.Helper()
	return layoutOf(t, c.Blobs, marshal(t, c.m))
}

func TestArtifact(t *testing.T) {
	p := sample()
	a, err := p.Artifact(pack.Signature("{}"), pack.Signature("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(a.Blobs[a.Manifest.Digest], &m); err != nil {
		t.Fatal(err)
	}
	if got := m.Config.Digest.String(); got != digest(t, p) {
		t.Errorf("the config has the digest %s, and the pack %s", got, digest(t, p))
	}
	if m.ArtifactType != pack.ArtifactType || len(m.Layers) != 6 || len(a.Signatures) != 1 {
		t.Errorf("got %+v with %d signatures", m, len(a.Signatures))
	}
	for d, b := range a.Blobs {
		if godigest.FromBytes(b) != d {
			t.Errorf("%s is not the digest of its blob", d)
		}
	}
	if _, err := p.Artifact(make(pack.Signature, 20<<10)); err == nil {
		t.Error("a signature of 20 KiB was taken")
	}
}

func TestHostileArtifact(t *testing.T) {
	const source, manifest, component, lock, sbom = 0, 1, 2, 3, 4
	source2 := func(t *testing.T, c *changed, all ...entry) { c.put(&c.m.Layers[source], archive(t, all)) }
	reg := func(name, content string) entry {
		return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, []byte(content)}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *changed)
		part   string
		want   error
	}{
		{"foreign artifact", func(_ *testing.T, c *changed) { c.m.ArtifactType = "application/vnd.example" }, "artifact", pack.ErrMediaType},
		{"container image", func(_ *testing.T, c *changed) { c.m.ArtifactType = "" }, "artifact", pack.ErrMediaType},
		{"index", func(_ *testing.T, c *changed) { c.m.MediaType = ocispec.MediaTypeImageIndex }, "artifact", pack.ErrMediaType},
		{"foreign config", func(_ *testing.T, c *changed) { c.m.Config.MediaType = "text/\x1bplain" }, "config", pack.ErrMediaType},
		{"config is no JSON", func(_ *testing.T, c *changed) { c.put(&c.m.Config, []byte("[")) }, "config", pack.ErrFormat},
		{"config with spaces", func(_ *testing.T, c *changed) { c.put(&c.m.Config, append(c.Blobs[c.m.Config.Digest], ' ')) }, "config", pack.ErrFormat},
		{"config of another pack", func(t *testing.T, c *changed) {
			p := sample()
			p.Lock = []byte("other")
			a, err := p.Artifact()
			if err != nil {
				t.Fatal(err)
			}
			c.put(&c.m.Config, a.Blobs[godigest.Digest(digest(t, p))])
		}, "config", pack.ErrFormat},
		{"component of another pack", func(_ *testing.T, c *changed) { c.put(&c.m.Layers[component], []byte("evil")) }, "config", pack.ErrFormat},
		{"other bytes", func(_ *testing.T, c *changed) { c.Blobs[c.m.Layers[component].Digest] = []byte("\x00asm componenT") }, "component", pack.ErrDigest},
		{"bytes fewer", func(_ *testing.T, c *changed) { c.Blobs[c.m.Layers[lock].Digest] = []byte("{") }, "lock", pack.ErrDigest},
		{"size too small", func(_ *testing.T, c *changed) { c.m.Layers[lock].Size-- }, "lock", pack.ErrDigest},
		{"size below zero", func(_ *testing.T, c *changed) { c.m.Layers[lock].Size = -1 }, "lock", pack.ErrDigest},
		{"size too large", func(_ *testing.T, c *changed) { c.m.Layers[lock].Size = 1 << 40 }, "lock", pack.ErrTooLarge},
		{"blob missing", func(_ *testing.T, c *changed) { delete(c.Blobs, c.m.Layers[sbom].Digest) }, "sbom", pack.ErrMissing},
		{"digest empty", func(_ *testing.T, c *changed) { c.m.Layers[sbom].Digest = "" }, "sbom", pack.ErrFormat},
		{"digest of another kind", func(_ *testing.T, c *changed) { c.m.Layers[sbom].Digest = godigest.SHA512.FromBytes(nil) }, "sbom", pack.ErrFormat},
		{"source missing", func(_ *testing.T, c *changed) { c.m.Layers = c.m.Layers[manifest:] }, "source", pack.ErrMissing},
		{"component missing", func(_ *testing.T, c *changed) { c.m.Layers = slices.Delete(c.m.Layers, component, lock) }, "component", pack.ErrMissing},
		{"layers missing", func(_ *testing.T, c *changed) { c.m.Layers = nil }, "source", pack.ErrMissing},
		{"part twice", func(_ *testing.T, c *changed) { c.m.Layers = append(c.m.Layers, c.m.Layers[lock]) }, "lock", pack.ErrDuplicate},
		{"source twice", func(_ *testing.T, c *changed) { c.m.Layers = append(c.m.Layers, c.m.Layers[source]) }, "source", pack.ErrDuplicate},
		{"another order", func(_ *testing.T, c *changed) { slices.Reverse(c.m.Layers) }, "artifact", pack.ErrFormat},
		{"empty part", func(_ *testing.T, c *changed) { c.put(&c.m.Layers[lock], []byte{}) }, "config", pack.ErrFormat},
		{"layer of another type", func(_ *testing.T, c *changed) { c.m.Layers[lock].MediaType = "text/plain" }, "artifact", pack.ErrMediaType},
		{"many layers", func(_ *testing.T, c *changed) { c.m.Layers = slices.Repeat(c.m.Layers, 1000) }, "artifact", pack.ErrTooLarge},
		{"annotations", func(_ *testing.T, c *changed) { c.m.Annotations = map[string]string{"a": "b"} }, "artifact", pack.ErrFormat},
		{"layer from elsewhere", func(_ *testing.T, c *changed) { c.m.Layers[lock].URLs = []string{"https://example.com/"} }, "artifact", pack.ErrFormat},
		{"layer inside", func(_ *testing.T, c *changed) { c.m.Layers[lock].Data = []byte("other") }, "artifact", pack.ErrFormat},
		{"subject", func(_ *testing.T, c *changed) { c.m.Subject = &ocispec.Descriptor{} }, "artifact", pack.ErrFormat},

		{"source is no tar", func(_ *testing.T, c *changed) { c.put(&c.m.Layers[source], bytes.Repeat([]byte("x"), 1024)) }, "source", pack.ErrFormat},
		{"source is empty", func(t *testing.T, c *changed) { source2(t, c) }, "entry", pack.ErrMissing},
		{"source with a folder", func(t *testing.T, c *changed) {
			source2(t, c, entry{tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, nil}, reg("tool.ts", ""))
		}, "source", pack.ErrFormat},
		{"source with a path up", func(t *testing.T, c *changed) { source2(t, c, reg("../tool.ts", "")) }, `source entry "../tool.ts"`, pack.ErrName},
		{"source with a file twice", func(t *testing.T, c *changed) { source2(t, c, reg("tool.ts", ""), reg("tool.ts", "x")) }, `source entry "tool.ts"`, pack.ErrDuplicate},
		{"source with a link", func(t *testing.T, c *changed) {
			source2(t, c, reg("tool.ts", ""), entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/"}, nil})
		}, `source entry "a"`, pack.ErrFormat},
		{"source with a file that is a folder", func(t *testing.T, c *changed) { source2(t, c, reg("tool.ts", ""), reg("tool.ts/a", "")) }, `file "tool.ts"`, pack.ErrName},
		{"source in another order", func(t *testing.T, c *changed) { source2(t, c, reg("tool.ts", ""), reg("a.ts", "")) }, "source", pack.ErrFormat},
		{"source with a mode", func(t *testing.T, c *changed) {
			source2(t, c, entry{tar.Header{Typeflag: tar.TypeReg, Name: "tool.ts", Mode: 0o4755}, nil})
		}, "source", pack.ErrFormat},
		{"source with attributes", func(t *testing.T, c *changed) {
			source2(t, c, entry{tar.Header{Typeflag: tar.TypeReg, Name: "tool.ts", Mode: 0o644, PAXRecords: map[string]string{"SCHILY.xattr.a": "b"}}, nil})
		}, "source", pack.ErrFormat},
		{"source with more after it", func(_ *testing.T, c *changed) {
			c.put(&c.m.Layers[source], append(bytes.Clone(c.Blobs[c.m.Layers[source].Digest]), make([]byte, 512)...))
		}, "source", pack.ErrFormat},
		{"source that is compressed well", func(t *testing.T, c *changed) { source2(t, c, reg("tool.ts", strings.Repeat("\x00", 9<<20))) }, `source entry "tool.ts"`, pack.ErrTooLarge},
		{"source of many files", func(t *testing.T, c *changed) {
			var all []entry
			for i := range 2001 {
				all = append(all, reg(fmt.Sprintf("%04d", i), ""))
			}
			source2(t, c, all...)
		}, "source", pack.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := artifact(t)
			c.change(t, a)
			_, _, err := pack.Read(bytes.NewReader(a.file(t)), pack.Limits{})
			refused(t, err, c.part, c.want)
		})
	}
}

// TestManifestSaysMore changes parts of the manifest that its fields do not show.
func TestManifestSaysMore(t *testing.T) {
	a := artifact(t)
	m := string(marshal(t, a.m))
	for name, text := range map[string]string{
		"spaces":             m + "\n",
		"a field":            strings.Replace(m, `{"schemaVersion":2`, `{"more":1,"schemaVersion":2`, 1),
		"a field twice":      strings.Replace(m, `{"schemaVersion":2`, `{"schemaVersion":3,"schemaVersion":2`, 1),
		"a field in capital": strings.Replace(m, `"schemaVersion"`, `"SchemaVersion"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := pack.Read(bytes.NewReader(layoutOf(t, artifact(t).Blobs, []byte(text))), pack.Limits{})
			refused(t, err, "artifact", pack.ErrFormat)
		})
	}
}

func TestHostileLayout(t *testing.T) {
	a, err := sample().Artifact(pack.Signature("{}"))
	if err != nil {
		t.Fatal(err)
	}
	main := a.Blobs[a.Manifest.Digest]
	p := sample()
	p.Lock = nil
	b, err := p.Artifact()
	if err != nil {
		t.Fatal(err)
	}
	other := b.Blobs[b.Manifest.Digest]
	signature := func(change func(*ocispec.Manifest)) []byte {
		var m ocispec.Manifest
		if err := json.Unmarshal(a.Blobs[a.Signatures[0].Digest], &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		return marshal(t, m)
	}
	for _, c := range []struct {
		name      string
		manifests [][]byte
		part      string
		want      error
	}{
		{"two packs", [][]byte{main, other}, "artifact", pack.ErrDuplicate},
		{"one pack twice", [][]byte{main, main}, "artifact", pack.ErrDuplicate},
		{"signatures alone", [][]byte{signature(func(*ocispec.Manifest) {}), []byte("{}")}, "artifact", pack.ErrMissing},
		{"what is neither", [][]byte{main, signature(func(m *ocispec.Manifest) { m.ArtifactType = "x" })}, "signature", pack.ErrMediaType},
		{"a signature of another pack", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Subject.Digest = b.Manifest.Digest })}, "signature", pack.ErrOtherPack},
		{"a signature of nothing", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Subject = nil })}, "signature", pack.ErrOtherPack},
		{"a signature without layers", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Layers = nil })}, "signature", pack.ErrFormat},
		{"a signature with many layers", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Layers = slices.Repeat(m.Layers, 2) })}, "signature", pack.ErrFormat},
		{"a signature of another type", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" })}, "signature", pack.ErrFormat},
		{"a signature that is huge", [][]byte{main, signature(func(m *ocispec.Manifest) { m.Layers[0].Size = 1 << 20 })}, "signature", pack.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			blobs := map[godigest.Digest][]byte{}
			maps.Copy(blobs, a.Blobs)
			maps.Copy(blobs, b.Blobs)
			_, _, err := pack.Read(bytes.NewReader(layoutOf(t, blobs, c.manifests...)), pack.Limits{})
			refused(t, err, c.part, c.want)
		})
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzDecode changes the manifest, which nothing protects until its digest is known. Of all manifests that lead to the
// parts of the sample, exactly one is accepted.
func FuzzDecode(f *testing.F) {
	a, err := sample().Artifact()
	if err != nil {
		f.Fatal(err)
	}
	good := a.Blobs[a.Manifest.Digest]
	f.Add(good)
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.stile.extension.v1"}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		p, err := pack.Decode(manifest, pack.Limits{}, func(d ocispec.Descriptor) ([]byte, error) { return a.Blobs[d.Digest], nil })
		if _, ok := errors.AsType[*pack.PartError](err); err != nil && !ok {
			t.Errorf("got %v", err)
		}
		if err == nil && (!bytes.Equal(manifest, good) || !equal(p, sample())) {
			t.Errorf("%s was taken", manifest)
		}
	})
}
