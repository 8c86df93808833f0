package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
)

// measureThroughput counts trials by 1, 2, 4 and 16 callers at once. Then it starts trials at random moments, at half and at nine
// tenths of the highest rate, as independent users would: a late trial delays the ones after it. It leaves out contenders that take
// seconds, because 16 at once would take minutes.
func (s *Suite) measureThroughput(ctx context.Context) error {
	ready, err := s.prepare(ctx, Compute, false)
	for i, r := range ready {
		if err != nil {
			break
		}
		if r.typical > 2*time.Second {
			continue
		}
		err = s.throughputOf(ctx, r, func(what string) {
			s.Tell(fmt.Sprintf("throughput: %s, %s", r.contender.Name, what), i, len(ready))
		})
	}
	return errors.Join(err, closeAll(ready))
}

func (s *Suite) throughputOf(ctx context.Context, r *runner, progress func(string)) error {
	highest := 0.0
	for _, callers := range []int{1, 2, 4, 16} {
		progress(fmt.Sprintf("%d callers", callers))
		took, rate, err := s.closedLoop(ctx, r, callers)
		if err != nil {
			return fmt.Errorf("%s, %d callers: %w", r.contender.Name, callers, err)
		}
		highest = max(highest, rate)
		if err := s.Write(Line{Throughput: point(r, took, ThroughputPoint{Callers: callers, PerSecond: rate})}); err != nil {
			return err
		}
	}
	for _, load := range []float64{0.5, 0.9} {
		progress(fmt.Sprintf("at %.0f%%", load*100))
		took, err := s.openLoop(ctx, r, highest*load)
		if err != nil {
			return fmt.Errorf("%s, at %.0f%%: %w", r.contender.Name, load*100, err)
		}
		if err := s.Write(Line{Throughput: point(r, took, ThroughputPoint{Load: load, PerSecond: highest * load})}); err != nil {
			return err
		}
	}
	return nil
}

func point(r *runner, took []float64, p ThroughputPoint) *ThroughputPoint {
	p.Contender = r.contender.Name
	p.P50US, p.P95US, p.P99US = measure.Quantile(took, 0.5), measure.Quantile(took, 0.95), measure.Quantile(took, 0.99)
	return &p
}

// window is how long to measure a contender, so that slow ones have some trials too.
func (s *Suite) window(r *runner) time.Duration { return max(s.Size.Window, 10*r.typical) }

// closedLoop lets each caller make one trial after the other. The rate covers the time until the last trial has ended.
func (s *Suite) closedLoop(ctx context.Context, r *runner, callers int) (took []float64, rate float64, err error) {
	var mu sync.Mutex // guards the counts of r, took and err
	var running sync.WaitGroup
	start := time.Now()
	for range callers {
		running.Go(func() {
			for time.Since(start) < s.window(r) {
				mu.Lock()
				t, want := r.next()
				failed := err != nil
				mu.Unlock()
				if failed {
					return
				}
				_, end, failure := r.try(ctx, t, want)
				mu.Lock()
				took, err = append(took, us(end)), errors.Join(err, failure)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return took, float64(len(took)) / time.Since(start).Seconds(), err
}

// openLoop starts trials at a rate, each on time, whatever became of the others. Latencies count from that time.
func (s *Suite) openLoop(ctx context.Context, r *runner, rate float64) (took []float64, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	start := time.Now()
	for due := time.Duration(0); due < s.window(r); due += time.Duration(s.random.ExpFloat64() / rate * float64(time.Second)) {
		if wait := due - time.Since(start); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		mu.Lock()
		failed := err != nil
		mu.Unlock()
		if failed || ctx.Err() != nil {
			break
		}
		mu.Lock()
		t, want := r.next()
		mu.Unlock()
		running.Go(func() {
			_, _, failure := r.try(ctx, t, want)
			late := time.Since(start) - due
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, us(late)), errors.Join(err, failure)
		})
	}
	running.Wait()
	return took, errors.Join(err, ctx.Err())
}
