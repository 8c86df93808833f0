package host

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Tune sets Go's runtime up for many calls at once, once for a process. A program that makes them should call it after [New], which makes its
// defaults from the number of processors, unless its user has set GOMAXPROCS.
//
//   - The scheduler gets one processor more than it has. A guest runs in C, where Go's monitor takes the processor away from its thread after
//     20 us if no other is idle, and gives it to a thread that looks for work and finds none. With one to spare it does not look.
//   - Garbage is collected after 32 MiB at the earliest, unless GOGC is set. A host's own heap is small, so that the collector would run after
//     each 500 calls.
func Tune() { tune() }

var tune = sync.OnceFunc(func() {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	if set := debug.SetGCPercent(leastPercent); set == leastPercent {
		makeRoom()
	} else {
		debug.SetGCPercent(set)
	}
})

const (
	// heapRoom is how much is allocated between two collections at least.
	heapRoom = 32 * mib
	// leastPercent is Go's default. With mostPercent, a heap may have 32 MiB, however little of it is in use.
	leastPercent, mostPercent = 100, 800
)

// makeRoom sets how much of the heap may be garbage, now and after each collection.
func makeRoom() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(percentFor(live[0].Value.Uint64()))
	collected := new(struct{ _ *byte })
	runtime.AddCleanup(collected, func(struct{}) { makeRoom() }, struct{}{})
}

// percentFor returns the percentage of a heap that has these bytes in use.
func percentFor(live uint64) int {
	return int(min(max(heapRoom*100/max(live, 1), leastPercent), mostPercent))
}
