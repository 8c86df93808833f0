package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/toolchain"
)

// failure is the last line of stderr when a command fails, for programs. Scripts depend on it.
type failure struct {
	Kind    kind   `json:"kind"`
	Message string `json:"message"`
	// Denial is there when Kind is denied: the host's record, never the guest's word.
	Denial *denial `json:"denial,omitempty"`
	// Bind is the NAME=SPEC of --bind that would allow what was denied, when the binding was given so.
	Bind string `json:"bind,omitempty"`
	// Limit and Value name a limit and what it is set to. Claimed is set when only the tool says that it reached it.
	Limit   string `json:"limit,omitempty"`
	Value   string `json:"value,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
	// settable says that --limit of the command sets the limit.
	settable bool
	// Failure is the tool's own account, its stack mapped to the author's source.
	Failure *abi.Failure `json:"failure,omitempty"`
	// Stage is the one that an extension did not pass.
	Stage extension.Stage `json:"stage,omitempty"`
	// Problems are those of an input ([]abi.Problem), of a source ([]toolchain.Problem) or of an extension ([]extension.Problem).
	Problems any `json:"problems,omitempty"`
	// Known are the tools there are, when one was asked for that is not.
	Known []string `json:"known,omitempty"`
}

type denial struct {
	Binding   string `json:"binding"`
	Operation string `json:"operation"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy,omitempty"`
	// moves says that what permissions say of the binding has to move into the remedy.
	moves bool
}

// kind says what went wrong, and decides the exit code.
type kind string

const (
	kindFailed      kind = "failed"
	kindDiffers     kind = "differs"
	kindUsage       kind = "usage"
	kindInput       kind = "input"
	kindBuild       kind = "build"
	kindDenied      kind = "denied"
	kindLimit       kind = "limit"
	kindTampered    kind = "tampered"
	kindHost        kind = "host"
	kindInterrupted kind = "interrupted"
)

var exitCodes = map[kind]int{
	kindFailed: 1, kindDiffers: 1, kindTampered: 1, kindUsage: 2, kindInput: 2, kindBuild: 2, kindDenied: 3, kindLimit: 4, kindHost: 5, kindInterrupted: 130,
}

var errInterrupted = errors.New("interrupted")

// usageError is a command line, or a file named on it, that cannot be used.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// report prints an error for people and returns the exit code. It also prints the error as JSON if stderr is no terminal, or if json is set.
func (s *streams) report(err error, json bool) int {
	if err == nil {
		return 0
	}
	if said, ok := errors.AsType[*saidError](err); ok {
		return said.code
	}
	f := explain(err)
	text := "stile: " + f.Message
	if f.Failure != nil && f.Failure.Stack != "" {
		text += "\n" + strings.TrimRight(f.Failure.Stack, "\n")
	}
	if f.Denial != nil && f.Denial.Remedy != "" {
		remedy := "This line of the manifest"
		if strings.HasPrefix(f.Denial.Remedy, "stile ") {
			remedy = "This command"
		}
		text += "\n" + remedy + " would allow it:\n    " + f.Denial.Remedy
		if f.Denial.moves {
			text += fmt.Sprintf("\nWhat permissions say of %q moves into it: a name is bound in one place.", f.Denial.Binding)
		}
	}
	if f.Bind != "" {
		text += "\nThis flag would allow it:\n    " + bindFlag(f.Bind)
	}
	if f.settable {
		text += "\nThis flag sets the limit:\n    --limit " + f.Limit + "=VALUE"
	}
	s.say("%s", text)
	if s.interactive() && !json {
		return exitCodes[f.Kind]
	}
	line, err := encode(map[string]failure{"error": f}, "")
	if err != nil {
		s.say("stile: %v", err)
		return exitCodes[kindHost]
	}
	s.say("%s", line)
	return exitCodes[f.Kind]
}

// explain sorts an error into one of the kinds.
func explain(err error) failure {
	f := failure{Kind: kindHost, Message: printable.Text(err.Error())}
	var (
		denied  *host.DeniedError
		limit   *host.LimitError
		guest   *host.GuestError
		trap    *host.TrapError
		input   *host.InputError
		unknown *host.UnknownToolError
		build   *toolchain.BuildError
		busy    *toolchain.BusyError

		operation *abi.Error
	)
	switch {
	case errors.Is(err, errInterrupted):
		f.Kind = kindInterrupted
	case f.explainExtension(err):
	case errors.As(err, &denied):
		d := denied.Denial
		f.Kind, f.Denial = kindDenied, &denial{Binding: d.Binding, Operation: d.Operation, Reason: d.Reason}
		f.Denial.Remedy, f.Denial.moves = extension.ShortRemedy(d.Binding, d.Remedy)
		if bound := (*boundError)(nil); errors.As(err, &bound) {
			f.Bind = bound.remedy(d)
		}
		f.Message = fmt.Sprintf("denied: %s through %q: %s", d.Operation, d.Binding, d.Reason)
		if above := (*lifecycle.CeilingError)(nil); errors.As(err, &above) {
			f.Denial.Remedy = "" // the manifest has it already
			f.Message = printable.Text(above.Error())
		}
	case errors.As(err, &limit):
		f.Kind, f.Limit, f.Value, f.Claimed = kindLimit, limit.Limit, limit.Value, limit.Claimed
		f.settable = is[*boundError](err) && slices.Contains(limitNames, limit.Limit)
	case errors.As(err, &guest):
		f.Kind, f.Failure = kindFailed, &guest.Failure
	case errors.As(err, &trap):
		f.Kind = kindFailed
	case errors.As(err, &input):
		f.Kind, f.Problems = kindInput, input.Problems
	case errors.As(err, &unknown):
		f.Kind, f.Known = kindUsage, unknown.Known
	case errors.As(err, &busy):
		f.Kind, f.Limit, f.Value = kindLimit, "builds", fmt.Sprintf("%d builds", busy.Builds)
		f.Message += "; try again when they have ended"
	case errors.As(err, &build):
		f.Kind, f.Problems = kindBuild, build.Problems
	case is[*differsError](err):
		f.Kind = kindDiffers
	case is[*host.ReplayError](err), is[*trial.RecordingError](err):
		f.Kind = kindUsage
	case is[*host.LoadError](err), is[*host.DefinitionError](err), is[*extension.ToolsError](err):
		f.Kind = kindBuild
	case is[*secret.NameError](err), is[*secret.ValueError](err), errors.Is(err, secret.ErrNotFound):
		f.Kind = kindUsage
	case is[*workspace.RefusedError](err), is[*usageError](err), is[*extension.SpecError](err), is[*extension.ManifestError](err), is[*extension.UnboundError](err):
		f.Kind = kindUsage
	case errors.As(err, &operation):
		f.Kind = operationKind(operation.Code)
	}
	if f.Kind == kindHost && (is[*sqlite.Error](err) || is[*lifecycle.DamagedError](err) || errors.Is(err, abi.ErrUnavailable)) {
		f.Message += "; stile doctor says which files are damaged and what to do"
	}
	return f
}

// operationKind sorts errors of operations on what STILE_HOME keeps.
func operationKind(code abi.Code) kind {
	switch code {
	case abi.CodeNotFound, abi.CodeAlreadyExists, abi.CodeConflict:
		return kindFailed
	case abi.CodeInvalid, abi.CodeTooLarge, abi.CodeDenied: // a path out of the workspace is the user's own
		return kindUsage
	case abi.CodeExhausted:
		return kindLimit
	default:
		return kindHost
	}
}

// is reports whether err or what it wraps is a T.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
