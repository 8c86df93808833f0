package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
)

// recordedSource is the extension whose calls are recorded.
const recordedSource = `import { extension } from "stile";
const tool = (run: (input: any, env: any) => unknown) => ({ description: "test", input: { type: "object" }, run });
export default extension({ tools: {
  everything: tool(async ({ url }, env) => {
    const first = await (await env.site.fetch(url + "/count")).json();
    const second = await env.site.fetch(url + "/count");
    const count = await env.cache.increment("n", 2);
    const note = await env.notes.read("in.md");
    await env.notes.write("out/made.md", note + first.n);
    await env.notes.append("log.md", "line");
    await env.notes.edit("/in.md", [{ old: "text", new: "other" }]);
    console.log(note);
    return {
      first, second: await second.text(), type: second.headers.get("content-type"), count, again: await env.cache.get("n"),
      word: await env.cache.get("word"), none: await env.cache.get("none") ?? null, listed: (await env.cache.list("l/")).entries,
      swapped: await env.cache.compareAndSet("swap", "old", "new"), deleted: await env.cache.delete("gone"),
      note: await env.notes.read("in.md"), made: await env.notes.read("/out/made.md"), is: await env.notes.read("none").catch((e: any) => e.code),
    };
  }),
  bytes: tool(async ({ url }, env) => {
    const reader = (await env.site.fetch(url + "/text")).body.getReader();
    const parts = [];
    for (let p; !(p = await reader.read()).done;) parts.push(...p.value);
    const b = await (await env.site.fetch(url + "/text")).bytes();
    const sub = await env.notes.subdirectory("sub");
    return [parts.length, b.length, (await env.notes.readBytes("in.md")).length, (await (await sub.readBlob("a")).bytes()).length, (await (await env.notes.readBlob("empty")).text())];
  }),
  ask: tool(async ({ url, ...init }, env) => { const r = await env.site.fetch(url, init); return [r.status, r.headers.get("etag"), await r.text()]; }),
  binary: tool(async ({ url }, env) => (await (await env.site.fetch(url)).bytes()).length),
  pass_on: tool(async ({ url }, env) => { await env.notes.write("x", await (await env.site.fetch(url)).blob()); return 1; }),
  early: tool(async ({ url }, env) => { env.site.fetch(url); return 1; }),
  instant: tool((_, env) => [Date.now(), new Date().getFullYear()]),
  timer: tool(async () => { await new Promise((done) => setTimeout(done, 5)); return "late"; }),
  later: tool(async (_, env) => { const at = Date.now(); await env.clock.sleep(60_000); return Date.now() - at; }),
  throws: tool(() => { throw new RangeError("too \u202efar\n" + "x".repeat(900)); }),
  stat: tool(async (_, env) => (await env.notes.stat("in.md")).size),
  exists: tool(async (_, env) => env.notes.stat("nothing").then(() => true, () => false)),
  lines: tool(async (_, env) => env.notes.readLines("in.md", { from: 1, to: 1 })),
  overwrites: tool(async (_, env) => { await env.notes.edit("in.md", [{ old: "text", new: "" }]); return 1; }),
  swap: tool(async (_, env) => env.cache.compareAndSet("word", "no", "yes")),
  draw: tool((_, env) => [Math.random(), crypto.randomUUID(), env.random.u64().toString(), env.random.bytes(3).join()]),
  draws: tool((_, env) => env.random.bytes(65536).length + env.random.bytes(1).length),
  call: tool(async (_, env) => [await env.helpers.call("echo", {}), await env.helpers.call("echo", {}), await env.helpers.call("add", {})]),
  calls_badly: tool(async (_, env) => env.helpers.call("fail").catch((e: any) => e.message)),
  leaves: tool((_, env) => { env.helpers.call("echo"); return 1; }),
  finds: tool((_, env) => env.helpers.search("echo")),
  long: tool(async (_, env) => { await env.cache.set("k", "x".repeat(5000)); return 1; }),
  loops: tool(() => { for (;;); }),
  pure: tool(({ a }) => a),
} });
`

// world is what calls are recorded in: a server, and stores with something in them.
type world struct {
	t        *testing.T
	url      string
	bindings []extension.Binding
	c        *host.Component
	hits     int
}

