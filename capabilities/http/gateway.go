package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/stilehost/stile/abi"
)

// Gateway applies rules to the traffic of a program outside Stile, such as a browser, for the proxy that carries it. It authorises, dials
// and adds credentials with the same code as a [Grant]. It counts no bytes: the proxy does. It is safe for concurrent use.
type Gateway struct {
	// origins has the rules without what only a whole request shows: path, methods, headers and credential.
	origins *Grant
	// requests is nil if whole requests are not visible.
	requests *Grant
	wrap     func(net.Conn) net.Conn
}

// NewGateway returns a gateway. It uses all options but Timeout and the bounds of calls, and refuses Transport. With requests, the proxy sees
// whole requests, and rules hold as in a Grant. Otherwise the gateway refuses rules that name a path, methods, headers or a credential. Rules
// that state a size of responses are always refused, because the gateway does not decode responses. Wrap is called for each new connection
// to a server, before TLS, from many goroutines.
func NewGateway(o Options, requests bool, wrap func(net.Conn) net.Conn) (*Gateway, error) {
	if o.Transport != nil {
		return nil, errors.New("http: Options.Transport answers in place of servers, but a gateway needs connections to them")
	}
	g := &Gateway{wrap: wrap}
	bare := o
	var err error
	if bare.Rules, err = originRules(o.Rules, requests); err != nil {
		return nil, err
	}
	bare.Within = make([][]Rule, len(o.Within))
	for i, set := range o.Within {
		if bare.Within[i], err = originRules(set, requests); err != nil {
			return nil, fmt.Errorf("%w, in a set to stay within", err)
		}
	}
	if g.origins, err = New(bare); err == nil && requests {
		g.requests, err = New(o)
	}
	if err != nil {
		return nil, err
	}
	for _, grant := range []*Grant{g.origins, g.requests} {
		if grant == nil {
			continue
		}
		for _, rule := range grant.rules {
			// HTTP/1.1, as the proxy speaks. Otherwise one connection could carry the requests of several clients.
			config := &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
			rule.transport = newTransport(g.dialer(grant, rule), config)
			rule.transport.ForceAttemptHTTP2, rule.transport.HTTP2 = false, nil
		}
	}
	return g, nil
}

// originRules returns rules without the parts that concern only a request. If requests are not visible, it refuses such parts.
func originRules(rules []Rule, requests bool) ([]Rule, error) {
	bare := make([]Rule, len(rules))
	for i, r := range rules {
		wrong := ""
		switch {
		case r.MaxResponse != 0:
			wrong = "a size of responses, which a proxy does not apply"
		case requests:
		case r.Path != "" && r.Path != "/**":
			wrong = "a path, which is hidden in TLS unless the proxy ends TLS"
		case len(r.Methods) > 0 && !slices.Contains(r.Methods, "*"):
			wrong = "methods, which are hidden in TLS unless the proxy ends TLS"
		case len(r.Headers) > 0:
			wrong = "headers, which are hidden in TLS unless the proxy ends TLS"
		case r.Credential != "" || r.As != "":
			wrong = "a credential, which can be added only if the proxy ends TLS"
		}
		if wrong != "" {
			return nil, fmt.Errorf("http: rule %d: it states %s", i+1, wrong)
		}
		bare[i] = Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port, Addresses: r.Addresses, Methods: []string{"*"}}
	}
	return bare, nil
}

func (g *Gateway) dialer(grant *Grant, rule *compiled) *dialer {
	return &dialer{policy: rule.policy, resolver: grant.options.Resolver, timeouts: grant.options.Timeouts, wrap: g.wrap}
}

// CloseIdleConnections closes connections that no request uses.
func (g *Gateway) CloseIdleConnections() {
	g.origins.CloseIdleConnections()
	if g.requests != nil {
		g.requests.CloseIdleConnections()
	}
}

// Passage is a connection or a request that a rule allows.
type Passage struct {
	gateway *Gateway
	grant   *Grant
	q       *request
	raw     *url.URL // for a request of which only the origin was compared
	header  nethttp.Header
}

// Origin authorises a connection to "host:port" by the scheme, host and port of the rules. It needs no network: Dial checks the addresses of
// names. Errors: abi.ErrInvalid for an authority that two parsers could read differently, and abi.ErrDenied, whose Wants is a [Rights] with
// one rule.
func (g *Gateway) Origin(scheme, authority string) (*Passage, error) {
	return g.origin(scheme, authority, nethttp.MethodConnect)
}

