package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/bundle"
	"github.com/stilehost/stile/extension/pack/sigstore"
)

const signPredicate = "https://sigstore.dev/cosign/sign/v1"

func verifier(t *testing.T, p bundle.Policy) *sigstore.Verifier {
	t.Helper()
	v, err := sigstore.New(p)
	check(t, err)
	return v
}

func refuses(t *testing.T, v *sigstore.Verifier, b, what []byte, want error, why string) {
	t.Helper()
	signer, err := v.Verify(b, what)
	var part *pack.PartError
	if signer != nil || !errors.Is(err, want) || !errors.As(err, &part) || part.Part != "bundle" || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, %v; want %v: %s", signer, err, want, why)
	}
}

func TestCertificate(t *testing.T) {
	n := newNetwork(t)
	now := time.Now()
	soon := now.Add(time.Minute)
	both := n.sign(identity, issuer, artifact, soon)
	logged := n.sign(identity, issuer, artifact, soon)
	logged.VerificationMaterial.TimestampVerificationData = nil
	stamped := n.sign(identity, issuer, artifact, soon)
	stamped.VerificationMaterial.TlogEntries = nil
	for _, c := range []struct {
		name   string
		root   []byte
		bundle *protobundle.Bundle
	}{
		{"log and timestamp", n.root(true, true, false), both},
		{"log", n.root(true, false, false), logged},
		{"timestamp where there is no log", n.root(false, true, false), stamped},
		{"statement of cosign sign", n.root(true, true, false), n.attest(signPredicate, artifact, 1)},
		{"in a log that gives no time", n.root(true, true, false), n.attest(signPredicate, artifact, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			signer, err := verifier(t, bundle.Policy{Identity: identity, Issuer: issuer, TrustedRoot: c.root}).Verify(text(t, c.bundle), artifact)
			check(t, err)
			if signer.Identity != identity || signer.Issuer != issuer || signer.Key != "" || signer.When.Sub(now).Abs() > 2*time.Minute {
				t.Errorf("got %+v", signer)
			}
			if want := identity + " (" + issuer + ") on " + signer.When.Format(time.RFC3339); signer.String() != want {
				t.Errorf("got %s, want %s", signer, want)
			}
		})
	}
}

