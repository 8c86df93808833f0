package chromium

import (
	"os"
	"time"
)

// pageProcess is a process that runs pages.
type pageProcess struct {
	pid   int
	bytes int64
}

const (
	// watchEvery is how often memory and processor time of the browser are looked at.
	watchEvery = 200 * time.Millisecond
	// busyTime is the processor time that a browser may take within busyWithin at the priority of this process. A page has as many
	// threads as it likes, so one that computes more gets a processor only when nothing else wants it.
	busyTime   = 5 * time.Second
	busyWithin = 10 * time.Second
)

// watch kills the processes of pages that take too much memory. Their pages crash, and those of other processes continue. It lowers the
// priority of a browser that computes.
func (b *Browser) watch() {
	var told time.Duration
	var used usage
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-tick.C:
		}
		if used.look(processorOf(b.process.Pid)) {
			lowPriority(b.process.Pid, used.busy)
		}
		b.mu.Lock()
		tell := b.worked
		b.mu.Unlock()
		if tell != nil && used.took > told {
			tell(used.took - told)
			told = used.took
		}
		total, pages := memoryOf(b.process.Pid)
		var largest pageProcess
		for _, p := range pages {
			if p.bytes > b.options.Memory {
				b.killPage(p.pid)
				total -= p.bytes
				continue
			}
			if p.bytes > largest.bytes {
				largest = p
			}
		}
		switch {
		case total <= b.options.Total:
		case largest.pid != 0:
			b.killPage(largest.pid)
		default: // what serves the pages has grown
			b.cell.kill(b.process)
		}
	}
}

func (b *Browser) killPage(pid int) {
	b.mu.Lock()
	tell := b.crashed
	b.mu.Unlock()
	if tell != nil {
		tell(pid)
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// usage is the processor time of a browser.
type usage struct {
	took time.Duration
	busy bool // it computes too much to keep its priority
	past [busyWithin / watchEvery]time.Duration
	at   int
}

// look takes note of the processor time until now, every watchEvery. It reports whether busy has changed.
func (u *usage) look(took time.Duration) bool {
	u.took = max(u.took, took) // what ends may be missing for a moment
	before := u.busy
	u.busy = u.took-u.past[u.at] > busyTime
	u.past[u.at] = u.took
	u.at = (u.at + 1) % len(u.past)
	return u.busy != before
}
