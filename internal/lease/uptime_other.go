//go:build !linux

package lease

import "time"

// Uptime is the wall clock: where it is set, leases end early or late.
func Uptime() (boot string, since time.Duration, err error) {
	return "", time.Duration(time.Now().UnixNano()), nil
}
