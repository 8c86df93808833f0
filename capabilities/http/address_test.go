package http

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"code.dny.dev/ssrf"
)

func TestAddressIsRefused(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1": "127.0.0.0/8 (loopback)", "127.255.255.254": "127.0.0.0/8 (loopback)", "::1": "::1/128 (loopback)",
		"10.0.0.1": "10.0.0.0/8 (private)", "172.16.0.1": "172.16.0.0/12 (private)", "172.31.255.255": "172.16.0.0/12 (private)",
		"192.168.0.1": "192.168.0.0/16 (private)", "fc00::1": "fc00::/7 (unique-local)", "fdff::1": "fc00::/7 (unique-local)",
		"169.254.0.1": "169.254.0.0/16 (link-local)", "fe80::1": "fe80::/10 (link-local)", "fe80::1%eth0": "fe80::/10 (link-local)", "fec0::1": "special-purpose",
		"100.64.0.1": "100.64.0.0/10 (carrier-grade NAT)", "100.127.255.255": "100.64.0.0/10 (carrier-grade NAT)",
		"224.0.0.1": "224.0.0.0/4 (multicast)", "239.255.255.255": "224.0.0.0/4 (multicast)", "ff02::1": "ff00::/8 (multicast)",
		"255.255.255.255": "255.255.255.255/32 (broadcast)", "240.0.0.1": "240.0.0.0/4 (reserved)",
		"192.0.2.1": "192.0.2.0/24 (documentation)", "198.51.100.1": "198.51.100.0/24 (documentation)", "203.0.113.1": "203.0.113.0/24 (documentation)",
		"2001:db8::1": "2001:db8::/32 (documentation)", "3fff::1": "3fff::/20 (documentation)",
		"198.18.0.1": "198.18.0.0/15 (benchmarking)", "198.19.255.255": "198.18.0.0/15 (benchmarking)", "2001:2::1": "2001:2::/48 (benchmarking)",
		"0.0.0.0": "unspecified", "::": "unspecified", "::ffff:0.0.0.0": "unspecified", "0.1.2.3": "0.0.0.0/8 (this network)",
		"192.0.0.1": "special-purpose", "192.88.99.1": "special-purpose", "100::1": "special-purpose", "5f00::1": "special-purpose", "4000::1": "special-purpose",
		"169.254.169.254": "169.254.169.254/32 (cloud metadata)", "169.254.170.2": "169.254.170.2/32 (cloud metadata)",
		"100.100.100.200": "100.100.100.200/32 (cloud metadata)", "168.63.129.16": "168.63.129.16/32 (cloud metadata)", "192.0.0.192": "192.0.0.192/32 (cloud metadata)",
		"fd00:ec2::254": "fd00:ec2::254/128 (cloud metadata)", "fd20:ce::254": "fd20:ce::254/128 (cloud metadata)",
		"::ffff:127.0.0.1": "127.0.0.0/8 (loopback)", "::ffff:169.254.169.254": "169.254.169.254/32 (cloud metadata)", "::ffff:10.0.0.1": "10.0.0.0/8 (private)",
		"::127.0.0.1": "::/96 (IPv4-compatible)", "::8.8.8.8": "::/96 (IPv4-compatible)",
		"64:ff9b::127.0.0.1": "64:ff9b::/96 (NAT64)", "64:ff9b::8.8.8.8": "64:ff9b::/96 (NAT64)", "64:ff9b:1::a00:1": "64:ff9b:1::/48 (NAT64)",
		"2002:7f00:1::": "2002::/16 (6to4)", "2002:808:808::": "2002::/16 (6to4)", "2001::1": "2001::/32 (Teredo)", "2001:0:808:808::f5ff:fffe": "2001::/32 (Teredo)",
		"8.8.8.8": "", "1.1.1.1": "", "172.15.255.255": "", "172.32.0.1": "", "100.128.0.1": "", "192.0.1.1": "", "223.255.255.255": "",
		"2606:4700::1111": "", "2a00:1450:4001::1": "", "::ffff:8.8.8.8": "",
	} {
		have := ""
		err := (&addressPolicy{}).check(netip.AddrPortFrom(netip.MustParseAddr(addr), 443))
		if refused, ok := errors.AsType[*refusedError](err); ok {
			have = refused.what
		}
		if have != want {
			t.Errorf("%s: have %q, want %q", addr, have, want)
		}
	}
}

