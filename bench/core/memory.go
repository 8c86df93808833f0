package main

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/host"
)

// privateKiB is the memory that only this process has written to. Go first gives back what it does not use.
func privateKiB() (float64, error) {
	debug.FreeOSMemory()
	return measure.KiB("/proc/self/smaps_rollup", "Private_Dirty")
}

// measureMemory keeps instances alive inside a call and takes the slope of private memory over their number. The host has no room for
// calls that wait without an instance, so all keep theirs.
func measureMemory(ctx context.Context, b *bench, s *subject) error {
	component, err := s.build(ctx, "tools.ts")
	if err != nil {
		return err
	}
	kib, err := heldKiB(ctx, component, 200, 1000)
	if err != nil {
		return err
	}
	b.add(row{Key: "private_kib_per_instance", What: "private memory per live instance, 1,000 live", Unit: "KiB", AtMost: 110, Value: kib})
	return nil
}

// heldKiB is the slope of private memory between few and many calls of the tool "hold" that wait.
func heldKiB(ctx context.Context, component *host.Component, few, many int) (float64, error) {
	g := &gate{waiting: make(chan struct{}, many)}
	ended := make(chan error, many)
	hold := func(n int) {
		for range n {
			go func() {
				_, err := component.Call(ctx, "hold", nil, host.Env{"clock": g})
				ended <- err
			}()
		}
		for range n {
			select {
			case <-g.waiting:
			case err := <-ended: // too early
				ended <- errors.Join(errors.New("a call did not wait"), err)
				return
			}
		}
	}
	hold(few)
	before, err := privateKiB()
	if err != nil {
		return 0, err
	}
	hold(many - few)
	after, err := privateKiB()
	if err != nil {
		return 0, err
	}
	g.open.SetReady()
	for range many {
		if err := <-ended; err != nil {
			return 0, err
		}
	}
	return (after - before) / float64(many-few), nil
}

// measureGrowth makes 10,000 calls one after the other, and compares the size of the process with its size after the first 1,000.
func measureGrowth(ctx context.Context, b *bench, s *subject) error {
	component, err := s.build(ctx, "cold.ts")
	if err != nil {
		return err
	}
	sizeAfter := func(calls int) (float64, error) {
		for range calls {
			if err := coldCall(ctx, component, s.env, nil); err != nil {
				return 0, err
			}
		}
		debug.FreeOSMemory()
		return measure.KiB("/proc/self/smaps_rollup", "Rss")
	}
	first, err := sizeAfter(1000)
	if err != nil {
		return err
	}
	last, err := sizeAfter(9000)
	if err != nil {
		return err
	}
	b.add(row{Key: "rss_growth_ratio", What: "size of the process after 10,000 calls / after 1,000", AtMost: 1.02, Value: last / first})
	b.add(row{Key: "rss_mib", What: "that size", Unit: "MiB", Value: last / 1024})
	return nil
}
