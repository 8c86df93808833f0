package runs

import (
	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
)

// Kind is what a durable call can say about itself.
var Kind = capability.NewSwitch(capability.Switched{
	Kind:      capability.Kind{Name: "runs", Interface: Interface, Example: "true"},
	Says:      "may, in durable calls, keep some data for a later attempt, stay awake, and take some time to clean up once you cancel it",
	New:       func(*capability.Site) abi.Capability { return new(Control) },
	NewDouble: newDouble,
})
