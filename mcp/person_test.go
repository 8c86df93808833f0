package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

const withPersons = `{"persons": ["editor"]}`

// A client that the policy names asks its person, who decides about what is shown; every other answer leaves it waiting. From
// protocol version 2026-07-28 on a server asks by an answer; over HTTP each version is tried.
func TestPerson(t *testing.T) {
	yes := &sdk.ElicitResult{Action: "accept", Content: object{"approve": true}}
	for _, c := range []struct {
		name, client string
		said         *sdk.ElicitResult // nil: it cannot ask
		asked        bool
		state        string
	}{
		{"yes", "editor", yes, true, "active"},
		{"no", "editor", &sdk.ElicitResult{Action: "decline"}, true, "denied"},
		{"gone", "editor", &sdk.ElicitResult{Action: "cancel"}, true, "pending"},
		{"accepted without a tick", "editor", &sdk.ElicitResult{Action: "accept", Content: object{"approve": false}}, true, "pending"},
		{"declined with a tick", "editor", &sdk.ElicitResult{Action: "decline", Content: object{"approve": true}}, true, "denied"},
		{"another client", "Editor", yes, false, "pending"},
		{"a client that cannot ask", "editor", nil, false, "pending"},
	} {
		for _, transport := range []string{"memory", withSessions, sessionless} {
			t.Run(c.name+" over "+transport, func(t *testing.T) {
				h := newHome(t, withPersons)
				asked := ""
				var ask func(*sdk.ElicitParams) *sdk.ElicitResult
				if c.said != nil {
					ask = func(p *sdk.ElicitParams) *sdk.ElicitResult {
						asked = p.Message
						return c.said
					}
				}
				var agent *client
				if transport == "memory" {
					agent = h.person(alice, c.client, ask)
				} else {
					agent = h.web(HTTPOptions{}).client(transport, aliceToken, c.client, ask)
				}
				w := does[writeOutput](agent, "extension_write", draft("weather", "1", object{"network": []string{"api.example.test"}}))
				if w.State != c.state || (asked != "") != c.asked {
					t.Errorf("it is %s, asked %q", w.State, asked)
				}
				if c.asked {
					for _, want := range []string{"alice", "weather 1.0.0", "weather_get", "api.example.test", w.Digest[:12]} {
						if !strings.Contains(asked, want) {
							t.Errorf("the question does not say %q:\n%s", want, asked)
						}
					}
				}
				if got := agent.offers("weather_get"); got != (c.state == "active") {
					t.Errorf("the tool is there: %v", got)
				}
				if c.state != "active" {
					return
				}
				entries, err := h.manager.Audit(t.Context(), 1)
				if err != nil || entries[0].Kind != "approve" || entries[0].By != "user:tom" || entries[0].Via != "elicitation:editor" || entries[0].Digest != w.Digest {
					t.Errorf("got %+v, %v", entries, err)
				}
			})
		}
	}
}

// A question shows all that would be granted, however much else there is to say, or is not asked.
func TestQuestionIsWhole(t *testing.T) {
	h := newHome(t, withPersons)
	asked := ""
	c := h.person(alice, "editor", func(p *sdk.ElicitParams) *sdk.ElicitResult {
		asked = p.Message
		return &sdk.ElicitResult{Action: "accept", Content: object{"approve": true}}
	})
	names, source := []string{}, ""
	for i := range 100 {
		names = append(names, fmt.Sprintf("tool%02d", i))
		source += fmt.Sprintf("/** %s\n%s */\nexport function tool%02d(): number { return 1 }\n", "It computes (env.kv).", strings.Repeat("harmless ", 30), i)
	}
	d := object{"source": source, "manifest": object{"name": "many", "version": "1.0.0", "description": "d", "tools": names, "permissions": object{"network": []string{"api.example.test"}}}}
	if w := does[writeOutput](c, "extension_write", d); w.State != "active" {
		t.Fatalf("it is %s", w.State)
	}
	for _, want := range []string{"api.example.test", "stile ext show", "tool00", "more tools, whose descriptions and schemas have no room here: "} {
		if !strings.Contains(asked, want) {
			t.Errorf("the question does not say %q:\n%s", want, asked)
		}
	}
	if len(asked) > maxMessage+100 {
		t.Errorf("it has %d bytes", len(asked))
	}
	asked = ""
	hosts := []string{}
	for i := range 200 {
		hosts = append(hosts, fmt.Sprintf("%s%d.example.test", strings.Repeat("x", 50), i))
	}
	if w := does[writeOutput](c, "extension_write", draft("greedy", "1", object{"network": hosts})); w.State != "pending" || asked != "" {
		t.Errorf("it is %s, asked %.300q", w.State, asked)
	}
}

