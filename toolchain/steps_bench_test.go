package toolchain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/usagetest"
)

// BenchmarkWait measures the processor time of a wait. With the tag packed, each takes the instance away and gives it back.
func BenchmarkWait(b *testing.B) {
	_, tools := newToolchain(b, host.Options{})
	for _, c := range []struct{ name, before string }{
		{"small", ""},
		{"notes", `const notes = []; for (let i = 0; i < 10; i++) notes.push({ text: "note ".repeat(100) + i, at: new Date() });`},
		{"3MB", `const a = []; for (let i = 0; i < 3000; i++) a.push(("x" + i).repeat(300).toUpperCase());`},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := build(b, tools, tool("", c.before+`for (let i = 0; i < input.n; i++) await env.clock.sleep(3); return input.n;`))
			do := func(n int) time.Duration {
				before := usagetest.Processor()
				if _, err := t.Do(b.Context(), host.Request{
					Tool: "t", Input: fmt.Appendf(nil, `{"n":%d}`, n), Env: host.Env{"clock": clock.System()}, Limits: host.Limits{CPU: time.Hour, Wall: time.Hour},
				}); err != nil {
					b.Fatal(err)
				}
				return usagetest.Processor() - before
			}
			do(10)
			took := do(b.N)
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "cpu-us/wait")
		})
	}
}
