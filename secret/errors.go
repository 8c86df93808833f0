package secret

import (
	"errors"
	"fmt"
)

// ErrNotFound reports that there is no secret of that name. A Keyring returns it if it has no key for an account.
var ErrNotFound = errors.New("there is no such secret")

// errClosed is the error of a store that was used after Close.
var errClosed = errors.New("the secret store is closed")

// NameError reports a name that a secret cannot have. It does not repeat the name, because a caller who mixes up the arguments
// passes the value as the name.
type NameError struct{}

func (*NameError) Error() string {
	return "this is not a valid name for a secret: use up to 64 of a-z, 0-9, \"-\" and \"_\", with a letter or digit first, like github-token"
}

// ValueError reports a value that cannot be kept. It reveals only the size of the value.
type ValueError struct {
	Name, Problem string
}

func (e *ValueError) Error() string { return fmt.Sprintf("secret %s: %s", e.Name, e.Problem) }

// AccessError reports a file or folder that others can access, or that is of the wrong kind. The store did not use its content.
type AccessError struct {
	Path, Problem, Remedy string
}

func (e *AccessError) Error() string { return e.Path + " " + e.Problem + ": " + e.Remedy }

// DamagedError reports that the store was truncated, altered, or assembled from several. The store was left unchanged.
type DamagedError struct {
	File string
	// Name is the damaged secret if the others are sound.
	Name            string
	Problem, Remedy string
}

func (e *DamagedError) Error() string {
	what := e.File
	if e.Name != "" {
		what += ": secret " + e.Name
	}
	return fmt.Sprintf("%s: %s; nothing was changed: %s", what, e.Problem, e.Remedy)
}

// KeyError reports that the store's key is missing, or differs from the key that the store was written with.
type KeyError struct {
	Problem, Remedy string
	Err             error // may be nil
}

func (e *KeyError) Error() string {
	cause := ""
	if e.Err != nil {
		cause = ": " + e.Err.Error()
	}
	return fmt.Sprintf("key of the secret store: %s%s; nothing was changed: %s", e.Problem, cause, e.Remedy)
}

func (e *KeyError) Unwrap() error { return e.Err }