func (g *Gateway) origin(scheme, authority, method string) (*Passage, error) {
	t, err := parseTarget(scheme + "://" + authority)
	if err == nil && (t.path != "/" || t.query != "" || strings.ContainsAny(authority, "/?#")) {
		err = fmt.Errorf("%.100q is not a host and a port", authority)
	}
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	q := &request{method: method, target: t, originOnly: true}
	if err := (&Client{grant: g.origins}).authorise(q); err != nil {
		return nil, err
	}
	return &Passage{gateway: g, grant: g.origins, q: q}, nil
}

// Request authorises a request to scheme://authority. The path begins with "/" and includes the query. If whole requests are visible, the
// rules decide about the path and the method too, and about those headers by which servers take a request for another. Any other header is
// the client's own. Header must not have headers of a connection, apart from Connection and Upgrade of a WebSocket. The passage owns it.
// Errors are those of Origin.
func (g *Gateway) Request(method, scheme, authority, path string, header nethttp.Header) (*Passage, error) {
	method, err := normalMethod(method)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	if g.requests == nil {
		p, err := g.origin(scheme, authority, method)
		if err != nil {
			return nil, err
		}
		p.header = header
		p.raw, err = rawURL(p.q.target, path)
		return p, err
	}
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(authority, "/?#") || strings.Contains(path, "#") {
		return nil, abi.Errorf(abi.CodeInvalid, "%.100q is not a path of a URL", path)
	}
	t, err := parseTarget(scheme + "://" + authority + path)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	q := &request{method: method, target: t, header: disguises(header), crossed: crossed(t, header)}
	if err := (&Client{grant: g.requests}).authorise(q); err != nil {
		return nil, err
	}
	if q.rule.Credential != "" && !q.crossed && header.Get("Upgrade") != "" {
		return nil, q.deny("the rule has a credential, and the host cannot look for it in what a WebSocket answers", nil)
	}
	return &Passage{gateway: g, grant: g.requests, q: q, header: header}, nil
}

// rawURL is the URL of a request whose path no rule compares, so it is sent as it is.
func rawURL(t *target, path string) (*url.URL, error) {
	raw, query, _ := strings.Cut(path, "?")
	decoded, err := url.PathUnescape(raw)
	if err == nil {
		err = plain(path)
	}
	if err != nil || !strings.HasPrefix(raw, "/") || strings.Contains(path, "#") || len(path) > maxURL {
		return nil, abi.Errorf(abi.CodeInvalid, "%.100q is not a path of a URL", path)
	}
	return &url.URL{Scheme: t.scheme, Host: t.authority(), Path: decoded, RawPath: raw, RawQuery: query}, nil
}

// disguises returns the headers by which servers take a request for one with another method, URL or sender. Only a rule that names them
// allows them.
func disguises(all nethttp.Header) header {
	found := header{}
	for name, values := range all {
		switch name = strings.ToLower(name); name {
		case "authorization", "cookie", "cookie2": // the client's own
		default:
			if namedHeader(name) {
				found[name] = values
			}
		}
	}
	return found
}

// crossed reports whether a browser says that another origin caused the request, also by a redirect. Then no credential is added. Scripts of
// a page cannot set these headers. Other programs do not send them.
func crossed(t *target, header nethttp.Header) bool {
	for _, site := range header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return true
		}
	}
	for _, origin := range header.Values("Origin") {
		if from, err := parseTarget(origin); err != nil || from.origin() != t.origin() {
			return true
		}
	}
	return false
}

// Name is the name of the server, or its address, without a port.
func (p *Passage) Name() string {
	if addr := p.q.target.host.addr; addr.IsValid() {
		return addr.String()
	}
	return p.q.target.host.name
}

// Authority is the host, with the port if it is not the scheme's own.
func (p *Passage) Authority() string { return p.q.target.authority() }

// Names reports whether a name from a TLS handshake is that of the server.
func (p *Passage) Names(name string) bool {
	h, err := parseHost(name)
	return err == nil && !h.addr.IsValid() && h == p.q.target.host
}

// Serves reports whether a Host header names the origin of the passage.
func (p *Passage) Serves(hostHeader string) bool {
	t, err := parseTarget(p.q.target.scheme + "://" + hostHeader)
	return err == nil && !strings.ContainsAny(hostHeader, "/?#") && t.origin() == p.q.target.origin()
}

// Deny returns a denial of the passage that no rule could change.
func (p *Passage) Deny(reason string) error { return p.q.deny(reason, nil) }

