package inspect

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/stilehost/stile/internal/lazyregexp"
)

const maxHosts = 100 // in one string

// begun matches the start of a URL. At the start of a string, web URLs are also recognised with other slashes, or none.
var begun = lazyregexp.New(`(?i)^\s*(?:https?|wss?):[/\\]*|(?:^|[\pL\pM\w$*])://`)

// hostsIn finds the hosts in a string: those of URLs, and the string itself if it looks like a host, perhaps with a path. "*" in the
// string stands for a computed part, and more is set if something computed is appended to it.
func hostsIn(text string, more bool) []string {
	var hosts []string
	var urls [][]int
	if strings.IndexByte(text, ':') >= 0 {
		urls = begun.FindAllStringIndex(text, 100*maxHosts)
	}
	for _, at := range urls {
		if len(hosts) == maxHosts {
			break
		}
		scheme, after := text[at[0]:at[1]], text[at[1]:]
		end := strings.IndexFunc(after, func(r rune) bool { return r <= ' ' || strings.ContainsRune("/?#\\\"'`<>|^{}", r) })
		if end < 0 {
			end = len(after)
		}
		authority := after[:end]
		authority = authority[strings.LastIndexByte(authority, '@')+1:]
		switch known := bareHost(authority + "/"); {
		case known == "" && !strings.Contains(scheme, "://"):
			continue
		case known == "" && more && end == len(after):
			authority += "*"
		}
		authority = mapped(authority)
		if host := strings.ToLower(strings.Trim(authority, ".,;()")); len(host) <= 253 && ofURL.MatchString(host) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if host := strings.ToLower(bareHost(text)); hosts == nil && host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

// mapped returns an authority in readable form: without escapes, and with the characters that names have.
func mapped(authority string) string {
	if !strings.ContainsFunc(authority, func(r rune) bool { return r == '%' || r >= utf8.RuneSelf }) {
		return authority
	}
	name := hostOnly(authority)
	plain, err := url.PathUnescape(name)
	if err != nil {
		return authority
	}
	plain, _ = hostNames.ToUnicode(plain) // for an invalid name, the readable part
	return plain + authority[len(name):]
}

var hostNames = idna.New(idna.MapForLookup(), idna.Transitional(false))

// ofURL matches an authority that a client could connect to, not a pattern.
var ofURL = lazyregexp.New(`^(?:\[[0-9a-f:.*]+\]|[\pL\pM\pN_*.-]+)(?::[0-9*]+)?$`)

var bare = lazyregexp.New(`^(?:[A-Za-z0-9_*-]+\.)*[A-Za-z0-9_*-]+$`)

// wellKnown are endings under which a name of two parts is more likely a host than something else.
var wellKnown = set("com org net io dev app ai co gov edu eu uk de")

// fileEndings are also endings of hosts.
var fileEndings = set("md py sh rs pl ps zip mov so cc")

// bareHost returns the host at the start of text if text is only a host and a path, without a scheme.
func bareHost(text string) string {
	if len(text) > 2048 || strings.ContainsAny(text, " \t\n") {
		return ""
	}
	authority, _, hasPath := strings.Cut(strings.TrimPrefix(text, "//"), "/")
	host := hostOnly(authority)
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err == nil && (address.Is4() || host[0] == '[') || host == "localhost" {
		return authority
	}
	if !bare.MatchString(host) || len(host) > 253 {
		return ""
	}
	parts := strings.Split(strings.ToLower(host), ".")
	last := parts[len(parts)-1]
	suffix, known := publicsuffix.PublicSuffix(strings.ToLower(host))
	switch {
	case len(parts) < 2 || !known && !strings.Contains(suffix, ".") || suffix == strings.ToLower(host):
		return ""
	case !hasPath && authority == host && (fileEndings[last] || len(parts) == 2 && !wellKnown[last]):
		return ""
	}
	return authority
}

// hostOnly removes the port.
func hostOnly(authority string) string {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return authority
	}
	return authority[:i]
}
