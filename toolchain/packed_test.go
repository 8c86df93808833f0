package toolchain

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// gateWIT is an embedder's capability, with a handle of its own.
const gateWIT = `package test:gate@1.0.0;
interface gate {
  use stile:capability/env@0.1.0.{env};
  use stile:capability/types@0.1.0.{error};
  use stile:capability/poll@0.1.0.{pollable};
  resource gate {
    /// Ready when all slots for instances were taken by others.
    pass: func() -> pollable;
    ticket: func(number: u32) -> ticket;
  }
  resource ticket { number: func() -> u32; }
  get: func(env: borrow<env>, name: string) -> result<gate, error>;
  put: func(env: borrow<env>, name: string, gate: gate) -> result<_, error>;
}`

// gate takes all slots of the host, with calls that begin only when each has one. So calls that wait must give theirs back.
type gate struct {
	t     *testing.T
	slots int
	other *host.Component
	mu    sync.Mutex // one at a time, or each would have some of the slots
}

func (*gate) Interface() string { return "test:gate/gate@1.0.0" }

func (g *gate) Pass(context.Context) *abi.Pollable {
	passed := new(abi.Pollable)
	go func() { //nolint:contextcheck // its calls are not inner ones of the call that waits
		defer passed.SetReady()
		g.mu.Lock()
		defer g.mu.Unlock()
		var all, ended sync.WaitGroup
		all.Add(g.slots)
		for range g.slots {
			ended.Go(func() {
				if _, err := g.other.Do(g.t.Context(), host.Request{Tool: "t", Begin: func(context.Context) error {
					all.Done()
					all.Wait()
					return nil
				}}); err != nil {
					g.t.Error(err)
				}
			})
		}
		ended.Wait()
	}()
	return passed
}

func (*gate) Ticket(_ context.Context, number uint32) *ticket { return &ticket{number} }

type ticket struct{ number uint32 }

func (t *ticket) Number(context.Context) uint32 { return t.number }