func TestCertificateRefused(t *testing.T) {
	n := newNetwork(t)
	soon := time.Now().Add(time.Minute)
	late := time.Now().Add(50 * time.Minute)
	all := n.root(true, true, false)
	other := n.sign(identity, issuer, []byte("another"), soon)
	byKey := signed(artifact, ed25519.Sign(ed25519.NewKeyFromSeed(make([]byte, 32)), artifact))
	changed := func(change func(*protobundle.Bundle)) *protobundle.Bundle {
		b := n.sign(identity, issuer, artifact, soon)
		change(b)
		return b
	}
	for _, c := range []struct {
		name   string
		root   []byte
		bundle *protobundle.Bundle
		why    string
	}{
		{"another artifact", all, other, "failed to verify signature"},
		{"a statement about another artifact", all, n.attest(signPredicate, []byte("another"), 1), "failed to verify signature"},
		{"a statement of another kind", all, n.attest("https://cosign.sigstore.dev/attestation/vuln/v1", artifact, 1), "another kind of statement"},
		{"another identity", all, n.sign("eve@example.com", issuer, artifact, soon), `got "eve@example.com"`},
		{"an identity that holds the other", all, n.sign("x"+identity, issuer, artifact, soon), "certificate identity"},
		{"another issuer", all, n.sign(identity, "https://accounts.example.org", artifact, soon), "certificate identity"},
		{"an identity with escapes", all, n.sign("eve\x1b[2J@example.com", issuer, artifact, soon), `eve\x1b[2J@example.com`},
		{"another Sigstore", newNetwork(t).root(true, true, false), changed(func(*protobundle.Bundle) {}), "failed to verify log inclusion"},
		{"another authority", newNetwork(t).root(false, true, false), changed(func(*protobundle.Bundle) {}), "failed to verify timestamps"},
		{"no log entry", all, changed(func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }), "failed to verify log inclusion"},
		{"the log entry of another signature", all, changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = other.VerificationMaterial.TlogEntries
		}), "failed to verify log inclusion"},
		{"a log entry without the log's promise and time", n.root(true, false, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].InclusionPromise = nil
		}), "failed to verify timestamps"},
		{"a time that the log did not promise", n.root(true, false, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].IntegratedTime++
		}), "failed to verify log inclusion"},
		{"another tree", all, changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].InclusionProof.RootHash[0]++
		}), "failed to verify log inclusion"},
		{"a log that gives no time, and no timestamp", n.root(true, false, false), n.attest(signPredicate, artifact, 2), "failed to verify timestamps"},
		{"no timestamp where there is no log", n.root(false, true, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = nil
		}), "failed to verify timestamps"},
		{"the timestamp of another signature", n.root(false, true, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = other.VerificationMaterial.TimestampVerificationData
		}), "failed to verify timestamps"},
		{"a root that trusts no clock", n.root(false, false, false), changed(func(*protobundle.Bundle) {}), "failed to verify timestamps"},
		{"recorded after the certificate ran out", n.root(true, false, false), n.sign(identity, issuer, artifact, late), "integrated time outside certificate validity"},
		{"recorded in time and too late", all, n.sign(identity, issuer, artifact, late), "integrated time outside certificate validity"},
		{"recorded before the certificate", n.root(true, false, false), n.sign(identity, issuer, artifact, time.Now().Add(-30*time.Minute)), "integrated time outside certificate validity"},
		{"a certificate that no log recorded", n.root(true, true, true), changed(func(*protobundle.Bundle) {}), "signed certificate timestamp"},
		{"the certificate of another signature", n.root(false, true, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = other.VerificationMaterial.Content
		}), "failed to verify signature"},
		{"another signature", n.root(false, true, false), changed(func(b *protobundle.Bundle) {
			b.GetMessageSignature().Signature = other.GetMessageSignature().GetSignature()
		}), "failed to verify timestamps"},
		{"another digest", all, changed(func(b *protobundle.Bundle) { b.GetMessageSignature().MessageDigest.Digest[0]++ }), ""},
		{"another algorithm", all, changed(func(b *protobundle.Bundle) {
			b.GetMessageSignature().MessageDigest.Algorithm = protocommon.HashAlgorithm_SHA2_512
		}), ""},
		{"a key", all, byKey, "made with a key, but an identity is required"},
		{"a key where there is no log", n.root(false, true, false), byKey, "made with a key, but an identity is required"},
		{"a key with the rest of a certificate's bundle", n.root(false, true, false), changed(func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = byKey.VerificationMaterial.Content
		}), "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, bundle.Policy{Identity: identity, Issuer: issuer, TrustedRoot: c.root})
			refuses(t, v, text(t, c.bundle), artifact, bundle.ErrRefused, c.why)
		})
	}
}

// TestPublicGood holds a bundle of Sigstore's public instance to its trusted root: log, certificate log, certificate and identity
// hold, and it is about something else.
func TestPublicGood(t *testing.T) {
	b := data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json").Bundle
	b.MediaType = pack.BundleType
	b.VerificationMaterial.Content = &protobundle.VerificationMaterial_Certificate{
		Certificate: b.GetVerificationMaterial().GetX509CertificateChain().GetCertificates()[0],
	}
	r, err := data.TrustedRoot(t, "public-good.json").MarshalJSON()
	check(t, err)
	v := verifier(t, bundle.Policy{
		Identity: "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main", Issuer: "https://token.actions.githubusercontent.com", TrustedRoot: r,
	})
	refuses(t, v, text(t, b), artifact, bundle.ErrRefused, "provided artifact digests do not match digests in statement")
	b.VerificationMaterial.TlogEntries = nil
	refuses(t, v, text(t, b), artifact, bundle.ErrRefused, "failed to verify log inclusion")
}

