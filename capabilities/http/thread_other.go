//go:build !linux

package http

import "time"

// threadTime is not available here. Only the number of bytes bounds decoding.
func threadTime() time.Duration { return 0 }
