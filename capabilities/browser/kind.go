package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// Kind is a headless browser. The options of a site are [EngineOptions]; how its pages reach servers follows from the options of http.Kind.
var Kind = &capability.Kind{
	Name: "browser", Interface: Interface, Permission: "browser", Example: `[ { "host": "example.com" } ]`,
	Parse: read, ParsePermission: readPermission, ParseSpec: readSpec, Learn: newRecorded,
	SpecForm: "browser:https://HOST[:PORT][,option]...",
	SpecMeans: `a headless browser that reaches these hosts; repeat the flag for more
options: pages=N, seconds=N, megabytes=N, addresses=127.0.0.0/8 for hosts that are not public;
intercept ends TLS in this program: then the URL may have a path, and the options of http hold`,
}

// Rights are rights to open pages of the hosts that rules name, and to load what these pages load from such hosts.
type Rights struct {
	// Rules have a scheme, a host and a port: inside TLS, a proxy sees nothing else. With Intercept they may have all that a rule of
	// http has.
	Rules []http.Rule
	// Within are sets of rules, an operator's ceilings. Each set must also allow a request. A manifest has none.
	Within [][]http.Rule
	// Intercept ends TLS in the proxy, which then sees whole requests.
	Intercept bool
	// Budget bounds what one call does.
	Budget Budget
	// Scope is whose browser it is. It is empty in a manifest, where an extension has one of its own.
	Scope string
}

// Bounds of a budget in a manifest.
const (
	maxPages     = 10_000
	maxSeconds   = 24 * 60 * 60
	maxMegabytes = 100_000
)

const (
	exampleRules  = `[{"host": "docs.example.com"}]`
	exampleObject = `{"rules": [{"host": "docs.example.com"}], "pages": 20}`
	exampleSpec   = "NAME=browser:https://docs.example.com"
)

func read(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	if _, isList := n.Value.([]*jsonform.Node); isList {
		return Rights{Rules: egress.ReadRules(r, n, "browser", false)}
	}
	fields := r.Fields(n, exampleRules+" or "+exampleObject, []string{"rules", "intercept", "pages", "seconds", "megabytes"}, "rules")
	if r.Err != nil {
		return nil
	}
	g := Rights{Intercept: egress.ReadIntercept(r, fields["intercept"])}
	for _, number := range []struct {
		name string
		most int
		to   *int
	}{{"pages", maxPages, &g.Budget.Pages}, {"seconds", maxSeconds, &g.Budget.Seconds}, {"megabytes", maxMegabytes, &g.Budget.Megabytes}} {
		field := fields[number.name]
		if field == nil {
			continue
		}
		value, _ := field.Value.(json.Number)
		n, err := strconv.Atoi(value.String())
		if err != nil || n < 1 || n > number.most {
			r.Fail(field, fmt.Sprintf("a number from 1 to %d", number.most), "the budget has no such number of %s", number.name)
		}
		*number.to = n
	}
	g.Rules = egress.ReadRules(r, fields["rules"], "browser", g.Intercept)
	return g
}

func readPermission(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	var g Rights
	for _, item := range r.Items(n, http.MaxRules, `["docs.example.com"]`) {
		host := r.Text(item, `"docs.example.com"`)
		if r.Err != nil {
			return nil
		}
		rule, err := egress.ParseRule("https://"+host, false)
		if err != nil || host == "*" {
			r.Fail(item, `a host, like "docs.example.com" or "*.example.com"`, "%s is not a host", jsonform.Quote(host))
		}
		g.Rules = append(g.Rules, rule)
		r.Next()
	}
	return g
}

