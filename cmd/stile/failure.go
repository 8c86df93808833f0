package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
	platform "github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/toolchain"
)

// failure is the last line of stderr when a command fails, for programs. Scripts depend on it.
type failure struct {
	Kind    kind   `json:"kind"`
	Message string `json:"message"`
	// Denial is set if Kind is denied. It is the host's record, never what the guest says.
	Denial *denial `json:"denial,omitempty"`
	// Bind is the NAME=SPEC of --bind that would allow what was denied, if --bind gave the binding, or that would bind what the global fetch needs.
	Bind string `json:"bind,omitempty"`
	// Limit and Value name a limit and its value. Claimed is set if only the tool says that it reached the limit.
	Limit   string `json:"limit,omitempty"`
	Value   string `json:"value,omitempty"`
	Claimed bool   `json:"claimed,omitempty"`
	// settable is set if --limit of the command sets the limit.
	settable bool
	// Unbound is the binding that the tool used and does not have.
	Unbound string `json:"unbound,omitempty"`
	// Instead says what to write in place of a global that does not exist, if the tool failed for that.
	Instead string `json:"instead,omitempty"`
	// bindable is set if the command has --bind. manifest is the manifest beside the source that binds what is missing.
	bindable bool
	bare     bool // see boundError
	manifest string
	part     string // of a manifest that would bind it
	// Failure is what the tool reported, with its stack mapped to the author's source.
	Failure *abi.Failure `json:"failure,omitempty"`
	// Stage is the stage at which an extension failed.
	Stage extension.Stage `json:"stage,omitempty"`
	// Problems are the problems of an input ([]abi.Problem) or of a source ([]extension.Problem).
	Problems any `json:"problems,omitempty"`
	// Problem and Names say why a core module cannot become a component, and which of its imports or exports are the reason.
	Problem toolchain.CoreProblem `json:"problem,omitempty"`
	Names   []string              `json:"names,omitempty"`
	// Known are the tools that exist, if an unknown one was asked for.
	Known []string `json:"known,omitempty"`
}

type denial struct {
	Binding   string `json:"binding"`
	Operation string `json:"operation"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy,omitempty"`
	// moves is set if an entry for the binding in permissions would have to move into the remedy.
	moves bool
}

// kind says what went wrong, and decides the exit code.
type kind string

const (
	kindFailed      kind = "failed"
	kindDiffers     kind = "differs"
	kindDeclined    kind = "declined" // by the person who was asked
	kindUsage       kind = "usage"
	kindInput       kind = "input"
	kindBuild       kind = "build"
	kindDenied      kind = "denied"
	kindLimit       kind = "limit"
	kindTampered    kind = "tampered"
	kindHost        kind = "host"
	kindCancelled   kind = "cancelled" // a run, by a person or an agent
	kindInterrupted kind = "interrupted"
)

var exitCodes = map[kind]int{
	kindFailed: 1, kindDiffers: 1, kindDeclined: 1, kindTampered: 1, kindCancelled: 1, kindUsage: 2, kindInput: 2, kindBuild: 2, kindDenied: 3, kindLimit: 4, kindHost: 5, kindInterrupted: 130,
}

var errInterrupted = errors.New("interrupted")

// usageError reports a command line, or a file named on it, that cannot be used.
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
	s.say("%s", s.failed(f))
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

// failed is the failure for people, with colour if they see that.
func (s *streams) failed(f failure) string {
	if !s.colored(s.err) {
		return f.text()
	}
	return red + "stile:" + plain + strings.TrimPrefix(f.text(), "stile:")
}

