// Package sigstore verifies Sigstore bundles (v0.3), as cosign sign-blob --bundle writes them for a file and cosign sign
// attaches them in a registry: by a certificate for who signed, or by a key. It asks nobody: the trusted root is given, and
// what logs and timestamp authorities said stands in the bundle. Embedders that want no Sigstore do not import it.
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

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension/pack"
)

// Policy says whose signature is asked for: that of a certificate, with Identity, Issuer and TrustedRoot, or that of Key.
type Policy struct {
	// Identity is the subject alternative name of the certificate, in full: a mail address, or the URI of a workflow.
	Identity string
	// Issuer is the URL of who vouched for Identity, by OpenID Connect.
	Issuer string
	// TrustedRoot is a Sigstore trusted root, as JSON: authorities and logs. What it has is required: with certificate logs a
	// certificate that one of them recorded, with transparency logs an entry in one of them. With Key it may be absent; then no
	// log is asked for.
	TrustedRoot []byte
	// Key is a public key as PEM (PKIX): ECDSA, Ed25519 or RSA.
	Key []byte
}

// Signer is who made a signature, and when, as far as that was proved.
type Signer struct {
	// Identity and Issuer are those of the policy; empty for a key.
	Identity, Issuer string
	// Key is "sha256:" and the SHA-256, in hexadecimal, of the public key (PKIX); empty for a certificate.
	Key string
	// When is what a log or a timestamp authority says; zero for a key.
	When time.Time
}

// What may be wrong.
var (
	ErrPolicy  = errors.New("this does not say whose signature is asked for")
	ErrTrust   = errors.New("what to verify by cannot be used")
	ErrFormat  = errors.New("it is not a Sigstore bundle of version 0.3")
	ErrRefused = errors.New("refused")
)

const (
	maxRoot   = 4 << 20 // bytes
	maxReason = 500     // bytes of what a library says of what strangers wrote

	// signPredicate is that of cosign sign. Other statements about a pack, such as that it has a fault, are no signatures.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Verifier verifies bundles by one policy. Any number of goroutines may use it.
type Verifier struct {
	verifier *verify.Verifier
	who      verify.PolicyOption
	signer   Signer
}

// New returns a verifier. The error wraps [ErrPolicy] when parts of the policy are missing or too many, and [ErrTrust] when the
// root or the key is not one.
func New(p Policy) (*Verifier, error) {
	if problem := p.problem(); problem != "" {
		return nil, fmt.Errorf("sigstore: %w: %s", ErrPolicy, problem)
	}
	v, err := newVerifier(p)
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w: %w", ErrTrust, err)
	}
	return v, nil
}

// problem says what the policy lacks or has too much of.
func (p Policy) problem() string {
	keyless := p.keyless()
	switch {
	case keyless && len(p.Key) > 0:
		return "a key and an identity exclude each other"
	case keyless && (p.Identity == "" || p.Issuer == "" || len(p.TrustedRoot) == 0):
		return "an identity, its issuer and a trusted root belong together"
	case !keyless && len(p.Key) == 0:
		return "a key, or an identity and its issuer, is missing"
	default:
		return ""
	}
}

func (p Policy) keyless() bool { return p.Identity != "" || p.Issuer != "" }

func newVerifier(p Policy) (*Verifier, error) {
	keyless := p.keyless()
	if len(p.TrustedRoot) > maxRoot {
		return nil, fmt.Errorf("the trusted root has more than %d bytes", maxRoot)
	}
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
	v := &Verifier{signer: Signer{Identity: p.Identity, Issuer: p.Issuer}}
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
			return nil, errors.New("the trusted root has no transparency log, and of a key nothing else is looked up")
		}
		key, name, err := parseKey(p.Key)
		if err != nil {
			return nil, fmt.Errorf("the key: %w", err)
		}
		// What a bundle says of its key is a hint, and there is one key.
		always := root.NewExpiringKey(key, time.Time{}, time.Time{})
		trusted = append(trusted, root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return always, nil }))
		options = append(options, verify.WithNoObserverTimestamps())
		v.who, v.signer.Key = verify.WithKey(), name
	}
	var err error
	v.verifier, err = verify.NewVerifier(trusted, append(options, verify.WithoutStatementPredicate())...)
	return v, err
}

// Verify returns who signed artifact, when the bundle says so and the policy asks for them. The bundle holds a signature of the
// bytes, or a statement of cosign sign about their digest. An error is a *[pack.PartError]; it wraps [ErrRefused], [ErrFormat] or
// [pack.ErrTooLarge].
func (v *Verifier) Verify(text, artifact []byte) (*Signer, error) {
	if len(text) > pack.MaxBundle {
		return nil, &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: %d bytes, and %d are allowed", pack.ErrTooLarge, len(text), pack.MaxBundle)}
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return nil, fail(ErrFormat, err)
	}
	if b.MediaType != pack.BundleType {
		return nil, fail(ErrFormat, fmt.Errorf("but %s", b.MediaType))
	}
	if c, err := b.VerificationContent(); err == nil && c.Certificate() == nil && v.signer.Key == "" {
		return nil, fail(ErrRefused, errors.New("it was made with a key, and an identity is asked for"))
	}
	result, err := v.verifier.Verify(&b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(artifact)), v.who))
	if err != nil {
		return nil, fail(ErrRefused, err)
	}
	if s := result.Statement; s != nil && s.PredicateType != signPredicate {
		return nil, fail(ErrRefused, fmt.Errorf("it is a statement of another kind than a signature: %s", s.PredicateType))
	}
	signer := v.signer
	if len(result.VerifiedTimestamps) > 0 {
		signer.When = result.VerifiedTimestamps[0].Timestamp.UTC()
	}
	return &signer, nil
}

// fail says why a bundle is none or is refused, printably: a stranger may have written part of it.
func fail(what, why error) error {
	return &pack.PartError{Part: "bundle", Err: fmt.Errorf("%w: %s", what, abi.PrintableCut(why.Error(), maxReason))}
}

// String says who signed in one line: the identity and who vouched for it, or the key.
func (s *Signer) String() string {
	who := "key " + s.Key
	if s.Key == "" {
		who = fmt.Sprintf("%s (%s)", s.Identity, s.Issuer)
	}
	if s.When.IsZero() {
		return who
	}
	return who + " on " + s.When.UTC().Format(time.RFC3339)
}

// parseKey returns what verifies signatures of a key, and the name of the key.
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

// ed25519Verifier takes both variants: cosign signs with Ed25519ph what goes to a log, and with Ed25519 what does not.
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
