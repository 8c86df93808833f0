package pack

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Keys are those of crypto/ed25519, which also generates them. The caller stores them. The functions below convert them to the forms
// that openssl and others read: PKCS #8 and PKIX, in PEM.
const (
	privatePEM = "PRIVATE KEY"
	publicPEM  = "PUBLIC KEY"
)

// EncodePrivateKey returns a private key as PEM (PKCS #8), not encrypted.
func EncodePrivateKey(key ed25519.PrivateKey) ([]byte, error) {
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privatePEM, Bytes: b}), nil
}

// EncodePublicKey returns a public key as PEM (PKIX).
func EncodePublicKey(key ed25519.PublicKey) ([]byte, error) {
	b, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicPEM, Bytes: b}), nil
}

// ParsePrivateKey reads what [EncodePrivateKey] or openssl genpkey -algorithm ed25519 wrote. Errors contain no part of the key.
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) {
	return parseKey[ed25519.PrivateKey](text, privatePEM, x509.ParsePKCS8PrivateKey)
}

// ParsePublicKey reads what [EncodePublicKey] or openssl pkey -pubout wrote.
func ParsePublicKey(text []byte) (ed25519.PublicKey, error) {
	return parseKey[ed25519.PublicKey](text, publicPEM, x509.ParsePKIXPublicKey)
}

func parseKey[K any](text []byte, kind string, parse func([]byte) (any, error)) (K, error) {
	var none K
	var found []*pem.Block
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == kind {
			found = append(found, block)
		}
	}
	switch len(found) {
	case 0:
		return none, fmt.Errorf("read a key: there is no %s in PEM", kind)
	case 1:
	default:
		return none, fmt.Errorf("read a key: the file has %d of %s, and must have one", len(found), kind)
	}
	key, err := parse(found[0].Bytes)
	if err != nil {
		return none, errors.New("read a key: the PEM holds none")
	}
	k, ok := key.(K)
	if !ok {
		return none, fmt.Errorf("read a key: it is not an Ed25519 %s", kind)
	}
	return k, nil
}
