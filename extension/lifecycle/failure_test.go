package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// TestSort has each error of calls, drafts and decisions, wrapped, and whether the source's author can fix it.
func TestSort(t *testing.T) {
	denial := &host.DeniedError{Denial: abi.Denial{Binding: "web", Operation: "GET /"}}
	for _, tt := range []struct {
		err      error
		kind     FailureKind
		mendable bool
		wrong    string // in the first problem
	}{
		{&extension.ProblemsError{Stage: extension.StageTest, Problems: []extension.Problem{{Text: "no"}}}, FailureSource, true, "no"},
		{&extension.ManifestError{Path: "tools", Message: "bad", Instead: "good"}, FailureSource, true, "manifest.json: tools: bad; write good"},
		{&toolchain.BuildError{Problems: []toolchain.Problem{{File: "a.ts", Line: 1, Column: 2, Text: "no", Fix: "yes"}}}, FailureSource, true, "a.ts:1:2: no; write yes"},
		{&extension.ToolsError{Missing: []string{"a"}}, FailureComponent, true, `manifest.json: the manifest and the code have different tools; "a" is in the manifest but not in the code; write the same names in both`},
		{&host.DefinitionError{Tool: "a", Reason: "no schema"}, FailureComponent, true, `wrapped: tool "a": no schema`},
		{&host.LoadError{Name: "x", Reason: "unknown"}, FailureComponent, true, ""},
		{&host.GuestError{Failure: abi.Failure{Message: "thrown"}}, FailureTool, true, ""},
		{&host.TrapError{}, FailureTrap, true, ""},
		{&host.LimitError{Limit: "cpu", Value: "5s"}, FailureLimit, true, "wrapped: limit reached: cpu (5s); write no loop that may not end, and no work at the top level: it belongs into `run`"},
		{denial, FailureDenied, false, ""},
		{&CeilingError{Denied: denial}, FailureDenied, false, ""},
		{&host.InputError{Problems: []abi.Problem{{Path: "/a", Message: "no"}}}, FailureInput, false, ""},
		{&host.UnknownToolError{Known: []string{"a"}}, FailureUnknown, false, ""},
		{&UnknownToolError{Tool: "a"}, FailureUnknown, false, ""},
		{&NotFoundError{What: "request 7"}, FailureUnknown, false, ""},
		{&MissingError{Reason: MissingWaits}, FailureState, false, ""},
		{&MissingError{Reason: MissingQuarantined}, FailureQuarantined, false, ""},
		{&MissingError{Reason: MissingEnded, Release: Release{State: Revoked}}, FailureRevoked, false, ""},
		{&toolchain.BusyError{Builds: 2, Cause: context.DeadlineExceeded}, FailureBudget, false, ""},
		{&BudgetError{Budget: "builds an hour", Limit: 60}, FailureBudget, false, ""},
		{&BrokenError{Tool: "a", Failures: 5}, FailureResting, false, ""},
		{&QuarantinedError{Extension: "a"}, FailureQuarantined, false, ""},
		{&RevokedError{Extension: "a"}, FailureRevoked, false, ""},
		{&host.GrantError{Err: abi.ErrRevoked}, FailureRevoked, false, ""},
		{&host.GrantError{Err: abi.ErrExpired}, FailureGrant, false, ""},
		{&PolicyError{Reason: "no"}, FailureRefused, false, ""},
		{&DigestError{Release: 1}, FailureRefused, false, ""},
		{&StateError{Release: 1}, FailureState, false, ""},
		{&TamperedError{ID: 1}, FailureTampered, false, ""},
		{&DamagedError{Digest: "ab"}, FailureHost, false, ""},
		{context.Canceled, FailureCancelled, false, ""},
		{errors.New("disk"), FailureHost, false, ""},
	} {
		t.Run(fmt.Sprintf("%T", tt.err), func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", tt.err)
			if f := Sort(err); f.Kind != tt.kind || (f.Denial != nil) != (tt.kind == FailureDenied) {
				t.Errorf("got %+v, want %s", f, tt.kind)
			}
			problems, mendable := errors.AsType[*extension.ProblemsError](Mendable(extension.StageTest, err))
			if mendable != tt.mendable || mendable && (problems.Stage != extension.StageTest || len(problems.Problems) != 1) {
				t.Fatalf("mendable: %v, %+v", mendable, problems)
			}
			if tt.wrong != "" && problems.Problems[0].String() != tt.wrong {
				t.Errorf("got %q, want %q", problems.Problems[0].String(), tt.wrong)
			}
		})
	}
}