// TestRangesFollowRegistries checks that the first and last address of every range in the IANA registries is refused.
func TestRangesFollowRegistries(t *testing.T) {
	for _, prefix := range slices.Concat(ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes) {
		last := prefix.Addr().AsSlice()
		for i := range last {
			for bit := range 8 {
				if i*8+bit >= prefix.Bits() {
					last[i] |= 0x80 >> bit
				}
			}
		}
		end, _ := netip.AddrFromSlice(last)
		for _, addr := range []netip.Addr{prefix.Addr(), end} {
			if (&addressPolicy{}).check(netip.AddrPortFrom(addr, 443)) == nil {
				t.Errorf("%s of %s is allowed", addr, prefix)
			}
		}
	}
}

func TestAddressIsAllowedByRule(t *testing.T) {
	for _, test := range []struct {
		host      string
		addresses []string
		yes, no   []string
	}{
		{"127.0.0.1", nil, []string{"127.0.0.1", "::ffff:127.0.0.1", "8.8.8.8"}, []string{"127.0.0.2", "::1", "10.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1"}},
		{"[::1]", nil, []string{"::1"}, []string{"127.0.0.1", "::2"}},
		{"a.example", []string{"10.0.0.0/8"}, []string{"10.1.2.3", "::ffff:10.1.2.3"}, []string{"127.0.0.1", "169.254.169.254", "::10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::"}},
		{"a.example", []string{"::1/128"}, []string{"::1"}, []string{"::2", "127.0.0.1"}},
		{"a.example", []string{"0.0.0.0/0", "::/0"}, []string{"127.0.0.1", "fe80::1", "64:ff9b::7f00:1"}, []string{"0.0.0.0", "::"}},
		{"a.example", []string{"::/0"}, []string{"fd00::1", "64:ff9b::8.8.8.8", "2002:808:808::", "2001::f7f7:f7f7"}, []string{
			"127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::a9fe:a9fe", "::10.0.0.1", "2002:7f00:1::", "2001::80ff:fffe",
		}},
	} {
		var prefixes []netip.Prefix
		for _, a := range test.addresses {
			prefixes = append(prefixes, netip.MustParsePrefix(a))
		}
		policy := &addressPolicy{named: compile(t, Rule{Host: test.host}).host.addr, allowed: prefixes}
		for _, addr := range test.yes {
			if err := policy.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 80)); err != nil {
				t.Errorf("%s %s: %s: %v", test.host, test.addresses, addr, err)
			}
		}
		for _, addr := range test.no {
			if policy.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 80)) == nil {
				t.Errorf("%s %s: %s is allowed", test.host, test.addresses, addr)
			}
		}
	}
}

func TestOwnListenersAreRefused(t *testing.T) {
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, test := range []struct {
		listener string
		dial     string
		refused  bool
	}{
		{"127.0.0.1:7000", "127.0.0.1:7000", true},
		{"127.0.0.1:7000", "[::ffff:127.0.0.1]:7000", true},
		{"127.0.0.1:7000", "127.0.0.1:7001", false},
		{"127.0.0.1:7000", "127.0.0.2:7000", false},
		{"127.0.0.1:7000", "0.0.0.0:7000", true},
		{"0.0.0.0:7000", "127.8.9.1:7000", true},
		{"[::]:7000", "127.0.0.1:7000", true},
		{"[::]:7000", "[::1]:7000", true},
		{"[::]:7000", "8.8.8.8:7000", false},
		{"[::]:7000", "127.0.0.1:7001", false},
		{"[::1]:7000", "[::1]:7000", true},
	} {
		own := &Listeners{}
		remove := own.Add(netip.MustParseAddrPort(test.listener))
		policy := &addressPolicy{named: netip.MustParseAddrPort(test.dial).Addr(), allowed: everything, own: own}
		refused, _ := errors.AsType[*refusedError](policy.check(netip.MustParseAddrPort(test.dial)))
		if (refused != nil) != test.refused || refused != nil && !refused.own {
			t.Errorf("%s at %s: %v", test.dial, test.listener, refused)
		}
		remove()
		remove()
		if dialled := netip.MustParseAddrPort(test.dial); len(own.at) != 0 || own.has(dialled) {
			t.Errorf("%s stays refused", dialled)
		}
	}
}
