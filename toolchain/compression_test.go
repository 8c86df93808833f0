package toolchain

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
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

// At top level there is no call whose memory a compressor could take. A stream that is made there serves the calls.
func TestCompressionAtTopLevel(t *testing.T) {
	n := newNodeTools(t)
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
