package http

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
)

// maxCompared bounds the cost of comparing the path of one request with the patterns of all rules: bytes of the path times bytes of
// patterns. Otherwise a guest could make it take minutes by narrowing.
const maxCompared = 128 << 20

// authorise sets q.rule to the rule of the grant that allows q, or returns a denial that says why none does.
func (c *Client) authorise(q *request) error {
	patterns := 0
	for _, rules := range slices.Concat(c.narrowed, c.grant.within, [][]*compiled{c.grant.rules}) {
		for _, rule := range rules {
			patterns += len(rule.Path)
		}
	}
	if len(q.target.path)*patterns > maxCompared {
		return abi.Errorf(abi.CodeExhausted, "a path of %d bytes to compare with patterns of %d bytes", len(q.target.path), patterns)
	}
	for _, rules := range c.narrowed {
		if closest := closestTo(q, rules); closest.aspect != allowed {
			return q.deny("the client was narrowed, and "+closest.reason(q), nil)
		}
	}
	var refused error
	for _, rule := range c.grant.rules {
		if aspect, _ := rule.compare(q); aspect != allowed {
			continue
		}
		q.rule, q.maxResponse = rule, rule.MaxResponse
		if refused = rule.checkAddress(q.target); refused == nil {
			return q.bound(c.grant.within)
		}
	}
	if refused, ok := errors.AsType[*refusedError](refused); ok {
		return q.refused(refused)
	}
	return q.deny(closestTo(q, c.grant.rules).reason(q), grantFor(q))
}

// checkAddress returns a *refusedError when the target is an address that may not be dialled.
func (c *compiled) checkAddress(t *target) error {
	if !t.host.addr.IsValid() {
		return nil
	}
	return c.policy.check(netip.AddrPortFrom(t.host.addr, t.port))
}

// aspect is a part of a request that a rule restricts.
type aspect int

// The aspects in the order in which they are compared, and last the value for a rule that allows all of them.
const (
	ofHost aspect = iota
	ofScheme
	ofPort
	ofPath
	ofMethod
	ofHeader
	allowed
)

// verdict describes how much of a request the closest rule allows.
type verdict struct {
	rules []*compiled
	// index is the rule's index. It is -1 if there are no rules.
	index int
	// aspect is the first aspect that the rule does not allow.
	aspect aspect
	// header is the name if aspect is ofHeader.
	header string
}

func closestTo(q *request, rules []*compiled) verdict {
	closest := verdict{rules: rules, index: -1}
	for i, rule := range rules {
		aspect, header := rule.compare(q)
		if closest.index < 0 || aspect > closest.aspect {
			closest.index, closest.aspect, closest.header = i, aspect, header
		}
		if aspect == allowed {
			break
		}
	}
	return closest
}

// compare returns the first aspect of q that the rule does not allow, and the name if that is a header.
func (c *compiled) compare(q *request) (aspect, string) {
	switch {
	case !c.allowsHost(q.target):
		return ofHost, ""
	case q.target.scheme != c.Scheme:
		return ofScheme, ""
	case q.target.port != c.Port:
		return ofPort, ""
	case !c.path.matches(q.target):
		return ofPath, ""
	case !slices.Contains(c.Methods, q.method) && !slices.Contains(c.Methods, "*"):
		return ofMethod, ""
	}
	for _, name := range slices.Sorted(maps.Keys(q.header)) {
		if !c.allowsHeader(name) {
			return ofHeader, name
		}
	}
	return allowed, ""
}

func (c *compiled) allowsHost(t *target) bool {
	switch {
	case c.anyHost:
		// Such a rule names only the scheme and the port, so a rule that names the host comes closer.
		return t.scheme == c.Scheme && t.port == c.Port
	case c.subdomains:
		return strings.HasSuffix(t.host.name, "."+c.host.name)
	default:
		return t.host == c.host
	}
}

func (c *compiled) allowsHeader(name string) bool {
	switch {
	case c.Idempotency != "" && name == c.Idempotency:
		return false
	case slices.Contains(c.Headers, name):
		return true
	case c.Credential != "" && (name == c.placement.header || name == "range" || name == "if-range"):
		return false // a secret cannot be recognised in parts of an echo
	}
	return safeHeader(name) || slices.Contains(c.Headers, "*") && !namedHeader(name)
}

