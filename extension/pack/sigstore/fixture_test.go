package sigstore_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/sigstore/sigstoretest"
)

const (
	identity = "ada@example.com"
	issuer   = "https://accounts.example.com"
)

var artifact = []byte("an extension")

// network is a Sigstore whose failures end the test.
type network struct {
	*sigstoretest.Network
	t *testing.T
}

func newNetwork(t *testing.T) network {
	t.Helper()
	n, err := sigstoretest.New()
	check(t, err)
	return network{n, t}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (n network) root(log, timestamps, certificateLog bool) []byte {
	n.t.Helper()
	r, err := n.Root(sigstoretest.Parts{Log: log, Timestamps: timestamps, CertificateLog: certificateLog})
	check(n.t, err)
	return r
}

func (n network) sign(who, by string, what []byte, logged time.Time) *protobundle.Bundle {
	n.t.Helper()
	b, err := n.SignBlob(who, by, what, logged)
	check(n.t, err)
	return b
}

func (n network) attest(predicateType string, about []byte, rekor int) *protobundle.Bundle {
	n.t.Helper()
	b, err := n.Attest(identity, issuer, predicateType, about, rekor)
	check(n.t, err)
	return b
}

// text is a bundle as a file has it.
func text(t *testing.T, b *protobundle.Bundle) []byte {
	t.Helper()
	s, err := protojson.Marshal(b)
	check(t, err)
	return s
}

func publicPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	check(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newEd25519(t *testing.T) (public []byte, private ed25519.PrivateKey) {
	t.Helper()
	key, private, err := ed25519.GenerateKey(nil)
	check(t, err)
	return publicPEM(t, key), private
}

func newECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func newRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	return key
}

// signed is a bundle by a key, in no log.
func signed(what, signature []byte) *protobundle.Bundle {
	sum := sha256.Sum256(what)
	return &protobundle.Bundle{
		MediaType: pack.BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: "whatever"}},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     signature,
		}},
	}
}
