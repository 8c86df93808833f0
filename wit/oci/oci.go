// Package oci puts packages of WIT into OCI registries, in the format of wasm-pkg-tools, so that wkg fetches them: one artifact for each
// package, with its binary as the only layer. Programs that do not use registries need not import it.
package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/internal/registry"
)

// Media types of the format.
const (
	ConfigType = "application/vnd.wasm.config.v0+json"
	LayerType  = "application/wasm"
)

// maxManifest is more than such an artifact's manifest has, in bytes.
const maxManifest = 64 << 10

// Options say how to talk to a registry. The zero value uses https, without credentials.
type Options struct {
	// Username and Password are for the registry of the reference and its token service, and are sent to no other host.
	Username, Password string
	// PlainHTTP uses http instead of https. It then dials only loopback addresses.
	PlainHTTP bool
}

func (o Options) registry() registry.Options {
	return registry.Options{Username: o.Username, Password: o.Password, PlainHTTP: o.PlainHTTP, Metadata: maxManifest}
}

// config is the artifact's config.
type config struct {
	Created      time.Time       `json:"created"`
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	LayerDigests []digest.Digest `json:"layerDigests"`
	Component    component       `json:"component"`
}

type component struct {
	Exports []string `json:"exports"`
	Imports []string `json:"imports"`
}

// Push puts the binary of a package into a registry under the tag of ref, which by convention is the package's version, and returns the digest
// of the manifest. exports are the names of the package's interfaces and worlds. The same package gets the same digest, so a push of what is
// there changes nothing. The tag is set last. An error is a *[registry.Error]; it ends with ctx, or if the registry is too slow.
func Push(ctx context.Context, ref string, wasm []byte, exports []string, o Options) (string, error) {
	d, err := push(ctx, ref, wasm, exports, o)
	if err != nil {
		return "", registry.NewError("push", ref, o.registry(), err)
	}
	return d.String(), nil
}

func push(ctx context.Context, ref string, wasm []byte, exports []string, o Options) (_ digest.Digest, err error) {
	c, err := registry.Connect(ref, o.registry())
	if err != nil {
		return "", err
	}
	defer c.Close()
	if c.Reference.ValidateReferenceAsDigest() == nil {
		return "", fmt.Errorf("%w: name a tag to push to", registry.ErrReference)
	}
	ctx, stop := c.Watch(ctx, int64(len(wasm)))
	defer stop()
	defer func() { err = registry.Slow(ctx, err) }()
	blobs := registry.Blobs{}
	add := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		blobs[d.Digest] = content
		return d
	}
	layer := add(LayerType, wasm)
	about, err := json.Marshal(config{
		Created: time.Unix(0, 0).UTC(), Architecture: "wasm", OS: "wasip2", LayerDigests: []digest.Digest{layer.Digest},
		Component: component{Exports: append([]string{}, exports...), Imports: []string{}},
	})
	if err != nil {
		return "", err
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: add(ConfigType, about), Layers: []ocispec.Descriptor{layer},
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return "", err
	}
	root := add(ocispec.MediaTypeImageManifest, text)
	if err := c.Store(ctx, blobs, root); err != nil {
		return "", err
	}
	return root.Digest, c.PushReference(ctx, root, bytes.NewReader(text), c.Reference.Reference)
}