func (w *world) ServeHTTP(out nethttp.ResponseWriter, r *nethttp.Request) {
	text := "plain <&> \u202e"
	switch r.URL.Path {
	case "/count":
		w.hits++
		out.Header().Set("Content-Type", "application/json")
		text = fmt.Sprintf(`{"f":1.50,"list":[{"t":"a"}],"n":%d}`, w.hits)
	case "/spaced":
		out.Header().Set("Content-Type", "application/json; charset=utf-8")
		text = `{"z": 1.0, "a": 2}`
	case "/binary":
		text = "\xff\xfe\x00"
	case "/away":
		nethttp.Redirect(out, r, "/text", nethttp.StatusFound)
		return
	case "/cookie":
		out.Header().Set("Set-Cookie", "session=hunter3")
		out.Header().Set("ETag", `"1"`)
		out.WriteHeader(nethttp.StatusTeapot)
	case "/secret":
		text = "it is hunter2 here"
	case "/large":
		text = strings.Repeat("x", double.MaxRecorded+1)
	}
	_, _ = out.Write([]byte(text))
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	w.url = server.URL
	w.bindings = []extension.Binding{
		{Name: "blob", Grant: blob.Kind.On()},
		{Name: "cache", Grant: kv.Rights{Store: "own"}},
		{Name: "clock", Grant: clock.Kind.On()},
		{Name: "console", Grant: console.Kind.On()},
		{Name: "helpers", Grant: tools.Rights{}},
		{Name: "notes", Grant: workspace.Rights{Store: "own", Path: "/notes", Access: workspace.ReadWrite}},
		{Name: "random", Grant: random.Kind.On()},
		{Name: "site", Grant: http.Rights{Rules: []http.Rule{{Scheme: "http", Host: at.Addr().String(), Port: at.Port(), Methods: []string{"GET", "POST"}}}}},
	}
	w.c = w.build(recordedSource)
	return w
}

func (w *world) build(text string) *host.Component {
	w.t.Helper()
	redactor := secret.NewRedactor("hunter2")
	return buildOf(w.t, text, host.Options{Redact: func(b []byte) []byte { return []byte(redactor.Redact(string(b))) }})
}

type keeps struct{ recording *host.Recording }

func (k *keeps) Record(_ context.Context, r *host.Recording) { k.recording = r }

// record makes a call and returns its recording.
func (w *world) record(tool, input string) *host.Recording {
	w.t.Helper()
	t, ctx, dir := w.t, w.t.Context(), w.t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	buckets, err := kv.Open(ctx, filepath.Join(dir, "kv"), kv.Options{})
	check(err)
	defer func() { check(buckets.Close()) }()
	bucket := buckets.Bucket("b")
	for key, value := range map[string]string{"n": "40", "word": "w\u202eord", "l/a": "1", "l/b": "2", "swap": "old", "gone": "x", "unseen": "secret"} {
		check(bucket.Set(ctx, key, value))
	}
	files, err := workspace.Open(ctx, filepath.Join(dir, "ws"), workspace.Options{})
	check(err)
	defer func() { check(files.Close()) }()
	notes := files.Workspace("w")
	for path, text := range map[string]string{"/in.md": "a text\n", "/log.md": "first ", "/unseen": "secret", "/sub/a": "below", "/empty": ""} {
		check(notes.Write(ctx, path, text))
	}
	client, err := http.New(http.Options{Rules: w.bindings[len(w.bindings)-1].Grant.(http.Rights).Rules})
	check(err)
	called := 0
	box, err := tools.New(tools.Options{Resolve: func(name string) (tools.Func, error) {
		return func(_ context.Context, _ string, _ []byte, _ map[string]abi.Capability, done func([]byte, error)) {
			if called++; name == "fail" {
				done(nil, abi.Errorf(abi.CodeUnavailable, "no"))
			} else {
				done([]byte(fmt.Sprint(called)), nil)
			}
		}, nil
	}})
	check(err)
	kept, now := &keeps{}, &double.Clock{Start: time.Date(2031, 2, 3, 4, 5, 6, 789e6, time.UTC)}
	_, _ = w.c.Do(ctx, host.Request{
		Tool: tool, Input: []byte(input), Recorder: kept, Idle: now.Move, Limits: host.Limits{CPU: 500 * time.Millisecond},
		Env: host.Env{
			"blob": blob.NewStore(blob.StoreOptions{}), "cache": bucket, "clock": clock.Virtual{Clock: now}, "console": console.To(func(console.Level, string) {}),
			"helpers": box, "notes": notes, "random": random.Seeded([32]byte{1}), "site": client,
		},
	}) // the recording has the error
	return kept.recording
}

// run runs a test as it is when it stood in a manifest.
func (w *world) run(c *host.Component, test extension.Test) Result {
	w.t.Helper()
	text, err := json.Marshal(test)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := extension.Parse(fmt.Appendf(nil, `{"name": "x", "version": "1.0.0", "description": "X", "tools": [%q], "tests": [%s], "bindings": {
		"cache": {"kv": true}, "clock": {"clock": true}, "helpers": {"tools": ["*"]}, "notes": {"workspace": {}}, "random": {"random": true}, "site": {"http": [{"host": "example.com"}]}}}`, test.Tool, text))
	if err != nil {
		w.t.Fatal(err)
	}
	results, err := Run(w.t.Context(), Request{Component: c, Bindings: w.bindings, Tests: m.Tests})
	if err != nil || len(results) != 1 {
		w.t.Fatal(results, err)
	}
	return results[0]
}

