package http_test

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
)

// TestIdempotency says which rules may name a header for keys, and what a ceiling has to allow for it.
func TestIdempotency(t *testing.T) {
	for rule, want := range map[string]string{
		"https://a.com,methods=POST,idempotency=Idempotency-Key":                           "",
		"https://a.com,idempotency=Host":                                                   "can never be set",
		"https://a.com,idempotency=cookie":                                                 "cannot carry an idempotency key",
		"https://a.com,idempotency=accept":                                                 "cannot carry an idempotency key",
		"https://a.com,idempotency=X-HTTP-Method-Override":                                 "cannot carry an idempotency key",
		"https://a.com,headers=x-key,idempotency=X-Key":                                    "nothing else can set it",
		"https://a.com,credential=a,as=header:x-key,idempotency=X-Key":                     "nothing else can set it",
		"https://a.com,credential=a,idempotency=Authorization":                             "cannot carry an idempotency key",
		"https://a.com,idempotency=" + strings.Repeat("x", 2000):                           "has 2000 bytes",
		"https://*:443,methods=POST,headers=*,idempotency=Idempotency-Key,max-response=10": "",
	} {
		r, err := http.ParseRule(rule)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", rule, err)
		case want == "":
			if again, err := http.ParseRule(r.String()); err != nil || again.Idempotency != r.Idempotency {
				t.Errorf("%s is written as %s", rule, r)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%.100s: got %v", rule, err)
		}
	}
	for _, c := range []struct {
		ceiling, asked string
		want           bool
	}{
		{"idempotency=x-key", "idempotency=X-Key", true},
		{"headers=x-key", "idempotency=x-key", true},
		{"headers=*", "idempotency=x-key", true},
		{"methods=GET", "idempotency=x-key", false},
		{"idempotency=x-key", "idempotency=y-key", false},
		{"idempotency=x-key", "headers=x-key", false},
		{"idempotency=x-key,headers=*", "headers=*", false},
		{"idempotency=x-key,headers=*", "headers=*,idempotency=x-key", true},
		{"idempotency=x-key", "methods=GET", true},
	} {
		rules := func(options string) []http.Rule {
			r, err := http.ParseRule("https://a.com," + options)
			if err != nil {
				t.Fatal(err)
			}
			return []http.Rule{r}
		}
		if got := http.Covers(rules(c.ceiling), rules(c.asked)); got != c.want {
			t.Errorf("%s covers %s: %t", c.ceiling, c.asked, got)
		}
	}
}
