package contenders

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
)

// Each agent is called once in agentPeriod. A call lasts agentCall, and mostly waits. An agent is active 1% of the time.
const (
	agentPeriod = 10 * time.Second
	agentCall   = 100 * time.Millisecond
)

// measureIdle runs many agents in a separate process. Only a few of them are active at a time.
func measureIdle(ctx context.Context, s *bench.Suite) (err error) {
	agents := s.Size.OwnLive
	s.Tell(fmt.Sprintf("idle: %d agents", agents), 0, 1)
	w := &s.Workbench
	held, err := holdProcess(w.Command(ctx, "", w.Self, "agents", strconv.Itoa(agents), "--dir", w.Dir, "--engine", w.Engine))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	pid := held.Processes[0]
	before, err := measure.CPU(pid)
	if err != nil {
		return err
	}
	window := max(agentPeriod/5, 2*s.Size.Window)
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	after, err := measure.CPU(pid)
	if err != nil {
		return err
	}
	m, err := measure.Memory(pid)
	if err != nil {
		return err
	}
	return s.Write(bench.Line{Idle: &bench.IdlePoint{
		Contender: stile.Name, Agents: agents, Measured: agents, Active: agentCall.Seconds() / agentPeriod.Seconds(),
		MemoryMiB: m.Private / 1024, CPU: (after - before).Seconds() / window.Seconds(),
	}})
}

// ServeAgents runs n agents, writes a line to out when each has been called once, and ends when in ends.
func ServeAgents(ctx context.Context, w *bench.Workbench, n int, in io.Reader, out io.Writer) (err error) {
	o, err := openOurs(ctx, w, waits, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	images := min(100, n)
	var components []*host.Component
	for i := range images {
		component, err := o.tools.Build(ctx, o.source(bench.Source(bench.Compute, fmt.Sprint("agent-", i))))
		if err != nil {
			return err
		}
		components = append(components, component)
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		_, _ = bufio.NewReader(in).ReadString('\n') // until it ends
		end(errOver)
	}()
	env := host.Env{"clock": clock.System()}
	var running sync.WaitGroup
	defer running.Wait()
	begin := time.Now()
	for i := 0; ; i++ {
		if i == n {
			debug.FreeOSMemory()
			if _, err := fmt.Fprintln(out, "ready"); err != nil {
				return err
			}
		}
		due := begin.Add(agentPeriod / time.Duration(n) * time.Duration(i))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errOver) {
				return nil
			}
			return context.Cause(ctx)
		}
		running.Go(func() {
			if _, err := components[i%images].Call(ctx, "active", bench.HoldInput(), env); err != nil {
				end(err)
			}
		})
	}
}

var errOver = errors.New("the agents are no longer wanted")
