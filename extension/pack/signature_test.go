package pack_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/extension/pack"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))

func newKey(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func sign(t *testing.T, key ed25519.PrivateKey, p *pack.Pack) pack.Signature {
	t.Helper()
	s, err := pack.Sign(key, digest(t, p), "ada@example.com", when)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignVerify(t *testing.T) {
	public, private := newKey(t)
	other, another := newKey(t)
	p := sample()
	s := sign(t, private, p)
	signer, err := pack.Verify(p, []pack.Signature{pack.Signature("junk"), sign(t, another, p), s}, []ed25519.PublicKey{public})
	if err != nil || !signer.Key.Equal(public) || signer.Who != "ada@example.com" || !signer.When.Equal(when.Truncate(time.Second)) {
		t.Errorf("got %+v, %v", signer, err)
	}
	if signer, err := pack.Verify(p, []pack.Signature{s}, []ed25519.PublicKey{other, nil, public}); err != nil || !signer.Key.Equal(public) {
		t.Errorf("got %+v, %v", signer, err)
	}
}

// TestEnvelope reads a signature as the documents of DSSE and in-toto have it, without this package.
func TestEnvelope(t *testing.T) {
	public, private := newKey(t)
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig []byte }
	}
	if err := json.Unmarshal(sign(t, private, sample()), &e); err != nil {
		t.Fatal(err)
	}
	signed := fmt.Sprintf("DSSEv1 28 application/vnd.in-toto+json %d %s", len(e.Payload), e.Payload)
	if e.PayloadType != "application/vnd.in-toto+json" || !ed25519.Verify(public, []byte(signed), e.Signatures[0].Sig) {
		t.Errorf("got %+v", e)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + strings.TrimPrefix(digest(t, sample()), "sha256:") +
		`"}}],"predicateType":"https://github.com/stilehost/stile/extension/signature/v1","predicate":{"who":"ada@example.com","when":"2026-01-02T02:04:05Z"}}`
	if string(e.Payload) != want {
		t.Errorf("got %s, want %s", e.Payload, want)
	}
}

// seal makes an envelope of anything, signed with a trusted key.
func seal(t *testing.T, key ed25519.PrivateKey, payloadType, payload string) pack.Signature {
	t.Helper()
	return marshal(t, map[string]any{
		"payloadType": payloadType, "payload": []byte(payload),
		"signatures": []any{map[string]any{"sig": ed25519.Sign(key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload))}},
	})
}

