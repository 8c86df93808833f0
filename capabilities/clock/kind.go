package clock

import (
	"encoding/json"
	"errors"
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
		Learn:   func(r *double.Recording, _ string) double.Answerer { return &recorded{of: r} },
	},
	Unasked:   true,
	Says:      "may read the time, and wait",
	New:       func(*capability.Site) abi.Capability { return System() },
	NewDouble: newDouble,
})

// Virtual is the clock of a test. Its time passes only while the tool waits.
type Virtual struct{ *double.Clock }

// Interface implements [abi.Capability].
func (Virtual) Interface() string { return Interface }

// newDouble sets the clock to the test's instant, in the form of RFC 3339.
func newDouble(t *double.Test, answer json.RawMessage) (abi.Capability, error) {
	if answer != nil {
		var instant time.Time
		if err := json.Unmarshal(answer, &instant); err != nil || instant.Unix() < 0 {
			return nil, t.Wrong(": this is not a valid start time for the test", `"2026-01-01T00:00:00Z"`)
		}
		t.Clock.Start = instant
	}
	return Virtual{t.Clock}, nil
}

// recorded is a binding of a recorded call.
type recorded struct {
	of    *double.Recording
	asked bool
}

// maxInstant is the last instant that JSON can represent, in milliseconds.
const maxInstant = 253402300799999

// Learn implements [double.Learner].
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	if o.Method != "now" {
		return nil, nil
	}
	milliseconds := o.Value.(uint64)
	if milliseconds > maxInstant || r.of.Time != nil && milliseconds != uint64(r.of.Time.UnixMilli()) {
		return nil, errors.New("the call saw time pass, but in a test time passes only while the tool waits")
	}
	r.asked, r.of.Time = true, new(time.UnixMilli(int64(milliseconds)).UTC())
	return nil, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	if !r.asked {
		return nil, nil
	}
	return *r.of.Time, nil
}