// text is the failure for people.
func (f failure) text() string {
	text := "stile: " + f.Message
	if f.Kind != kindBuild && f.Kind != kindHost { // those have lines of ours
		text = "stile: " + printable.Hanging(f.Message)
	}
	if f.Failure != nil && f.Failure.Stack != "" {
		text += "\n" + printable.HangingStack(f.Failure.Stack)
	}
	if f.Instead != "" {
		text += "\nIt does not exist here. Write instead:\n    " + f.Instead
	}
	switch {
	case f.manifest != "":
		text += "\nThis flag would bind it, as the manifest asks:\n    " + flagOf("manifest", printable.Line(f.manifest))
	case f.Unbound != "" && f.bare:
		text += "\nNo binding of the ladder is called so. Write an extension, and ask for it in its manifest"
	case f.Unbound != "":
		part := "\nThis part of the manifest would bind it:"
		switch {
		case f.bindable && f.Bind != "":
			text += "\nThis flag would bind it:\n    " + flagOf("bind", f.Bind)
		case f.bindable:
			text += "\nThis flag would bind it, with a kind that stile run --help lists:\n    --bind " + f.Unbound + "=..."
		}
		if f.bindable {
			part = "\nSo would this part of the manifest:"
		}
		if f.Denial == nil { // a denial has the whole line
			text += part + "\n    " + cmp.Or(f.part, fmt.Sprintf("\"bindings\": { %q: { ... } }", f.Unbound))
		}
	}
	if f.Denial != nil && f.Denial.Remedy != "" && f.manifest == "" {
		remedy := "This line of the manifest"
		if strings.HasPrefix(f.Denial.Remedy, "stile ") {
			remedy = "This command"
		}
		text += "\n" + remedy + " would allow it:\n    " + f.Denial.Remedy
		if f.Denial.moves {
			text += fmt.Sprintf("\nIf permissions has an entry for %q, move it into this line: a name is bound in one place.", f.Denial.Binding)
		}
	}
	if f.Bind != "" && f.Unbound == "" {
		text += "\nThis flag would allow it:\n    " + flagOf("bind", f.Bind)
	}
	if f.settable {
		text += "\nThis flag sets the limit:\n    --limit " + f.Limit + "=VALUE"
	}
	return text
}

// sortedKinds are the kinds of failures of calls, drafts and decisions. Others are the host's.
var sortedKinds = map[lifecycle.FailureKind]kind{
	lifecycle.FailureSource: kindBuild, lifecycle.FailureComponent: kindBuild, lifecycle.FailureTool: kindFailed, lifecycle.FailureTrap: kindFailed,
	lifecycle.FailureState: kindFailed, lifecycle.FailureDenied: kindDenied, lifecycle.FailureRefused: kindDenied, lifecycle.FailureRevoked: kindDenied,
	lifecycle.FailureLimit: kindLimit, lifecycle.FailureBudget: kindLimit, lifecycle.FailureResting: kindLimit, lifecycle.FailureInput: kindInput,
	lifecycle.FailureUnknown: kindUsage, lifecycle.FailureTampered: kindTampered,
}

// explain assigns an error to one of the kinds.
func explain(err error) failure {
	sorted := lifecycle.Sort(err)
	f := failure{
		Kind: kindOf(err, sorted), Message: printable.Text(err.Error()), Limit: sorted.Limit, Value: sorted.Value, Claimed: sorted.Claimed, Failure: sorted.Tool,
		Stage: sorted.Stage, Known: sorted.Known, Unbound: sorted.Unbound,
	}
	if bound, ok := errors.AsType[*boundError](err); ok {
		f.bindable, f.bare = !bound.bare, bound.bare
		if f.Unbound != "" && bound.file != "" {
			f.manifest = manifestThatBinds(bound.file, f.Unbound)
		}
	}
	if f.Failure != nil && (f.Failure.Name == "ReferenceError" || f.Failure.Name == "TypeError") {
		_, f.Instead, _ = platform.Find(f.Failure.Message)
	}
	f.fetch(sorted.Origin)
	var (
		unknown *unknownError
		tests   *failedTestsError
		core    *toolchain.CoreError
	)
	switch {
	case errors.As(err, &unknown):
		f.Known = unknown.known
	case errors.As(err, &tests):
		f.Problems = tests.problems
	case errors.As(err, &core):
		f.Problem = core.Problem
		for _, name := range core.Names {
			f.Names = append(f.Names, printable.Text(name))
		}
	case sorted.Denial != nil:
		f.deny(err, *sorted.Denial, sorted.Ceiling)
	case sorted.Input != nil:
		f.Problems = sorted.Input
	case sorted.Kind == lifecycle.FailureSource && f.Kind != kindUsage:
		f.Problems = sorted.Problems
	case sorted.Kind == lifecycle.FailureLimit:
		f.settable = (errkind.Is[*boundError](err) || errkind.Is[*callError](err)) && slices.Contains(limitNames(), f.Limit)
	case isKeyRefused(err):
		f.Message += "; --model-key or STILE_MODEL_KEY names the secret with the key, and stile secret set keeps it"
	case sorted.Kind == lifecycle.FailureBudget && errkind.Is[*lifecycle.BudgetError](err):
		over, _ := errors.AsType[*lifecycle.BudgetError](err)
		if where, err := readSettings(); err == nil {
			f.Message = strings.Replace(f.Message, printable.Text(over.Error()), printable.Text(over.In(filepath.Join(where.home, policy.File))), 1)
		}
	case errkind.Is[*toolchain.BusyError](err):
		f.Message += "; try again when they have ended"
	case f.Kind == kindHost && (errkind.Is[*sqlite.Error](err) || errkind.Is[*lifecycle.DamagedError](err) || errors.Is(err, abi.ErrUnavailable)):
		f.Message += "; stile doctor says which files are damaged and what to do"
	}
	return f
}

