package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/recording"
)

// measureSave times what happens between saving a file and being able to call its tool: bundle, image, component, compile, load.
func measureSave(ctx context.Context, b *bench, s *subject) error {
	const input = `{"today":"2026-03-01","invoices":[{"number":"7","customer":"Ada","date":"2026-01-30","currency":"EUR","lines":[{"description":"tea","quantity":3,"price":450}]}]}`
	var saved, called measure.Series
	save := func() error {
		id := fmt.Sprint(time.Now().UnixNano())
		src, err := source("saved.ts", id)
		if err != nil {
			return err
		}
		start := time.Now()
		component, err := s.tools.Build(ctx, src)
		if err != nil {
			return err
		}
		callable := time.Since(start)
		out, err := component.Call(ctx, "report", []byte(input), s.env)
		if err != nil {
			return err
		}
		answered := time.Since(start)
		var answer struct{ Build string }
		if err := json.Unmarshal(out, &answer); err != nil || answer.Build != id {
			return fmt.Errorf("the answer of another save: %s", out)
		}
		saved = append(saved, []float64{milliseconds(callable)})
		called = append(called, []float64{milliseconds(answered)})
		return component.Close()
	}
	for range 5 + b.rounds(60) {
		if err := save(); err != nil {
			return err
		}
	}
	b.add(row{Key: "save_to_callable_ms", What: "save to callable, 5 KB of TypeScript", Unit: "ms", AtMost: 30}.of(saved[5:]))
	b.add(row{Key: "save_to_result_ms", What: "save to first result", Unit: "ms"}.of(called[5:]))
	return nil
}

// measureCapability times kv.get from TypeScript, as the slope between calls that do it rarely and often, minus the same get made in
// Go.
func measureCapability(ctx context.Context, b *bench, s *subject) error {
	component, err := s.build(ctx, "tools.ts")
	if err != nil {
		return err
	}
	const few, many = 100, 1100
	gets := func(n int) (time.Duration, error) {
		input := fmt.Appendf(nil, `{"times":%d}`, n)
		start := time.Now()
		_, err := component.Call(ctx, "gets", input, s.env)
		return time.Since(start), err
	}
	bucket := s.store.Bucket("bench")
	var guest, direct, difference measure.Series
	for range b.rounds(40) {
		short, err := gets(few)
		if err != nil {
			return err
		}
		long, err := gets(many)
		if err != nil {
			return err
		}
		start := time.Now()
		for range many - few {
			if _, err := bucket.Get(ctx, "present"); err != nil {
				return err
			}
		}
		inGo := microseconds(time.Since(start)) / (many - few)
		inGuest := microseconds(long-short) / (many - few)
		guest, direct = append(guest, []float64{inGuest}), append(direct, []float64{inGo})
		difference = append(difference, []float64{inGuest - inGo})
	}
	b.add(row{Key: "capability_call_us", What: "kv.get from TypeScript, less the same in Go", Unit: "us", AtMost: 15}.of(difference))
	b.add(row{Key: "capability_guest_us", What: "kv.get from TypeScript", Unit: "us"}.of(guest))
	b.add(row{Key: "capability_go_us", What: "kv.get from Go", Unit: "us"}.of(direct))
	return nil
}

// measureThroughput counts cold calls a second on one goroutine and on two, in turns.
func measureThroughput(ctx context.Context, b *bench, s *subject) (err error) {
	component, err := s.build(ctx, "cold.ts")
	if err != nil {
		return err
	}
	calls, err := recording.Open(ctx, filepath.Join(b.dir, "throughput.sqlite"), recording.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, calls.Close()) }()
	rate := func(goroutines int, recorder host.Recorder) (float64, error) {
		const window = time.Second
		var made atomic.Int64
		errs := make([]error, goroutines)
		start := time.Now()
		var running sync.WaitGroup
		for g := range goroutines {
			running.Go(func() {
				for time.Since(start) < window && errs[g] == nil {
					errs[g] = coldCall(ctx, component, s.env, recorder)
					made.Add(1)
				}
			})
		}
		running.Wait()
		calls.Flush() // a recording counts once it is on disk
		return float64(made.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
	}
	var one, two, recorded measure.Series
	for range b.rounds(10) {
		alone, err := rate(1, nil)
		if err != nil {
			return err
		}
		together, err := rate(2, nil)
		if err != nil {
			return err
		}
		kept, err := rate(2, calls)
		if err != nil {
			return err
		}
		one, two, recorded = append(one, []float64{alone}), append(two, []float64{together}), append(recorded, []float64{kept})
	}
	b.add(row{Key: "calls_per_second_1", What: "fresh calls a second, one thread", Unit: "/s", AtLeast: 10_000}.of(one))
	b.add(row{Key: "calls_per_second_2", What: "fresh calls a second, two threads", Unit: "/s"}.of(two))
	b.add(row{Key: "calls_per_second_2_over_1", What: "two threads / one", AtLeast: 1.7}.ratio(two, one))
	b.add(row{Key: "recorded_calls_per_second_2", What: "... recorded, written to disk", Unit: "/s"}.of(recorded))
	return nil
}

// measureEnd times how late a guest that loops for ever ends.
func measureEnd(ctx context.Context, b *bench, s *subject) error {
	component, err := s.build(ctx, "tools.ts")
	if err != nil {
		return err
	}
	const limit = 100 * time.Millisecond
	var late measure.Series
	worst := 0.0
	for range b.rounds(50) {
		start := time.Now()
		_, err := component.Do(ctx, host.Request{Tool: "spin", Limits: host.Limits{CPU: limit}})
		took := milliseconds(time.Since(start) - limit)
		var exceeded *host.LimitError
		if !errors.As(err, &exceeded) || exceeded.Limit != "cpu" {
			return fmt.Errorf("a loop ended with %w", err)
		}
		late = append(late, []float64{took})
		worst = max(worst, took)
	}
	b.add(row{Key: "epoch_end_late_ms", What: "end of an endless loop, after its limit", Unit: "ms"}.of(late))
	b.add(row{Key: "epoch_end_late_max_ms", What: "the latest of them", Unit: "ms", AtMost: 100, Value: worst})
	return nil
}

// gate is a clock whose waits last until it is opened.
type gate struct {
	waiting chan struct{} // receives one element per wait
	open    abi.Pollable
}

func (*gate) Interface() string { return clock.Interface }

// Now is `now`.
func (*gate) Now(context.Context) uint64 { return 0 }

// Monotonic is `monotonic`.
func (*gate) Monotonic(context.Context) uint64 { return 0 }

// Subscribe is `subscribe`.
func (g *gate) Subscribe(context.Context, uint64) *abi.Pollable {
	g.waiting <- struct{}{}
	return &g.open
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
