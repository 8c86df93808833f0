package policy_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
)

func Example() {
	p, err := policy.Parse([]byte(`{"approve": [{"permissions": {"kv": true}}]}`))
	if err != nil {
		log.Fatal(err)
	}
	m, err := extension.Parse([]byte(`{"name": "a", "version": "1.0.0", "description": "d", "tools": ["t"], "permissions": {"kv": true}}`))
	if err != nil {
		log.Fatal(err)
	}
	me := extension.Scope{Kind: extension.User, Owner: "ada"}
	fmt.Println(p.Decide(policy.Request{Scope: me, Author: me, Asked: m.Bindings}).Verdict)
	// Output: approved
}
