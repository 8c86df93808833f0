// Package egress is the forward proxy through which a program in an empty network namespace, such as a browser or a container, reaches
// servers: those that the rules of a grant allow, and nothing else. It applies the rules with the code of package http.
package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

// Options configures a [Proxy]. Site is required. Without rules, nothing is allowed.
type Options struct {
	// Site has the resolver, the addresses of hosts, the certificate authorities, the credentials, the listeners and the step timeouts, as
	// options of http.Kind.
	Site *capability.Site
	// Rules say what is allowed. Without Intercept, they state only scheme, host, port and Addresses, and allow any method and path. With it,
	// they also state paths, methods and credentials. Then they default to GET and HEAD, as in http. MaxResponse is always refused.
	Rules []http.Rule
	// Within are sets of rules that must each also allow what Rules allow.
	Within [][]http.Rule
	// Intercept ends TLS in the proxy, with certificates of an authority that the client must trust, see [Proxy.Authority].
	Intercept bool
	// Limits bound what the proxy carries.
	Limits Limits
	// Wants returns the grant to name in a denial, from a rule that would allow what was denied. Default: a grant of http.
	Wants func(http.Rule) abi.Wants
	// Refused is called for each connection or request that the proxy refuses: with abi.CodeDenied and a denial, whose Binding is empty, or
	// with abi.CodeExhausted for a limit. A client can cause any number. It is called from many goroutines, and must return soon. It must not
	// call Close. Default: nothing.
	Refused func(*abi.Error)
	// Charge is called before bytes go to a server, and after they came from one. If it fails, they are not passed on, and the connection ends.
	// It is called from many goroutines, and must not call Close. Default: nothing.
	Charge func(bytes int) error
}

// Limits bound what a proxy carries. A zero field means its default.
type Limits struct {
	// Connections is how many clients may be connected at a time. Default 256.
	Connections int
	// Bytes is how many bytes go to and come from servers in total, with TLS and heads. Default 1 GiB.
	Bytes int64
	// Head bounds the time in which a client sends the head of a request, or its part of a TLS handshake. Default 10 s.
	Head time.Duration
	// Idle is how long a connection may carry nothing. Default 2 min.
	Idle time.Duration
	// Total is how long a client may be connected. Default 1 h.
	Total time.Duration
}

// Proxy is a forward proxy. It answers CONNECT and, for http, requests in absolute form. It keeps no data, adds no header, and follows no
// redirect: that is another request of the client.
//
// A rule for https allows a tunnel to its host and port. The tunnel begins with a TLS ClientHello; if that names a server, it must be the
// host of the rule. Nothing of the server reaches the client before. Within TLS the proxy sees nothing: a client can name another host in a
// Host header or an encrypted ClientHello, which reaches the same server. A rule for http allows requests, also in a tunnel, and WebSockets.
// The proxy parses each request and writes it anew; a Host header must name the host that the rule allows.
//
// With Options.Intercept, the proxy speaks HTTP/1.1 within TLS too, verifies the server's certificate, and authorises each request by all
// that a rule states. It adds the credential of the rule and masks echoes of it, as http does. If a browser says that another origin caused a
// request, the proxy adds none. A rule with a credential allows no WebSocket, because the proxy could not mask what that carries. Headers by
// which servers take a request for another need a rule that names them; all others are the client's own.
type Proxy struct {
	options Options
	issuer  *authority // nil without Intercept
	gateway *http.Gateway
	own     *http.Listeners
	places  chan struct{} // one element for each client
	left    atomic.Int64  // of Limits.Bytes
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // clients, and calls of Serve

	mu     sync.Mutex
	closed bool
	open   map[closer]struct{} // listeners and connections
}

type closer interface{ Close() error }

