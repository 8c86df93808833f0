package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/conformance"
	"github.com/stilehost/stile/conformance/adapter"
	"github.com/stilehost/stile/conformance/protocol"
)

// everywhere are all addresses.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

var everyHeader = []string{"*", "Authorization", "Cookie", "X-HTTP-Method-Override"}

// faults are ways in which a host can be wrong.
var faults = map[string]func(*adapter.Options){
	"allow-everything": clientOf(func(rules []http.Rule, u *url.URL) []http.Rule {
		return forgetRedirects([]http.Rule{{Scheme: u.Scheme, Host: u.Hostname(), Port: port(u), Methods: []string{"*"}, Headers: everyHeader, Addresses: everywhere}}, u)
	}),
	"ignore-ports":     client(func(rule *http.Rule, u *url.URL) { rule.Port = port(u) }),
	"ignore-hosts":     client(func(rule *http.Rule, u *url.URL) { rule.Host = u.Hostname() }),
	"ignore-methods":   client(func(rule *http.Rule, _ *url.URL) { rule.Methods = []string{"*"} }),
	"ignore-paths":     client(func(rule *http.Rule, _ *url.URL) { rule.Path = "" }),
	"ignore-addresses": client(func(rule *http.Rule, _ *url.URL) { rule.Addresses = everywhere }),
	"ignore-headers": client(func(rule *http.Rule, _ *url.URL) {
		rule.Headers = everyHeader
	}),
	"ignore-sizes":     client(func(rule *http.Rule, _ *url.URL) { rule.MaxResponse = 1 << 33 }),
	"forget-redirects": clientOf(forgetRedirects),
	"check-then-dial":  checkThenDial,
	"deny-everything": func(o *adapter.Options) {
		o.Alter = func(c *protocol.Call) { each(c, func(b *protocol.Binding) { b.Rules, b.Access = nil, "read" }) }
	},
	"write-to-read-only": func(o *adapter.Options) {
		o.Alter = func(c *protocol.Call) { each(c, func(b *protocol.Binding) { b.Access = "read-write" }) }
	},
	"escape-by-path": func(o *adapter.Options) {
		o.Replace = func(b *adapter.Binding) (abi.Capability, error) {
			if d, ok := b.Capability.(*workspace.Directory); ok {
				return &escaping{d, b.Directory}, nil
			}
			return b.Capability, nil
		}
	},
	"one-bucket": func(o *adapter.Options) {
		o.Alter = func(c *protocol.Call) { each(c, func(b *protocol.Binding) { b.Store, _ = ofCase(*b) }) }
	},
	"keep-bindings": func(o *adapter.Options) {
		kept, of := map[string]protocol.Binding{}, ""
		o.Alter = func(c *protocol.Call) {
			id := ""
			for _, b := range c.Env {
				if _, its := ofCase(b); its != "" {
					id = its
				}
			}
			if id == "" || id != of { // what an earlier case had is gone
				of = id
				clear(kept)
			}
			maps.Copy(kept, c.Env)
			c.Env = maps.Clone(kept)
		}
	},
	"ignore-limits": func(o *adapter.Options) { o.Alter = func(c *protocol.Call) { c.Limits = protocol.Limits{} } },
	"ignore-budgets": func(o *adapter.Options) {
		o.Alter = func(c *protocol.Call) { each(c, func(b *protocol.Binding) { b.Grant = nil }) }
	},
	"ignore-revoke": func(*adapter.Options) {}, // deaf takes the requests away
	"ignore-cancel": func(*adapter.Options) {},
}

// ofCase returns the part of a bucket's name that all buckets of a case share, and what names the case of a bucket or a directory.
func ofCase(b protocol.Binding) (bucket, id string) {
	bucket = b.Store[:max(strings.LastIndexByte(b.Store, '-'), 0)]
	if b.Directory != "" {
		return bucket, filepath.Base(filepath.Dir(b.Directory))
	}
	return bucket, bucket
}

func each(c *protocol.Call, change func(*protocol.Binding)) {
	for name, b := range c.Env {
		change(&b)
		c.Env[name] = b
	}
}

func port(u *url.URL) uint16 {
	n, _ := strconv.ParseUint(u.Port(), 10, 16)
	return uint16(n)
}

// loose is a client whose rules are loosened for each request.
type loose struct {
	options http.Options
	loosen  func(rules []http.Rule, u *url.URL) []http.Rule
}

// client makes a fault of http that changes each rule by what a request asks for.
func client(loosen func(*http.Rule, *url.URL)) func(*adapter.Options) {
	return clientOf(func(rules []http.Rule, u *url.URL) []http.Rule {
		rules = slices.Clone(rules)
		for i := range rules {
			loosen(&rules[i], u)
		}
		return rules
	})
}

func clientOf(loosen func([]http.Rule, *url.URL) []http.Rule) func(*adapter.Options) {
	return func(o *adapter.Options) {
		o.Replace = func(b *adapter.Binding) (abi.Capability, error) {
			if b.Kind != "http" {
				return b.Capability, nil
			}
			return &loose{b.HTTP, loosen}, nil
		}
	}
}

