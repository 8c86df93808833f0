//go:build !linux

package http

import "time"

// threadTime is not known here: what decoding takes is bounded by its bytes alone.
func threadTime() time.Duration { return 0 }
