package durable

import (
	"testing"
	"time"
)

// TestTakeover checks how long a run waits for another process, when its own has ended or stopped without a word: until the lease is over, and others look.
func TestTakeover(t *testing.T) {
	if most := leaseTime + beat + pollTime; most > 5*time.Second {
		t.Errorf("another process takes a run over after up to %v", most)
	}
}
