package host

import (
	"fmt"
	"time"
)

// Limits bound one call. A zero field means its default. A call that another one starts has at most the limits of that: its
// processor time counts there too, and the wall clock is the same.
type Limits struct {
	// Memory is the most bytes each linear memory may have. Default 64 MiB; Options.MaxMemory caps it.
	Memory int64
	// CPU is the processor time of the guest's thread: of the guest, and of what capabilities do on that thread while it
	// calls them. The context of an operation ends when it is used up meanwhile. The checks of input and output around the
	// call count for the call that started it, if one did. What a capability does on threads of its own is not counted. Default 5 s.
	CPU time.Duration
	// Wall is the whole duration of the call, waiting for its turn and for other calls to end included. What a component
	// says of its tools, if it was not asked before, is a part of its first call. Default 60 s.
	Wall time.Duration
	// Input and Output are bytes of JSON. Default 1 MiB each. What a guest returns takes three times its bytes while it is converted,
	// and at most 52 MiB: no Output above 17 MiB is reached.
	Input, Output int
	// Handles is how many handles may be open at once. Default 1,000.
	Handles int
	// Pending is how many operations may be waited for at once; and of the tools that a call starts and that these start, how
	// many may be at work at once. Default 64.
	Pending int
	// Nesting is how deep a call may start calls of other tools that start others. Default 8.
	Nesting int
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// defaults is the one place where the default of every limit stands.
var defaults = Limits{
	Memory: 64 * mib, CPU: 5 * time.Second, Wall: time.Minute, Input: mib, Output: mib, Handles: 1000, Pending: 64, Nesting: 8,
}

// or fills the zero fields of l from base.
func (l Limits) or(base Limits) Limits {
	fill(&l.Memory, base.Memory)
	fill(&l.CPU, base.CPU)
	fill(&l.Wall, base.Wall)
	fill(&l.Input, base.Input)
	fill(&l.Output, base.Output)
	fill(&l.Handles, base.Handles)
	fill(&l.Pending, base.Pending)
	fill(&l.Nesting, base.Nesting)
	return l
}

func fill[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// size formats bytes for a person.
func size(n int64) string {
	switch {
	case n >= mib && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
