package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

const (
	diceInterface = "acme:games/dice@1.0.0"
	diceWIT       = `package acme:games@1.0.0;
interface dice {
  use stile:capability/types@0.1.0.{error};
  resource cup { roll: func(sides: u32) -> result<u32, error>; }
}`
)

// dice is a kind of another program: dice with at most so many sides, {"sides": 6}.
var dice = &capability.Kind{Name: diceInterface, Interface: diceInterface, Example: `{"sides": 6}`, Parse: func(r *capability.Reader, n *capability.Node) capability.Grant {
	sides, ok := r.Fields(n, `{"sides": 6}`, []string{"sides"}, "sides")["sides"]
	if !ok {
		return cup{}
	}
	number, _ := sides.Value.(json.Number)
	most, err := strconv.ParseUint(number.String(), 10, 8)
	if err != nil {
		r.Fail(sides, "6", "dice do not have so many sides")
	}
	return cup{uint32(most)}
}}

// cup is a grant of dice, and the capability.
type cup struct {
	Sides uint32 `json:"sides"`
}

func (cup) Kind() *capability.Kind { return dice }
func (cup) Interface() string      { return diceInterface }
func (c cup) Document() any        { return c }
func (c cup) Describe() []string {
	return []string{fmt.Sprintf("may roll dice with %d sides", c.Sides)}
}
func (c cup) Authority() []string { return []string{fmt.Sprintf("dice with %d sides", c.Sides)} }

func (c cup) Covers(asked capability.Grant) bool {
	a, ok := asked.(cup)
	return ok && a.Sides <= c.Sides
}

func (c cup) Limit(ceiling []capability.Grant) capability.Grant {
	most := cup{}
	for _, g := range ceiling {
		if above, ok := g.(cup); ok {
			most.Sides = max(most.Sides, min(above.Sides, c.Sides))
		}
	}
	if most.Sides == 0 {
		return nil
	}
	return most
}

func (c cup) Open(context.Context, *capability.Site) (abi.Capability, error) { return c, nil }

func (c cup) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	_, err := double.Members[uint32](t, answers, "{}")
	return c, err
}

// Roll is `roll`. Such dice always show their highest number.
func (c cup) Roll(_ context.Context, sides uint32) (uint32, error) {
	if sides > c.Sides {
		return 0, abi.Deny(abi.Denial{
			Operation: fmt.Sprintf("roll %d", sides), Reason: fmt.Sprintf("these have %d sides", c.Sides), Wants: capability.Wanted{Grant: cup{sides}},
		})
	}
	return sides, nil
}

// newHomeWithDice returns a home of a program that has the kind dice.
func newHomeWithDice(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	cacheDir, keyDir := cachetest.Dirs(t)
	owned, err := host.New(t.Context(), host.Options{WIT: []string{diceWIT}, CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owned.Close() })
	tools, err := toolchain.New(t.Context(), owned, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	h.options.Host, h.options.Kinds = owned, capabilities.Builtin.With(dice)
	h.options.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }
	return h
}

// TestTypesOfKinds checks the types of an extension that uses a kind of the embedding program: they are those of its WIT.
func TestTypesOfKinds(t *testing.T) {
	h := newHomeWithDice(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	m := h.open()
	d := draft("games", "await env.dice.rol(6), input.name", "")
	d.Manifest = fmt.Appendf(nil, `{"name": "games", "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {"dice": {%q: {"sides": 6}}}}`, diceInterface)
	_, err := m.Write(t.Context(), d)
	problems, ok := errors.AsType[*extension.ProblemsError](err)
	const want = "Property 'rol' does not exist on type 'Cup'. Did you mean 'roll'? (TS2551)"
	if !ok || problems.Problems[0].Text != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestKinds has an extension that uses a kind of the embedding program: its tests, what a person reads, the ceiling, and calls, also after
// a restart.
func TestKinds(t *testing.T) {
	h := newHomeWithDice(t)
	var err error
	if h.options.Policy, err = policy.ParseWith(h.options.Kinds, fmt.Appendf(nil, `{"ceiling": {"bindings": {"d": {%q: {"sides": 6}}}}}`, diceInterface)); err != nil {
		t.Fatal(err)
	}

	d := tool("games", "roll,cheat", `import { extension } from "stile";
export default extension({ tools: {
	roll: { description: "Rolls", run: async (_, env) => env.dice.roll(6) },
	cheat: { description: "Rolls too well", run: async (_, env) => env.dice.roll(20) },
} });`, "")
	d.Manifest = fmt.Appendf(nil, `{"name": "games", "version": "1.0.0", "description": "A test", "tools": ["roll", "cheat"], "bindings": {"dice": {%q: {"sides": 20}}},
		"tests": [{"tool": "roll", "input": {}, "expect": 6, "env": {"dice": {}}}, {"tool": "cheat", "input": {}, "expect": 20, "env": {"dice": {}}}]}`, diceInterface)
	m := h.open()
	w := write(t, m, d)
	review, err := m.Review(t.Context(), w.Release.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(review.Granted) != 1 || review.Granted[0].Grant != capability.Grant(cup{6}) || len(review.Cut) != 1 || review.Cut[0].What != extension.Narrowed {
		t.Errorf("a person reads %v, cut %v", review.Granted, review.Cut)
	}
	approve(t, m, w.Release)
	says(t, m, "games_roll", "6")

	again := h.open()
	says(t, again, "games_roll", "6")
	var above *CeilingError
	if _, err := again.Call(t.Context(), Call{Viewer: agent, Tool: "games_cheat"}); !errors.As(err, &above) {
		t.Errorf("above the ceiling: got %v", err)
	}

	h.options.Kinds, h.options.Policy = capability.Set{}, nil
	var stopped *QuarantinedError
	if r, err := h.open().Call(t.Context(), Call{Viewer: agent, Tool: "games_roll"}); !errors.As(err, &stopped) {
		t.Errorf("without the kind: got %s, %v", r.Output, err)
	}
}
