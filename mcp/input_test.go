package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lacks is an extension whose tool "add" returns its input, which has required properties.
func lacks(properties, required string) object {
	return object{
		"manifest": object{"name": "todo", "version": "1.0.0", "description": "A test", "tools": []string{"add"}},
		"source": `import { extension } from "stile";
const input = { type: "object", properties: ` + properties + `, required: ` + required + ` };
export default extension({ tools: { add: { description: "Adds", input, run: async (input: any) => input } } });`,
	}
}

const titled = `{ title: { type: "string", description: "What is to do", maxLength: 20 }, count: { type: "integer", minimum: 1 }, list: { type: "string" } }`

// A client that can asks its person for what a call lacks, once.
func TestInputIsAsked(t *testing.T) {
	given := func(content object) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "accept", Content: content} }
	for _, c := range []struct {
		name, required string
		arguments      object
		said           *sdk.ElicitResult // nil: it cannot ask
		asked          string            // the fields
		want           string            // the result, or what the error says
	}{
		{"given", `["title", "count"]`, object{"list": "home"}, given(object{"title": "milk", "count": 2}), "title, count", `{"title":"milk","count":2,"list":"home"}`},
		{"one is there", `["title", "count"]`, object{"count": 3}, given(object{"title": "milk"}), "title", `{"title":"milk","count":3}`},
		{"more than was asked", `["title"]`, object{"count": 3}, given(object{"title": "milk", "count": 9, "else": "x"}), "title", `{"title":"milk","count":3}`},
		{"declined", `["title"]`, object{}, &sdk.ElicitResult{Action: "decline", Content: object{"title": "milk"}}, "title", "!missing property 'title'"},
		{"cancelled", `["title"]`, object{}, &sdk.ElicitResult{Action: "cancel"}, "title", "!missing property 'title'"},
		{"accepted without it", `["title"]`, object{}, given(object{}), "title", "!title"},
		{"of another type", `["title"]`, object{}, given(object{"title": 5}), "title", "!title"},
		{"too long", `["title"]`, object{}, given(object{"title": strings.Repeat("x", 21)}), "title", "!title"},
		{"huge", `["list"]`, object{}, given(object{"list": strings.Repeat("x", 3700)}), "list", "!list"},
		{"too small", `["count"]`, object{}, given(object{"count": 0}), "count", "!count"},
		{"a client that cannot ask", `["title"]`, object{}, nil, "", "!missing property 'title'"},
		{"something else is wrong too", `["title"]`, object{"count": 0}, given(object{"title": "milk"}), "", "!count"},
		{"nothing lacks", `["title"]`, object{"title": "eggs"}, given(object{"title": "milk"}), "", `{"title":"eggs"}`},
	} {
		for _, transport := range []string{"pipes", "pipes " + withSessions, withSessions, sessionless} {
			t.Run(c.name+" over "+transport, func(t *testing.T) {
				h := newHome(t, preApproved)
				asked, times := "", 0
				var ask func(*sdk.ElicitParams) *sdk.ElicitResult
				if c.said != nil {
					ask = func(p *sdk.ElicitParams) *sdk.ElicitResult {
						times++
						asked = p.Message
						return c.said
					}
				}
				var agent *client
				if version, pipes := strings.CutPrefix(transport, "pipes"); pipes {
					agent = h.personAt(strings.TrimSpace(version), alice, "any", ask)
				} else {
					agent = h.web(HTTPOptions{}).client(transport, aliceToken, "any", ask)
				}
				does[writeOutput](agent, "extension_write", lacks(titled, c.required))
				r, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "todo_add", Arguments: c.arguments})
				got := fmt.Sprint(err)
				if err == nil {
					got = text(r)
				}
				if want, fails := strings.CutPrefix(c.want, "!"); fails != (err != nil || r.IsError) || fails && !strings.Contains(got, want) || !fails && !sameValue(got, want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if (times == 1) != (c.asked != "") || times > 1 {
					t.Fatalf("asked %d times", times)
				}
				if c.asked == "" {
					return
				}
				for _, want := range []string{"extension todo", "agent:alice", "todo_add", "without: " + c.asked + ".", "no secrets"} {
					if !strings.Contains(asked, want) {
						t.Errorf("the question does not say %q:\n%s", want, asked)
					}
				}
				entries, err := h.manager.Audit(t.Context(), 10)
				if err != nil {
					t.Fatal(err)
				}
				logged := ""
				for _, e := range entries {
					if e.Kind == "input" {
						logged = fmt.Sprint(e.By, " ", e.Via, " ", e.Scope, " ", e.Tool, ": ", e.Reason)
					}
				}
				// The SDK refuses an answer that does not fit its form; then none was given.
				if logged != "" != (c.want[0] == '{') && logged != "user:tom elicitation:any user:tom agent:alice todo_add: "+c.asked && !strings.HasPrefix(c.want, "!") {
					t.Errorf("the log says %q", logged)
				}
				if c.want[0] == '{' && !strings.HasSuffix(logged, "todo_add: "+c.asked) {
					t.Errorf("the log says %q", logged)
				}
			})
		}
	}
}

