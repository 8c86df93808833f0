package blob

import (
	"encoding/json"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is a store that keeps bytes on the host for the duration of a call.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{Name: "blob", Interface: Interface, Example: "true", Harmless: true, Learn: double.NewIndifferent},
	Says: "may keep bytes on the host for the length of a call",
	New:  func(*capability.Site) abi.Capability { return NewStore(StoreOptions{}) },
	NewDouble: func(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
		return NewStore(StoreOptions{Limit: double.MaxKept}), t.None(answers)
	},
})
