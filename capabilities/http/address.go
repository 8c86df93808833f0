package http

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is called with the network "ip" and an ASCII name, and must be safe for concurrent use.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// specialRanges gives names to what is refused, the narrower ranges first. Package ssrf, which follows the IANA
// registries, is asked as well, so a range that is not here is refused all the same.
var specialRanges = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "unique-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// special returns the range of addresses that is not public in which addr lies, or "".
func special(addr netip.Addr) string {
	for _, r := range specialRanges {
		if r.prefix.Contains(addr) {
			return fmt.Sprintf("%s (%s)", r.prefix, r.name)
		}
	}
	if guardian.SafeAddr(addr) != nil {
		return "special-purpose"
	}
	return ""
}

// translations are the IPv6 ranges in which an address stands for an IPv4 one, with the place of its four bytes.
var translations = []struct {
	prefix netip.Prefix
	offset int
	invert byte
}{
	{netip.MustParsePrefix("::/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, 0},
	{netip.MustParsePrefix("2001::/32"), 12, 0xff},
	{netip.MustParsePrefix("2002::/16"), 2, 0},
}

// translated returns the IPv4 address for which an IPv6 address stands.
func translated(addr netip.Addr) (netip.Addr, bool) {
	for _, t := range translations {
		if t.prefix.Contains(addr) && !addr.IsLoopback() {
			all := addr.As16()
			v4 := [4]byte(all[t.offset:])
			for i := range v4 {
				v4[i] ^= t.invert
			}
			return netip.AddrFrom4(v4), true
		}
	}
	return netip.Addr{}, false
}

// addressPolicy decides which addresses the requests of one rule may be sent to.
type addressPolicy struct {
	// named is the address that the rule has as its host, if any.
	named netip.Addr
	// allowed are ranges that the operator allows beyond public ones.
	allowed []netip.Prefix
	own     *Listeners
}

// refusedError says that an address may not be dialled.
type refusedError struct {
	// what is a range, or what else stands at the address. It does not hold the address: what a name of somebody's
	// private network resolves to is no business of the guest.
	what string
	// own says that no rule can allow it.
	own bool
}

func (e *refusedError) Error() string { return "refused address: " + e.what }

// check returns a *refusedError unless the address may be dialled.
func (p *addressPolicy) check(to netip.AddrPort) error {
	addr := to.Addr().Unmap().WithZone("")
	switch {
	case addr.IsUnspecified():
		return &refusedError{what: "unspecified", own: true}
	case p.own.has(netip.AddrPortFrom(addr, to.Port())):
		return &refusedError{what: "one of Stile's own listeners", own: true}
	case addr == p.named:
		return nil
	}
	return p.checkRange(addr)
}

func (p *addressPolicy) checkRange(addr netip.Addr) error {
	if !slices.ContainsFunc(p.allowed, func(r netip.Prefix) bool { return r.Contains(addr) }) {
		if name := special(addr); name != "" {
			return &refusedError{what: name}
		}
	}
	if v4, ok := translated(addr); ok {
		return p.checkRange(v4)
	}
	return nil
}

// Timeouts bound the steps of one hop, within what the exchange has. A zero field means its default.
type Timeouts struct {
	// Dial is for the lookup of the name and all attempts to connect. Default 10 s.
	Dial time.Duration
	// TLS is for the handshake. Default 10 s.
	TLS time.Duration
	// Header is from the end of the request to the end of the response's header. Default 30 s.
	Header time.Duration
	// Stall is how long no byte of a response's body may come. Default 30 s.
	Stall time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	return Timeouts{
		Dial: cmp.Or(t.Dial, 10*time.Second), TLS: cmp.Or(t.TLS, 10*time.Second),
		Header: cmp.Or(t.Header, 30*time.Second), Stall: cmp.Or(t.Stall, 30*time.Second),
	}
}

// idleTimeout is how long a connection is kept that no exchange uses.
const idleTimeout = 30 * time.Second

// maxAddresses is how many addresses of one name are tried.
const maxAddresses = 16

// dialer connects to the addresses its policy allows.
type dialer struct {
	policy   addressPolicy
	resolver Resolver
	timeouts Timeouts
}

// exchangeKey is the context key of the context that ends with the exchange.
type exchangeKey struct{}

func withExchange(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ctx)
}

// withinExchange limits ctx, which net/http gives the values but not the end of a request's context while it connects.
func withinExchange(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	exchange, ok := ctx.Value(exchangeKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(exchange, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// dial connects to "host:port". A name is looked up once, all its addresses must be allowed, and these are what is dialled;
// the address of each attempt is checked once more when the socket exists.
func (d *dialer) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	ctx, cancel := withinExchange(ctx, d.timeouts.Dial)
	defer cancel()
	addresses, err := d.lookup(ctx, hostPort)
	if err != nil {
		return nil, err
	}
	checked := net.Dialer{ControlContext: d.control}
	var conn net.Conn
	for i, to := range addresses {
		deadline, _ := ctx.Deadline()
		attempt, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addresses)-i))
		conn, err = checked.DialContext(attempt, network, to.String())
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// control is net.Dialer.ControlContext: it sees the address of the socket that is about to connect.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return d.policy.check(to)
}

func (d *dialer) lookup(ctx context.Context, hostPort string) ([]netip.AddrPort, error) {
	name, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	found, err := d.addresses(ctx, name)
	if err != nil {
		return nil, err
	}
	addresses := make([]netip.AddrPort, len(found))
	for i, addr := range found {
		addresses[i] = netip.AddrPortFrom(addr.Unmap(), uint16(number))
		if err := d.policy.check(addresses[i]); err != nil {
			return nil, err
		}
	}
	return addresses[:min(len(addresses), maxAddresses)], nil
}

func (d *dialer) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr}, nil
	}
	found, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if _, ok := errors.AsType[*net.DNSError](err); err != nil && !ok {
		err = &net.DNSError{UnwrapErr: err, Err: "lookup failed", Name: name}
	}
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no address", Name: name, IsNotFound: true}
	}
	return found, err
}

// newTransport returns a connection pool for the requests of one rule. It follows no redirects, reads no proxy
// variables, and decodes nothing.
func newTransport(d *dialer, config *tls.Config) *nethttp.Transport {
	return &nethttp.Transport{
		DialContext: d.dial,
		DialTLSContext: func(ctx context.Context, network, hostPort string) (net.Conn, error) {
			return d.dialTLS(ctx, network, hostPort, config)
		},
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        idleTimeout,
		ResponseHeaderTimeout:  d.timeouts.Header,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

const maxResponseHeader = 64 << 10

// dialTLS does the handshake itself, so that it ends with the exchange.
func (d *dialer) dialTLS(ctx context.Context, network, hostPort string, config *tls.Config) (net.Conn, error) {
	conn, err := d.dial(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName, _, err = net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withinExchange(ctx, d.timeouts.TLS)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}
