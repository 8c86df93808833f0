package http

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/internal/printable"
)

// Describe implements [capability.Grant]. Hosts in other scripts are in punycode.
func (g Rights) Describe() []string {
	var lines []string
	for _, r := range g.Rules {
		lines = append(lines, "may send "+requests(r))
	}
	for _, set := range g.Within {
		lines = append(lines, "but whatever it sends has to be one of these as well:")
		for _, r := range set {
			lines = append(lines, "  "+requests(r))
		}
	}
	return lines
}

// requests describes in words the requests that fit a rule, and what comes back.
func requests(rule Rule) string {
	text := rule.Requests()
	if r, err := rule.Normal(); err == nil {
		text += fmt.Sprintf(", and take in up to %s of each response", humanize.IBytes(uint64(r.MaxResponse)))
	}
	return text
}

// Requests describes in words the requests that fit the rule. It does not say what may come back.
func (r Rule) Requests() string {
	r, err := r.Normal()
	if err != nil {
		return "nothing, as a rule is not valid"
	}
	methods := strings.Join(r.Methods, " and ") + " requests"
	if slices.Contains(r.Methods, "*") {
		methods = "requests of every method"
	}
	var b strings.Builder
	b.WriteString(methods + " to " + where(r))
	if r.Host == "*" {
		b.WriteString(", which is every host with a public address")
	}
	if _, err := netip.ParseAddr(strings.Trim(r.Host, "[]")); err == nil {
		b.WriteString(", an address that need not be public")
	}
	if len(r.Addresses) > 0 {
		fmt.Fprintf(&b, ", also at the addresses %s", addresses(r))
	}
	if r.Scheme == "http" {
		b.WriteString(", without encryption")
	}
	if r.Credential != "" {
		fmt.Fprintf(&b, ", with the credential %s, which it does not see, as %s", r.Credential, r.As)
	}
	if r.Idempotency != "" {
		b.WriteString(", with a key of the host in the header " + r.Idempotency)
	}
	if len(r.Headers) > 0 {
		b.WriteString(", " + headersText(r.Headers))
	}
	return printable.Line(b.String())
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	var lines []string
	for _, r := range g.Rules {
		lines = append(lines, "http "+terms(r))
	}
	for _, set := range g.Within {
		for _, r := range set {
			lines = append(lines, "only within http "+terms(r))
		}
	}
	return lines
}

func terms(rule Rule) string {
	r, err := rule.Normal()
	if err != nil {
		return printable.Line(rule.String())
	}
	text := strings.Join(r.Methods, ",") + " " + where(r)
	if r.Credential != "" {
		text += " with credential " + r.Credential
		if r.As != "bearer" {
			text += " as " + r.As
		}
	}
	if len(r.Headers) > 0 {
		text += " with headers " + strings.Join(r.Headers, ",")
	}
	if r.Idempotency != "" {
		text += " with idempotency " + r.Idempotency
	}
	if len(r.Addresses) > 0 {
		text += " at addresses " + addresses(r)
	}
	if rule.MaxResponse != 0 {
		text += fmt.Sprintf(" up to %d bytes", r.MaxResponse)
	}
	return printable.Line(text)
}

// where returns the URL of a rule.
func where(r Rule) string {
	return Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port, Path: r.Path}.String()
}

func addresses(r Rule) string {
	texts := make([]string, len(r.Addresses))
	for i, prefix := range r.Addresses {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ", ")
}
