package mcp

// depth is how much stack a call of the ladder takes: through the SDK, the host, the engine and a query of a store.
const depth = 24 << 10

// deepen makes the stack of this goroutine large enough for a call in one step. Otherwise it doubles several times on the way down, and each time
// Go moves what is there, which takes a twentieth of the time of a short call. After a while Go takes back what a waiting call does not use.
//
//go:noinline
func deepen(use bool) byte {
	if !use {
		return 0 // the stack has grown, because the frame has room for the array
	}
	var room [depth]byte
	return keep(&room)
}

//go:noinline
func keep(room *[depth]byte) byte {
	for i := range room {
		room[i] = byte(i)
	}
	return room[len(room)/3]
}
