package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// FailureKind says what went wrong, so that a program can choose an answer: an exit code, a status, or a message to a model.
type FailureKind string

// The kinds of failures.
const (
	FailureHost        FailureKind = "host"        // a fault of the host, and every error that fits no other kind
	FailureSource      FailureKind = "source"      // its author can correct it
	FailureComponent   FailureKind = "component"   // a component that the host does not load, or that does not match its manifest
	FailureTool        FailureKind = "tool"        // the tool's own error
	FailureTrap        FailureKind = "trap"        // the code of the tool trapped
	FailureDenied      FailureKind = "denied"      // a capability refused an operation
	FailureLimit       FailureKind = "limit"       // a call or top-level code reached a limit
	FailureBudget      FailureKind = "budget"      // too many builds or extensions, or too much on disk
	FailureInput       FailureKind = "input"       // the input of a tool
	FailureUnknown     FailureKind = "unknown"     // there is no such tool, extension or request
	FailureState       FailureKind = "state"       // a request or an extension is in another state than is needed
	FailureRefused     FailureKind = "refused"     // the policy or a digest does not allow the decision
	FailureRevoked     FailureKind = "revoked"     // the extension, or a grant, was revoked
	FailureGrant       FailureKind = "grant"       // a grant ended
	FailureQuarantined FailureKind = "quarantined" // the extension is in quarantine
	FailureResting     FailureKind = "resting"     // a tool that failed too often rests
	FailureTampered    FailureKind = "tampered"    // the audit log was changed
	FailureCancelled   FailureKind = "cancelled"   // the context ended
)

// Failure is an error, sorted.
type Failure struct {
	Kind FailureKind
	// Denial is the host's record if Kind is FailureDenied. Ceiling is set if the manifest asks for the operation and the ceiling
	// of the policy removes it.
	Denial  *abi.Denial
	Ceiling *CeilingError
	// Limit names a limit, and Value what it is set to. Claimed is set if only the guest says that it reached the limit.
	Limit, Value string
	Claimed      bool
	// Tool is what the tool reported if Kind is FailureTool.
	Tool *abi.Failure
	// Unbound is the binding that the tool used and does not have, if that is what it reported. Origin is the scheme, the host and any
	// port that the global fetch was to ask with it, if the tool reported that.
	Unbound, Origin string
	// Stage is the stage that an extension failed, if it got that far. Problems are what is wrong with a source, and Input what is
	// wrong with an input.
	Stage    extension.Stage
	Problems []extension.Problem
	Input    []abi.Problem
	// Known are the tools of a component that lacks the requested one.
	Known []string
}

