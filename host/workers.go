package host

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers are goroutines that pack calls, and that run the parts of calls that were started. To compress takes 64 KiB of stack, which a
// goroutine keeps for long, so the one that waits for the call must be another.
type workers struct {
	jobs chan func()
	idle atomic.Int32
	all  sync.WaitGroup
	end  <-chan struct{}
}

func newWorkers(end <-chan struct{}) *workers { return &workers{jobs: make(chan func()), end: end} }

// run runs f on a worker and waits for it. A panic of f continues here.
func (w *workers) run(f func()) {
	ended := make(chan struct{})
	var panicked any
	w.start(func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		f()
	})
	<-ended
	if panicked != nil {
		panic(panicked)
	}
}

// start has a worker run a job.
func (w *workers) start(job func()) {
	select {
	case w.jobs <- job:
	default:
		w.all.Go(func() { w.work(job) })
	}
}

// work runs a job, then others, as long as there are not enough idle workers.
func (w *workers) work(job func()) {
	for {
		job()
		if w.idle.Add(1) > int32(2*runtime.GOMAXPROCS(0)) {
			w.idle.Add(-1)
			return
		}
		select {
		case job = <-w.jobs:
			w.idle.Add(-1)
		case <-w.end:
			return
		}
	}
}
