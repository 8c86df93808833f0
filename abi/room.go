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

// WithinRoom calls do with how many bytes its answer may have. If do returns that it wants more, it must have kept nothing, and is
// called again when the host has room for that many. do must not hold anything that other calls wait for when it returns.
func WithinRoom(ctx context.Context, do func(room int64) (wants int64, err error)) error {
	const always = 16 << 10
	for room := int64(always); ; {
		wants, err := do(room)
		if err != nil || wants <= room {
			return err
		}
		if err := Room(ctx, wants); err != nil {
			return err
		}
		room = wants
	}
}
