package http

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Rule allows requests. A request is allowed if one rule allows all of it. The first such rule of a grant decides about addresses
// and sizes. The JSON form is that of a manifest: unknown, repeated and empty fields are refused.
type Rule struct {
	// Scheme is "https" or "http". Default "https".
	Scheme string `json:"scheme,omitempty"`
	// Host is a name ("api.github.com"), the subdomains of a name without the name itself ("*.example.com"), an IP address, which
	// may then be dialled whatever its range, or "*" for any host, which requires Scheme and Port.
	Host string `json:"host"`
	// Port defaults to the scheme's.
	Port uint16 `json:"port,omitempty"`
	// Methods are in upper case, or "*" for all. CONNECT and TRACE are never allowed. Default GET and HEAD.
	Methods []string `json:"methods,omitempty"`
	// Path is a pattern over the decoded segments of the path. "*" is any text within one segment, and "**" is any number of
	// segments, so "/repos/**" matches "/repos" and everything below it. Default "/**".
	Path string `json:"path,omitempty"`
	// Headers are those that the guest may set in addition to the safe ones: Accept, Accept-Language, Cache-Control,
	// Content-Language, Content-Type, If-*, Pragma, Range and User-Agent. "*" is every header, except those by which servers take a
	// request for another (X-HTTP-Method-Override, X-Original-URL, X-Forwarded-*, ...). These, Authorization and Cookie must be
	// named. Host and the headers of a connection can never be set. Default none.
	Headers []string `json:"headers,omitempty"`
	// Credential names a secret of Options.Credentials that the host adds to what it sends, and that the guest never sees. It needs
	// a host other than "*". It also needs https, unless Host or Addresses names addresses that are not public: without https, the
	// rule allows no others. After a redirect to another origin, it is not sent. With a credential, Range must be named in Headers.
	// Default none.
	Credential string `json:"credential,omitempty"`
	// As says how the credential is sent: "bearer", "basic" (the secret is USER:PASSWORD), "header:NAME" or "query:NAME". The guest
	// cannot set that header. A query parameter replaces the guest's. Default "bearer".
	As string `json:"as,omitempty"`
	// Idempotency names the header by which the server knows a request that it has got before, such as "Idempotency-Key". The host sets it, and the guest
	// cannot, in requests with methods other than GET and HEAD: a durable call sends such a request again, with the same key, when its process ended
	// meanwhile. Change the name only when no call is in progress. Default none.
	Idempotency string `json:"idempotency,omitempty"`
	// MaxResponse is the largest response body in bytes, after decoding. At most 1 TiB; default 16 MiB.
	MaxResponse int64 `json:"maxResponse,omitempty"`
	// Addresses may be dialled although they are not public. Only the operator can set them: they have no JSON form.
	Addresses []netip.Prefix `json:"-"`
}

// MaxRules is how many rules a grant or the ceiling of a policy has at most.
const MaxRules = 256

// Bounds of a rule.
const (
	maxMethods = 32
	maxMethod  = 32 // bytes
	// maxHeaderName is the longest name of a header in bytes.
	maxHeaderName = 1 << 10
	maxHeaders    = 64
)

const (
	defaultMaxResponse = 16 << 20
	maxMaxResponse     = 1 << 40
)

var defaultMethods = []string{"GET", "HEAD"}

// ParseRule parses the short form of the command line: a URL whose host and path are patterns, then options, as in
// "https://api.github.com/repos/**,methods=GET+POST,credential=github-token,as=bearer,max-response=1048576" or
// "http://*:8080/**,addresses=10.0.0.0/8+fd00::/8". Without a path, it covers all paths. Write a comma in the path as %2C.
func ParseRule(spec string) (Rule, error) {
	r, err := parseSpec(spec)
	if err == nil {
		_, err = r.compile()
	}
	if err != nil {
		return Rule{}, fmt.Errorf("http rule %q: %w", spec, err)
	}
	return r, nil
}

func parseSpec(spec string) (Rule, error) {
	url, options, _ := strings.Cut(spec, ",")
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return Rule{}, errors.New("it does not start with https:// or http://")
	}
	r := Rule{Scheme: scheme}
	r.Host = rest
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		r.Host, r.Path = rest[:slash], rest[slash:]
	}
	if colon := strings.LastIndexByte(r.Host, ':'); colon > strings.LastIndexByte(r.Host, ']') {
		port, err := parsePort(r.Host[colon+1:])
		if err != nil {
			return Rule{}, err
		}
		r.Host, r.Port = r.Host[:colon], port
	}
	for option := range strings.SplitSeq(options, ",") {
		if err := r.setOption(option); err != nil {
			return Rule{}, err
		}
	}
	return r, nil
}

