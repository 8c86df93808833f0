// Package pull makes images for sandboxes of what OCI registries have. Programs that do not use registries need not import it.
package pull

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/internal/registry"
)

// Options say how to talk to a registry. The zero value uses https, without credentials.
type Options struct {
	// Username and Password are for the registry of the reference and its token service, and are sent to no other host.
	Username, Password string
	// RootCAs are the trusted certificate authorities. Nil means those of the system.
	RootCAs *x509.CertPool
	// PlainHTTP uses http instead of https. It then dials only loopback addresses.
	PlainHTTP bool
	// Progress is told how far the pull is, from one goroutine: once for each layer, and at most once a second besides. Default: nobody.
	Progress func(images.Progress)

	dial  func(ctx context.Context, network, address string) (net.Conn, error) // for tests
	pause time.Duration                                                        // before a layer is continued; default a second
}

// Error is the error of a pull. Its text is printable and never contains the password.
type Error = registry.Error

// Errors for what a pull refuses to do, and of a registry that sends nothing for half a minute, or too little over the whole time.
var (
	ErrReference = registry.ErrReference
	ErrAddress   = registry.ErrAddress
	ErrScheme    = registry.ErrScheme
	ErrSlow      = registry.ErrSlow
)

// Image pulls the image that ref names by tag or by digest, for this machine's platform, and keeps it in dir under a name. It looks up a tag
// once. Everything else is fetched by digest and checked against it while it is unpacked: see [images.Import], which also says what is left
// out. A layer whose connection breaks is continued where it broke, if the registry can do that. So is one of a pull that
// ctx, the registry or a kill ended within the last day: what came of its layers stays in dir until an image has them. The image's Digest is that of its manifest,
// to pull the same image again by. It ends with ctx. An error is an *[Error], and leaves what was there before.
func Image(ctx context.Context, dir, name, ref string, o Options) (images.Image, error) {
	to := registry.Options{Username: o.Username, Password: o.Password, RootCAs: o.RootCAs, PlainHTTP: o.PlainHTTP, Metadata: images.MaxDocument, Dial: o.dial}
	i, err := image(ctx, dir, name, ref, o, to)
	if err != nil {
		return images.Image{}, registry.NewError("pull", ref, to, err)
	}
	return i, nil
}

func image(ctx context.Context, dir, name, ref string, o Options, to registry.Options) (_ images.Image, err error) {
	c, err := registry.Connect(ref, to)
	if err != nil {
		return images.Image{}, err
	}
	defer c.Close()
	ctx, stop := c.Watch(ctx, images.MaxPacked)
	defer stop()
	defer func() { err = registry.Slow(ctx, err) }()
	root, mediaType, err := c.Manifest(ctx, c.Reference.Reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return images.Image{}, fmt.Errorf("the registry has no such name, tag or digest: %w", errdef.ErrNotFound)
	}
	if err != nil {
		return images.Image{}, err
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(root), Size: int64(len(root))}
	if wanted, err := c.Reference.Digest(); err == nil && wanted != d.Digest {
		return images.Image{}, fmt.Errorf("the registry's answer has the digest %s", d.Digest)
	}
	if o.pause == 0 {
		o.pause = time.Second
	}
	k := newKept(dir)
	for {
		s := &source{Client: c, digest: d.Digest, root: root, pause: o.pause, kept: k}
		i, err := images.Import(ctx, dir, name, images.Origin{Source: s, Roots: []v1.Descriptor{d}, Name: "OCI image " + ref, Progress: o.Progress})
		// What came is worth keeping if the registry, or the caller, ended the pull.
		failed := k.close(err != nil && (s.broken || ctx.Err() != nil))
		again := err != nil && ctx.Err() == nil && !s.broken && (k.bytes > 0 || errors.Is(err, syscall.ENOSPC)) && !k.off
		if !again {
			return i, errors.Join(err, failed)
		}
		k.off = true // it may be that what was kept is damaged, or that there is no room for it
	}
}