func TestVerifyRefuses(t *testing.T) {
	const kind = "application/vnd.in-toto+json"
	public, private := newKey(t)
	_, stranger := newKey(t)
	p, changed := sample(), sample()
	changed.Files["tool.ts"] = []byte("evil")
	good := string(sign(t, private, p))
	payload := func(old, with string) string {
		text := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + strings.TrimPrefix(digest(t, p), "sha256:") +
			`"}}],"predicateType":"https://github.com/stilehost/stile/extension/signature/v1","predicate":{"who":"ada","when":"2026-01-02T02:04:05Z"}}`
		if !strings.Contains(text, old) {
			t.Fatalf("no %s in the payload", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	if _, err := pack.Verify(p, []pack.Signature{seal(t, private, kind, payload("", ""))}, []ed25519.PublicKey{public}); err != nil {
		t.Fatalf("a statement made by hand: %v", err)
	}
	for _, c := range []struct {
		name       string
		signatures []pack.Signature
		want       error
	}{
		{"none", nil, pack.ErrUnsigned},
		{"by a stranger", []pack.Signature{sign(t, stranger, p)}, pack.ErrUntrusted},
		{"of another pack", []pack.Signature{sign(t, private, changed)}, pack.ErrOtherPack},
		{"payload type swapped", []pack.Signature{pack.Signature(strings.Replace(good, kind, "text/plain", 1))}, pack.ErrPayloadType},
		{"payload type swapped to ours", []pack.Signature{pack.Signature(strings.Replace(string(seal(t, private, "text/plain", payload("", ""))), "text/plain", kind, 1))}, pack.ErrUntrusted},
		{"payload of another type", []pack.Signature{seal(t, private, "text/plain", payload("", ""))}, pack.ErrPayloadType},
		{"statement of another type", []pack.Signature{seal(t, private, kind, payload("Statement/v1", "Statement/v2"))}, pack.ErrPayloadType},
		{"predicate of another type", []pack.Signature{seal(t, private, kind, payload("signature/v1", "report/v1"))}, pack.ErrPayloadType},
		{"another algorithm", []pack.Signature{seal(t, private, kind, payload("sha256", "sha1"))}, pack.ErrOtherPack},
		{"no subject", []pack.Signature{seal(t, private, kind, payload("subject", "object"))}, pack.ErrOtherPack},
		{"nobody", []pack.Signature{seal(t, private, kind, payload("ada", ""))}, pack.ErrFormat},
		{"somebody who cannot be seen", []pack.Signature{seal(t, private, kind, payload("ada", `\u202e`))}, pack.ErrFormat},
		{"payload that is no JSON", []pack.Signature{seal(t, private, kind, "x")}, pack.ErrFormat},
		{"not JSON", []pack.Signature{pack.Signature("x")}, pack.ErrFormat},
		{"empty", []pack.Signature{nil}, pack.ErrFormat},
		{"more after it", []pack.Signature{pack.Signature(good + "{}")}, pack.ErrFormat},
		{"too large", []pack.Signature{pack.Signature(good + strings.Repeat(" ", 16<<10))}, pack.ErrTooLarge},
		{"no signatures in it", []pack.Signature{pack.Signature(good[:strings.Index(good, `"signatures"`)] + `"signatures":[]}`)}, pack.ErrUntrusted},
	} {
		t.Run(c.name, func(t *testing.T) {
			signer, err := pack.Verify(p, c.signatures, []ed25519.PublicKey{public})
			refused(t, err, "signature", c.want)
			if signer != nil {
				t.Errorf("signed by %+v", signer)
			}
		})
	}
	if _, err := pack.Verify(p, []pack.Signature{pack.Signature(good)}, nil); !errors.Is(err, pack.ErrUntrusted) {
		t.Errorf("with no key trusted: %v", err)
	}
	if _, err := pack.Verify(changed, []pack.Signature{pack.Signature(good)}, []ed25519.PublicKey{public}); !errors.Is(err, pack.ErrOtherPack) {
		t.Errorf("of a pack that was changed: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	_, private := newKey(t)
	d := digest(t, sample())
	for name, c := range map[string]struct {
		key         ed25519.PrivateKey
		digest, who string
	}{
		"no key":            {nil, d, "ada"},
		"no digest":         {private, "", "ada"},
		"half a digest":     {private, d[:20], "ada"},
		"another algorithm": {private, "sha512:" + strings.Repeat("0", 128), "ada"},
		"nobody":            {private, d, ""},
		"an escape":         {private, d, "ada\x1b[2J"},
		"a long name":       {private, d, strings.Repeat("a", 257)},
	} {
		if _, err := pack.Sign(c.key, c.digest, c.who, when); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The keys of RFC 8410, section 10.
const (
	privateKey = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
	publicKey  = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
)

func TestKeys(t *testing.T) {
	private, err := pack.ParsePrivateKey([]byte(privateKey))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pack.ParsePublicKey([]byte(publicKey))
	if err != nil || !public.Equal(private.Public()) {
		t.Fatalf("got %x, %v", public, err)
	}
	if b, err := pack.EncodePrivateKey(private); err != nil || string(b) != privateKey {
		t.Errorf("got %s, %v", b, err)
	}
	if b, err := pack.EncodePublicKey(public); err != nil || string(b) != publicKey {
		t.Errorf("got %s, %v", b, err)
	}
}

// TestKeysTogether has a file that holds both halves of a key.
func TestKeysTogether(t *testing.T) {
	for _, text := range []string{privateKey + publicKey, publicKey + "\n" + privateKey} {
		private, err := pack.ParsePrivateKey([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if public, err := pack.ParsePublicKey([]byte(text)); err != nil || !public.Equal(private.Public()) {
			t.Errorf("got %x, %v", public, err)
		}
	}
}

func TestKeysRefused(t *testing.T) {
	const p256 = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n"
	for _, text := range []string{"", "x", privateKey[:60], publicKey[:60], p256, publicKey + publicKey + privateKey + privateKey, strings.Replace(publicKey, "MCow", "MCox", 1)} {
		if k, err := pack.ParsePublicKey([]byte(text)); err == nil {
			t.Errorf("%q is %x", text, k)
		}
		k, err := pack.ParsePrivateKey([]byte(text))
		if err == nil || strings.Contains(err.Error(), "1hK1bb") {
			t.Errorf("%q is %x, %v", text, k, err)
		}
	}
	if _, err := pack.ParsePublicKey([]byte(privateKey)); err == nil {
		t.Error("a private key was taken for a public one")
	}
}

func FuzzVerify(f *testing.F) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	p := sample()
	d, err := p.Digest()
	if err != nil {
		f.Fatal(err)
	}
	good, err := pack.Sign(private, d, "ada", when)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(good))
	f.Add([]byte(`{"payload":"e30="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		signer, err := pack.Verify(p, []pack.Signature{b}, []ed25519.PublicKey{private.Public().(ed25519.PublicKey)})
		if err == nil && (signer.Who != "ada" || !signer.When.Equal(when.Truncate(time.Second))) {
			t.Errorf("a signature was made without the key: %s says %+v", b, signer)
		}
	})
}