func TestKey(t *testing.T) {
	public, private := newEd25519(t)
	ec, rs := newECDSA(t), newRSA(t)
	sum, long := sha256.Sum256(artifact), sha512.Sum512(artifact)
	made := func(key crypto.Signer, digest []byte, o crypto.SignerOpts) []byte {
		s, err := key.Sign(rand.Reader, digest, o)
		check(t, err)
		return text(t, signed(artifact, s))
	}
	own, err := bundle.Sign(private, artifact)
	check(t, err)
	for _, c := range []struct {
		name   string
		key    []byte
		bundle []byte
	}{
		{"Ed25519", public, own},
		{"Ed25519ph", public, made(private, long[:], crypto.SHA512)},
		{"ECDSA", publicPEM(t, ec.Public()), made(ec, sum[:], crypto.SHA256)},
		{"RSA", publicPEM(t, rs.Public()), made(rs, sum[:], crypto.SHA256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, bundle.Policy{Key: c.key})
			signer, err := v.Verify(c.bundle, artifact)
			check(t, err)
			if signer.Identity != "" || !strings.HasPrefix(signer.Key, "sha256:") || !signer.When.IsZero() || signer.String() != "key "+signer.Key {
				t.Errorf("got %+v", signer)
			}
			refuses(t, v, c.bundle, []byte("another"), bundle.ErrRefused, "failed to verify signature")
			otherKey, _ := newEd25519(t)
			refuses(t, verifier(t, bundle.Policy{Key: otherKey}), c.bundle, artifact, bundle.ErrRefused, "failed to verify signature")
		})
	}
	n := newNetwork(t)
	v := verifier(t, bundle.Policy{Key: public})
	refuses(t, v, text(t, n.sign(identity, issuer, artifact, time.Now().Add(time.Minute))), artifact, bundle.ErrRefused, "expected key signature, not certificate")
	logged := verifier(t, bundle.Policy{Key: public, TrustedRoot: n.root(true, false, false)})
	refuses(t, logged, own, artifact, bundle.ErrRefused, "failed to verify log inclusion")
	key := publicPEM(t, ec.Public())
	b := &protobundle.Bundle{}
	check(t, protojson.Unmarshal(made(ec, sum[:], crypto.SHA256), b))
	check(t, n.Record(b, key, artifact))
	logged = verifier(t, bundle.Policy{Key: key, TrustedRoot: n.root(true, true, false)})
	if signer, err := logged.Verify(text(t, b), artifact); err != nil || signer.Key == "" {
		t.Errorf("in a log: got %+v, %v", signer, err)
	}
	b.VerificationMaterial.TlogEntries[0].InclusionProof.RootHash[0]++
	refuses(t, logged, text(t, b), artifact, bundle.ErrRefused, "failed to verify log inclusion")
}

