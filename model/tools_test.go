package model_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/model/modeltest"
)

// toolReason is the reason of a reply that ends with calls.
func toolReason(p modeltest.Protocol) string {
	return map[string]string{"openai": "tool_calls", "anthropic": "tool_use"}[p.Name]
}

// calls is a reply with calls.
func calls(p modeltest.Protocol, events ...string) http.HandlerFunc {
	return modeltest.Stream(append(append([]string{p.Start}, events...), p.Stop(toolReason(p), true))...)
}

var weather = model.Tool{Name: "weather", Description: "The weather at a place", Input: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)}

// TestCalls has a model think, say something, and call tools.
func TestCalls(t *testing.T) {
	for _, p := range modeltest.Protocols {
		t.Run(p.Name, func(t *testing.T) {
			s := modeltest.Serve(t, calls(p, p.Think("Two ", "places."), p.Content("Let me see."),
				p.Call(0, "call_a", "weather", `{"pla`, `ce": "Paris"}`), p.Call(1, "call_b", "weather", `{"place": "London"}`), p.Call(2, "call_c", "now")))
			var pieces []model.Piece
			c := hello
			c.Tools = []model.Tool{weather, {Name: "now", Input: json.RawMessage(`{"type":"object"}`)}}
			got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), c, func(p model.Piece) { pieces = append(pieces, p) })
			if err != nil {
				t.Fatal(err)
			}
			thought := model.Thought{Text: "Two places."}
			if p.Name == "anthropic" {
				thought.Signature = "sig=="
			}
			want := model.Reply{
				Thoughts: []model.Thought{thought}, Text: "Let me see.", Tokens: model.Tokens{Input: 1200, Output: 34, Cached: 200},
				Calls: []model.Call{
					{ID: "call_a", Name: "weather", Input: json.RawMessage(`{"place": "Paris"}`)},
					{ID: "call_b", Name: "weather", Input: json.RawMessage(`{"place": "London"}`)},
					{ID: "call_c", Name: "now", Input: json.RawMessage(`{}`)},
				},
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			if all := fmt.Sprint(pieces); all != `[{ Two  0  } { places. 0  } {Let me see.  0  } {  1 weather } {  1 weather {"pla} {  1 weather ce": "Paris"}} {  2 weather } {  2 weather {"place": "London"}} {  3 now }]` {
				t.Errorf("pieces are %s", all)
			}
		})
	}
}

// TestToolsAreSent looks at what servers get: tools, and turns with all parts.
func TestToolsAreSent(t *testing.T) {
	picture := model.Image{Type: "image/png", Data: []byte("png")}
	c := model.Conversation{
		System: "Be brief.", Tools: []model.Tool{weather}, Choice: model.Some, Output: json.RawMessage(`{"type":"object"}`),
		Turns: []model.Turn{
			{Role: model.User, Text: "What is this, and how is the weather?", Images: []model.Image{picture}},
			{Role: model.Assistant, Thoughts: []model.Thought{{Text: "Hm.", Signature: "sig=="}, {Text: "of another server"}, {Sealed: "sealed"}}, Calls: []model.Call{
				{ID: "a", Name: "weather", Input: json.RawMessage(`{"place":"Paris"}`)}, {ID: "b", Name: "weather", Malformed: `{"place`},
			}},
			{Role: model.User, Results: []model.Result{{ID: "a", Text: "sun", Images: []model.Image{picture}}, {ID: "b", Text: "the input is not JSON", Failed: true}}},
		},
	}
	for _, test := range []struct {
		protocol modeltest.Protocol
		want     map[string]string
	}{
		{modeltest.Protocols[0], map[string]string{
			"tools":           `[{"type":"function","function":{"name":"weather","description":"The weather at a place","parameters":{"type":"object","properties":{"place":{"type":"string"}}}}}]`,
			"tool_choice":     `"required"`,
			"response_format": `{"type":"json_schema","json_schema":{"name":"reply","schema":{"type":"object"}}}`,
			"messages": `[{"role":"system","content":"Be brief."},
				{"role":"user","content":[{"type":"text","text":"What is this, and how is the weather?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]},
				{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"place\":\"Paris\"}"}},{"id":"b","type":"function","function":{"name":"weather","arguments":"{\"place"}}]},
				{"role":"tool","content":"sun","tool_call_id":"a"},{"role":"tool","content":"Error: the input is not JSON","tool_call_id":"b"},
				{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}]`,
		}},
		{modeltest.Protocols[1], map[string]string{
			"tools":         `[{"name":"weather","description":"The weather at a place","input_schema":{"type":"object","properties":{"place":{"type":"string"}}}}]`,
			"tool_choice":   `{"type":"any"}`,
			"output_config": `{"format":{"type":"json_schema","schema":{"type":"object"}}}`,
			"messages": `[{"role":"user","content":[{"type":"text","text":"What is this, and how is the weather?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}]},
				{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig=="},{"type":"redacted_thinking","data":"sealed"},
					{"type":"tool_use","id":"a","name":"weather","input":{"place":"Paris"}},{"type":"tool_use","id":"b","name":"weather","input":{"malformed":"{\"place"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"sun"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}]},
					{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"the input is not JSON"}],"is_error":true,"cache_control":{"type":"ephemeral"}}]}]`,
		}},
	} {
		p := test.protocol
		s := modeltest.Serve(t, p.Reply(`{}`))
		m := p.Model(t, s, model.Options{})
		if _, err := m.Complete(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
		for field, want := range test.want {
			var parsed any
			if err := json.Unmarshal([]byte(want), &parsed); err != nil {
				t.Fatal(err)
			}
			if got := s.Asked()[0].Body[field]; !reflect.DeepEqual(got, parsed) {
				t.Errorf("%s: %s is\n%v\nwant\n%v", p.Name, field, got, parsed)
			}
		}
		// A choice without tools would be refused.
		plain := hello
		plain.Choice = model.None
		if _, err := m.Complete(t.Context(), plain, nil); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"tools", "tool_choice", "response_format", "output_config"} {
			if got, has := s.Asked()[1].Body[field]; has {
				t.Errorf("%s: %s is %v", p.Name, field, got)
			}
		}
	}
}

