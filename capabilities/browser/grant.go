package browser

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/chromium"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capability"
)

// Probe starts a browser as sessions do, and reports what this machine lacks.
func Probe(ctx context.Context, o EngineOptions) chromium.Report {
	network, err := egress.NewNamespace()
	if err != nil {
		return chromium.Report{Lacks: []string{(&chromium.LackError{Reason: err.Error()}).Error()}}
	}
	defer func() { _ = network.Close() }() // the browser has ended
	return chromium.Probe(ctx, chromium.Options{Path: o.Program, Network: network.Path()})
}

// newGrant returns the grant of rights at a site, whose browsers an engine runs.
func newGrant(engine *Engine, s *capability.Site, g Rights) (*Grant, error) {
	settings := http.Rights{Rules: g.Rules, Within: g.Within}.Options(s)
	gateway, err := http.NewGateway(settings, g.Intercept, func(c net.Conn) net.Conn { return c })
	if err != nil {
		return nil, err
	}
	made := &Grant{engine: engine, place: place{g.Scope, g.Intercept}, budget: g.Budget}
	made.check = func(to target) error {
		_, err := gateway.Origin(to.url.Scheme, to.authority())
		if known, ok := errors.AsType[*abi.Error](err); ok && known.Denial != nil {
			denial := *known.Denial
			denial.Operation = "open " + originOf(to.String())
			if wanted, ok := denial.Wants.(capability.Wanted); ok {
				if rights, ok := wanted.Grant.(http.Rights); ok && len(rights.Rules) == 1 {
					denial.Wants = g.wants(rights.Rules[0])
				}
			}
			return abi.Deny(denial)
		}
		return err
	}
	made.open = func(ctx context.Context, l net.Listener, b *budget) (exit, error) {
		w := &way{address: l.Addr().String()}
		var err error
		w.proxy, err = egress.New(ctx, egress.Options{
			Site: s, Rules: g.Rules, Within: g.Within, Intercept: g.Intercept, Wants: g.wants, Refused: w.refused,
			Charge: func(n int) error { return b.carry(int64(n)) },
			Limits: egress.Limits{Connections: maxConnections, Bytes: int64(maxMegabytes) << 20},
		})
		if err != nil {
			return nil, err
		}
		go func() { _ = w.proxy.Serve(l) }() //nolint:contextcheck // Close ends it, and so does ctx
		return w, nil
	}
	return made, nil
}

// times bound what a session does.
func (g *Grant) times() times { return g.engine.options.times }

// maxConnections is how many connections a page has to its proxy at a time.
const maxConnections = 128

// way is the exit of a tab through a proxy.
type way struct {
	address string
	proxy   *egress.Proxy

	mu     sync.Mutex
	denied []*abi.Error
}

// maxDenied is how many denials of a page are kept, the newest ones.
const maxDenied = 32

func (w *way) refused(e *abi.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.denied) == maxDenied {
		w.denied = w.denied[1:]
	}
	w.denied = append(w.denied, e)
}

// Address implements exit.
func (w *way) Address() string { return w.address }

// Denied implements exit.
func (w *way) Denied() []*abi.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.denied)
}

// Forget implements exit.
func (w *way) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied = nil
}

// Close implements exit.
func (w *way) Close() error { return w.proxy.Close() }
