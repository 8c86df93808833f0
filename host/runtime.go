package host

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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

// CollectLater has Go's collector wait until the heap has 32 MiB the first time, because short commands end before, and later 16 MiB or twice
// what is in use. It lasts until the process ends. A program should call it once, at its start, unless its user has set GOGC.
//
// Go's own floor is 4 MiB, which is for a host with 2 MiB in use 500 calls, or three over MCP.
func CollectLater() {
	debug.SetGCPercent(firstPercent)
	runtime.AddCleanup(new([16]byte), collectAgain, firstPercent)
}

const firstPercent = 800

// collectAgain follows each collection. percent is the one in force.
func collectAgain(percent int) {
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(inUse)
	next := gcPercent(inUse[0].Value.Uint64())
	if next != percent {
		debug.SetGCPercent(next)
	}
	runtime.AddCleanup(new([16]byte), collectAgain, next)
}

// gcPercent is what GOGC should be while so many bytes are in use. The smallest heap that is collected has as many hundredths of 4 MiB.
func gcPercent(inUse uint64) int {
	const floor, unit = 16 << 20, 4 << 20
	return int(min(max(200, 100*floor/max(inUse, 1))-100, 100*floor/unit))
}
