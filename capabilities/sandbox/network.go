package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// A sandbox's network is empty but for a proxy, which listens in its namespace and is served by this process. Within TLS the proxy sees
// nothing, so rules have a scheme, a host and a port, and nothing else.

const (
	maxNetwork     = 64
	exampleNetwork = `{"host": "api.example.com"}`
)

// readNetwork reads the rules of a manifest.
func readNetwork(r *jsonform.Reader, n *jsonform.Node) (rules []http.Rule) {
	for _, item := range r.Items(n, maxNetwork, "["+exampleNetwork+"]") {
		for _, m := range r.Members(item, exampleNetwork) {
			if slices.Contains([]string{"path", "methods", "headers", "credential", "as", "maxResponse"}, m.Key) {
				r.FailAt(m.Offset, m.Value.Path, `only "scheme", "host" and "port"`, "%s is hidden in TLS from the proxy of a sandbox", m.Key)
			}
		}
		if r.Err != nil {
			return nil
		}
		one := *n
		one.Value = []*jsonform.Node{item}
		if g, ok := http.Kind.Parse(r, &one).(http.Rights); ok && r.Err == nil {
			rules = append(rules, g.Rules...)
		}
	}
	return rules
}

// parseNetwork reads the rule of a command line, and returns what is wrong with it.
func parseNetwork(text string) (http.Rule, string) {
	rule, err := http.ParseRule(text)
	switch {
	case err != nil:
		return rule, err.Error()
	case rule.Path != "" && rule.Path != "/**":
		return rule, "a path is hidden in TLS from the proxy of a sandbox: write only scheme, host and port"
	}
	rule.Path = ""
	return rule, ""
}

// wide are rules as http compares them: for a proxy that sees no requests, they allow every method.
func wide(rules []http.Rule) []http.Rule {
	all := slices.Clone(rules)
	for i := range all {
		all[i].Methods = []string{"*"}
	}
	return all
}

// coversNetwork reports whether one set of rules allows all that another does.
func coversNetwork(allowed, asked []http.Rule) bool {
	return len(asked) == 0 || len(allowed) > 0 && http.Covers(wide(allowed), wide(asked))
}

// connect starts the proxy of a sandbox, and returns the variables by which programs find it.
func connect(ctx context.Context, site *capability.Site, rules []http.Rule, namespace string, log *slog.Logger) (env []string, end func() error, err error) {
	if site == nil {
		return nil, nil, errors.New("sandbox: Options.Site is required for rules of a network")
	}
	ctx = context.WithoutCancel(ctx) // the sandbox outlives the operation that started it, and ends the proxy itself
	proxy, err := egress.New(ctx, egress.Options{
		Site: site, Rules: rules,
		Wants: func(r http.Rule) abi.Wants {
			return capability.Wanted{Grant: Rights{Image: "host", Network: []http.Rule{{Scheme: r.Scheme, Host: r.Host, Port: r.Port}}}}
		},
		Refused: func(e *abi.Error) { log.Info("a sandbox's connection is refused", "error", e) },
		Charge:  func(n int) error { return abi.Charge(ctx, n) },
	})
	if err != nil {
		return nil, nil, err
	}
	inside, err := egress.OpenNamespace(namespace)
	if err != nil {
		return nil, nil, errors.Join(err, proxy.Close())
	}
	listener, err := inside.Listen()
	if err = errors.Join(err, inside.Close()); err != nil {
		return nil, nil, errors.Join(err, proxy.Close())
	}
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(listener) }() //nolint:contextcheck // the proxy has the context
	address := "http://" + listener.Addr().String()
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		env = append(env, name+"="+address)
	}
	env = append(env, "no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1")
	return env, func() error { return errors.Join(proxy.Close(), <-served) }, nil
}

// connected is a machine with a proxy.
type connected struct {
	machine
	env []string
	end func() error
}

func (c connected) run(ctx context.Context, p box.Process) (box.Exit, error) {
	p.Env = slices.Concat(c.env, p.Env)
	return c.machine.run(ctx, p)
}

func (c connected) close() error { return errors.Join(c.machine.close(), c.end()) }