// TestRecorded records real calls, and runs the tests that are made of them.
func TestRecorded(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ tool, input, env string }{
		{"everything", `{"url": "` + w.url + `"}`, `{
			"cache": {"n": "40", "word": "w\u202eord", "l/a": "1", "l/b": "2", "swap": "old", "gone": ""},
			"notes": {"/in.md": "a text\n"},
			"site": {"GET ` + w.url + `/count": [
				{"status": 200, "headers": {"content-type": "application/json"}, "json": {"f": 1.5, "list":[{"t":"a"}],"n":1}},
				{"status": 200, "headers": {"content-type": "application/json"}, "json": {"f": 1.5, "list":[{"t":"a"}],"n":2}}]}}`},
		{"bytes", `{"url": "` + w.url + `"}`, `{
			"notes": {"/in.md": "a text\n", "/sub/a": "below", "/empty": ""},
			"site": {"GET ` + w.url + `/text": [
				{"status": 200, "headers": {"content-type": "text/plain; charset=utf-8"}, "text": "plain <&> \u202e"},
				{"status": 200, "headers": {"content-type": "text/plain; charset=utf-8"}, "text": "plain <&> \u202e"}]}}`},
		{"ask", `{"url": "` + w.url + `/spaced", "method": "POST", "body": "x"}`, `{
			"site": {"POST ` + w.url + `/spaced": {"status": 200, "headers": {"content-type": "application/json; charset=utf-8"}, "text": "{\"z\": 1.0, \"a\": 2}"}}}`},
		{"ask", `{"url": "` + w.url + `/cookie"}`, `{
			"site": {"GET ` + w.url + `/cookie": {"status": 418, "headers": {"content-type": "text/plain; charset=utf-8", "etag": "\"1\""}, "text": "plain <&> \u202e"}}}`},
		{"ask", `{"url": "http://169.254.169.254/"}`, `{"site": {}}`},
		{"instant", `{}`, `{"clock": "2031-02-03T04:05:06.789Z"}`},
		{"timer", `{}`, `{}`},
		{"exists", `{}`, `{"notes": {}}`},
		{"draw", `{}`, `{"random": "6ae6783f4fbde91b6eb88b73a48ed247dbe5882e2579683432c1bfc525454add0cd87274d67084caaf0e0d"}`},
		{"throws", `{}`, `{}`},
		{"call", `{}`, `{"helpers": {"echo": [{"output": 1}, {"output": 2}], "add": {"output": 3}}}`},
		{"pure", `{"a": [1.50, "\u001b[31m"]}`, `{}`},
	} {
		t.Run(c.tool, func(t *testing.T) {
			test, err := FromRecording(w.record(c.tool, c.input))
			if err != nil {
				t.Fatal(err)
			}
			env := capability.JSON(test.Env)
			if d, err := compare([]byte(c.env), env); err != nil || d != nil {
				t.Errorf("the answers are %s: %v, %v", env, d, err)
			}
			if result := w.run(w.c, test); !result.Passed {
				t.Errorf("%s: %v", env, result.Problem)
			}
		})
	}
}