func (r *Rule) setOption(option string) error {
	if option == "" {
		return nil
	}
	name, value, _ := strings.Cut(option, "=")
	if value == "" {
		return fmt.Errorf("%q is not option=value", option)
	}
	values := strings.Split(value, "+")
	switch name {
	case "methods":
		r.Methods = append(r.Methods, values...)
	case "headers":
		r.Headers = append(r.Headers, values...)
	case "credential":
		r.Credential = value
	case "as":
		r.As = value
	case "idempotency":
		r.Idempotency = value
	case "max-response":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("max-response %q is not a number of bytes", value)
		}
		r.MaxResponse = n
	case "addresses":
		for _, value := range values {
			prefix, err := netip.ParsePrefix(value)
			if err != nil {
				return fmt.Errorf("addresses: %q is not a range such as 10.0.0.0/8", value)
			}
			r.Addresses = append(r.Addresses, prefix)
		}
	default:
		return fmt.Errorf("unknown option %q; the options are methods, headers, credential, as, idempotency, max-response and addresses", name)
	}
	return nil
}

// String is the form that ParseRule reads, without defaults.
func (r Rule) String() string {
	var out strings.Builder
	out.WriteString(r.origin() + strings.ReplaceAll(r.Path, ",", "%2C"))
	list := func(name string, values []string) {
		if len(values) > 0 {
			out.WriteString("," + name + "=" + strings.Join(values, "+"))
		}
	}
	if !slices.Equal(r.Methods, defaultMethods) {
		list("methods", r.Methods)
	}
	list("headers", r.Headers)
	if r.Credential != "" {
		list("credential", []string{r.Credential})
		if r.As != "" && r.As != "bearer" {
			list("as", []string{r.As})
		}
	}
	if r.Idempotency != "" {
		list("idempotency", []string{r.Idempotency})
	}
	if r.MaxResponse != 0 && r.MaxResponse != defaultMaxResponse {
		list("max-response", []string{strconv.FormatInt(r.MaxResponse, 10)})
	}
	var addresses []string
	for _, prefix := range r.Addresses {
		addresses = append(addresses, prefix.String())
	}
	list("addresses", addresses)
	return out.String()
}

func (r Rule) origin() string {
	scheme := cmp.Or(r.Scheme, "https")
	if r.Port == 0 || r.Port == defaultPort(scheme) && r.Host != "*" {
		return scheme + "://" + r.Host
	}
	return scheme + "://" + r.Host + ":" + strconv.Itoa(int(r.Port))
}

// Normal returns r with defaults filled in and names in the form in which they are compared: hosts in lower case and punycode,
// methods in upper case, headers in lower case. Show this form to people. It fails if r is not valid.
func (r Rule) Normal() (Rule, error) {
	c, err := r.compile()
	if err != nil {
		return Rule{}, err
	}
	normal := c.Rule
	normal.Methods = slices.Clone(normal.Methods) // the defaults are shared
	return normal, nil
}

// UnmarshalJSON reads the form of a manifest, strictly: every rule it accepts is valid.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var read Rule
	fields := map[string]any{
		"scheme": &read.Scheme, "host": &read.Host, "port": &read.Port, "methods": &read.Methods,
		"path": &read.Path, "headers": &read.Headers,
		"credential": &read.Credential, "as": &read.As, "idempotency": &read.Idempotency, "maxResponse": &read.MaxResponse,
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return errors.New("http rule: it is not a JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("http rule: %w", err)
		}
		field, ok := fields[name.(string)]
		switch {
		case name == "addresses":
			return errors.New("http rule: only the operator can set addresses")
		case !ok:
			return fmt.Errorf("http rule: the field %q is unknown or appears twice", name)
		}
		delete(fields, name.(string))
		err = decoder.Decode(field)
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return fmt.Errorf("http rule: %s: a value of the wrong kind: %s", name, wrong.Value)
		}
		if err != nil {
			return fmt.Errorf("http rule: %s: %w", name, err)
		}
		if v := reflect.ValueOf(field).Elem(); v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			return fmt.Errorf("http rule: %s is empty; leave it out for its default", name)
		}
	}
	if _, err := read.compile(); err != nil {
		return fmt.Errorf("http rule: %w", err)
	}
	*r = read
	return nil
}

// compiled is a rule, normalised and ready to match.
type compiled struct {
	Rule
	// host is the server. For a "*." rule, it is the name in which all subdomains end. anyHost and subdomains exclude each other.
	host                host
	anyHost, subdomains bool
	path                pattern
	placement           placement // of the credential
	// policy belongs to a rule of a grant or a bound, and transport only to one of a grant. A rule that narrows has neither.
	policy    addressPolicy
	transport *nethttp.Transport
	// carried is the credential that a rule of a bound allows a request to have.
	carried Rule
}