// fetch says how to bind what the global fetch needs to ask an origin.
func (f *failure) fetch(origin string) {
	spec := f.Unbound + "=http:" + origin + "/**"
	b, err := extension.ParseSpec(capabilities.Builtin, spec)
	if origin == "" || err != nil || f.bare {
		return
	}
	if f.bindable {
		f.Bind = spec
	}
	f.part, _ = extension.ShortRemedy(capabilities.Builtin, f.Unbound, capability.Wanted{Grant: b.Grant}.Remedy(f.Unbound))
}

// deny explains a denial.
func (f *failure) deny(err error, d abi.Denial, above *lifecycle.CeilingError) {
	f.Denial = &denial{Binding: d.Binding, Operation: d.Operation, Reason: d.Reason}
	f.Message = d.Text()
	if bound := (*boundError)(nil); errors.As(err, &bound) {
		f.Bind = bound.remedy(d)
		if bound.file != "" && strings.HasPrefix(d.Operation, "use ") && !bound.binds(d.Binding) {
			f.Unbound, f.manifest = d.Binding, manifestThatBinds(bound.file, d.Binding)
		}
		if tool, _, _ := strings.Cut(d.Operation, ":"); bound.bare && (d.Binding != ladder.ToolsBinding || isOfLadder(tool)) {
			return
		}
	}
	if above != nil { // the manifest has the remedy already
		f.Message = printable.Text(above.Error())
		return
	}
	f.Denial.Remedy, f.Denial.moves = extension.ShortRemedy(capabilities.Builtin, d.Binding, d.Remedy)
}

// isKeyRefused reports whether a model's server wants another key, or one at all.
func isKeyRefused(err error) bool {
	refused, ok := errors.AsType[*model.Error](err)
	return ok && refused.Status == http.StatusUnauthorized
}

// kindOf returns the kind of a sorted error.
func kindOf(err error, sorted lifecycle.Failure) kind {
	var operation *abi.Error
	var run *durable.EndError
	switch {
	case errors.Is(err, errInterrupted):
		return kindInterrupted
	case errors.As(err, &run) && run.State == durable.Cancelled:
		return kindCancelled
	case errkind.Is[*generate.UnfinishedError](err), errkind.Is[*failedTestsError](err), errkind.Is[*nonconformingError](err), errkind.Is[*protocol.HostError](err):
		return kindFailed
	case errkind.Is[*unknownError](err):
		return kindUsage
	case errkind.Is[*notApprovedError](err):
		return kindDeclined
	case errkind.Is[*toolchain.CoreError](err):
		return kindBuild
	case errkind.Is[*lifecycle.OverrideError](err):
		return overrideKind(err)
	case isKeyRefused(err):
		return kindUsage
	case errkind.Is[*untrustedError](err), errkind.Is[*widenedError](err), sorted.Stage == extension.StagePolicy:
		return kindDenied
	case sortedKinds[sorted.Kind] != "":
		return sortedKinds[sorted.Kind]
	case errkind.Is[*differsError](err):
		return kindDiffers
	case errkind.Is[*usageError](err), errkind.Is[*extension.SpecError](err), errkind.Is[*extension.UnboundError](err), errkind.Is[*extension.ScopeError](err), errkind.Is[*policy.ParseError](err),
		errkind.Is[*generate.RequestError](err), errkind.Is[*model.OptionsError](err), errkind.Is[*workspace.RefusedError](err), errkind.Is[*host.ReplayError](err), errkind.Is[*trial.RecordingError](err),
		errkind.Is[*secret.NameError](err), errkind.Is[*secret.ValueError](err), errors.Is(err, secret.ErrNotFound):
		return kindUsage
	case errors.As(err, &operation):
		return operationKind(operation.Code)
	default:
		return kindHost
	}
}

// overrideKind tells bindings that nobody may have from those that make no sense.
func overrideKind(err error) kind {
	if wrong, ok := errors.AsType[*lifecycle.OverrideError](err); ok && wrong.Denied {
		return kindDenied
	}
	return kindUsage
}

// operationKind sorts errors of operations on the contents of STILE_HOME.
func operationKind(code abi.Code) kind {
	switch code {
	case abi.CodeNotFound, abi.CodeAlreadyExists, abi.CodeConflict:
		return kindFailed
	case abi.CodeInvalid, abi.CodeTooLarge, abi.CodeDenied: // a path that leaves the workspace is the user's mistake
		return kindUsage
	case abi.CodeExhausted:
		return kindLimit
	default:
		return kindHost
	}
}
