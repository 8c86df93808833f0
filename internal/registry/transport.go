package registry

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// transport sends requests to a registry. A registry may redirect: blobs and the token service are often on another host. For other
// hosts, transport dials no address that only this machine or its network can reach. oras makes sure that they get no
// credentials.
type transport struct {
	pace
	host, scheme        string // of the registry
	registry, elsewhere *http.Transport
}

func newTransport(host string, opts Options) *transport {
	if opts.PlainHTTP {
		t := dialling(opts, loopback)
		return &transport{host: host, scheme: "http", registry: t, elsewhere: t}
	}
	return &transport{host: host, scheme: "https", registry: dialling(opts, nil), elsewhere: dialling(opts, public)}
}

// dialling returns a transport for addresses that control admits. It ignores proxies from the environment, which would
// dial instead of it, and does not ask for compressed answers.
func dialling(opts Options, control func(network, address string, _ syscall.RawConn) error) *http.Transport {
	dial := opts.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, Control: control}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: opts.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Scheme != t.scheme:
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("%w: %s", ErrScheme, r.URL.Redacted())
	case r.URL.Host == t.host:
		return t.counted(r, t.registry.RoundTrip)
	default:
		return t.counted(r, t.elsewhere.RoundTrip)
	}
}

// close closes the idle connections.
func (t *transport) close() {
	t.registry.CloseIdleConnections()
	t.elsewhere.CloseIdleConnections()
}

func loopback(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: plain http is for loopback, and %s is not", ErrAddress, address)
	}
	return nil
}

var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

func public(network, address string, c syscall.RawConn) error {
	if err := guardian.Safe(network, address, c); err != nil {
		return fmt.Errorf("%w: the registry leads to %s, which is not a public address", ErrAddress, address)
	}
	return nil
}