func TestPolicy(t *testing.T) {
	n := newNetwork(t)
	r := n.root(true, true, false)
	key, _ := newEd25519(t)
	unusable := map[string]bool{"a root that is none": true, "a root that is too large": true, "a key that is none": true, "a private key": true, "a key and a root without log": true}
	for name, p := range map[string]bundle.Policy{
		"nobody":                       {},
		"a root alone":                 {TrustedRoot: r},
		"an identity without issuer":   {Identity: identity, TrustedRoot: r},
		"an issuer without identity":   {Issuer: issuer, TrustedRoot: r},
		"an identity without root":     {Identity: identity, Issuer: issuer},
		"a key and an identity":        {Identity: identity, Issuer: issuer, TrustedRoot: r, Key: key},
		"a key and an issuer":          {Issuer: issuer, Key: key},
		"a root that is none":          {Identity: identity, Issuer: issuer, TrustedRoot: []byte("{}")},
		"a root that is too large":     {Identity: identity, Issuer: issuer, TrustedRoot: bytes.Repeat([]byte(" "), 5<<20)},
		"a key that is none":           {Key: []byte("ssh-ed25519 AAAA")},
		"a private key":                {Key: []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")},
		"a key and a root without log": {Key: key, TrustedRoot: n.root(false, true, false)},
	} {
		t.Run(name, func(t *testing.T) {
			want := bundle.ErrPolicy
			if unusable[name] {
				want = bundle.ErrTrust
			}
			if v, err := sigstore.New(p); v != nil || !errors.Is(err, want) {
				t.Errorf("got %v, %v", v, err)
			}
		})
	}
	if _, err := bundle.Sign(nil, artifact); err == nil {
		t.Error("signed without a key")
	}
}

func TestNoBundle(t *testing.T) {
	public, private := newEd25519(t)
	v := verifier(t, bundle.Policy{Key: public})
	good, err := bundle.Sign(private, artifact)
	check(t, err)
	as := func(mediaType string) string { return strings.Replace(string(good), pack.BundleType, mediaType, 1) }
	var fields map[string]json.RawMessage
	check(t, json.Unmarshal(good, &fields))
	without := func(name string) string {
		left := map[string]json.RawMessage{}
		for k, b := range fields {
			if k != name {
				left[k] = b
			}
		}
		b, err := json.Marshal(left)
		check(t, err)
		return string(b)
	}
	many := &protobundle.Bundle{}
	check(t, protojson.Unmarshal(good, many))
	n := newNetwork(t)
	entry := n.sign(identity, issuer, artifact, time.Now()).GetVerificationMaterial().GetTlogEntries()[0]
	for range 33 {
		many.VerificationMaterial.TlogEntries = append(many.VerificationMaterial.TlogEntries, entry)
	}
	for _, c := range []struct {
		name, bundle string
		want         error
	}{
		{"nothing", "", bundle.ErrFormat},
		{"null", "null", bundle.ErrFormat},
		{"an empty object", "{}", bundle.ErrFormat},
		{"not JSON", "\x00\x01", bundle.ErrFormat},
		{"not UTF-8", strings.Replace(string(good), "mediaType", "media\xffType", 1), bundle.ErrFormat},
		{"two", string(good) + string(good), bundle.ErrFormat},
		{"twice the same field", strings.Replace(string(good), "{", `{"mediaType":"`+pack.BundleType+`",`, 1), bundle.ErrFormat},
		{"a field that is not known", strings.Replace(string(good), "{", `{"more":1,`, 1), bundle.ErrFormat},
		{"too large", string(good) + strings.Repeat(" ", pack.MaxBundle), pack.ErrTooLarge},
		{"too deep", strings.Repeat("[", pack.MaxBundle), bundle.ErrFormat},
		{"too deep in a field", strings.Replace(string(good), "{", `{"mediaType":`+strings.Repeat("[", 500_000)+`,`, 1), bundle.ErrFormat},
		{"too many log entries", string(text(t, many)), bundle.ErrFormat},
		{"no media type", without("mediaType"), bundle.ErrFormat},
		{"no signature", without("messageSignature"), bundle.ErrFormat},
		{"no key", without("verificationMaterial"), bundle.ErrFormat},
		{"another media type", as("application/json"), bundle.ErrFormat},
		{"a version to come", as("application/vnd.dev.sigstore.bundle.v0.4+json"), bundle.ErrFormat},
		{"an old version", as("application/vnd.dev.sigstore.bundle+json;version=0.1"), bundle.ErrFormat},
		{"the old name of the version", as("application/vnd.dev.sigstore.bundle+json;version=0.3"), bundle.ErrFormat},
		{"cosign's own bundle", `{"base64Signature":"AAAA","cert":"AAAA","rekorBundle":{}}`, bundle.ErrFormat},
	} {
		t.Run(c.name, func(t *testing.T) { refuses(t, v, []byte(c.bundle), artifact, c.want, "") })
	}
}

func FuzzVerify(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	b, err := bundle.Sign(private, artifact)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, []byte("x"))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{}]}}`), []byte("x"))
	der, err := pack.EncodePublicKey(private.Public().(ed25519.PublicKey))
	if err != nil {
		f.Fatal(err)
	}
	v, err := sigstore.New(bundle.Policy{Key: der})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b, what []byte) {
		if signer, err := v.Verify(b, what); err == nil && !bytes.Equal(what, artifact) {
			t.Errorf("%s signed %q", signer, what)
		}
	})
}
