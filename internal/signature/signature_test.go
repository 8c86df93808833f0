package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The values were made by openssl dgst -hmac, but for GitHub's example and the first of RFC 4231.
const (
	githubSecret = "It's a Secret to Everybody"
	githubBody   = "Hello, World!"
	githubHex    = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	githubBase64 = "dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc="
	rfcHex       = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
	stripeHex    = "76c83fd0acdf22faed320674fe8e04d528cfe8a17905e720a9611e40677c03b7" // of "1700000000.Hello, World!"
)

var rfcSecret = strings.Repeat("\x0b", 20)

func TestSchemes(t *testing.T) {
	now := time.Unix(1700000000, 0)
	wrong := "0" + githubHex[1:]
	signed := "t=1700000000,v1=" + stripeHex
	for name, test := range map[string]struct {
		as, secret, body, header string
		values                   []string
		now                      time.Time
		want                     bool
	}{
		"GitHub's example":         {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex}, now, true},
		"another case of hex":      {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + strings.ToUpper(githubHex)}, now, true},
		"another body":             {"github", githubSecret, githubBody + "\n", "X-Hub-Signature-256", []string{"sha256=" + githubHex}, now, false},
		"another secret":           {"github", githubSecret + "!", githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex}, now, false},
		"another digest":           {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + wrong}, now, false},
		"no header":                {"github", githubSecret, githubBody, "X-Hub-Signature-256", nil, now, false},
		"an empty header":          {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{""}, now, false},
		"twice":                    {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex, "sha256=" + githubHex}, now, false},
		"right and wrong":          {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + wrong, "sha256=" + githubHex}, now, false},
		"two in one header":        {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex + ", sha256=" + githubHex}, now, false},
		"SHA-1":                    {"github", githubSecret, githubBody, "X-Hub-Signature", []string{"sha1=" + githubHex[:40]}, now, false},
		"no prefix":                {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{githubHex}, now, false},
		"too short":                {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex[:62]}, now, false},
		"too long":                 {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + githubHex + "00"}, now, false},
		"far too long":             {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + strings.Repeat("0", 1<<20)}, now, false},
		"no hex":                   {"github", githubSecret, githubBody, "X-Hub-Signature-256", []string{"sha256=" + strings.Repeat("x", 64)}, now, false},
		"RFC 4231":                 {"hex:X-Sig", rfcSecret, "Hi There", "X-Sig", []string{rfcHex}, now, true},
		"hex":                      {"hex:X-Sig", githubSecret, githubBody, "X-Sig", []string{githubHex}, now, true},
		"hex in another header":    {"hex:X-Sig", githubSecret, githubBody, "X-Other", []string{githubHex}, now, false},
		"hex with a prefix":        {"hex:X-Sig", githubSecret, githubBody, "X-Sig", []string{"sha256=" + githubHex}, now, false},
		"base64":                   {"base64:X-Sig", githubSecret, githubBody, "X-Sig", []string{githubBase64}, now, true},
		"base64 without padding":   {"base64:X-Sig", githubSecret, githubBody, "X-Sig", []string{strings.TrimSuffix(githubBase64, "=")}, now, false},
		"base64 that says more":    {"base64:X-Sig", githubSecret, githubBody, "X-Sig", []string{strings.Replace(githubBase64, "hc=", "hd=", 1)}, now, false},
		"base64 of hex":            {"base64:X-Sig", githubSecret, githubBody, "X-Sig", []string{githubHex}, now, false},
		"Stripe":                   {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed}, now, true},
		"Stripe, two secrets":      {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"t=1700000000,v1=" + wrong + ",v1=" + stripeHex + ",v0=x"}, now, true},
		"Stripe, five minutes ago": {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed}, now.Add(5 * time.Minute), true},
		"Stripe, stale":            {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed}, now.Add(5*time.Minute + time.Second), false},
		"Stripe, to come":          {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed}, now.Add(-5*time.Minute - time.Second), false},
		"Stripe, another time":     {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"t=1700000001,v1=" + stripeHex}, now, false},
		"Stripe, two times":        {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed + ",t=1700000000"}, now, false},
		"Stripe, no time":          {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"v1=" + githubHex}, now, false},
		"Stripe, another version":  {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"t=1700000000,v0=" + stripeHex}, now, false},
		"Stripe, zeros before":     {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"t=01700000000,v1=" + stripeHex}, now, false},
		"Stripe, many":             {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{"t=1700000000" + strings.Repeat(",v1="+stripeHex, maxSigned+1)}, now, false},
		"Stripe, twice":            {"stripe", githubSecret, githubBody, "Stripe-Signature", []string{signed, signed}, now, false},
		"no form":                  {"", githubSecret, githubBody, "", []string{githubHex}, now, false},
		"an unknown form":          {"none", githubSecret, githubBody, "", []string{githubHex}, now, false},
	} {
		if got := Valid(test.as, test.secret, map[string][]string{test.header: test.values}, []byte(test.body), test.now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, secret := range []string{"", "1234567"} { // anybody can sign with these
		h := hmac.New(sha256.New, []byte(secret))
		if Valid("hex:X-Sig", secret, map[string][]string{"X-Sig": {hex.EncodeToString(h.Sum(nil))}}, nil, now) {
			t.Errorf("%q signs", secret)
		}
	}
}

func TestParse(t *testing.T) {
	for as, want := range map[string]string{
		"github": "github", "stripe": "stripe", "hex:x-sig": "hex:X-Sig", "base64:X-SIG": "base64:X-Sig",
		"": "", "GitHub": "", "github:x": "", "hex": "", "hex:": "", "hex:a b": "", "hex:a:b": "", "base64:\u00e9": "", "sha1:x": "", "hex:" + strings.Repeat("x", 65): "", "hex:x\r\ny": "",
	} {
		if got, ok := Parse(as); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", as, got, ok)
		}
	}
}

// FuzzStripe reads headers of strangers. What is read has a bounded number of whole digests, and the time that it says.
func FuzzStripe(f *testing.F) {
	for _, seed := range []string{"", "t=1,v1=" + githubHex, "t=1,v0=,v1=" + githubHex, "t=1,t=1", "t=-1,v1=", "t=99999999999999999999,v1=", "t=1,,", "v1=" + githubHex} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		at, signed, ok := parseStripe(value)
		if !ok {
			return
		}
		if len(signed) == 0 || len(signed) > maxSigned || !strings.HasPrefix(value, fmt.Sprintf("t=%d,", at.Unix())) {
			t.Errorf("%q: got %v, %d", value, at, len(signed))
		}
		for _, digest := range signed {
			if len(digest) != sha256.Size || !strings.Contains(strings.ToLower(value), "v1="+hex.EncodeToString(digest)) {
				t.Errorf("%q: got %x", value, digest)
			}
		}
	})
}

func ExampleValid() {
	headers := map[string][]string{"X-Hub-Signature-256": {"sha256=" + githubHex}}
	fmt.Println(Valid("github", githubSecret, headers, []byte(githubBody), time.Now()))
	// Output: true
}
