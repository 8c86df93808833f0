package policy

import (
	"errors"
	"testing"

	"github.com/stilehost/stile/extension"
)

// An undeclared package waits for a person, unless the policy or the active version has it.
func TestPackages(t *testing.T) {
	own := extension.Scope{Kind: extension.Agent, Owner: "a"}
	for _, tt := range []struct {
		policy            string
		undeclared, known []string
		want              Verdict
	}{
		{`{}`, nil, nil, Approved},
		{`{}`, []string{"zod"}, nil, Pending},
		{`{}`, []string{"zod"}, []string{"zod"}, Approved},
		{`{"packages": []}`, []string{"zod"}, nil, Pending},
		{`{"packages": ["zod"]}`, []string{"zod"}, nil, Approved},
		{`{"packages": ["zod"]}`, []string{"zod", "zodd"}, nil, Pending},
		{`{"packages": ["zod"]}`, []string{"zod", "zodd"}, []string{"zodd"}, Approved},
		{`{"packages": ["zod"]}`, []string{"@evil/zod"}, nil, Pending},
		{`{"packages": ["*"]}`, []string{"anything"}, nil, Approved},
		{`{"packages": ["*"]}`, []string{"@evil/zod"}, nil, Pending},
		{`{"packages": ["@types/*"]}`, []string{"@types/node"}, nil, Approved},
		{`{"packages": ["lodash-*"]}`, []string{"lodash", "lodash-es"}, nil, Pending},
		{`{"packages": ["zod"], "approve": []}`, []string{"zod"}, nil, Pending},
		{`{"updates": "same", "approve": []}`, []string{"zod"}, []string{}, Pending},
	} {
		p, err := Parse([]byte(tt.policy))
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decide(Request{Scope: own, Author: own, Undeclared: tt.undeclared, Known: tt.known, Approved: []extension.Binding{}})
		if d.Verdict != tt.want || d.Reason == "" {
			t.Errorf("%s, %q: got %+v", tt.policy, tt.undeclared, d)
		}
	}
	for _, bad := range []string{`"zod"`, `[1]`, `[""]`, `["[a-z]"]`, `["a?"]`, `["\\*"]`, `["@*/x"]`, `["Zod"]`, `["a/b"]`, `["../a"]`, `["\u200bzod"]`} {
		if _, err := Parse([]byte(`{"packages": ` + bad + `}`)); !errors.As(err, new(*ParseError)) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
