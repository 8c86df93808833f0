package http

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL in bytes, before and after normalising.
const maxURL = 8 << 10

// maxAuthority is the longest host and port in bytes, before normalising.
const maxAuthority = 1 << 10

func errLongHost() error { return fmt.Errorf("the host is longer than %d bytes", maxAuthority) }

// target is an http or https URL, parsed once and normalised. This value is authorised, and the address and the request are made
// from it.
type target struct {
	scheme string
	host   host
	port   uint16
	// path and query are as sent: the path starts with "/", has no dot segments, and only necessary characters are percent-encoded.
	path, query string
	// segments are the decoded segments of the path. split are those that a server sees if it takes an encoded slash for a slash.
	segments, split []string
}

// parseTarget parses a URL strictly. It refuses anything that two parsers could read differently.
func parseTarget(text string) (*target, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	if err := plain(text); err != nil {
		return nil, err
	}
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || defaultPort(scheme) == 0 {
		return nil, fmt.Errorf("the URL does not start with https:// or http://")
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		authority, path = rest[:slash], rest[slash:]
	}
	t := &target{scheme: scheme, query: escape(query)}
	var err error
	if t.host, t.port, err = parseAuthority(authority); err != nil {
		return nil, err
	}
	t.port = cmp.Or(t.port, defaultPort(scheme))
	if err := t.setPath(path); err != nil {
		return nil, err
	}
	if len(t.path)+len(t.query) > maxURL {
		return nil, fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	return t, nil
}

// plain refuses the characters that parsers are known to disagree about, wherever they occur.
func plain(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("the URL is not UTF-8")
	}
	for _, c := range text {
		switch {
		case c == ' ':
			return fmt.Errorf("the URL has a space")
		case c == '\\':
			return fmt.Errorf("the URL has a backslash")
		case c < ' ' || c >= 0x7f && c <= 0x9f:
			return fmt.Errorf("the URL has the control character %U", c)
		}
	}
	return nil
}

func defaultPort(scheme string) uint16 {
	switch scheme {
	case "https":
		return 443
	case "http":
		return 80
	default:
		return 0
	}
}

// authority returns the host, with the port if it is not the scheme's own.
func (t *target) authority() string {
	if t.port == defaultPort(t.scheme) {
		return t.host.String()
	}
	return t.host.String() + ":" + strconv.Itoa(int(t.port))
}

func (t *target) origin() string { return t.scheme + "://" + t.authority() }

// withoutQuery is the form for messages, because queries may carry secrets.
func (t *target) withoutQuery() string { return t.origin() + t.path }

func (t *target) String() string {
	if t.query == "" {
		return t.withoutQuery()
	}
	return t.withoutQuery() + "?" + t.query
}

// url is t for net/http. RawPath makes it send path unchanged.
func (t *target) url() *url.URL {
	decoded, _ := url.PathUnescape(t.path) // setPath has checked every escape
	return &url.URL{Scheme: t.scheme, Host: t.authority(), Path: decoded, RawPath: t.path, RawQuery: t.query}
}

// host is the name or address of a server.
type host struct {
	// name is lower-case ASCII without a trailing dot. It is empty if addr is valid.
	name string
	// addr is the address of an IP literal, with IPv4-mapped IPv6 as IPv4.
	addr netip.Addr
}

// String is the host as it appears in a URL.
func (h host) String() string {
	switch {
	case !h.addr.IsValid():
		return h.name
	case h.addr.Is6():
		return "[" + h.addr.String() + "]"
	default:
		return h.addr.String()
	}
}

// parseAuthority parses host and optional port. The port is 0 if there is none.
func parseAuthority(text string) (host, uint16, error) {
	if len(text) > maxAuthority {
		return host{}, 0, errLongHost()
	}
	if strings.Contains(text, "@") {
		return host{}, 0, fmt.Errorf("the URL has a user name or password")
	}
	name, port := text, ""
	if end := strings.LastIndexByte(text, ']'); end >= 0 {
		name, port = text[:end+1], text[end+1:]
	} else if colon := strings.IndexByte(text, ':'); colon >= 0 {
		name, port = text[:colon], text[colon:]
	}
	h, err := parseHost(name)
	if err != nil || port == "" {
		return h, 0, err
	}
	n, err := parsePort(strings.TrimPrefix(port, ":"))
	if err != nil || port[0] != ':' {
		return host{}, 0, wrongPort(port)
	}
	return h, n, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, wrongPort(text)
	}
	return uint16(n), nil
}

func wrongPort(text string) error {
	return fmt.Errorf("the port %q is not a number from 1 to 65535", text)
}

func parseHost(text string) (host, error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if err != nil || !closed || !addr.Is6() || addr.Zone() != "" {
			return host{}, fmt.Errorf("the host %q is not an IPv6 address", text)
		}
		return host{addr: addr.Unmap()}, nil
	}
	name, err := toASCII(text)
	if err != nil {
		return host{}, err
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !validLabel(label) {
			return host{}, fmt.Errorf("the host %q is not a valid name", text)
		}
	}
	if len(name) > 253 {
		return host{}, fmt.Errorf("the host is longer than 253 bytes")
	}
	if numeric(labels[len(labels)-1]) {
		// Other programs read 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 as addresses, each in its own way.
		addr, err := netip.ParseAddr(name)
		if err != nil {
			return host{}, fmt.Errorf("the host %q is not four decimal numbers, as an IPv4 address must be", text)
		}
		return host{addr: addr}, nil
	}
	return host{name: name}, nil
}

// toASCII lower-cases a name, converts internationalised labels to punycode, and removes one trailing dot. The rules for names cover
// letters outside ASCII, and differ from [strings.ToLower].
func toASCII(text string) (string, error) {
	name := text
	if ascii(name) {
		name = strings.ToLower(name)
	}
	if !ascii(name) || strings.Contains(name, "xn--") {
		// Tables before Unicode 15.1 convert the capital sharp s to "ss", but URLs read it as a sharp s.
		name = strings.ReplaceAll(name, "\u1e9e", "\u00df")
		var err error
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", fmt.Errorf("the host %q is not a valid internationalised name", text)
		}
	}
	return strings.TrimSuffix(name, "."), nil
}

func ascii(s string) bool {
	for _, c := range []byte(s) {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// validLabel allows "_" and any "-", which real host names have.
func validLabel(label string) bool {
	for _, c := range []byte(label) {
		if !alphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return len(label) >= 1 && len(label) <= 63
}

// numeric reports whether programs take a name with this last label for an IPv4 address.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
