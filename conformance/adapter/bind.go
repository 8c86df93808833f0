package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/host"
)

// binder makes the capabilities of calls.
type binder struct {
	folder  string
	replace func(*Binding) (abi.Capability, error)
	browser browser.EngineOptions
	buckets *kv.Store
	site    *capability.Site
	disks   []io.Closer
}

// Binding is a binding that a call asks for.
type Binding struct {
	protocol.Binding
	// Capability is what this host binds.
	Capability abi.Capability
	// HTTP are the options of an http binding.
	HTTP http.Options
}

// openers make the capability of each kind.
var openers = map[string]func(context.Context, *binder, *Binding) (abi.Capability, error){
	"http": func(_ context.Context, _ *binder, b *Binding) (abi.Capability, error) { return http.New(b.HTTP) },
	"workspace": func(_ context.Context, r *binder, b *Binding) (abi.Capability, error) {
		disk, err := workspace.OpenDisk(b.Directory, workspace.DiskOptions{})
		if err != nil {
			return nil, err
		}
		r.disks = append(r.disks, disk)
		if b.Access != string(workspace.ReadWrite) {
			return disk.Directory().AsReadOnly(), nil
		}
		return disk.Directory(), nil
	},
	"browser": func(ctx context.Context, r *binder, b *Binding) (abi.Capability, error) {
		if r.site == nil {
			r.site = capability.NewSite(r.folder, func(capability.Level, string) {})
			r.site.Configure(browser.Kind, r.browser)
		}
		var all capability.Grant
		for _, rule := range b.Rules {
			g, err := browser.Kind.ParseSpec(capability.Spec{Name: "browser", Argument: fmt.Sprintf("%s://%s:%d", rule.Scheme, rule.Host, rule.Port), HasArgument: true})
			if err != nil {
				return nil, err
			}
			if merger, ok := all.(capability.Merger); ok {
				g = merger.Merge(g)
			}
			all = g
		}
		opener, ok := all.(capability.Opener)
		if !ok {
			return nil, errors.New("a browser needs a rule")
		}
		return opener.Open(ctx, r.site)
	},
	"kv": func(ctx context.Context, r *binder, b *Binding) (abi.Capability, error) {
		if r.buckets == nil {
			var err error
			if r.buckets, err = kv.Open(ctx, filepath.Join(r.folder, "kv.db"), kv.Options{}); err != nil {
				return nil, err
			}
		}
		return r.buckets.Bucket(b.Store), nil
	},
	"clock":  func(context.Context, *binder, *Binding) (abi.Capability, error) { return clock.System(), nil },
	"random": func(context.Context, *binder, *Binding) (abi.Capability, error) { return random.System(), nil },
	"console": func(context.Context, *binder, *Binding) (abi.Capability, error) {
		return console.To(func(console.Level, string) {}), nil
	},
	"blob": func(_ context.Context, _ *binder, b *Binding) (abi.Capability, error) {
		return blob.NewStore(blob.StoreOptions{Limit: b.Bytes}), nil
	},
}

// bind makes the env of a call, and puts the grant of each binding into grants.
func (r *binder) bind(ctx context.Context, c *protocol.Call, grants map[string]*host.Grant) (host.Env, error) {
	env := host.Env{}
	for name, wanted := range c.Env {
		open := openers[wanted.Kind]
		if open == nil {
			return nil, fmt.Errorf("binding %s: this host has no kind %q", name, wanted.Kind)
		}
		b := &Binding{Binding: wanted}
		rules, err := httpRules(wanted.Rules)
		if err == nil {
			b.HTTP = http.Options{Rules: rules, Resolver: &resolver{answers: c.Names, asked: map[string]int{}}, Held: b.Held, Received: b.Received, Timeout: 20 * time.Second}
			b.Capability, err = open(ctx, r, b)
		}
		if err == nil && r.replace != nil {
			b.Capability, err = r.replace(b)
		}
		if err != nil {
			return nil, fmt.Errorf("binding %s: %w", name, err)
		}
		var o host.GrantOptions
		if g := b.Grant; g != nil {
			o.Operations, o.Bytes = g.Operations, g.Bytes
			if g.Expires != 0 {
				o.Expires = time.Now().Add(milliseconds(g.Expires))
			}
		}
		grants[name] = host.NewGrant(b.Capability, o)
		env[name] = grants[name]
	}
	return env, nil
}

func (r *binder) close() (err error) {
	for _, d := range r.disks {
		err = errors.Join(err, d.Close())
	}
	if r.site != nil {
		err = errors.Join(err, r.site.Close())
	}
	if r.buckets != nil {
		err = errors.Join(err, r.buckets.Close())
	}
	return err
}

func httpRules(wanted []protocol.Rule) ([]http.Rule, error) {
	var rules []http.Rule
	for _, w := range wanted {
		rule := http.Rule{Scheme: w.Scheme, Host: w.Host, Port: w.Port, Methods: w.Methods, Path: w.Path, Headers: w.Headers, MaxResponse: w.MaxResponse}
		for _, text := range w.Addresses {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, err
			}
			rule.Addresses = append(rule.Addresses, prefix)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// resolver answers for the names of a call and no others.
type resolver struct {
	answers map[string][][]string

	mu    sync.Mutex
	asked map[string]int
}

// LookupNetIP implements http.Resolver.
func (r *resolver) LookupNetIP(_ context.Context, _, name string) (addresses []netip.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answers := r.answers[name]
	if len(answers) == 0 {
		return nil, fmt.Errorf("there is no name %s", name)
	}
	at := min(r.asked[name], len(answers)-1)
	r.asked[name]++
	for _, text := range answers[at] {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}