// TestHandlesOutliveInstances takes the instance away from calls while they hold handles of every capability, and of an embedder's.
func TestHandlesOutliveInstances(t *testing.T) {
	s := newScripts(t)
	dir, key := cachetest.Dirs(t)
	const slots = 2
	var k recorder
	h, err := host.New(t.Context(), host.Options{WIT: []string{gateWIT}, Instances: slots, CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := New(t.Context(), h, Options{CacheDir: dir, KeyDir: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	build := func(body string) *host.Component {
		c, err := chain.Build(t.Context(), Source{Entry: "t.ts", FS: fstest.MapFS{"t.ts": {Data: []byte(`import { extension } from "stile";
export default extension({ tools: { t: { description: "test", run: async (input: any, env: any) => { ` + body + ` } } } });`)}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	g := &gate{t: t, slots: slots, other: build("return 0;")}
	rule, err := httpcap.ParseRule(s.site + "/**,methods=GET+POST")
	if err != nil {
		t.Fatal(err)
	}
	inner := build(`await env.gate.pass(); const v = await env.store.get("k"); await env.gate.pass(); return v + input.x;`)
	box, err := tools.New(tools.Options{Resolve: func(string) (tools.Func, error) {
		return host.Callee{Component: inner, Tool: "t", Env: host.Env{"gate": g}}.Start, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	env := host.Env{
		"gate": g, "blobs": blob.NewStore(blob.StoreOptions{}), "clock": clock.System(), "console": console.To(func(console.Level, string) {}),
		"network": httpcap.Allow(rule), "random": random.System(), "store": s.kv.Bucket("packed"), "workspace": s.workspace.Workspace("packed"), "tools": box,
	}
	for _, c := range []struct{ name, body, want string }{
		{"env", `await pass(); return Object.keys(env).length;`, `9`},
		{"an embedder's", `const a = await env.gate.ticket(1), b = await env.gate.ticket(2); await pass(); const c = await env.gate.ticket(3); await pass(); return [await a.number(), await b.number(), await c.number()];`, `[1,2,3]`},
		{"kv", `await env.store.set("k", "v"); await pass(); return env.store.get("k");`, `"v"`},
		{"workspace", `await env.workspace.makeDirectory("d"); const d = env.workspace.subdirectory("d"); await d.write("f", "text"); await pass(); return d.read("f");`, `"text"`},
		{"blob", `const b = await env.blobs.createBlob(["a", "b"]); await pass(); const c = await env.blobs.createBlob([b, "c"]); await pass(); return [await b.text(), await c.text()];`, `["ab","abc"]`},
		{"http", `const r = await fetch(site + "/echo", { method: "POST", body: "x".repeat(10) }); await pass(); return r.status + (await r.json()).body;`, `"200xxxxxxxxxx"`},
		{"a body that is being read", `const r = await fetch(site + "/large"); const reader = r.body.getReader(); let n = (await reader.read()).value.length;
			await pass(); for (;;) { const { done, value } = await reader.read(); if (done) return n; n += value.length; }`, `600000`},
		{"a request on its way", `const p = fetch(site + "/large"); await pass(); return (await (await p).text()).length;`, `600000`},
		{"open compressors", `const c = new CompressionStream("gzip"), d = new DecompressionStream("gzip"), w = c.writable.getWriter(), r = c.readable.pipeThrough(d).getReader();
			const done = (async () => { let n = 0; for (;;) { const { done, value } = await r.read(); if (done) return n; n += value.length; await pass(); } })();
			for (let i = 0; i < 6; i++) { await w.write(crypto.getRandomValues(new Uint8Array(60_000))); await w.write(new Uint8Array(60_000)); await pass(); } await w.close(); return done;`, `720000`},
		{"clock", `const at = env.clock.monotonic(); await pass(); return env.clock.monotonic() > at;`, `true`},
		{"timers", `let n = 0; const t = setInterval(() => n++, 50); await pass(); await pass();
			while (n === 0) await env.clock.sleep(1); clearInterval(t); return n > 0;`, `true`},
		{"random", `const a = Math.random(); await pass(); return a !== Math.random();`, `true`},
		{"console", `console.log("before"); await pass(); console.log("after"); return 1;`, `1`},
		{"tools", `await env.store.set("k", "v"); const p = env.tools.call("t", { x: 1 }, { env: { store: env.store } });
			await pass(); return p;`, `"v1"`},
		{"abort", `const c = new AbortController(); const p = fetch(site + "/events?hang", { signal: c.signal }).then((r) => r.text()).catch((e) => e.name); await pass(); c.abort(); return p;`, `"AbortError"`},
		{"freed handles", `const a = await env.gate.ticket(1); await Promise.all([1, 2, 3].map(async () => { await pass(); })); const b = await env.gate.ticket(2);
			await pass(); return [await a.number(), await b.number()];`, `[1,2]`},
		{"much memory", `const a: Uint8Array[] = []; for (let i = 0; i < 40; i++) a.push(new Uint8Array(100_000).fill(i + 1)); const o = crypto.getRandomValues(new Uint8Array(60_000)).slice(); const sum = o.reduce((x, y) => x + y, 0);
			await pass(); return [a.every((b, i) => b.every((v) => v === i + 1)), sum === o.reduce((x, y) => x + y, 0)];`, `[true,true]`},
		{"objects", `const m = new Map(), w = new WeakMap(), f: any[] = []; for (let i = 0; i < 1000; i++) { m.set("k" + i, { i }); f.push(() => i); } const o = { a: 1 }; w.set(o, "weak"); const re = /a(b+)/g;
			await pass(); let n = 0; for (const { i } of m.values()) n += i; for (const g of f) n += g(); return [n, w.get(o), "abbb".replace(re, "$1"), [..."é€😀"].length];`, `[999000,"weak","bbb",3]`},
		{"fails", `await pass(); throw new RangeError("after the instance");`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			site, err := json.Marshal(s.site)
			if err != nil {
				t.Fatal(err)
			}
			component := build(`const pass = () => env.gate.pass(), site = ` + string(site) + `; ` + c.body)
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, Recorder: &k})
			if c.want == "" {
				if o := host.OutcomeOf(err); o.Kind != "failed" || o.Message != "tool failed: RangeError: after the instance" {
					t.Errorf("got %+v", o)
				}
			} else if err != nil || string(r.Output) != c.want {
				t.Errorf("got %s, %v", r.Output, err)
			}
			k.replay(t, component)
		})
	}
}