func (l *loose) Interface() string { return http.Interface }

func (l *loose) Start(ctx context.Context, r http.Request) (*http.Exchange, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	o := l.options
	o.Rules, o.Within = l.loosen(o.Rules, u), slices.Clone(o.Within)
	for i := range o.Within {
		o.Within[i] = l.loosen(o.Within[i], u)
	}
	g, err := http.New(o)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	opened, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	return opened.(*http.Client).Start(ctx, r)
}

func (l *loose) Narrow(_ context.Context, rules []http.WitRule) (*loose, error) {
	var set []http.Rule
	for _, r := range rules {
		rule := http.Rule{Scheme: r.Scheme, Host: r.Host, Methods: r.Methods, Path: r.Path, Headers: r.Headers, Addresses: everywhere}
		if r.Port != nil {
			rule.Port = *r.Port
		}
		set = append(set, rule)
	}
	narrowed := *l
	narrowed.options.Within = append(slices.Clone(l.options.Within), set)
	return &narrowed, nil
}

func (*loose) Rules(context.Context) []http.WitRule { return nil }

// forgetRedirects allows what a request would be redirected to, whatever it is.
func forgetRedirects(rules []http.Rule, u *url.URL) []http.Rule {
	var hops []http.Rule
	for u.Query().Has("to") {
		target, err := u.Parse(u.Query().Get("to"))
		if err != nil || target.Scheme != "http" {
			break
		}
		hops = append(hops, http.Rule{
			Scheme: target.Scheme, Host: target.Hostname(), Port: port(target), Path: target.Path,
			Methods: []string{"*"}, Headers: everyHeader, Addresses: everywhere,
		})
		u = target
	}
	return append(hops, rules...) // the first rule that allows a request decides about its address
}

// checkThenDial checks the address of a name, and has it looked up again to dial it.
func checkThenDial(o *adapter.Options) {
	o.Replace = func(b *adapter.Binding) (abi.Capability, error) {
		if b.Kind != "http" {
			return b.Capability, nil
		}
		resolver, original := b.HTTP.Resolver, b.HTTP.Rules
		return &loose{b.HTTP, func(rules []http.Rule, u *url.URL) []http.Rule {
			addresses, _ := resolver.LookupNetIP(context.Background(), "ip", u.Hostname())
			rules = slices.Clone(rules)
			for i, r := range original {
				if len(addresses) > 0 && slices.ContainsFunc(r.Addresses, func(p netip.Prefix) bool { return p.Contains(addresses[0]) }) {
					rules[i].Addresses = everywhere
				}
			}
			return rules
		}}, nil
	}
}

// escaping is a directory that joins paths as texts.
type escaping struct {
	*workspace.Directory
	root string
}

func (e *escaping) Read(ctx context.Context, path string) (string, error) {
	text, err := e.Directory.Read(ctx, path)
	if errors.Is(err, abi.ErrDenied) {
		data, err := os.ReadFile(filepath.Join(e.root, path))
		return string(data), err
	}
	return text, err
}

func (e *escaping) Write(ctx context.Context, path, text string) error {
	err := e.Directory.Write(ctx, path, text)
	if errors.Is(err, abi.ErrDenied) {
		return os.WriteFile(filepath.Join(e.root, path), []byte(text), 0o600)
	}
	return err
}

func (e *escaping) Subdirectory(ctx context.Context, path string) (*escaping, error) {
	d, err := e.Directory.Subdirectory(ctx, path)
	if errors.Is(err, abi.ErrDenied) {
		d, err = e.Directory, nil
	}
	return &escaping{d, filepath.Join(e.root, path)}, err
}

func (e *escaping) ReadOnly(context.Context) (*escaping, error) {
	return &escaping{e.AsReadOnly(), e.root}, nil
}

// deaf answers requests of an op itself, without doing anything, and passes the others on. What goes wrong ends its reader.
func deaf(in io.Reader, op string, answer func(protocol.Response) error) io.Reader {
	passed, w := io.Pipe()
	go func() {
		requests := protocol.NewReader(in)
		for {
			var r protocol.Request
			err := requests.Read(&r)
			switch {
			case err != nil:
			case r.Op == op:
				err = answer(protocol.Response{ID: r.ID})
			default:
				err = protocol.Write(w, r)
			}
			if err != nil {
				_ = w.CloseWithError(err) // which never fails
				return
			}
		}
	}()
	return passed
}

const broken = "testdata/broken.json"

// mustFail are the cases that each broken host fails.
func mustFail(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]string
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBrokenHosts has the suite judge hosts that are wrong in one way each, by some of the cases that each must fail. The long test
// TestLongBrokenHosts has all cases.
func TestBrokenHosts(t *testing.T) {
	const most = 3
	w, all := newWorkbench(t), mustFail(t)
	for how := range faults {
		cases := all[how]
		if len(cases) == 0 {
			t.Errorf("%s must fail no case", how)
		}
		for _, c := range w.run(t, how, cases[:min(len(cases), most)]...).Cases {
			if c.Verdict != conformance.Fail {
				t.Errorf("%s: %s is a %s", how, c.Name, c.Verdict)
			}
		}
	}
}
