package abi

import (
	"context"
	"sync"
)

type callKey struct{}

// WithCall returns the context of a new call, for [OfCall]. The host uses it.
func WithCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, new(sync.Map))
}

// OfCall returns what all bindings of the call of ctx share under a key, such as a budget. Whoever asks first makes it, and two who ask
// at once may both, of which one is kept. Without a call, it is made each time. It is for [Opener.Open]; it is safe for concurrent use.
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
