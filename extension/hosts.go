package extension

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities/http"
)

// Hosts are the addresses that the operator gives names of hosts, in place of what a resolver says. Names are in lower case and
// punycode, as rules have them.
type Hosts map[string][]netip.Addr

// allow returns rules of which those that name such a host exactly may dial its addresses, public or not.
func (h Hosts) allow(rules []http.Rule) []http.Rule {
	if len(h) == 0 {
		return rules
	}
	rules = slices.Clone(rules)
	for i, rule := range rules {
		normal, err := rule.Normal()
		if err != nil {
			continue // whoever uses it says why
		}
		for _, address := range h[normal.Host] {
			rules[i].Addresses = append(slices.Clip(rules[i].Addresses), netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return rules
}

// resolver answers for these hosts, and has another one answer for the rest. That one's default is the system's.
func (h Hosts) resolver(other http.Resolver) http.Resolver {
	switch {
	case len(h) == 0:
		return other
	case other == nil:
		other = net.DefaultResolver
	}
	return hostsResolver{h, other}
}

type hostsResolver struct {
	hosts Hosts
	other http.Resolver
}

// LookupNetIP implements http.Resolver.
func (r hostsResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if found := r.hosts[strings.TrimSuffix(host, ".")]; found != nil {
		return slices.Clone(found), nil
	}
	return r.other.LookupNetIP(ctx, network, host)
}
