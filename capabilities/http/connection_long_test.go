//go:build long && linux

package http

import (
	"runtime"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/usagetest"
)

// TestLongFloods compares the charge for floods with the processor time that they take.
func TestLongFloods(t *testing.T) {
	quiet(t)
	for _, f := range floods() {
		total := 4 << 20
		if f.record == 1 {
			total = 64 << 10
		}
		var charged work
		s := f.serve(t, total)
		c, url := charging(t, s.at, s.roots, charged.add)
		runtime.GC()
		before := usagetest.Processor()
		have := do(t, c, Request{Method: "GET", URL: url})
		if have.err != nil {
			t.Errorf("%s: %v", f.name, have.err)
		}
		c.grant.CloseIdleConnections()
		s.wait()
		took := usagetest.Processor() - before - time.Duration(s.took.Load())
		t.Logf("%-24s %4d ms, %4d ms charged", f.name, took.Milliseconds(), charged.all().Milliseconds())
		if took > 2*charged.all() {
			t.Errorf("%s: %v were charged for %v", f.name, charged.all(), took)
		}
	}
}

// TestLongHandshakes compares the charge for handshakes with the processor time that they take.
func TestLongHandshakes(t *testing.T) {
	quiet(t)
	chains := handshakes(t)
	handshakeWith(t, chains["one certificate"].chain) // the first takes longer
	for name, c := range chains {
		charged, took := handshakeWith(t, c.chain)
		t.Logf("%-24s %v were charged for %v", name, charged, took)
		if took > 2*charged+5*time.Millisecond { // the rest is noise
			t.Errorf("%s: %v were charged for %v", name, charged, took)
		}
	}
}
