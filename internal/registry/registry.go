// Package registry speaks to OCI registries for the packages that keep something there. It does not trust registries: documents are bounded,
// an exchange ends if nothing passes, redirects lead to no address that only this machine or its network can reach, and credentials go only to
// their own registry. It does not check digests: its callers do.
package registry

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
)

// Options say how to talk to a registry. The zero value uses https, without credentials.
type Options struct {
	// Username and Password are for the registry of the reference and its token service, and are sent to no other host.
	Username, Password string
	// RootCAs are the trusted certificate authorities. Nil means those of the system.
	RootCAs *x509.CertPool
	// PlainHTTP uses http instead of https. It then dials only loopback addresses.
	PlainHTTP bool
	// Metadata bounds a manifest, or a page of a list, in bytes. It is required.
	Metadata int64
	// Dial makes connections in place of a dialer that checks addresses. It is for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Error reports a push or a pull that failed. Its text never contains the password, even if a registry repeats it.
type Error struct {
	Op, Ref string // Op is "push" or "pull"
	// Err wraps oras's errdef.ErrNotFound or *errcode.ErrorResponse for the registry's answer, one of the errors below, the error of the context
	// or the network, or what is wrong with the content.
	Err error

	redactor *secret.Redactor
}

// NewError returns the error of an exchange with these options.
func NewError(op, ref string, o Options, err error) *Error {
	return &Error{op, ref, err, secret.NewRedactor(o.Password)}
}

// Errors for what this package refuses to do.
var (
	ErrReference = errors.New("a reference must be REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST")
	ErrAddress   = errors.New("the address must not be dialled, because it is not public")
	ErrScheme    = errors.New("the registry redirects to another scheme")
)

// Error implements error. It is printable, though a registry may have written part of it.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Op, printable.Short(e.Ref, maxMessage), printable.Short(e.redactor.Redact(e.Err.Error()), maxMessage))
}

const maxMessage = 1000 // bytes

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

const maxPages = 100 // of a list of referrers

// Client talks to one repository, for one push or pull. Its holder closes it.
type Client struct {
	*remote.Repository
	*transport
	metadata int64
}

// Connect returns a client for the repository of a reference. It sends nothing yet.
func Connect(ref string, o Options) (*Client, error) {
	r, err := registry.ParseReference(ref)
	if err != nil || r.Reference == "" {
		return nil, errors.Join(ErrReference, err)
	}
	t := newTransport(r.Host(), o)
	return &Client{
		Repository: &remote.Repository{
			Client: &auth.Client{
				Client: &http.Client{Transport: retry.NewTransport(t)}, // registries are busy at times
				Credential: func(_ context.Context, host string) (auth.Credential, error) {
					if host != r.Host() {
						return auth.EmptyCredential, nil
					}
					return auth.Credential{Username: o.Username, Password: o.Password}, nil
				},
				Cache:  auth.NewCache(),
				Header: http.Header{"User-Agent": {"stile"}},
			},
			Reference: r,
			PlainHTTP: o.PlainHTTP,
			// Not every registry allows deletions.
			SkipReferrersGC:      true,
			ReferrerListMaxPages: maxPages,
			MaxMetadataBytes:     o.Metadata,
		},
		transport: t,
		metadata:  o.Metadata,
	}, nil
}

// Manifest gets a manifest by a tag or a digest, with the media type that the registry states. At most one byte more than Options.Metadata
// is read.
func (c *Client) Manifest(ctx context.Context, reference string) (content []byte, mediaType string, err error) {
	d, body, err := c.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return nil, "", err
	}
	content, err = Read(body, min(d.Size, c.metadata), c.metadata)
	return content, d.MediaType, err
}

// Read reads at most one byte more than most, and closes the body. It makes room for what probably has a size.
func Read(body io.ReadCloser, size, most int64) ([]byte, error) {
	b, err := bounded.ReadSized(body, size, most+1)
	if errors.Is(err, bounded.ErrTooLarge) {
		err = nil // the caller sees that there is more than most
	}
	if closing := body.Close(); err == nil {
		err = closing
	}
	return b, err
}

// Close closes the idle connections.
func (c *Client) Close() { c.close() }
