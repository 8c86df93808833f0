package http

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// Kind is a client that sends requests. The options of a site are [Options]: credentials, listeners, limits, but neither Rules nor
// Within. The global fetch uses the binding named network.
var Kind = &capability.Kind{
	Name: "http", Interface: Interface, Permission: "network", Example: `[ { "host": "..." } ]`,
	Globals: []string{"fetch"}, GlobalBinding: "network",
	Parse: read, ParsePermission: readPermission, ParseSpec: readSpec, Learn: newRecorded,
	SpecForm: "http:URL-PATTERN[,option]...",
	SpecMeans: `requests; options: methods=GET+POST, headers=x-name, max-response=BYTES,
addresses=127.0.0.0/8 for hosts that are not public,
credential=SECRET,as=bearer|basic|header:NAME|query:NAME, idempotency=HEADER`,
}

// Rights allow the requests that at least one rule allows.
type Rights struct {
	Rules []Rule
	// Within are sets of rules, an operator's ceilings. Each set must also allow a request. A manifest has none.
	Within [][]Rule
}

// ruleFields are the fields of a rule, each with an example.
var ruleFields = []struct{ name, example string }{
	{"scheme", `"https" or "http"`},
	{"host", `a name like "api.example.com", or "*.example.com" for the names below it`},
	{"port", "a number from 1 to 65535"},
	{"methods", `["GET", "POST"]`},
	{"path", `a pattern like "/repos/**"`},
	{"headers", `names of headers, like ["x-request-id"]`},
	{"credential", `the name of a secret, like "github-token"`},
	{"as", `"bearer", "basic", "header:NAME" or "query:NAME", beside a credential`},
	{"idempotency", `the name of a header, like "Idempotency-Key"`},
	{"maxResponse", "a number of bytes, like 1048576"},
}

const (
	exampleRule = `{"host": "api.example.com", "methods": ["GET"], "path": "/repos/**"}`
	exampleSpec = "NAME=http:https://api.example.com/repos/**,methods=GET+POST"
)

func read(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	g := Rights{}
	for _, item := range r.Items(n, MaxRules, `[{"host": "api.example.com"}]`) {
		g.Rules = append(g.Rules, ReadRule(r, item))
		r.Next()
	}
	return g
}

// ReadRule reads one rule. If it is not valid, it tries the fields one by one to find the wrong one.
func ReadRule(r *jsonform.Reader, n *jsonform.Node) Rule {
	names := make([]string, len(ruleFields))
	for i, f := range ruleFields {
		names[i] = f.name
	}
	fields := r.Fields(n, exampleRule, names, "host")
	if r.Err != nil {
		return Rule{}
	}
	rule, err := decodeRule(n.Plain())
	if err == nil {
		return rule
	}
	for _, f := range ruleFields {
		if field := fields[f.name]; field != nil {
			alone := map[string]any{"scheme": "https", "host": "example.com", "port": 443}
			alone[f.name] = field.Plain()
			if f.name == "as" {
				alone["credential"] = "a"
			}
			if _, err := decodeRule(alone); err != nil {
				r.Next()
				r.Fail(field, f.example, "%s", err)
			}
		}
	}
	r.Fail(n, exampleRule, "%s", err)
	return rule
}

func readPermission(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	g := Rights{}
	for _, item := range r.Items(n, MaxRules, `["api.example.com"]`) {
		g.Rules = append(g.Rules, readHost(r, item))
		r.Next()
	}
	return g
}

// readHost reads one element of the short form: https on the default port, with every method and path.
func readHost(r *jsonform.Reader, n *jsonform.Node) Rule {
	host := r.Text(n, `"api.example.com"`)
	if r.Err != nil {
		return Rule{}
	}
	if host == "*" {
		r.Fail(n, `in bindings {"network": {"http": [{"scheme": "https", "host": "*", "port": 443}]}}`, "the short form has no rule for every host")
	}
	_, bare, hasScheme := strings.Cut(host, "://")
	if !hasScheme {
		bare = host
	}
	bare, _, _ = strings.Cut(bare, "/")
	if bare != host {
		r.Fail(n, jsonform.Quote(bare)+", or a rule with scheme and path in bindings", "%s is more than a host", jsonform.Quote(host))
	}
	rule, err := decodeRule(map[string]any{"host": host, "methods": []string{"*"}})
	if err != nil {
		r.Fail(n, `a host, like "api.example.com" or "*.example.com"`, "%s", err)
	}
	return rule
}

func decodeRule(v any) (Rule, error) {
	var rule Rule
	err := json.Unmarshal(capability.JSON(v), &rule)
	return rule, err
}

// readSpec reads a URL pattern and options, as [ParseRule] does.
func readSpec(s capability.Spec) (capability.Grant, error) {
	text := s.Argument
	if s.Options != "" {
		text += "," + s.Options
	}
	rule, err := ParseRule(text)
	if err != nil {
		return nil, &capability.MistakeError{Text: err.Error(), Fix: exampleSpec}
	}
	return Rights{Rules: []Rule{rule}}, nil
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant]; with Within it is for people only.
func (g Rights) Document() any {
	if len(g.Within) == 0 {
		return g.Rules
	}
	return struct {
		Rules  []Rule   `json:"rules"`
		Within [][]Rule `json:"within"`
	}{g.Rules, g.Within}
}

