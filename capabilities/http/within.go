package http

import (
	"fmt"
	"slices"
)

// compileBound compiles a set of Options.Within. A credential excludes no header from a request without it, so the rules are
// compiled without theirs.
func compileBound(rules []Rule) ([]*compiled, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("http: more than %d rules to stay within", MaxRules)
	}
	set := make([]*compiled, len(rules))
	for i, rule := range rules {
		whole, err := rule.compile()
		if err != nil {
			return nil, fmt.Errorf("http: rule %d to stay within: %w", i+1, err)
		}
		bare := rule
		bare.Credential, bare.As = "", ""
		if set[i], err = bare.compile(); err != nil {
			return nil, fmt.Errorf("http: rule %d to stay within: %w", i+1, err)
		}
		set[i].policy, set[i].carried = set[i].addressPolicy(nil), whole.Rule
	}
	return set, nil
}

// bound returns a denial that says which part of q a set does not allow.
// q already has its rule. The denial does not show the set's rules to the
// guest, because they may concern other extensions.
func (q *request) bound(within [][]*compiled) error {
	for _, set := range within {
		i := slices.IndexFunc(set, q.within)
		if i < 0 {
			return q.deny("the operator's rules do not allow "+closestTo(q, set).refused(q), nil)
		}
		q.maxResponse = min(q.maxResponse, set[i].MaxResponse)
	}
	return nil
}

// within reports whether a rule of a bound allows q with the credential and to the addresses of q's own rule.
func (q *request) within(rule *compiled) bool {
	aspect, _ := rule.compare(q)
	carried := q.rule.Credential == "" || q.rule.Credential == rule.carried.Credential && q.rule.As == rule.carried.As
	return aspect == allowed && carried && rule.checkAddress(q.target) == nil && q.rule.addressesInside(rule)
}
