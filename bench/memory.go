package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
)

// measureMemory keeps growing numbers of idle isolates. The slope is the memory of one.
func (s *Suite) measureMemory(ctx context.Context) error {
	ready, err := s.prepare(ctx, Compute, true)
	for i, r := range ready {
		var last *MemoryPoint
		for _, n := range []int{20, 200, 1000, 10_000} {
			limit := s.Size.Live
			if r.contender.Own {
				limit = s.Size.OwnLive
			}
			if n > limit || err != nil || last != nil && !last.bears(n) {
				break
			}
			s.Tell(fmt.Sprintf("memory of %d %s", n, r.contender.Name), i, len(ready))
			if last, err = s.memoryPoint(ctx, r, n); err == nil {
				err = s.Write(Line{Memory: last})
			}
		}
	}
	return errors.Join(err, closeAll(ready))
}

// bears reports whether the machine has memory for n isolates and can start them in about a minute.
func (p *MemoryPoint) bears(n int) bool {
	available, err := measure.KiB("/proc/meminfo", "MemAvailable")
	times := float64(n) / float64(p.Live)
	return err == nil && max(p.ProportionalKiB, p.AvailableKiB)*times < available*0.7 && p.StartMS*times < 90_000
}

func (s *Suite) memoryPoint(ctx context.Context, r *runner, n int) (_ *MemoryPoint, err error) {
	line := &MemoryPoint{Contender: r.contender.Name, Live: n}
	debug.FreeOSMemory()
	before, err := measure.KiB("/proc/meminfo", "MemAvailable")
	if err != nil {
		return nil, err
	}
	start := time.Now()
	held, err := r.Runner.(Holder).Hold(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("hold %d of %s: %w", n, r.contender.Name, err)
	}
	line.StartMS = us(time.Since(start)) / 1e3
	defer func() {
		start := time.Now()
		err = errors.Join(err, held.Release())
		line.EndMS = us(time.Since(start)) / 1e3
	}()
	after, err := measure.KiB("/proc/meminfo", "MemAvailable")
	if err != nil {
		return nil, err
	}
	line.AvailableKiB, line.Processes = before-after, len(held.Processes)
	for _, pid := range held.Processes {
		m, err := measure.Memory(pid)
		if err != nil {
			return nil, err
		}
		line.PrivateKiB += m.Private
		line.ProportionalKiB += m.Proportional
	}
	for _, pid := range held.Daemons {
		m, err := measure.Memory(pid)
		if err != nil {
			return nil, err
		}
		line.DaemonKiB += m.Proportional
	}
	return line, nil
}
