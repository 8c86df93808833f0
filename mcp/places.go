package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/turns"
)

// maxReading is how many calls of a server may read stored versions at once, and maxTesting how many may test one. A version of 8 MiB
// takes some 50 MiB while it becomes an answer. A list reads all versions, one after the other, on one of the store's four connections.
const (
	maxReading = 2
	maxTesting = 2
)

// places are what the agents of a server share: turns to read and to test, and room for outputs. Tests have turns of their own, because they
// can take a minute.
type places struct {
	reading, testing *turns.Places
	kept             *cabinet[output]
}

func newPlaces() places {
	return places{turns.New(maxReading), turns.New(maxTesting), newCabinet[output](maxAllKept)}
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
