package egress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// Traffic is what a grant lets a program send through a [Proxy]. Kinds of capability whose programs have a proxy read, compare and describe
// their rules with it.
type Traffic struct {
	// Rules have a scheme, a host and a port. With Intercept they may have all that a rule of http has but MaxResponse.
	Rules []http.Rule
	// Within are sets of rules, an operator's ceilings. Each set must also allow a request.
	Within [][]http.Rule
	// Intercept ends TLS in the proxy, which then sees whole requests.
	Intercept bool
}

const (
	exampleRule  = `{"host": "docs.example.com"}`
	exampleRules = `[{"host": "docs.example.com"}]`
)

// hidden are the fields of a rule of http that a proxy cannot apply unless it ends TLS.
var hidden = []string{"methods", "path", "headers", "credential", "as", "idempotency", "maxResponse"}

// ReadIntercept reads the field "intercept" of a manifest, which is true or left out.
func ReadIntercept(r *jsonform.Reader, n *jsonform.Node) bool {
	if n != nil && n.Value != true {
		r.Fail(n, "true, or leave it out", "this is not true")
	}
	return n != nil
}

// ReadRules reads the rules of a manifest. Kind is whose rules they are, for messages.
func ReadRules(r *jsonform.Reader, n *jsonform.Node, kind string, intercept bool) (rules []http.Rule) {
	for _, item := range r.Items(n, http.MaxRules, exampleRules) {
		if !intercept {
			fields := r.Fields(item, exampleRule, slices.Concat([]string{"scheme", "host", "port"}, hidden), "host")
			for _, name := range hidden {
				if field := fields[name]; field != nil {
					r.Fail(field, `a rule of scheme, host and port, or "intercept": true beside the rules`,
						"a rule of %s has no %s: inside TLS, a proxy sees the host and the port only", kind, name)
				}
			}
			if r.Err != nil {
				return nil
			}
		}
		rule := http.ReadRule(r, item)
		if rule.Idempotency != "" {
			r.Fail(item, "a rule without idempotency", "a rule of %s has no idempotency, because a proxy does not repeat requests", kind)
		}
		if rule.MaxResponse != 0 {
			r.Fail(item, "a rule without maxResponse", "a rule of %s has no maxResponse, because a proxy does not decode responses", kind)
		}
		rules = append(rules, rule)
	}
	return rules
}

// ParseRule reads a rule of a command line, "https://example.com:8443", as [http.ParseRule] does. Without intercept it refuses what a proxy
// cannot apply.
func ParseRule(text string, intercept bool) (http.Rule, error) {
	rule, err := http.ParseRule(text)
	if err != nil {
		return rule, err
	}
	if !intercept {
		stated := ""
		switch {
		case rule.Path != "":
			stated = "a path"
		case rule.Methods != nil:
			stated = "methods"
		case rule.Headers != nil:
			stated = "headers"
		case rule.Credential != "" || rule.As != "":
			stated = "a credential"
		}
		if stated != "" {
			return rule, fmt.Errorf("%s has %s, and inside TLS a proxy sees the host and the port only: add the option intercept", jsonform.Quote(text), stated)
		}
	}
	if rule.Idempotency != "" {
		return rule, fmt.Errorf("%s has idempotency keys, and a proxy does not repeat requests", jsonform.Quote(text))
	}
	if rule.MaxResponse != 0 {
		return rule, fmt.Errorf("%s has a size of responses, and a proxy does not decode them", jsonform.Quote(text))
	}
	return rule, nil
}

// sent are the requests of t in the terms of http.
func (t Traffic) sent() http.Rights {
	h := http.Rights{Rules: slices.Clone(t.Rules), Within: slices.Clone(t.Within)}
	if t.Intercept {
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

// Covers reports whether t permits everything that asked may send. If in doubt, it returns false.
func (t Traffic) Covers(asked Traffic) bool {
	if len(asked.Rules) == 0 {
		return true
	}
	if len(t.Rules) == 0 || t.Intercept && !asked.Intercept { // such a grant sends what no rule shows
		return false
	}
	return t.sent().Covers(asked.sent())
}

// Limit drops rules that have nothing in common with the ceilings, and keeps the rest within them. ok is false if nothing is left.
func (t Traffic) Limit(ceilings []Traffic) (kept Traffic, ok bool) {
	kept.Intercept = t.Intercept
	var limits []capability.Grant
	for _, c := range ceilings {
		if c.Intercept == t.Intercept {
			limits = append(limits, c.sent())
		}
	}
	limited, ok := t.sent().Limit(limits).(http.Rights)
	if !ok {
		return kept, false
	}
	kept.Rules = t.bare(limited.Rules)
	for _, set := range limited.Within {
		kept.Within = append(kept.Within, t.bare(set))
	}
	return kept, true
}

// bare are rules as they are in t: sent has added to them what every request may have.
func (t Traffic) bare(rules []http.Rule) []http.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if !t.Intercept {
			rules[i].Methods, rules[i].Headers = nil, nil
		}
	}
	return rules
}

// Size returns how much there is to compare, as [http.Rights.Size] does.
func (t Traffic) Size() (rules, work int) { return t.sent().Size() }

// Reach says what programs can do with it, as [http.Rights.Reach] does.
func (t Traffic) Reach() (changes, open bool) {
	if len(t.Rules) == 0 {
		return false, false
	}
	return t.sent().Reach()
}

// Hosts returns the patterns of hosts.
func (t Traffic) Hosts() []string { return http.Rights{Rules: t.Rules}.Hosts() }

// Describe says what programs may send, for people. With Intercept, intro is the first line, and the requests follow. Otherwise each line
// is what origin makes of a place.
func (t Traffic) Describe(intro string, origin func(place string) string) (lines []string) {
	if len(t.Rules) == 0 {
		return nil
	}
	one := func(r http.Rule) string { return place(r) }
	if t.Intercept {
		lines = append(lines, intro)
		one = http.Rule.Requests
	}
	for _, r := range t.Rules {
		if t.Intercept {
			lines = append(lines, "  may send "+one(r))
		} else {
			lines = append(lines, printable.Line(origin(one(r))))
		}
	}
	for _, set := range t.Within {
		lines = append(lines, "but only where this allows it as well:")
		for _, r := range set {
			lines = append(lines, "  "+one(r))
		}
	}
	return lines
}

// place is the origin of a rule, in words.
func place(rule http.Rule) string {
	r, err := rule.Normal()
	if err != nil {
		return "nothing, as a rule is not valid"
	}
	text := http.Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port}.String()
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

// Authority returns a line for each rule, which begins with the name of what sends: those that two grants share are the same.
func (t Traffic) Authority(name string) (lines []string) {
	add := func(prefix string, rules []http.Rule) {
		if t.Intercept {
			for _, line := range (http.Rights{Rules: rules}).Authority() {
				lines = append(lines, prefix+name+", intercepted, "+line)
			}
			return
		}
		for _, r := range rules {
			text := r.String()
			if normal, err := r.Normal(); err == nil {
				text = http.Rule{Scheme: normal.Scheme, Host: normal.Host, Port: normal.Port, Addresses: normal.Addresses}.String()
			}
			lines = append(lines, printable.Line(prefix+name+" "+text))
		}
	}
	add("", t.Rules)
	for _, set := range t.Within {
		add("only within ", set)
	}
	return lines
}
