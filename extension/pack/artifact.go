package pack

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The types of an extension, of a signature and of a Sigstore bundle as OCI artifacts. The last two have the extension as their
// subject.
const (
	ArtifactType  = "application/vnd.stile.extension.v1"
	SignatureType = "application/vnd.stile.signature.v1"
	BundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

const (
	configMediaType   = "application/vnd.stile.extension.config.v1+json"
	sourceMediaType   = "application/vnd.stile.extension.source.v1.tar"
	envelopeMediaType = "application/vnd.dsse.envelope.v1+json"
)

// Artifact is a pack and its signatures in the form of the OCI image specification, which files and registries share.
// The config is the description whose digest names the pack; the layers are the source and the other parts. One pack has
// one artifact, byte for byte.
type Artifact struct {
	// Manifest describes the manifest of the pack.
	Manifest ocispec.Descriptor
	// Signatures describe the manifests of the signatures and bundles.
	Signatures []ocispec.Descriptor
	// Blobs are all contents, manifests among them.
	Blobs map[digest.Digest][]byte
}

// Artifact returns the pack as an artifact. An error is a *[PartError] that says what a pack may not contain.
func (p *Pack) Artifact(signatures ...Signature) (*Artifact, error) {
	config, err := p.describe()
	if err != nil {
		return nil, err
	}
	a := &Artifact{Blobs: map[digest.Digest][]byte{}}
	var layers []ocispec.Descriptor
	if p.HasSource() {
		source, err := writeTar(p.Files)
		if err != nil {
			return nil, &PartError{"source", err}
		}
		layers = append(layers, a.add(sourceMediaType, source))
	}
	for _, part := range parts {
		if b := *part.bytes(p); len(b) > 0 {
			layers = append(layers, a.add(part.mediaType, b))
		}
	}
	if a.Manifest, err = a.addManifest(ArtifactType, a.add(configMediaType, config), layers, nil); err != nil {
		return nil, err
	}
	for _, s := range signatures {
		if len(s) > maxSignature {
			return nil, &PartError{"signature", tooLarge(int64(len(s)), maxSignature)}
		}
		if err := a.attach(SignatureType, envelopeMediaType, s); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// AttachBundle adds a Sigstore bundle to the signatures, as cosign sign does in a registry.
func (a *Artifact) AttachBundle(bundle []byte) error {
	if len(bundle) > MaxBundle {
		return &PartError{"bundle", tooLarge(int64(len(bundle)), MaxBundle)}
	}
	return a.attach(BundleType, BundleType, bundle)
}

// attach adds a manifest that refers to that of the pack.
func (a *Artifact) attach(artifactType, layerType string, b []byte) error {
	subject := ocispec.Descriptor{MediaType: a.Manifest.MediaType, Digest: a.Manifest.Digest, Size: a.Manifest.Size}
	// Some registries list what refers to a manifest by the type of its config.
	config := a.add(artifactType, ocispec.DescriptorEmptyJSON.Data)
	d, err := a.addManifest(artifactType, config, []ocispec.Descriptor{a.add(layerType, b)}, &subject)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(a.Signatures, func(other ocispec.Descriptor) bool { return other.Digest == d.Digest }) {
		a.Signatures = append(a.Signatures, d)
	}
	return nil
}

func (a *Artifact) add(mediaType string, b []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	a.Blobs[d.Digest] = b
	return d
}

func (a *Artifact) addManifest(artifactType string, config ocispec.Descriptor, layers []ocispec.Descriptor, subject *ocispec.Descriptor) (ocispec.Descriptor, error) {
	b, err := json.Marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType,
		Config:       config,
		Layers:       layers,
		Subject:      subject,
	})
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("write the manifest of an artifact: %w", err)
	}
	d := a.add(ocispec.MediaTypeImageManifest, b)
	d.ArtifactType = artifactType
	return d, nil
}

// Fetch gets the bytes of a blob, at most one byte more than the descriptor says. Its caller checks them.
type Fetch func(ocispec.Descriptor) ([]byte, error)

// Decode assembles the pack that an OCI manifest describes. It checks each blob against its digest and size, and the whole against
// the result of [Pack.Artifact], so manifest is the only one of this pack. An error is a *[PartError].
func Decode(manifest []byte, limits Limits, fetch Fetch) (*Pack, error) {
	limits = limits.WithDefaults()
	m, err := parseManifest("artifact", manifest, ArtifactType)
	if err != nil {
		return nil, err
	}
	if m.Config.MediaType != configMediaType {
		return nil, &PartError{"config", unknownType(m.Config.MediaType)}
	}
	p := &Pack{}
	var config struct{ Entry, Engine string } // the rest follows from the layers
	b, err := fetch.verified("config", m.Config, limits.Part)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return nil, &PartError{"config", fmt.Errorf("%w: %w", ErrFormat, err)}
	}
	p.Entry, p.Engine = config.Entry, config.Engine
	for _, layer := range m.Layers {
		if err := p.addLayer(layer, limits, fetch); err != nil {
			return nil, err
		}
	}
	if p.Files == nil && p.HasSource() {
		return nil, &PartError{"source", ErrMissing}
	}
	same, err := p.Artifact()
	switch {
	case err != nil:
		return nil, err
	case same.Blobs[m.Config.Digest] == nil:
		return nil, &PartError{"config", fmt.Errorf("%w: it describes other parts than these", ErrFormat)}
	case same.Manifest.Digest != digest.FromBytes(manifest):
		return nil, &PartError{"artifact", fmt.Errorf("%w: it has unknown fields, or is formatted in another way", ErrFormat)}
	default:
		return p, nil
	}
}

