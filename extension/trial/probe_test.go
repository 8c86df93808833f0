package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// probed are tools on packages that use what does not exist, and what is said of them: nothing of those that work with some input, or fail
// for another reason.
var probed = []struct{ name, pkg, run, input, want, json string }{
	{name: "number", pkg: `export const f = (n) => new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" }).format(n);`, run: `F(input.amount)`, input: `required: ["amount"], properties: { amount: { type: "number" } }`, want: `tool.ts:1: the tool number cannot work, because there is no Intl here, which node_modules/number/index.mjs:1 uses: with the input {"amount":1} it failed with ReferenceError: Intl is not defined`},
	{name: "defaultlocale", pkg: `const locale = () => new Intl.DateTimeFormat().resolvedOptions().locale; export const f = (d) => locale() + d.getTime();`, run: `F(new Date(input.when))`, input: `required: ["when"], properties: { when: { type: "string" } }`, want: "there is no Intl here"},
	{name: "member", pkg: `export const f = (d) => new globalThis.Intl.DateTimeFormat("de").format(d);`, run: `F(new Date(0))`, want: "there is no Intl here"},
	{name: "options", pkg: `export const f = (n) => n.toLocaleString("de-DE", { minimumFractionDigits: 2 });`, run: `F(input.n)`, input: `required: ["n"], properties: { n: { type: "number", minimum: 5 } }`, want: `with the input {"n":5} it failed with TypeError: toLocaleString: there is no Intl here`},
	{name: "sorted", pkg: `export const f = (l) => l.toSorted((a, b) => a.localeCompare(b, "sv"));`, run: `F(input.names)`, input: `required: ["names"], properties: { names: { type: "array", minItems: 2, items: { type: "string" } } }`, want: "there is no Intl here"},
	{name: "compared", pkg: `export const f = (l) => l.sort((a, b) => a.localeCompare(b, "de"));`, run: `F(input.names)`, input: `required: ["names"], properties: { names: { type: "array", items: { type: "string" } } }`, want: `there is no Intl here, which node_modules/compared/index.mjs:1 uses: with the input {"names":["a","b"]}`},
	{name: "sign", pkg: `export async function f(t) { const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(t), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]); return crypto.subtle.sign("HMAC", key, key); }`, run: `F("x")`, want: "there is no crypto.subtle.importKey here, which node_modules/sign/index.mjs:1 uses"},
	{name: "webcrypto", pkg: `import { webcrypto } from "node:crypto"; export const f = () => webcrypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign"]);`, run: `F()`, want: "no crypto.subtle.generateKey here"},
	{name: "instantiate", pkg: `const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]); let ready; export const f = () => ready ??= WebAssembly.instantiate(bytes, {}).then((m) => m.instance);`, run: `F()`, want: "there is no WebAssembly here"},
	{name: "glue", pkg: `const abort = (what) => { throw "Aborted(" + what + ")"; };
const read = () => { throw "both async and sync fetching of the wasm failed"; };
async function instantiate() { try { return await WebAssembly.instantiateStreaming(fetch("x.wasm"), {}); } catch (e) { console.error("wasm streaming compile failed: " + e); }
  try { return read(); } catch (e) { abort(e); } }
export const f = async () => (await instantiate()).exports;`, run: `F()`, want: "there is no WebAssembly here, which node_modules/glue/index.mjs:3 uses: with the input {} it failed with Aborted(both async and sync"},
	{name: "socket", pkg: `export class Client { constructor(url) { this.socket = new WebSocket(url); } } export const f = (u) => new Client(u).socket.readyState;`, run: `F(input.url)`, input: `required: ["url"], properties: { url: { type: "string", format: "uri" } }`, want: `there is no WebSocket here, which node_modules/socket/index.mjs:1 uses: with the input {"url":"https://example.com/"}`},
	{name: "ownwords", pkg: `export const f = () => { if (typeof WebAssembly === "undefined") throw new Error("WebAssembly is not supported in this environment!"); };`, run: `F()`, want: "there is no WebAssembly here"},
	{name: "client", pkg: `export const f = (of = globalThis.WebSocket) => { if (!of) throw Error("No valid WebSocket class provided"); return new of("wss://example.com"); };`, run: `F()`, want: "there is no WebSocket here"},
	{name: "wrapped", pkg: `export const f = () => { try { return Intl.getCanonicalLocales("de"); } catch (e) { throw new Error("cannot format: " + e.message); } };`, run: `F()`, want: "there is no Intl here"},
	{name: "cause", pkg: `export const f = () => { try { return Intl.getCanonicalLocales("de"); } catch (cause) { throw new RangeError("cannot format", { cause }); } };`, run: `F()`, want: "there is no Intl here"},
	{name: "answered", pkg: `export const f = (d) => new Intl.DateTimeFormat("de").format(d);`, run: `F((await (await env.github.fetch("https://api.example.com/repos/a")).json()).at) + await env.cache.get("a")`, want: "there is no Intl here"},
	{name: "schemaless", pkg: `export const f = (at) => { if (Number.isNaN(Date.parse(at))) throw new RangeError("Invalid time value"); return new Intl.DateTimeFormat("de").format(new Date(at)); };`, run: `F(input.at)`, want: "there is no Intl here"},
	{name: "sockets", pkg: `import net from "node:net"; export const f = (host) => net.connect(6379, host);`, run: `F(input.host)`, input: `required: ["host"], properties: { host: { type: "string" } }`, want: `there is no module net of node here, which node_modules/sockets/index.mjs:1 uses: with the input {"host":"a"} it failed with "node:net" is built into node and not available here; the package uses its connect, and nothing else that was tried works; write code or a package that does without net: network access is a capability: use an http binding`},
	{name: "pool", pkg: `import { connect } from "tls"; class Pool { async query(q) { try { return await new Promise((done) => done(connect(5432))); } catch (e) { throw new Error("cannot connect: " + e.message); } } } export const f = (q) => new Pool().query(q);`, run: `F(input.q)`, input: `required: ["q"], properties: { q: { type: "string" } }`, want: `there is no module tls of node here`},
	{name: "causing", pkg: `import { exec } from "node:child_process"; export const f = () => { try { return exec("ls"); } catch (cause) { throw new Error("cannot list", { cause }); } };`, run: `F()`, want: `there is no module child_process of node here`},
	{name: "chat", pkg: `export const f = async (text) => (await fetch("https://chat.example.com/api/post", { method: "POST", body: text })).status;`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`, want: `the manifest does not ask for the binding network, which fetch of https://chat.example.com needs in node_modules/chat/index.mjs:1: with the input {"text":"a"} it failed with UnboundError`},
	{name: "ciphers", pkg: `import { getCiphers } from "node:crypto"; export const f = () => getCiphers();`, run: `F()`, want: `there is no getCiphers of node:crypto here`},
	{name: "addon", json: `, "scripts": {"install": "node-gyp rebuild"}`, pkg: `const load = (name) => { throw new Error("Could not locate the bindings file"); }; export const f = () => load("addon.node");`, run: `F()`, want: `the package addon needs native code, which an extension cannot run, in node_modules/addon/index.mjs:1: with the input {} it failed with Could not locate the bindings file`},
	{name: "driver", pkg: `const load = (name) => { try { return require(name); } catch { throw new Error("Please install " + name + " manually"); } }; export const f = (n = "sql") => load(n + "lite9");`, run: `F()`, want: `a package asks for another one, sqllite9, which is not in the bundle: node_modules/driver/index.mjs:1`},
	{name: "ownfiles", pkg: `import { readFileSync } from "node:fs"; export const f = () => readFileSync("/a", "utf8");`, run: `F()`, want: `the manifest names no files for node:fs, which node_modules/ownfiles/index.mjs:1 uses`},

	{name: "addoninput", json: `, "gypfile": true`, pkg: `export const f = (x) => { if (!/^[0-9]{13}$/.test(x)) throw new RangeError("no ISBN"); return x; };`, run: `F(input.isbn)`, input: `required: ["isbn"], properties: { isbn: { type: "string" } }`},
	{name: "addonoptional", json: `, "gypfile": true`, pkg: `let fast; try { throw new Error("No native build was found"); } catch { fast = (x) => x + 1; } export const f = () => fast(1);`, run: `F()`},
	{name: "socketcaught", pkg: `import net from "net"; export const f = () => { try { return net.connect(1).toString(); } catch (e) { return "without: " + e.message; } };`, run: `F()`},
	{name: "socketbefore", pkg: `import net from "net"; export const f = (t) => { let s; try { s = net.connect(1); } catch {} return JSON.parse(t).n; };`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`},
	{name: "socketasked", pkg: `import net from "net"; export const f = (host) => host ? net.connect(1, host) : "none";`, run: `F(input.host)`, input: `properties: { host: { type: "string" } }`},
	{name: "socketunused", pkg: `import net from "net"; export class Client { open() { return net.connect(1); } } export const f = () => new Client() instanceof net.Socket;`, run: `F()`},
	{name: "sockettested", pkg: `import net from "net"; export const f = (n) => n === 7 ? 7 : net.connect(n);`, run: `F(input.n)`, input: `required: ["n"], properties: { n: { type: "number" } }`},
	{name: "store", pkg: `import net from "net"; export const f = (kind) => kind === "memory" ? 1 : net.connect(6379);`, run: `F(input.kind)`, input: `required: ["kind"], properties: { kind: { enum: ["redis", "disk", "memory"] } }`},
	{name: "source", pkg: `import net from "net"; export const f = (o) => o.text ?? net.connect(6379, o.host);`, run: `F(input.of)`, input: `required: ["of"], properties: { of: { oneOf: [{ type: "object", properties: { host: { type: "string" } }, required: ["host"] }, { type: "object", properties: { text: { type: "string" } }, required: ["text"] }] } }`},
	{name: "page", pkg: `export const f = async (url) => (await fetch(url)).text();`, run: `F(input.url)`, input: `required: ["url"], properties: { url: { type: "string", format: "uri" } }`},
	{name: "reported", pkg: `export const f = (report) => report ? fetch("https://chat.example.com/").then((r) => r.status) : 1;`, run: `F(input.report)`, input: `properties: { report: { type: "boolean" } }`},
	{name: "fetchcaught", pkg: `export const f = () => fetch("https://chat.example.com/").catch(() => "offline");`, run: `F()`},
	{name: "fetchbefore", pkg: `export const f = async (t) => { await fetch("https://chat.example.com/").catch(() => 0); return JSON.parse(t).n; };`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`},
	{name: "fetchnothing", pkg: `export const f = async (t) => (await fetch(t)).status;`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`},

	{name: "guarded", pkg: `export const f = (n) => typeof Intl === "undefined" ? n.toFixed(2) : new Intl.NumberFormat("en").format(n);`, run: `F(1)`},
	{name: "optional", pkg: `export const f = (n) => globalThis.Intl?.NumberFormat ? new Intl.NumberFormat("en").format(n) : String(n);`, run: `F(1)`},
	{name: "caught", pkg: `let rules; try { rules = new Intl.PluralRules("en"); } catch { rules = { select: () => "other" }; } export const f = (n) => rules.select(n);`, run: `F(1)`},
	{name: "caughtlater", pkg: `const rules = () => { try { return new Intl.PluralRules("en"); } catch { return { select: () => "other" }; } }; export const f = (t) => rules().select(JSON.parse(t).n);`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`},
	{name: "asked", pkg: `export const f = (n, locale) => locale ? new Intl.NumberFormat(locale).format(n) : n.toFixed(2);`, run: `F(input.n, input.locale)`, input: `required: ["n"], properties: { n: { type: "number" }, locale: { type: "string" } }`},
	{name: "asked2", pkg: `export const f = (how) => how === "plain" ? 1 : new Intl.NumberFormat("de").format(1);`, run: `F(input.how)`, input: `required: ["how"], properties: { how: { enum: ["local", "plain"] } }, examples: [{ how: "local" }, { how: "plain" }]`},
	{name: "uncalled", pkg: `export const other = (n) => new Intl.NumberFormat("en").format(n); export const f = (n) => n + 1;`, run: `F(1)`},
	{name: "method", pkg: `export class A { local() { return new Intl.NumberFormat("en").format(1); } plain() { return "1"; } } export const f = () => new A().plain();`, run: `F()`},
	{name: "wrong", pkg: `export const f = (t) => new Date(JSON.parse(t).at).toISOString(); export const g = () => Intl;`, run: `F(input.text)`, input: `required: ["text"], properties: { text: { type: "string" } }`},
	{name: "temporal", pkg: `const of = globalThis.Intl; const zone = () => of ? new of.DateTimeFormat().resolvedOptions().timeZone : "UTC"; export class Now { static zone() { return zone(); } } export const f = () => Now.zone();`, run: `F()`},
	{name: "long", pkg: `let wasm = null; try { wasm = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(8)), {}).exports; } catch {} export const f = (a, b) => wasm ? wasm.mul(a, b) : a * b;`, run: `F(2, 3)`},
	{name: "iskey", pkg: `export const f = (k) => typeof CryptoKey !== "undefined" && k instanceof CryptoKey ? "key" : typeof crypto.subtle.sign;`, run: `F({})`},
	{name: "digest", pkg: `export const f = async (t) => new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(t)))[0];`, run: `F("a")`},
	{name: "endless", pkg: `export const f = () => { for (;;); }; export const g = () => Intl;`, run: `F()`},
	{name: "bomb", pkg: `export const f = (n) => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)); }`, run: `F()`},
	{name: "typo", pkg: `export const f = () => formatt(1);`, run: `F()`},
	{name: "thrown", pkg: `export const f = (x) => { if (!/^[0-9]{13}$/.test(x)) throw new RangeError("no ISBN"); return x; };`, run: `F(input.isbn)`, input: `required: ["isbn"], properties: { isbn: { type: "string" } }`},
	{name: "denied", pkg: `export const f = async (docs) => { await docs.write("/a", "b"); return new Intl.NumberFormat("en").format(1); };`, run: `F(env.docs)`},
	{name: "tested", pkg: `export const f = (n) => n === 7 ? 7 : new Intl.NumberFormat("en").format(n);`, run: `F(input.n)`, input: `required: ["n"], properties: { n: { type: "number" } }`},
}

func TestProbe(t *testing.T) {
	files := fstest.MapFS{}
	var imports, tools strings.Builder
	for i, p := range probed {
		files["node_modules/"+p.name+"/index.mjs"] = &fstest.MapFile{Data: []byte(p.pkg)}
		files["node_modules/"+p.name+"/package.json"] = &fstest.MapFile{Data: []byte(`{"main": "index.mjs"` + p.json + `}`)}
		fmt.Fprintf(&imports, "import { f as f%d } from %q; ", i, p.name)
		fmt.Fprintf(&tools, "  %s: { description: \"Tries\", input: { type: \"object\", %s }, run: async (input, env) => %s },\n", p.name, p.input, strings.ReplaceAll(p.run, "F(", fmt.Sprintf("f%d(", i)))
	}
	text := imports.String() + "import { extension } from \"stile\"; export default extension({ tools: {\n" + tools.String() + "} });"
	files["tool.ts"] = &fstest.MapFile{Data: []byte(text)}
	c := probeOf(t, files)
	found, err := Probe(t.Context(), Request{Component: c, Bindings: bindings, Packages: files}, map[string]bool{"tested": true, "sockettested": true}, []string{"at"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range probed {
		i := slices.IndexFunc(found, func(f extension.Problem) bool { return strings.Contains(f.Text, "the tool "+p.name+" cannot") })
		got := ""
		if i >= 0 {
			got = found[i].String()
			if found[i].Fix == "" || !strings.Contains(found[i].Fix, "; if the tool works with what callers give it, show that in a test of the manifest") || printable.Text(got) != got {
				t.Errorf("%s: the fix is %q", p.name, found[i].Fix)
			}
		}
		want := p.want
		if at, rest, ok := strings.Cut(want, ":1: the tool"); ok && i >= 0 {
			want = fmt.Sprintf("the tool%s", rest)
			if found[i].File != at || found[i].Line == 0 {
				t.Errorf("%s is at %s:%d", p.name, found[i].File, found[i].Line)
			}
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", p.name, got, want)
		}
	}
}

// A package that lacks its binding is no problem where callers may give it, and the problem has the line of the manifest.
func TestProbeOfFetch(t *testing.T) {
	files := fstest.MapFS{
		"node_modules/chat/index.mjs":    {Data: []byte(`export const f = async (url) => (await fetch(url)).status;`)},
		"node_modules/chat/package.json": {Data: []byte(`{"main": "index.mjs"}`)},
		"tool.ts": {Data: []byte(`import { f } from "chat"; import { extension } from "stile"; export default extension({ tools: {
  a: { description: "Asks", run: () => f("https://chat.example.com/x") }, b: { description: "Asks", run: () => f("http://chat.example.com:8080/x") } } });`)},
	}
	c := probeOf(t, files)
	for _, open := range []bool{false, true} {
		found, err := Probe(t.Context(), Request{Component: c, Bindings: bindings, Open: open}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if open {
			if len(found) != 0 {
				t.Errorf("got %v", found)
			}
			continue
		}
		for i, want := range []string{
			`"permissions": { "network": ["chat.example.com"] } in the manifest; if the tool works`,
			`"bindings": { "network": {"http":[{"scheme":"http","host":"chat.example.com","port":8080`,
		} {
			if len(found) != 2 || !strings.HasPrefix(found[i].Fix, want) || found[i].File != "tool.ts" {
				t.Fatalf("got %q, want %s", found, want)
			}
		}
	}
	network := extension.Binding{Name: network, Grant: http.Rights{Rules: []http.Rule{{Host: "*.example.com", Methods: []string{"GET"}}}}}
	found, err := Probe(t.Context(), Request{Component: c, Bindings: append([]extension.Binding{network}, bindings...)}, nil, nil)
	if err != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

// A probe ends with its context.
func TestProbeEnds(t *testing.T) {
	c := build(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Probe(ctx, Request{Component: c, Bindings: bindings}, nil, nil); err == nil {
		t.Error("no error")
	}
}

func probeOf(t *testing.T, files fstest.MapFS) *host.Component {
	t.Helper()
	dir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	c, err := chain.Build(t.Context(), toolchain.Source{FS: files, Entry: "tool.ts", Bindings: extension.Known(bindings)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSuggestions(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: `[{},{"at":"2024-01-31T12:00:00Z","text":"a"}]`,
		`{}`:                `[{},{"at":"2024-01-31T12:00:00Z","text":"a"}]`,
		`{"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"type":["string","null"],"minLength":3},"c":{"$ref":"#/$defs/c"}},"required":["a"],"$defs":{"c":{"enum":["x"]}}}`: `[{"a":3},{"a":3,"b":"aaa","c":"x"}]`,
		`{"type":"object","properties":{"when":{"type":"string","format":"date"},"n":{"default":4},"l":{"type":"array","minItems":2,"items":{"type":"boolean"}}},"required":["l","when","n"]}`:    `[{"l":[false,true],"n":4,"when":"2024-01-31"},{"l":[true,false],"n":4,"when":"2024-01-31"}]`,
		`{"examples":[{"a":1},{"a":2},{"a":3}],"type":"object","properties":{}}`: `[{"a":1},{"a":2},{"a":3}]`,
		`{"$ref":"#"}`: `[null]`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","minimum":3},"t":{"type":"string","format":"date"},"e":{"enum":["x","y"]},"l":{"type":"array","items":{"type":"string"}}},"required":["n","t","e","l"]}}},"required":["l"]}`: `[{"l":[{"e":"x","l":["a","b"],"n":3,"t":"2024-01-31"},{"e":"y","l":["b"],"n":4,"t":"2024-02-29"}]},{"l":[{"e":"y","l":["a","b"],"n":3,"t":"2024-01-31"},{"e":"y","l":["b"],"n":4,"t":"2024-02-29"}]}]`,
		`{"type":"object","properties":{"l":{"type":"array","maxItems":1,"items":{"type":"string"}},"m":{"type":"array","items":{"const":1}},"n":{"type":"array","minItems":3,"items":{"type":"number","maximum":1}}},"required":["l","m","n"]}`:                                                      `[{"l":["a"],"m":[1],"n":[1,1,1]}]`,
		`{"anyOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"]},{}]}`:                                     `[{"a":1},{"at":"2024-01-31T12:00:00Z","text":"a"},{}]`,
		`{"type":"object","properties":{"a":{"enum":[1,2,3,4]},"b":{"oneOf":[{"const":5},{"const":6}]}},"required":["a","b"]}`: `[{"a":1,"b":5},{"a":2,"b":6},{"a":3,"b":6},{"a":4,"b":6}]`,
		`{"type":"object","allOf":[{"properties":{"a":{"type":"number"}},"required":["a"]}]}`:                                  `[{"a":1},{"at":"2024-01-31T12:00:00Z","text":"a"}]`,
		`{"type":"array","minItems":1e9,"items":{"type":"string","minLength":1e9}}`:                                            "",
		`no JSON`: `[{},{"at":"2024-01-31T12:00:00Z","text":"a"}]`,
	} {
		text, err := json.Marshal(suggestions(schema, []string{"at", "text"}))
		if err != nil || want != "" && string(text) != want || len(text) > 40_000 {
			t.Errorf("%s: got %.300s, %v; want %s", schema, text, err, want)
		}
	}
}
