package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// trusting are variables by which programs find the authorities that they trust: those of OpenSSL, curl, git, Node.js, Python's requests and
// pip, cargo, and others. Most also read a file of the system, which has the authority of the proxy too.
var trusting = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	"DENO_CERT", "NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
}

// network is the way out of a sandbox, whose own network is empty: a proxy, which listens in the sandbox's namespace and is served by this
// process.
type network struct {
	proxy  *egress.Proxy
	served chan error
	most   int64 // bytes for each call
	rest   *user // who pays between commands: nobody

	mu      sync.Mutex
	running []*user // in the order in which they began
}

// user is a command that runs. The newest one pays for what the proxy carries, because nothing says whose it is.
type user struct {
	ctx     context.Context //nolint:containedctx // with the budgets of its call
	traffic *traffic        // of its call
	refused map[string]bool // what to tell the command
}

// traffic counts bytes of one call.
type traffic struct{ bytes atomic.Int64 }

// trafficKey is that of sandboxes of a call whose grants have equal limits. They share one.
type trafficKey struct{ most int64 }

func trafficOf(ctx context.Context, most int64) *traffic {
	return abi.OfCall(ctx, trafficKey{most}, func() *traffic { return new(traffic) })
}

// unlimited is more than any proxy carries: what counts are the limits of each call.
const unlimited = math.MaxInt64

// maxRefused is how many refusals a command is told.
const maxRefused = 8

// newNetwork returns the proxy of a sandbox, before the sandbox starts.
func newNetwork(ctx context.Context, site *capability.Site, g Rights, log *slog.Logger) (*network, error) {
	if site == nil {
		return nil, errors.New("sandbox: Options.Site is required for rules of a network")
	}
	n := &network{most: g.Limits.withDefaults().Traffic, rest: &user{ctx: context.Background(), traffic: new(traffic)}}
	// The sandbox outlives the operation that started it, and ends the proxy itself. What the proxy takes is that of the commands.
	ctx = abi.WithWork(context.WithoutCancel(ctx), func(took time.Duration) error { return abi.Work(n.payer().ctx, took) })
	var err error
	n.proxy, err = egress.New(ctx, egress.Options{
		Site: site, Rules: g.Network, Within: g.Within, Intercept: g.Intercept, Wants: g.wants,
		Refused: func(e *abi.Error) {
			n.refused(e)
			log.Info("a sandbox's connection is refused", "error", e)
		},
		Charge: n.carry,
		Limits: egress.Limits{Bytes: unlimited},
	})
	return n, err
}

// connect starts a machine, and a proxy in its network. begin gets the certificate of the authority that its programs have to trust, or nil.
func connect(ctx context.Context, site *capability.Site, g Rights, log *slog.Logger, begin func(authority []byte) (machine, error)) (machine, error) {
	n, err := newNetwork(ctx, site, g, log)
	if err != nil {
		return nil, err
	}
	m, err := begin(n.proxy.Authority().PEM)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	c := connected{machine: m, way: n}
	namespace, err := m.network()
	if err == nil {
		c.env, err = n.serve(namespace) //nolint:contextcheck // the proxy has the context
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// serve listens in a sandbox's namespace, and returns the variables by which programs find the proxy and its authority.
func (n *network) serve(namespace string) (env []string, err error) {
	inside, err := egress.OpenNamespace(namespace)
	if err != nil {
		return nil, err
	}
	listener, err := inside.Listen()
	if err = errors.Join(err, inside.Close()); err != nil {
		return nil, err
	}
	n.served = make(chan error, 1)
	go func() { n.served <- n.proxy.Serve(listener) }()
	address := "http://" + listener.Addr().String()
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		env = append(env, name+"="+address)
	}
	env = append(env, "no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1")
	if n.proxy.Authority().PEM != nil {
		for _, name := range trusting {
			env = append(env, name+"="+box.Authorities)
		}
	}
	return env, nil
}

func (n *network) close() error {
	err := n.proxy.Close()
	if n.served != nil {
		err = errors.Join(err, <-n.served)
	}
	return err
}

// carry counts bytes, for the call of the command that pays.
func (n *network) carry(bytes int) error {
	pays := n.payer()
	if err := abi.Charge(pays.ctx, bytes); err != nil {
		return err
	}
	if pays.traffic.bytes.Add(int64(bytes)) <= n.most {
		return nil
	}
	over := abi.Spent("traffic of the sandbox in one call", showSize(n.most), "traffic")
	n.refused(over)
	return over
}

// payer is the newest command. Between commands, what is still under way is carried for nobody.
func (n *network) payer() *user {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.running) == 0 {
		return n.rest
	}
	return n.running[len(n.running)-1]
}

// refused notes a refusal for the commands that run.
func (n *network) refused(e *abi.Error) {
	text := e.Error()
	if e.Denial != nil && !e.Denial.Private {
		if wanted, ok := e.Denial.Wants.(capability.Wanted); ok {
			text += "; a rule of the network that allows it: " + string(capability.JSON(wanted.Grant.(Rights).Network[0]))
		}
	}
	text = printable.Short(text, 2000)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.running {
		if len(u.refused) < maxRefused {
			u.refused[text] = true
		}
	}
}

func (n *network) begin(ctx context.Context) *user {
	u := &user{ctx, trafficOf(ctx, n.most), map[string]bool{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = append(n.running, u)
	return u
}

// end returns what was refused while a command ran.
func (n *network) end(u *user) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = slices.DeleteFunc(n.running, func(one *user) bool { return one == u })
	return slices.Sorted(maps.Keys(u.refused))
}

// connected is a machine with a network.
type connected struct {
	machine
	way *network
	env []string
}

// run runs a process. What the proxy refused meanwhile is the end of its errors: programs seldom show what a proxy answers.
func (c connected) run(ctx context.Context, p box.Process) (box.Exit, error) {
	p.Env = slices.Concat(c.env, p.Env)
	u := c.way.begin(ctx)
	exit, err := c.machine.run(ctx, p)
	if refused := c.way.end(u); len(refused) > 0 && err == nil {
		p.Output(box.Stderr, fmt.Appendf(nil, "stile: %s\n", strings.Join(refused, "\nstile: ")))
	}
	return exit, err
}

func (c connected) close() error { return errors.Join(c.machine.close(), c.way.close()) }

// traffic is what programs may send.
func (g Rights) traffic() egress.Traffic {
	return egress.Traffic{Rules: g.Network, Within: g.Within, Intercept: g.Intercept}
}

// wants is the grant that a rule of a denial stands for.
func (g Rights) wants(rule http.Rule) abi.Wants {
	if !g.Intercept {
		rule = http.Rule{Scheme: rule.Scheme, Host: rule.Host, Port: rule.Port}
	}
	return capability.Wanted{Grant: Rights{Image: g.Image, Network: []http.Rule{rule}, Intercept: g.Intercept}}
}
