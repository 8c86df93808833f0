package abi

import "context"

// What the names of the contract's interfaces begin and end with.
const (
	CapabilityPackage = "stile:capability/"
	ExtensionPackage  = "stile:extension/"
	ContractVersion   = "@0.1.0"
)

// The interfaces that a host implements itself.
const (
	EnvInterface         = CapabilityPackage + "env" + ContractVersion
	PollInterface        = CapabilityPackage + "poll" + ContractVersion
	CompressionInterface = CapabilityPackage + "compression" + ContractVersion
)

// Capability is a Go value that can be bound to a name in a call's env. Its methods implement, in Go, the methods of the
// resource that the interface's `get` returns; [Implement] says how WIT names and types map to Go.
//
// One value may serve several calls at once, so its methods must be safe for concurrent use. If it also implements [Opener],
// each call works with a value of its own instead. If the value a call works with implements io.Closer, the host closes it
// when the guest drops its last handle or the call ends, whichever is first. A shared value must not be an io.Closer.
type Capability interface {
	// Interface names the WIT interface, e.g. "stile:capability/http@0.1.0".
	Interface() string
}

// Opener is a [Capability] that makes a value for each call that uses it. ctx ends with the call.
type Opener interface {
	Capability
	// Open returns the value whose methods implement the resource for one call. They must also be safe for concurrent use,
	// because a call can pass its handle to a tool that it starts. The guest gets an error made by [Deny]; any other error
	// ends the call.
	Open(ctx context.Context) (any, error)
}

// Quick is a Go value with functions that never wait for the network, for another call, or for a lock whose
// holder may wait. The guest keeps its turn on a processor during them. During all others, it gives up its turn,
// which costs them about a microsecond and lets other guests run.
type Quick interface {
	// Quick lists these functions by their WIT names: "bucket.get" for a method, and "get" for an [Opener] whose Open does not
	// wait. Each resource's Go type names its own functions, and all values of a Go type name the same ones.
	Quick() []string
}

// Bounded is a Go value that says how long the lists in its functions may be. If a guest passes a longer list, the host does not call
// the function. The guest gets the error `invalid` if the function's result has that case; otherwise the call ends. The memory of
// every list is bounded anyway.
type Bounded interface {
	// Lists maps each list's place in WIT to its maximum number of elements. A
	// place is the function, the parameter or "result", and the fields and cases
	// on the way, e.g. "directory.grep.search.include". All values of a Go type have the same ones.
	Lists() map[string]int
}

// Sized is a Go value behind a handle that takes more than some hundred bytes because of what a guest passed, and that nothing else
// counts.
type Sized interface {
	// Size returns how many bytes the value takes. It is always the same.
	Size() int
}

// Fixed is a [Capability], or a value that one opened, that stays with the call it is bound for. A guest cannot pass it on to a call that
// it starts.
type Fixed interface {
	// Fixed says why, in words that follow "because": "it runs code with the bindings of this call".
	Fixed() string
}

// Env is the Go value behind a handle of stile:capability/env, for methods that take one.
type Env interface {
	// Capabilities are the env's bindings. The holder can bind them again for a call that it starts. They keep their grants, and
	// live as long as the env's call. Those that are [Fixed] are left out.
	Capabilities() map[string]Capability
	// Origin is the name, in the env that the call began with, of the binding that a binding of this env is or was derived from, under
	// whatever name it is here. It is empty if there is no binding of that name.
	Origin(name string) string
}
