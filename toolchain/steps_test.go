package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/usagetest"
)

// kept keeps the recording of the last call.
type kept struct{ last *host.Recording }

func (k *kept) Record(_ context.Context, r *host.Recording) { k.last = r }

// TestSteps makes calls in steps and in one piece: they end in the same way, after the same operations, and so do their replays.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body string }{
		{"nothing", `return 1;`},
		{"once", `await env.clock.sleep(1); return "slept";`},
		{"often", `let n = 0; for (let i = 0; i < 20; i++) { await env.clock.sleep(0.01); n += i; } return n;`},
		{"at once", `const a: number[] = []; await Promise.all([2, 1, 3].map(async (k) => { await env.clock.sleep(k * 20); a.push(k); })); return a.sort();`},
		{"after operations", `await env.store.set("k", "v"); await env.clock.sleep(1); return await env.store.get("k");`},
		{"races", `return Promise.race([env.clock.sleep(10000), env.clock.sleep(1).then(() => "won")]);`},
		{"timers", `return new Promise((done) => { const t = setInterval(() => { clearInterval(t); done("ticked"); }, 1); });`},
		{"aborts", `const s = AbortSignal.timeout(1); await new Promise((done) => s.addEventListener("abort", done)); return s.reason.name;`},
		{"fails after a wait", `await env.clock.sleep(1); throw new RangeError("late");`},
		{"is denied after a wait", `await env.clock.sleep(1); await env.store.get("secret");`},
		{"waits for nothing", `await env.clock.sleep(1); await new Promise(() => {});`},
		{"uses processor time in all steps", `for (;;) { const end = performance.now() + 20; while (performance.now() < end); await env.clock.sleep(1); }`},
		{"waits too long", `for (;;) await env.clock.sleep(30000);`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			type made struct {
				output string
				err    string
				ops    []string
				usage  int
			}
			var got [2]made
			for i, whole := range []bool{true, false} {
				var k kept
				_, tools := newToolchain(t, host.Options{WholeCalls: whole, Recorder: &k})
				component := build(t, tools, tool("", c.body))
				if !component.Stepwise() {
					t.Fatal("no steps")
				}
				limits := host.Limits{}
				switch c.name {
				case "waits too long":
					limits.Wall = 2 * time.Second // both wait before that
				case "uses processor time in all steps":
					limits.CPU = 100 * time.Millisecond
				}
				m := &got[i]
				r, err := component.Do(t.Context(), host.Request{
					Tool: "t", Env: host.Env{"clock": clock.System(), "store": newShelf()}, Limits: limits,
					Observe: func(o host.Operation) { m.ops = append(m.ops, o.Func+fmt.Sprint(o.Err != nil)) },
				})
				m.output, m.err, m.usage = string(r.Output), fmt.Sprint(err), r.Usage.Operations
				if r.Usage.Operations != len(m.ops) || k.last.Recorded > len(m.ops) {
					t.Errorf("%d operations, %d observed, %d recorded", r.Usage.Operations, len(m.ops), k.last.Recorded)
				}
				if replayed, err := component.Replay(t.Context(), k.last, host.ReplayOptions{}); err != nil || !replayed.Same && !replayed.Timed {
					t.Errorf("whole %v: the replay is %+v, %v", whole, replayed, err)
				}
			}
			if c.name == "uses processor time in all steps" || c.name == "at once" { // it depends on the machine how often it waits
				got[0].ops, got[1].ops, got[0].usage, got[1].usage = nil, nil, 0, 0
			}
			if !reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("in one piece %+v\nin steps %+v", got[0], got[1])
			}
		})
	}
}

// TestWaitingTakesNoThreads has calls wait, all started at once, and ends them by their caller.
func TestWaitingTakesNoThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads are counted on Linux")
	}
	_, tools := newToolchain(t, host.Options{})
	c := build(t, tools, tool("", `await env.clock.sleep(1e9);`))
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := usagetest.Threads()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const calls = 300
	var waiting, ended sync.WaitGroup
	for range calls {
		waiting.Add(1)
		ended.Go(func() {
			_, err := c.Do(ctx, host.Request{Tool: "t", Env: host.Env{"clock": clock.System()}, Observe: func(o host.Operation) {
				if strings.HasSuffix(o.Func, "subscribe") {
					waiting.Done()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if more := usagetest.Threads() - before; more > runtime.GOMAXPROCS(0)+32 {
		t.Errorf("%d calls take %d threads", calls, more)
	}
	cancel()
	ended.Wait()
}
