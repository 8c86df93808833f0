package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

// TestEndError has the ends of runs be errors of the types that a call would end with.
func TestEndError(t *testing.T) {
	for _, test := range []struct {
		state   durable.State
		outcome host.Outcome
		is      func(error) bool
		text    string
	}{
		{durable.Failed, host.Outcome{Kind: "trap", Message: "unreachable"}, errkind.Is[*host.TrapError], "guest trapped: unreachable"},
		{durable.Failed, host.Outcome{Kind: "limit", Limit: "wall", Value: "1s"}, errkind.Is[*host.LimitError], "limit reached: wall (1s)"},
		{durable.Cancelled, host.Outcome{Kind: "cancelled", Message: "the run was cancelled"}, func(err error) bool { return errors.Is(err, context.Canceled) }, "run r: the run was cancelled"},
	} {
		err := durable.Result{Info: durable.Info{Name: "r", State: test.state}, Outcome: test.outcome}.Err()
		if !errkind.Is[*durable.EndError](err) || !test.is(err) || err.Error() != test.text {
			t.Errorf("got %v", err)
		}
	}
}