// Covers implements [capability.Grant]. It ignores the ceilings of asked, unless they are the same.
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	if !ok {
		return false
	}
	for _, set := range g.Within {
		same := func(s []Rule) bool { return reflect.DeepEqual(s, set) }
		if !slices.ContainsFunc(a.Within, same) && !Covers(set, a.Rules) {
			return false
		}
	}
	return Covers(g.Rules, a.Rules)
}

// Limit implements [capability.Limiter]. It drops rules that have nothing in common with the ceiling, and keeps the rest within the
// ceiling.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	var limits []Rule
	for _, c := range ceiling {
		if c, ok := c.(Rights); ok {
			limits = append(limits, c.Rules...)
		}
	}
	rules, usable := Overlap(limits, g.Rules)
	limited := Rights{Rules: rules, Within: g.Within}
	same := func(set []Rule) bool { return reflect.DeepEqual(set, limits) }
	switch {
	case !usable:
		return nil
	case !Covers(limits, limited.Rules) && !slices.ContainsFunc(g.Within, same):
		limited.Within = append(slices.Clip(g.Within), limits)
	}
	return limited
}

// Size implements [capability.Sizer].
func (g Rights) Size() (rules, work int) {
	return len(g.Rules), Size(slices.Concat(append(slices.Clip(g.Within), g.Rules)...))
}

// Merge implements [capability.Merger].
func (g Rights) Merge(more capability.Grant) capability.Grant {
	m, ok := more.(Rights)
	if !ok {
		return nil
	}
	return Rights{Rules: append(g.Rules, m.Rules...)}
}

// Reach implements [capability.Reacher].
func (g Rights) Reach() (changes, open bool) {
	for _, rule := range g.Rules {
		for _, method := range rule.Methods {
			changes = changes || method != "GET" && method != "HEAD" && method != "OPTIONS"
		}
	}
	return changes, true
}

// Hosts implements [capability.Hoster].
func (g Rights) Hosts() []string {
	hosts := make([]string, len(g.Rules))
	for i, rule := range g.Rules {
		hosts[i] = rule.Host
	}
	return hosts
}

// Secrets implements [capability.SecretUser].
func (g Rights) Secrets() []string { return Secrets(g.Rules) }

// Secrets returns the names of the secrets that rules name, each once.
func Secrets(rules []Rule) []string {
	var names []string
	for _, rule := range rules {
		if rule.Credential != "" && !slices.Contains(names, rule.Credential) {
			names = append(names, rule.Credential)
		}
	}
	return names
}

// Specs implements [capability.SecretUser].
func (g Rights) Specs() []string {
	specs := make([]string, len(g.Rules))
	for i, rule := range g.Rules {
		specs[i] = rule.String()
	}
	return specs
}

// Short implements [capability.Shortener].
func (g Rights) Short() any { return []string{g.Rules[0].Host} }

// Remedy implements [capability.Remedier]. It is the wanted rule, with the addresses that the command line gave for the same host.
func (g Rights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(Rights)
	if !ok || len(w.Rules) != 1 {
		return ""
	}
	rule, err := decodeRule(w.Rules[0])
	if err != nil {
		return ""
	}
	rule.Addresses = w.Rules[0].Addresses
	return rule.Remedy(spec, "http", g.Rules)
}

// Remedy returns the specification of a binding of this kind that allows r, under the name in spec: the rule with the addresses that the command
// line gave for the same host, and options. It is "" if a guest chose part of it that is not plain text.
func (r Rule) Remedy(spec, kind string, given []Rule, options ...string) string {
	for _, rule := range given {
		if rule.Host == r.Host {
			for _, prefix := range rule.Addresses {
				if !slices.Contains(r.Addresses, prefix) {
					r.Addresses = append(slices.Clone(r.Addresses), prefix)
				}
			}
		}
	}
	name, _, _ := strings.Cut(spec, "=")
	text := name + "=" + kind + ":" + strings.Join(append([]string{r.String()}, options...), ",")
	if printable.Text(text) != text {
		return ""
	}
	return text
}

// Options returns the options of a grant of g: those of the site, with its addresses of hosts, and the rules of g.
func (g Rights) Options(s *capability.Site) Options {
	o, _ := s.Options(Kind).(Options)
	fixed := fixedHosts(s.Hosts())
	o.Resolver = fixed.resolver(o.Resolver)
	o.Rules, o.Within = fixed.allow(g.Rules), slices.Clone(o.Within)
	for _, set := range g.Within {
		o.Within = append(o.Within, fixed.allow(set))
	}
	return o
}

// Open implements [capability.Opener].
func (g Rights) Open(_ context.Context, s *capability.Site) (abi.Capability, error) {
	grant, err := New(g.Options(s))
	if err != nil {
		return nil, err
	}
	s.Hold(grant, func() error { grant.CloseIdleConnections(); return nil })
	return grant, nil
}