// New returns a proxy. It ends with ctx, as by Close, and charges ctx for the processor time that servers cause, as [abi.Work] does. It fails
// for a rule that is not valid, or that the proxy cannot apply.
func New(ctx context.Context, o Options) (*Proxy, error) {
	l := &o.Limits
	if l.Connections < 0 || min(l.Bytes, int64(l.Head), int64(l.Idle), int64(l.Total)) < 0 {
		return nil, errors.New("egress: a limit is negative")
	}
	l.Connections, l.Bytes = cmp.Or(l.Connections, 256), cmp.Or(l.Bytes, 1<<30)
	l.Head, l.Idle, l.Total = cmp.Or(l.Head, 10*time.Second), cmp.Or(l.Idle, 2*time.Minute), cmp.Or(l.Total, time.Hour)
	p := &Proxy{options: o, places: make(chan struct{}, l.Connections), open: map[closer]struct{}{}}
	p.left.Store(l.Bytes)
	settings := http.Rights{Rules: o.Rules, Within: o.Within}.Options(o.Site)
	if settings.Own == nil {
		settings.Own = new(http.Listeners)
	}
	p.own = settings.Own
	var err error
	if o.Intercept {
		if p.issuer, err = newAuthority(); err != nil {
			return nil, err
		}
	}
	if p.gateway, err = http.NewGateway(settings, o.Intercept, p.counted); err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	context.AfterFunc(p.ctx, p.end) //nolint:contextcheck // it is derived from ctx
	return p, nil
}

// Authority returns the certificate authority that clients must trust. It is empty without Options.Intercept. Its certificates are valid for
// 7 days.
func (p *Proxy) Authority() Authority {
	if p.issuer == nil {
		return Authority{}
	}
	return p.issuer.public()
}

// Serve answers the clients of a listener until Close, and closes the listener. Unless the listener is in another network namespace, no rule
// of the site makes it reachable. Serve may be called for several listeners. It returns nil when Close ends it, or has ended the proxy before.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.track(l) {
		_ = l.Close()
		return nil
	}
	defer p.running.Done()
	defer p.untrack(l)
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		if _, elsewhere := l.(elsewhere); !elsewhere {
			addr, _ := netip.AddrFromSlice(at.IP)
			defer p.own.Add(netip.AddrPortFrom(addr, uint16(at.Port)))()
		}
	}
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			p.admit(conn)
			continue
		}
		if p.ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("egress: %w", err)
		}
		// The process has no more files, or the client is gone already. Files come back when connections end.
		pause = min(max(2*pause, time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-p.ctx.Done():
		}
	}
}

// admit starts to serve a client, if there is a place.
func (p *Proxy) admit(conn net.Conn) {
	select {
	case p.places <- struct{}{}:
	default:
		_ = conn.Close()
		p.refused(abi.Errorf(abi.CodeExhausted, "connections to the proxy: %d", cap(p.places)))
		return
	}
	if !p.track(conn) {
		_ = conn.Close()
		<-p.places
		return
	}
	go func() {
		defer p.running.Done()
		defer func() { <-p.places }()
		defer p.untrack(conn)
		newSession(p, conn).run()
	}()
}

// Close ends all connections at once, and returns when nothing runs any more. Closing again waits too.
func (p *Proxy) Close() error {
	p.end()
	p.running.Wait()
	return nil
}

func (p *Proxy) end() {
	p.cancel()
	p.gateway.CloseIdleConnections()
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	clear(p.open)
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// track registers what end closes, and what Close waits for until running.Done. It reports whether the proxy is open.
func (p *Proxy) track(c closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) untrack(c closer) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// refused reports an error if it is a refusal.
func (p *Proxy) refused(err error) {
	known, ok := errors.AsType[*abi.Error](err)
	if !ok || p.options.Refused == nil || p.ctx.Err() != nil || known.Code != abi.CodeDenied && known.Code != abi.CodeExhausted {
		return
	}
	told := *known
	if known.Denial != nil && p.options.Wants != nil {
		denial := *known.Denial
		if wanted, ok := denial.Wants.(capability.Wanted); ok {
			if rights, ok := wanted.Grant.(http.Rights); ok && len(rights.Rules) == 1 {
				denial.Wants = p.options.Wants(rights.Rules[0])
			}
		}
		told.Denial = &denial
	}
	p.options.Refused(&told)
}
