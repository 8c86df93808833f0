package extension

import (
	"encoding/json"
	"strings"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/internal/jsonform"
)

// ruleFields are the fields of an http rule, each with an example of what to write.
var ruleFields = []struct{ name, example string }{
	{"scheme", `"https" or "http"`},
	{"host", `a name like "api.example.com", or "*.example.com" for the names below it`},
	{"port", "a number from 1 to 65535"},
	{"methods", `["GET", "POST"]`},
	{"path", `a pattern like "/repos/**"`},
	{"headers", `names of headers, like ["x-request-id"]`},
	{"credential", `the name of a secret, like "github-token"`},
	{"as", `"bearer", "basic", "header:NAME" or "query:NAME", beside a credential`},
	{"maxResponse", "a number of bytes, like 1048576"},
}

const exampleRule = `{"host": "api.example.com", "methods": ["GET"], "path": "/repos/**"}`

// rule reads one element of a binding's http. The http package decides what is valid; where it refuses the rule, the
// fields are tried one by one to find the one at fault.
func (r *reader) rule(n *jsonform.Node) http.Rule {
	names := make([]string, len(ruleFields))
	for i, f := range ruleFields {
		names[i] = f.name
	}
	fields := r.Fields(n, exampleRule, names, "host")
	if r.Err != nil {
		return http.Rule{}
	}
	rule, err := decodeRule(n.Plain())
	if err == nil {
		return rule
	}
	for _, f := range ruleFields {
		if field := fields[f.name]; field != nil {
			alone := map[string]any{"scheme": "https", "host": "example.com", "port": 443}
			alone[f.name] = field.Plain()
			if f.name == "as" {
				alone["credential"] = "a"
			}
			if _, err := decodeRule(alone); err != nil {
				r.Fail(field, f.example, "%s", err)
			}
		}
	}
	r.Fail(n, exampleRule, "%s", err)
	return rule
}

// host reads one element of the short form's network: https on the default port, with every method and path.
func (r *reader) host(n *jsonform.Node) http.Rule {
	host := r.Text(n, `"api.example.com"`)
	if r.Err != nil {
		return http.Rule{}
	}
	if host == "*" {
		r.Fail(n, `in bindings {"network": {"http": [{"scheme": "https", "host": "*", "port": 443}]}}`, "the short form has no rule for every host")
	}
	_, bare, hasScheme := strings.Cut(host, "://")
	if !hasScheme {
		bare = host
	}
	bare, _, _ = strings.Cut(bare, "/")
	if bare != host {
		r.Fail(n, jsonform.Quote(bare)+", or a rule with scheme and path in bindings", "%s is more than a host", jsonform.Quote(host))
	}
	rule, err := decodeRule(map[string]any{"host": host, "methods": []string{"*"}})
	if err != nil {
		r.Fail(n, `a host, like "api.example.com" or "*.example.com"`, "%s", err)
	}
	return rule
}

func decodeRule(v any) (http.Rule, error) {
	var rule http.Rule
	err := json.Unmarshal(encode(v), &rule)
	return rule, err
}

// httpSpec reads the URL pattern and options of a binding on the command line.
func httpSpec(argument, options string) (Grant, *SpecError) {
	if options != "" {
		argument += "," + options
	}
	rule, err := http.ParseRule(argument)
	if err != nil {
		return nil, &SpecError{Message: err.Error(), Instead: exampleHTTP}
	}
	return HTTP{Rules: []http.Rule{rule}}, nil
}
