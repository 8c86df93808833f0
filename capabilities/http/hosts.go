package http

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// fixedHosts are the addresses that the operator assigns to names of hosts, instead of a resolver's answer. Names are in lower case
// and punycode, as in rules.
type fixedHosts map[string][]netip.Addr

// allow returns the rules, changed so that those that name such a host exactly may dial its addresses, public or not.
func (h fixedHosts) allow(rules []Rule) []Rule {
	if len(h) == 0 {
		return rules
	}
	rules = slices.Clone(rules)
	for i, rule := range rules {
		normal, err := rule.Normal()
		if err != nil {
			continue // using the rule reports the error
		}
		for _, address := range h[normal.Host] {
			rules[i].Addresses = append(slices.Clip(rules[i].Addresses), netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return rules
}

// resolver answers for these hosts, and passes other names to another resolver. That one defaults to the system's.
func (h fixedHosts) resolver(other Resolver) Resolver {
	switch {
	case len(h) == 0:
		return other
	case other == nil:
		other = net.DefaultResolver
	}
	return hostsResolver{h, other}
}

type hostsResolver struct {
	hosts fixedHosts
	other Resolver
}

// LookupNetIP implements Resolver.
func (r hostsResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if found := r.hosts[strings.TrimSuffix(host, ".")]; found != nil {
		return slices.Clone(found), nil
	}
	return r.other.LookupNetIP(ctx, network, host)
}
