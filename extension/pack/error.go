package pack

import (
	"errors"
	"strconv"

	"github.com/stilehost/stile/internal/printable"
)

// PartError reports a pack that cannot be used, and the part at fault.
type PartError struct {
	// Part is "manifest", "component", "lock", "sbom", "definitions", "source", "config", "entry", "engine", `file "a.ts"`,
	// "artifact" (the OCI manifest that lists the parts), "signature", "bundle" or, for a file, its entry or "layout". It is printable.
	Part string
	// Err is, or wraps, one of the errors below, or the error of a reader.
	Err error
}

// The possible faults of a part.
var (
	ErrMissing   = errors.New("missing")
	ErrDuplicate = errors.New("there twice")
	ErrTooLarge  = errors.New("too large")
	ErrDigest    = errors.New("its bytes do not match its digest")
	ErrMediaType = errors.New("of an unknown type")
	ErrName      = errors.New("not a name that is allowed")
	ErrFormat    = errors.New("not in the form that Stile writes")
)

// Error implements error.
func (e *PartError) Error() string { return "extension pack: " + e.Part + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *PartError) Unwrap() error { return e.Err }

// quote shows text from a stranger: short, and with everything escaped that a terminal would act on.
func quote(s string) string { return strconv.Quote(printable.Cut(s, 100)) }
