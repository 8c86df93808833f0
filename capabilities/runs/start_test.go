package runs

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

func grantOf(t interface{ Fatal(...any) }, text string) capability.Grant {
	r := jsonform.New("manifest.json", []byte(text))
	g := Kind.Parse(r, r.Parse())
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return g
}

// TestStarts reads the rights of a manifest, and says what they are.
func TestStarts(t *testing.T) {
	g := grantOf(t, `{"start": ["orders_*", "a_get"]}`)
	if text := string(capability.JSON(g.Document())); text != `{"start":["a_get","orders_*"]}` {
		t.Errorf("it is %s", text)
	}
	if text := strings.Join(g.Describe(), "\n"); !strings.Contains(text, "may start runs of the tools a_get, orders_* of other extensions") {
		t.Errorf("a person reads %s", text)
	}
	on := grantOf(t, `true`)
	if on != capability.Grant(Kind.On()) || !g.Covers(on) || on.Covers(g) || g.Covers(tools.Calls{Patterns: []string{"a_get"}}) || (tools.Calls{Patterns: []string{"*"}}).Covers(g) {
		t.Error("it covers what it is not")
	}
	reached := g.(Starts).WithCallees([]capability.Callee{{Scope: "shared", Extension: "a", Tools: []string{"a_get"}}})
	if lines := reached.Authority(); !slices.Contains(lines, "runs") || !slices.Contains(lines, "start tools a_get of a in shared") {
		t.Errorf("its authority is %v", lines)
	}
	if !g.Covers(reached) || reached.Covers(g) || reached.(Starts).Named().Callees() != nil {
		t.Error("what patterns mean covers patterns")
	}
	for _, text := range []string{`{}`, `false`, `{"start": [], "stop": []}`, `{"start": ["Ä"]}`, `{"start": true}`, `[]`} {
		r := jsonform.New("manifest.json", []byte(text))
		if Kind.Parse(r, r.Parse()); r.Err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	for _, g := range []Starts{g.(Starts), {of: &Kind.Kind}} {
		e, ok := errors.AsType[*abi.Error](g.Unnamed("b_get"))
		if !ok || e.Denial == nil || e.Denial.Operation != "start b_get" || !strings.Contains(e.Denial.Wants.Remedy("run"), `"b_get"`) || !strings.Contains(e.Denial.Wants.Remedy("run"), `{"runs":{"start":[`) {
			t.Errorf("it is denied with %v", e)
		}
	}
}

// TestStartsCover checks that rights cover no others that admit a name which they do not.
func TestStartsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{1,3}\*?[ab]{0,3}`), 1, 3, rapid.ID[string])
		draw := func(name string) Starts {
			text, _ := json.Marshal(map[string]any{"start": list.Draw(t, name)})
			return grantOf(t, string(text)).(Starts)
		}
		allowed, asked := draw("allowed"), draw("asked")
		if !allowed.Covers(asked) {
			return
		}
		p := rapid.SampledFrom(asked.calls.Patterns).Draw(t, "pattern")
		if name := strings.ReplaceAll(p, "*", rapid.StringMatching(`[ab]{0,6}`).Draw(t, "rest")); !allowed.Names(name) {
			t.Errorf("%v covers %v, and does not admit %s", allowed.calls.Patterns, asked.calls.Patterns, name)
		}
	})
}

// TestStartsNothing refuses what no binding may start.
func TestStartsNothing(t *testing.T) {
	key := strings.Repeat("k", MaxKey+1)
	if _, err := new(Control).Start(t.Context(), "a_get", "{}", &key); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if _, err := new(Control).Start(t.Context(), "a_get", "{}", nil); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("got %v", err)
	}
	if _, err := new(Control).Outcome(t.Context(), "x"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := new(Control).Ended(t.Context(), "x"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestStartsDouble has a test say how runs end.
func TestStartsDouble(t *testing.T) {
	test := &double.Test{Path: "tests[0].env.run", Binding: "run", Clock: double.NewClock()}
	g := grantOf(t, `{"start": ["orders_*"]}`).(Starts)
	opened, err := g.Double(t.Context(), test, []byte(`{"starts": {"orders_order": [{"output": {"n": 1}}, {"error": "no bread"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, key := opened.(*scripted), "k"
	first, err := s.Start(t.Context(), "orders_order", "{}", &key)
	again, _ := s.Start(t.Context(), "orders_order", "{}", &key)
	second, _ := s.Start(t.Context(), "orders_order", "{}", nil)
	if err != nil || first != again || first == second {
		t.Errorf("got %s, %s and %s: %v", first, again, second, err)
	}
	if out, err := s.Outcome(t.Context(), first); err != nil || out != `{"n": 1}` {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := s.Outcome(t.Context(), second); err == nil || !strings.Contains(err.Error(), "no bread") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Start(t.Context(), "other_get", "{}", nil); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("got %v", err)
	}
	if _, err := g.Double(t.Context(), test, []byte(`{"starts": {"other_get": {"output": 1}}}`)); err == nil {
		t.Error("a test starts what the binding does not name")
	}
}
