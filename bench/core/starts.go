package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/bench/internal/trials"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/recording"
)

const (
	haversine = `{"lat1":48.8566,"lon1":2.3522,"lat2":51.5074,"lon2":-0.1278}`
	// km begins every answer to it.
	km = `{"km":343.556`
)

// coldCall is a call in a fresh instance, from JSON to JSON, with two handles that are both used. If there is a recorder, it takes
// the recording.
func coldCall(ctx context.Context, c *host.Component, env host.Env, recorder host.Recorder) error {
	result, err := c.Do(ctx, host.Request{Tool: "haversine", Input: []byte(haversine), Env: env, Recorder: recorder})
	if err == nil && !bytes.HasPrefix(result.Output, []byte(km)) {
		err = fmt.Errorf("a wrong answer: %s", result.Output)
	}
	return err
}

// timed runs f n times and returns how long each took, in the unit.
func timed(trials int, unit time.Duration, f func() error) ([]float64, error) {
	round := make([]float64, trials)
	for i := range round {
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		round[i] = float64(time.Since(start)) / float64(unit)
	}
	return round, nil
}

// measureCold times cold calls, and those of the prototype, in turns.
func measureCold(ctx context.Context, b *bench, s *subject) (err error) {
	component, err := s.build(ctx, "cold.ts")
	if err != nil {
		return err
	}
	if err := b.prepareNative(ctx, s); err != nil {
		return err
	}
	prototype, err := startNative(ctx, b.trials, "prototype", b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prototype.close()) }()
	calls, err := recording.Open(ctx, filepath.Join(b.dir, "calls.sqlite"), recording.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, calls.Close()) }()
	call := func() error { return coldCall(ctx, component, s.env, nil) }
	recordedCall := func() error { return coldCall(ctx, component, s.env, calls) }
	var stile, recorded, written, result, whole measure.Series
	for range b.rounds(60) {
		// The first calls of a round find the caches full of the other's data.
		if _, err := timed(20, time.Microsecond, call); err != nil {
			return err
		}
		round, err := timed(100, time.Microsecond, call)
		if err != nil {
			return err
		}
		stile = append(stile, round)
		if round, err = timed(100, time.Microsecond, recordedCall); err != nil {
			return err
		}
		recorded = append(recorded, round)
		start := time.Now()
		calls.Flush()
		written = append(written, []float64{microseconds(time.Since(start))})
		if _, _, err := prototype.round(20); err != nil {
			return err
		}
		toResult, toEnd, err := prototype.round(100)
		if err != nil {
			return err
		}
		result, whole = append(result, toResult), append(whole, toEnd)
	}
	b.add(row{Key: "cold_call_us", What: "cold call, two handles, instance dropped", Unit: "us"}.of(stile))
	b.add(row{Key: "recorded_call_us", What: "the same, recorded", Unit: "us"}.of(recorded))
	b.add(row{Key: "recorded_over_cold", What: "recorded cold call / cold call", AtMost: 1.1}.ratio(recorded, stile))
	b.add(row{Key: "recorded_wait_us", What: "until the last of 100 recorded calls are on disk", Unit: "us"}.of(written))
	b.add(row{Key: "prototype_call_us", What: "the same on the prototype, instance dropped", Unit: "us"}.of(whole))
	b.add(row{Key: "prototype_result_us", What: "the same on the prototype, until the result", Unit: "us"}.of(result))
	b.add(row{Key: "cold_over_prototype", What: "cold call / prototype, both with the drop", AtMost: 1.1}.ratio(stile, whole))
	b.add(row{Key: "cold_over_prototype_result", What: "cold call with the drop / prototype without it"}.ratio(stile, result))
	return nil
}

// prepareNative makes the C program's input: the shared engine, the prototype, and the component of cold.ts.
func (b *bench) prepareNative(ctx context.Context, s *subject) error {
	if b.trials != "" {
		return nil
	}
	src, err := source("cold.ts", "")
	if err != nil {
		return err
	}
	component, err := s.tools.Assemble(ctx, src, false)
	if err != nil {
		return err
	}
	standalone, err := s.tools.Assemble(ctx, src, true)
	if err != nil {
		return err
	}
	_, whole, err := sharedEngine(standalone)
	if err != nil {
		return err
	}
	name, wasm := s.tools.Engine()
	engine, err := wasm(ctx)
	if err != nil {
		return err
	}
	if !bytes.Contains(component, []byte(name)) {
		return fmt.Errorf("the component does not import %s", name)
	}
	memory, err := takeSnapshot(b.quickjs)
	if err != nil {
		return fmt.Errorf("make the prototype: %w", err)
	}
	if memory.pages, err = pagesOf(whole); err != nil {
		return err
	}
	prototype, err := memory.component()
	if err != nil {
		return fmt.Errorf("make the prototype: %w", err)
	}
	for file, content := range map[string][]byte{"engine.wasm": engine, "prototype-engine.wasm": whole, "component.wasm": component, "prototype.wasm": prototype} {
		if err := os.WriteFile(filepath.Join(b.dir, file), content, 0o600); err != nil {
			return err
		}
	}
	b.engine = name
	b.trials, err = trials.Compile(ctx, b.dir)
	return err
}

// measureInstantiate times the start of an instance alone, in the host and in a loop in C, in turns. The host's part is a benchmark
// inside its package, because the API cannot start an instance without a call.
func measureInstantiate(ctx context.Context, b *bench, s *subject) (err error) {
	if err := b.prepareNative(ctx, s); err != nil {
		return err
	}
	loop, err := startNative(ctx, b.trials, "instantiate", b.dir, b.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	binary := filepath.Join(b.dir, "host.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "github.com/stilehost/stile/host").CombinedOutput(); err != nil {
		return fmt.Errorf("compile the host's benchmark: %w\n%s", err, out)
	}
	var stile, c measure.Series
	for range b.rounds(20) {
		median, err := b.hostInstantiate(ctx, binary, 300)
		if err != nil {
			return err
		}
		stile = append(stile, []float64{median})
		if _, _, err := loop.round(100); err != nil {
			return err
		}
		started, _, err := loop.round(300)
		if err != nil {
			return err
		}
		c = append(c, started)
	}
	b.add(row{Key: "instantiate_us", What: "instantiate alone", Unit: "us"}.of(stile))
	b.add(row{Key: "instantiate_c_us", What: "the same component in a loop in C", Unit: "us"}.of(c))
	b.add(row{Key: "instantiate_over_c", What: "instantiate / C loop", AtMost: 1.25}.ratio(stile, c))
	return nil
}

// hostInstantiate returns the median of the host's own benchmark, in microseconds.
func (b *bench) hostInstantiate(ctx context.Context, binary string, trials int) (float64, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench=^BenchmarkInstantiate$", fmt.Sprintf("-test.benchtime=%dx", trials))
	cmd.Env = append(os.Environ(), "STILE_BENCH_DIR="+b.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run the host's benchmark: %w\n%s", err, out)
	}
	fields := strings.Fields(string(out))
	for i, f := range fields {
		if f == "median-ns" {
			ns, err := strconv.ParseFloat(fields[i-1], 64)
			return ns / 1e3, err
		}
	}
	return 0, errors.New("the host's benchmark reported no median")
}
