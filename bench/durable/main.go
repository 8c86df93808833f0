// Command durable measures durable calls: what a sleeping one takes on disk and in memory, how long it takes to wake, how many operations are logged
// in a second, and how long a process takes to begin that finds many sleeping runs. Calls that are not durable run beside them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// source has a tool that waits with ten notes in memory, and one that makes operations.
const source = `import { extension } from "stile";
export default extension({ tools: {
  wait: { description: "Waits.", input: { type: "object" }, run: async ({ until }: any, env: any) => {
    const notes = Array.from({ length: 10 }, (_, i) => ({ title: "note " + i, text: "The text of note " + i }));
    await env.clock.sleep(Math.max(0, until - await env.clock.now()));
    await env.store.get("k");
    return notes.length;
  } },
  listen: { description: "Waits for a message.", input: { type: "object" }, run: async (_: any, env: any) => {
    const { data } = await env.mail.receive("go");
    await env.store.get("k");
    return data;
  } },
  work: { description: "Works.", input: { type: "object" }, run: async ({ reads, writes }: any, env: any) => {
    for (let w = 0; w < writes; w++) {
      for (let r = 0; r < reads; r++) await env.store.get("k");
      await env.store.increment("n", 1);
    }
    return writes;
  } },
} });`

func main() {
	sleeping := flag.Int("sleeping", 100_000, "how many runs sleep")
	waking := flag.Int("waking", 1000, "how many of them wake at once")
	out := flag.String("out", "", "file for the figures, as JSON")
	only := flag.String("idle", "", "only print the resident memory of a process that works on the sleeping runs of a directory")
	flag.Parse()
	err := error(nil)
	if *only != "" {
		err = open(context.Background(), *only)
	} else {
		err = run(context.Background(), *sleeping, *waking, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/durable:", err)
		os.Exit(1)
	}
}

// bench is what is measured.
type bench struct {
	dir    string
	host   *host.Host
	store  *kv.Store
	runs   *durable.Runs
	spec   durable.Spec
	direct *host.Component

	mu    sync.Mutex
	woken []time.Duration // from when a run is due to the end of the first operation of its code

	heard chan time.Time // when a run that got a message had come so far
}

// timed is a clock that says when a run that sleeps is due.
type timed struct {
	*clock.Clock
	due func(time.Time)
}

func (t *timed) Reopen(ctx context.Context, state []byte) (any, error) {
	v, err := t.Clock.Reopen(ctx, state)
	if err != nil {
		return nil, err
	}
	return &timedRunning{v.(*clock.Running), t.due}, nil
}

type timedRunning struct {
	*clock.Running
	due func(time.Time)
}

func (t *timedRunning) Restore(ctx context.Context, resource string, state []byte) (any, error) {
	var at time.Time
	if err := at.UnmarshalText(state); err != nil {
		return nil, err
	}
	t.due(at)
	return t.Running.Restore(ctx, resource, state)
}

// request is the authority of a run. The first operation of kv after it is where a woken run has come to its code.
func (b *bench) request() host.Request {
	var due time.Time
	first := true
	return host.Request{
		Env:    host.Env{"clock": &timed{clock.System(), func(at time.Time) { due = at }}, "store": b.store.Bucket("b"), "mail": &signals.Mailboxes{}},
		Limits: host.Limits{CPU: time.Hour, Wall: time.Hour},
		Observe: func(o host.Operation) {
			if o.Interface != kv.Interface || !strings.HasSuffix(o.Func, "bucket.get") {
				return
			}
			if b.heard != nil {
				b.heard <- time.Now()
			}
			if first && !due.IsZero() {
				first = false
				b.mu.Lock()
				b.woken = append(b.woken, time.Since(due))
				b.mu.Unlock()
			}
		},
	}
}

func (b *bench) open(ctx context.Context) (err error) {
	b.runs, err = durable.Open(ctx, durable.Options{
		Dir: b.dir, Key: make([]byte, durable.KeySize), Host: b.host, Idle: 50 * time.Millisecond, Live: 200,
		Request: func(context.Context, durable.Info) (durable.Authority, error) {
			return durable.Authority{Request: b.request()}, nil
		},
	})
	return err
}

// begin makes what runs need.
func begin(ctx context.Context, dir string) (b *bench, err error) {
	b = &bench{dir: dir}
	if b.host, err = host.New(ctx, host.Options{}); err != nil {
		return nil, err
	}
	if b.store, err = kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{}); err != nil {
		return nil, errors.Join(err, b.host.Close())
	}
	return b, nil
}

