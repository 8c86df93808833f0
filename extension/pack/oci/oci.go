// Package oci keeps extension packs in OCI registries: one artifact for each pack, as in a file of package pack, with each signature
// as a referrer. It does not trust registries: what they serve is bounded and must match its digest, even from a cache, and
// credentials go only to their own registry. Programs that do not use registries need not import it.
package oci

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
)

// Options say how to talk to a registry. The zero value uses https, without credentials, within the default limits.
type Options struct {
	// Username and Password are for the registry of the reference and its token service, and are sent to no other host.
	Username, Password string
	// RootCAs are the trusted certificate authorities. Nil means those of the system.
	RootCAs *x509.CertPool
	// PlainHTTP uses http instead of https. It then dials only loopback addresses.
	PlainHTTP bool
	// Bundles pulls the Sigstore bundles of a pack too, at most as many as signatures.
	Bundles bool
	// Attach is a Sigstore bundle that a push adds to the pack. It is empty for none.
	Attach []byte
	// Limits bound what is pulled.
	Limits pack.Limits
	// Cache keeps blobs between pulls. Nil means that there is none.
	Cache Cache

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests
}

// Cache keeps contents by kind and key. Its results are checked like a registry's, and after an error the client asks the registry,
// so a cache need not be trusted. One goroutine at a time uses it.
type Cache interface {
	Get(kind, key string) (content []byte, found bool, err error)
	Put(kind, key string, content []byte) error
}

// Error reports a push or a pull that failed. Its text never contains the password, even if a registry repeats it.
type Error struct {
	Op, Ref string // Op is "push" or "pull"
	// Err wraps a *[pack.PartError] for a faulty pack, oras's errdef.ErrNotFound or *errcode.ErrorResponse for the registry's
	// answer, one of the errors below, or the error of the context or the network.
	Err error

	redactor *secret.Redactor
}

func newError(op, ref string, opts Options, err error) *Error {
	return &Error{op, ref, err, secret.NewRedactor(opts.Password)}
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

// client talks to one repository, for one push or pull.
type client struct {
	*remote.Repository
	*transport
	opts Options
}

// watch returns a context for the whole push or pull, which ends if the registry is too slow.
func (c *client) watch(ctx context.Context) (_ context.Context, stop func()) {
	return c.pace.watch(ctx, c.opts.Limits.Component+c.opts.Limits.Source)
}

func connect(ref string, opts Options) (*client, error) {
	r, err := registry.ParseReference(ref)
	if err != nil || r.Reference == "" {
		return nil, errors.Join(ErrReference, err)
	}
	opts.Limits = opts.Limits.WithDefaults()
	t := newTransport(r.Host(), opts)
	return &client{
		Repository: &remote.Repository{
			Client: &auth.Client{
				Client: &http.Client{Transport: retry.NewTransport(t)}, // registries are busy at times
				Credential: func(_ context.Context, host string) (auth.Credential, error) {
					if host != r.Host() {
						return auth.EmptyCredential, nil
					}
					return auth.Credential{Username: opts.Username, Password: opts.Password}, nil
				},
				Cache:  auth.NewCache(),
				Header: http.Header{"User-Agent": {"stile"}},
			},
			Reference: r,
			PlainHTTP: opts.PlainHTTP,
			// Not every registry allows deletions.
			SkipReferrersGC:      true,
			ReferrerListMaxPages: maxPages,
			MaxMetadataBytes:     maxManifest,
		},
		transport: t,
		opts:      opts,
	}, nil
}
