//go:build !linux

package box

// Sweep does nothing: no box ever ran here.
func Sweep(string) error { return nil }

func rlimits() []rlimit { return nil }
