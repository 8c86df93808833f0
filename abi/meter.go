package abi

import "context"

// Meter is charged for bytes. It is safe for concurrent use.
type Meter interface {
	// Charge takes bytes from a budget, all or none: the error is abi.ErrExhausted when fewer are left, or says why the
	// budget is over.
	Charge(bytes int64) error
}

type meterKey struct{}

// WithMeter returns a context whose operations m is charged for. The host makes it of a grant that was bound.
func WithMeter(ctx context.Context, m Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf returns the meter of ctx, nil when it has none.
func MeterOf(ctx context.Context) Meter {
	m, _ := ctx.Value(meterKey{}).(Meter)
	return m
}

// Charge charges bytes to what ctx is metered by, if it is. A capability calls it for content that it moves, before it does
// where the size is known then, with the context that its method or Open was given, or one made of it; an error it returns
// as it is. Each byte is charged once, where it comes in or goes out: to read again what a handle holds costs nothing.
func Charge(ctx context.Context, bytes int) error {
	if m := MeterOf(ctx); m != nil && bytes > 0 {
		return m.Charge(int64(bytes))
	}
	return nil
}
