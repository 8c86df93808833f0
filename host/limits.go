package host

import (
	"time"
)

// Limits bound one call. A zero field means its default. A call that another call starts has at most the caller's limits:
// its processor time also counts there, and the wall clock is shared.
type Limits struct {
	// Memory bounds the bytes of each linear memory. Default 64 MiB; Options.MaxMemory caps it. The bytes of a component beyond 32 MiB
	// are added, so that an image with a large table leaves room to work.
	Memory int64
	// CPU is processor time on the guest's thread, of the guest and of the capabilities it calls, and to drop its instance. If it
	// runs out during an operation, the operation's context ends. When it is gone, no guest of the call or of one that it started
	// runs again. Checking input and output against schemas counts too, by an estimate, and a check that would take longer than what
	// is left is not made. So does work that a capability does on other threads and charges with [abi.Work], such as decompression.
	// Default 5 s.
	CPU time.Duration
	// Wall is the whole duration of the call, including waiting for its turn and for other calls to end. A component's first
	// call includes describing its tools, unless it was asked before. Default 60 s.
	Wall time.Duration
	// Input and Output are bytes of JSON. Default 1 MiB each. Converting a result takes three times its bytes, and at most
	// 52 MiB, so an Output above 17 MiB has no effect.
	Input, Output int
	// Handles is how many handles may be open at once. Default 1,000.
	Handles int
	// Pending is how many operations a call may wait for at once. It is also how many tools may run at once for a call, directly or
	// through other tools. Default 64.
	Pending int
	// Nesting is how deep tools may call tools. Default 8, at most 64.
	Nesting int
}

// maxCounted is how many bytes of a component count towards Limits.Memory.
const maxCounted = 32 * mib

// The most that a call can have, whatever its limits say.
const (
	MaxMemory  = 4 * gib // bytes of a linear memory, which is what its addresses reach
	MaxNesting = 64
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// defaults is the only place with the defaults of the limits.
var defaults = Limits{
	Memory: 64 * mib, CPU: 5 * time.Second, Wall: time.Minute, Input: mib, Output: mib, Handles: 1000, Pending: 64, Nesting: 8,
}

// DefaultLimits returns the limits that the zero fields of a Limits stand for.
func DefaultLimits() Limits { return defaults }

// or returns l with its zero fields set from base.
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

// within returns l with each field at most that of most. A zero field becomes that of most.
func (l Limits) within(most Limits) Limits {
	l = l.or(most)
	return Limits{
		Memory: min(l.Memory, most.Memory), CPU: min(l.CPU, most.CPU), Wall: min(l.Wall, most.Wall), Input: min(l.Input, most.Input),
		Output: min(l.Output, most.Output), Handles: min(l.Handles, most.Handles), Pending: min(l.Pending, most.Pending), Nesting: min(l.Nesting, most.Nesting),
	}
}

func fill[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
