//go:build !packed

package host

import "time"

// patience is how long a call waits before it may give its instance back: it does if others want to begin. After morePatience, it does
// anyhow. To take an instance away and give it back takes about half a millisecond of processor time.
const patience, morePatience = 5 * time.Millisecond, 45 * time.Millisecond
