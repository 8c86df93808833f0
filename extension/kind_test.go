package extension

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// lamp is a complete kind of capability.
var lamp = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{Name: "lamp", Interface: "acme:home/lamp@1.0.0", Example: "true"},
	Says: "may switch the lamp",
	New:  func(*capability.Site) abi.Capability { return lampOf{} },
	NewDouble: func(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
		return lampOf{}, t.None(answers)
	},
})

type lampOf struct{}

func (lampOf) Interface() string { return "acme:home/lamp@1.0.0" }

// TestNewKind checks that a kind needs only its value and one line that adds it to a set.
func TestNewKind(t *testing.T) {
	kinds := capabilities.Builtin.With(&lamp.Kind)
	want := []Binding{{"desk", lamp.On()}, {"lamp", lamp.On()}}
	m, err := ParseWith(kinds, []byte(with(`"permissions": {"lamp": true}, "bindings": {"desk": {"lamp": true}}`)))
	if err != nil || !reflect.DeepEqual(m.Bindings, want) {
		t.Fatalf("got %v, %v", m, err)
	}
	again, err := ParseWith(kinds, m.Canonical())
	if err != nil || !reflect.DeepEqual(again.Bindings, want) {
		t.Errorf("its canonical form is read as %v, %v", again, err)
	}
	if _, err := Parse(m.Canonical()); err == nil {
		t.Error("a set without it knows it")
	}
	if given, err := ParseSpecs(kinds, []string{"desk=lamp"}); err != nil || !reflect.DeepEqual(given, want[:1]) {
		t.Errorf("the command line has %v, %v", given, err)
	}
	if remedy, moves := ShortRemedy(kinds, "lamp", `"bindings": { "lamp": {"lamp":true} }`); remedy != `"permissions": { "lamp": true }` || moves {
		t.Errorf("the short remedy is %s, %t", remedy, moves)
	}
	lit := lamp.Kind
	lit.Default = lamp.On()
	if defaults := Defaults(capabilities.Builtin.With(&lit)); !reflect.DeepEqual(without(names(defaults), names(Defaults(capabilities.Builtin))), []string{"lamp"}) {
		t.Errorf("the defaults are %v", defaults)
	}
	var wrong *capability.MistakeError
	if _, err := kinds.ParseSpec("desk", "lamb"); !errors.As(err, &wrong) || wrong.Fix != "lamp" {
		t.Errorf("got %v", err)
	}
	if says := Describe(want[0]); !reflect.DeepEqual(says, []string{"may switch the lamp"}) {
		t.Errorf("it says %q", says)
	}
	if granted, cut := Limit(nil, want[:1]); granted != nil || len(cut) != 1 || cut[0].String() != "- lamp" {
		t.Errorf("a ceiling without it leaves %v, %v", granted, cut)
	}
	s := NewState(t.TempDir(), nil)
	if env, err := s.Env(t.Context(), want); err != nil || env["lamp"] == nil || s.Close() != nil {
		t.Errorf("it is not opened: %v", err)
	}
}

func TestSetRefusesDoubles(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two kinds have one name")
		}
	}()
	capabilities.Builtin.With(&capability.Kind{Name: "kv"})
}

func names(bindings []Binding) []string {
	names := make([]string, len(bindings))
	for i, b := range bindings {
		names[i] = b.Name
	}
	return names
}
