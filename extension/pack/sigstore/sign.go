package sigstore

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stilehost/stile/extension/pack"
)

// Sign returns a bundle, as JSON, with a signature of artifact by a key. It is in no log. Certificates need Sigstore's network:
// cosign sign-blob --bundle gets one.
func Sign(key ed25519.PrivateKey, artifact []byte) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("sigstore: this is not an Ed25519 private key")
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w", err)
	}
	hint, digest := sha256.Sum256(der), sha256.Sum256(artifact)
	b, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: pack.BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: base64.StdEncoding.EncodeToString(hint[:])},
		}},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: digest[:]},
			Signature:     ed25519.Sign(key, artifact),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("sigstore: %w", err)
	}
	return b, nil
}
