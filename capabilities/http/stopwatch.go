package http

import (
	"runtime"
	"time"
)

// stopwatch measures processor time. Its goroutine has a thread to itself while it runs, so it must not run during a wait.
type stopwatch struct {
	runs  bool
	since time.Duration
	took  time.Duration
}

func (s *stopwatch) start() {
	runtime.LockOSThread()
	s.runs, s.since = true, threadTime()
}

func (s *stopwatch) stop() {
	s.took += threadTime() - s.since
	s.runs = false
	runtime.UnlockOSThread()
}
