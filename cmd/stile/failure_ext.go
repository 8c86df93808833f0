package main

import (
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/toolchain/npm"
)

// explainExtension sorts the errors of the lifecycle into one of the kinds, and says whether err is one of them.
func (f *failure) explainExtension(err error) bool {
	var (
		unfinished *generate.UnfinishedError
		problems   *extension.ProblemsError
		budget     *lifecycle.BudgetError
		broken     *lifecycle.BrokenError
		unknown    *unknownError
		tests      *failedTestsError
	)
	switch {
	case errors.As(err, &unfinished):
		f.Kind = kindFailed
		if unfinished.Problems != nil {
			f.Stage, f.Problems = unfinished.Problems.Stage, unfinished.Problems.Problems
		}
	case errors.As(err, &problems):
		f.Kind, f.Stage, f.Problems = kindBuild, problems.Stage, problems.Problems
		if problems.Stage == extension.StagePolicy {
			f.Kind = kindDenied
		}
	case errors.As(err, &budget):
		f.Kind, f.Limit, f.Value = kindLimit, budget.Budget, fmt.Sprint(budget.Limit)
	case errors.As(err, &broken):
		f.Kind, f.Limit, f.Value = kindLimit, "failures", fmt.Sprint(broken.Failures)
	case errors.As(err, &tests):
		f.Kind, f.Problems = kindFailed, tests.problems
	case errors.As(err, &unknown):
		f.Kind, f.Known = kindUsage, unknown.known
	case is[*lifecycle.TamperedError](err):
		f.Kind = kindTampered
	case is[*generate.RequestError](err), is[*model.OptionsError](err):
		f.Kind = kindUsage
	case is[*untrustedError](err), is[*notApprovedError](err), is[*lifecycle.RevokedError](err), is[*lifecycle.PolicyError](err), is[*lifecycle.DigestError](err):
		f.Kind = kindDenied
	case is[*lifecycle.StateError](err):
		f.Kind = kindFailed
	case is[*lifecycle.NotFoundError](err), is[*policy.ParseError](err), is[*extension.ScopeError](err):
		f.Kind = kindUsage
	case is[*lifecycle.QuarantinedError](err), is[*lifecycle.DamagedError](err), is[*npm.ClientError](err), is[*npm.LockError](err):
		f.Kind = kindHost
	default:
		return false
	}
	return true
}
