package policy

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
)

// example is the one of the package comment.
const example = `{
  "ceiling": {
    "permissions": { "workspace": "read-write", "kv": true },
    "bindings": { "github": { "http": [{ "host": "api.github.com", "methods": ["*"], "credential": "github-token" }] } }
  },
  "approve": [
    { "permissions": { "workspace": "read" } },
    { "scopes": ["own", "shared"], "bindings": { "status": { "http": [{ "host": "status.example.com" }] } } }
  ],
  "updates": "same",
  "persons": ["my-editor"],
  "limits": { "extensionsPerScope": 100, "buildsPerHour": 60, "nesting": 8, "failuresBeforeBreak": 5, "breakFor": "5m", "storedPerAuthor": "512MiB", "stored": "2GiB",
    "keptPerScope": "4GiB", "kept": "16GiB", "auditedCalls": "1MiB" }
}`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := &Policy{
		Ceiling: &Ceiling{Line: 2, Bindings: []extension.Binding{
			{Name: "github", Grant: http.Rights{Rules: []http.Rule{{Host: "api.github.com", Methods: []string{"*"}, Credential: "github-token"}}}},
			{Name: "kv", Grant: kv.Rights{}},
			{Name: "workspace", Grant: workspace.Rights{Path: "/", Access: workspace.ReadWrite}},
		}},
		Approve: []Approval{
			{Line: 7, Scopes: []Scopes{Own}, Bindings: []extension.Binding{{Name: "workspace", Grant: workspace.Rights{Path: "/", Access: workspace.Read}}}},
			{Line: 8, Scopes: []Scopes{Own, Everybody}, Bindings: []extension.Binding{{Name: "status", Grant: http.Rights{Rules: []http.Rule{{Host: "status.example.com"}}}}}},
		},
		Updates: Same, Persons: []string{"my-editor"},
		Limits: Limits{
			ExtensionsPerScope: 100, BuildsPerHour: 60, Nesting: 8, FailuresBeforeBreak: 5, BreakFor: 5 * time.Minute, StoredPerAuthor: 512 << 20, Stored: 2 << 30,
			KeptPerScope: 4 << 30, Kept: 16 << 30, AuditedCalls: 1 << 20,
		},
		updatesLine: 10,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, err := Parse([]byte(`{}`)); err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = Parse([]byte(`{"ceiling": {}, "approve": [], "persons": [], "limits": {"nesting": 1, "breakFor": "24h"}}`))
	limits := Default().Limits
	limits.Nesting, limits.BreakFor = 1, 24*time.Hour
	if err != nil || got.Ceiling == nil || got.Approve != nil || got.Persons != nil || got.Limits != limits || got.Updates != Ask {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", ``, `line 1, column 1: this is not JSON: unexpected end of JSON input; write one JSON object`},
		{"a list", `[]`, `line 1, column 1: a list where an object belongs; write ` + examplePolicy},
		{"too large", strings.Repeat(" ", 300_000), `line 1, column 262145: the policy has 300000 bytes; write at most 262144 bytes`},
		{"a field mistyped", "{\n \"aprove\": []}", `line 2, column 2: aprove: there is no such field; write "approve"`},
		{"a field twice", `{"approve": [], "approve": [{}]}`, `line 1, column 17: approve: this field appears twice; write each field once`},
		{"a ceiling in a list", `{"ceiling": []}`, `line 1, column 13: ceiling: a list where an object belongs; write ` + exampleBindings},
		{"null for a ceiling", `{"ceiling": null}`, `line 1, column 13: ceiling: null where an object belongs; write ` + exampleBindings},
		{"a ceiling of scopes", `{"ceiling": {"scopes": ["own"]}}`, `line 1, column 14: ceiling.scopes: there is no such field; write one of permissions, bindings`},
		{
			"a ceiling with a bad host", `{"ceiling": {"permissions": {"network": ["a b"]}}}`,
			`line 1, column 42: ceiling.permissions.network[0]: http rule: the host "a b" is not a valid name; write a host, like "api.example.com" or "*.example.com"`,
		},
		{
			"a binding that is misnamed", `{"approve": [{"bindings": {"A": {"kv": true}}}]}`,
			`line 1, column 28: approve[0].bindings.A: "A" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`,
		},
		{"all approved", `{"approve": true}`, `line 1, column 13: approve: true where a list belongs; write [` + exampleBindings + `]`},
		{"an approval of text", `{"approve": ["all"]}`, `line 1, column 14: approve[0]: text where an object belongs; write ` + exampleBindings},
		{"a scope mistyped", `{"approve": [{"scopes": ["Shared"]}]}`, `line 1, column 26: approve[0].scopes[0]: "Shared" is not one of these words; write one of "own", "agent", "user", "shared"`},
		{"a scope with an owner", `{"approve": [{"scopes": ["user:tom"]}]}`, `line 1, column 26: approve[0].scopes[0]: "user:tom" is not one of these words; write one of "own", "agent", "user", "shared"`},
		{"a scope twice", `{"approve": [{"scopes": ["own", "own"]}]}`, `line 1, column 33: approve[0].scopes[1]: the scope "own" is here twice; write each scope once`},
		{"no scopes", `{"approve": [{"scopes": []}]}`, `line 1, column 25: approve[0].scopes: the list is empty; write ["own"]`},
		{"updates on", `{"updates": true}`, `line 1, column 13: updates: true where text belongs; write one of "ask", "same"`},
		{"updates of all", `{"updates": "all"}`, `line 1, column 13: updates: "all" is not one of these words; write one of "ask", "same"`},
		{"a person of no name", `{"persons": [""]}`, `line 1, column 14: persons[0]: the name is empty; write the name that an MCP client gives itself, like "my-editor"`},
		{"a person that hides", `{"persons": ["a\u202eb"]}`, `line 1, column 14: persons[0]: the name holds the character '\u202e'; write printable text`},
		{"a person of a long name", `{"persons": ["` + strings.Repeat("a", 129) + `"]}`, `line 1, column 14: persons[0]: the name has 129 bytes; write at most 128 bytes`},
		{"a limit mistyped", `{"limits": {"nestng": 1}}`, `line 1, column 13: limits.nestng: there is no such field; write "nesting"`},
		{"nesting of nothing", `{"limits": {"nesting": 0}}`, `line 1, column 24: limits.nesting: this is not a number of this size; write a whole number from 1 to 64`},
		{"nesting that is large", `{"limits": {"nesting": 65}}`, `line 1, column 24: limits.nesting: this is not a number of this size; write a whole number from 1 to 64`},
		{"builds as text", `{"limits": {"buildsPerHour": "1"}}`, `line 1, column 30: limits.buildsPerHour: this is not a number of this size; write a whole number from 1 to 100000`},
		{"bytes as number", `{"limits": {"stored": 1000000}}`, `line 1, column 23: limits.stored: a number where text belongs; write a size from "1MiB" to "1048576GiB", like "1GiB"`},
		{"few bytes", `{"limits": {"storedPerAuthor": "1KiB"}}`, `line 1, column 32: limits.storedPerAuthor: "1KiB" is not a size of this range; write a size from "1MiB" to "1048576GiB", like "1GiB"`},
		{"builds by halves", `{"limits": {"buildsPerHour": 1.5}}`, `line 1, column 30: limits.buildsPerHour: this is not a number of this size; write a whole number from 1 to 100000`},
		{"builds beyond numbers", `{"limits": {"buildsPerHour": 1e99}}`, `line 1, column 30: limits.buildsPerHour: this is not a number of this size; write a whole number from 1 to 100000`},
		{"a break of nothing", `{"limits": {"breakFor": "0s"}}`, `line 1, column 25: limits.breakFor: "0s" is not a time of this length; write a time from "1s" to "24h", like "5m"`},
		{"a break of days", `{"limits": {"breakFor": "25h"}}`, `line 1, column 25: limits.breakFor: "25h" is not a time of this length; write a time from "1s" to "24h", like "5m"`},
		{"a break without unit", `{"limits": {"breakFor": 5}}`, `line 1, column 25: limits.breakFor: a number where text belongs; write a time from "1s" to "24h", like "5m"`},
		{
			"rules without end",
			`{"ceiling": {"bindings": {"a": {"http": [` + strings.Repeat(`{"host": "a.com"},`, 199) + `{"host": "a.com"}]}, "b": {"http": [` + strings.Repeat(`{"host": "a.com"},`, 199) + `{"host": "a.com"}]}}}}`,
			`line 1, column 13: ceiling: the ceiling has 400 http rules; write at most 256`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Parse([]byte(tt.text))
			var problem *ParseError
			if !errors.As(err, &problem) || p != nil {
				t.Fatalf("got %v, %v", p, err)
			}
			if got := strings.TrimPrefix(err.Error(), "policy "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// asks reads what a manifest asks for.
func asks(t *testing.T, bindings string) []extension.Binding {
	t.Helper()
	m, err := extension.Parse([]byte(`{"name": "a", "version": "1.0.0", "description": "d", "tools": ["t"], "bindings": {` + bindings + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return m.Bindings
}

const (
	pure   = `"c": {"clock": true}, "r": {"random": true}, "l": {"console": true}, "b": {"blob": true}`
	notes  = `"notes": {"workspace": {"path": "/notes"}}`
	writes = `"notes": {"workspace": {"access": "read-write"}}`
	github = `"github": {"http": [{"host": "api.github.com", "path": "/repos/**", "credential": "github-token"}]}`
	status = `"s": {"http": [{"host": "status.example.com"}]}`
)

func TestDecide(t *testing.T) {
	var (
		claude = extension.Scope{Kind: extension.Agent, Owner: "claude"}
		other  = extension.Scope{Kind: extension.Agent, Owner: "other"}
		tom    = extension.Scope{Kind: extension.User, Owner: "tom"}
		shared = extension.Scope{Kind: extension.Shared}
	)
	const (
		full = `{
			"approve": [
				{"permissions": {"workspace": "read"}},
				{"bindings": {"s": {"http": [{"host": "status.example.com"}]}}},
				{"scopes": ["user", "agent"], "permissions": {"kv": true}}
			],
			"updates": "same"}`
		coded   = `{"approve": [{"permissions": {"kv": true}, "bindings": {"r": {"code": {"env": ["a"], "runs": 5}}}}]}`
		limited = `{"approve": [{"permissions": {"workspace": "read-write"}}],
			"ceiling": {"permissions": {"workspace": "read"}}}`
	)
	for _, tt := range []struct {
		name, policy    string
		scope, author   extension.Scope
		asked, approved string // approved is "" when nothing is active, and " " when what is active asks for nothing
		verdict         Verdict
		line, reason    string
	}{
		{"pure", `{}`, claude, claude, pure, "", Approved, "default", "all that it asks for is pre-approved in agent:claude"},
		{"pure of a user", `{}`, tom, tom, "", "", Approved, "default", "all that it asks for is pre-approved in user:tom"},
		{"pure for everybody", `{}`, shared, claude, pure, "", Pending, "default", "nothing is pre-approved in shared"},
		{"pure for everybody, by nobody", `{}`, shared, shared, pure, "", Pending, "default", "nothing is pre-approved in shared"},
		{"promoted to the user", `{}`, tom, claude, pure, "", Pending, "default", "nothing is pre-approved in user:tom"},
		{"another agent's", `{}`, other, claude, pure, "", Pending, "default", "nothing is pre-approved in agent:other"},
		{"nobody's", `{}`, extension.Scope{}, extension.Scope{}, "", "", Pending, "default", "nothing is pre-approved in :"},
		{"authority", `{}`, claude, claude, pure + "," + notes, "", Pending, "default", "nothing in the policy approves the binding notes in agent:claude"},
		{"an update, by default", `{}`, claude, claude, notes, notes, Pending, "default", "nothing in the policy approves the binding notes in agent:claude"},
		{"nothing approved", `{"approve": []}`, claude, claude, pure, "", Pending, "default", "nothing is pre-approved in agent:claude"},

		{"reading", full, claude, claude, notes + "," + pure, "", Approved, "policy.json:3", "all that it asks for is pre-approved in agent:claude"},
		{"an update of what everybody has", full, shared, claude, writes, writes, Pending, "default", "nothing in the policy approves the binding notes in shared"},
		{"an update of the user's by an agent", full, tom, claude, writes, writes, Pending, "default", "nothing in the policy approves the binding notes in user:tom"},
		{"writing", full, claude, claude, writes, "", Pending, "default", "nothing in the policy approves the binding notes in agent:claude"},
		{"status", full, claude, claude, status, "", Approved, "policy.json:4", "all that it asks for is pre-approved in agent:claude"},
		{"reading and status", full, claude, claude, notes + "," + status, "", Pending, "default", "nothing in the policy approves the bindings notes, s in agent:claude"},
		{"kv of another's", full, other, claude, `"a": {"kv": true}`, "", Approved, "policy.json:5", "all that it asks for is pre-approved in agent:other"},
		{"kv for everybody", full, shared, claude, `"a": {"kv": true}`, "", Pending, "default", "nothing in the policy approves the binding a in shared"},

		{"code", full, claude, claude, `"r": {"code": {}}`, "", Pending, "default", "nothing in the policy approves the binding r in agent:claude"},
		{"code that is named", coded, claude, claude, `"a": {"kv": true}, "x": {"code": {"env": ["a"], "runs": 5}}`, "", Approved, "policy.json:1", "all that it asks for is pre-approved in agent:claude"},
		{"code with more runs", coded, claude, claude, `"a": {"kv": true}, "x": {"code": {"env": ["a"]}}`, "", Pending, "default", "nothing in the policy approves the bindings a, x in agent:claude"},
		{"code with another binding", coded, claude, claude, `"b": {"kv": true}, "x": {"code": {"env": ["b"], "runs": 5}}`, "", Pending, "default", "nothing in the policy approves the bindings b, x in agent:claude"},
		{"code above a ceiling", limited, claude, claude, `"r": {"code": {}}`, "", Refused, "policy.json:2", "the policy's ceiling forbids the binding r; leave this out of the manifest, or ask the operator for a higher ceiling"},

		{"an update", full, claude, claude, github, github + "," + notes, Approved, "policy.json:7", "it asks for no more than the active version"},
		{"an update for more", full, claude, claude, github + "," + notes, github, Pending, "default", "nothing in the policy approves the bindings github, notes in agent:claude"},
		{"an update to nothing", `{"approve": [], "updates": "same"}`, claude, claude, pure, " ", Approved, "policy.json:1", "it asks for no more than the active version"},
		{"no update", full, shared, claude, pure, "", Pending, "default", "nothing is pre-approved in shared"},

		{"above the ceiling", limited, claude, claude, github + "," + notes, "", Refused, "policy.json:2", "the policy's ceiling forbids the binding github; leave this out of the manifest, or ask the operator for a higher ceiling"},
		{"above it, and active", limited, claude, claude, github, github, Refused, "policy.json:2", "the policy's ceiling forbids the binding github; leave this out of the manifest, or ask the operator for a higher ceiling"},
		{"cut by the ceiling", limited, claude, claude, writes, "", Approved, "policy.json:1", "all that it asks for is pre-approved in agent:claude"},
		{"pure below a ceiling", `{"ceiling": {}}`, claude, claude, pure, "", Approved, "default", "all that it asks for is pre-approved in agent:claude"},
		{
			"cut to what is approved", // what a ceiling takes away today it may give tomorrow
			`{"ceiling": {"permissions": {"workspace": "read"}}, "approve": [{"permissions": {"workspace": "read"}}]}`,
			claude, claude, writes, "", Pending, "default", "nothing in the policy approves the binding notes in agent:claude",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Parse([]byte(tt.policy))
			if err != nil {
				t.Fatal(err)
			}
			r := Request{Scope: tt.scope, Author: tt.author, Asked: asks(t, tt.asked)}
			if tt.approved != "" {
				r.Approved = append([]extension.Binding{}, asks(t, tt.approved)...)
			}
			d := p.Decide(r)
			if d.Verdict != tt.verdict || d.Line != tt.line || d.Reason != tt.reason {
				t.Errorf("got  %s %s %s\nwant %s %s %s", d.Verdict, d.Line, d.Reason, tt.verdict, tt.line, tt.reason)
			}
			// No rule approves a component without source.
			r.NoSource = true
			if d := p.Decide(r); tt.verdict == Refused && !reflect.DeepEqual(d, p.Decide(r)) ||
				tt.verdict != Refused && (d.Verdict != Pending || d.Line != "default" || !strings.Contains(d.Reason, "without source")) {
				t.Errorf("without source: %s %s %s", d.Verdict, d.Line, d.Reason)
			}
			granted, cut := p.Limit(r.Asked)
			if !reflect.DeepEqual(d.Granted, granted) || !reflect.DeepEqual(d.Cut, cut) || !extension.Covers(r.Asked, granted) {
				t.Errorf("granted %+v, cut %+v", d.Granted, d.Cut)
			}
		})
	}
}

func TestPerson(t *testing.T) {
	p, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]bool{"my-editor": true, "My-Editor": false, "my-editor ": false, "": false, "other": false} {
		if p.Person(client) != want || Default().Person(client) {
			t.Errorf("%q", client)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"ceiling": {"permissions": {"network": ["*.a.com"], "workspace": "read"}}, "updates": "ask"}`))
	f.Add([]byte(`{"approve": [{"scopes": ["own", "agent"]}, {}], "limits": {"breakFor": "1h1s"}, "persons": ["a"]}`))
	author := extension.Scope{Kind: extension.Agent, Owner: "a"}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			var problem *ParseError
			if !errors.As(err, &problem) || problem.Line < 1 || problem.Column < 1 || problem.Instead == "" || p != nil {
				t.Fatalf("%#v, %v", err, p)
			}
			return
		}
		if l := p.Limits; min(l.ExtensionsPerScope, l.BuildsPerHour, l.Nesting, l.FailuresBeforeBreak) < 1 || l.BreakFor < time.Second || min(l.StoredPerAuthor, l.Stored) < 1<<20 {
			t.Fatalf("%+v", l)
		}
		// What an entry approves, it approves; what a ceiling lets through, it lets through whole.
		for _, a := range p.Approve {
			d := p.Decide(Request{Scope: author, Author: author, Asked: a.Bindings})
			if a.holdsIn(author, author) && d.Verdict == Pending && extension.Covers(a.Bindings, a.Bindings) {
				t.Fatalf("%+v: %+v", a, d)
			}
		}
		if p.Ceiling != nil {
			if _, cut := p.Limit(p.Ceiling.Bindings); len(cut) > 0 && extension.Covers(p.Ceiling.Bindings, p.Ceiling.Bindings) && len(p.Ceiling.Bindings) == 1 {
				t.Fatalf("%+v", cut)
			}
		}
	})
}
