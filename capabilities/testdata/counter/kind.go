package counter

import (
	"encoding/json"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is a counter.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{Name: "counter", Interface: Interface, Example: "true", Harmless: true, Learn: double.NewIndifferent},
	Says: "may count",
	New:  func(*capability.Site) abi.Capability { return Counter{} },
	NewDouble: func(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
		return Counter{}, t.None(answers)
	},
})
