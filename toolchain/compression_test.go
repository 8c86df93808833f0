package toolchain

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

// What code does with compressors that it could not afford ends with an error that says so, or costs little.
func TestCompressionUnderAttack(t *testing.T) {
	n := newNodeTools(t)
	// 1 GB of zeros in 1 MB, and 100 MB of them in 100 KB.
	files := n.store.Workspace("bombs")
	var megabyte bytes.Buffer
	w, err := flate.NewWriter(&megabyte, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(make([]byte, 1<<20))
	_ = w.Flush()
	if err := files.WriteBytes(t.Context(), "megabyte", megabyte.Bytes()); err != nil {
		t.Fatal(err)
	}
	const pieces = `const pieces = async (size) => { const one = await env.files.readBytes("megabyte"), all = new Uint8Array(size * one.length + 5);
		for (let i = 0; i < size; i++) all.set(one, i * one.length); all.set([1, 0, 0, 255, 255], size * one.length); return new Blob([all]).stream().pipeThrough(new DecompressionStream("deflate-raw")); };`
	open := func(streams int) string {
		return fmt.Sprintf(`const all = []; for (let i = 0; i < %d; i++) { const c = new CompressionStream("gzip"), w = c.writable.getWriter(); c.readable.getReader().read().catch(() => {}); w.write(new Uint8Array(100)).catch(() => {}); all.push(w); }
			await all.at(-1).ready; return all.length;`, streams)
	}
	for _, test := range []struct {
		name, body string
		limits     host.Limits
		want       string // of the result
		limit      string // or the limit that ends the call
	}{
		{"a bomb that is kept", pieces + `return (await new Response(await pieces(1_000)).bytes()).length;`, host.Limits{CPU: time.Minute}, "", "memory"},
		{"a bomb that is read", pieces + `let n = 0; for await (const piece of await pieces(100)) n += piece.length; return n;`, host.Limits{CPU: time.Minute}, `104857600`, ""},
		{"a bomb that nobody reads", pieces + `const r = (await pieces(1_000)).getReader(); const { length } = (await r.read()).value; for (let i = 0; i < 10_000; i++) await null; await r.cancel(); return length;`, host.Limits{}, `262144`, ""},
		{"a bomb without the time", pieces + `for (;;) for await (const piece of await pieces(1_000));`, host.Limits{CPU: time.Second}, "", "cpu"},
		{"half of a tee", pieces + `const [a, b] = (await pieces(1_000)).tee(); for await (const piece of a); return 1;`, host.Limits{CPU: time.Minute}, "", "memory"},
		{"work without end", `const c = new CompressionStream("deflate"), w = c.writable.getWriter(), zeros = new Uint8Array(262_144); new Response(c.readable).bytes().catch(() => {}); for (;;) await w.write(zeros);`, host.Limits{CPU: time.Second}, "", "cpu"},
		{"1,000 open streams", open(1_000), host.Limits{CPU: time.Minute}, `1000`, ""},
		{"10,000 open streams", open(10_000), host.Limits{CPU: time.Minute}, "", "memory"},
		{"many open compressors", `const names = new Set(); let n = 0; const all = []; for (let i = 0; i < 200; i++) { const c = new CompressionStream("gzip"), w = c.writable.getWriter(); c.readable.getReader().read().catch(() => {}); all.push(w);
			await w.write(new Uint8Array(70_000)).then(() => n++, (e) => names.add(e.name + " " + e.code)); } return [n, ...names];`, host.Limits{CPU: time.Minute}, `[32,"CapabilityError exhausted"]`, ""},
		{"many open decompressors", `const names = new Set(); let n = 0; const all = []; for (let i = 0; i < 200; i++) { const c = new DecompressionStream("gzip"), w = c.writable.getWriter(); c.readable.getReader().read().catch(() => {}); all.push(w);
			await w.write(new Uint8Array([31, 139])).then(() => n++, (e) => names.add(e.name + " " + e.code)); } return [n, ...names];`, host.Limits{CPU: time.Minute}, `[102,"CapabilityError exhausted"]`, ""},
		{"many after one another", `let n = 0; for (let i = 0; i < 300; i++) { const c = new CompressionStream("gzip"), w = c.writable.getWriter(); w.write(new Uint8Array(70_000)); w.close(); n += (await new Response(c.readable).bytes()).length > 50;
			const d = new DecompressionStream("gzip"), v = d.writable.getWriter(); const r = d.readable.getReader(); v.write(new Uint8Array([31, 139])).catch(() => {}); v.close().catch(() => {}); n += await r.read().then(() => 0, () => 1); } return n;`, host.Limits{CPU: time.Minute}, `600`, ""},
		{"10,000 chunks of a byte", `const c = new CompressionStream("gzip"), d = new DecompressionStream("gzip"), w = c.writable.getWriter(), all = new Response(c.readable.pipeThrough(d)).bytes(); const one = new Uint8Array([7]);
			for (let i = 0; i < 10_000; i++) await w.write(one); await w.close(); return (await all).length;`, host.Limits{CPU: time.Minute}, `10000`, ""},
		{"in 200 pipes", `let s = new Blob([new Uint8Array(1_000)]).stream(); for (let i = 0; i < 100; i++) s = s.pipeThrough(new CompressionStream("gzip")); for (let i = 0; i < 100; i++) s = s.pipeThrough(new DecompressionStream("gzip")); return (await new Response(s).bytes()).length;`, host.Limits{CPU: time.Minute}, `1000`, ""},
		{"names of the prelude", `const f = globalThis[Symbol.for("stileCodec")]; return [typeof f, ...["br", "__proto__", {}].map((x) => { try { f?.(false, x, 6).step(new Uint8Array(0)); } catch (e) { return e.name; } })];`, host.Limits{}, `["function","TypeError","TypeError","TypeError"]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := n.call(t, "", "", test.body, host.Request{Limits: test.limits, Env: host.Env{"files": files}})
			if test.limit != "" {
				if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != test.limit {
					t.Errorf("got %s, %v, want the limit %s", got, err, test.limit)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// At top level there is no call whose memory a compressor could take. A stream that is made there serves the calls. Errors say what is not
// available, and name the author's line, also if a stream reads later.
func TestCompressionAtTopLevel(t *testing.T) {
	n := newNodeTools(t)
	for code, want := range map[string]string{
		`await new Response(new Blob(["x"]).stream().pipeThrough(new CompressionStream("gzip"))).bytes();`:                                           "tool.js:2:61: top-level code threw Error: CompressionStream is not available at top level; use it inside a tool's run",
		`await new Response(new Blob(["x"]).stream().pipeThrough(new DecompressionStream("gzip"))).text();`:                                          "tool.js:2:61: top-level code threw Error: DecompressionStream is not available at top level",
		`import zlib from "zlib"; zlib.gzipSync("a");`:                                                                                               "tool.js:2:31: top-level code threw Error: node:zlib is not available at top level",
		`import { randomUUID } from "node:crypto"; randomUUID();`:                                                                                    "tool.js:2:43: top-level code threw Error: crypto.randomUUID is not available at top level",
		`await fetch("https://example.com/?key=secret");`:                                                                                            "tool.js:2:7: top-level code threw Error: fetch is not available at top level",
		`await new Response(new ReadableStream({ pull: async (c) => { c.enqueue(await (await fetch("https://example.com/")).bytes()); } })).text();`: "tool.js:2:85: top-level code threw Error: fetch is not available at top level",
	} {
		text := "import { extension } from \"stile\";\n" + code + "\nexport default extension({ tools: { t: { description: \"test\", run: async () => 1 } } });"
		_, err := n.Build(t.Context(), Source{FS: fstest.MapFS{"tool.js": {Data: []byte(text)}}, Entry: "tool.js"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", code, err)
		}
	}
	const use = `const c = new CompressionStream("gzip"); const w = c.writable.getWriter(); w.write(new Uint8Array(10)).catch(() => {}); w.close().catch(() => {}); `
	if _, err := n.call(t, "", use+`await new Response(c.readable).bytes();`, `return 1;`, host.Request{}); err == nil || !strings.Contains(err.Error(), "not available at top level; use it inside a tool's run") {
		t.Errorf("got %v", err)
	}
	got, err := n.call(t, "", `const c = new CompressionStream("gzip");`, `const w = c.writable.getWriter(); w.write(new Uint8Array(10)); w.close(); return (await new Response(c.readable).bytes()).length > 18;`, host.Request{})
	if err != nil || got != "true" {
		t.Errorf("got %s, %v", got, err)
	}
}

// A call that is cancelled does not go on with what it compresses.
func TestCompressionIsCancelled(t *testing.T) {
	n := newNodeTools(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	text := `import { extension } from "stile"; export default extension({ tools: { t: { description: "test", run: async () => {
		const c = new CompressionStream("deflate"), w = c.writable.getWriter(), zeros = new Uint8Array(262_144); new Response(c.readable.pipeThrough(new DecompressionStream("deflate")).pipeTo(new WritableStream())); for (;;) await w.write(zeros); } } } });`
	c, err := n.Build(ctx, Source{FS: fstest.MapFS{"tool.js": {Data: []byte(text)}}, Entry: "tool.js"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.Do(ctx, host.Request{Tool: "t", Input: []byte("{}"), Env: host.Env{"clock": clock.System()}, Limits: host.Limits{CPU: time.Hour, Wall: time.Hour}})
	if !errors.Is(err, context.DeadlineExceeded) || errkind.Is[*host.GuestError](err) {
		t.Errorf("got %v", err)
	}
}

// What node:zlib lacks says so, with a way around.
func TestZlibLacks(t *testing.T) {
	n := newNodeTools(t)
	got, err := n.call(t, "", `import * as zlib from "zlib";`, `return [() => zlib.brotliDecompressSync("a"), () => zlib.createBrotliCompress(), () => zlib.zstdCompressSync("a"), () => zlib.inflateSync("a", { dictionary: "b" })].map((f) => { try { return f(); } catch (e) { return e.message; } });`, host.Request{})
	for _, want := range []string{"zlib.brotliDecompressSync: this is not there; use gzip, or to read brotli the npm package brotli", "zlib.createBrotliCompress: ", "zlib.zstdCompressSync: this is not there; use gzip, or to read zstd the npm package fzstd", "no dictionaries here; the npm packages fflate and pako"} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if _, err := n.call(t, "", `import zlib from "zlib"; const made = zlib.gzipSync("a");`, `return made.length;`, host.Request{}); err == nil || !strings.Contains(err.Error(), "not available at top level; use it inside a tool's run") {
		t.Errorf("got %v", err)
	}
}

// zlibScript is code for both, here and in Node.js: what results are, and what errors say.
const zlibScript = `
	const text = "the quick brown fox jumps over the lazy dog. ".repeat(5_000), names = ["gzip", "deflate", "deflateRaw"], backs = { gzip: "gunzip", deflate: "inflate", deflateRaw: "inflateRaw" };
	const out = {}, say = (f) => { try { const r = f(); return Buffer.isBuffer(r) ? "text " + r.toString() : r; } catch (e) { return [e.name, e.code, e.errno, e.message].join("; "); } };
	const bytes = (f) => (e, r) => f(e ? [e.name, e.code, e.message].join("; ") : "text " + r.toString("latin1").slice(0, 40));
	const gz = zlib.gzipSync("hello"), z = zlib.deflateSync("hello"), raw = zlib.deflateRawSync("hello");
	for (const name of names) {
		for (const level of [-1, 0, 1, 5, 6, 9]) {
			const packed = zlib[name + "Sync"](text, { level });
			out[name + level] = [zlib[backs[name] + "Sync"](packed).toString() === text, level === 0 ? packed.length > text.length : packed.length < 3_000, [...packed.subarray(0, name === "deflateRaw" ? 0 : name === "gzip" ? 10 : 2)]];
		}
		out[name + " empty"] = zlib[backs[name] + "Sync"](zlib[name + "Sync"]("")).length;
		out[name + " promise"] = (await util.promisify(zlib[backs[name]])(await util.promisify(zlib[name])("promised", { level: 3 }))).toString();
	}
	for (const [name, data] of Object.entries({
		gz, z, raw, none: Buffer.alloc(0), garbage: Buffer.from("garbage"), cut: gz.subarray(0, -3), one: gz.subarray(0, 1), two: Buffer.concat([gz, gz]), after: Buffer.concat([gz, Buffer.from("xyz")]),
		zeros: Buffer.concat([gz, Buffer.alloc(10)]), zAfter: Buffer.concat([z, Buffer.from("xyz")]), rawAfter: Buffer.concat([raw, Buffer.from("xyz")]), twoCut: Buffer.concat([gz, gz.subarray(0, 5)]),
		sum: Buffer.concat([gz.subarray(0, -8), Buffer.alloc(8)]), zSum: Buffer.concat([z.subarray(0, -4), Buffer.alloc(4)]), block: Buffer.from([7]), method: Buffer.from([0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 3, 0]),
		stored: Buffer.from([1, 1, 0, 1, 0]), far: Buffer.from([3, 2, 0]),
	})) for (const back of ["gunzipSync", "inflateSync", "inflateRawSync", "unzipSync"]) out[name + " " + back] = say(() => zlib[back](data));
	out.partial = say(() => zlib.gunzipSync(zlib.gzipSync(text, { level: 0 }).subarray(0, 1_000), { finishFlush: zlib.constants.Z_SYNC_FLUSH }).length > 500);
	out.most = say(() => zlib.gunzipSync(gz, { maxOutputLength: 4 })); out.enough = say(() => zlib.gunzipSync(gz, { maxOutputLength: 5 })); out.bomb = say(() => zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(10_000_000)), { maxOutputLength: 1_000_000 }));
	out.level = say(() => zlib.gzipSync("a", { level: 10 })); out.type = say(() => zlib.gzipSync(5)).split(". ")[0];
	for (const [name, data] of Object.entries({ string: "héllo", array: new Uint16Array([1, 2, 3]), view: new DataView(new ArrayBuffer(3)), buffer: new ArrayBuffer(4) })) out[name] = say(() => zlib.gunzipSync(zlib.gzipSync(data)).toString("hex"));
	out.callback = await new Promise((f) => zlib.gunzip(Buffer.from("bad data"), bytes(f))); out.good = await new Promise((f) => zlib.gunzip(gz, {}, bytes(f)));
	const collect = async (stream) => { const all = []; for await (const piece of stream) all.push(piece); return Buffer.concat(all); };
	const big = Buffer.alloc(3_000_000, "0123456789abcdef");
	out.pipe = (await collect(Readable.from([big.subarray(0, 5), big.subarray(5)]).pipe(zlib.createGzip()).pipe(zlib.createGunzip()))).equals(big);
	out.unzip = (await collect(Readable.from([Buffer.from([0x1f]), gz.subarray(1)]).pipe(zlib.createUnzip()))).toString(); out.unzipZ = (await collect(Readable.from([z]).pipe(zlib.createUnzip()))).toString();
	out.fails = await collect(Readable.from([Buffer.from("bad")]).pipe(zlib.createGunzip())).catch((e) => [e.code, e.message]); out.early = await collect(Readable.from([gz.subarray(0, 12)]).pipe(zlib.createGunzip())).catch((e) => [e.code, e.message]);
	out.flush = await new Promise((f) => { const d = zlib.createDeflate(), i = zlib.createInflate(); d.pipe(i); i.on("data", (b) => f(b.toString())); d.write("flushed"); d.flush(() => {}); });
	out.crc = typeof zlib.crc32 === "function" ? [zlib.crc32("hello"), zlib.crc32(Buffer.from("world"), zlib.crc32("hello "))] : [907060870, 222957957];
	out.constants = Object.entries(zlib.constants).filter(([k]) => !/BROTLI|ZSTD|VERNUM/.test(k) && k !== "Z_MAX_CHUNK").map(([k, v]) => k + v).sort(); out.codes = zlib.codes;
	out.classes = [zlib.createGzip() instanceof zlib.Gzip, zlib.createInflateRaw() instanceof Transform];
	out.theirs = Object.entries(input).map(([name, packed]) => zlib[name](Buffer.from(packed, "base64")).toString("hex"));
	out.ours = { gunzipSync: zlib.gzipSync(big).toString("base64"), inflateSync: zlib.deflateSync(text, { level: 9 }).toString("base64"), inflateRawSync: zlib.deflateRawSync(big.subarray(0, 99_999), { level: 1 }).toString("base64") };
	return out;`

// node:zlib has the results and the errors that Node.js has, and each reads what the other compressed.
func TestZlibAgainstNode(t *testing.T) {
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not there")
	}
	script := "const zlib = require('zlib'), util = require('util'), { Readable, Transform } = require('stream');\nconst run = async (input) => {" + zlibScript + "\n};\nrun(JSON.parse(process.argv[1])).then((r) => console.log(JSON.stringify(r)));"
	inNode := func(input string) (found map[string]any) {
		out, err := exec.CommandContext(t.Context(), program, "-e", script, input).CombinedOutput()
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil {
			t.Fatalf("%v: %.2000s", err, out)
		}
		return found
	}
	theirs := inNode("{}")
	given, err := json.Marshal(theirs["ours"])
	if err != nil {
		t.Fatal(err)
	}
	n := newNodeTools(t)
	text := "import zlib from \"node:zlib\"; import util from \"util\"; import { Readable, Transform } from \"stream\"; import { extension } from \"stile\";\nexport default extension({ tools: { t: { description: \"test\", run: async (input) => {" + zlibScript + "} } } });"
	c, err := n.Build(t.Context(), Source{FS: fstest.MapFS{"tool.js": {Data: []byte(text)}}, Entry: "tool.js"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	result, err := c.Do(t.Context(), host.Request{Tool: "t", Input: given, Limits: host.Limits{CPU: time.Minute, Output: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	var ours map[string]any
	if err := json.Unmarshal(result.Output, &ours); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(ours["ours"])
	if err != nil {
		t.Fatal(err)
	}
	if again := inNode(string(back)); !reflect.DeepEqual(again["theirs"], ours["theirs"]) || len(again["theirs"].([]any)) != 3 {
		t.Error("Node.js does not read the same from both")
	}
	for _, name := range []string{"ours", "theirs"} {
		delete(ours, name)
		delete(theirs, name)
	}
	for name, want := range theirs {
		if !reflect.DeepEqual(ours[name], want) {
			t.Errorf("%s: got %v, Node.js has %v", name, ours[name], want)
		}
	}
}
