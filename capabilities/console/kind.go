package console

import (
	"encoding/json"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// maxTestLog is how many bytes of its log a test keeps.
const maxTestLog = 16 << 10

// Kind is the log of the caller.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{
		Name: "console", Interface: Interface, Example: "true", Harmless: true, Logs: true, Globals: []string{"console"},
		Learn: double.NewIndifferent,
	},
	Unasked: true,
	Says:    "may write to the log",
	New:     func(s *capability.Site) abi.Capability { return To(s.Log).WithProgress(s.Progress) },
	NewDouble: func(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
		keep := func(level Level, message string) { t.Log(level.String() + ": " + message) }
		return To(keep).WithLimit(maxTestLog), t.None(answers)
	},
})
