package ladder

import (
	"fmt"
	"strings"
)

// PackagesError reports code that imports packages on a ladder that has none.
type PackagesError struct{ Names []string }

// Error implements error.
func (e *PackagesError) Error() string {
	return fmt.Sprintf("there are no npm packages here: %s", strings.Join(e.Names, ", "))
}

// RungError reports a tool above the highest rung of a ladder.
type RungError struct {
	Tool        string
	Needs, Open Rung
}

// Error implements error.
func (e *RungError) Error() string {
	return fmt.Sprintf("%s needs the rung %s (%d), and this ladder goes up to %s (%d)", e.Tool, e.Needs, e.Needs, e.Open, e.Open)
}

// UnknownToolError reports a tool that no rung has.
type UnknownToolError struct{ Tool string }

// Error implements error.
func (e *UnknownToolError) Error() string { return fmt.Sprintf("no rung has a tool %q", e.Tool) }

// UnboundError reports a tool whose capability the ladder was opened without.
type UnboundError struct{ Tool, Binding string }

// Error implements error.
func (e *UnboundError) Error() string {
	return fmt.Sprintf("%s needs a binding %q, which this ladder does not have", e.Tool, e.Binding)
}
