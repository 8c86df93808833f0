package toolchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/clock"
	codecap "github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/wit"
)

// ownWIT is a capability of an embedder, whose call can write down one kind of its values and not the other.
const ownWIT = `package test:shops@1.0.0;
interface shops {
  use stile:capability/env@0.1.0.{env};
  use stile:capability/types@0.1.0.{error};
  resource shop {
    ticket: func(number: u32) -> result<ticket, error>;
    seat: func(number: u32) -> result<seat, error>;
  }
  resource ticket { number: func() -> result<u32, error>; }
  resource seat { number: func() -> result<u32, error>; }
  get: func(env: borrow<env>, name: string) -> result<shop, error>;
  put: func(env: borrow<env>, name: string, shop: shop) -> result<_, error>;
}`

// own implements it. Tickets are [abi.Lasting], and seats are not.
type own struct{ closed bool }

func (*own) Interface() string { return "test:shops/shops@1.0.0" }

func (*own) Ticket(_ context.Context, n uint32) (*ticket, error) { return &ticket{n}, nil }

func (*own) Seat(_ context.Context, n uint32) (*seat, error) { return &seat{n}, nil }

func (o *own) Restore(_ context.Context, _ string, state []byte) (any, error) {
	if o.closed {
		return nil, abi.Deny(abi.Denial{Operation: "use a ticket", Reason: "the shop is closed today"})
	}
	t := &ticket{}
	_, err := fmt.Sscan(string(state), &t.n)
	return t, err
}

type ticket struct{ n uint32 }

func (t *ticket) Number(context.Context) (uint32, error) { return t.n, nil }

func (t *ticket) Save() (state []byte, ok bool) { return fmt.Append(nil, t.n), true }

type seat struct{ n uint32 }

func (s *seat) Number(context.Context) (uint32, error) { return s.n, nil }

// held says whether a durable call sleeps while it holds a kind of handle.
type held struct {
	resource string // of the WIT, as "interface.resource"
	what     string // for people, in docs/durable.md; empty for what only a test has
	sleeps   bool
	// open is the begin of a body, which gets the handle. After it, the body waits, and use, which ends it with true, comes last.
	open, use string
	// done is what a body does in place of use, so that it sleeps when it waits again. It is for what keeps a call awake for a time.
	done string
}