// compile validates r and fills in its defaults.
func (r Rule) compile() (*compiled, error) {
	c := &compiled{Rule: r, anyHost: r.Host == "*"}
	if c.anyHost && (r.Scheme == "" || r.Port == 0) {
		return nil, errors.New("the host * needs a scheme and a port")
	}
	c.Scheme = cmp.Or(strings.ToLower(r.Scheme), "https")
	if defaultPort(c.Scheme) == 0 {
		return nil, fmt.Errorf("the scheme %.100q is not https or http", r.Scheme)
	}
	c.Port = cmp.Or(r.Port, defaultPort(c.Scheme))
	if err := c.compileHost(); err != nil {
		return nil, err
	}
	c.Path = cmp.Or(r.Path, "/**")
	var err error
	if c.path, err = parsePattern(c.Path); err != nil {
		return nil, err
	}
	if c.Methods, err = normalMethods(r.Methods); err != nil {
		return nil, err
	}
	if c.Headers, err = normalHeaders(r.Headers); err != nil {
		return nil, err
	}
	if c.MaxResponse < 0 || c.MaxResponse > maxMaxResponse {
		return nil, fmt.Errorf("the response size %d is not a number up to %d", r.MaxResponse, int64(maxMaxResponse))
	}
	c.MaxResponse = cmp.Or(r.MaxResponse, defaultMaxResponse)
	c.Addresses = slices.Clone(r.Addresses)
	for i, prefix := range c.Addresses {
		if !prefix.IsValid() {
			return nil, errors.New("addresses has an invalid range")
		}
		c.Addresses[i] = prefix.Masked()
	}
	if err := c.compileCredential(); err != nil {
		return nil, err
	}
	return c, c.compileIdempotency()
}

// compileIdempotency checks that nobody else sets the header.
func (c *compiled) compileIdempotency() error {
	if c.Idempotency == "" {
		return nil
	}
	name, err := guestHeader(c.Idempotency)
	switch {
	case err != nil:
		return err
	case safeHeader(name) || namedHeader(name):
		return fmt.Errorf("the header %s cannot carry an idempotency key", name)
	case slices.Contains(c.Headers, name) || c.placement.header == name:
		return fmt.Errorf("the header %s carries the idempotency key, so nothing else can set it", name)
	}
	c.Idempotency = name
	return nil
}

// size is roughly the largest number of bytes that c takes.
func (c *compiled) size() int64 {
	const fixed, perSegment = 1 << 10, 64
	size := fixed + len(c.Host) + len(c.Path) + perSegment*(len(c.path.whole)+len(c.path.split))
	for _, text := range slices.Concat(c.Methods, c.Headers) {
		size += len(text)
	}
	return int64(size)
}

func (c *compiled) compileHost() error {
	if c.anyHost {
		return nil
	}
	if len(c.Host) > maxAuthority {
		return errLongHost()
	}
	name, subdomains := strings.CutPrefix(c.Host, "*.")
	c.subdomains = subdomains
	if addr, err := netip.ParseAddr(name); err == nil && addr.Is6() {
		name = "[" + name + "]"
	}
	var err error
	if c.host, err = parseHost(name); err != nil {
		return err
	}
	c.Host = c.host.String()
	switch {
	case subdomains && c.host.addr.IsValid():
		return fmt.Errorf("the host *.%s is an address with subdomains", name)
	case subdomains:
		c.Host = "*." + c.Host
	case c.host.addr.IsUnspecified():
		return fmt.Errorf("the host %s is not an address that a server can have", name)
	}
	return nil
}

func normalMethods(methods []string) ([]string, error) {
	if len(methods) == 0 {
		return defaultMethods, nil
	}
	if len(methods) > maxMethods {
		return nil, fmt.Errorf("there are more than %d methods", maxMethods)
	}
	normal := make([]string, len(methods))
	for i, method := range methods {
		if method == "*" {
			normal[i] = method
			continue
		}
		var err error
		if normal[i], err = normalMethod(strings.ToUpper(method)); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

func normalHeaders(headers []string) ([]string, error) {
	if len(headers) > maxHeaders {
		return nil, fmt.Errorf("there are more than %d headers", maxHeaders)
	}
	normal := make([]string, len(headers))
	for i, name := range headers {
		var err error
		if normal[i], err = guestHeader(name); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

// guestHeader returns the name of a header in lower case, if some rule could let a guest set it.
func guestHeader(name string) (string, error) {
	if len(name) > maxHeaderName {
		return "", fmt.Errorf("the header name %.100q... has %d bytes; at most %d", name, len(name), maxHeaderName)
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return "", fmt.Errorf("the header name %q is not valid", name)
	}
	if name = strings.ToLower(name); forbiddenHeader(name) {
		return "", fmt.Errorf("the header %s can never be set by a guest", name)
	}
	return name, nil
}

// normalMethod checks a method. As in the Fetch standard, the common ones may be in lower case.
func normalMethod(method string) (string, error) {
	if len(method) > maxMethod {
		return "", fmt.Errorf("the method %.100q... has %d bytes; at most %d", method, len(method), maxMethod)
	}
	switch upper := strings.ToUpper(method); upper {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
		return upper, nil
	case "CONNECT", "TRACE", "TRACK":
		return "", fmt.Errorf("the method %s is never allowed", upper)
	}
	if method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return "", fmt.Errorf("the method %q is not an upper-case word", method)
	}
	return method, nil
}