// Sort returns what kind of failure an error is, with its facts.
func Sort(err error) Failure {
	for _, sort := range []func(error) (Failure, bool){
		sorted(FailureSource, func(f *Failure, e *extension.ProblemsError) { f.Stage, f.Problems = e.Stage, e.Problems }),
		sorted(FailureBudget, func(f *Failure, e *BudgetError) { f.Limit, f.Value = e.Budget, fmt.Sprint(e.Limit) }),
		sorted(FailureBudget, func(f *Failure, e *StorageError) {
			f.Limit, f.Value = "bytes of stored versions", printable.Size(e.Limit)
		}),
		sorted[*DroppedError](FailureUnknown, nil),
		sorted(FailureResting, func(f *Failure, e *BrokenError) { f.Limit, f.Value = "failures", fmt.Sprint(e.Failures) }),
		sorted[*TamperedError](FailureTampered, nil),
		sorted[*RevokedError](FailureRevoked, nil),
		sorted[*PolicyError](FailureRefused, nil),
		sorted[*DigestError](FailureRefused, nil),
		sorted[*StateError](FailureState, nil),
		sorted[*NotFoundError](FailureUnknown, nil),
		sorted[*UnknownToolError](FailureUnknown, nil),
		sorted[*QuarantinedError](FailureQuarantined, nil),
		sorted[*MissingError](FailureState, nil),
		sorted[*DamagedError](FailureHost, nil),
		sorted(FailureDenied, func(f *Failure, e *CeilingError) { f.Denial, f.Ceiling = &e.Denied.Denial, e }),
		sorted(FailureDenied, func(f *Failure, e *host.DeniedError) { f.Denial = &e.Denial }),
		sorted(FailureLimit, func(f *Failure, e *host.LimitError) { f.Limit, f.Value, f.Claimed = e.Limit, e.Value, e.Claimed }),
		sorted(FailureTool, func(f *Failure, e *host.GuestError) {
			f.Tool = &e.Failure
			f.Unbound, f.Origin = toolchain.Unbound(e.Failure)
		}),
		sorted[*host.TrapError](FailureTrap, nil),
		sorted(FailureInput, func(f *Failure, e *host.InputError) { f.Input = e.Problems }),
		sorted(FailureUnknown, func(f *Failure, e *host.UnknownToolError) { f.Known = e.Known }),
		sorted(FailureBudget, func(f *Failure, e *toolchain.BusyError) {
			f.Limit, f.Value = "builds", fmt.Sprintf("%d builds", e.Builds)
		}),
		sorted(FailureSource, func(f *Failure, e *toolchain.BuildError) {
			for _, p := range e.Problems {
				f.Problems = append(f.Problems, extension.Problem{File: p.File, Line: p.Line, Column: p.Column, Text: p.Text, Fix: p.Fix, Snippet: p.Snippet})
			}
		}),
		sorted(FailureSource, func(f *Failure, e *extension.ManifestError) { f.Problems = e.Problems() }),
		sorted(FailureComponent, func(f *Failure, e *extension.ToolsError) {
			f.Problems = []extension.Problem{{File: extension.ManifestFile, Text: e.Error(), Fix: "the same names in both"}}
		}),
		sorted(FailureComponent, func(f *Failure, e *ComponentError) { f.Problems = []extension.Problem{e.problem()} }),
		sorted(FailureComponent, func(f *Failure, e *host.DefinitionError) {
			if len(e.More) > 0 {
				for _, one := range append([]*host.DefinitionError{e}, e.More...) {
					f.Problems = append(f.Problems, extension.Problem{Text: one.Error()})
				}
			}
		}),
		sorted[*host.LoadError](FailureComponent, nil),
	} {
		if f, ok := sort(err); ok {
			return f
		}
	}
	switch {
	case errors.Is(err, abi.ErrRevoked):
		return Failure{Kind: FailureRevoked}
	case errors.As(err, new(*host.GrantError)):
		return Failure{Kind: FailureGrant}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Failure{Kind: FailureCancelled}
	}
	return Failure{Kind: FailureHost}
}

// sorted sorts errors that are, or wrap, an E.
func sorted[E error](kind FailureKind, fill func(*Failure, E)) func(error) (Failure, bool) {
	return func(err error) (Failure, bool) {
		e, ok := errors.AsType[E](err)
		f := Failure{Kind: kind}
		if ok && fill != nil {
			fill(&f, e)
		}
		return f, ok
	}
}

// Mendable returns an *[extension.ProblemsError] of a stage if the author of a source can correct an error, and otherwise the error.
func Mendable(stage extension.Stage, err error) error {
	f := Sort(err)
	switch f.Kind {
	case FailureSource:
		if f.Stage != "" {
			return err
		}
	case FailureLimit:
		f.Problems = []extension.Problem{{Text: err.Error(), Fix: limitFix(f.Limit)}}
	case FailureComponent, FailureTool, FailureTrap:
		if len(f.Problems) == 0 {
			f.Problems = []extension.Problem{{Text: err.Error()}}
		}
	default:
		return err
	}
	problems := &extension.ProblemsError{Stage: stage, Problems: f.Problems}
	if of, ok := errors.AsType[*ComponentError](err); ok {
		problems.Cause = of
	}
	return problems
}

// limitFix says how to keep code below a limit while it is built.
func limitFix(limit string) string {
	switch limit {
	case "cpu", "wall":
		return "no loop that may not end, and no work at the top level: it belongs into `run`"
	case "promise":
		return "a promise that something settles, awaited inside `run`"
	case "memory":
		return `large data as text, imported with { type: "text" }, of which a call reads what it needs: objects take ten times the text`
	default:
		return "code that needs less"
	}
}