// helds has every resource of every capability.
var helds = []held{
	{resource: "env.env", what: "its `env`, and every binding that is not named below", sleeps: true, use: `return typeof env.store.get === "function";`},
	{resource: "kv.bucket", sleeps: true, open: `await env.store.set("a", "1");`, use: `return await env.store.get("a") === "1";`},
	{resource: "clock.clock", sleeps: true, open: `const before = await env.clock.now();`, use: `return await env.clock.now() >= before + 3_600_000;`},
	{resource: "random.random", sleeps: true, open: `const before = Math.random();`, use: `return Math.random() !== before;`},
	{resource: "console.console", sleeps: true, open: `console.log("a");`, use: `console.log("b"); return true;`},
	{resource: "tools.toolbox", sleeps: true, open: `await env.tools.call("quick");`, use: `return await env.tools.call("quick") === 1;`},
	{resource: "code.runner", sleeps: true, open: `await env.code.execute("quick");`, use: `return (await env.code.execute("quick")).result === 1;`},
	{resource: "blob.store", sleeps: true, open: `env.blobs;`, use: `return await (await env.blobs.createBlob(["a"])).text() === "a";`},
	{resource: "http.client", what: "an `http` binding that the tool has narrowed", sleeps: true, open: `const web = env.web.narrow(env.web.rules());`, use: `return (await (await web.fetch(input.url + "/quick")).text()) === "x";`},
	{
		resource: "workspace.directory", what: "a directory from `subdirectory` or `readOnly`", sleeps: true, open: `await env.files.makeDirectory("d"); const sub = env.files.subdirectory("d"); await sub.write("f", "a"); const fixed = sub.readOnly();`,
		use: `await sub.append("f", "b"); return await fixed.read("f") === "ab";`,
	},
	{resource: "poll.pollable", what: "timers and `clock.sleep`", sleeps: true, open: `const timers = [env.clock.sleep(3_600_000), env.clock.sleep("50 minutes")];`, use: `await Promise.all(timers); return true;`},
	{resource: "signals.mailboxes", sleeps: true, open: `env.mail;`, use: `return await env.mail.receive("go", { timeout: 1 }) === undefined;`},
	{resource: "signals.pending", what: "`signals.receive`", sleeps: true, open: `const signal = env.mail.receive("go", { timeout: "30 minutes" });`, use: `return await signal === undefined;`},
	{
		resource: "http.exchange", what: "a request of `http`, until its response is read, or its `AbortSignal` ends it", open: `const sent = env.web.fetch(input.url + "/slow");`,
		use: `await env.web.fetch(input.url + "/release"); return await (await sent).text() === "x";`, done: `await env.web.fetch(input.url + "/release").then(r => r.text()); await (await sent).text();`,
	},
	{resource: "http.exchange", open: `const response = await env.web.fetch(input.url + "/quick");`, use: `return await response.text() === "x";`, done: `for await (const part of response.body) part.length;`},
	{
		resource: "poll.pollable", what: "what it waits for that is none of these, alone or beside a timer", open: `const sent = env.web.fetch(input.url + "/slow"); const both = Promise.all([sent, env.clock.sleep(150)]);`,
		use: `await env.web.fetch(input.url + "/release"); await both; return await (await sent).text() === "x";`,
	},
	{
		resource: "blob.blob", what: "blobs of a `blob` binding, of responses and of files, with 64 KiB in all", sleeps: true,
		open: `await env.files.write("f", "file"); const empty = await env.blobs.createBlob([]);
		const response = await env.web.fetch(input.url + "/quick"); const clone = response.clone(); await response.bytes();
		const all = [await env.blobs.createBlob(["x".repeat(65_000)], { type: "text/x" }), await (await env.web.fetch(input.url + "/quick")).blob(), clone, await env.files.readBlob("f")];`,
		use: `return (await all[0].text()).length === 65_000 && all[0].type === "text/x" && await all[1].text() === "x" && await all[2].text() === "x" && await all[3].text() === "file" && empty.size === 0 && await all[0].slice(2, 4).text() === "xx";`,
	},
	{resource: "blob.blob", what: "blobs with more, or of a browser. Once it has them, it stays awake until it ends", open: `const blobs = [await env.blobs.createBlob(["a".repeat(40_000)]), await env.blobs.createBlob(["a".repeat(40_000)])];`, use: `return (await blobs[0].text()).length === 40_000;`},
	{resource: "blob.blob", open: `const blob = await env.blobs.createBlob(["a".repeat(65_536)]);`, use: `return (await blob.text()).length === 65_536;`},
	{
		resource: "blob.blob", sleeps: true, open: `const bytes = await (await env.web.fetch(input.url + "/quick")).bytes(); await env.files.write("w", await env.web.fetch(input.url + "/quick")); await env.files.write("b", (await env.web.fetch(input.url + "/quick")).body);`,
		use: `return bytes.length === 1 && await env.files.read("w") === "x" && await env.files.read("b") === "x";`,
	},
	{resource: "blob.writer", what: "a `Blob` that is being written", open: `let end; const stream = new ReadableStream({ async pull(c) { await new Promise(r => end = r); c.enqueue(new TextEncoder().encode("a")); c.close(); } });
		let large = 0; const body = new ReadableStream({ async pull(c) { if (large++ < 5) c.enqueue(new Uint8Array(250_000)); else { await new Promise(r => end = r); c.close(); } } });
		const sent = env.web.fetch(input.url + "/length", { method: "POST", body, duplex: "half" });`, use: `end(); return await (await sent).text() === "1250000";`},
	{resource: "tools.pending", what: "[a call of another tool](#calls-of-other-tools) that is durable too", sleeps: true, open: `const child = env.tools.call("durable");`, use: `return await child === 1;`},
	{resource: "tools.pending", what: "any other call of a tool", open: `const called = env.tools.call("slow");`, use: `await env.web.fetch(input.url + "/release"); return await called === 1;`, done: `await env.web.fetch(input.url + "/release").then(r => r.text()); await called;`},
	{
		resource: "code.pending", what: "a run of `code`", open: `const called = env.code.execute("slow");`, use: `await env.web.fetch(input.url + "/release"); return (await called).result === 1;`,
		done: `await env.web.fetch(input.url + "/release").then(r => r.text()); await called;`,
	},
	{resource: "runs.control", sleeps: true, open: `const { cancelled } = env.run;`, use: `return !cancelled.aborted && cancelled === env.run.cancelled;`},
	{resource: "runs.control", what: "`result()` of [a run that it has started](#starting-runs)", sleeps: true, open: `const started = await env.run.start("base_get"); const result = started.result();`, use: `return await result === 1 && (await started.status()).state === "done";`},
	{resource: "runs.awake", what: "a promise in `keepAwake`, until it is settled", open: `let end; const kept = env.run.keepAwake(new Promise(r => end = r));`, use: `end(7); return await kept === 7;`, done: `end(7); await kept;`},
	{
		resource: "compression.codec", what: "a `CompressionStream` or `DecompressionStream`, until its end", open: `const packing = new CompressionStream("gzip"); const writer = packing.writable.getWriter(); const packed = new Response(packing.readable).bytes(); await writer.write(new Uint8Array(600_000));`,
		use:  `await writer.close(); return (await packed).length > 10;`,
		done: `await writer.close(); await packed;`,
	},
	{resource: "browser.session", what: "a page of a browser, until `close`", open: `await env.page.open(input.url + "/page");`, use: `return (await env.page.text()).includes("hello");`, done: `await env.page.close();`},
	{
		resource: "browser.pending", what: "an action of a browser", open: `const opened = env.page.open(input.url + "/slow");`, use: `await env.web.fetch(input.url + "/release"); return (await opened).status === 200;`,
		done: `await env.web.fetch(input.url + "/release").then(r => r.text()); await opened; await env.page.close();`,
	},
	{resource: "sandbox.container", what: "a sandbox that the call has used, until the call ends", open: `await env.box.run("echo a > f");`, use: `return (await env.box.run("cat f")).stdout === "a\n";`},
	{resource: "sandbox.process", what: "a process in it", open: `await env.box.run("true"); const p = env.box.start("sleep 1000");`, use: `p.stop(); return (await p.result).ending === "stopped";`},
	{resource: "sandbox.transfer", what: "`push` and `pull`", open: `await env.files.write("pushed", "a"); const copy = env.box.push(env.files);`, use: `return (await copy).added.includes("pushed");`},
	{resource: "shops.shop", sleeps: true, open: `env.shop;`, use: `return await (await env.shop.seat(1)).number() === 1;`},
	{resource: "shops.ticket", what: "a value of your own capability in Go, if it is an `abi.Lasting` and its binding an `abi.Restorer`", sleeps: true, open: `const ticket = await env.shop.ticket(7);`, use: `return await ticket.number() === 7;`},
	{resource: "shops.seat", what: "any other", open: `const seat = await env.shop.seat(7);`, use: `return await seat.number() === 7;`},
}

