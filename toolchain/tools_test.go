package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// shelf is a capability whose values report what happens to them. It has the interface of a bucket.
type shelf struct {
	mu     sync.Mutex
	values map[string]string
}

func newShelf() *shelf { return &shelf{values: map[string]string{}} }

func (*shelf) Interface() string { return "stile:capability/kv@0.1.0" }

func (s *shelf) Get(_ context.Context, key string) (*string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "secret" {
		return nil, abi.Deny(abi.Denial{Operation: "get secret", Reason: "no rule", Wants: capability.Wanted{Grant: kv.Rights{}}})
	}
	value, ok := s.values[key]
	if !ok {
		return nil, nil
	}
	return &value, nil
}

func (s *shelf) Set(_ context.Context, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	return nil
}

func (*shelf) Delete(context.Context, string) (bool, error) { return false, nil }

func (*shelf) List(context.Context, string, uint32, *string) (page struct {
	Entries []struct{ Key, Value string }
	Cursor  *string
}, err error,
) {
	return page, nil
}

func (*shelf) Increment(context.Context, string, int64) (int64, error) { return 0, nil }

func (*shelf) CompareAndSet(context.Context, string, *string, *string) (bool, error) {
	return false, nil
}

// workshop is a toolbox of the tools of some extensions, "<extension>_<tool>".
type workshop struct {
	box   *tools.Toolbox
	tools map[string]host.Callee
}

// newWorkshop builds extensions with one tool each, whose bodies are given by name. Each has the toolbox as env.tools.
func newWorkshop(t *testing.T, chain *toolchain.Toolchain, limits host.Limits, bodies map[string]string) *workshop {
	t.Helper()
	w := &workshop{tools: map[string]host.Callee{}}
	var err error
	if w.box, err = tools.New(tools.Options{
		Resolve: func(name string) (tools.Func, error) {
			tool, ok := w.tools[name]
			if !ok {
				return nil, abi.Errorf(abi.CodeNotFound, "there is no tool %q", name)
			}
			return tool.Start, nil
		},
		Finder: tools.NewCatalog([]tools.Description{{Name: "b_t", Description: "Second", InputSchema: `{"type":"object"}`}}),
	}); err != nil {
		t.Fatal(err)
	}
	for name, body := range bodies {
		source := toolchain.Source{FS: fstest.MapFS{"tool.ts": {Data: []byte(`import { extension } from "stile";
// ` + name + `: none but itself is it; its tools call each other
const caught = async (what: any) => { try { await what(); return "done"; } catch (e: any) { return e.code + " | " + e.message; } };
export default extension({ tools: { t: { description: "test", input: { type: "object" }, run: async (input: any, env: any) => {
` + body + `
} } } });
const marker = "` + name + `"; export { marker };`)}}, Entry: "tool.ts"}
		if name == "dots" || name == "flat" || name == "word" { // its code does not say what it calls
			source.Bindings = map[string]string{"tools": tools.Interface}
		}
		c := build(t, chain, source)
		w.tools[name+"_t"] = host.Callee{Component: c, Tool: "t", Env: host.Env{"tools": w.box}, Limits: limits}
	}
	return w
}

func (w *workshop) call(ctx context.Context, tool string, env host.Env, limits host.Limits) (host.Result, error) {
	if env == nil {
		env = host.Env{}
	}
	env["tools"] = w.box
	return w.tools[tool].Component.Do(ctx, host.Request{Tool: "t", Name: tool, Env: env, Limits: limits})
}

