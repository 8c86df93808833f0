package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/bundle"
)

// bundleFlags say whose Sigstore bundle is required. They have the names of cosign's flags.
type bundleFlags struct {
	Bundle                string `placeholder:"FILE" help:"Sigstore bundle of the file, as cosign sign-blob --bundle writes it. Default for a registry: what cosign sign attached."`
	CertificateIdentity   string `placeholder:"NAME" help:"Who must have signed, as the bundle's certificate names them: an email address, or the URI of a workflow."`
	CertificateOIDCIssuer string `name:"certificate-oidc-issuer" placeholder:"URL" help:"Who vouched for --certificate-identity."`
	TrustedRoot           string `placeholder:"FILE" help:"Sigstore trusted root, in JSON: the authorities and logs to trust. With --key, the signature must be in its log."`
	Key                   string `placeholder:"FILE" help:"File with the public key, in PEM, that must have signed the bundle; replaces --certificate-identity."`
}

// verifier returns the verifier that the flags ask for, or nil if none of them was given.
func (f bundleFlags) verifier(ctx context.Context, from string) (*bundle.Verifier, error) {
	if f == (bundleFlags{}) {
		return nil, nil
	}
	if f.Bundle == "" && !strings.HasPrefix(from, ociScheme) {
		return nil, usagef("--bundle is required when importing a file")
	}
	p := bundle.Policy{Identity: f.CertificateIdentity, Issuer: f.CertificateOIDCIssuer}
	var err error
	if f.TrustedRoot != "" {
		if p.TrustedRoot, err = readFile(f.TrustedRoot, bundle.MaxTrustedRoot); err != nil {
			return nil, err
		}
	}
	if f.Key != "" {
		if p.Key, err = readFile(f.Key, maxKey); err != nil {
			return nil, err
		}
	}
	if err := p.Check(); err != nil {
		return nil, usagef("give --key, or --certificate-identity with --certificate-oidc-issuer and --trusted-root: %w", err)
	}
	program, err := findHelper(sigstoreHelper)
	if err != nil {
		return nil, err
	}
	v, err := bundle.New(ctx, program, p)
	if errors.Is(err, bundle.ErrTrust) {
		err = &usageError{err}
	}
	return v, err
}

// writeBundle signs the bytes that a bundle covers, and writes the bundle.
func writeBundle(name string, key ed25519.PrivateKey, signed []byte) error {
	b, err := bundle.Sign(key, signed)
	if err != nil {
		return err
	}
	return writeFile(name, b)
}

// manifestOf returns the manifest that a bundle signs for a pack in a registry.
func manifestOf(p *pack.Pack) ([]byte, error) {
	a, err := p.Artifact()
	if err != nil {
		return nil, err
	}
	return a.Blobs[a.Manifest.Digest], nil
}
