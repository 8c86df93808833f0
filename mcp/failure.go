package mcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/ladder"
)

// mistake is a failure that the model can correct in its next call.
type mistake string

// Error implements error.
func (m mistake) Error() string { return string(m) }

// failure is what a model learns about a call that failed.
type failure struct {
	// Kind is the machine-readable reason: "failed", "denied", "limit", "input", "source", "refused", "revoked", "resting", "trap",
	// "cancelled" or "host".
	Kind    string `json:"kind"`
	Message string `json:"message"`
	// At is the line of the author's source where the tool failed. Stack has all lines.
	At    string `json:"at,omitempty"`
	Stack string `json:"stack,omitempty"`
	// Denied is what the sandbox refused, according to the host's own record.
	Denied []denial `json:"denied,omitempty"`
	// Stage is where a draft failed. Problems are the problems of a source or an input.
	Stage    string              `json:"stage,omitempty"`
	Problems []extension.Problem `json:"problems,omitempty"`
	Limit    string              `json:"limit,omitempty"`
	Value    string              `json:"value,omitempty"`
	// Logs are the last lines that the tool logged.
	Logs []string `json:"logs,omitempty"`
}

type denial struct {
	Binding   string `json:"binding"`
	Operation string `json:"operation"`
	Reason    string `json:"reason"`
	// Permission is the line of the manifest that would allow the operation.
	Permission string `json:"permission,omitempty"`
}

func (e *endpoint) denied(d abi.Denial) denial {
	shown := denial{Binding: d.Binding, Operation: d.Operation, Reason: d.Reason}
	if !d.Private {
		shown.Permission, _ = extension.ShortRemedy(e.options.Manager.Kinds(), d.Binding, d.Remedy)
	}
	return shown
}

// kinds are the words for kinds of failures. All other kinds are faults of the host, and models do not see their texts.
var kinds = map[lifecycle.FailureKind]string{
	lifecycle.FailureSource: "source", lifecycle.FailureTool: "failed", lifecycle.FailureTrap: "trap", lifecycle.FailureDenied: "denied",
	lifecycle.FailureLimit: "limit", lifecycle.FailureBudget: "limit", lifecycle.FailureInput: "input", lifecycle.FailureUnknown: "input",
	lifecycle.FailureState: "refused", lifecycle.FailureRefused: "refused", lifecycle.FailureGrant: "refused", lifecycle.FailureRevoked: "revoked",
	lifecycle.FailureQuarantined: "resting", lifecycle.FailureResting: "resting", lifecycle.FailureCancelled: "cancelled",
}

// explain assigns an error to one of the kinds. ok is false for a fault of the host, whose text a model must not see.
func (e *endpoint) explain(err error, usage host.Usage) (f failure, ok bool) {
	sorted := lifecycle.Sort(err)
	f = failure{
		Kind: kinds[sorted.Kind], Message: printable.Ends(err.Error(), maxMessage), Stage: string(sorted.Stage), Problems: sorted.Problems, Limit: sorted.Limit, Value: sorted.Value,
	}
	crowded, full := errors.AsType[*crowdedError](err)
	switch {
	case full:
		f.Kind, f.Limit, f.Value = "limit", "calls", strconv.Itoa(crowded.most)
	case errors.As(err, new(ownerError)), errors.As(err, new(*ladder.RungError)), errors.As(err, new(*ladder.UnboundError)),
		errors.As(err, new(*ladder.PackagesError)), errors.As(err, new(*lifecycle.PackagesError)), errors.As(err, new(*lifecycle.QuestionError)):
		f.Kind = "refused"
	case errors.As(err, new(mistake)):
		f.Kind = "input"
	case f.Kind == "":
		return failure{Kind: "host", Message: "the host itself failed, not the tool; the host's log says more"}, false
	}
	for _, d := range usage.Denials {
		f.Denied = append(f.Denied, e.denied(d))
	}
	if d := sorted.Denial; d != nil {
		if len(f.Denied) == 0 {
			f.Denied = []denial{e.denied(*d)}
		}
		f.Message = d.Text()
		if sorted.Ceiling != nil {
			f.Message = printable.Short(sorted.Ceiling.Error(), maxMessage)
			for i := range f.Denied {
				f.Denied[i].Permission = "" // the manifest has it already, and only the operator can change the rest
			}
		}
	}
	if sorted.Tool != nil {
		f.Stack = strings.TrimRight(sorted.Tool.Stack, "\n")
		if sorted.Unbound != "" {
			f.Message += fmt.Sprintf(`; ask for it in the manifest: "bindings": { %q: { ... } }`, sorted.Unbound)
		}
		for line := range strings.Lines(f.Stack) {
			if at, ok := host.ReadFrame(line); ok {
				f.At = fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Column)
				break
			}
		}
	}
	for _, p := range sorted.Input {
		f.Problems = append(f.Problems, extension.Problem{Path: p.Path, Text: p.Message})
	}
	return f, true
}

const maxMessage = 8 << 10 // bytes of a message, half of them from its end

// text is the form that a model reads.
func (f failure) text() string {
	var b strings.Builder
	if len(f.Problems) == 0 {
		b.WriteString(printable.Hanging(f.Message)) // no line of a tool looks like one of ours
	} else if f.Stage != "" {
		fmt.Fprintf(&b, "It failed the stage %q, and nothing changed. Correct this and write it again:", f.Stage)
	} else {
		b.WriteString("This is wrong:")
	}
	for _, p := range f.Problems {
		b.WriteString("\n" + p.String())
	}
	if f.Stack != "" {
		b.WriteString("\n" + printable.HangingStack(f.Stack))
	}
	for _, d := range f.Denied {
		fmt.Fprintf(&b, "\nThe sandbox refused %s through env.%s: %s.", d.Operation, d.Binding, strings.TrimRight(d.Reason, "."))
		if d.Permission != "" {
			b.WriteString(" To ask a person for permission, add this to the manifest:\n    " + d.Permission)
		}
	}
	if len(f.Logs) > 0 {
		b.WriteString("\nIt logged:\n    " + strings.Join(f.Logs, "\n    "))
	}
	return b.String()
}

// result returns a failure as a tool's error. A tool with an output schema gets it as text only, because clients check structured
// content against the schema even for errors.
func (f failure) result(promises bool) *sdk.CallToolResult {
	r := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: f.text()}}}
	if !promises {
		r.StructuredContent = map[string]failure{"error": f}
	}
	return r
}
