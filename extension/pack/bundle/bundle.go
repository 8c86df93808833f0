// Package bundle makes Sigstore bundles (v0.3) of packs, and says who signed one. Verification needs libraries that would be a ninth
// of stile and a third of its packages, so a separate program, stile-sigstore, does it. Package sigstore, a separate module, does
// the work and can be called without the program.
package bundle

import (
	"errors"
	"fmt"
	"time"
)

// Policy says whose signature is required: either by a certificate, with Identity, Issuer and TrustedRoot, or by Key.
type Policy struct {
	// Identity is the subject alternative name of the certificate, in full: a mail address, or the URI of a workflow.
	Identity string
	// Issuer is the URL of the OpenID Connect provider that vouched for Identity.
	Issuer string
	// TrustedRoot is a Sigstore trusted root, as JSON: authorities and logs. Everything in it is required: certificate logs require
	// a certificate recorded in one of them, and transparency logs require an entry in one of them. With Key it may be absent; then
	// no log is required.
	TrustedRoot []byte
	// Key is a public key as PEM (PKIX): ECDSA, Ed25519 or RSA.
	Key []byte
}

// MaxTrustedRoot is the largest trusted root, in bytes.
const MaxTrustedRoot = 4 << 20

// The possible errors.
var (
	ErrPolicy  = errors.New("the policy does not say whose signature is required")
	ErrTrust   = errors.New("the trusted root or key cannot be used")
	ErrFormat  = errors.New("it is not a Sigstore bundle of version 0.3")
	ErrRefused = errors.New("refused")
)

// Check checks a policy without reading its root and key. The error wraps [ErrPolicy] if parts of the policy are missing or
// superfluous, and [ErrTrust] if the root is too large.
func (p Policy) Check() error {
	keyless := p.Keyless()
	problem := ""
	switch {
	case keyless && len(p.Key) > 0:
		problem = "a key and an identity exclude each other"
	case keyless && (p.Identity == "" || p.Issuer == "" || len(p.TrustedRoot) == 0):
		problem = "an identity, its issuer and a trusted root belong together"
	case !keyless && len(p.Key) == 0:
		problem = "a key, or an identity and its issuer, is missing"
	case len(p.TrustedRoot) > MaxTrustedRoot:
		return fmt.Errorf("sigstore: %w: the trusted root has more than %d bytes", ErrTrust, MaxTrustedRoot)
	default:
		return nil
	}
	return fmt.Errorf("sigstore: %w: %s", ErrPolicy, problem)
}

// Keyless reports whether a certificate is required.
func (p Policy) Keyless() bool { return p.Identity != "" || p.Issuer != "" }

// Signer says who made a signature, and when, as far as that was proved.
type Signer struct {
	// Identity and Issuer are as in the policy. They are empty for a key.
	Identity, Issuer string
	// Key is "sha256:" and the SHA-256, in hexadecimal, of the public key (PKIX); empty for a certificate.
	Key string
	// When is the time that a log or a timestamp authority states. It is zero for a key.
	When time.Time
}

// String says in one line who signed: the identity and who vouched for it, or the key.
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
