package policy_test

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension/policy"
)

func TestHosts(t *testing.T) {
	for text, want := range map[string]any{ // what is read, or a part of the error
		`{}`:                                map[string][]netip.Addr{},
		`{"api.example.test": "127.0.0.1"}`: map[string][]netip.Addr{"api.example.test": {netip.MustParseAddr("127.0.0.1")}},
		`{"xn--bcher-kva.test": "::ffff:10.0.0.1"}`:          map[string][]netip.Addr{"xn--bcher-kva.test": {netip.MustParseAddr("10.0.0.1")}},
		`{"a": ["::1", "127.0.0.1"]}`:                        map[string][]netip.Addr{"a": {netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}},
		`{"API.example.test": "127.0.0.1"}`:                  "names no host",
		`{"*.example.test": "127.0.0.1"}`:                    "names no host",
		`{"*": "127.0.0.1"}`:                                 "names no host",
		`{"": "127.0.0.1"}`:                                  "names no host",
		`{"example.test.": "127.0.0.1"}`:                     "names no host",
		`{"bücher.test": "127.0.0.1"}`:                       "names no host",
		`{"192.0.2.1": "127.0.0.1"}`:                         "names no host",
		`{"::1": "127.0.0.1"}`:                               "names no host",
		`{"a:80": "127.0.0.1"}`:                              "names no host",
		`{"a\u001b[31m": "127.0.0.1"}`:                       "names no host",
		`{"a": "localhost"}`:                                 "is not an IP address",
		`{"a": "127.0.0.1/8"}`:                               "is not an IP address",
		`{"a": "fe80::1%eth0"}`:                              "is not an IP address",
		`{"a": 1}`:                                           "column",
		`{"a": []}`:                                          "column",
		`["a"]`:                                              "column",
		`{"a": "127.0.0.1", "a": "127.0.0.2"}`:               "column",
		`{"a": [` + strings.Repeat(`"::1",`, 16) + `"::1"]}`: "column",
	} {
		p, err := policy.Parse([]byte(`{"hosts": ` + text + `}`))
		if part, ok := want.(string); ok {
			if wrong := (*policy.ParseError)(nil); !errors.As(err, &wrong) || wrong.Line != 1 || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, %v, want an error with %q", text, p, err, part)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(p.Hosts, want) {
			t.Errorf("%s: got %v, %v, want %v", text, p, err, want)
		}
	}
}
