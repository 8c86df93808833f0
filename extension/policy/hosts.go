package policy

import (
	"fmt"
	"net/netip"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

const (
	maxHosts = 100

	exampleHosts = `{"api.example.test": "127.0.0.1"}`
)

// hostName is an exact name, in lower case and punycode.
var hostName = lazyregexp.New(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// hosts reads names with one address each, or with a list of addresses.
func (r reader) hosts(n *jsonform.Node) map[string][]netip.Addr {
	members := r.Members(n, exampleHosts)
	if len(members) > maxHosts {
		r.Fail(n, fmt.Sprintf("at most %d", maxHosts), "there are %d hosts", len(members))
		return nil
	}
	hosts := map[string][]netip.Addr{}
	for _, m := range members {
		_, err := netip.ParseAddr(m.Key)
		if err == nil || len(m.Key) > 253 || !hostName.MatchString(m.Key) {
			r.FailAt(m.Offset, m.Value.Path(), `the whole name of a host in lower case, like "api.example.test"`, "%s names no host", jsonform.Quote(m.Key))
		}
		items := []*jsonform.Node{m.Value}
		if _, ok := m.Value.Value.([]*jsonform.Node); ok {
			items = r.Items(m.Value, http.MaxAddresses, `["127.0.0.1", "::1"]`)
		}
		for _, item := range items {
			hosts[m.Key] = append(hosts[m.Key], r.address(item))
		}
	}
	return hosts
}

func (r reader) address(n *jsonform.Node) netip.Addr {
	const example = `an IP address, like "127.0.0.1" or "::1"`
	s := r.Text(n, example)
	a, err := netip.ParseAddr(s)
	if (err != nil || a.Zone() != "") && r.Err == nil {
		r.Fail(n, example, "%s is not an IP address", jsonform.Quote(s))
	}
	return a.Unmap()
}
