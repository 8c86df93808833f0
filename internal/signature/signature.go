// Package signature checks that what was posted was signed with a secret: HMAC-SHA-256 in a header, as services that call back write it.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	// MinSecret is the smallest secret in bytes that signs anything.
	MinSecret = 8
	// tolerance is how far the time of a post that says it may be from the clock.
	tolerance = 5 * time.Minute
	// maxHeader is the longest header with a signature, in bytes, and maxSigned how many signatures it may have: those of secrets that are being replaced.
	maxHeader = 1 << 10
	maxSigned = 8
	// maxName is the longest name of a header, in bytes.
	maxName = 64
)

// Forms are the forms of [Parse], for people.
const Forms = "github, stripe, hex:HEADER or base64:HEADER"

// Parse reads where the signature of a post is, and in which form, and returns it in the one way to write it. The forms are github, stripe, hex:HEADER and base64:HEADER.
func Parse(as string) (string, bool) {
	if as == "github" || as == "stripe" {
		return as, true
	}
	form, header, _ := strings.Cut(as, ":")
	if form != "hex" && form != "base64" || len(header) > maxName || !httpguts.ValidHeaderFieldName(header) {
		return "", false
	}
	return form + ":" + textproto.CanonicalMIMEHeaderKey(header), true
}

// Valid reports whether a body that was posted with some headers, by their canonical names, is signed with the secret. as is from [Parse]. Only the header
// that as names is read. It must be there once. A secret of fewer than [MinSecret] bytes signs nothing.
func Valid(as, secret string, headers map[string][]string, body []byte, now time.Time) bool {
	form, name, _ := strings.Cut(as, ":")
	switch form {
	case "github":
		name = "X-Hub-Signature-256"
	case "stripe":
		name = "Stripe-Signature"
	}
	values := headers[name]
	if len(secret) < MinSecret || len(values) != 1 || len(values[0]) > maxHeader {
		return false
	}
	value := values[0]
	switch form {
	case "github":
		digest, ok := strings.CutPrefix(value, "sha256=")
		return ok && same(decodeHex(digest), secret, body)
	case "stripe":
		at, signed, ok := parseStripe(value)
		if !ok || now.Sub(at).Abs() > tolerance {
			return false
		}
		seconds := strconv.FormatInt(at.Unix(), 10)
		valid := false
		for _, digest := range signed {
			valid = same(digest, secret, []byte(seconds), []byte("."), body) || valid
		}
		return valid
	case "hex":
		return same(decodeHex(value), secret, body)
	case "base64":
		digest, err := base64.StdEncoding.Strict().DecodeString(value)
		return err == nil && same(digest, secret, body)
	}
	return false
}

// parseStripe reads a header of the form t=SECONDS,v1=HEX with one or more v1. Signatures of other versions are skipped.
func parseStripe(value string) (at time.Time, signed [][]byte, ok bool) {
	first, rest, _ := strings.Cut(value, ",")
	digits, is := strings.CutPrefix(first, "t=")
	seconds, err := strconv.ParseInt(digits, 10, 64)
	// The text is signed, and Stripe writes it in one way.
	if !is || err != nil || seconds < 0 || strconv.FormatInt(seconds, 10) != digits || seconds > 1<<40 {
		return at, nil, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		switch version, text, is := strings.Cut(part, "="); {
		case !is || version == "t":
			return at, nil, false
		case version == "v1":
			digest := decodeHex(text)
			if digest == nil || len(signed) == maxSigned {
				return at, nil, false
			}
			signed = append(signed, digest)
		}
	}
	return time.Unix(seconds, 0), signed, len(signed) > 0
}

// decodeHex returns the digest that hex digits are, or nil.
func decodeHex(text string) []byte {
	digest, err := hex.DecodeString(text)
	if err != nil || len(digest) != sha256.Size {
		return nil
	}
	return digest
}

// same reports whether a digest is that of the parts, in a time that does not depend on where it differs.
func same(digest []byte, secret string, parts ...[]byte) bool {
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		h.Write(part)
	}
	return hmac.Equal(h.Sum(nil), digest)
}
