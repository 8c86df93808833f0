package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
)

// errKilled ends a call as the end of its process would.
var errKilled = errors.New("killed")

// logged is a journal in memory. After kill more entries or commits it fails, and what was not committed is lost.
type logged struct {
	entries   [][]byte
	committed int
	kill      int
}

func (l *logged) live() error {
	if l.kill--; l.kill < 0 {
		return errKilled
	}
	return nil
}

func (l *logged) Append(entry []byte) error {
	if err := l.live(); err != nil {
		return err
	}
	l.entries = append(l.entries, slices.Clone(entry))
	return nil
}

func (l *logged) Commit(context.Context) error {
	if err := l.live(); err != nil {
		return err
	}
	l.committed = len(l.entries)
	return nil
}

// till is a bucket whose increments come about once if exact is set, and that says how often each was made.
type till struct {
	exact bool
	mu    sync.Mutex
	done  map[abi.Once]int64
	value int64
}

func (*till) Interface() string { return "stile:capability/kv@0.1.0" }

func (t *till) Repeat(function string, _ []abi.Value) abi.Repeat {
	switch {
	case function == "bucket.get" || function == "bucket.list":
		return abi.Reads
	case t.exact:
		return abi.Repeats
	default:
		return abi.Interrupts
	}
}

func (t *till) Get(context.Context, string) (*string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := fmt.Sprint(t.value)
	return &v, nil
}
func (*till) Set(context.Context, string, string) error { return errors.ErrUnsupported }
func (*till) Delete(context.Context, string) (bool, error) {
	return false, errors.ErrUnsupported
}

func (*till) List(context.Context, string, uint32, *string) (page struct {
	Entries []struct{ Key, Value string }
	Cursor  *string
}, err error,
) {
	return page, errors.ErrUnsupported
}

func (t *till) Increment(ctx context.Context, _ string, by int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	once, ok := abi.OnceOf(ctx)
	if !ok {
		return 0, errors.New("the operation has no name")
	}
	if was, done := t.done[once]; done && t.exact {
		return was, nil
	}
	t.value += by
	t.done[once] = t.value
	return t.value, nil
}

func (*till) CompareAndSet(context.Context, string, *string, *string) (bool, error) {
	return false, errors.ErrUnsupported
}

// TestDurable kills calls at every entry and commit of their logs, and has them go on in other hosts, from their last state and the
// entries that were committed since. Each effect comes about once, or the guest is told that it may have.
func TestDurable(t *testing.T) {
	t.Parallel()
	const around = `const seen: any[] = [];`
	s := tool(around, `
		const rolled = Math.random();
		const began = await env.clock.now();
		let interrupted = 0;
		for (let i = 0; i < 5; i++) {
			try { seen.push(await env.till.increment("n", 1)); } catch (e: any) { interrupted++; seen.push(e.name); }
			if (i % 2 == 0) await env.clock.sleep(15);
		}
		await Promise.all([env.clock.sleep(20), env.clock.sleep(5).then(() => env.till.increment("n", 10).catch(() => { interrupted++; }))]);
		if (rolled !== rolled + 0 || await env.clock.now() < began + 60) throw new Error("time or chance changed");
		return { seen: seen.length, interrupted };`)
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{})
		hosts[i] = build(t, tools, s)
	}
	for _, exact := range []bool{true, false} {
		t.Run(fmt.Sprint("exact ", exact), func(t *testing.T) {
			t.Parallel()
			for kill := 0; ; kill++ {
				till := &till{exact: exact, done: map[abi.Once]int64{}}
				d := host.Durable{Run: "r", Idle: time.Millisecond}
				killed, slept, left := false, 0, kill
				for process := 0; ; process++ {
					if process > 40 {
						t.Fatal("it does not end")
					}
					l := &logged{kill: left}
					if killed {
						l.kill = 1 << 30
					}
					run := d
					run.Journal = l
					r, err := hosts[process%2].Do(t.Context(), host.Request{
						Tool: "t", Env: host.Env{"till": till, "clock": clock.System(), "random": random.System()}, Durable: &run,
					})
					var asleep *host.AsleepError
					switch {
					case errors.As(err, &asleep):
						slept++
						if len(asleep.Waits) == 0 || asleep.Waits[0].At.IsZero() {
							t.Fatalf("it waits for %v", asleep.Waits)
						}
						d.State, d.Log = asleep.State, nil
						left = l.kill
						continue
					case errors.Is(err, errKilled):
						killed = true
						d.Log = append(d.Log, l.entries[:l.committed]...)
						continue
					case err != nil:
						t.Fatal(err)
					}
					if slept == 0 {
						t.Error("it never slept")
					}
					out := string(r.Output)
					if exact && (till.value != 15 || out != `{"seen":5,"interrupted":0}`) || !exact && (till.value < 14 || till.value > 15 || !strings.HasPrefix(out, `{"seen":5,`)) {
						t.Errorf("killed at %d: the counter is %d, and the result %s", kill, till.value, out)
					}
					break
				}
				if !killed {
					t.Logf("%d places", kill)
					return
				}
			}
		})
	}
}
