package abi

import (
	"context"
	"time"
)

type workKey struct{}

// WithWork returns a context whose operations charge processor time to a call through charge, which is safe for concurrent use and
// fails when nothing is left. The host uses it.
func WithWork(ctx context.Context, charge func(time.Duration) error) context.Context {
	return context.WithValue(ctx, workKey{}, charge)
}

// Work charges processor time to the call of ctx, if it belongs to one. A capability calls it for work that it does on a thread
// other than the one that runs its operation. It charges in small parts during the work, and stops the work if Work returns an
// error.
func Work(ctx context.Context, took time.Duration) error {
	if charge, _ := ctx.Value(workKey{}).(func(time.Duration) error); charge != nil && took > 0 {
		return charge(took)
	}
	return nil
}