func sameValue(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// Nobody is asked for a secret, or for what no field of the protocol takes, even beside other properties.
func TestNoSecretIsAsked(t *testing.T) {
	long := strings.Repeat("x", maxChoice+1)
	for name, property := range map[string]string{
		"password":         `{"type":"string"}`,
		"apiKey":           `{"type":"string"}`,
		"access_token":     `{"type":"string"}`,
		"client-secret":    `{"type":"string"}`,
		"x1":               `{"type":"string","format":"password"}`,
		"x2":               `{"type":"string","writeOnly":true}`,
		"x3":               `{"type":"string","description":"the PIN of your card"}`,
		"x4":               `{"type":"string","title":"Your API key"}`,
		"x5":               `{"type":"object"}`,
		"x6":               `{"type":"array","items":{"type":"string"}}`,
		"x7":               `{"$ref":"#/$defs/a"}`,
		"x8":               `{"anyOf":[{"type":"string"}]}`,
		"x9":               `{"type":["string","null"]}`,
		"x10":              `{}`,
		"x11":              `true`,
		"x12":              `{"enum":["` + long + `"]}`,
		"x13":              `{"enum":["a\u202eb"]}`,
		"x14":              `{"enum":[1]}`,
		"x15":              `{"enum":[]}`,
		"a\u202eb":         `{"type":"string"}`,
		"a\nb":             `{"type":"string"}`,
		long:               `{"type":"string"}`,
		"title of secrets": `{"type":"string"}`,
	} {
		if f := inputField(name, json.RawMessage(property)); f != nil {
			t.Errorf("%s %s: asked with %v", name, property, f)
		}
		quoted, _ := json.Marshal(name)
		r := &request{tool: &sdk.Tool{Name: "x_y", InputSchema: json.RawMessage(fmt.Sprintf(`{"properties":{"ok":{"type":"string"},%s:%s},"required":["ok",%s]}`, quoted, property, quoted))}}
		if q := r.lacking(nil); q != nil {
			t.Errorf("%s: asked for the rest, %v", name, q.names)
		}
	}
	for _, property := range []string{
		`{"type":"string","format":"email","minLength":1}`, `{"type":"number","minimum":0,"maximum":1}`, `{"type":"boolean","default":true}`, `{"enum":["a","b"]}`, `{"type":"string","pattern":"^(a+)+$"}`,
	} {
		if f := inputField("x", json.RawMessage(property)); f == nil || f["pattern"] != nil || f["default"] != nil {
			t.Errorf("%s: asked with %v", property, f)
		}
	}
	if f := inputField("x", json.RawMessage(`{"type":"string","description":"\u202e`+strings.Repeat("long ", 1000)+`"}`)); len(f["description"].(string)) > maxInputText+20 || strings.Contains(f["description"].(string), "\u202e") {
		t.Errorf("asked with %v", f)
	}
	required, properties := "", ""
	for i := range maxInputFields + 1 {
		required += fmt.Sprintf(`,"p%d"`, i)
		properties += fmt.Sprintf(`,"p%d":{"type":"string"}`, i)
	}
	r := &request{tool: &sdk.Tool{InputSchema: json.RawMessage(`{"properties":{` + properties[1:] + `},"required":[` + required[1:] + `]}`)}}
	if q := r.lacking(nil); q != nil {
		t.Errorf("a form of %d fields", len(q.names))
	}
}

// After a person gave nothing, nobody is asked at once again, whatever the model calls.
func TestPersonIsLeftAlone(t *testing.T) {
	h := newHome(t, preApproved)
	var times atomic.Int64
	agent := h.person(alice, "any", func(*sdk.ElicitParams) *sdk.ElicitResult {
		times.Add(1)
		return &sdk.ElicitResult{Action: "decline"}
	})
	does[writeOutput](agent, "extension_write", lacks(titled, `["title"]`))
	for range 5 {
		if r := agent.tool("todo_add", object{}); !r.IsError {
			t.Fatalf("got %s", text(r))
		}
	}
	if times.Load() != 1 {
		t.Errorf("asked %d times", times.Load())
	}
}

// A question ends with its call: nothing runs, and the places are free.
func TestInputEndsWithCall(t *testing.T) {
	for _, transport := range []string{"pipes", withSessions} {
		t.Run(transport, func(t *testing.T) {
			h := newHome(t, preApproved)
			ctx, cancel := context.WithCancel(t.Context())
			hang := make(chan struct{})
			ask := func(*sdk.ElicitParams) *sdk.ElicitResult {
				cancel()
				<-hang
				return &sdk.ElicitResult{Action: "accept", Content: object{"title": "milk"}}
			}
			agent := h.personOver(transport, ask)
			does[writeOutput](agent, "extension_write", lacks(titled, `["title"]`))
			if _, err := agent.CallTool(ctx, &sdk.CallToolParams{Name: "todo_add", Arguments: object{}}); err == nil {
				t.Error("a cancelled call has an answer")
			}
			for { // the bound of questions counts none any more
				ok := true
				var all []func()
				for range 16 {
					answered, err := h.manager.Asking(alice)
					if ok = err == nil; !ok {
						break
					}
					all = append(all, answered)
				}
				for _, answered := range all {
					answered()
				}
				if ok {
					break
				}
			}
			close(hang)
			entries, err := h.manager.Audit(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Kind == "input" {
					t.Errorf("the log has %+v", e)
				}
			}
		})
	}
}

// An answer that nobody was asked for is none, and an answer is for the tool that was shown.
func TestForgedInput(t *testing.T) {
	h := newHome(t, preApproved)
	does[writeOutput](h.client(), "extension_write", lacks(titled, `["title"]`))
	one, two := h.manual("any"), h.manual("any")
	answer := sdk.InputResponseMap{inputName: &sdk.ElicitResult{Action: "accept", Content: object{"title": "milk"}}}
	call := func(c *sdk.ClientSession, tool string, arguments object, state string, said sdk.InputResponseMap) *sdk.CallToolResult {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments, RequestState: state, InputResponses: said})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	asks := func() string {
		t.Helper()
		r := call(one, "todo_add", object{}, "", nil)
		if !r.NeedsInput() || r.RequestState == "" {
			t.Fatalf("it does not ask: %s", text(r))
		}
		return r.RequestState
	}
	for _, state := range []string{"", "1", strings.Repeat("A", 26)} {
		if r := call(one, "todo_add", object{}, state, answer); !r.IsError || !strings.Contains(text(r), "never asked") {
			t.Errorf("state %q: got %s", state, text(r))
		}
	}
	state := asks()
	if r := call(two, "todo_add", object{}, state, answer); !r.IsError {
		t.Errorf("another session answers: %s", text(r))
	}
	// The arguments of the repeated call count, and the answer only for what they lack.
	if r := call(one, "todo_add", object{"title": "eggs"}, state, answer); r.IsError || text(r) != `{"title":"eggs"}` {
		t.Errorf("got %s", text(r))
	}
	if r := call(one, "todo_add", object{}, state, answer); !r.IsError {
		t.Errorf("it is answered twice: %s", text(r))
	}
	state = asks()
	if r := call(one, "todo_add", object{}, state, sdk.InputResponseMap{"else": answer[inputName]}); !r.IsError || r.NeedsInput() {
		t.Errorf("it is asked twice in a call: %s", text(r))
	}
	// A new version is another tool.
	one = h.manual("any")
	state = asks()
	d := lacks(`{ title: { type: "string" }, else: { type: "string" } }`, `["title", "else"]`)
	d["manifest"].(object)["version"] = "1.0.1"
	does[writeOutput](h.client(), "extension_write", d)
	if r := call(one, "todo_add", object{}, state, answer); !r.IsError || !strings.Contains(text(r), "never asked") {
		t.Errorf("the question was about another version: %s", text(r))
	}
}

// personOver is alice's client over pipes, or over HTTP with the version of the protocol that transport is.
func (h *home) personOver(transport string, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	h.t.Helper()
	if transport == "pipes" {
		return h.personAt(withSessions, alice, "any", ask)
	}
	return h.web(HTTPOptions{}).client(transport, aliceToken, "any", ask)
}
