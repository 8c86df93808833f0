package host

import "testing"

// TestPercent checks how much room a collection leaves before the next one.
func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1: 800, 1 * mib: 800, 4 * mib: 800, 8 * mib: 400, 31 * mib: 103, 32 * mib: 100, 1 << 40: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("with %d MiB in use, %d, want %d", live>>20, got, want)
		}
	}
}
