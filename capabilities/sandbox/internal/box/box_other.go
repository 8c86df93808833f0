//go:build !linux

package box

func rlimits() []rlimit { return nil }
