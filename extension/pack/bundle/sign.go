package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension/pack"
)

// signed is the JSON of a bundle with a signature by a key.
type signed struct {
	MediaType string `json:"mediaType"`
	Material  struct {
		PublicKey struct {
			Hint []byte `json:"hint"` // text in the format, which cosign fills with the digest of the key in Base64
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Signature struct {
		Digest struct {
			Algorithm string `json:"algorithm"`
			Digest    []byte `json:"digest"`
		} `json:"messageDigest"`
		Signature []byte `json:"signature"`
	} `json:"messageSignature"`
}

// Sign returns a bundle, as JSON, with a signature of artifact by a key. The signature is in no log. Certificates need Sigstore's
// network: cosign sign-blob --bundle makes such a bundle.
func Sign(key ed25519.PrivateKey, artifact []byte) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("sigstore: this is not an Ed25519 private key")
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w", err)
	}
	hint, digest := sha256.Sum256(der), sha256.Sum256(artifact)
	b := signed{MediaType: pack.BundleType}
	b.Material.PublicKey.Hint = hint[:]
	b.Signature.Digest.Algorithm, b.Signature.Digest.Digest = "SHA2_256", digest[:]
	b.Signature.Signature = ed25519.Sign(key, artifact)
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w", err)
	}
	return text, nil
}
