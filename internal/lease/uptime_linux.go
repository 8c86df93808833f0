package lease

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is a clock that all processes of this machine share, that nobody sets, and that goes on while the machine sleeps. boot says since which
// start of the machine it counts.
func Uptime() (boot string, since time.Duration, err error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, fmt.Errorf("find out since when this machine runs: %w", err)
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0, fmt.Errorf("read the clock since the start of this machine: %w", err)
	}
	return strings.TrimSpace(string(id)), time.Duration(t.Nano()), nil
}
