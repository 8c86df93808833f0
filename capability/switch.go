package capability

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

// Switched is a kind that is on or off: `true` in a manifest, and no argument on a command line.
type Switched struct {
	Kind
	// Unasked is set if commands for people bind it by default.
	Unasked bool
	// Says describes what the kind may do, for the person who approves it.
	Says string
	// New makes the capability.
	New func(*Site) abi.Capability
	// NewDouble makes the capability for a test, with answers that never vary. answers are the test's, or nil.
	NewDouble func(t *double.Test, answers json.RawMessage) (abi.Capability, error)
}

// Switch is the grant of a kind that is on or off. Two grants of one kind are equal.
type Switch struct{ of *Switched }

// NewSwitch completes a kind that is on or off.
func NewSwitch(s Switched) *Switched {
	k := &s
	k.Permission = k.Name
	k.Parse = func(r *jsonform.Reader, n *jsonform.Node) Grant { return True(r, n, k.On()) }
	k.ParsePermission = k.Parse
	k.ParseSpec = func(s Spec) (Grant, error) {
		if s.HasArgument || s.Options != "" {
			return nil, &MistakeError{Text: k.Name + " takes neither an argument nor options", Fix: s.Name + "=" + k.Name}
		}
		return k.On(), nil
	}
	if k.Unasked {
		k.Default = k.On()
	}
	return k
}

// On returns the grant.
func (k *Switched) On() Switch { return Switch{k} }

// True reads `true`, which stands for a grant.
func True(r *jsonform.Reader, n *jsonform.Node, g Grant) Grant {
	if n.Value != true && r.Err == nil {
		r.Fail(n, "true, or leave the field out", "%s where true belongs", n.What())
	}
	return g
}

// Kind implements [Grant].
func (g Switch) Kind() *Kind { return &g.of.Kind }

// Interface implements [Grant].
func (g Switch) Interface() string { return g.of.Interface }

// Document implements [Grant].
func (Switch) Document() any { return true }

// Describe implements [Grant].
func (g Switch) Describe() []string { return []string{g.of.Says} }

// Authority implements [Grant].
func (g Switch) Authority() []string { return []string{g.of.Name} }

// Covers implements [Grant].
func (g Switch) Covers(asked Grant) bool { return g == asked }

// Open implements [Opener].
func (g Switch) Open(_ context.Context, s *Site) (abi.Capability, error) { return g.of.New(s), nil }

// Double implements [double.Doubler].
func (g Switch) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	return g.of.NewDouble(t, answers)
}

// String is the kind's name.
func (g Switch) String() string { return fmt.Sprintf("%s on", g.of.Name) }