// Dial connects to an address that the rule allows. The connection is wrapped. Errors: abi.ErrDenied for an address, abi.ErrTimedOut, and
// abi.ErrUnavailable.
func (p *Passage) Dial(ctx context.Context) (net.Conn, error) {
	t := p.q.target
	conn, err := p.gateway.dialer(p.grant, p.q.rule).connect(ctx, "tcp", net.JoinHostPort(p.Name(), strconv.Itoa(int(t.port))))
	return conn, p.explain(ctx, err)
}

func (p *Passage) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return p.q.refused(refused)
	}
	return p.q.secrets.hush(explain(ctx, p.q.target, err))
}

// RoundTrip sends the request and returns the response. It follows no redirect. Size is the number of bytes of the body, or -1. If the rule
// has a credential, RoundTrip adds it in place of what the client sent there, removes Range, and asks for a body without encoding. It masks
// the credential in headers and body. It charges ctx for processor time, as [abi.Work] does. Something may read the body of the request
// after RoundTrip has returned. The caller closes the body of the response. Errors are those of Dial, and abi.ErrExhausted.
func (p *Passage) RoundTrip(ctx context.Context, body io.ReadCloser, size int64) (*nethttp.Response, error) {
	ctx, stop := context.WithCancelCause(ctx)
	ctx, leave := withExchange(ctx, &call{ctx, new(budget)}, stop)
	end := func() {
		leave()
		stop(nil)
	}
	response, err := p.roundTrip(ctx, body, size)
	if err != nil {
		err = p.explain(ctx, err)
		end()
		return nil, err
	}
	server := passedBody{response.Body, ctx, end}
	if response.Body = server; response.StatusCode == nethttp.StatusSwitchingProtocols {
		if to, ok := server.ReadCloser.(io.Writer); ok {
			response.Body = struct {
				passedBody
				io.Writer
			}{server, to}
		}
	}
	p.clean(ctx, response)
	return response, nil
}

// passedBody is a response's body, or what a WebSocket reads. It ends the exchange when it is closed.
type passedBody struct {
	io.ReadCloser
	ctx context.Context
	end func()
}

// Read implements [io.Reader].
func (b passedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	exchangeOf(b.ctx).content(n)
	return n, err
}

// Close implements [io.Closer].
func (b passedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

func (p *Passage) roundTrip(ctx context.Context, body io.ReadCloser, size int64) (*nethttp.Response, error) {
	q := p.q
	sent := (&nethttp.Request{
		Method: q.method, URL: p.raw, Host: q.target.authority(), Header: p.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if p.raw == nil {
		sent.URL = q.target.url()
	}
	if size != 0 {
		sent.Body, sent.ContentLength = body, size
	}
	if _, ok := sent.Header["User-Agent"]; !ok {
		sent.Header["User-Agent"] = nil // otherwise net/http adds its own
	}
	if q.rule.Credential != "" && !q.crossed {
		for _, name := range []string{q.rule.placement.header, "Range", "If-Range"} {
			sent.Header.Del(name)
		}
		sent.Header.Set("Accept-Encoding", "identity")
		if err := (&Client{grant: p.grant}).authenticate(ctx, q, sent); err != nil {
			return nil, err
		}
	}
	response, err := q.rule.transport.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	work := time.Duration(fieldsOf(response.Header)) * fieldWork
	if q.secrets.forms != nil {
		work += time.Duration(sizeOf(response.Header)) * maskWork
	}
	if err := abi.Work(ctx, work); err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return response, nil
}

// clean removes from a response what concerns only its connection, and masks the credential.
func (p *Passage) clean(ctx context.Context, r *nethttp.Response) {
	upgrade := r.Header.Get("Upgrade")
	for _, value := range r.Header.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			r.Header.Del(strings.TrimSpace(name))
		}
	}
	received := r.Header
	r.Header = nethttp.Header{}
	for name, values := range received {
		lower := strings.ToLower(name)
		if !connectionHeader(lower) && !strings.HasPrefix(lower, "proxy-") && httpguts.ValidHeaderFieldName(name) {
			r.Header[name] = values
		}
	}
	r.Trailer, r.Status = nil, "" // a server chooses the words of the status
	if r.StatusCode == nethttp.StatusSwitchingProtocols {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", upgrade)
	}
	if p.q.secrets.forms == nil {
		return
	}
	masked := nethttp.Header{}
	for _, h := range p.q.secrets.responseHeader(r.Header) {
		masked.Add(h.Name, h.Value)
	}
	r.Header = masked
	turn := &turn{ctx: ctx}
	r.Body = struct {
		io.Reader
		io.Closer
	}{turnReader{turn, maskedReader{ctx, &maskReader{r: waitingReader{turn, r.Body}, secrets: p.q.secrets}}}, r.Body}
}
