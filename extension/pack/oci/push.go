package oci

import (
	"bytes"
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/registry"
)

// Push puts a pack and its signatures into a registry, under the tag or the digest of ref, and returns the digest of its manifest,
// to pull by. The tag is set last. It does not send again what the registry already has, and leaves existing signatures. It ends
// as [Pull] does. An error is an *[Error].
func Push(ctx context.Context, ref string, p *pack.Pack, signatures []pack.Signature, opts Options) (string, error) {
	d, err := push(ctx, ref, p, signatures, opts)
	if err != nil {
		return "", registry.NewError("push", ref, opts.registry(), err)
	}
	return d.String(), nil
}

func push(ctx context.Context, ref string, p *pack.Pack, signatures []pack.Signature, opts Options) (_ digest.Digest, err error) {
	a, err := p.Artifact(signatures...)
	if err != nil {
		return "", err
	}
	if len(opts.Attach) > 0 {
		if err := a.AttachBundle(opts.Attach); err != nil {
			return "", err
		}
	}
	c, err := connect(ref, opts)
	if err != nil {
		return "", err
	}
	defer c.Close()
	ctx, stop := c.watch(ctx)
	defer stop()
	defer func() { err = registry.Slow(ctx, err) }()
	if d, err := c.Reference.Digest(); err == nil && d != a.Manifest.Digest {
		return "", fmt.Errorf("%w: the digest of the pack's manifest is %s", ErrReference, a.Manifest.Digest)
	}
	for _, root := range append([]ocispec.Descriptor{a.Manifest}, a.Signatures...) {
		if err := c.Store(ctx, registry.Blobs(a.Blobs), root); err != nil {
			return "", err
		}
	}
	if c.Reference.ValidateReferenceAsDigest() != nil {
		if err := c.PushReference(ctx, a.Manifest, bytes.NewReader(a.Blobs[a.Manifest.Digest]), c.Reference.Reference); err != nil {
			return "", err
		}
	}
	return a.Manifest.Digest, nil
}
