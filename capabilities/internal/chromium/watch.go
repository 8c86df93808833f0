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

// watchEvery is how often the memory of the browser is looked at.
const watchEvery = 200 * time.Millisecond

// watch kills the processes of pages that take too much memory. Their pages crash, and those of other processes continue.
func (b *Browser) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-tick.C:
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
