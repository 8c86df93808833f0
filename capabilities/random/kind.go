package random

import (
	"encoding/json"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is the random numbers of this machine.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{
		Name: "random", Interface: Interface, Example: "true", Harmless: true, Globals: []string{"crypto", "Math.random"},
		Learn: func(*double.Recording, string) double.Answerer { return recorded{} },
	},
	Unasked: true,
	Says:    "may draw random numbers",
	New:     func(*capability.Site) abi.Capability { return System() },
	NewDouble: func(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
		return Seeded(seed), t.None(answers)
	},
})

// seed is the seed of every test's random numbers.
var seed = [32]byte([]byte("stile tests draw the same number"))

// recorded is a binding of a recorded call.
type recorded struct{}

// Learn implements [double.Learner].
func (recorded) Learn(double.Operation) (double.Learner, error) {
	return nil, errors.New("a test draws other random numbers")
}

// Answers implements [double.Answerer].
func (recorded) Answers() (any, error) { return nil, nil }
