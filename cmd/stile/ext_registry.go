package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/bundle"
	"github.com/stilehost/stile/extension/pack/oci"
	"github.com/stilehost/stile/secret"
)

// ociScheme is the prefix of references to a registry.
const ociScheme = "oci://"

// registryFlags are the credentials for a registry.
type registryFlags struct {
	RegistryUser   string `placeholder:"NAME" help:"Name at the registry."`
	RegistrySecret string `placeholder:"SECRET" complete:"secret" help:"Name of the secret that holds the password; stile secret set keeps one."`
}

func (f registryFlags) options(ctx context.Context, e *extensions, ref string) (o oci.Options, err error) {
	o = oci.Options{Username: f.RegistryUser, PlainHTTP: onThisMachine(ref), Limits: packLimits}
	o.Password, err = f.password(ctx, e.secrets)
	return o, err
}

// password returns the value of the secret, or "" if none is named.
func (f registryFlags) password(ctx context.Context, secrets *credentials) (string, error) {
	if f.RegistrySecret == "" {
		return "", nil
	}
	password, err := secrets.Get(ctx, f.RegistrySecret)
	if errors.Is(err, secret.ErrNotFound) {
		err = usagef("--registry-secret: there is no secret %s: stile secret set %[1]s keeps one", f.RegistrySecret)
	}
	return password, err
}

// onThisMachine reports whether a registry has a loopback address, where it needs no TLS.
func onThisMachine(ref string) bool {
	host, _, _ := strings.Cut(ref, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return isLoopback(host)
}

// push uploads a pack to a registry.
func (c *extExport) push(ctx context.Context, s *streams, e *extensions, ref string, p *pack.Pack, digest string, key ed25519.PrivateKey, signatures []pack.Signature) error {
	o, err := c.options(ctx, e, ref)
	if err != nil {
		return err
	}
	if c.Bundle != "" {
		signed, err := manifestOf(p)
		if err == nil {
			o.Attach, err = bundle.Sign(key, signed)
		}
		if err == nil {
			err = writeFile(c.Bundle, o.Attach)
		}
		if err != nil {
			return err
		}
	}
	manifest, err := oci.Push(ctx, ref, p, signatures, o)
	if err != nil {
		return registryError(err)
	}
	if c.JSON {
		return printJSON(s.out, struct {
			Reference string `json:"reference"`
			// Manifest is the digest to pull by.
			Manifest string `json:"manifest"`
			Digest   string `json:"digest"`
			Signed   bool   `json:"signed"`
		}{c.Output, manifest, digest, len(signatures) > 0})
	}
	_, err = fmt.Fprintf(s.out, "%s: %s, pulled by %s\n", c.Output, digest, manifest)
	return err
}

// pull downloads a pack from a registry. It also downloads the bundles there, if one is required and none was given.
func (c *extImport) pull(ctx context.Context, s *streams, e *extensions, ref string) (*incoming, error) {
	o, err := c.options(ctx, e, ref)
	if err != nil {
		return nil, err
	}
	o.Bundles = c.bundleFlags != (bundleFlags{}) && c.Bundle == ""
	pulled, err := oci.Pull(ctx, ref, o)
	if err != nil {
		return nil, registryError(err)
	}
	s.say("stile: pulled %s", pulled.Digest)
	signed, err := manifestOf(pulled.Pack)
	return &incoming{pulled.Pack, pulled.Signatures, pulled.Bundles, signed}, err
}

// registryError blames the name that was given, or the machine if the network does not answer.
func registryError(err error) error {
	var network net.Error
	refused := errors.Is(err, oci.ErrAddress) || errors.Is(err, oci.ErrScheme)
	if errors.Is(err, context.Canceled) || errors.Is(err, oci.ErrSlow) || errors.As(err, &network) && !refused {
		return err
	}
	return &usageError{err}
}
