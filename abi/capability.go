package abi

import "context"

// The interfaces that a host implements itself.
const (
	EnvInterface  = "stile:capability/env@0.1.0"
	PollInterface = "stile:capability/poll@0.1.0"
)

// Capability is a Go value that can be bound to a name in a call's env. Its methods implement, in Go, the methods of the
// resource that the interface's `get` returns; [Implement] says how WIT names and types map to Go.
//
// One value may serve several calls at once, so its methods must be safe for concurrent use. If it also implements
// [Opener], each call works with a value of its own instead. If the value a call works with implements io.Closer, it is
// closed when the guest drops its last handle or the call ends, whichever is first; a shared value must not be an io.Closer.
type Capability interface {
	// Interface names the WIT interface, e.g. "stile:capability/http@0.1.0".
	Interface() string
}

// Opener is a [Capability] that makes a value for each call that uses it. ctx ends with the call.
type Opener interface {
	Capability
	// Open returns the value whose methods implement the resource for one call. They must be safe for concurrent use too: a
	// call can pass its handle to a tool that it starts. An error that [Deny] made is the guest's; any other ends the call.
	Open(ctx context.Context) (any, error)
}

// Env is the Go value behind a handle of stile:capability/env, as a method gets it that takes one.
type Env interface {
	// Capabilities are its bindings, to bind them again in a call that is made for its holder. They keep the grants that they
	// are bound through, and live as long as the call that the env is of.
	Capabilities() map[string]Capability
}

// Pollable is a Go value for the resource `pollable` of stile:capability/poll: a channel that is closed when it is ready.
type Pollable <-chan struct{}

// Ready is a [Pollable] that is ready from the start.
func Ready() Pollable {
	c := make(chan struct{})
	close(c)
	return c
}
