package http

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// specialRanges names the refused ranges, the narrower ones first. Package ssrf, which follows the IANA registries, checks addresses
// too, so a range that is missing here is refused all the same.
var specialRanges = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "unique-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// special names the non-public range that contains addr, or returns "".
func special(addr netip.Addr) string {
	for _, r := range specialRanges {
		if r.prefix.Contains(addr) {
			return fmt.Sprintf("%s (%s)", r.prefix, r.name)
		}
	}
	if guardian.SafeAddr(addr) != nil {
		return "special-purpose"
	}
	return ""
}

// asked returns the range of a rule that would allow a loopback or private address: all of loopback, or only the address. It is not valid
// for others, such as those of cloud metadata.
func asked(addr netip.Addr) netip.Prefix {
	switch {
	case addr.Is4() && addr.IsLoopback():
		return netip.PrefixFrom(addr, 8).Masked()
	case addr.IsLoopback(), addr.IsPrivate() && !strings.HasSuffix(special(addr), "(cloud metadata)"):
		return netip.PrefixFrom(addr, addr.BitLen())
	default:
		return netip.Prefix{}
	}
}

// translations are the IPv6 ranges that embed an IPv4 address, with the position of its four bytes.
var translations = []struct {
	prefix netip.Prefix
	offset int
	invert byte
}{
	{netip.MustParsePrefix("::/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, 0},
	{netip.MustParsePrefix("2001::/32"), 12, 0xff},
	{netip.MustParsePrefix("2002::/16"), 2, 0},
}

// translated returns the IPv4 address that an IPv6 address embeds.
func translated(addr netip.Addr) (netip.Addr, bool) {
	for _, t := range translations {
		if t.prefix.Contains(addr) && !addr.IsLoopback() {
			all := addr.As16()
			v4 := [4]byte(all[t.offset:])
			for i := range v4 {
				v4[i] ^= t.invert
			}
			return netip.AddrFrom4(v4), true
		}
	}
	return netip.Addr{}, false
}

// addressPolicy decides which addresses the requests of one rule may go to.
type addressPolicy struct {
	// named is the rule's host if that is an address.
	named netip.Addr
	// allowed are ranges that the operator allows in addition to public ones.
	allowed []netip.Prefix
	// private refuses public addresses, because a credential goes there without https.
	private bool
	own     *Listeners
}

func (c *compiled) addressPolicy(own *Listeners) addressPolicy {
	return addressPolicy{named: c.host.addr, allowed: c.Addresses, private: c.Credential != "" && c.Scheme != "https", own: own}
}

// refusedError reports an address that may not be dialled.
type refusedError struct {
	// what names a range, or otherwise describes the address. It leaves out the address, because a guest must not learn the
	// addresses of names in a private network.
	what string
	// own is set if no rule can allow it. public is set if the rule is for addresses that are not public.
	own, public bool
	// ask is the smallest range that a rule would have to name. It is not valid if nobody should be asked to allow it.
	ask netip.Prefix
}

func (e *refusedError) Error() string { return "refused address: " + e.what }

// check returns a *refusedError unless the address may be dialled.
func (p *addressPolicy) check(to netip.AddrPort) error {
	addr := to.Addr().Unmap().WithZone("")
	switch {
	case addr.IsUnspecified():
		return &refusedError{what: "unspecified", own: true}
	case p.own.has(netip.AddrPortFrom(addr, to.Port())):
		return &refusedError{what: "one of Stile's own listeners", own: true}
	case addr == p.named:
		return nil
	}
	return p.checkRange(addr)
}

func (p *addressPolicy) checkRange(addr netip.Addr) error {
	if !slices.ContainsFunc(p.allowed, func(r netip.Prefix) bool { return r.Contains(addr) }) {
		if name := special(addr); name != "" {
			return &refusedError{what: name, ask: asked(addr)}
		}
	}
	if v4, ok := translated(addr); ok {
		return p.checkRange(v4)
	}
	if p.private && special(addr) == "" {
		return &refusedError{what: "public", public: true}
	}
	return nil
}
