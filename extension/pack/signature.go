package pack

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
)

// Signature is a DSSE envelope, as JSON, with one Ed25519 signature over an in-toto statement (v1). The statement has the
// digest of a pack as its subject, and a predicate that says who signed and when. Both formats are those of the
// documents github.com/secure-systems-lab/dsse and github.com/in-toto/attestation.
type Signature []byte

// Signer is who signed a pack.
type Signer struct {
	// Key is the trusted key that made the signature. The caller, who trusts this key, knows its owner.
	Key ed25519.PublicKey
	// Who and When are claims by the holder of Key. Nothing else proves them.
	Who  string
	When time.Time
}

// The possible faults of a signature, besides its form.
var (
	ErrUnsigned    = errors.New("there is none")
	ErrUntrusted   = errors.New("not made by a trusted key")
	ErrOtherPack   = errors.New("of another pack")
	ErrPayloadType = errors.New("its payload is not a statement about a pack")
)

const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://github.com/stilehost/stile/extension/signature/v1"
	maxWho        = 256 // bytes
)

type envelope struct {
	PayloadType string              `json:"payloadType"`
	Payload     []byte              `json:"payload"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	Sig []byte `json:"sig"`
}

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Digest map[string]string `json:"digest"` // by algorithm, in hexadecimal
}

type predicate struct {
	Who  string    `json:"who"`
	When time.Time `json:"when"`
}

// Sign signs the pack of a digest, as [Pack.Digest] returns it. who is printable text of at most 256 bytes, such as a mail
// address; when is kept to the second, in UTC.
func Sign(key ed25519.PrivateKey, packDigest, who string, when time.Time) (Signature, error) {
	d, err := digest.Parse(packDigest)
	switch {
	case err != nil || d.Algorithm() != digest.SHA256:
		return nil, fmt.Errorf("sign an extension pack: %s is not the digest of one", quote(packDigest))
	case len(key) != ed25519.PrivateKeySize:
		return nil, errors.New("sign an extension pack: this is not an Ed25519 private key")
	case who == "" || len(who) > maxWho || !plain(who):
		return nil, fmt.Errorf("sign an extension pack: who signs is 1 to %d bytes of printable text, and not %s", maxWho, quote(who))
	}
	payload, err := json.Marshal(statement{
		Type:          statementType,
		Subject:       []subject{{map[string]string{d.Algorithm().String(): d.Encoded()}}},
		PredicateType: predicateType,
		Predicate:     predicate{who, when.UTC().Truncate(time.Second)},
	})
	if err != nil {
		return nil, fmt.Errorf("sign an extension pack: %w", err)
	}
	sig := ed25519.Sign(key, encodePayload(payloadType, payload))
	s, err := json.Marshal(envelope{payloadType, payload, []envelopeSignature{{sig}}})
	if err != nil {
		return nil, fmt.Errorf("sign an extension pack: %w", err)
	}
	return s, nil
}

// Verify returns who signed the pack, according to the first signature made by a trusted key for this pack. Other
// signatures do not matter, because anybody can add one. If there is no such signature, the error joins a *[PartError]
// for each signature.
func Verify(p *Pack, signatures []Signature, trusted []ed25519.PublicKey) (*Signer, error) {
	packDigest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	problems := make([]error, 0, len(signatures))
	for _, s := range signatures {
		signer, err := s.verify(packDigest, trusted)
		if err == nil {
			return signer, nil
		}
		problems = append(problems, &PartError{"signature", err})
	}
	if len(problems) == 0 {
		return nil, &PartError{"signature", ErrUnsigned}
	}
	return nil, errors.Join(problems...)
}

// verify reads the payload only if a trusted key signed it. It first checks the type, which the key covers too.
func (s Signature) verify(packDigest string, trusted []ed25519.PublicKey) (*Signer, error) {
	if len(s) > maxSignature {
		return nil, tooLarge(int64(len(s)), maxSignature)
	}
	var e envelope
	if err := json.Unmarshal(s, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if e.PayloadType != payloadType {
		return nil, fmt.Errorf("%w, but %s", ErrPayloadType, quote(e.PayloadType))
	}
	key := e.signer(trusted)
	if key == nil {
		return nil, ErrUntrusted
	}
	var st statement
	switch err := json.Unmarshal(e.Payload, &st); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	case st.Type != statementType || st.PredicateType != predicateType:
		return nil, fmt.Errorf("%w, but %s of type %s", ErrPayloadType, quote(st.PredicateType), quote(st.Type))
	case !slices.ContainsFunc(st.Subject, func(s subject) bool { return "sha256:"+s.Digest["sha256"] == packDigest }):
		return nil, ErrOtherPack
	case st.Predicate.Who == "" || len(st.Predicate.Who) > maxWho || !plain(st.Predicate.Who):
		return nil, fmt.Errorf("%w: it does not say who signed", ErrFormat)
	}
	return &Signer{Key: key, Who: st.Predicate.Who, When: st.Predicate.When}, nil
}

// signer returns the trusted key that made one of the signatures, or nil.
func (e *envelope) signer(trusted []ed25519.PublicKey) ed25519.PublicKey {
	message := encodePayload(e.PayloadType, e.Payload)
	for _, s := range e.Signatures {
		for _, key := range trusted {
			if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, s.Sig) {
				return key
			}
		}
	}
	return nil
}

// encodePayload returns the pre-authentication encoding of DSSE v1, which is what a key signs.
func encodePayload(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