// readSpec reads an origin and options.
func readSpec(s capability.Spec) (capability.Grant, error) {
	var g Rights
	var kept []string
	mistake := func(format string, args ...any) error {
		return &capability.MistakeError{Text: fmt.Sprintf(format, args...), Fix: exampleSpec}
	}
	for option := range strings.SplitSeq(s.Options, ",") {
		name, value, _ := strings.Cut(option, "=")
		number, most := (*int)(nil), 0
		switch name {
		case "":
			continue
		case "pages":
			number, most = &g.Budget.Pages, maxPages
		case "seconds":
			number, most = &g.Budget.Seconds, maxSeconds
		case "megabytes":
			number, most = &g.Budget.Megabytes, maxMegabytes
		case "intercept":
			g.Intercept = true
			continue
		case "addresses", "methods", "headers", "credential", "as":
			kept = append(kept, option)
			continue
		default:
			return nil, mistake("a browser has no option %s; the options are pages, seconds, megabytes, addresses and intercept, and with that those of http", jsonform.Quote(name))
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most {
			return nil, mistake("%s is not a number from 1 to %d", jsonform.Quote(option), most)
		}
		*number = n
	}
	at := s.Argument
	if !g.Intercept {
		at = strings.TrimSuffix(at, "/")
	}
	rule, err := egress.ParseRule(strings.Join(append([]string{at}, kept...), ","), g.Intercept)
	if err != nil {
		return nil, mistake("%v", err)
	}
	g.Rules = []http.Rule{rule}
	return g, nil
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// document is the long form of a manifest.
type document struct {
	Rules     []http.Rule `json:"rules"`
	Intercept bool        `json:"intercept,omitempty"`
	Budget
	Within [][]http.Rule `json:"within,omitempty"`
}

// Document implements [capability.Grant]; with Within it is for people only.
func (g Rights) Document() any {
	if !g.Intercept && g.Budget == (Budget{}) && len(g.Within) == 0 {
		return g.Rules
	}
	return document{g.Rules, g.Intercept, g.Budget, g.Within}
}

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	lines := g.traffic().Describe("may use a web browser, whose encryption ends in this program, and what the browser may send is:", func(place string) string {
		return "may visit " + place + " in a web browser, run what its pages say, and send them anything"
	})
	b := g.Budget.orDefaults()
	return append(lines, fmt.Sprintf("at most %d pages, %d seconds and %d megabytes in each call", b.Pages, b.Seconds, b.Megabytes))
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	b := g.Budget.orDefaults()
	return append(g.traffic().Authority("browser"), fmt.Sprintf("browser up to %d pages, %d seconds, %d megabytes", b.Pages, b.Seconds, b.Megabytes))
}

// traffic is what pages may send.
func (g Rights) traffic() egress.Traffic {
	return egress.Traffic{Rules: g.Rules, Within: g.Within, Intercept: g.Intercept}
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	if !ok {
		return false
	}
	have, want := g.Budget.orDefaults(), a.Budget.orDefaults()
	if want.Pages > have.Pages || want.Seconds > have.Seconds || want.Megabytes > have.Megabytes || a.Scope != g.Scope && g.Scope != "" {
		return false
	}
	return g.traffic().Covers(a.traffic())
}

// Limit implements [capability.Limiter]. It drops rules that have nothing in common with the ceiling, and keeps the rest within it.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	var limits []egress.Traffic
	var most Budget
	for _, c := range ceiling {
		c, ok := c.(Rights)
		if !ok || c.Intercept != g.Intercept {
			continue
		}
		limits = append(limits, c.traffic())
		b := c.Budget.orDefaults()
		most = Budget{max(most.Pages, b.Pages), max(most.Seconds, b.Seconds), max(most.Megabytes, b.Megabytes)}
	}
	limited, ok := g.traffic().Limit(limits)
	if !ok {
		return nil
	}
	kept := g
	kept.Rules, kept.Within = limited.Rules, limited.Within
	have := g.Budget.orDefaults()
	less := Budget{min(have.Pages, most.Pages), min(have.Seconds, most.Seconds), min(have.Megabytes, most.Megabytes)}
	if less != have {
		kept.Budget = less
	}
	return kept
}

