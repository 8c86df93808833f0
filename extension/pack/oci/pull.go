package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/registry"
)

// Pulled is a pack from a registry.
type Pulled struct {
	Pack *pack.Pack
	// Signatures are not verified: see [pack.Verify].
	Signatures []pack.Signature
	// Bundles are the bundles that [Options.Bundles] asks for. They are not verified: see package sigstore.
	Bundles [][]byte
	// Digest is the digest of the manifest. Use it to pull the same pack again, because a tag may move.
	Digest string
}

// Pull gets the pack that ref names by tag or by digest, with its signatures. It looks up a tag once. Everything else is fetched by
// digest and checked against it, whether it comes from the registry or the cache. It ends with ctx, and with [ErrSlow] if the registry
// sends nothing for half a minute, or less than 16 KiB a second after two minutes. An error is an *[Error].
func Pull(ctx context.Context, ref string, opts Options) (*Pulled, error) {
	p, err := pull(ctx, ref, opts)
	if err != nil {
		return nil, registry.NewError("pull", ref, opts.registry(), err)
	}
	return p, nil
}

func pull(ctx context.Context, ref string, opts Options) (_ *Pulled, err error) {
	c, err := connect(ref, opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, stop := c.watch(ctx)
	defer stop()
	defer func() { err = registry.Slow(ctx, err) }()
	manifest, err := c.root(ctx)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, fmt.Errorf("the registry has no such name, tag or digest: %w", errdef.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	p, err := pack.Decode(manifest, c.opts.Limits, func(d ocispec.Descriptor) ([]byte, error) { return c.blob(ctx, d) })
	if err != nil {
		return nil, err
	}
	subject := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))}
	pulled := &Pulled{Pack: p, Digest: subject.Digest.String()}
	pulled.Signatures, err = referrers(ctx, c, "signature", pack.SignatureType, subject, pack.DecodeSignature)
	if err == nil && c.opts.Bundles {
		pulled.Bundles, err = referrers(ctx, c, "bundle", pack.BundleType, subject, pack.DecodeBundle)
	}
	if err != nil {
		return nil, err
	}
	return pulled, nil
}

// maxManifest is how many bytes of a manifest, or of a page of referrers, are read. A byte of a page can take 200 in memory. Package pack
// allows fewer for manifests.
const maxManifest = 512 << 10

// root gets the manifest that the reference names.
func (c *client) root(ctx context.Context) ([]byte, error) {
	if d, err := c.Reference.Digest(); err == nil {
		return c.manifest(ctx, d)
	}
	return c.fetch(ctx, c.Reference.Reference)
}

// manifest gets a manifest by its digest.
func (c *client) manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, &pack.PartError{Part: "artifact", Err: fmt.Errorf("%w: %w", pack.ErrFormat, err)}
	}
	if b := c.cached(d); b != nil {
		return b, nil
	}
	b, err := c.fetch(ctx, d.String())
	if err != nil {
		return nil, err
	}
	if d.Algorithm().FromBytes(b) != d {
		return nil, &pack.PartError{Part: "artifact", Err: pack.ErrDigest}
	}
	c.keep(d, b)
	return b, nil
}

func (c *client) fetch(ctx context.Context, reference string) ([]byte, error) {
	b, _, err := c.Manifest(ctx, reference)
	return b, err
}

// blob gets a blob whose size package pack has admitted and whose digest it will check.
func (c *client) blob(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	if b := c.cached(d.Digest); b != nil {
		return b, nil
	}
	body, err := c.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	b, err := registry.Read(body, d.Size, d.Size)
	if err == nil && digest.FromBytes(b) == d.Digest {
		c.keep(d.Digest, b)
	}
	return b, err
}

// vague are the types under which some lists of referrers, and cosign before 3.1, list manifests of other types: the type of an empty
// config, and no type.
var vague = map[string]bool{"": true, ocispec.MediaTypeEmptyJSON: true}

// maxReferrers is the maximum number of manifests to examine.
const maxReferrers = 100

// referrers gets the manifests of one type that refer to a manifest. Registries without the referrers API have a tag for that.
func referrers[T any](
	ctx context.Context, c *client, part, artifactType string, subject ocispec.Descriptor, decode func([]byte, digest.Digest, pack.Fetch) (T, error),
) ([]T, error) {
	var all []T
	looked := 0
	err := c.Referrers(ctx, subject, "", func(referrers []ocispec.Descriptor) error {
		referrers = slices.DeleteFunc(referrers, func(d ocispec.Descriptor) bool { return d.ArtifactType != artifactType && !vague[d.ArtifactType] })
		if looked += len(referrers); looked > maxReferrers {
			return &pack.PartError{Part: part, Err: fmt.Errorf("%w: more than %d", pack.ErrTooLarge, maxReferrers)}
		}
		for _, d := range referrers {
			manifest, err := c.manifest(ctx, d.Digest)
			if err != nil {
				return err
			}
			var is struct{ ArtifactType string }
			if vague[d.ArtifactType] && (json.Unmarshal(manifest, &is) != nil || is.ArtifactType != artifactType) {
				continue
			}
			one, err := decode(manifest, subject.Digest, func(d ocispec.Descriptor) ([]byte, error) { return c.blob(ctx, d) })
			if err != nil {
				return err
			}
			if all = append(all, one); len(all) > c.opts.Limits.Signatures {
				return &pack.PartError{Part: part, Err: fmt.Errorf("%w: more than %d", pack.ErrTooLarge, c.opts.Limits.Signatures)}
			}
		}
		return nil
	})
	return all, err
}

const cacheKind = "oci"

// cached returns the cache's content for a digest, if it matches.
func (c *client) cached(d digest.Digest) []byte {
	if c.opts.Cache == nil {
		return nil
	}
	b, ok, err := c.opts.Cache.Get(cacheKind, d.String())
	if !ok || err != nil || d.Algorithm().FromBytes(b) != d {
		return nil
	}
	return b
}

// keep stores content with this digest in the cache. A failing cache only costs the next pull time.
func (c *client) keep(d digest.Digest, b []byte) {
	if c.opts.Cache != nil {
		_ = c.opts.Cache.Put(cacheKind, d.String(), b)
	}
}
