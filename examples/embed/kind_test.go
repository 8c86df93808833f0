package main

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
)

var kinds = capabilities.Builtin.With(Kind)

func manifest(config string) string {
	return `{"name": "lookup", "version": "1.0.0", "description": "d", "tools": ["mail_to"], "bindings": {"crm": {"acme:crm/contacts@1.0.0": ` + config + `}}}`
}

func asks(t *testing.T, config string) []extension.Binding {
	t.Helper()
	m, err := extension.ParseWith(kinds, []byte(manifest(config)))
	if err != nil {
		t.Fatal(err)
	}
	return m.Bindings
}

func TestManifest(t *testing.T) {
	for config, want := range map[string][2]string{
		`{}`:                    {`{"acme:crm/contacts@1.0.0":{}}`, "may look up everybody in the address book"},
		`{"only": ["b", "a"]}`:  {`{"acme:crm/contacts@1.0.0":{"only":["a","b"]}}`, "may look up in the address book only a, b"},
		`{"only": ["\u202eb"]}`: {"{\"acme:crm/contacts@1.0.0\":{\"only\":[\"\u202eb\"]}}", `may look up in the address book only \u202eb`},
	} {
		b := asks(t, config)[0]
		text, err := b.MarshalJSON()
		if says := extension.Describe(b); err != nil || string(text) != want[0] || len(says) != 1 || says[0] != want[1] {
			t.Errorf("%s: got %s, %q, %v", config, text, says, err)
		}
	}
	for config, want := range map[string]string{
		`{"only": []}`:    "the list is empty",
		`{"onyl": ["a"]}`: `write "only"`,
		`true`:            "true where an object belongs",
	} {
		if _, err := extension.ParseWith(kinds, []byte(manifest(config))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", config, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	p, err := policy.ParseWith(kinds, []byte(`{
		"ceiling": {"bindings": {"x": {"acme:crm/contacts@1.0.0": {"only": ["a", "b"]}}}},
		"approve": [{"bindings": {"x": {"acme:crm/contacts@1.0.0": {"only": ["a"]}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	own := extension.Scope{Kind: extension.User, Owner: "tom"}
	for config, want := range map[string]policy.Decision{
		`{"only": ["a"]}`:      {Verdict: policy.Approved, Granted: asks(t, `{"only": ["a"]}`)},
		`{"only": ["b", "c"]}`: {Verdict: policy.Pending, Granted: asks(t, `{"only": ["b"]}`)},
		`{}`:                   {Verdict: policy.Pending, Granted: asks(t, `{"only": ["a", "b"]}`)},
		`{"only": ["c"]}`:      {Verdict: policy.Refused},
	} {
		got := p.Decide(policy.Request{Scope: own, Author: own, Asked: asks(t, config)})
		if got.Verdict != want.Verdict || !reflect.DeepEqual(got.Granted, want.Granted) {
			t.Errorf("%s: got %s, %v", config, got.Verdict, got.Granted)
		}
	}
}

func TestState(t *testing.T) {
	s := extension.NewState(t.TempDir(), nil)
	asked := asks(t, `{"only": ["a"]}`)
	if _, err := s.Env(t.Context(), asked); err == nil {
		t.Error("there is a book that nobody gave")
	}
	s.Configure(Kind, Book{"a": {Name: "a"}, "b": {Name: "b"}})
	env, err := s.Env(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if names := env["crm"].(Book).Search(t.Context(), ""); !reflect.DeepEqual(names, []string{"a"}) {
		t.Errorf("it reaches %q", names)
	}
}

func TestDouble(t *testing.T) {
	answer := func(answers string) (any, error) {
		g := asks(t, `{"only": ["Ada"]}`)[0].Grant.(double.Doubler)
		return g.Double(context.Background(), &double.Test{Path: "tests[0].env.crm"}, json.RawMessage(answers))
	}
	if got, err := answer(`{"Ada": "ada@example.com"}`); err != nil || !reflect.DeepEqual(got, Book{"Ada": {Name: "Ada", Email: "ada@example.com"}}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := answer(`{"Eve": "e@x"}`); err == nil || !strings.HasPrefix(err.Error(), `tests[0].env.crm["Eve"]: `) {
		t.Errorf("got %v", err)
	}
}
