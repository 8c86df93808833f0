package mcp

import (
	"context"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/fair"
	"github.com/stilehost/stile/internal/turns"
)

// maxReading is how many calls of a server may read stored versions at once, and maxTesting how many may test one. A version of 16 MiB
// takes some 100 MiB while it becomes an answer. A list reads all versions, one after the other, on one of the store's four connections.
const (
	maxReading = 2
	maxTesting = 2
)

// places are what the agents of a server share: calls under way, turns to read and to test, and room for outputs. Tests have turns of their own, because they
// can take a minute.
type places struct {
	calls            *fair.Budget
	reading, testing *turns.Places
	kept             *cabinet[output]
}

func newPlaces() places {
	return places{fair.NewBudget(maxServerCalls), turns.New(maxReading), turns.New(maxTesting), newCabinet[output](maxAllKept)}
}

// running counts the calls that somebody has under way. A call that waits for the host, or has given its instance back, still takes memory.
type running struct {
	whose string
	most  int

	mu sync.Mutex
	n  int
}

func (r *running) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n >= r.most {
		return &crowdedError{whose: r.whose, most: r.most}
	}
	r.n++
	return nil
}

func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
}

// crowdedError reports a call that was not started, because somebody has most calls under way.
type crowdedError struct {
	whose string
	most  int
	share string // what else bounds them
}

// Error implements error.
func (e *crowdedError) Error() string {
	return fmt.Sprintf("too many calls are under way: %s can have %d at once%s; wait until one of them has ended, then call again", e.whose, e.most, e.share)
}

// inTurn makes a tool wait for a place, which it takes in the name of the agent that calls it.
func inTurn[In any](p *turns.Places, do func(*request, context.Context, In) (*sdk.CallToolResult, error)) func(*request, context.Context, In) (*sdk.CallToolResult, error) {
	return func(r *request, ctx context.Context, in In) (*sdk.CallToolResult, error) {
		ctx = turns.For(ctx, r.viewer.String()) // a test may build a component again
		if err := p.Take(ctx); err != nil {
			return nil, err
		}
		defer p.Give()
		return do(r, ctx, in)
	}
}
