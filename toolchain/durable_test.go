package toolchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/workspace"
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
			slept := 0 // a busy machine may pass a place before the call can sleep there
			for kill := 0; ; kill++ {
				till := &till{exact: exact, done: map[abi.Once]int64{}}
				r, times, killed := lives(t, hosts, kill, host.Request{Tool: "t", Env: host.Env{"till": till, "clock": clock.System(), "random": random.System()}})
				slept += times
				out := string(r.Output)
				if exact && (till.value != 15 || out != `{"seen":5,"interrupted":0}`) || !exact && (till.value < 14 || till.value > 15 || !strings.HasPrefix(out, `{"seen":5,`)) {
					t.Errorf("killed at %d: the counter is %d, and the result %s", kill, till.value, out)
				}
				if want := fmt.Sprintf(`"interrupted":%d}`, r.Usage.Interrupted); !strings.HasSuffix(out, want) {
					t.Errorf("killed at %d: %s, and the host says %s", kill, out, want)
				}
				if !killed {
					t.Logf("%d places, asleep %d times", kill, slept)
					if slept == 0 {
						t.Error("it never slept")
					}
					return
				}
			}
		})
	}
}

// TestDurableKeys kills calls that send requests with idempotency keys. They are sent again with the key and body that they had.
func TestDurableKeys(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	bodies, orders := map[string]string{}, 0 // by key
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		body, _ := io.ReadAll(r.Body)
		switch was, known := bodies[key]; {
		case len(key) != 32:
			t.Errorf("the key is %q", key)
		case known && was != string(body):
			t.Errorf("the key %s has the bodies %q and %q", key, was, body)
		case !known:
			bodies[key] = string(body)
			orders++
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + ",methods=POST,idempotency=Idempotency-Key")
	if err != nil {
		t.Fatal(err)
	}
	web, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	s := tool("", `
		const got: string[] = [];
		try { await env.web.fetch(input.url, { method: "POST", headers: { "idempotency-key": "mine" } }); got.push("set"); } catch (e: any) { if (e.code !== "denied" && e.code !== "interrupted") throw e; }
		for (const body of ["a", "b", "c"]) {
			const r = await env.web.fetch(input.url, { method: "POST", body });
			got.push(await r.text());
			await env.clock.sleep(10);
		}
		return got.join("");`)
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{})
		hosts[i] = build(t, tools, s)
	}
	input := []byte(`{"url":"` + server.URL + `/x"}`)
	lost := 0 // answers that the tool could not read, because the process ended in their middle
	for kill := 0; ; kill++ {
		before := orders
		r, _, killed := lives(t, hosts, kill, host.Request{Tool: "t", Input: input, Env: host.Env{"web": web, "clock": clock.System()}})
		if string(r.Output) != `"abc"` {
			t.Errorf("killed at %d: it returned %s", kill, r.Output)
			lost++
		}
		if made := orders - before; made != 3 {
			t.Errorf("killed at %d: the server has %d orders", kill, made)
		}
		if !killed {
			break
		}
	}
}

// TestDurableRequests kills calls that send requests. A request that changes nothing is sent again; one that may have come about is reported, and not sent
// again.
func TestDurableRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var posts int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			posts++
		}
		_, _ = w.Write([]byte(strings.Repeat(r.Method, 1000)))
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	web, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{{Scheme: "http", Host: u.Hostname(), Port: uint16(port), Methods: []string{"GET", "POST"}, Path: "/**"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := tool("", `
		const got: string[] = [];
		for (const method of ["GET", "POST", "GET", "POST"]) {
			try {
				const r = await env.web.fetch(input.url, { method });
				got.push((await r.text()).slice(-1) + r.status);
			} catch (e: any) { got.push(method + " " + e.code); }
			await env.clock.sleep(10);
		}
		return got;`)
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{})
		hosts[i] = build(t, tools, s)
	}
	input := []byte(`{"url":"` + server.URL + `/x"}`)
	interrupted := 0
	for kill := 0; ; kill++ {
		before := posts
		r, _, killed := lives(t, hosts, kill, host.Request{Tool: "t", Input: input, Env: host.Env{"web": web, "clock": clock.System()}})
		var got []string
		if err := json.Unmarshal(r.Output, &got); err != nil {
			t.Fatal(err)
		}
		sent := posts - before
		for i, text := range got {
			switch {
			case i%2 == 0 && text != "T200":
				t.Errorf("killed at %d: the request %d that changes nothing gave %s", kill, i, text)
			case i%2 == 1 && text == "POST interrupted":
				interrupted++
			case i%2 == 1 && text != "T200":
				t.Errorf("killed at %d: request %d gave %s", kill, i, text)
			}
		}
		if told := slices.Contains(got, "POST interrupted"); told != (r.Usage.Interrupted > 0) {
			t.Errorf("killed at %d: the tool got %s, and the host counts %d interrupted operations", kill, got, r.Usage.Interrupted)
		}
		if sent > 2 {
			t.Errorf("killed at %d: %d requests that change something", kill, sent)
		}
		if !killed {
			break
		}
	}
	if interrupted == 0 {
		t.Error("no request was interrupted")
	}
}

