package host

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
)

// ErrClosed is the error of a call whose host is closed.
var ErrClosed = errors.New("host is closed")

// DeniedError reports a call that a denial ended. The denial comes from the host's own record, never from the guest.
type DeniedError struct{ Denial abi.Denial }

func (e *DeniedError) Error() string {
	text := e.Denial.Text()
	if e.Denial.Remedy != "" {
		text += toAllow + e.Denial.Remedy
	}
	return text
}

// What the host adds to the words of a tool and of a denial. [Outcome.Words] removes it.
const (
	toolFailed = "tool failed: "
	toAllow    = "; to allow it: "
)

// Is makes errors.Is(err, abi.ErrDenied) hold.
func (e *DeniedError) Is(target error) bool { return target == error(abi.ErrDenied) }

// LimitError reports a call that exceeded a limit.
type LimitError struct {
	// Limit names it: memory, cpu, wall, stack, input, output, handles, pending, nesting, bytes, list, promise, engine; disk is a limit of durable runs.
	Limit string
	// Value is the limit's value as text for people. It is empty if unknown.
	Value string
	// Detail says more. If Claimed is set, it is the guest's text, made printable.
	Detail string
	// Stack is where it happened, as in [abi.Failure]: for the limit stack, if the guest says so. It may be empty.
	Stack string
	// Claimed is set if only the guest says so. The runtime inside it also has the limits memory, stack and promise.
	Claimed bool
}

func (e *LimitError) Error() string {
	text := "limit reached: " + e.Limit
	if e.Value != "" {
		text += " (" + e.Value + ")"
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if first, _, _ := strings.Cut(e.Stack, "\n"); first != "" {
		text += " in " + strings.TrimPrefix(strings.TrimSpace(first), "at ")
	}
	return text
}

// exceeded is the error of a limit that the host itself enforces.
func exceeded(limit, value string) *LimitError { return &LimitError{Limit: limit, Value: value} }

// CycleError reports a refused call of a tool that is already running further up the chain. Such tools would call each other in a
// circle.
type CycleError struct {
	// Chain has the names of the tools that called each other. The last one also occurs earlier.
	Chain []string
}

func (e *CycleError) Error() string { return "tools call each other: " + strings.Join(e.Chain, " -> ") }

// GuestError is a failure that the tool reported. Its text is the
// guest's, made printable. Stack names the lines of the author's source.
type GuestError struct{ Failure abi.Failure }

func (e *GuestError) Error() string { return toolFailed + thrown(e.Failure) }

// thrown is a failure in one line.
func thrown(f abi.Failure) string {
	switch {
	case f.Message == "":
		return cmp.Or(f.Name, "Error")
	case f.Name == "" || f.Name == "Error":
		return f.Message
	default:
		return f.Name + ": " + f.Message
	}
}

// CodeError reports that a call's code failed at top level, before its tool was called. As in GuestError, the guest wrote the text.
type CodeError struct {
	Failure abi.Failure
	// Frames are the places of the stack in the author's files, innermost first.
	Frames []Frame
}

func (e *CodeError) Error() string { return "top-level code threw " + thrown(e.Failure) }

// InputError reports an input that does not fit the tool's schema, found by the host or by the tool itself.
type InputError struct{ Problems []abi.Problem }

func (e *InputError) Error() string { return "invalid input: " + schema.List("", e.Problems) }

// UnknownToolError reports a call of a tool that the component does not have.
type UnknownToolError struct {
	Tool  string
	Known []string
}

func (e *UnknownToolError) Error() string {
	return fmt.Sprintf("unknown tool %q; there are: %s", e.Tool, strings.Join(e.Known, ", "))
}

// TrapError reports a guest that did something that WebAssembly or the contract forbids.
type TrapError struct {
	Reason string
	// Functions are the names on the guest's stack, innermost first and at most 64, if the component has names. They come from the
	// component, shortened and made printable.
	Functions []string
	// Output is what the guest wrote to stdout and stderr of WASI at last, at most 16 KiB, printable. Runtimes write there why they
	// give up.
	Output string
}

func (e *TrapError) Error() string { return "guest trapped: " + e.text() }

func (e *TrapError) text() string { return wrote(e.Reason, e.Output) }

// LoadError reports a component that this host refuses.
type LoadError struct {
	// Name is the import or export at fault. It is empty if the whole component is.
	Name   string
	Reason string
	// Cause is a *CompileCostError or *CompilerError if compiling the component takes too much.
	Cause error
}

// LacksModule reports whether the component imports a core module, named as by [ModuleName], that the host does not have.
func (e *LoadError) LacksModule() bool { return strings.HasPrefix(e.Name, modulePrefix) }

func (e *LoadError) Unwrap() error { return e.Cause }

func (e *LoadError) Error() string {
	if e.Name == "" {
		return "component refused: " + e.Reason
	}
	return fmt.Sprintf("component refused: %s: %s", e.Name, e.Reason)
}

// DefinitionError reports a component whose description of its tools is unusable, or differs from the approved one.
type DefinitionError struct {
	Tool   string
	Reason string
	// More are the problems after the first, at most 19, and Usable are the definitions of the tools without a problem. Both are empty where
	// approved definitions differ.
	More   []*DefinitionError
	Usable []abi.Definition
}

func (e *DefinitionError) Error() string { return fmt.Sprintf("tool %q: %s", e.Tool, e.Reason) }
