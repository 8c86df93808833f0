package abi

import "context"

// Meter counts bytes against a budget. It is safe for concurrent use.
type Meter interface {
	// Charge takes all bytes from the budget or none. The error is abi.ErrExhausted if fewer are left, or says why the budget
	// ended.
	Charge(bytes int64) error
}

type meterKey struct{}

// WithMeter returns a context whose operations are charged to m. The host uses it for a bound grant.
func WithMeter(ctx context.Context, m Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf returns the meter of ctx, or nil.
func MeterOf(ctx context.Context) Meter {
	m, _ := ctx.Value(meterKey{}).(Meter)
	return m
}

// Charge charges bytes to the meter of ctx, if there is one. A capability calls it for the
// content that it moves, and before it moves the content if it knows the size. It passes the
// context of its method or Open, or a derived one, and returns an error unchanged. Each byte is
// charged once, where it enters or leaves: reading a handle's content again costs nothing.
func Charge(ctx context.Context, bytes int) error {
	if m := MeterOf(ctx); m != nil && bytes > 0 {
		return m.Charge(int64(bytes))
	}
	return nil
}
