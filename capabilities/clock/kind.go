package clock

import (
	"encoding/json"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is the clock of this machine.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{
		Name: "clock", Interface: Interface, Example: "true", Harmless: true,
		Globals: []string{"Date", "performance", "setTimeout", "setInterval"},
	},
	Unasked:   true,
	Says:      "may read the time, and wait",
	New:       func(*capability.Site) abi.Capability { return System() },
	NewDouble: newDouble,
})

// Virtual is the clock of a test, whose time passes only while it is waited for.
type Virtual struct{ *double.Clock }

// Interface implements [abi.Capability].
func (Virtual) Interface() string { return Interface }

// newDouble sets the clock to what the test says, an instant as RFC 3339 has it.
func newDouble(t *double.Test, answer json.RawMessage) (abi.Capability, error) {
	if answer != nil {
		var instant time.Time
		if err := json.Unmarshal(answer, &instant); err != nil || instant.Unix() < 0 {
			return nil, t.Wrong(": this is not the time at which the test begins", `"2026-01-01T00:00:00Z"`)
		}
		t.Clock.Start = instant
	}
	return Virtual{t.Clock}, nil
}