// maxListed is how many hosts a reason lists.
const maxListed = 5

func (v verdict) reason(q *request) string {
	if v.index < 0 {
		return "there are no rules"
	}
	if v.aspect == ofHost {
		return "no rule names " + v.refused(q) + "; the rules name " + v.hosts()
	}
	rule := v.rules[v.index].Rule
	rule.Addresses, rule.Credential = nil, "" // the operator's business
	if q.originOnly {
		rule.Path, rule.Methods = "", nil
	}
	return fmt.Sprintf("the closest rule, %s, does not allow %s", rule, v.refused(q))
}

// refused describes the part of q that is not allowed.
func (v verdict) refused(q *request) string {
	switch v.aspect {
	case ofHost:
		return "the host " + q.target.host.String()
	case ofScheme:
		return "the scheme " + q.target.scheme
	case ofPort:
		return fmt.Sprintf("the port %d", q.target.port)
	case ofPath:
		return "the path " + q.target.path
	case ofMethod:
		return "the method " + q.method
	case ofHeader:
		return "the header " + v.header
	default:
		return "the credential or the address of this request"
	}
}

func (v verdict) hosts() string {
	var hosts []string
	for _, rule := range v.rules {
		name := rule.Host
		if rule.anyHost {
			name = rule.origin()
		}
		if !slices.Contains(hosts, name) {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) > maxListed {
		hosts = append(hosts[:maxListed], fmt.Sprintf("%d more", len(hosts)-maxListed))
	}
	return strings.Join(hosts, ", ")
}

// refused returns the denial of a request whose address may not be dialled.
func (q *request) refused(err *refusedError) error {
	host := q.target.host
	switch {
	case err.own:
		return q.deny(fmt.Sprintf("%s is %s, which no rule can allow", host, err.what), nil)
	case err.public:
		return q.deny(fmt.Sprintf("%s has a public address, and this rule sends nothing there without https", host), nil)
	case host.addr.IsValid():
		return q.deny(fmt.Sprintf("%s is in %s, which needs a rule that names this address", host, err.what), grantFor(q))
	default:
		return q.deny(fmt.Sprintf("%s has an address in %s, which only the operator can allow, with `addresses` in the rule", host, err.what), q.withAddress(err.ask))
	}
}

// withAddress returns the rule of q with one more range of addresses.
func (q *request) withAddress(ask netip.Prefix) abi.Wants {
	if !ask.IsValid() {
		return nil
	}
	rule := q.rule.Rule
	rule.Addresses = append(slices.Clone(rule.Addresses), ask)
	return capability.Operators{Grant: Rights{Rules: []Rule{rule}}}
}

// deny makes the denial of q, without the query.
func (q *request) deny(reason string, wants abi.Wants) error {
	if q.from != "" {
		reason = "redirected by " + q.from + ": " + reason
	}
	return abi.Deny(abi.Denial{Operation: q.operation(), Reason: reason, Wants: wants})
}

func (q *request) operation() string {
	if q.originOnly {
		return q.method + " " + q.target.origin()
	}
	return q.method + " " + q.target.withoutQuery()
}

// grantFor returns the narrowest grant that allows q.
func grantFor(q *request) abi.Wants {
	rule := Rule{Host: q.target.host.String()}
	if q.target.scheme != "https" {
		rule.Scheme = q.target.scheme
	}
	if q.target.port != defaultPort(q.target.scheme) {
		rule.Port = q.target.port
	}
	if q.originOnly {
		return capability.Wanted{Grant: Rights{Rules: []Rule{rule}}}
	}
	rule.Path = patternOf(q.target)
	if !slices.Contains(defaultMethods, q.method) {
		rule.Methods = []string{q.method}
	}
	for _, name := range slices.Sorted(maps.Keys(q.header)) {
		if !safeHeader(name) {
			rule.Headers = append(rule.Headers, name)
		}
	}
	return capability.Wanted{Grant: Rights{Rules: []Rule{rule}}}
}
