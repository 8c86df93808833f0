package toolchain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jsonform"
)

// uses are code that reaches the host through the prelude, by the method or API that it covers: all methods of each binding, and
// the web APIs. The names of the bindings alone import nothing.
var uses = map[string]string{
	"c.now":       `env.c.now()`,
	"c.monotonic": `env.c.monotonic()`,
	"vars":        `env.vars`,
	"l.progress":  `env.l.progress(1, 2, "half")`,
	"c.sleep":     `await env.c.sleep(1); await env.c.sleep(new Date(0))`,

	"x.run":    `await env.x.run("echo a")`,
	"x.start":  `const started = env.x.start("echo a; sleep 9"); for await (const _ of started) started.stop(); await started.result`,
	"x.push":   `await env.x.push(env.w)`,
	"x.pull":   `await env.x.pull(env.w)`,
	"x.limits": `await env.x.limits()`,

	"r.u64":   `env.r.u64()`,
	"r.bytes": `env.r.bytes(3)`,

	"l.trace": `env.l.trace("a")`,
	"l.debug": `env.l.debug("a")`,
	"l.log":   `env.l.log("a")`,
	"l.info":  `env.l.info("a")`,
	"l.warn":  `env.l.warn("a")`,
	"l.error": `env.l.error("a")`,

	"k.get":           `await env.k.get("a")`,
	"k.set":           `await env.k.set("a", "1")`,
	"k.delete":        `await env.k.delete("a")`,
	"k.list":          `await env.k.list()`,
	"k.increment":     `await env.k.increment("n")`,
	"k.compareAndSet": `await env.k.compareAndSet("b", undefined, "c")`,

	"s.createBlob":       `await env.s.createBlob(["a", new Uint8Array(1), await env.s.createBlob(["b"])])`,
	"s.createBlob bytes": `await (await env.s.createBlob(["a"])).bytes()`,
	"s.createBlob write": `await env.w.write("d", await env.s.createBlob(["a"]))`,

	"w.read":           `await env.w.read("a")`,
	"w.readLines":      `await env.w.readLines("a")`,
	"w.readBytes":      `await env.w.readBytes("a")`,
	"w.readBlob":       `await (await env.w.readBlob("a")).bytes()`,
	"w.write":          `await env.w.write("d", "b")`,
	"w.write bytes":    `await env.w.write("d", new Uint8Array(300_000))`,
	"w.write blob":     `await env.w.write("d", await env.w.readBlob("a"))`,
	"w.write fetched":  `await env.w.write("d", await (await fetch(site + "/bytes")).blob())`,
	"w.append":         `await env.w.append("d", "b")`,
	"w.append bytes":   `await env.w.append("d", new Uint8Array(1))`,
	"w.edit":           `await env.w.edit("a", [{ old: "b", new: "c" }])`,
	"w.list":           `await env.w.list()`,
	"w.find":           `await env.w.find("*")`,
	"w.grep":           `await env.w.grep("a")`,
	"w.diff":           `await env.w.diff("a", "a")`,
	"w.stat":           `await env.w.stat("a")`,
	"w.digest":         `await env.w.digest("a")`,
	"w.readWithDigest": `await env.w.readWithDigest("a")`,
	"w.replace":        `await env.w.replace("new", "b")`,
	"w.diffRevision":   `await env.w.write("a", "c"); await env.w.diffRevision("a", (await env.w.history("a"))[0].id)`,
	"w.setMode":        `await env.w.setMode("a", 0o600)`,
	"w.makeLink":       `await env.w.makeLink("k", "a")`,
	"w.readLink":       `await env.w.makeLink("k", "a"); await env.w.readLink("k")`,
	"w.history":        `await env.w.history("a")`,
	"w.restore":        `await env.w.write("a", "c"); await env.w.restore("a", (await env.w.history("a"))[0].id)`,
	"w.readRevision":   `await env.w.write("a", "c"); await (await env.w.readRevision("a", (await env.w.history("a"))[0].id)).bytes()`,
	"w.snapshot":       `await env.w.snapshot()`,
	"w.snapshots":      `await env.w.snapshots()`,

	"w.restoreSnapshot": `await env.w.restoreSnapshot(await env.w.snapshot())`,
	"w.removeSnapshot":  `await env.w.removeSnapshot(await env.w.snapshot())`,
	"w.write revision":  `await env.w.write("a", "c"); await env.w.write("d", await env.w.readRevision("a", (await env.w.history("a"))[0].id))`,
	"w.makeDirectory":   `await env.w.makeDirectory("e/f")`,
	"w.move":            `await env.w.move("a", "g")`,
	"w.copy":            `await env.w.copy("a", "h")`,
	"w.remove":          `await env.w.remove("a")`,
	"w.subdirectory":    `env.w.subdirectory(".")`,
	"w.readOnly":        `env.w.readOnly()`,

	"network.fetch":       `await (await env.network.fetch(site + "/echo")).text()`,
	"network.fetch bytes": `await (await env.network.fetch(site + "/bytes")).bytes()`,
	"network.fetch text":  `await (await fetch(site + "/bytes")).text()`,
	"network.fetch copy":  `await (await fetch(site + "/bytes")).clone().text()`,
	"network.fetch blob":  `await (await (await fetch(site + "/echo")).blob()).text()`,
	"network.fetch body":  `for await (const piece of (await fetch(site + "/bytes")).body!) void piece`,
	"network.fetch large": `await (await fetch(site + "/echo", { method: "POST", body: new Uint8Array(300_000) })).text()`,
	"network.narrow":      `env.network.narrow([])`,
	"network.rules":       `env.network.rules()`,

	"b.open":       `await env.b.open("https://a.example/")`,
	"b.click":      `await env.b.click("a")`,
	"b.fill":       `await env.b.fill("a", "b")`,
	"b.press":      `await env.b.press("a")`,
	"b.waitFor":    `await env.b.waitFor("a")`,
	"b.text":       `await env.b.text()`,
	"b.html":       `await env.b.html()`,
	"b.markdown":   `await env.b.markdown()`,
	"b.evaluate":   `await env.b.evaluate("a")`,
	"b.screenshot": `const shot = await env.b.screenshot(); shot.type; await shot.bytes()`,
	"b.pdf":        `await (await env.b.pdf()).bytes()`,
	"b.downloads":  `await (await env.b.downloads).bytes()`,
	"b.close":      `await env.b.close()`,

	"b.screenshot write": `await env.w.write("d", await env.b.screenshot())`,
	"b.pdf write":        `await env.w.write("d", await env.b.pdf())`,
	"b.downloads write":  `await env.w.write("d", await env.b.downloads)`,

	"t.call":   `await env.t.call("a")`,
	"t.search": `await env.t.search("a")`,

	"t.describe": `await env.t.describe("a")`,

	"e.execute":        `await env.e.execute("a")`,
	"e.execute throws": `await env.e.execute("b").catch(() => 0)`,

	"Date":            `new Date()`,
	"performance":     `performance.now()`,
	"setTimeout":      `await new Promise((resolve) => setTimeout(resolve, 1))`,
	"setImmediate":    `await new Promise((resolve) => setImmediate(resolve)); Date.now()`,
	"MessageChannel":  `const { port1, port2 } = new MessageChannel(); await new Promise((resolve) => { port1.onmessage = resolve; port2.postMessage(1); }); Date.now()`,
	"setInterval":     `await new Promise((resolve) => { const id = setInterval(() => { clearInterval(id); resolve(0); }, 1); })`,
	"timeout":         `await new Promise((resolve) => AbortSignal.timeout(1).addEventListener("abort", resolve))`,
	"Math.random":     `Math.random()`,
	"getRandomValues": `crypto.getRandomValues(new Uint8Array(1))`,
	"randomUUID":      `crypto.randomUUID()`,
	"digest":          `await crypto.subtle.digest("SHA-1", new Uint8Array(1))`,
	"console":         `console.log("a")`,
	"console.time":    `console.time(); console.timeEnd()`,
	"compress":        `await new Response(new Blob(["a"]).stream().pipeThrough(new CompressionStream("gzip"))).bytes()`,
	"decompress":      `await new Response(new Blob(["a"]).stream().pipeThrough(new DecompressionStream("gzip"))).bytes().catch(() => 0)`,
	"stileCodec":      `(globalThis as any)[Symbol.for("stileCodec")](false, "gzip", 6).step(new Uint8Array(1))`,
	"m.receive":       `await env.m.receive("a")`,
	"m.url":           `await env.m.url("a")`,
	"d.cancelled":     `env.d.cancelled`,
	"d.keepAwake":     `await env.d.keepAwake(1)`,
	"d.stash":         `await env.d.stash(1)`,
	"d.recover":       `await env.d.recover()`,
	"d.start":         `await (await env.d.start("a_get")).result()`,
	"d.started":       `await env.d.started((await env.d.start("a_get")).id).result()`,
	"d.start status":  `await (await env.d.start("a_get")).status()`,
	"d.start signal":  `await (await env.d.start("a_get")).signal("a")`,
	"d.start cancel":  `await (await env.d.start("a_get")).cancel()`,
	"async":           `void (async () => { throw 1; })()`,
	"Promise":         `void Promise.reject(1)`,
}

