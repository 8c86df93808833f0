package http

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// setPath normalises the path of a URL and splits it into segments.
func (t *target) setPath(raw string) error {
	if raw == "" {
		raw = "/"
	}
	encoded, err := normalEscapes(raw)
	if err != nil {
		return err
	}
	kept := withoutDots(strings.Split(encoded, "/")[1:])
	t.path = "/" + strings.Join(kept, "/")
	for _, segment := range kept {
		decoded := unescape(segment)
		if !utf8.ValidString(decoded) {
			return fmt.Errorf("the path has bytes that are not UTF-8")
		}
		if hidden(decoded) {
			return fmt.Errorf("the path segment %q hides a slash or a dot segment", segment)
		}
		t.segments = append(t.segments, decoded)
		t.split = append(t.split, strings.Split(decoded, "/")...)
	}
	return nil
}

// normalEscapes keeps necessary percent-encodings, in upper case, and decodes the others.
func normalEscapes(raw string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		plain := c == '/' || strings.IndexByte(pathPunctuation, c) >= 0
		if c == '%' {
			var ok bool
			if c, ok = escaped(raw[i:]); !ok {
				return "", fmt.Errorf("the path has a %% without two hexadecimal digits")
			}
			if forbiddenInPath(rune(c)) {
				return "", fmt.Errorf("the path has the encoded character %%%02X", c)
			}
			i += 2
		}
		writeEncoded(&out, c, plain)
	}
	return out.String(), nil
}

// pathPunctuation may appear in a path unencoded. Rules do not distinguish the encoded form from the plain one.
const pathPunctuation = "!$&'()*+,;=:@[]"

// writeEncoded writes c unchanged if it is unreserved or plain, and percent-encoded otherwise.
func writeEncoded(out *strings.Builder, c byte, plain bool) {
	if plain || unreserved(c) {
		out.WriteByte(c)
	} else {
		fmt.Fprintf(out, "%%%02X", c)
	}
}

// escape percent-encodes the characters that must not appear in a query and leaves everything else unchanged.
func escape(query string) string {
	var out strings.Builder
	for _, c := range []byte(query) {
		writeEncoded(&out, c, c < utf8.RuneSelf && strings.IndexByte("\"<>'", c) < 0)
	}
	return out.String()
}

// withoutDots removes dot segments as RFC 3986 section 5.2.4 does.
func withoutDots(segments []string) []string {
	kept := make([]string, 0, len(segments))
	for i, segment := range segments {
		if segment != "." && segment != ".." {
			kept = append(kept, segment)
			continue
		}
		if segment == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return kept
}

// maxEncodings is how many layers of percent-encoding a segment may have.
const maxEncodings = 4

// hidden reports whether a server that decodes more than once, or that removes path parameters, could see an additional slash or dot
// segment in a decoded segment: "..;x", "..%2Fx", "%252e%252e".
func hidden(decoded string) bool {
	for range maxEncodings {
		for part := range strings.SplitSeq(decoded, "/") {
			if name, _, _ := strings.Cut(part, ";"); name == "." || name == ".." {
				return true
			}
		}
		again := unescape(decoded)
		if again == decoded {
			return false
		}
		if strings.Count(again, "/") > strings.Count(decoded, "/") || strings.ContainsFunc(again, forbiddenInPath) {
			return true
		}
		decoded = again
	}
	return true
}

func forbiddenInPath(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }

// unescape decodes every valid percent-encoding and leaves the rest unchanged.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if c, ok := escaped(s[i:]); ok {
			out.WriteByte(c)
			i += 2
		} else {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// escaped returns the byte that the percent-encoding at the start of s represents.
func escaped(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:3], 16, 8)
	return byte(n), err == nil
}

func unreserved(c byte) bool { return alphanumeric(c) || strings.IndexByte("-._~", c) >= 0 }

// pattern is a parsed path pattern, in the two readings of a path: with an encoded slash as part of a segment, and as a slash.
type pattern struct{ whole, split segments }

// segments matches the segments of a path. One with a single piece is literal. A "*" is between two pieces. nil means "**".
type segments [][]string

// maxPattern is the longest path pattern, in bytes.
const maxPattern = 2 << 10

// parsePattern parses a path pattern. "*" is any text within one segment, of at least one character if it is the whole segment. "**"
// is any number of segments, including none. Percent-encodings are decoded, so %2A is a literal "*".
func parsePattern(text string) (pattern, error) {
	if len(text) > maxPattern {
		return pattern{}, fmt.Errorf("the path is longer than %d bytes", maxPattern)
	}
	if !strings.HasPrefix(text, "/") {
		return pattern{}, fmt.Errorf("the path %q does not start with /", text)
	}
	if strings.ContainsAny(text, "?#") {
		return pattern{}, fmt.Errorf("the path %q has a query or a fragment; rules cover paths only", text)
	}
	if err := plain(text); err != nil {
		return pattern{}, err
	}
	normal, err := normalEscapes(text)
	if err != nil {
		return pattern{}, err
	}
	for segment := range strings.SplitSeq(normal[1:], "/") {
		if segment != "**" && strings.Contains(segment, "**") {
			return pattern{}, fmt.Errorf("the path %q has a ** that is not a whole segment", text)
		}
		if decoded := unescape(segment); hidden(decoded) || !utf8.ValidString(decoded) {
			return pattern{}, fmt.Errorf("the path %q has the segment %q, which no URL can match", text, segment)
		}
	}
	return pattern{parseSegments(normal), parseSegments(strings.ReplaceAll(normal, "%2F", "/"))}, nil
}

func parseSegments(normal string) segments {
	var s segments
	for segment := range strings.SplitSeq(normal[1:], "/") {
		if segment == "**" {
			s = append(s, nil)
			continue
		}
		pieces := strings.Split(segment, "*")
		for i := range pieces {
			pieces[i] = unescape(pieces[i])
		}
		s = append(s, pieces)
	}
	return s
}

// matches reports whether p matches the path of t in both readings.
func (p pattern) matches(t *target) bool {
	return p.whole.match(t.segments) && p.split.match(t.split)
}

// match backtracks only to the last "**", so it takes at most len(p) x len(path) steps.
func (p segments) match(path []string) bool {
	next, star, from := 0, -1, 0
	for i := 0; i < len(path); {
		switch {
		case next < len(p) && p[next] == nil:
			star, from = next, i
			next++
		case next < len(p) && matchSegment(p[next], path[i]):
			next++
			i++
		case star >= 0:
			from++
			next, i = star+1, from
		default:
			return false
		}
	}
	for next < len(p) && p[next] == nil {
		next++
	}
	return next == len(p)
}

// matchSegment matches one segment against the pieces between which "*" stands.
func matchSegment(pieces []string, segment string) bool {
	last := len(pieces) - 1
	if last == 0 {
		return segment == pieces[0]
	}
	rest, ok := strings.CutPrefix(segment, pieces[0])
	if !ok || segment == "" {
		return false
	}
	for _, piece := range pieces[1:last] {
		if _, rest, ok = strings.Cut(rest, piece); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, pieces[last])
}

// patternOf returns the pattern that matches only the path of t.
func patternOf(t *target) string {
	var out strings.Builder
	for _, segment := range t.segments {
		out.WriteByte('/')
		for _, c := range []byte(segment) {
			writeEncoded(&out, c, c != '*' && c != ',' && strings.IndexByte(pathPunctuation, c) >= 0)
		}
	}
	return out.String()
}
