package http

import (
	"net/netip"
	"slices"
	"strings"
)

// maxCovered bounds the cost of comparing two lists of rules, by the product of their sizes.
const maxCovered = 32 << 20

// Covers reports whether a grant of the rules allowed permits everything that a grant of the rules asked permits, with the same
// credentials, to at least the same addresses and with responses at least as large. True is
// certain. Covers returns false if it is not sure: if several rules of allowed together would
// have to cover one of asked, if only one list has a credential, if a rule is not valid,
// or if the lists are too long to compare.
func Covers(allowed, asked []Rule) bool {
	have, ok := compileAll(allowed)
	want, valid := compileAll(asked)
	if !ok || !valid || Size(allowed)*Size(asked) > maxCovered {
		return false
	}
	taken := make([]bool, len(have)) // matched by earlier rules of asked, because they decide first
	for _, w := range want {
		if !w.covered(have, taken) {
			return false
		}
		for j, h := range have {
			taken[j] = taken[j] || h.inside(w) && h.addressesInside(w)
		}
	}
	return true
}

// covered reports whether a rule of have decides about everything that c decides about, and is at least as generous. The first rule
// that fits decides, so all rules before it must be as generous too, or fit nothing that c decides about.
func (c *compiled) covered(have []*compiled, taken []bool) bool {
	for j, h := range have {
		switch generous := c.decides(h); {
		case generous && c.inside(h):
			return true
		case !generous && !taken[j] && !c.disjoint(h):
			return false
		}
	}
	return false
}

// Overlap returns, in their order, those rules that may fit a request that one of limits fits. usable reports whether one of them
// has no credential, or one that the limit has too. The result is empty if a rule is not valid.
func Overlap(limits, rules []Rule) (kept []Rule, usable bool) {
	have, ok := compileAll(limits)
	want, valid := compileAll(rules)
	if !ok || !valid {
		return nil, false
	}
	for i, w := range want {
		meets := slices.DeleteFunc(slices.Clone(have), w.disjoint)
		if len(meets) > 0 {
			kept = append(kept, rules[i])
		}
		usable = usable || slices.ContainsFunc(meets, func(h *compiled) bool {
			return w.Credential == "" || w.Credential == h.Credential && w.As == h.As
		})
	}
	return kept, usable
}

func compileAll(rules []Rule) ([]*compiled, bool) {
	if len(rules) > MaxRules {
		return nil, false
	}
	all := make([]*compiled, len(rules))
	for i, r := range rules {
		c, err := r.compile()
		if err != nil {
			return nil, false
		}
		c.policy = c.addressPolicy(nil)
		all[i] = c
	}
	return all, true
}

// Size returns how much rules add to the cost of comparisons, in no particular unit. It grows with the length of paths.
func Size(rules []Rule) int {
	const each = 16
	n := 0
	for _, r := range rules {
		n += each + len(r.Path)
	}
	return n
}

// decides reports whether c decides about a request that it fits no more generously than other.
func (c *compiled) decides(other *compiled) bool {
	return c.Credential == other.Credential && c.As == other.As && c.MaxResponse <= other.MaxResponse && c.addressesInside(other)
}

func (c *compiled) addressesInside(other *compiled) bool {
	return !slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool {
		return !slices.ContainsFunc(other.Addresses, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) })
	})
}

// inside reports whether other fits every request that c fits.
func (c *compiled) inside(other *compiled) bool {
	return c.Scheme == other.Scheme && c.Port == other.Port && c.hostInside(other) && c.methodsInside(other) &&
		c.headersInside(other) && c.path.inside(other.path)
}

func (c *compiled) hostInside(other *compiled) bool {
	switch {
	case c.anyHost:
		return other.anyHost
	case c.host.addr.IsValid():
		// An address that is not public must be named.
		return (other.anyHost || !other.subdomains && c.host == other.host) && other.policy.check(netip.AddrPortFrom(c.host.addr, c.Port)) == nil
	case other.anyHost:
		return true
	case other.subdomains && c.subdomains:
		return strings.HasSuffix("."+c.host.name, "."+other.host.name)
	case other.subdomains:
		return strings.HasSuffix(c.host.name, "."+other.host.name)
	default:
		return !c.subdomains && c.host == other.host
	}
}

