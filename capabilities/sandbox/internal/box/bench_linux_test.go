package box

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkRuntimes starts a box, runs a command in it, and closes it, with one runtime after the other. It reports medians, those of crun
// in ms and the others' as multiples of crun's.
func BenchmarkRuntimes(b *testing.B) {
	s, err := docker()
	if err != nil {
		b.Fatal(err)
	}
	dockerStarted = true
	b.Setenv("DOCKER_HOST", s.Host)
	dir := b.TempDir()
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, runtime := range Runtimes {
			lap := time.Now()
			done := func(what string, err error) {
				b.Helper()
				if err != nil {
					b.Fatal(err)
				}
				took[runtime+"-"+what] = append(took[runtime+"-"+what], time.Since(lap))
				lap = time.Now()
			}
			box, err := Start(b.Context(), Options{Dir: dir, Runtime: runtime, Storage: inMemory}, Root{}, testLimits)
			done("start", err)
			_, err = box.Run(b.Context(), Process{Args: []string{"/bin/true"}, Output: func(Stream, []byte) {}})
			done("command", err)
			done("close", box.Close())
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])/2])
	}
	for _, what := range []string{"start", "command", "close"} {
		first := median("crun-" + what)
		b.ReportMetric(first/1e6, "crun-"+what+"-ms")
		for _, runtime := range Runtimes[1:] {
			b.ReportMetric(median(runtime+"-"+what)/first, runtime+"-"+what+"-x")
		}
	}
}
