package browser

import (
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

// target is a URL that a page can have.
type target struct{ url *url.URL }

func (t target) String() string { return t.url.String() }

// authority is "host:port", with the scheme's port if the URL has none.
func (t target) authority() string {
	port := t.url.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[t.url.Scheme]
	}
	return net.JoinHostPort(t.url.Hostname(), port)
}

// parseTarget reads the URL of a page. Files, code, and pages of the browser itself are none.
func parseTarget(text string) (target, error) {
	if len(text) > maxURL || !utf8.ValidString(text) {
		return target{}, abi.Errorf(abi.CodeInvalid, "a URL has at most %d bytes of UTF-8", maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return target{}, abi.Errorf(abi.CodeInvalid, "%s is not a URL", short(text))
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return target{}, abi.Errorf(abi.CodeInvalid, "%s does not begin with https:// or http://; the browser opens nothing else", short(text))
	case u.Hostname() == "":
		return target{}, abi.Errorf(abi.CodeInvalid, "%s names no host", short(text))
	case u.User != nil:
		return target{}, abi.Errorf(abi.CodeInvalid, "a URL cannot have a user name or a password")
	}
	return target{u}, nil
}

// originOf is the start of a URL up to its path.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Scheme + "://" + u.Host
}
