//go:build long && linux

package toolchain_test

import (
	"flag"
	"testing"
	"time"
)

var soaking = flag.Duration("soak", 20*time.Minute, "how long TestLongSoak makes calls")

// TestLongSoak makes 10,000 calls at once, again and again. What the process has must not grow after the first quarter of the time.
func TestLongSoak(t *testing.T) {
	s := newSoak(t)
	var warm, last use
	rounds := 0
	for began := time.Now(); time.Since(began) < *soaking; rounds++ {
		s.round(10_000, 20*time.Second)
		if last = used(t); time.Since(began) < *soaking/4 || rounds == 0 {
			warm = last
		}
		t.Logf("after %s: %+v", time.Since(began).Round(time.Second), last)
	}
	if last.kib > warm.kib+warm.kib/10+32<<10 || last.threads > warm.threads+4 || last.files > warm.files || last.goroutines > warm.goroutines+8 {
		t.Errorf("it has grown: %+v, then after %d rounds %+v", warm, rounds, last)
	}
}