// TestRecordedFails runs tests that are made of calls against code that was changed since.
func TestRecordedFails(t *testing.T) {
	w := newWorld(t)
	test, err := FromRecording(w.record("everything", `{"url": "`+w.url+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	failing, err := FromRecording(w.record("throws", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		test     extension.Test
		old, now string
		want     string
	}{
		{test, `increment("n", 2)`, `increment("n", 3)`, `result.again: expected "42", got "43"`},
		{test, `env.site.fetch(url + "/count")).json()`, `env.site.fetch(url + "/total")).json()`, "it gives no answer for GET " + w.url + "/total"},
		{test, `const count =`, `await env.site.fetch(url + "/count"); const count =`, "it gives no answer for request 3 of GET " + w.url + "/count"},
		{test, `read("in.md");`, `read("other.md");`, "other.md"},
		{failing, "too ", "not so ", `expected an error with "RangeError: too \\u202efar`},
	} {
		changed := strings.Replace(recordedSource, c.old, c.now, 1)
		if changed == recordedSource {
			t.Fatal(c.old)
		}
		result := w.run(w.build(changed), c.test)
		if result.Passed || result.Problem == nil || !strings.Contains(result.Problem.String(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.now, result.Problem, c.want)
		}
	}
}

// TestRecordedRefused has what no test can be made of.
func TestRecordedRefused(t *testing.T) {
	w := newWorld(t)
	url := func(path string) string { return `{"url": "` + w.url + path + `"}` }
	for _, c := range []struct{ tool, input, name, want string }{
		{"stat", `{}`, "workspace@0.1.0#[method]directory.stat", "the time of a change"},
		{"lines", `{}`, "directory.read-lines", "did not read completely"},
		{"overwrites", `{}`, "directory.edit", "did not read completely"},
		{"swap", `{}`, "bucket.compare-and-set", "did not read completely"},
		{"draws", `{}`, "random.bytes", "cannot give the answer"},
		{"calls_badly", `{}`, "toolbox.start", "the tool failed: unavailable"},
		{"leaves", `{}`, "toolbox.start", "did not wait for the result of the tool"},
		{"finds", `{}`, "toolbox.search", "cannot give the answer"},
		{"long", `{}`, "bucket.set", "too long to be in the recording"},
		{"later", `{}`, "clock.now", "saw time pass"},
		{"ask", url("/away"), "exchange.head", "was redirected"},
		{"binary", url("/binary"), "blob.packed", "not text"},
		{"binary", url("/large"), "blob.packed", "more than 131072 bytes"},
		{"ask", url("/large"), "", "the test would have"},
		{"pass_on", url("/text"), "exchange.blob", "did not read all of it"},
		{"early", url("/text"), "client.start", "did not wait"},
		{"ask", url("/secret"), "", "replaced a secret"},
		{"pure", `{"a": "hunter2"}`, "", "replaced a secret"},
		{"loops", `{}`, "", `the call ended with "limit`},
		{"none", `{}`, "", `the call ended with "unknown-tool`},
	} {
		_, err := FromRecording(w.record(c.tool, c.input))
		refused, ok := errors.AsType[*RecordingError](err)
		if !ok || !strings.Contains(refused.Name, c.name) || (refused.Operation == 0) != (c.name == "") || !strings.Contains(refused.Reason, c.want) {
			t.Errorf("%s %s: got %v", c.tool, c.input, err)
		}
	}
}

// TestRecordedHostile damages a recording at every byte.
func TestRecordedHostile(t *testing.T) {
	w := newWorld(t)
	r := w.record("everything", `{"url": "`+w.url+`"}`)
	for _, change := range []func(*host.Recording){
		func(r *host.Recording) { r.Cut = "bytes\x1b" },
		func(r *host.Recording) { r.Code = "1" },
		func(r *host.Recording) { r.Input = nil },
		func(r *host.Recording) { r.Output = []byte("{") },
		func(r *host.Recording) { r.Output, r.OutputDigest = nil, "0" },
		func(r *host.Recording) { r.Outcome = host.Outcome{Kind: "failed"} },
		func(r *host.Recording) { r.Outcome = host.Outcome{Kind: "\u202e\n"} },
	} {
		bad := *r
		change(&bad)
		if _, err := FromRecording(&bad); err == nil || printable.Text(err.Error()) != err.Error() || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
	for i := range r.Operations {
		bad := *r
		bad.Operations = r.Operations[:i]
		if _, err := FromRecording(&bad); !errkind.Is[*host.DamagedError](err) {
			t.Fatalf("cut at %d: %v", i, err)
		}
		for _, b := range []byte{0, 1, r.Operations[i] + 1, 0xff} {
			bad.Operations = bytes.Clone(r.Operations)
			bad.Operations[i] = b
			_, err := FromRecording(&bad)
			if text := fmt.Sprint(err); err != nil && (!errkind.Is[*host.DamagedError](err) && !errkind.Is[*RecordingError](err) || printable.Text(text) != text || len(text) > 5000) {
				t.Fatalf("byte %d: %q", i, text)
			}
		}
	}
}

// FuzzFromRecording reads recordings that nobody made: it fails with an error that can be shown, or makes a test that JSON can
// say.
func FuzzFromRecording(f *testing.F) {
	f.Add([]byte{}, 0, []byte(`{}`))
	f.Fuzz(func(t *testing.T, operations []byte, recorded int, output []byte) {
		test, err := FromRecording(&host.Recording{
			Tool: "t", Input: []byte(`{}`), Output: output, Outcome: host.Outcome{Kind: "ok"}, Operations: operations, Recorded: recorded,
		})
		if text := fmt.Sprint(err); err != nil && (!errkind.Is[*host.DamagedError](err) && !errkind.Is[*RecordingError](err) || printable.Text(text) != text) {
			t.Fatalf("%q", text)
		}
		if _, wrong := json.Marshal(test); err == nil && wrong != nil {
			t.Fatal(wrong)
		}
	})
}