// The operations that the prelude needs for a word in the code are imported because of that word: see apis.
func TestWordsLeadToWhatIsUsed(t *testing.T) {
	s := newScripts(t)
	var text strings.Builder
	text.WriteString(`import { extension } from "stile";
const uses: Record<string, (env: any, site: string) => Promise<void>> = {`)
	for name, use := range uses {
		fmt.Fprintf(&text, "%q: async (env, site) => { %s },\n", name, use)
	}
	text.WriteString(`};
const methods = (env: any) => Object.keys(env).flatMap((name) => Object.keys(env[name]).map((method) => name + "." + method));
export default extension({ tools: {
	use: { description: "Uses", run: ({ name, site }: any, env: any) => uses[name](env, site) },
	methods: { description: "Lists", run: (_: any, env: any) => methods(env) },
} });`)
	c, err := s.toolchain.Build(t.Context(), Source{FS: fstest.MapFS{"uses.ts": {Data: []byte(text.String())}}, Entry: "uses.ts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	rule, err := httpcap.ParseRule(s.site + "/**,methods=GET+POST")
	if err != nil {
		t.Fatal(err)
	}
	env := host.Env{
		"c": clock.System(), "r": random.System(), "l": console.To(func(console.Level, string) {}), "k": s.kv.Bucket("uses"), "x": newSandbox(t),
		"s": blob.NewStore(blob.StoreOptions{}), "network": httpcap.Allow(rule), "t": toolbox{},
	}

	env["b"], err = browser.Rights{Rules: []httpcap.Rule{{Host: "a.example"}}}.Double(t.Context(), &double.Test{}, []byte(`{
		"open https://a.example/": {}, "click a": {}, "press a": {}, "wait-for selector a": {}, "text": {}, "html": {}, "markdown": {},
		"evaluate a": {"json": 1}, "screenshot": {"file": "a"}, "pdf": {"file": "a"}, "download": {"file": "a"}
	}`))
	if err != nil {
		t.Fatal(err)
	}

	env["e"], err = code.Rights{}.Double(t.Context(), &double.Test{}, []byte(`{"a": {"result": 1}, "b": {"error": "c"}}`))
	if err != nil {
		t.Fatal(err)
	}

	env["m"], err = signals.Rights{}.Double(t.Context(), &double.Test{Clock: double.NewClock()}, []byte(`{"a": [1]}`))
	if err != nil {
		t.Fatal(err)
	}

	starts := jsonform.New("manifest.json", []byte(`{"start": ["a_*"]}`))
	env["d"], err = runs.Kind.Parse(starts, starts.Parse()).(runs.Starts).Double(t.Context(), &double.Test{Clock: double.NewClock()}, []byte(`{"starts": {"a_get": {"output": 1}}}`))
	if err != nil {
		t.Fatal(err)
	}

	workspace := s.workspace.Workspace("methods")
	env["w"] = workspace
	out, err := c.Call(t.Context(), "methods", nil, env)
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	if err := json.Unmarshal(out, &methods); err != nil {
		t.Fatal(err)
	}
	for _, method := range methods {
		if uses[method] == "" {
			t.Errorf("the prelude has a new method %s: add a use of it", method)
		}
	}

	used := map[string]bool{} // pairs of a method and a word in the code that used it
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			words := map[string]bool{}
			for _, w := range word.FindAllString(use, -1) {
				words[w] = true
			}
			world, err := s.toolchain.world(nil, func(word string) bool { return words[word] })
			if err != nil {
				t.Fatal(err)
			}
			workspace := s.workspace.Workspace(name)
			if err := workspace.Write(t.Context(), "a", "b"); err != nil {
				t.Fatal(err)
			}
			env := maps.Clone(env)
			env["w"] = workspace
			_, err = c.Do(t.Context(), host.Request{
				Tool: "use", Input: fmt.Appendf(nil, `{"name": %q, "site": %q}`, name, s.site), Env: env,
				Observe: func(o host.Operation) {
					for w := range words {
						used[apiName(o.Interface, o.Func)+" "+w] = true
					}
					if !slices.ContainsFunc(world.Imports, func(i *abi.Interface) bool {
						return i.Name == o.Interface && slices.ContainsFunc(i.Funcs, func(f *abi.Func) bool { return f.Name == o.Func })
					}) {
						t.Errorf("it calls %s of %s, which no word of it leads to", o.Func, o.Interface)
					}
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for method, words := range apis(nil) {
		if method == "blob.blob.text" {
			continue // not the prelude's own, which reads bytes; this is for the objects that it makes of an embedder's handles
		}
		for _, w := range words {
			if w != always && !used[method+" "+w] {
				t.Errorf("%s is imported for the word %s, and no use of that calls it", method, w)
			}
		}
	}
}

// newSandbox needs root, and crun or runc.
func newSandbox(t *testing.T) *sandbox.Grant {
	g, err := sandbox.New(sandbox.Options{Dir: t.TempDir()}, sandbox.Rights{Image: "host"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// toolbox implements the resource `toolbox` of stile:capability/tools.
type toolbox struct{}

type description struct{ Name, Description, InputSchema string }

func (toolbox) Interface() string { return "stile:capability/tools@0.1.0" }

func (toolbox) Search(context.Context, string, uint32) []description {
	return []description{{"a", "A", "{}"}}
}

func (toolbox) Describe(context.Context, []string) string { return "a" }

func (toolbox) Start(context.Context, string, string, any) (*pending, error) { return &pending{}, nil }

type pending struct{}

func (*pending) Subscribe(context.Context) *abi.Pollable { return abi.Ready() }

func (*pending) Take(context.Context) (string, error) { return "1", nil }

// TestImportsAreFew counts on code that has words of bindings that the extension does not have: each imported function costs each call time.
func TestImportsAreFew(t *testing.T) {
	s := newScripts(t)
	const words = "run text write list append edit read get set open close click createBlob readBlob search describe Date "
	for _, c := range []struct{ bindings, words, want string }{
		{"", words, "env.names clock.now clock.get"},
		{clock.Interface, words, "env.names clock.now clock.get"},
		{clock.Interface + " " + httpcap.Interface, words + "fetch body", "env.names http.start http.head http.text http.blob http.subscribe http.get blob.size blob.packed clock.now clock.get poll.poll poll.park"},
	} {
		world, err := s.toolchain.world(strings.Fields(c.bindings), func(word string) bool { return slices.Contains(strings.Fields(c.words), word) })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range world.Imports {
			for _, f := range i.Funcs {
				got = append(got, kindOf(i.Name)+"."+f.Name[strings.LastIndexByte(f.Name, '.')+1:])
			}
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%q with %q: imports %q, want %q", c.words, c.bindings, got, want)
		}
	}
}