func (c *compiled) methodsInside(other *compiled) bool {
	return slices.Contains(other.Methods, "*") ||
		!slices.ContainsFunc(c.Methods, func(m string) bool { return !slices.Contains(other.Methods, m) })
}

// headersInside compares the headers that the rules name, and those that a credential excludes from the safe ones.
func (c *compiled) headersInside(other *compiled) bool {
	for _, name := range c.Headers {
		if name == "*" && !slices.Contains(other.Headers, "*") || name != "*" && !other.allowsHeader(name) {
			return false
		}
	}
	if c.Idempotency != "" && c.Idempotency != other.Idempotency && !other.allowsHeader(c.Idempotency) {
		return false
	}
	excluded := []string{}
	if other.Idempotency != "" {
		excluded = append(excluded, other.Idempotency)
	}
	if other.Credential != "" {
		excluded = append(excluded, other.placement.header, "range", "if-range")
	}
	for _, name := range excluded {
		if c.allowsHeader(name) && !other.allowsHeader(name) {
			return false
		}
	}
	return true
}

// disjoint reports whether no request fits both.
func (c *compiled) disjoint(other *compiled) bool {
	return c.Scheme != other.Scheme || c.Port != other.Port || c.hostDisjoint(other) || c.methodsDisjoint(other) ||
		c.path.whole.disjoint(other.path.whole)
}

func (c *compiled) hostDisjoint(other *compiled) bool {
	switch {
	case c.anyHost || other.anyHost:
		return false
	case c.subdomains && other.subdomains:
		return !strings.HasSuffix("."+c.host.name, "."+other.host.name) && !strings.HasSuffix("."+other.host.name, "."+c.host.name)
	case c.subdomains:
		return !strings.HasSuffix(other.host.name, "."+c.host.name)
	case other.subdomains:
		return !strings.HasSuffix(c.host.name, "."+other.host.name)
	default:
		return c.host != other.host
	}
}

func (c *compiled) methodsDisjoint(other *compiled) bool {
	return !slices.Contains(c.Methods, "*") && !slices.Contains(other.Methods, "*") &&
		!slices.ContainsFunc(c.Methods, func(m string) bool { return slices.Contains(other.Methods, m) })
}

// inside reports whether q matches every path that p matches.
func (p pattern) inside(q pattern) bool { return p.whole.inside(q.whole) && p.split.inside(q.split) }

// inside compares p with q from their ends: all[j] reports whether the rest of p is inside the rest of q from q[j] on.
func (p segments) inside(q segments) bool {
	all := make([]bool, len(q)+1)
	all[len(q)] = true
	for j := len(q) - 1; j >= 0; j-- {
		all[j] = all[j+1] && q[j] == nil
	}
	for _, pieces := range slices.Backward(p) {
		here := make([]bool, len(q)+1) // nothing fits beyond the end of q
		for j := len(q) - 1; j >= 0; j-- {
			switch {
			case pieces == nil:
				here[j] = q[j] == nil && (all[j] || here[j+1])
			case q[j] == nil:
				here[j] = all[j] || here[j+1]
			default:
				here[j] = all[j+1] && segmentInside(pieces, q[j])
			}
		}
		all = here
	}
	return all[0]
}

// segmentInside reports whether b matches every segment that a matches. Only a "*" of b can match what follows a "*" of a, because
// that can be a byte that occurs in no text.
func segmentInside(a, b []string) bool { return matchSegment(b, strings.Join(a, "\xff")) }

// disjoint compares the segments before the first "**" of either.
func (p segments) disjoint(q segments) bool {
	both := min(len(p), len(q))
	for i := range both {
		switch a, b := p[i], q[i]; {
		case a == nil || b == nil:
			return false
		case len(a) == 1 && !matchSegment(b, a[0]), len(b) == 1 && !matchSegment(a, b[0]):
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(p[both:], q[both:]), func(pieces []string) bool { return pieces != nil })
}
