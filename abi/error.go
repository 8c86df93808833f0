package abi

import (
	"errors"
	"fmt"
)

// Denial reports that no rule allowed an operation, and which line of the manifest would. It is the record `denial` of
// stile:capability/types. A capability fills in Operation, Reason and Wants; the host adds Binding and Remedy.
type Denial struct {
	// Binding is the name the operation went through, e.g. "github".
	Binding string
	// Operation is the requested operation, e.g. "POST https://api.github.com/user/repos".
	Operation string
	// Reason says why no rule allows it.
	Reason string
	// Remedy is the manifest line that would allow it.
	Remedy string
	// Wants is the grant that would allow the operation. It is nil if no grant could. Neither the guest nor a recording gets it.
	Wants Wants `wit:"-" json:"-"`
	// Private is set if Wants contains something that the guest must not learn, such as the path above its workspace. The person
	// gets the remedy; the guest does not.
	Private bool `wit:"-"`
}

// Text says in one line what was denied and why, without the remedy.
func (d Denial) Text() string {
	return fmt.Sprintf("denied: %s through %q: %s", d.Operation, d.Binding, d.Reason)
}

// Wants is a grant that a call lacks. The kind of capability knows what the grant is and how a manifest asks for it.
type Wants interface {
	// Remedy returns the manifest line that gives the grant to the binding of this name. It is empty if no line can.
	Remedy(binding string) string
}

// Code is a case of the variant `error` of stile:capability/types.
type Code uint8

// The cases of the variant `error`, in its order.
const (
	CodeDenied Code = iota
	CodeRevoked
	CodeExpired
	CodeExhausted
	CodeTimedOut
	CodeTooLarge
	CodeNotFound
	CodeAlreadyExists
	CodeConflict
	CodeInvalid
	CodeUnavailable
	CodeInterrupted
)

// Error is the variant `error` of stile:capability/types: the errors of a capability's operations. errors.Is compares it by Code, so
// errors.Is(err, abi.ErrNotFound) holds for every not-found error.
type Error struct {
	Code   Code
	Denial *Denial // CodeDenied
	Size   uint64  // CodeTooLarge: the size needed, or the limit if that is unknown
	Detail string  // every other code that carries text; with CodeTooLarge, which limit that is, which no guest is told
}

// Errors for errors.Is.
var (
	ErrDenied        = &Error{Code: CodeDenied}
	ErrRevoked       = &Error{Code: CodeRevoked}
	ErrExpired       = &Error{Code: CodeExpired}
	ErrExhausted     = &Error{Code: CodeExhausted}
	ErrTimedOut      = &Error{Code: CodeTimedOut}
	ErrTooLarge      = &Error{Code: CodeTooLarge}
	ErrNotFound      = &Error{Code: CodeNotFound}
	ErrAlreadyExists = &Error{Code: CodeAlreadyExists}
	ErrConflict      = &Error{Code: CodeConflict}
	ErrInvalid       = &Error{Code: CodeInvalid}
	ErrUnavailable   = &Error{Code: CodeUnavailable}
	ErrInterrupted   = &Error{Code: CodeInterrupted}
)

var codeText = [...]string{
	CodeDenied: "denied", CodeRevoked: "revoked", CodeExpired: "expired", CodeExhausted: "exhausted",
	CodeTimedOut: "timed out", CodeTooLarge: "too large", CodeNotFound: "not found",
	CodeAlreadyExists: "already exists", CodeConflict: "conflict", CodeInvalid: "invalid", CodeUnavailable: "unavailable", CodeInterrupted: "interrupted",
}

// Errorf returns an error with a code that carries text.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Spent returns an [ErrExhausted] for a limit of a binding. option is its name in a manifest and in --bind, so that the reader can raise it.
func Spent(what string, limit any, option string) *Error {
	return Errorf(CodeExhausted, "%s: %v; the option %s of the binding raises it", what, limit, option)
}

// TooLarge returns an [ErrTooLarge]. limit says on the host which limit that is. A guest is told the size only.
func TooLarge(size uint64, limit string) *Error {
	return &Error{Code: CodeTooLarge, Size: size, Detail: limit}
}

// Deny returns the error of a denied operation.
func Deny(d Denial) *Error { return &Error{Code: CodeDenied, Denial: &d} }

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e == nil || int(e.Code) >= len(codeText):
		return "unknown error"
	case e.Denial != nil:
		return fmt.Sprintf("denied: %s: %s", e.Denial.Operation, e.Denial.Reason)
	case e.Code == CodeTooLarge && e.Size > 0:
		text := fmt.Sprintf("too large: %d bytes", e.Size)
		if e.Detail != "" {
			text += "; " + e.Detail
		}
		return text
	case e.Detail != "":
		return codeText[e.Code] + ": " + e.Detail
	default:
		return codeText[e.Code]
	}
}

// Is reports whether target is an *Error of the same code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t != nil && e != nil && t.Code == e.Code
}
