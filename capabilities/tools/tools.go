// Package tools lets a guest call other tools: it implements the interface stile:capability/tools in Go. A [Toolbox] finds tools by
// name and runs them concurrently with the guest; a [Call] is a running tool. The creator of the toolbox decides what a tool is and
// what it may do: host.Callee is a tool of a component.
package tools

import (
	"cmp"
	"context"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/calls"
	"github.com/stilehost/stile/internal/printable"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/tools.wit.
const Interface = "stile:capability/tools@0.1.0"

// Func starts a tool, on a goroutine of its own. At the tool's end, it calls done once, on any goroutine, or panics instead. It should
// return while the tool waits, so that nothing but memory waits with it. ctx ends with the call that started it; the tool must then end
// soon. name is the name that the guest used for the tool. input is text that should be JSON. env holds
// the bindings that the guest passes on to the tool. The output is JSON. The guest sees the
// text of an *[abi.Error], and no text of other errors.
type Func func(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func(output []byte, err error))

// Description is the record `description`: the information about a tool for guests.
type Description struct {
	// Name is the name to call the tool by, "<extension>_<tool>".
	Name        string
	Description string
	// InputSchema is JSON.
	InputSchema string
}

// Options configures a [Toolbox].
type Options struct {
	// Resolve finds the tool of a name. It fails with abi.ErrNotFound, or with an *abi.Error that says why the tool cannot be
	// called. It must be safe for concurrent use and quick.
	Resolve func(name string) (Func, error)
	// Finder finds the tools for search and describe. Default: there are none to find.
	Finder Finder
	// Held is how many bytes the host holds for one call at a time: inputs and results of the tools that it started, directly or
	// through others. Results are in memory as blobs are, or else in a temporary file. Inputs are in memory, at most 48 MiB for all
	// calls of the process. Default 16 MiB.
	Held int64
	// Durable starts the tools that durable calls start. Default: those end with the process, as those of other calls do.
	Durable Durable
}

// Toolbox is the right to call some tools. It is an abi.Opener, so each call has the whole of Held to itself, shared by its bindings
// and by the calls it starts. It is immutable, safe
// for concurrent use, and needs no closing. The calls made with it need closing.
type Toolbox struct {
	options Options
	room    *calls.Room
}

// New returns a toolbox.
func New(o Options) (*Toolbox, error) {
	if o.Resolve == nil {
		return nil, errors.New("tools: Options.Resolve is required")
	}
	if o.Finder == nil {
		o.Finder = nothing{}
	}
	o.Held = cmp.Or(o.Held, calls.DefaultHeld)
	return &Toolbox{options: o, room: calls.Apart(o.Held)}, nil
}

// With returns a toolbox that has the tools of another one too. If both have a name, t's tool is called and found.
func (t *Toolbox) With(more *Toolbox) *Toolbox {
	whole := *t
	whole.options.Resolve = func(name string) (Func, error) {
		run, err := t.options.Resolve(name)
		if errors.Is(err, abi.ErrNotFound) {
			return more.options.Resolve(name)
		}
		return run, err
	}
	whole.options.Finder = both{t.options.Finder, more.options.Finder}
	return &whole
}

// Interface implements abi.Capability.
func (t *Toolbox) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Toolbox) Quick() []string { return []string{"get", "toolbox.start"} }

// Lists implements [abi.Bounded].
func (*Toolbox) Lists() map[string]int {
	return map[string]int{"toolbox.search.result": maxFound, "toolbox.describe.names": maxDescribed}
}

// Open implements abi.Opener: it returns a *Toolbox with the same options, or for a durable call one that starts tools with Options.Durable.
func (t *Toolbox) Open(ctx context.Context) (any, error) {
	opened := &Toolbox{options: t.options, room: calls.NewRoom(ctx, t.options.Held)}
	if t.options.Durable != nil && abi.MailboxesOf(ctx) != nil {
		return &durably{Toolbox: opened, can: map[string]bool{}}, nil
	}
	return opened, nil
}

const (
	// maxFound is how many tools one search finds at most.
	maxFound = 100
	// maxDescribed is how many names one description has at most. Only the first [MaxNames] are described.
	maxDescribed = 100
	// maxQuery is the longest query in bytes. A longer one would keep the host busy for a guest.
	maxQuery = 1 << 10
)

// Search returns at most limit tools, and at most 100, that fit the words of query, the best first. An empty query matches all tools, and
// one of more than 1 KiB none.
func (t *Toolbox) Search(_ context.Context, query string, limit uint32) []Description {
	if len(query) > maxQuery {
		return nil
	}
	found := t.options.Finder.Search(query, min(maxFound, int(limit)))
	return found[:min(len(found), maxFound, int(limit))]
}

// Describe describes tools in TypeScript, as [Signatures] does.
func (t *Toolbox) Describe(_ context.Context, names []string) string {
	for i := range names {
		names[i] = printable.Cut(names[i], maxQuery)
	}
	return Signatures(t.options.Finder, names)
}

// Start starts a tool, passes env on to it, and returns at once. It fails with abi.ErrNotFound if there is no such tool, and with
// abi.ErrExhausted if the host holds too much for the call. [Call.Take] reports any other error. The tool ends with the call of the
// guest that started it.
func (t *Toolbox) Start(ctx context.Context, tool, input string, env abi.Env) (*Call, error) {
	run, err := t.options.Resolve(tool)
	if err != nil {
		return nil, err
	}
	text := []byte(input)
	return t.room.Start(ctx, len(input), env, func(ctx context.Context, env map[string]abi.Capability, done func([]byte, error)) {
		run(ctx, tool, text, env, done)
	})
}

// Call is a running tool: the resource `pending`. It is safe for concurrent use. Its holder closes it. [Call.Take] waits for the result
// and returns it as JSON, or the error of the tool. Closing ends the tool if it still runs.
type Call = calls.Call
