package abi

import (
	"context"
	"sync"
)

type callKey struct{}

// WithCall returns the context of a new call, for [OfCall]. The host uses it for each call that no other call started.
func WithCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, new(sync.Map))
}

// OfCall returns the value that all bindings of the call of ctx share under a key, such as
// a budget. The bindings of the calls that it starts, directly or through others, share it
// too; otherwise a call could have any number of budgets. The first caller makes it. If
// two callers are first at once, both may make one, and one of the two is kept. Outside a call, each use makes a new one. OfCall is
// meant for [Opener.Open] and safe for concurrent use.
func OfCall[T any](ctx context.Context, key any, make func() T) T {
	call, _ := ctx.Value(callKey{}).(*sync.Map)
	if call == nil {
		return make()
	}
	v, ok := call.Load(key)
	if !ok {
		v, _ = call.LoadOrStore(key, make())
	}
	return v.(T)
}