// source has the blobs of a repository, and the document that the reference names.
type source struct {
	*registry.Client
	digest digest.Digest
	root   []byte
	pause  time.Duration
	kept   *kept
	broken bool // the registry did not send all of a layer
}

// Blob implements [images.Source].
func (s *source) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	switch {
	case d.Digest == s.digest:
		return io.NopCloser(bytes.NewReader(s.root)), nil
	case d.Size > images.MaxPacked: // what Import does not check before
		return nil, fmt.Errorf("%d bytes; at most %d", d.Size, int64(images.MaxPacked))
	case isManifest(d.MediaType):
		return s.Manifests().Fetch(ctx, d)
	}
	l := &layer{ctx: ctx, source: s, descriptor: d, tries: maxTries}
	if isLayer(d.MediaType) {
		l.file, l.has = s.kept.layer(d)
	}
	if l.has > 0 {
		l.ReadCloser = io.NopCloser(io.NewSectionReader(l.file, 0, l.has))
		return l, nil
	}
	if err := l.fetch(); err != nil {
		s.broken = true
		return nil, err
	}
	return l, nil
}

// isLayer reports whether something is a layer, and not the configuration of an image.
func isLayer(mediaType string) bool {
	return strings.Contains(mediaType, "layer") || strings.Contains(mediaType, "rootfs")
}

// isManifest reports whether a registry keeps something among its manifests.
func isManifest(mediaType string) bool {
	for _, part := range []string{"manifest", "image.index"} {
		if strings.Contains(mediaType, part) {
			return true
		}
	}
	return false
}

// maxTries is how often a layer is continued.
const maxTries = 5

// layer is a body that continues when its connection breaks.
type layer struct {
	io.ReadCloser
	ctx        context.Context //nolint:containedctx // of one pull
	source     *source
	descriptor v1.Descriptor
	at         int64 // bytes that were read
	tries      int
	file       *os.File // where it is kept, or nil
	has        int64    // bytes of the file from earlier pulls, which are read first
}

// Read implements [io.Reader].
func (l *layer) Read(p []byte) (int, error) {
	for {
		n, err := l.ReadCloser.Read(p)
		if l.file != nil && n > 0 && l.at >= l.has && l.at < l.descriptor.Size {
			if _, err := l.file.WriteAt(p[:n], l.at); err != nil {
				_, l.file = l.file.Truncate(l.at), nil // there is no room to keep it
			}
		}
		l.at += int64(n)
		switch {
		case n > 0 || err == nil:
			return n, nil // an error comes again
		case l.has > 0 && l.at == l.has && l.at < l.descriptor.Size: // what was kept ends here
			l.has = 0
			if err := l.fetch(); err != nil {
				l.source.broken = true
				return 0, err
			}
			continue
		case !errors.Is(err, io.EOF):
		case l.at >= l.descriptor.Size:
			return 0, io.EOF
		default:
			err = io.ErrUnexpectedEOF
		}
		if l.ctx.Err() != nil || l.tries == 0 || l.at >= l.descriptor.Size {
			l.source.broken = true
			return 0, err
		}
		l.tries--
		if failed := l.again(); failed != nil {
			l.source.broken = true
			return 0, errors.Join(err, failed)
		}
	}
}

// again opens the body anew, where it broke.
func (l *layer) again() error {
	select {
	case <-time.After(l.source.pause):
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
	return l.fetch()
}

// fetch opens the body from where it was read to.
func (l *layer) fetch() error {
	body, err := l.source.Blobs().Fetch(l.ctx, l.descriptor)
	if err != nil {
		return err
	}
	ranged, ok := body.(io.Seeker)
	switch {
	case l.at == 0:
	case ok:
		_, err = ranged.Seek(l.at, io.SeekStart)
	default:
		_, err = io.CopyN(io.Discard, body, l.at)
	}
	if err != nil {
		return errors.Join(err, body.Close())
	}
	if l.ReadCloser != nil {
		_ = l.Close() // it is broken, or all of it was read
	}
	l.ReadCloser = body
	return nil
}