func (b *bench) end() error { return errors.Join(b.store.Close(), b.host.Close()) }

func run(ctx context.Context, sleeping, waking int, out string) (err error) {
	dir, err := os.MkdirTemp("", "bench-durable-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := begin(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	figures := map[string]float64{}
	for _, measure := range []func(context.Context, map[string]float64) error{
		b.operations,
		func(ctx context.Context, f map[string]float64) error { return b.sleep(ctx, f, sleeping) },
		func(ctx context.Context, f map[string]float64) error { return b.wake(ctx, f, waking) },
		b.listen,
		nodes,
	} {
		if err := measure(ctx, figures); err != nil {
			return errors.Join(err, b.runs.Close()) //nolint:contextcheck // it takes none
		}
	}
	if err := b.runs.Close(); err != nil { //nolint:contextcheck // it takes none
		return err
	}
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	if out == "" {
		return nil
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func (b *bench) build(ctx context.Context) error {
	t, err := toolchain.New(ctx, b.host, toolchain.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	wasm, err := t.Assemble(ctx, toolchain.Source{
		FS: fstest.MapFS{"tool.ts": {Data: []byte(source)}}, Entry: "tool.ts", Bindings: map[string]string{"store": kv.Interface, "clock": clock.Interface, "mail": signals.Interface},
	}, false)
	if err != nil {
		return err
	}
	name, engine := t.Engine()
	module, err := engine(ctx)
	if err != nil {
		return err
	}
	b.spec = durable.Spec{Component: durable.CodeOf(wasm), Modules: durable.Modules{name: durable.CodeOf(module).Read}}
	if _, err := b.host.AddModule(ctx, module); err != nil {
		return err
	}
	b.direct, err = b.host.Load(ctx, wasm)
	return err
}

// start starts a run.
func (b *bench) start(ctx context.Context, tool string, input any) (string, error) {
	s := b.spec
	s.Tool = tool
	var err error
	if s.Input, err = json.Marshal(input); err != nil {
		return "", err
	}
	info, _, err := b.runs.Start(ctx, s)
	return info.Name, err
}

// operations measures how many operations a second are logged, and how many are made without a log.
func (b *bench) operations(ctx context.Context, figures map[string]float64) error {
	const calls, reads, writes = 64, 20, 10
	input := map[string]int{"reads": reads, "writes": writes}
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	began := time.Now()
	var all sync.WaitGroup
	failed := make([]error, calls)
	for i := range calls {
		all.Go(func() {
			r := b.request()
			r.Tool, r.Input = "work", text
			_, failed[i] = b.direct.Do(ctx, r)
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	plain := time.Since(began)
	names := make([]string, calls)
	for i := range names {
		if names[i], err = b.start(ctx, "work", input); err != nil {
			return err
		}
	}
	began = time.Now()
	b.runs.Work()
	for _, name := range names {
		if r, err := b.runs.Wait(ctx, name); err != nil || r.Err() != nil {
			return errors.Join(err, r.Err())
		}
	}
	logged := time.Since(began)
	n := float64(calls * writes * (reads + 1))
	figures["operations a second"], figures["logged operations a second"] = n/plain.Seconds(), n/logged.Seconds()
	return nil
}

// sleep measures what sleeping runs take.
func (b *bench) sleep(ctx context.Context, figures map[string]float64, n int) error {
	before, file := resident(), b.size()
	names := make([]string, n)
	until := time.Now().Add(24 * time.Hour).UnixMilli()
	began := time.Now()
	for i := range names {
		var err error
		if names[i], err = b.start(ctx, "wait", map[string]int64{"until": until}); err != nil {
			return err
		}
	}
	for _, name := range names {
		for {
			r, err := b.runs.Get(ctx, name)
			if err != nil {
				return err
			}
			if r.State == durable.Asleep {
				break
			}
			if r.State.Final() {
				return fmt.Errorf("run %s is %s: %s", name, r.State, r.Reason)
			}
			time.Sleep(time.Millisecond)
		}
	}
	figures["sleeping runs"] = float64(n)
	figures["milliseconds to start one and put it to sleep"] = time.Since(began).Seconds() * 1000 / float64(n)
	figures["bytes of a sleeping run on disk"] = float64(b.size()-file) / float64(n)
	if err := b.runs.Close(); err != nil { //nolint:contextcheck // it takes none
		return err
	}
	began = time.Now()
	if err := b.open(ctx); err != nil {
		return err
	}
	b.runs.Work()
	figures["milliseconds to open a store of them"] = time.Since(began).Seconds() * 1000
	name, err := b.start(ctx, "work", map[string]int{"reads": 1, "writes": 1})
	if err != nil {
		return err
	}
	if r, err := b.runs.Wait(ctx, name); err != nil || r.Err() != nil {
		return errors.Join(err, r.Err())
	}
	figures["milliseconds until a new run has ended there"] = time.Since(began).Seconds() * 1000
	figures["MB of resident memory for these, and for having put them to sleep"] = float64(resident()-before) / 1e6
	full, err := idle(ctx, b.dir)
	if err != nil {
		return err
	}
	none, err := os.MkdirTemp(b.dir, "none-")
	if err != nil {
		return err
	}
	empty, err := idle(ctx, none)
	figures["MB of resident memory for these in a process that has only opened the store"] = float64(full-empty) / 1e6
	return err
}

// idle returns the resident memory of a process that works on the runs of a directory, none of which is due.
func idle(ctx context.Context, dir string) (bytes int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-idle", dir)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(text), &bytes)
	return bytes, err
}

// open prints the resident memory of this process once it has worked for a while on the runs of a directory.
func open(ctx context.Context, dir string) (err error) {
	b, err := begin(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	b.runs.Work()
	time.Sleep(3 * time.Second) // it has looked for what to do a few times
	fmt.Println(resident())
	return b.runs.Close() //nolint:contextcheck // it takes none
}

// wake measures how long it takes to wake many at once, and each of them.
func (b *bench) wake(ctx context.Context, figures map[string]float64, n int) error {
	at := time.Now().Add(time.Duration(n)*5*time.Millisecond + 2*time.Second)
	names := make([]string, n)
	for i := range names {
		var err error
		if names[i], err = b.start(ctx, "wait", map[string]int64{"until": at.UnixMilli()}); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.woken = nil
	b.mu.Unlock()
	for _, name := range names {
		if r, err := b.runs.Wait(ctx, name); err != nil || r.Err() != nil {
			return errors.Join(err, r.Err())
		}
	}
	figures["waking at once"] = float64(n)
	figures["milliseconds until all of them have ended"] = time.Since(at).Seconds() * 1000

	single := make([]string, 50)
	b.mu.Lock()
	b.woken = nil
	b.mu.Unlock()
	for i := range single {
		var err error
		if single[i], err = b.start(ctx, "wait", map[string]int64{"until": time.Now().Add(time.Second + time.Duration(i)*50*time.Millisecond).UnixMilli()}); err != nil {
			return err
		}
	}
	for _, name := range single {
		if r, err := b.runs.Wait(ctx, name); err != nil || r.Err() != nil {
			return errors.Join(err, r.Err())
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.woken)
	if len(b.woken) == 0 {
		return errors.New("no run woke")
	}
	figures["milliseconds from due to running code, p50"] = b.woken[len(b.woken)/2].Seconds() * 1000
	figures["milliseconds of these that a timer is late, p50"] = late().Seconds() * 1000
	return nil
}

// listen measures how long it takes until a sleeping run has got a message.
func (b *bench) listen(ctx context.Context, figures map[string]float64) error {
	b.heard = make(chan time.Time, 1)
	defer func() { b.heard = nil }()
	var sent, woken []time.Duration
	for range 100 {
		name, err := b.start(ctx, "listen", struct{}{})
		if err != nil {
			return err
		}
		for r, err := b.runs.Get(ctx, name); r.State != durable.Asleep; r, err = b.runs.Get(ctx, name) {
			if err != nil || r.State.Final() {
				return fmt.Errorf("run %s is %s: %w", name, r.State, err)
			}
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		if _, err := b.runs.Signal(ctx, name, "go", durable.Message{Data: []byte("1")}); err != nil {
			return err
		}
		delivered := time.Now()
		at := <-b.heard
		sent, woken = append(sent, delivered.Sub(began)), append(woken, at.Sub(delivered))
		if r, err := b.runs.Wait(ctx, name); err != nil || r.Err() != nil {
			return errors.Join(err, r.Err())
		}
	}
	slices.Sort(sent)
	slices.Sort(woken)
	figures["milliseconds to write a message down, p50"] = sent[len(sent)/2].Seconds() * 1000
	figures["milliseconds from there to running code, p50"] = woken[len(woken)/2].Seconds() * 1000
	return nil
}

// late is how late a timer of Go is in a process that does nothing else.
func late() time.Duration {
	rung := make(chan time.Time, 1)
	times := make([]time.Duration, 50)
	for i := range times {
		at := time.Now().Add(10*time.Millisecond + time.Duration(i)*20*time.Microsecond)
		time.AfterFunc(time.Until(at), func() { rung <- time.Now() })
		times[i] = (<-rung).Sub(at)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// size is how much the file of runs takes, with its log.
func (b *bench) size() (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(b.dir, durable.File+suffix)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// resident is the memory of this process, after Go has given back what it can. Pages that instances share count once.
func resident() int64 {
	debug.FreeOSMemory()
	return kilobytes("/proc/self/smaps_rollup", "Pss:")
}

// kilobytes reads a field of a file of the system, in bytes.
func kilobytes(file, field string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), field)
	var n int64
	_, _ = fmt.Sscan(rest, &n)
	return n << 10
}

// nodes measures what waiting processes of Node.js take, each with its share of what they share.
func nodes(ctx context.Context, figures map[string]float64) error {
	const n = 20
	ctx, cancel := context.WithCancel(ctx)
	var all []*exec.Cmd
	defer func() {
		cancel()
		for _, c := range all {
			_ = c.Wait()
		}
	}()
	total := func(count int) (sum int64, err error) {
		for len(all) < count {
			c := exec.CommandContext(ctx, "node", "-e", `const notes = Array.from({ length: 10 }, (_, i) => ({ title: "note " + i })); setTimeout(() => console.log(notes.length), 1e9); console.log("waits")`)
			c.Env = []string{"PATH=" + os.Getenv("PATH")}
			out, err := c.StdoutPipe()
			if err != nil {
				return 0, err
			}
			if err := c.Start(); err != nil {
				return 0, err
			}
			all = append(all, c)
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				return 0, err
			}
		}
		time.Sleep(time.Second)
		for _, c := range all {
			sum += kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", c.Process.Pid), "\nPss:")
		}
		return sum, nil
	}
	few, err := total(4)
	if err != nil {
		return err
	}
	many, err := total(n)
	figures["MB of a waiting process of Node.js"] = float64(many-few) / float64(n-4) / 1e6
	return err
}
