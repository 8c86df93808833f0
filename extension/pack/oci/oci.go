// Package oci keeps extension packs in OCI registries: one artifact for each pack, as in a file of package pack, with each signature
// as a referrer. It does not trust registries: what they serve is bounded and must match its digest, even from a cache, and
// credentials go only to their own registry. Programs that do not use registries need not import it.
package oci

import (
	"context"
	"crypto/x509"
	"net"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/registry"
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

// Error reports a push or a pull that failed. Its text never contains the password, even if a registry repeats it. Err wraps a
// *[pack.PartError] for a faulty pack, oras's errdef.ErrNotFound or *errcode.ErrorResponse for the registry's answer, one of the errors below,
// or the error of the context or the network.
type Error = registry.Error

// Errors for what this package refuses to do, and of a registry that sends and takes nothing for half a minute, or too little over the whole
// time.
var (
	ErrReference = registry.ErrReference
	ErrAddress   = registry.ErrAddress
	ErrScheme    = registry.ErrScheme
	ErrSlow      = registry.ErrSlow
)

// client talks to one repository, for one push or pull.
type client struct {
	*registry.Client
	opts Options
}

// watch returns a context for the whole push or pull, which ends if the registry is too slow.
func (c *client) watch(ctx context.Context) (_ context.Context, stop func()) {
	return c.Watch(ctx, c.opts.Limits.Component+c.opts.Limits.Source)
}

// registry are the options of the exchange.
func (o Options) registry() registry.Options {
	return registry.Options{Username: o.Username, Password: o.Password, RootCAs: o.RootCAs, PlainHTTP: o.PlainHTTP, Metadata: maxManifest, Dial: o.dial}
}

func connect(ref string, opts Options) (*client, error) {
	opts.Limits = opts.Limits.WithDefaults()
	c, err := registry.Connect(ref, opts.registry())
	if err != nil {
		return nil, err
	}
	return &client{c, opts}, nil
}
