package ladder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/usagetest"
	"github.com/stilehost/stile/toolchain"
)

// BenchmarkRun measures the way from 1 KB of new code to its result: one run after the other, and each 20 ms after the one before, when the
// caches have something else and processors sleep. "compiled" has a class, which needs esbuild.
func BenchmarkRun(b *testing.B) {
	l := benchKit(b).Open(Options{Rung: Isolate})
	text := strings.Repeat("// a comment of a model, which says what the code below does\n", 12) +
		"const rows: { i: number; square: number }[] = Array.from({ length: 50 }, (_, i: number) => ({ i, square: i * i }));\n" +
		"return [id, rows.filter((r) => r.i % 2).reduce((sum, r) => sum + r.square, 0)].join();"
	id := 0
	run := func(b *testing.B, more string) {
		id++
		r, err := l.Run(b.Context(), Code{Text: fmt.Sprintf("const id = %d;\n", id) + more + text})
		if err != nil || string(r.Output) != fmt.Sprintf(`"%d,20825"`, id) {
			b.Fatalf("%s, %v", r.Output, err)
		}
	}
	for _, c := range []struct {
		name, more string
		pause      time.Duration
	}{{"warm", "", 0}, {"cold", "", 20 * time.Millisecond}, {"compiled", "class A {}\n", 0}, {"compiled cold", "class A {}\n", 20 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, c.more)
			var took []time.Duration
			cpu := usagetest.Processor()
			for b.Loop() {
				time.Sleep(c.pause)
				start := time.Now()
				run(b, c.more)
				took = append(took, time.Since(start))
			}
			b.ReportMetric(float64((usagetest.Processor()-cpu).Microseconds())/float64(b.N), "cpu-us")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "median-us")
		})
	}
}

// benchKit makes a kit for a benchmark, which closes it.
func benchKit(b *testing.B) *Kit {
	b.Helper()
	o := host.Options{Wants: capabilities.Builtin.Wants}
	o.CacheDir, o.KeyDir = cachetest.Dirs(b)
	h, err := host.New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	t, err := toolchain.New(b.Context(), h, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = t.Close() })
	k := NewKit(KitOptions{Host: h, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return t, nil }})
	b.Cleanup(func() { _ = k.Close() })
	return k
}
