// Package sigstore verifies Sigstore bundles (v0.3), as cosign sign-blob --bundle writes them for a file and cosign sign attaches
// them in a registry: by a signer's certificate, or by a key. It works offline: the trusted root is given, and the bundle contains
// the statements of logs and timestamp authorities. Programs that do not use Sigstore need not import it.
package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	sigbundle "github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/bundle"
	"github.com/stilehost/stile/internal/printable"
)

const (
	maxReason = 500 // bytes of a library's message about strangers' input

	// signPredicate is the predicate of cosign sign. Other statements about a pack, such as that it has a fault, are not signatures.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Verifier verifies bundles by one policy. Any number of goroutines may use it.
type Verifier struct {
	verifier *verify.Verifier
	who      verify.PolicyOption
	signer   bundle.Signer
}

// New returns a verifier. The error wraps [bundle.ErrPolicy] if parts of the policy are missing or superfluous, and
// [bundle.ErrTrust] if the root or the key is not valid.
func New(p bundle.Policy) (*Verifier, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	v, err := newVerifier(p)
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w: %w", bundle.ErrTrust, err)
	}
	return v, nil
}

func newVerifier(p bundle.Policy) (*Verifier, error) {
	keyless := p.Keyless()
	var trusted root.TrustedMaterialCollection
	if len(p.TrustedRoot) > 0 {
		r, err := root.NewTrustedRootFromJSON(p.TrustedRoot)
		if err != nil {
			return nil, fmt.Errorf("the trusted root: %w", err)
		}
		trusted = append(trusted, r)
	}
	var options []verify.VerifierOption
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	v := &Verifier{signer: bundle.Signer{Identity: p.Identity, Issuer: p.Issuer}}
	if keyless {
		if len(trusted.CTLogs()) > 0 {
			options = append(options, verify.WithSignedCertificateTimestamps(1))
		}
		options = append(options, verify.WithObserverTimestamps(1))
		identity, err := verify.NewShortCertificateIdentity(p.Issuer, "", p.Identity, "")
		if err != nil {
			return nil, err
		}
		v.who = verify.WithCertificateIdentity(identity)
	} else {
		if len(trusted) > 0 && len(options) == 0 {
			return nil, errors.New("the trusted root has no transparency log, and for a key only that is used")
		}
		key, name, err := parseKey(p.Key)
		if err != nil {
			return nil, fmt.Errorf("the key: %w", err)
		}
		// The key in a bundle is only a hint, and there is one key.
		always := root.NewExpiringKey(key, time.Time{}, time.Time{})
		trusted = append(trusted, root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return always, nil }))
		options = append(options, verify.WithNoObserverTimestamps())
		v.who, v.signer.Key = verify.WithKey(), name
	}
	var err error
	v.verifier, err = verify.NewVerifier(trusted, append(options, verify.WithoutStatementPredicate())...)
	return v, err
}

// Verify returns who signed artifact, if the bundle says so and the policy accepts it. The bundle holds a signature of the bytes, or
// a statement of cosign sign about their digest. An error is a *[pack.PartError] that wraps [bundle.ErrRefused], [bundle.ErrFormat]
// or [pack.ErrTooLarge].
func (v *Verifier) Verify(text, artifact []byte) (*bundle.Signer, error) {
	if len(text) > pack.MaxBundle {
		return nil, &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: %d bytes, and %d are allowed", pack.ErrTooLarge, len(text), pack.MaxBundle)}
	}
	var b sigbundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return nil, fail(bundle.ErrFormat, err)
	}
	if b.MediaType != pack.BundleType {
		return nil, fail(bundle.ErrFormat, fmt.Errorf("but %s", b.MediaType))
	}
	if c, err := b.VerificationContent(); err == nil && c.Certificate() == nil && v.signer.Key == "" {
		return nil, fail(bundle.ErrRefused, errors.New("it was made with a key, but an identity is required"))
	}
	result, err := v.verifier.Verify(&b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(artifact)), v.who))
	if err != nil {
		return nil, fail(bundle.ErrRefused, err)
	}
	if s := result.Statement; s != nil && s.PredicateType != signPredicate {
		return nil, fail(bundle.ErrRefused, fmt.Errorf("it is another kind of statement than a signature: %s", s.PredicateType))
	}
	signer := v.signer
	if len(result.VerifiedTimestamps) > 0 {
		signer.When = result.VerifiedTimestamps[0].Timestamp.UTC()
	}
	return &signer, nil
}

// fail returns why a bundle is invalid or refused. It makes the text printable, because a stranger may have written part of it.
func fail(what, why error) error {
	return &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: %s", what, printable.Short(why.Error(), maxReason))}
}

// parseKey returns a verifier for signatures by a key, and the name of the key.
func parseKey(text []byte) (signature.Verifier, string, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(der)
	name := "sha256:" + hex.EncodeToString(sum[:])
	if key, ok := key.(ed25519.PublicKey); ok {
		v, err := newEd25519(key)
		return v, name, err
	}
	v, err := signature.LoadDefaultVerifier(key)
	return v, name, err
}

// ed25519Verifier accepts both variants: cosign signs with Ed25519ph for a log, and otherwise with Ed25519.
type ed25519Verifier struct{ pure, prehashed signature.Verifier }

func newEd25519(key ed25519.PublicKey) (v ed25519Verifier, err error) {
	if v.pure, err = signature.LoadED25519Verifier(key); err == nil {
		v.prehashed, err = signature.LoadED25519phVerifier(key)
	}
	return v, err
}

func (v ed25519Verifier) PublicKey(opts ...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return v.pure.PublicKey(opts...)
}

func (v ed25519Verifier) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	s, err := io.ReadAll(sig)
	if err != nil {
		return err
	}
	m, err := io.ReadAll(message)
	if err != nil {
		return err
	}
	if v.pure.VerifySignature(bytes.NewReader(s), bytes.NewReader(m), opts...) == nil {
		return nil
	}
	return v.prehashed.VerifySignature(bytes.NewReader(s), bytes.NewReader(m), opts...)
}
