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
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// Kind is a headless browser. The options of a site are [EngineOptions]; how its pages reach servers follows from the options of http.Kind.
var Kind = &capability.Kind{
	Name: "browser", Interface: Interface, Permission: "browser", Example: `[ { "host": "example.com" } ]`,
	Parse: read, ParsePermission: readPermission, ParseSpec: readSpec, Learn: newRecorded,
	SpecForm: "browser:https://HOST[:PORT][,option]...",
	SpecMeans: `a headless browser that reaches these hosts; repeat the flag for more
options: pages=N, seconds=N, megabytes=N, addresses=127.0.0.0/8 for hosts that are not public`,
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
	exampleRule   = `{"host": "docs.example.com"}`
	exampleRules  = `[{"host": "docs.example.com"}]`
	exampleObject = `{"rules": [{"host": "docs.example.com"}], "pages": 20}`
	exampleSpec   = "NAME=browser:https://docs.example.com"
)

// hidden are the fields of a rule of http that a proxy cannot apply unless it ends TLS.
var hidden = []string{"methods", "path", "headers", "credential", "as", "maxResponse"}

func read(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	if _, isList := n.Value.([]*jsonform.Node); isList {
		return Rights{Rules: readRules(r, n, false)}
	}
	fields := r.Fields(n, exampleRules+" or "+exampleObject, []string{"rules", "intercept", "pages", "seconds", "megabytes"}, "rules")
	if r.Err != nil {
		return nil
	}
	var g Rights
	if on := fields["intercept"]; on != nil {
		if on.Value != true {
			r.Fail(on, "true, or leave it out", "this is not true")
		}
		g.Intercept = true
	}
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
	g.Rules = readRules(r, fields["rules"], g.Intercept)
	return g
}

func readRules(r *jsonform.Reader, n *jsonform.Node, intercept bool) (rules []http.Rule) {
	for _, item := range r.Items(n, http.MaxRules, exampleRules) {
		if !intercept {
			known := slices.Concat([]string{"scheme", "host", "port"}, hidden)
			fields := r.Fields(item, exampleRule, known, "host")
			for _, name := range hidden {
				if field := fields[name]; field != nil {
					r.Fail(field, `a rule of scheme, host and port, or "intercept": true beside the rules`,
						"a rule of browser has no %s: inside TLS, a proxy sees the host and the port only", name)
				}
			}
			if r.Err != nil {
				return nil
			}
		}
		rule := http.ReadRule(r, item)
		if rule.MaxResponse != 0 {
			r.Fail(item, "a rule without maxResponse", "a rule of browser has no maxResponse: the budget has megabytes")
		}
		rules = append(rules, rule)
	}
	return rules
}

func readPermission(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	var g Rights
	for _, item := range r.Items(n, http.MaxRules, `["docs.example.com"]`) {
		host := r.Text(item, `"docs.example.com"`)
		if r.Err != nil {
			return nil
		}
		rule, err := parseOrigin("https://" + host)
		if err != nil || host == "*" {
			r.Fail(item, `a host, like "docs.example.com" or "*.example.com"`, "%s is not a host", jsonform.Quote(host))
		}
		g.Rules = append(g.Rules, rule)
	}
	return g
}

// parseOrigin reads "https://example.com:8443": what a rule without intercept can say.
func parseOrigin(text string) (http.Rule, error) {
	rule, err := http.ParseRule(text)
	if err == nil && rule.Path != "" {
		return rule, fmt.Errorf("%s has a path, and inside TLS a proxy sees the host and the port only", jsonform.Quote(text))
	}
	return rule, err
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
		case "addresses":
			kept = append(kept, option)
			continue
		default:
			return nil, mistake("a browser has no option %s; the options are pages, seconds, megabytes and addresses", jsonform.Quote(name))
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most {
			return nil, mistake("%s is not a number from 1 to %d", jsonform.Quote(option), most)
		}
		*number = n
	}
	rule, err := parseOrigin(strings.Join(append([]string{strings.TrimSuffix(s.Argument, "/")}, kept...), ","))
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
	h := http.Rights{Rules: g.Rules, Within: g.Within}
	var lines []string
	if g.Intercept {
		lines = append(lines, "may use a web browser, whose encryption ends in this program, and what the browser may send is:")
		for _, line := range h.Describe() {
			lines = append(lines, "  "+line)
		}
	} else {
		for _, r := range g.Rules {
			lines = append(lines, "may visit "+placeOf(r)+" in a web browser, run what its pages say, and send them anything")
		}
		for _, set := range g.Within {
			lines = append(lines, "but only where this allows it as well:")
			for _, r := range set {
				lines = append(lines, "  "+placeOf(r))
			}
		}
	}
	b := g.Budget.orDefaults()
	return append(lines, fmt.Sprintf("at most %d pages, %d seconds and %d megabytes in each call", b.Pages, b.Seconds, b.Megabytes))
}

