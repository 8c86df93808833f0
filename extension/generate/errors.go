package generate

import (
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/toolchain"
)

// Why a generation stopped before its end; see [UnfinishedError].
var (
	ErrRounds = errors.New("no more rounds")
	ErrBudget = errors.New("no more tokens")
)

// UnfinishedError reports a generation that used up its rounds or tokens before a draft passed. errors.Is distinguishes them
// with [ErrRounds] and [ErrBudget], and errors.As finds the problems as a *[extension.ProblemsError].
type UnfinishedError struct {
	// Reason is ErrRounds, or wraps ErrBudget and says how much is missing.
	Reason error
	// Draft is the last draft. It is empty if no reply held one.
	Draft Draft
	// Problems are what is wrong with it. They are nil if there was no round.
	Problems *extension.ProblemsError
}

// Error implements error.
func (e *UnfinishedError) Error() string {
	if e.Problems == nil {
		return fmt.Sprintf("nothing was generated: %v", e.Reason)
	}
	return fmt.Sprintf("the generated extension does not work yet, and there are %v: %v", e.Reason, e.Problems)
}

// Unwrap returns the reason and the problems.
func (e *UnfinishedError) Unwrap() []error {
	if e.Problems == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Problems}
}

// RequestError reports an invalid request.
type RequestError struct{ Reason string }

// Error implements error.
func (e *RequestError) Error() string { return "generate: " + e.Reason }

// StageReply is the stage before all others: finding manifest and source in a model's reply.
const StageReply extension.Stage = "reply"

// problemsOf returns the problems in a pipeline's error that the model can correct. It returns nil if there are none.
func problemsOf(err error) *extension.ProblemsError {
	stage := extension.StageImage
	switch {
	case errors.As(err, new(*extension.ManifestError)):
		stage = extension.StageValidate
	case errors.As(err, new(*toolchain.BuildError)):
		stage = extension.StageBundle
	}
	found, _ := errors.AsType[*extension.ProblemsError](lifecycle.Mendable(stage, err))
	return found
}

func problem(stage extension.Stage, p extension.Problem) *extension.ProblemsError {
	return &extension.ProblemsError{Stage: stage, Problems: []extension.Problem{p}}
}