// TestTools has tools call others, while one guest at a time runs, and pass on their bindings.
func TestTools(t *testing.T) {
	_, chain := newToolchain(t, host.Options{Running: 1})
	w := newWorkshop(t, chain, host.Limits{}, map[string]string{
		"call":        `return env.tools.call("b_t", { x: 1 });`,
		"dots":        `return env.tools.b.t({ x: 2 });`,
		"flat":        `return env.tools.b_t({ x: 3 });`,
		"word":        `return [await env.tools.constructor.t({}), await env.tools.constructor_t({})];`,
		"constructor": `return "made";`,
		"search":      `return (await env.tools.search("SECOND b_")).map((d: any) => d.name + d.inputSchema.type); // call`,
		"unknown":     `return caught(() => env.tools.call("b_none"));`,
		"lossy":       `return caught(() => env.tools.call("b_t", { x: [1, { y: NaN }] }));`,
		"input":       `return caught(() => env.tools.call("b_t", "text"));`,
		"together":    `return Promise.all([1, 2, 3].map((x) => env.tools.call("b_t", { x })));`,
		"b":           `return { got: input.x, names: Object.keys(env) };`,

		"pass":    `await env.tools.call("writes_t", {}, { env: { store: env.store } }); return env.store.get("k");`,
		"rename":  `await env.tools.call("writes_t", {}, { env: { store: env.other } }); return env.other.get("k");`,
		"own":     `return caught(() => env.tools.call("writes_t", {}, { env: { tools: env.tools } }));`,
		"foreign": `return caught(() => env.tools.call("writes_t", {}, { env: { store: { get() {} } } }));`,
		"writes":  `await env.store.set("k", "v"); return null;`,
		"relay":   `await env.store.get("k"); return caught(() => env.tools.call("relay2_t", {}, { env: { cupboard: env.store } }));`,
		"relay2":  `await env.cupboard.get("k"); return env.tools.call("writes_t", {}, { env: { store: env.cupboard } });`,
		"denied":  `return env.tools.call("denied2_t", {}, { env: { store: env.store } });`,
		"denied2": `return env.store.get("secret");`,
		"caught":  `return caught(() => env.tools.call("denied2_t", {}, { env: { store: env.store } }));`,
		"fails":   `return caught(() => env.tools.call("throws_t"));`,
		"throws":  `throw new RangeError("too far");`,
		"self":    `return caught(() => env.tools.call("self_t"));`,
		"ping":    `return caught(async () => { throw new Error(await env.tools.call("pong_t")); });`,
		"pong":    `return caught(() => env.tools.call("ping_t"));`,
	})
	for _, c := range []struct{ tool, want string }{
		{"call", `{"got":1,"names":["tools"]}`},
		{"dots", `{"got":2,"names":["tools"]}`},
		{"flat", `{"got":3,"names":["tools"]}`},
		{"word", `["made","made"]`},
		{"search", `["b_tobject"]`},
		{"unknown", `"not-found | not found: there is no tool \"b_none\""`},
		{"lossy", `"undefined | input.x[1].y is NaN, which JSON cannot carry; write null, or text"`},
		{"input", `"invalid | invalid: b_t: invalid input: got string, want object"`},
		{"together", `[{"got":1,"names":["tools"]},{"got":2,"names":["tools"]},{"got":3,"names":["tools"]}]`},
		{"pass", `"v"`},
		{"rename", `"v"`},
		{"own", `"already-exists | already exists: writes_t: the tool has a binding \"tools\" of its own"`},
		{"foreign", `"undefined | env.store: only bindings can be passed on, and what narrow, subdirectory and readOnly make of them"`},
		{"relay", `"done"`},
		{"caught", `"denied | denied: denied2_t: get secret through \"store\": no rule; \"bindings\": { \"store\": {\"kv\":true} }"`},
		{"fails", `"unavailable | unavailable: throws_t: tool failed: RangeError: too far"`},
		{"self", `"invalid | invalid: self_t: tools call each other: self_t -> self_t"`},
		{"ping", `"undefined | invalid | invalid: ping_t: tools call each other: ping_t -> pong_t -> ping_t"`},
	} {
		t.Run(c.tool, func(t *testing.T) {
			r, err := w.call(t.Context(), c.tool+"_t", host.Env{"store": newShelf(), "other": newShelf()}, host.Limits{})
			if err != nil || string(r.Output) != c.want {
				t.Errorf("got %s, %v\nwant %s", r.Output, err, c.want)
			}
		})
	}

	// A denial of the callee that the caller does not handle becomes the caller's, and the host logs it.
	_, err := w.call(t.Context(), "denied_t", host.Env{"store": newShelf()}, host.Limits{})
	if denied, ok := errors.AsType[*host.DeniedError](err); !ok || denied.Denial.Binding != "tools" || !strings.Contains(denied.Denial.Operation, "denied2_t: get secret") {
		t.Errorf("got %v", err)
	}

	// A passed binding stays under its grant, also when it is passed on again under another name.
	for _, tool := range []string{"pass", "rename", "relay"} {
		store := newShelf()
		g := host.NewGrant(store, host.GrantOptions{})
		g.Revoke("by the owner")
		r, err := w.call(t.Context(), tool+"_t", host.Env{"store": g, "other": g}, host.Limits{})
		if !strings.Contains(string(r.Output)+errorText(err), "the grant was revoked: by the owner") || len(store.values) > 0 {
			t.Errorf("%s: got %s, %v", tool, r.Output, err)
		}
	}
	budget := host.NewGrant(newShelf(), host.GrantOptions{Operations: 1})
	if _, err := w.call(t.Context(), "pass_t", host.Env{"store": budget}, host.Limits{}); !strings.Contains(errorText(err), "exhausted: operations: 1") {
		t.Errorf("a budget that a callee spent: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestToolsAreBounded has tools that start others without end, or wait for them.
func TestToolsAreBounded(t *testing.T) {
	h, chain := newToolchain(t, host.Options{Running: 1, Instances: 20})
	// The two extensions of each link have the same body but different code, so that there is no cycle.
	bodies := map[string]string{
		"spin":   `while (true) {}`,
		"spins":  `return caught(() => env.tools.call("spin_t"));`,
		"many":   `return (await Promise.all(Array.from({ length: 8 }, () => caught(() => env.tools.call("spin_t"))))).join();`,
		"wait":   `await new Promise((r) => setTimeout(r, 3600000));`,
		"waits":  `return caught(() => env.tools.call("wait_t", {}, { env: { clock: env.clock } }));`,
		"memory": `const all = []; while (true) all.push(new Uint8Array(1 << 20).fill(1)); return all.length;`,
		"greedy": `return caught(() => env.tools.call("memory_t"));`,
		"crowd":  `return Promise.race(Array.from({ length: 30 }, () => caught(() => env.tools.call("wait_t", {}, { env: { clock: env.clock } }))));`,
		"blink":  `await new Promise((r) => setTimeout(r, 100)); return 1;`,
		"blinks": `return (await Promise.all(Array.from({ length: 30 }, () => caught(() => env.tools.call("blink_t", {}, { env: { clock: env.clock } }))))).join("");`,
		"quick":  `return null;`,
		"forest": `return Promise.race([1, 2, 3].map(() => caught(() => env.tools.call("branch_t", {}, { env: { clock: env.clock } }))));`,
		"branch": `throw new Error(await Promise.race([1, 2, 3].map(() => caught(() => env.tools.call("wait_t", {}, { env: { clock: env.clock } })))));`,
	}
	for n, name := range strings.Split("abcdefghijk", "") {
		bodies[name] = `const deeper = "` + string(rune('a'+n+1)) + `_t"; return caught(async () => { throw new Error(await env.tools.call(deeper)); });`
	}
	w := newWorkshop(t, chain, host.Limits{CPU: time.Minute, Memory: 64 << 20}, bodies)
	for _, c := range []struct {
		tool, want string
		limits     host.Limits
	}{
		{"spins", "limit reached: cpu (100ms)", host.Limits{CPU: 100 * time.Millisecond}},
		{"many", "limit reached: cpu (200ms)", host.Limits{CPU: 200 * time.Millisecond}},
		{"waits", "limit reached: wall (100ms)", host.Limits{Wall: 100 * time.Millisecond}},
		{"greedy", "exhausted | exhausted: memory_t: limit reached: memory (8 MiB)", host.Limits{Memory: 8 << 20}},
		{"a", "exhausted | exhausted: j_t: limit reached: nesting (8)", host.Limits{}},
		{"d", "exhausted | exhausted: g_t: limit reached: nesting (2)", host.Limits{Nesting: 2}},
		{"blinks", strings.Repeat("done", 30), host.Limits{}}, // with 20 slots
		{"crowd", "limit reached: pending (4)", host.Limits{Pending: 4}},
		{"forest", "limit reached: pending (4): tools that one call may run at a time", host.Limits{Pending: 4}},
	} {
		t.Run(c.tool+" "+c.want, func(t *testing.T) {
			r, err := w.call(t.Context(), c.tool+"_t", host.Env{"clock": clock.System()}, c.limits)
			if !strings.Contains(string(r.Output)+errorText(err), c.want) {
				t.Errorf("got %s, %v, want %s", r.Output, err, c.want)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		inside := &signalClock{clock.System(), cancel}
		if _, err := w.call(ctx, "waits_t", host.Env{"clock": inside}, host.Limits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("toolbox revoked", func(t *testing.T) {
		g := host.NewGrant(w.box, host.GrantOptions{})
		inside := &signalClock{clock.System(), func() { g.Revoke("enough") }}
		r, err := w.tools["waits_t"].Component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"tools": g, "clock": inside}})
		if err != nil || string(r.Output) != `"revoked | the grant was revoked: enough"` {
			t.Errorf("got %s, %v", r.Output, err)
		}
	})
	t.Run("host closed", func(t *testing.T) {
		closed := make(chan error, 1)
		inside := &signalClock{clock.System(), func() { go func() { closed <- h.Close() }() }}
		if _, err := w.call(t.Context(), "waits_t", host.Env{"clock": inside}, host.Limits{}); !errors.Is(err, host.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestInnerCallsEnd has several trees of tools share one slot. Callers wait for calls that wait for slots, so calls that waited for each
// other would never end.
func TestInnerCallsEnd(t *testing.T) {
	bodies := map[string]string{"0": `await new Promise((r) => setTimeout(r, 1)); return 1;`}
	for depth := 1; depth <= 3; depth++ {
		bodies[strconv.Itoa(depth)] = fmt.Sprintf(`let sum = 1;
			for (const n of await Promise.all([1, 2, 3].map(() => env.tools.call("%d_t", {}, { env: { clock: env.clock } })))) sum += n;
			return sum;`, depth-1)
	}
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			_, chain := newToolchain(t, host.Options{Instances: 1, WholeCalls: whole})
			w := newWorkshop(t, chain, host.Limits{Wall: 10 * time.Minute}, bodies)
			var ended sync.WaitGroup
			for range 4 {
				ended.Go(func() {
					r, err := w.call(t.Context(), "3_t", host.Env{"clock": clock.System()}, host.Limits{Wall: 10 * time.Minute})
					if err != nil || string(r.Output) != "40" {
						t.Errorf("got %s, %v", r.Output, err)
					}
				})
			}
			ended.Wait()
		})
	}
}

// TestCallsThatWaitForTools has calls wait for calls that wait for a timer. No goroutine waits for either.
func TestCallsThatWaitForTools(t *testing.T) {
	_, chain := newToolchain(t, host.Options{Instances: 2, Limits: host.Limits{Wall: time.Hour}})
	w := newWorkshop(t, chain, host.Limits{}, map[string]string{
		"outer": `return env.tools.call("inner_t", {}, { env: { clock: env.clock } });`,
		"inner": `await env.clock.sleep(3600000); return 1;`,
	})
	outer := w.tools["outer_t"]
	timer := &heldClock{Clock: clock.System()}
	env := host.Env{"tools": w.box, "clock": timer}
	const calls = 200
	ended := make(chan string, calls)
	before := runtime.NumGoroutine()
	for range calls {
		if err := outer.Component.Start(t.Context(), host.Request{Tool: "t", Env: env}, func(r host.Result, err error) {
			ended <- string(r.Output) + errorText(err)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for timer.waiting.Load() < calls || runtime.NumGoroutine() > before+calls/10 { // workers pack the last ones
		runtime.Gosched()
	}
	timer.over.SetReady()
	for range calls {
		if got := <-ended; got != "1" {
			t.Fatalf("got %s", got)
		}
	}
}

// heldClock has a timer that all calls wait for.
type heldClock struct {
	*clock.Clock
	waiting atomic.Int64
	over    abi.Pollable
}

func (c *heldClock) Open(ctx context.Context) (any, error) {
	opened, err := c.Clock.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &heldTimer{opened.(*clock.Running), c}, nil
}

type heldTimer struct {
	*clock.Running
	of *heldClock
}

func (c *heldTimer) Subscribe(context.Context, uint64) *abi.Pollable {
	c.of.waiting.Add(1)
	return &c.of.over
}

// TestToolsShareBudgets has tools use up the log and storage budgets of their callers, in turn and nested. Each has its own
// bindings.
func TestToolsShareBudgets(t *testing.T) {
	_, chain := newToolchain(t, host.Options{})
	w := newWorkshop(t, chain, host.Limits{}, map[string]string{
		"log":   `console.log("x".repeat(400)); return null;`,
		"logs":  `for (let i = 0; i < 30; i++) await env.tools.call("log_t"); console.log("x".repeat(400)); return null;`,
		"keep":  `const held = await env.store.createBlob(["x".repeat(600)]); return held.size;`,
		"keeps": `const held = await env.store.createBlob(["x".repeat(600)]); return [held.size, await caught(() => env.tools.call("keep_t"))];`,
		"again": `const all = []; for (let i = 0; i < 3; i++) all.push(await env.tools.call("keep_t")); return all;`,
	})
	var logged atomic.Int64
	for name, tool := range w.tools {
		log := console.To(func(_ console.Level, message string) { logged.Add(int64(len(message))) }).WithLimit(1000)
		tool.Env = host.Env{"tools": w.box, "console": log, "store": blob.NewStore(blob.StoreOptions{Limit: 1000})}
		w.tools[name] = tool
	}
	for _, c := range []struct{ tool, want string }{
		{"logs", `null`},
		{"keeps", `[600,"unavailable | unavailable: keep_t: tool failed: CapabilityError: exhausted: blob store: 1000 bytes"]`},
		{"again", `[600,600,600]`},
	} {
		logged.Store(0)
		r, err := w.tools[c.tool+"_t"].Component.Do(t.Context(), host.Request{Tool: "t", Env: w.tools[c.tool+"_t"].Env})
		if err != nil || string(r.Output) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.tool, r.Output, err, c.want)
		}
		const lastLine = 100 // it reports that text was dropped
		if n := logged.Load(); n > 1000+lastLine || c.tool == "logs" && n < 800 {
			t.Errorf("%s: %d bytes were logged", c.tool, n)
		}
	}
}

// signalClock signals when the callee opens it.
type signalClock struct {
	*clock.Clock
	opened func()
}

func (c *signalClock) Open(ctx context.Context) (any, error) {
	c.opened()
	return c.Clock.Open(ctx)
}