// Size implements [capability.Sizer].
func (g Rights) Size() (rules, work int) { return g.traffic().Size() }

// Merge implements [capability.Merger]. Each part may name a budget; the last one counts.
func (g Rights) Merge(more capability.Grant) capability.Grant {
	m, ok := more.(Rights)
	if !ok || g.Intercept != m.Intercept {
		return nil
	}
	g.Rules = append(slices.Clip(g.Rules), m.Rules...)
	for _, number := range []struct{ to, from *int }{
		{&g.Budget.Pages, &m.Budget.Pages}, {&g.Budget.Seconds, &m.Budget.Seconds}, {&g.Budget.Megabytes, &m.Budget.Megabytes},
	} {
		if *number.from != 0 {
			*number.to = *number.from
		}
	}
	return g
}

// Own implements [capability.Owner]: an extension has a browser of its own.
func (g Rights) Own(store, _ string) capability.Grant {
	g.Scope = store
	return g
}

// Reach implements [capability.Reacher]. Pages send what they like to their hosts.
func (g Rights) Reach() (changes, open bool) { return g.traffic().Reach() }

// Hosts implements [capability.Hoster].
func (g Rights) Hosts() []string { return g.traffic().Hosts() }

// Secrets implements [capability.SecretUser].
func (g Rights) Secrets() []string { return http.Secrets(g.Rules) }

// Specs implements [capability.SecretUser].
func (g Rights) Specs() []string {
	var options []string
	if g.Intercept {
		options = append(options, "intercept")
	}
	for _, number := range []struct {
		name  string
		value int
	}{{"pages", g.Budget.Pages}, {"seconds", g.Budget.Seconds}, {"megabytes", g.Budget.Megabytes}} {
		if number.value != 0 {
			options = append(options, fmt.Sprintf("%s=%d", number.name, number.value))
		}
	}
	specs := make([]string, len(g.Rules))
	for i, rule := range g.Rules {
		specs[i] = strings.Join(append([]string{rule.String()}, options...), ",")
	}
	return specs
}

// Short implements [capability.Shortener].
func (g Rights) Short() any { return []string{g.Rules[0].Host} }

// Remedy implements [capability.Remedier]: the wanted rule, with the addresses that the command line gave for the same host.
func (g Rights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(Rights)
	if !ok || len(w.Rules) != 1 {
		return ""
	}
	var options []string
	if g.Intercept {
		options = []string{"intercept"}
	}
	return w.Rules[0].Remedy(spec, "browser", g.Rules, options...)
}

// wants is the grant that a rule of a denial stands for.
func (g Rights) wants(rule http.Rule) abi.Wants {
	if g.Intercept {
		return capability.Wanted{Grant: Rights{Rules: []http.Rule{rule}, Intercept: true}}
	}
	return capability.Wanted{Grant: Rights{Rules: []http.Rule{{Scheme: rule.Scheme, Host: rule.Host, Port: rule.Port}}}}
}

// engineFile names the engine among the stores of a site, which closes it. It has no file.
const engineFile = "browser"

// Open implements [capability.Opener].
func (g Rights) Open(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	return g.open(ctx, s)
}

// Last implements [capability.Laster]: the page stays open from call to call.
func (g Rights) Last(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	opened, err := g.open(ctx, s)
	if err != nil {
		return nil, err
	}
	lasting := opened.Lasting() //nolint:contextcheck // the page outlives the call
	s.Hold(lasting, lasting.Close)
	return lasting, nil
}

func (g Rights) open(ctx context.Context, s *capability.Site) (*Grant, error) {
	engine, err := capability.Store(ctx, s, engineFile, func(context.Context, string) (*Engine, error) {
		o, _ := s.Options(Kind).(EngineOptions)
		return NewEngine(o), nil
	})
	if err != nil {
		return nil, err
	}
	return newGrant(engine, s, g)
}
