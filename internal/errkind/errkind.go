// Package errkind tells kinds of errors apart.
package errkind

import "errors"

// Is reports whether err is, or wraps, an E.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
