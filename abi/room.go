package abi

import "context"

type roomKey struct{}

// WithRoom returns a context whose operations wait for room through room. The host uses it.
func WithRoom(ctx context.Context, room func(bytes int64) error) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// Room waits until the host has room for a text of this many bytes, which the operation of ctx then makes and returns. Without it,
// the texts of all calls that wait for their conversion would be in memory at once. A capability calls it on the goroutine of its
// operation, without holding anything that other calls wait for.
func Room(ctx context.Context, bytes int64) error {
	if room, _ := ctx.Value(roomKey{}).(func(int64) error); room != nil {
		return room(bytes)
	}
	return nil
}