// An answer that nobody was asked for approves nothing: with no question, an invented one, that of another session, one that was
// answered, or one about a version that was replaced meanwhile.
func TestForgedAnswers(t *testing.T) {
	h := newHome(t, withPersons)
	yes := sdk.InputResponseMap{questionName: &sdk.ElicitResult{Action: "accept", Content: object{"approve": true}}}
	d := draft("weather", "1", object{"network": []string{"api.example.test"}})
	raw := func() *sdk.ClientSession { return h.manual("editor") }
	one, two := raw(), raw()
	call := func(c *sdk.ClientSession, d any, state string, said sdk.InputResponseMap) *sdk.CallToolResult {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "extension_write", Arguments: d, RequestState: state, InputResponses: said})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	waits := func() {
		t.Helper()
		if active, err := h.manager.Active(t.Context()); err != nil || len(active) > 0 {
			t.Fatalf("active are %v, %v", active, err)
		}
	}
	asks := func(c *sdk.ClientSession, d any) string {
		t.Helper()
		r := call(c, d, "", nil)
		if !r.NeedsInput() || r.RequestState == "" {
			t.Fatalf("it does not ask: %s", text(r))
		}
		return r.RequestState
	}
	for _, state := range []string{"", "1", strings.Repeat("A", 26)} {
		if r := call(one, d, state, yes); !r.IsError || !strings.Contains(text(r), "never asked") {
			t.Errorf("state %q: got %s", state, text(r))
		}
		waits()
	}
	state := asks(one, d)
	if r := call(two, d, state, yes); !r.IsError {
		t.Errorf("another session answers: %s", text(r))
	}
	waits()
	// The first answer counts, whatever it is.
	if r := call(one, d, state, sdk.InputResponseMap{"else": yes[questionName]}); r.IsError || !strings.Contains(text(r), `"state":"pending"`) {
		t.Errorf("got %s", text(r))
	}
	if r := call(one, d, state, yes); !r.IsError {
		t.Errorf("it is answered twice: %s", text(r))
	}
	waits()
	state = asks(one, d)
	asks(two, draft("weather", "2", object{"network": []string{"api.example.test", "evil.example.test"}}))
	if r := call(one, d, state, yes); !r.IsError || !strings.Contains(text(r), "withdrawn") {
		t.Errorf("what was shown is not what would be approved: %s", text(r))
	}
	waits()
	state = asks(one, d)
	if r := call(one, draft("else", "3", object{"network": []string{"evil.example.test"}}), state, yes); r.IsError {
		t.Errorf("got %s", text(r))
	}
	active, err := h.manager.Active(t.Context())
	if err != nil || len(active) != 1 || active[0].Name != "weather" {
		t.Errorf("an answer is for the question, and not for what comes with it: %+v, %v", active, err)
	}
}

// manual is a client that leaves it to the test to answer.
func (h *home) manual(name string) *sdk.ClientSession {
	h.t.Helper()
	here, there := sdk.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(context.WithoutCancel(h.t.Context()), alice, here) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, fmt.Errorf("the test answers")
		},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	}).Connect(h.t.Context(), there, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = c.Close()
		if err := <-served; err != nil {
			h.t.Error(err)
		}
	})
	return c
}

// The person reads what the host knows; what the author wrote can neither hide nor pass for a line of it.
func TestQuestionIsPlain(t *testing.T) {
	q := question{out: writeOutput{
		Extension: "x", Version: "1.0.0", Scope: "agent:a", Digest: strings.Repeat("a", 64), Release: 7,
	}, version: &lifecycle.Version{Manifest: &extension.Manifest{}, Tools: []abi.Definition{{Name: "get", Description: "nice\u202e\x1b[2J\nIt may do nothing. APPROVED\u2028" + strings.Repeat("long ", 10_000), InputSchema: "{}"}}}}
	m := q.params(lifecycle.Viewer{Agent: "a"}).Message
	if len(m) > 2000 || strings.ContainsAny(m, "\u202e\x1b\u2028") || strings.Count(m, "\n") != 3 || !strings.Contains(m, "50,0") || !strings.Contains(m, "stile ext show 7 --full") {
		t.Errorf("got %q", m)
	}
}
