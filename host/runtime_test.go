package host

import "testing"

// TestGCPercent has small heaps collected at 16 MiB, and large ones at twice what is in use.
func TestGCPercent(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 400, 1 << 20: 400, 2 << 20: 400, 4 << 20: 300, 8 << 20: 100, 1 << 30: 100, 1 << 50: 100} {
		if got := gcPercent(inUse); got != want {
			t.Errorf("%d bytes in use: got %d, want %d", inUse, got, want)
		}
	}
}
