package pack

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Write writes the pack and its signatures as one file: an uncompressed OCI image layout in a tar archive, which registry tools can
// read. The same pack with the same signatures gives the same bytes. Errors are those of w, or a *[PartError] that says what a pack
// may not contain.
func Write(w io.Writer, p *Pack, signatures ...Signature) error {
	a, err := p.Artifact(signatures...)
	if err != nil {
		return err
	}
	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return fmt.Errorf("write an extension pack: %w", err)
	}
	index, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageIndex,
		Manifests: append([]ocispec.Descriptor{a.Manifest}, a.Signatures...),
	})
	if err != nil {
		return fmt.Errorf("write an extension pack: %w", err)
	}
	t := tar.NewWriter(w)
	err = addFile(t, ocispec.ImageLayoutFile, layout)
	if err == nil {
		err = addFile(t, ocispec.ImageIndexFile, index)
	}
	for _, d := range slices.Sorted(maps.Keys(a.Blobs)) {
		if err == nil {
			err = addFile(t, blobName(d), a.Blobs[d])
		}
	}
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		return fmt.Errorf("write an extension pack: %w", err)
	}
	return nil
}

// Read reads what [Write] wrote, or an image layout that a registry tool made from the same artifact, with folders and with
// its files in another order. It reads r to its end unless that exceeds the limits, keeps everything in memory and opens no
// file. It checks each part against its digest. It does not verify the signatures: see [Verify]. An error is a *[PartError].
func Read(r io.Reader, limits Limits) (*Pack, []Signature, error) {
	limits = limits.WithDefaults()
	files, err := readTar(r, "layout", limits.entries(), limits.total())
	if err != nil {
		return nil, nil, err
	}
	l := &layout{files: files, used: map[string]bool{blobName(ocispec.DescriptorEmptyJSON.Digest): true}}
	pack, others, err := l.manifests(limits)
	if err != nil {
		return nil, nil, err
	}
	p, err := Decode(pack, limits, l.fetch)
	if err != nil {
		return nil, nil, err
	}
	var signatures []Signature
	for _, b := range others {
		s, err := DecodeSignature(b, digest.FromBytes(pack), l.fetch)
		if err != nil {
			return nil, nil, err
		}
		signatures = append(signatures, s)
	}
	for name := range files {
		if !l.used[name] {
			return nil, nil, &PartError{"layout entry " + quote(name), fmt.Errorf("%w: nothing refers to it", ErrFormat)}
		}
	}
	return p, signatures, nil
}

// layout is an image layout: its files, and which of them have been used.
type layout struct {
	files map[string][]byte
	used  map[string]bool
}

// manifests returns the manifest of the pack, and the other manifests in the index.
func (l *layout) manifests(limits Limits) (pack []byte, others [][]byte, err error) {
	var version ocispec.ImageLayout
	var index ocispec.Index
	err = l.json(ocispec.ImageLayoutFile, &version)
	if err == nil {
		err = l.json(ocispec.ImageIndexFile, &index)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case version.Version != ocispec.ImageLayoutVersion || index.SchemaVersion != 2:
		return nil, nil, &PartError{"layout", fmt.Errorf("%w: it is of another version", ErrFormat)}
	case len(index.Manifests) == 0:
		return nil, nil, &PartError{"artifact", ErrMissing}
	case len(index.Manifests) > 1+limits.Signatures:
		return nil, nil, &PartError{"layout", fmt.Errorf("%w: more than %d signatures", ErrTooLarge, limits.Signatures)}
	}
	for _, d := range index.Manifests {
		b, err := Fetch(l.fetch).verified("artifact", d, maxManifest)
		if err != nil {
			return nil, nil, err
		}
		switch _, err := parseManifest("artifact", b, ArtifactType); {
		case err == nil && pack != nil:
			return nil, nil, &PartError{"artifact", ErrDuplicate}
		case err == nil:
			pack = b
		case len(index.Manifests) == 1:
			return nil, nil, err
		default:
			others = append(others, b)
		}
	}
	if pack == nil {
		return nil, nil, &PartError{"artifact", ErrMissing}
	}
	return pack, others, nil
}

func (l *layout) json(name string, into any) error {
	b, ok := l.files[name]
	l.used[name] = true
	switch {
	case !ok:
		return &PartError{"layout entry " + quote(name), ErrMissing}
	case len(b) > maxManifest:
		return &PartError{"layout entry " + quote(name), tooLarge(int64(len(b)), maxManifest)}
	}
	if err := json.Unmarshal(b, into); err != nil {
		return &PartError{"layout entry " + quote(name), fmt.Errorf("%w: %w", ErrFormat, err)}
	}
	return nil
}

func (l *layout) fetch(d ocispec.Descriptor) ([]byte, error) {
	name := blobName(d.Digest)
	b, ok := l.files[name]
	if !ok {
		return nil, ErrMissing
	}
	l.used[name] = true
	return b, nil
}

func blobName(d digest.Digest) string { return ocispec.ImageBlobsDir + "/sha256/" + d.Encoded() }
