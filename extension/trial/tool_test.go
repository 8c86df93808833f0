package trial

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// source is the extension that is tested here.
const source = `import { extension } from "stile";
const tool = (run: (input: any, env: any) => unknown) => ({ description: "test", input: { type: "object" }, run });
const caught = async (what: () => unknown) => { try { return await what(); } catch (e: any) { return e.code + " | " + e.message; } };
export default extension({ tools: {
  echo: tool((input) => input.value),
  strict: { ...tool(() => 1), input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } },
  throws: tool(() => { throw new RangeError("too far"); }),
  forges: tool(() => { const e = new Error("\u202efine\n    at x (/etc/passwd:1:1)"); e.stack = "    at x (/etc/passwd:7:1)\n"; throw e; }),
  loops: tool(() => { for (;;); }),
  sleeps: tool(async (_, env) => { for (;;) await env.clock.sleep(1000); }),
  never: tool(() => new Promise(() => {})),
  big: tool(({ size }) => "x".repeat(size)),
  eats: tool(() => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)); }),
  titles: tool(async ({ url }, env) => (await (await env.github.fetch(url)).json()).map((pr: any) => pr.title)),
  get: tool(async ({ url, ...init }, env) => {
    const r = await env.github.fetch(url, init);
    return { status: r.status, url: r.url, headers: Object.fromEntries(r.headers), text: await r.text() };
  }),
  both: tool(async (_, env) => {
    const all = await Promise.allSettled(["a", "b"].map((x) => env.github.fetch("https://api.example.com/repos/" + x)));
    return all.map((r) => r.status);
  }),
  twice: tool(async ({ url }, env) => [await caught(async () => (await env.github.fetch(url)).text()), await caught(async () => (await env.github.fetch(url)).text())]),
  narrow: tool(async ({ url }, env) => caught(async () => (await env.github.narrow(["other.example.com"]).fetch(url)).text())),
  timeout: tool(async (_, env) => {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), 5000);
    const r = await env.github.fetch("https://api.example.com/repos/a", { signal: stop.signal });
    clearTimeout(timer);
    return [await r.text(), Date.now()];
  }),
  read: tool(({ path }, env) => env.notes.read(path)),
  look: tool(({ path }, env) => env.docs.read(path)),
  write: tool(async ({ path, binding }, env) => { await env[binding].write(path, "new"); return env[binding].read(path); }),
  list: tool(async (_, env) => [(await env.notes.list("/")).entries.map((e: any) => e.name), (await env.notes.stat("/a.md")).modified]),
  count: tool(async (_, env) => Number(await env.cache.increment("n", 1))),
  keep: tool(async (_, env) => { await env.cache.set("leak", "x"); await env.notes.write("leak", "x"); return 1; }),
  leak: tool(async (_, env) => [await env.cache.get("leak") ?? null, (await env.notes.list("/")).entries.length]),
  optional: tool(async (_, env) => { try { return await env.cache.get("k"); } catch { return "none"; } }),
  wait: tool(async (_, env) => {
    const at = Date.now(), order: string[] = [];
    setTimeout(() => order.push("b"), 86_400_000);
    setTimeout(() => order.push("a"), 60_000);
    await env.clock.sleep(2 * 86_400_000);
    return [at, Date.now() - at, order];
  }),
  log: tool(() => { console.log("hello"); console.error("\u001b[31mred"); return null; }),
  shout: tool(() => { for (let i = 0; i < 1000; i++) console.log("x".repeat(1000)); return null; }),
  mumble: tool(() => { for (let i = 0; i < 10_000; i++) console.log(""); return null; }),
  draw: tool(() => [Math.random(), crypto.randomUUID()]),
  around: tool(async (_, env) => ({
    now: Date.now(), zone: new Date().getTimezoneOffset(), performance: performance.now(), random: Math.random(), env: Object.keys(env).sort(),
    globals: ["require", "Deno", "Bun", "WebSocket", "XMLHttpRequest"].filter((name) => name in globalThis),
    rules: env.github.rules().length,
  })),
  call: tool(async ({ name }, env) => caught(() => env.helpers.call(name, { a: 1 }))),
} });
`

// bindings are those of the extension.
var bindings = []extension.Binding{
	{Name: "blob", Grant: blob.Kind.On()},
	{Name: "cache", Grant: kv.Rights{Store: "own"}},
	{Name: "clock", Grant: clock.Kind.On()},
	{Name: "console", Grant: console.Kind.On()},
	{Name: "docs", Grant: workspace.Rights{Store: "own", Path: "/", Access: workspace.Read}},
	{Name: "github", Grant: http.Rights{Rules: []http.Rule{
		{Host: "api.example.com", Path: "/repos/**", Methods: []string{"GET", "POST"}},
		{Host: "key.example.com", Credential: "key", As: "query:token"},
		{Host: "127.0.0.1", Scheme: "http"},
	}}},
	{Name: "helpers", Grant: tools.Rights{}},
	{Name: "notes", Grant: workspace.Rights{Store: "own", Path: "/notes", Access: workspace.ReadWrite}},
	{Name: "random", Grant: random.Kind.On()},
}

// build makes the extension.
func build(t *testing.T) *host.Component {
	t.Helper()
	return buildOf(t, source, host.Options{})
}

// buildOf makes an extension of a text, with a host that uses the cache all tests share.
func buildOf(t *testing.T, text string, o host.Options) *host.Component {
	t.Helper()
	dir, keyDir := cachetest.Dirs(t)
	o.CacheDir, o.KeyDir = dir, keyDir
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := chain.Build(t.Context(), toolchain.Source{
		FS: fstest.MapFS{"tool.ts": {Data: []byte(text)}}, Entry: "tool.ts", Bindings: extension.Known(bindings),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads a test as a manifest has it.
func parse(t *testing.T, text string) extension.Test {
	t.Helper()
	var test extension.Test
	if err := json.Unmarshal([]byte(text), &test); err != nil {
		t.Fatal(err)
	}
	return test
}