// rows is the table of docs/durable.md.
func rows() string {
	var b strings.Builder
	b.WriteString("| a call that holds | |\n|---|---|\n")
	for _, h := range helds {
		if h.what != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", h.what, map[bool]string{true: "sleeps", false: "stays awake"}[h.sleeps])
		}
	}
	return b.String()
}

// TestHeldTable checks that the table of docs/durable.md is that of the tests, and that they have every resource of every capability.
func TestHeldTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/durable.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\n"+rows()+"\n") {
		t.Errorf("docs/durable.md does not have this table:\n%s", rows())
	}
	known, err := abi.Parse(wit.Capability(), ownWIT)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range known.Interfaces() {
		_, short, _ := strings.Cut(i.Name, "/")
		short, _, _ = strings.Cut(short, "@")
		for _, r := range i.Resources {
			if name := short + "." + r.Name; !slices.ContainsFunc(helds, func(h held) bool { return h.resource == name }) {
				t.Errorf("no test says whether a durable call sleeps with a %s: add it to helds", name)
			}
		}
	}
}

// TestHeld has durable calls hold each kind of handle while they wait. Those that sleep go on in another host, and use what they hold. The others stay awake, and what they hold still works.
func TestHeld(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	released := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-released:
			case <-r.Context().Done():
			}
		case "/release":
			released <- struct{}{}
		case "/length":
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(w, n)
			return
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<p>hello</p>")
			return
		}
		_, _ = fmt.Fprint(w, "x")
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + "/**,methods=GET+POST")
	if err != nil {
		t.Fatal(err)
	}
	page := httpcap.Rule{Scheme: "http", Host: rule.Host, Port: rule.Port, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	web, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	site := capability.NewSite(t.TempDir(), nil)
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	pages, err := browser.Rights{Rules: []httpcap.Rule{page}}.Open(ctx, site)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := workspace.Open(ctx, filepath.Join(dir, "w.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(files.Close(), buckets.Close()); err != nil {
			t.Error(err)
		}
	})
	slow := func(ctx context.Context, name string, done func([]byte, error)) {
		go func() {
			if name == "slow" {
				select {
				case <-released:
				case <-ctx.Done():
				}
			}
			done([]byte("1"), nil)
		}()
	}
	box, err := tools.New(tools.Options{Durable: children{}, Resolve: func(string) (tools.Func, error) {
		return func(ctx context.Context, name string, _ []byte, _ map[string]abi.Capability, done func([]byte, error)) {
			slow(ctx, name, done)
		}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	runner := codecap.New(codecap.Rights{}, func(ctx context.Context, p codecap.Program, done func([]byte, error)) { slow(ctx, p.Text, done) })
	env := func(ahead time.Duration) host.Env {
		now := func() time.Time { return time.Now().Add(ahead) }
		e := host.Env{
			"web": web, "files": files.Workspace("w"), "store": buckets.Bucket("b"), "clock": clock.By(now), "mail": &signals.Mailboxes{Now: now}, "run": &runs.Control{Starter: new(startedRuns)}, "random": random.System(),
			"console": console.To(func(console.Level, string) {}), "blobs": blob.NewStore(blob.StoreOptions{}), "tools": box, "code": runner, "page": pages, "shop": &own{},
		}
		if runtime.GOOS == "linux" {
			sandboxes, err := sandbox.New(sandbox.Options{Dir: filepath.Join(dir, "sandbox"), Runtime: "crun"}, sandbox.Rights{Image: "host"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			e["box"] = sandboxes
		}
		return e
	}

	var body strings.Builder
	body.WriteString("switch (input.row) {\n")
	for i, h := range helds {
		wait := "150"
		if h.sleeps {
			wait = "3_600_000"
		}
		fmt.Fprintf(&body, "case %d: { %s\nawait env.clock.sleep(%s);\n%s }\n", i, h.open, wait, h.use)
		if h.done != "" {
			fmt.Fprintf(&body, "case %d: { %s\nawait env.clock.sleep(150);\n%s\nawait env.clock.sleep(3_600_000); return true; }\n", -i, h.open, h.done)
		}
	}
	body.WriteString("}")
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, tools := newToolchain(t, host.Options{WIT: []string{ownWIT}})
		hosts[i] = build(t, tools, tool("", body.String()))
	}
	try := func(t *testing.T, row int, sleeps bool) {
		t.Helper()
		d := host.Durable{Run: fmt.Sprint("r", row), Idle: time.Millisecond, Mailboxes: &noMail{}, Control: noRun{}, Journal: &logged{kill: 1 << 30}}
		r := host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"row":%d,"url":%q}`, row, server.URL), Env: env(0), Durable: &d, Limits: host.Limits{Wall: 20 * time.Second}}
		result, err := hosts[0].Do(ctx, r)
		slept := false
		for range 3 { // timers of a call may end one after the other
			asleep, ok := errors.AsType[*host.AsleepError](err)
			if !ok {
				break
			}
			slept = true
			again := d
			again.State, r.Durable, r.Env = asleep.State, &again, env(2*time.Hour)
			again.Mailboxes = &noMail{ended: true}
			result, err = hosts[1].Do(ctx, r)
		}
		if slept != sleeps {
			t.Errorf("it slept: %t", slept)
		}
		var ok bool
		if err != nil || json.Unmarshal(result.Output, &ok) != nil || !ok {
			t.Errorf("it ended with %s, %v", result.Output, err)
		}
	}
	for i, h := range helds {
		t.Run(fmt.Sprint(i, " ", h.resource), func(t *testing.T) {
			if strings.HasPrefix(h.resource, "sandbox.") && runtime.GOOS != "linux" {
				t.Skip("sandboxes run on Linux")
			}
			try(t, i, h.sleeps)
			if h.done != "" {
				try(t, -i, true)
			}
		})
	}
}

// children are durable calls of the tool "durable", which have ended whenever somebody asks.
type children struct{}

func (children) Can(tool string) bool { return tool == "durable" }

func (children) Start(context.Context, string, []byte, map[string]abi.Capability) error { return nil }

func (children) Take(context.Context, string, uint64) (r tools.Ended, ok bool, err error) {
	return tools.Ended{Output: []byte("1")}, true, nil
}

// startedRuns are runs that have ended once somebody asks for their result.
type startedRuns struct{}

func (*startedRuns) Start(context.Context, string, []byte, string) (id string, err error) {
	return "a", nil
}

func (*startedRuns) Await(context.Context, string) (over bool, err error) { return false, nil }

func (*startedRuns) Wait(context.Context, string) error { return abi.ErrUnavailable }

func (*startedRuns) Take(context.Context, string) (e tools.Ended, ok bool, err error) {
	return tools.Ended{Output: []byte("1")}, true, nil
}

func (*startedRuns) Status(context.Context, string) (runs.Status, error) {
	return runs.Status{State: runs.Done}, nil
}

func (*startedRuns) Signal(context.Context, string, string, []byte, string) (delivered bool, err error) {
	return false, abi.ErrUnavailable
}

func (*startedRuns) Cancel(context.Context, string) error { return abi.ErrUnavailable }

// noMail are mailboxes without messages, but for those that say that a child or another run has ended.
type noMail struct{ ended bool }

func (*noMail) Take(context.Context, string) (m abi.Message, ok bool, err error) {
	return m, false, nil
}

func (m *noMail) Watch(_ context.Context, mailbox string, ready func()) (stop func(), err error) {
	if m.ended && (strings.HasPrefix(mailbox, "child:") || strings.HasPrefix(mailbox, "run:")) {
		ready()
	}
	return func() {}, nil
}

func (*noMail) Address(context.Context, string, abi.Verify) (string, error) {
	return "", abi.ErrUnavailable
}

// noRun is a run that keeps nothing.
type noRun struct{}

func (noRun) Listen(context.Context) error { return nil }

func (noRun) Stash(context.Context, []byte) error { return abi.ErrUnavailable }

func (noRun) Stashed(context.Context) (value []byte, ok bool, err error) { return nil, false, nil }
