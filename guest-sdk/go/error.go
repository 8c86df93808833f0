//go:build wasip1

package stile

import "fmt"

// The errors of capabilities are the types Error...: use errors.As to tell them apart.

func (e ErrorDenied) Error() string {
	return fmt.Sprintf("%s: denied: %s", e.Value.Operation, e.Value.Reason)
}
func (e ErrorRevoked) Error() string   { return "revoked: " + e.Value }
func (ErrorExpired) Error() string     { return "expired" }
func (e ErrorExhausted) Error() string { return "exhausted: " + e.Value }
func (ErrorTimedOut) Error() string    { return "timed out" }
func (e ErrorTooLarge) Error() string {
	return fmt.Sprintf("too large: the limit is %d bytes", e.Value)
}
func (e ErrorNotFound) Error() string      { return "not found: " + e.Value }
func (e ErrorAlreadyExists) Error() string { return "already exists: " + e.Value }
func (e ErrorConflict) Error() string      { return "conflict: " + e.Value }
func (e ErrorInvalid) Error() string       { return "invalid: " + e.Value }
func (e ErrorUnavailable) Error() string   { return "unavailable: " + e.Value }
func (e ErrorInterrupted) Error() string   { return "interrupted: " + e.Value }
