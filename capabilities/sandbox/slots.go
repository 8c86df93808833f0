package sandbox

import (
	"log/slog"
	"sync"

	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/turns"
)

// places are the folders in which this process runs sandboxes.
type places struct {
	mu    sync.Mutex
	slots map[string]*turns.Kept
	swept map[string]*sync.Once
}

func newSlots() *places {
	return &places{slots: map[string]*turns.Kept{}, swept: map[string]*sync.Once{}}
}

// of returns as many places as sandboxes may run at once. The first number for a folder counts.
func (p *places) of(dir string, most int) *turns.Kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots[dir] == nil {
		p.slots[dir] = turns.NewKept(most)
	}
	return p.slots[dir]
}

// sweep removes, once, what processes that died have left in a folder.
func (p *places) sweep(dir string, log *slog.Logger) {
	p.mu.Lock()
	once := p.swept[dir]
	if once == nil {
		once = new(sync.Once)
		p.swept[dir] = once
	}
	p.mu.Unlock()
	once.Do(func() {
		if err := box.Sweep(dir); err != nil {
			log.Warn("remove what sandboxes left behind", "error", err)
		}
	})
}
