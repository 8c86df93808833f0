package abi

import (
	"context"
	"sync"
	"time"
)

// Operations is the context of a call's operations: [WithRoom], [WithWork] and [WithCall] in one. The host makes one for each call. Do not copy
// it, or change its fields once it is in use.
type Operations struct {
	context.Context
	Room func(bytes int64) error
	Work func(time.Duration) error
	// Outermost is set if no other call started the call, so that [OfCall] has values of its own.
	Outermost bool

	shared sync.Map
}

// Value implements context.Context.
func (o *Operations) Value(key any) any {
	switch key.(type) {
	case roomKey:
		return o.Room
	case workKey:
		return o.Work
	case callKey:
		if o.Outermost {
			return &o.shared
		}
	}
	return o.Context.Value(key)
}
