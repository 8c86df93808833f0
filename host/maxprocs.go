package host

import (
	"runtime"
	"sync"
)

// RaiseMaxProcs gives Go's scheduler one processor more than it has, once for a process. A program that runs many calls at once should call it
// after [New], which makes its defaults from the number of processors, unless its user has set GOMAXPROCS.
//
// A guest runs in C, where Go's monitor takes the processor away from its thread after 20 us if no other is idle, and gives it to a thread that
// looks for work and finds none. With one to spare it does not look: two threads then make a fifth more calls (RATIONALE.md).
func RaiseMaxProcs() { raiseMaxProcs() }

var raiseMaxProcs = sync.OnceFunc(func() {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
})
