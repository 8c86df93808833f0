//go:build long && linux

package http

import (
	"runtime"
	"sync/atomic"
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
		var charged atomic.Int64
		s := f.serve(t, total)
		c, url := charging(t, s.at, s.roots, func(took time.Duration) error {
			charged.Add(int64(took))
			return nil
		})
		runtime.GC()
		before := usagetest.Processor()
		have := do(t, c, Request{Method: "GET", URL: url})
		if have.err != nil {
			t.Errorf("%s: %v", f.name, have.err)
		}
		c.grant.CloseIdleConnections()
		s.wait()
		took := usagetest.Processor() - before - time.Duration(s.took.Load())
		t.Logf("%-24s %4d ms, %4d ms charged", f.name, took.Milliseconds(), charged.Load()/1e6)
		if took > 2*time.Duration(charged.Load()) {
			t.Errorf("%s: %v were charged for %v", f.name, time.Duration(charged.Load()), took)
		}
	}
}
