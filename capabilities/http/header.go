package http

import (
	"fmt"
	nethttp "net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// Header is the record `header` of stile:capability/types.
type Header struct {
	Name  string
	Value string
}

// header holds the values of headers by lower-case names.
type header map[string][]string

// Bounds of a request's headers.
const (
	maxRequestHeaders     = 100
	maxRequestHeaderBytes = 32 << 10
)

// sizeOf returns the bytes of names and values.
func sizeOf(headers map[string][]string) int {
	size := 0
	for name, values := range headers {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}

// fieldWork is the processor time that a field of a response's head takes, from the connection to the guest.
const fieldWork = time.Microsecond

func fieldsOf(headers map[string][]string) int {
	n := 0
	for _, values := range headers {
		n += len(values)
	}
	return n
}

// safeHeader reports whether every rule lets a guest set the header. None of these headers identifies the sender, disguises the
// request as another one, or carries anything to a place that the URL could not reach.
func safeHeader(name string) bool {
	switch name {
	case "accept", "accept-language", "cache-control", "content-language", "content-type", "if-match", "if-modified-since",
		"if-none-match", "if-range", "if-unmodified-since", "pragma", "range", "user-agent":
		return true
	}
	return false
}

// forbiddenHeader reports whether no guest may set the header, because the host makes it from the URL and the content, or because it
// concerns the connection.
func forbiddenHeader(name string) bool {
	switch name {
	case "accept-encoding", "content-length", "expect", "host", "http2-settings", "via":
		return true
	}
	return connectionHeader(name) || strings.HasPrefix(name, "proxy-")
}

// connectionHeader reports whether the header concerns the connection and not the message.
func connectionHeader(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// namedHeader reports whether "*" does not include the header, because it identifies the sender, or makes servers take the request
// for one with another method, URL or sender.
func namedHeader(name string) bool {
	return slices.Contains(namedHeaders[:], name) || strings.HasPrefix(name, "x-forwarded-")
}

// namedHeaders are those headers, but those that begin with x-forwarded-.
var namedHeaders = [...]string{
	"authorization", "cookie", "cookie2", "forwarded", "x-forwarded", "x-host", "x-http-host-override", "x-http-method", "x-http-method-override",
	"x-method-override", "x-original-host", "x-original-url", "x-real-ip", "x-rewrite-url",
}

// headersText says which headers a guest may set by a rule's list, beside those that every rule allows.
func headersText(list []string) string {
	if !slices.Contains(list, "*") {
		return "setting the headers " + strings.Join(list, ", ")
	}
	out := append(slices.DeleteFunc(slices.Clone(namedHeaders[:]), func(name string) bool { return slices.Contains(list, name) }), "x-forwarded-...")
	text := "setting any header but " + strings.Join(out, ", ")
	if named := slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !namedHeader(name) }); len(named) > 0 {
		text += ", and also " + strings.Join(named, ", ")
	}
	return text
}

// requestHeader checks the headers that a guest sets.
func requestHeader(headers []Header) (header, error) {
	if len(headers) > maxRequestHeaders {
		return nil, fmt.Errorf("there are more than %d headers", maxRequestHeaders)
	}
	made, size := header{}, 0
	for _, h := range headers {
		name, err := guestHeader(h.Name)
		if err != nil {
			return nil, err
		}
		value := strings.Trim(h.Value, " \t")
		if !ascii(value) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("the value of the header %s has characters that are not printable ASCII", name)
		}
		if size += len(name) + len(value); size > maxRequestHeaderBytes {
			return nil, fmt.Errorf("the headers are more than %d bytes", maxRequestHeaderBytes)
		}
		made[name] = append(made[name], value)
	}
	return made, nil
}

// responseHeader returns the headers that a guest sees, sorted by name.
// It leaves out headers that concern the connection, have no valid name,
// or have a secret in their name.
func (s secrets) responseHeader(received nethttp.Header) []Header {
	var seen []Header
	for name, values := range received {
		if name = strings.ToLower(name); connectionHeader(name) {
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) || s.forms != nil && cover(s.lower, name) != name {
			continue
		}
		for _, value := range values {
			seen = append(seen, Header{name, s.mask(text(value))})
		}
	}
	slices.SortStableFunc(seen, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return seen
}

// text reads bytes that are not UTF-8 as ISO 8859-1, as RFC 9110 section 5.5 says.
func text(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	runes := make([]rune, len(value))
	for i, c := range []byte(value) {
		runes[i] = rune(c)
	}
	return string(runes)
}
