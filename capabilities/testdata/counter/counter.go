// Package counter is a kind of capability for a test, which adds it to a copy of this module.
package counter

import (
	"context"
	"sync"

	"github.com/stilehost/stile/abi"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/counter.wit.
const Interface = "stile:capability/counter@0.1.0"

// Counter is the right to count.
type Counter struct{}

// Interface implements [abi.Capability].
func (Counter) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (Counter) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener].
func (Counter) Open(context.Context) (any, error) { return &Count{}, nil }

// Count is the counter of one call.
type Count struct {
	mu   sync.Mutex
	seen []uint64
	now  uint64
}

const most = 100 // numbers

// Quick implements [abi.Quick].
func (*Count) Quick() []string { return []string{"counter.next", "counter.seen"} }

// Lists implements [abi.Bounded].
func (*Count) Lists() map[string]int { return map[string]int{"counter.seen.result": most} }

// Next is `next`.
func (c *Count) Next(_ context.Context, step uint32) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) == most {
		return 0, abi.Errorf(abi.CodeExhausted, "a counter gives %d numbers", most)
	}
	c.now += uint64(step)
	c.seen = append(c.seen, c.now)
	return c.now, nil
}

// Seen is `seen`.
func (c *Count) Seen(context.Context) []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]uint64{}, c.seen...)
}
