package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/host/internal/wasmtime"
)

// BenchmarkInstantiate starts and drops instances without calling them, which the API does not offer. bench/core runs it and
// sets STILE_BENCH_DIR to a folder with a component and the engine that it imports.
func BenchmarkInstantiate(b *testing.B) {
	dir := os.Getenv("STILE_BENCH_DIR")
	if dir == "" {
		b.Fatal("set STILE_BENCH_DIR, or run `make bench-core`, which does")
	}
	h, err := New(b.Context(), Options{CacheDir: filepath.Join(dir, "cache"), KeyDir: filepath.Join(dir, "key")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}()
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		return content
	}
	if _, err := h.AddModule(b.Context(), read("engine.wasm")); err != nil {
		b.Fatal(err)
	}
	c, err := h.Load(b.Context(), read("component.wasm"))
	if err != nil {
		b.Fatal(err)
	}
	limits := wasmtime.Limits{Memory: h.options.Limits.Memory, CPU: h.options.Limits.CPU}
	start := func() time.Duration {
		begin := time.Now()
		store := h.engine.NewStore(limits, nil)
		defer store.Close()
		if _, err := store.Instantiate(c.linker, c.component); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	for range 100 {
		start()
	}
	var took []time.Duration
	for b.Loop() {
		took = append(took, start())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "median-ns")
}
