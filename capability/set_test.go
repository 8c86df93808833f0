package capability_test

import (
	"errors"
	"testing"

	"github.com/stilehost/stile/capability"
)

// TestParseSpecNames checks that a binding of a command line can name a kind by a word or by its WIT interface.
func TestParseSpecNames(t *testing.T) {
	var got capability.Spec
	kind := func(name string) *capability.Kind {
		return &capability.Kind{Name: name, ParseSpec: func(s capability.Spec) (capability.Grant, error) {
			got = s
			return capability.Custom{Name: name}, nil
		}}
	}
	set := capability.NewSet(kind("dice"), kind("acme:games/dice@1.0.0"), &capability.Kind{Name: "asked"})
	for text, want := range map[string]struct {
		kind string
		spec capability.Spec
	}{
		"dice":                         {"dice", capability.Spec{Name: "n"}},
		"dice:6,rw":                    {"dice", capability.Spec{Name: "n", Argument: "6", HasArgument: true, Options: "rw"}},
		"acme:games/dice@1.0.0":        {"acme:games/dice@1.0.0", capability.Spec{Name: "n"}},
		"acme:games/dice@1.0.0:,a,b":   {"acme:games/dice@1.0.0", capability.Spec{Name: "n", HasArgument: true, Options: "a,b"}},
		"acme:games/dice@1.0.0:6:7,rw": {"acme:games/dice@1.0.0", capability.Spec{Name: "n", Argument: "6:7", HasArgument: true, Options: "rw"}},
	} {
		g, err := set.ParseSpec("n", text)
		if c, _ := g.(capability.Custom); err != nil || c.Name != want.kind || got != want.spec {
			t.Errorf("%s: got %v, %+v, %v", text, g, got, err)
		}
	}
	for text, want := range map[string]string{
		"dices":                 `there is no kind "dices"; write dice`,
		"acme:games/dice@1.0.1": `there is no kind "acme"; write one of dice, acme:games/dice@1.0.0`,
		"asked":                 `there is no kind "asked"; write one of dice, acme:games/dice@1.0.0`,
	} {
		var mistake *capability.MistakeError
		if _, err := set.ParseSpec("n", text); !errors.As(err, &mistake) || mistake.Text+"; write "+mistake.Fix != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestSetRefuses has kinds that a manifest or a person could not tell apart, or that would fail when a manifest is read.
func TestSetRefuses(t *testing.T) {
	read := func(*capability.Reader, *capability.Node) capability.Grant { return nil }
	for name, kinds := range map[string][]*capability.Kind{
		"a name twice":             {{Name: "a"}, {Name: "a"}},
		"a short form twice":       {{Name: "a", Permission: "p", ParsePermission: read}, {Name: "b", Permission: "p", ParsePermission: read}},
		"a short form without how": {{Name: "a", Permission: "p"}},
		"how without a short form": {{Name: "a", ParsePermission: read}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is a set")
				}
			}()
			capability.NewSet(kinds...)
		})
	}
}
