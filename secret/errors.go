package secret

import (
	"errors"
	"fmt"
)

// ErrNotFound says that there is no secret of a name. A Keyring returns it when it keeps nothing for an account.
var ErrNotFound = errors.New("there is no such secret")

// errClosed is of a store that was used after Close.
var errClosed = errors.New("the secret store is closed")

// NameError says that a name cannot be one of a secret. It does not repeat the name: who mixes up arguments gives a
// value for it.
type NameError struct{}

func (*NameError) Error() string {
	return "this is not a name of a secret: write up to 64 of a-z, 0-9, \"-\" and \"_\", with a letter or a digit first, like github-token"
}

// ValueError says that a value cannot be kept. It tells nothing of the value but its size.
type ValueError struct {
	Name, Problem string
}

func (e *ValueError) Error() string { return fmt.Sprintf("secret %s: %s", e.Name, e.Problem) }

// AccessError says that a file or folder is not this user's alone, or not what it should be. Nothing in it was used.
type AccessError struct {
	Path, Problem, Remedy string
}

func (e *AccessError) Error() string { return e.Path + " " + e.Problem + ": " + e.Remedy }

// DamagedError says that the store is not what was written: truncated, altered, or put together from several. It was left
// as it is.
type DamagedError struct {
	File string
	// Name is the one secret that is damaged, when the others are sound.
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

// KeyError says that the key of the store is not to be had, or is not the one that the store was written with.
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
