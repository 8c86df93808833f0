package durable

import (
	"context"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// ended is what is kept of a run that ended: its output, or what its error said.
type ended struct {
	Output  []byte       `json:"output,omitempty"`
	Outcome host.Outcome `json:"outcome"`
	Usage   host.Usage   `json:"usage"`

	Failure  *abi.Failure  `json:"failure,omitempty"`
	Denial   *abi.Denial   `json:"denial,omitempty"`
	Problems []abi.Problem `json:"problems,omitempty"`
	Known    []string      `json:"known,omitempty"`
	Stack    string        `json:"stack,omitempty"`

	// Caller is what the parent of a child gets.
	Caller *abi.Error `json:"caller,omitempty"`
}

// endedWith describes how a call ended.
func endedWith(r host.Result, err error) ended {
	e := ended{Output: r.Output, Outcome: host.OutcomeOf(err), Usage: r.Usage}
	for i := range e.Usage.Denials {
		e.Usage.Denials[i].Wants = nil
	}
	if failed, ok := errors.AsType[*host.GuestError](err); ok {
		e.Failure = &failed.Failure
	}
	if denied, ok := errors.AsType[*host.DeniedError](err); ok {
		d := denied.Denial
		d.Wants = nil
		e.Denial = &d
	}
	if input, ok := errors.AsType[*host.InputError](err); ok {
		e.Problems = input.Problems
	}
	if unknown, ok := errors.AsType[*host.UnknownToolError](err); ok {
		e.Known = unknown.Known
	}
	if limit, ok := errors.AsType[*host.LimitError](err); ok {
		e.Stack = limit.Stack
	}
	return e
}

// EndError is how a run ended that has no result. It wraps the error with which its call ended, where that is of a type of [host].
type EndError struct {
	Run     string
	State   State
	Outcome host.Outcome
	err     error
}

func (e *EndError) Error() string {
	switch {
	case e.State == Cancelled:
		return "run " + e.Run + ": " + e.Outcome.Message
	case e.err != nil:
		return e.err.Error()
	}
	return e.Outcome.String()
}

// Unwrap returns the error of the call.
func (e *EndError) Unwrap() error { return e.err }

// Err returns why the run has no result: an *[EndError], or nil if it has one or goes on.
func (r Result) Err() error {
	if r.State == Done || !r.State.Final() {
		return nil
	}
	e := &EndError{Run: r.Name, State: r.State, Outcome: r.Outcome}
	switch o, d := r.Outcome, r.ended; {
	case r.State == Parked:
		e.Outcome = host.Outcome{Kind: "parked", Message: r.Reason}
	case d.Failure != nil:
		e.err = &host.GuestError{Failure: *d.Failure}
	case d.Denial != nil:
		e.err = &host.DeniedError{Denial: *d.Denial}
	case d.Problems != nil:
		e.err = &host.InputError{Problems: d.Problems}
	case d.Known != nil:
		e.err = &host.UnknownToolError{Tool: r.Tool, Known: d.Known}
	case o.Kind == "limit":
		e.err = &host.LimitError{Limit: o.Limit, Value: o.Value, Detail: o.Detail, Claimed: o.Claimed, Stack: d.Stack}
	case o.Kind == "trap":
		e.err = &host.TrapError{Reason: o.Message}
	case o.Kind == "cancelled":
		e.err = context.Canceled
	}
	return e
}