// placeOf is the origin of a rule, in words.
func placeOf(rule http.Rule) string {
	r, err := rule.Normal()
	if err != nil {
		return "nothing, as a rule is not valid"
	}
	text := origin(r)
	if r.Host == "*" {
		text += ", which is every host with a public address,"
	}
	if len(r.Addresses) > 0 {
		texts := make([]string, len(r.Addresses))
		for i, prefix := range r.Addresses {
			texts[i] = prefix.String()
		}
		text += ", also at the addresses " + strings.Join(texts, ", ") + ","
	}
	if r.Scheme == "http" {
		text += " without encryption"
	}
	return printable.Line(text)
}

// origin is the scheme, host and port of a rule.
func origin(r http.Rule) string {
	return http.Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port}.String()
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	var lines []string
	add := func(prefix string, rules []http.Rule) {
		if g.Intercept {
			for _, line := range (http.Rights{Rules: rules}).Authority() {
				lines = append(lines, prefix+"browser, intercepted, "+line)
			}
			return
		}
		for _, r := range rules {
			text := r.String()
			if normal, err := r.Normal(); err == nil {
				text = http.Rule{Scheme: normal.Scheme, Host: normal.Host, Port: normal.Port, Addresses: normal.Addresses}.String()
			}
			lines = append(lines, printable.Line(prefix+"browser "+text))
		}
	}
	add("", g.Rules)
	for _, set := range g.Within {
		add("only within ", set)
	}
	b := g.Budget.orDefaults()
	return append(lines, fmt.Sprintf("browser up to %d pages, %d seconds, %d megabytes", b.Pages, b.Seconds, b.Megabytes))
}

// sent are the requests of g in the terms of http.
func (g Rights) sent() http.Rights {
	h := http.Rights{Rules: slices.Clone(g.Rules), Within: slices.Clone(g.Within)}
	if g.Intercept {
		return h
	}
	// A proxy that does not end TLS lets every request to an origin pass.
	every := func(rules []http.Rule) []http.Rule {
		rules = slices.Clone(rules)
		for i := range rules {
			rules[i].Methods, rules[i].Headers = []string{"*"}, []string{"*"}
		}
		return rules
	}
	h.Rules = every(h.Rules)
	for i, set := range h.Within {
		h.Within[i] = every(set)
	}
	return h
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	if !ok || g.Intercept && !a.Intercept { // such a grant sends what no rule shows
		return false
	}
	have, want := g.Budget.orDefaults(), a.Budget.orDefaults()
	if want.Pages > have.Pages || want.Seconds > have.Seconds || want.Megabytes > have.Megabytes || a.Scope != g.Scope && g.Scope != "" {
		return false
	}
	return g.sent().Covers(a.sent())
}

// Limit implements [capability.Limiter]. It drops rules that have nothing in common with the ceiling, and keeps the rest within it.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	var limits []capability.Grant
	var most Budget
	for _, c := range ceiling {
		c, ok := c.(Rights)
		if !ok || c.Intercept != g.Intercept {
			continue
		}
		limits = append(limits, c.sent())
		b := c.Budget.orDefaults()
		most = Budget{max(most.Pages, b.Pages), max(most.Seconds, b.Seconds), max(most.Megabytes, b.Megabytes)}
	}
	limited, ok := g.sent().Limit(limits).(http.Rights)
	if !ok {
		return nil
	}
	kept := g
	kept.Rules, kept.Within = nil, nil
	for _, rule := range limited.Rules {
		kept.Rules = append(kept.Rules, g.bare(rule))
	}
	for _, set := range limited.Within {
		var rules []http.Rule
		for _, rule := range set {
			rules = append(rules, g.bare(rule))
		}
		kept.Within = append(kept.Within, rules)
	}
	have := g.Budget.orDefaults()
	less := Budget{min(have.Pages, most.Pages), min(have.Seconds, most.Seconds), min(have.Megabytes, most.Megabytes)}
	if less != have {
		kept.Budget = less
	}
	return kept
}

// bare is a rule as it is in g: sent has added to it what every request may have.
func (g Rights) bare(r http.Rule) http.Rule {
	if !g.Intercept {
		r.Methods, r.Headers = nil, nil
	}
	return r
}

// Size implements [capability.Sizer].
func (g Rights) Size() (rules, work int) { return g.sent().Size() }

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
func (g Rights) Reach() (changes, open bool) {
	if g.Intercept {
		return g.sent().Reach()
	}
	return true, true
}

// Hosts implements [capability.Hoster].
func (g Rights) Hosts() []string { return http.Rights{Rules: g.Rules}.Hosts() }

// Short implements [capability.Shortener].
func (g Rights) Short() any { return []string{g.Rules[0].Host} }

// Remedy implements [capability.Remedier]: the wanted rule, with the addresses that the command line gave for the same host.
func (g Rights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(Rights)
	if !ok || len(w.Rules) != 1 {
		return ""
	}
	rule := w.Rules[0]
	for _, given := range g.Rules {
		if given.Host == rule.Host {
			rule.Addresses = given.Addresses
		}
	}
	name, _, _ := strings.Cut(spec, "=")
	text := name + "=browser:" + rule.String()
	if printable.Text(text) != text { // a guest chose part of it
		return ""
	}
	return text
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