// TestDurableWithoutRoom has more durable calls wait than a host has room for. Most of them sleep long before their time.
func TestDurableWithoutRoom(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{PackedMemory: 8 << 20})
	component := build(t, tools, tool("", `await env.clock.sleep(3_600_000);`))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	asleep := make(chan struct{}, 400)
	for i := range 400 {
		all.Go(func() {
			d := host.Durable{Run: fmt.Sprint("r", i), Idle: time.Hour, Journal: &logged{kill: 1 << 30}}
			_, err := component.Do(ctx, host.Request{Tool: "t", Durable: &d, Env: host.Env{"clock": clock.System()}})
			switch {
			case errors.As(err, new(*host.AsleepError)):
				asleep <- struct{}{}
			case ctx.Err() == nil:
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	for range 100 {
		<-asleep
	}
	cancel()
	all.Wait()
}

// TestDurableAwaited kills calls that do something else while a request is on its way, and that wait long enough to sleep. A request that can be sent
// again keeps them awake, as it did before.
func TestDurableAwaited(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	web, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	s := tool("", `
		const sent = env.web.fetch(input.url);
		await env.clock.sleep(40);
		return (await sent).status;`)
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{})
		hosts[i] = build(t, tools, s)
	}
	for kill := 0; ; kill++ {
		killed := false
		for next := range 6 { // such a request is made again when the tool waits for its answer, and may be lost again then
			r, _, was := lives(t, hosts, kill, host.Request{Tool: "t", Input: []byte(`{"url":"` + server.URL + `/x"}`), Env: host.Env{"web": web, "clock": clock.System()}}, next, next)
			if killed = was; string(r.Output) != "200" {
				t.Errorf("killed at %d, and twice at %d: %s", kill, next, r.Output)
			}
		}
		if !killed {
			break
		}
	}
}

// lives makes a durable call that is killed once, after so many entries and commits, and goes on in other hosts, which are killed after as many as next
// says; then the log also keeps what was not committed.
func lives(t *testing.T, hosts []*host.Component, kill int, request host.Request, next ...int) (_ host.Result, slept int, killed bool) {
	t.Helper()
	d := host.Durable{Run: fmt.Sprint("r", kill), Idle: time.Millisecond}
	left, keeps := kill, len(next) > 0
	for process := range 60 {
		l := &logged{kill: left}
		run, r := d, request
		run.Journal, r.Durable = l, &run
		result, err := hosts[process%len(hosts)].Do(t.Context(), r)
		var asleep *host.AsleepError
		switch {
		case errors.As(err, &asleep):
			if len(asleep.Waits) == 0 || asleep.Waits[0].At.IsZero() {
				t.Fatalf("it waits for %v", asleep.Waits)
			}
			slept++
			d.State, d.Log = asleep.State, nil
			left = l.kill
		case errors.Is(err, errKilled):
			killed = true
			if keeps {
				l.committed = len(l.entries)
			}
			d.Log = append(d.Log, l.entries[:l.committed]...)
			if left = 1 << 30; len(next) > 0 {
				left, next = next[0], next[1:]
			}
		case err != nil:
			t.Fatalf("killed at %d, process %d: %v", kill, process, err)
		default:
			return result, slept, killed
		}
	}
	t.Fatal("it does not end")
	return host.Result{}, 0, false
}

// TestDurableFiles kills calls that change a workspace: each line is in the file once, and nobody is told that it may not be.
func TestDurableFiles(t *testing.T) {
	t.Parallel()
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := tool("", `
		await env.files.makeDirectory("logs");
		const sub = await env.files.subdirectory("logs");
		for (let i = 0; i < 4; i++) {
			await sub.append("a.log", i + "\n");
			if (i == 1) { await env.clock.sleep(10); await env.files.move("logs/a.log", "logs/b.log"); await env.files.copy("logs/b.log", "logs/a.log"); }
		}
		await env.files.edit("logs/a.log", [{ old: "3", new: "three" }]);
		const taken = [await env.files.snapshot(), await env.files.snapshot()];
		let digest = await env.files.replace("logs/c.log", "0");
		for (const text of ["1", "x".repeat(100_000), "2"]) digest = await env.files.replace("logs/c.log", text, digest);
		await env.files.remove("logs/b.log");
		await env.files.restoreSnapshot(taken[1]);
		await env.files.removeSnapshot(taken[0]);
		const left = (await env.files.snapshots()).map(s => s.id);
		if (String(left) !== String(taken[1])) throw new Error("there are the snapshots " + left);
		try { await env.files.replace("logs/a.log", "", digest); return "replaced"; } catch (e: any) { if (e.code !== "conflict") throw e; }
		return await sub.read("a.log") + await sub.read("b.log") + (await env.files.find("c.log")).paths.length;`)
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{})
		hosts[i] = build(t, tools, s)
	}
	for kill := 0; ; kill++ {
		files := store.Workspace(fmt.Sprint("w", kill))
		d := host.Request{Tool: "t", Env: host.Env{"files": files, "clock": clock.System()}}
		r, _, killed := lives(t, hosts, kill, d)
		if got := string(r.Output); got != `"0\n1\n2\nthree\n0\n1\n0"` {
			t.Errorf("killed at %d: the files have %s", kill, got)
		}
		if !killed {
			break
		}
	}
}

// TestRunsNotDurable uses what only a run has in a call that is not durable.
func TestRunsNotDurable(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{})
	c := build(t, tools, tool(``, `
		const { cancelled } = env.run, codes: string[] = [];
		for (const what of [() => env.run.stash(1), () => env.run.recover()]) await what().catch((e: any) => codes.push(e.code));
		return [cancelled instanceof AbortSignal, cancelled === env.run.cancelled, cancelled.aborted, await env.run.keepAwake(Promise.resolve(7)), ...codes];`))
	out, err := c.Call(t.Context(), "t", nil, host.Env{"run": new(runs.Control)})
	if want := `[true,true,false,7,"unavailable","unavailable"]`; err != nil || string(out) != want {
		t.Errorf("got %s, %v", out, err)
	}
}
