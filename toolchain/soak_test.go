package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/usagetest"
)

// TestSoak is a moment of TestLongSoak.
func TestSoak(t *testing.T) {
	newSoak(t).round(200, 200*time.Millisecond)
}

// soak makes calls that end in all ways while they wait.
type soak struct {
	t             *testing.T
	outer, sleeps *host.Component
	toolbox       *tools.Toolbox
}

func newSoak(t *testing.T) *soak {
	_, chain := newToolchain(t, host.Options{Instances: 32, Limits: host.Limits{Wall: 10 * time.Minute}})
	s := &soak{t: t}
	s.sleeps = build(t, chain, tool("", `await env.clock.sleep(input.for); if (input.fail) throw new RangeError("late"); return input.for;`))
	s.outer = build(t, chain, tool("", `const a = env.tools.call("sleeps", { for: input.for }), b = env.tools.call("sleeps", { for: input.for / 2 });
		await env.clock.sleep(input.for); return (await a) + (await b);`))
	var err error
	if s.toolbox, err = tools.New(tools.Options{Resolve: func(string) (tools.Func, error) {
		return host.Callee{Component: s.sleeps, Tool: "t", Env: host.Env{"clock": clock.System()}}.Start, nil
	}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*host.Component{s.outer, s.sleeps} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// round makes so many calls at once, each of which waits for up to most, and waits for them.
func (s *soak) round(calls int, most time.Duration) {
	var running sync.WaitGroup
	for n := range calls {
		running.Go(func() {
			if err := s.call(n%6, 2*(1+rand.Int64N(most.Milliseconds()/2)), rand.N(most)); err != nil {
				s.t.Error(err)
			}
		})
	}
	running.Wait()
}

// call makes a call that waits for so many milliseconds, and ends it in one of the ways.
func (s *soak) call(way int, wait int64, moment time.Duration) error {
	r := host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"for":%d}`, wait), Env: host.Env{"clock": clock.System()}}
	component, want := s.sleeps, fmt.Sprint(wait)
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var like func(error) bool // errors that may end the call
	switch way {
	case 1: // cancelled
		defer time.AfterFunc(moment, cancel).Stop()
		like = func(err error) bool { return errors.Is(err, context.Canceled) }
	case 2: // revoked
		g := host.NewGrant(clock.System(), host.GrantOptions{})
		r.Env["clock"] = g
		defer time.AfterFunc(moment, func() { g.Revoke("enough") }).Stop()
		like = errkind.Is[*host.GuestError]
	case 3: // fails
		r.Input = fmt.Appendf(nil, `{"for":%d,"fail":true}`, wait)
		want, like = "", errkind.Is[*host.GuestError]
	case 4: // takes too long
		r.Limits.Wall = moment + time.Millisecond
		like = errkind.Is[*host.LimitError]
	case 5: // waits for others, too
		component, want, r.Env["tools"] = s.outer, fmt.Sprint(wait+wait/2), s.toolbox
	}
	result, err := component.Do(ctx, r)
	switch {
	case err == nil && string(result.Output) == want:
		return nil
	case err != nil && like != nil && like(err):
		return nil
	}
	return fmt.Errorf("way %d, %d ms: got %s, %w", way, wait, result.Output, err)
}

// use is what the process has.
type use struct{ kib, threads, files, goroutines int }

func used(t *testing.T) use {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return use{usagetest.Resident(), usagetest.Threads(), len(files), runtime.NumGoroutine()}
}