func (p *Pack) addLayer(layer ocispec.Descriptor, limits Limits, fetch Fetch) error {
	if layer.MediaType == sourceMediaType {
		if p.Files != nil {
			return &PartError{"source", ErrDuplicate}
		}
		b, err := fetch.verified("source", layer, limits.archive())
		if err != nil {
			return err
		}
		p.Files, err = readSource(b, limits)
		return err
	}
	i := slices.IndexFunc(parts, func(part part) bool { return part.mediaType == layer.MediaType })
	if i < 0 {
		return &PartError{"artifact", fmt.Errorf("a layer is %w", unknownType(layer.MediaType))}
	}
	part := parts[i]
	field := part.bytes(p)
	if *field != nil {
		return &PartError{part.name, ErrDuplicate}
	}
	b, err := fetch.verified(part.name, layer, part.limit(limits))
	*field = b
	return err
}

// DecodeSignature returns the signature in an OCI manifest whose subject is the manifest of a pack with this digest. It
// does not check who signed, or what: [Verify] does. An error is a *[PartError].
func DecodeSignature(manifest []byte, subject digest.Digest, fetch Fetch) (Signature, error) {
	return decodeReferrer("signature", manifest, SignatureType, envelopeMediaType, subject, maxSignature, fetch)
}

// DecodeBundle is DecodeSignature for a Sigstore bundle, as cosign sign attaches it. It is not verified: see package sigstore.
func DecodeBundle(manifest []byte, subject digest.Digest, fetch Fetch) ([]byte, error) {
	return decodeReferrer("bundle", manifest, BundleType, BundleType, subject, MaxBundle, fetch)
}

// decodeReferrer returns the only layer of a manifest that refers to a pack.
func decodeReferrer(part string, manifest []byte, artifactType, layerType string, subject digest.Digest, limit int64, fetch Fetch) ([]byte, error) {
	m, err := parseManifest(part, manifest, artifactType)
	switch {
	case err != nil:
		return nil, err
	case m.Subject == nil || m.Subject.Digest != subject:
		return nil, &PartError{part, ErrOtherPack}
	case len(m.Layers) != 1 || m.Layers[0].MediaType != layerType:
		return nil, &PartError{part, fmt.Errorf("%w: exactly one layer of %s is required", ErrFormat, layerType)}
	}
	return fetch.verified(part, m.Layers[0], limit)
}

// parseManifest reads an OCI manifest of one type of artifact.
func parseManifest(part string, b []byte, artifactType string) (*ocispec.Manifest, error) {
	if len(b) > maxManifest {
		return nil, &PartError{part, tooLarge(int64(len(b)), maxManifest)}
	}
	var m ocispec.Manifest
	switch err := json.Unmarshal(b, &m); {
	case err != nil:
		return nil, &PartError{part, fmt.Errorf("%w: %w", ErrFormat, err)}
	case m.MediaType != ocispec.MediaTypeImageManifest:
		return nil, &PartError{part, unknownType(m.MediaType)}
	case m.ArtifactType != artifactType:
		return nil, &PartError{part, unknownType(m.ArtifactType)}
	}
	return &m, nil
}

// verified fetches a blob after checking its description, and checks the blob against it.
func (fetch Fetch) verified(part string, d ocispec.Descriptor, limit int64) ([]byte, error) {
	switch {
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256:
		return nil, &PartError{part, fmt.Errorf("%w: %s is not a SHA-256 digest", ErrFormat, quote(d.Digest.String()))}
	case d.Size > limit:
		return nil, &PartError{part, tooLarge(d.Size, limit)}
	}
	b, err := fetch(ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size})
	switch {
	case err != nil:
		return nil, &PartError{part, err}
	case int64(len(b)) != d.Size || digest.FromBytes(b) != d.Digest:
		return nil, &PartError{part, ErrDigest}
	default:
		return b, nil
	}
}

func tooLarge(size, limit int64) error {
	return fmt.Errorf("%w: %d bytes, and %d are allowed", ErrTooLarge, size, limit)
}

func unknownType(mediaType string) error { return fmt.Errorf("%w: %s", ErrMediaType, quote(mediaType)) }