// TestOddCalls has servers and models that do not keep to the protocol.
func TestOddCalls(t *testing.T) {
	for _, p := range modeltest.Protocols {
		many := make([]string, 65)
		for i := range many {
			many[i] = p.Call(i, fmt.Sprint("c", i), "x")
		}
		for _, test := range []struct {
			name   string
			events []string
			want   string // the calls, or what the error says
		}{
			{"malformed", []string{p.Call(0, "a", "x", `{"place": `)}, `a x "" "{\"place\":"`},
			{"not an object", []string{p.Call(0, "a", "x", ` [1] `)}, `a x "[1]" ""`},
			{"without ids", []string{p.Call(0, "", "x"), p.Call(1, "", "y")}, `call_1 x "{}" "", call_2 y "{}" ""`},
			{"one id for all", []string{p.Call(0, "call_2", "x"), p.Call(1, "call_2", "y"), p.Call(2, "call_2", "z")}, `call_2 x "{}" "", call_3 y "{}" "", call_4 z "{}" ""`},
			{"a hostile id", []string{p.Call(0, "a\x1b[31m b", "x"), p.Call(1, strings.Repeat("a", 200), "x")}, `call_1 x "{}" "", call_2 x "{}" ""`},
			{"too many", many, "more than 64 calls"},
			{"an endless input", []string{p.Call(0, "a", "x", strings.Repeat("x", 1<<20))}, "longer than 1024 KiB"},
			{"endless thoughts", []string{p.Think(strings.Repeat("x", 1<<20), "x")}, "longer than 1024 KiB"},
		} {
			t.Run(p.Name+"/"+test.name, func(t *testing.T) {
				s := modeltest.Serve(t, calls(p, test.events...))
				reply, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
				got := ""
				for i, c := range reply.Calls {
					if i > 0 {
						got += ", "
					}
					got += fmt.Sprintf("%s %s %q %q", c.ID, c.Name, c.Input, c.Malformed)
				}
				if err != nil {
					got = err.Error()
				}
				if err != nil && !strings.Contains(got, test.want) || err == nil && got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		}
	}
}

// TestSameIndex has a server that gives all calls the same index, as some do.
func TestSameIndex(t *testing.T) {
	p := modeltest.Protocols[0]
	s := modeltest.Serve(t, calls(p, p.Call(0, "a", "x", `{"n":1}`), p.Call(0, "b", "y", `{"n":`, `2}`)))
	got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
	if err != nil || len(got.Calls) != 2 || string(got.Calls[0].Input) != `{"n":1}` || string(got.Calls[1].Input) != `{"n":2}` {
		t.Errorf("got %+v, %v", got.Calls, err)
	}
}

// TestCutCall has a limit of tokens cut a call.
func TestCutCall(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, modeltest.Stream(p.Start, p.Call(0, "a", "x", `{"n":`), p.Stop(p.Cut, true)))
		got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
		if err != nil || !got.Cut || len(got.Calls) != 1 || got.Calls[0].Input != nil || got.Calls[0].Malformed != `{"n":` {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

// FuzzReply has servers send anything.
func FuzzReply(f *testing.F) {
	for i, p := range modeltest.Protocols {
		f.Add(i == 0, p.Start+p.Think("a", "b")+p.Content("c")+p.Call(0, "a", "x", `{"n":`, `1}`)+p.Stop(toolReason(p), true))
	}
	f.Fuzz(func(t *testing.T, chat bool, events string) {
		p := modeltest.Protocols[1]
		if chat {
			p = modeltest.Protocols[0]
		}
		client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return recorded(events), nil })}
		m, err := p.Open(model.Options{BaseURL: "http://model.test", Model: "scripted", HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		reply, err := m.Complete(t.Context(), hello, func(p model.Piece) { said += p.Text })
		if said != reply.Text {
			t.Errorf("the pieces are %q, and the text %q", said, reply.Text)
		}
		ids := map[string]bool{}
		for _, c := range reply.Calls {
			if (c.Input == nil) == (c.Malformed == "") || c.Input != nil && !json.Valid(c.Input) || ids[c.ID] || c.ID == "" {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
		}
		if err == nil { // the conversation goes on with it
			c := hello
			c.Turns = append(c.Turns[:2:2], reply.Turn(), model.Turn{Role: model.User, Text: "x"})
			if _, err := json.Marshal(c); err != nil {
				t.Error(err)
			}
		}
	})
}
