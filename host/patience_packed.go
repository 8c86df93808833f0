//go:build packed

package host

import "time"

// The tag packed is for tests: each wait takes the instance away.
const patience, morePatience = time.Nanosecond, time.Nanosecond
