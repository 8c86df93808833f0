package http

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	nethttp "net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is called with the network "ip" and an ASCII name, and must be safe for concurrent use.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Timeouts bound the steps of one hop, within the exchange's timeout. A zero field means its default.
type Timeouts struct {
	// Dial bounds the lookup of the name and all attempts to connect. Default 10 s.
	Dial time.Duration
	// TLS bounds the handshake. Default 10 s.
	TLS time.Duration
	// Header bounds the time from the end of the request to the end of the response's header. Default 30 s.
	Header time.Duration
	// Stall is how long a response's body may pause. Default 30 s.
	Stall time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	return Timeouts{
		Dial: cmp.Or(t.Dial, 10*time.Second), TLS: cmp.Or(t.TLS, 10*time.Second),
		Header: cmp.Or(t.Header, 30*time.Second), Stall: cmp.Or(t.Stall, 30*time.Second),
	}
}

// idleTimeout is how long an unused connection is kept.
const idleTimeout = 30 * time.Second

// MaxAddresses is how many addresses of one name are tried. A policy gives a name no more.
const MaxAddresses = 16

// dialer connects to the addresses its policy allows.
type dialer struct {
	policy   addressPolicy
	resolver Resolver
	timeouts Timeouts
	wrap     func(net.Conn) net.Conn // nil, or applied to each connection
}

// withinExchange limits ctx. While it connects, net/http passes on the values of a request's context but not its end.
func withinExchange(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	exchange := exchangeOf(ctx)
	if exchange == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(exchange, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// dial connects to "host:port", and charges exchanges for what arrives.
func (d *dialer) dial(ctx context.Context, network, hostPort string) (*connection, error) {
	conn, err := d.connect(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, users: map[*exchanging]time.Duration{}, perByte: byteWork}, nil
}

// connect connects to "host:port". It looks up a name once, requires that all its addresses are allowed, and dials exactly these. The
// address of each attempt is checked again when the socket exists.
func (d *dialer) connect(ctx context.Context, network, hostPort string) (net.Conn, error) {
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
			if d.wrap != nil {
				conn = d.wrap(conn)
			}
			return conn, nil
		}
	}
	return nil, err
}

// control is net.Dialer.ControlContext. It sees the address of the socket that is about to connect.
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
	if exchange := exchangeOf(ctx); exchange != nil {
		exchange.charge(time.Duration(len(found)) * addressWork)
	}
	addresses := make([]netip.AddrPort, len(found))
	for i, addr := range found {
		addresses[i] = netip.AddrPortFrom(addr.Unmap(), uint16(number))
		if err := d.policy.check(addresses[i]); err != nil {
			return nil, err
		}
	}
	return addresses[:min(len(addresses), MaxAddresses)], nil
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

// newTransport returns a connection pool for the requests of one rule. It follows no redirects, ignores proxy variables, and decodes
// nothing.
func newTransport(d *dialer, config *tls.Config) *nethttp.Transport {
	return &nethttp.Transport{
		DialContext: func(ctx context.Context, network, hostPort string) (net.Conn, error) {
			conn, err := d.dial(ctx, network, hostPort)
			if err != nil {
				return nil, err
			}
			return conn, nil
		},
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
		// Otherwise, a server that reads nothing would block the connection's reader, and with it every exchange, in a write.
		HTTP2: &nethttp.HTTP2Config{WriteByteTimeout: d.timeouts.Stall, MaxReceiveBufferPerStream: maxBuffered},
	}
}

const maxResponseHeader = 64 << 10

// dialTLS does the handshake itself, so that it ends with the exchange.
func (d *dialer) dialTLS(ctx context.Context, network, hostPort string, config *tls.Config) (net.Conn, error) {
	exchange := exchangeOf(ctx)
	if exchange != nil {
		if err := exchange.call.request(handshake); err != nil {
			return nil, err
		}
	}
	conn, err := d.dial(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	if exchange != nil {
		conn.join(exchange)
		defer conn.leave(exchange)
	}
	config = config.Clone()
	config.ServerName, _, err = net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withinExchange(ctx, d.timeouts.TLS)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := conn.handshake(ctx, secured); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		conn.http2()
	}
	return secured, nil
}
