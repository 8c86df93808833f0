package toolchain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
)

// What code does with streams, bodies and forms takes the call's own time and memory, and ends at its limits.
func TestStreamsUnderAttack(t *testing.T) {
	n := newNodeTools(t)
	var revoke sync.Once
	var grant *host.Grant
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<16)
		for i := 0; r.Context().Err() == nil; i++ {
			if r.URL.Path == "/revoked" && i == 20 {
				revoke.Do(func() { grant.Revoke("no more") })
			}
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + "/**,methods=GET,max-response=1000000000")
	if err != nil {
		t.Fatal(err)
	}
	grant = host.NewGrant(httpcap.Allow(rule), host.GrantOptions{})
	for _, test := range []struct {
		name, body string
		cpu        time.Duration
		want       string // of the result
		limit      string // or the limits that may end the call
	}{
		{"a tee of an endless body, half of it unread", `const [a, b] = (await env.network.fetch(site)).body.tee(); try { for await (const piece of a) void piece; } catch (e) { return e.code; }`, time.Minute, `"exhausted"`, "memory"},
		{"an endless body", `let n = 0; for await (const piece of (await env.network.fetch(site)).body) n += piece.length; return n;`, 200 * time.Millisecond, "", "cpu"},
		{"an endless stream", `for await (const piece of new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(10)); } })) void piece;`, 300 * time.Millisecond, "", "cpu"},
		{"an endless stream as a body", `await new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(100_000)); } })).bytes();`, time.Minute, "", "memory"},
		{"an endless start", `new ReadableStream({ start(c) { for (;;) c.enqueue(new Uint8Array(1_000)); } });`, time.Minute, "", "memory"},
		{"100,000 chunks of a byte", `let left = 100_000; const s = new ReadableStream({ pull(c) { left-- ? c.enqueue(new Uint8Array(1)) : c.close(); } }); return (await new Response(s).bytes()).length;`, time.Minute, `100000`, ""},
		{"100 pipes in a row", `let s = new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }); for (let i = 0; i < 100; i++) s = s.pipeThrough(new TransformStream({ transform(n, c) { c.enqueue(n + 1); } }));
			for await (const n of s) return n;`, time.Minute, `101`, ""},
		{"2,000 pipes in a row", `let s = new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }); for (let i = 0; i < 2_000; i++) s = s.pipeThrough(new TransformStream()); for await (const n of s) return n;`, time.Minute, "", "memory stack"},
		{"a form of 30,000 parts", `const part = "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n"; const r = new Response(part.repeat(30_000) + "--b--\r\n", { headers: { "content-type": "multipart/form-data; boundary=b" } });
			return (await r.formData()).getAll("a").length;`, time.Minute, `30000`, "memory"},
		{"a form of 100,000 headers", `const r = new Response("--b\r\n" + "x: y\r\n".repeat(100_000) + "content-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n", { headers: { "content-type": "multipart/form-data; boundary=b" } });
			return (await r.formData().catch((e) => e)) instanceof Object;`, time.Minute, `true`, ""},
		{"a form of dashes", `const r = new Response("--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n" + "\r\n--".repeat(200_000) + "\r\n--b--\r\n", { headers: { "content-type": "multipart/form-data; boundary=b" } });
			return (await r.formData()).get("a").length;`, time.Minute, `800000`, ""},
		{"a handle that is revoked in the middle", `try { for await (const piece of (await env.network.fetch(site + "/revoked")).body) void piece; } catch (e) { return [e.name, e.code]; }`, time.Minute, `["CapabilityError","revoked"]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := host.Env{"network": httpcap.Allow(rule)}
			if strings.Contains(test.body, "/revoked") {
				env["network"] = grant
			}
			got, err := n.call(t, "", "", fmt.Sprintf("const site = %q; %s", server.URL, test.body), host.Request{Env: env, Limits: host.Limits{CPU: test.cpu, Wall: time.Minute}})
			if limit, ok := errors.AsType[*host.LimitError](err); ok && test.limit != "" && strings.Contains(test.limit, limit.Limit) {
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s%s", got, err, test.want, test.limit)
			}
		})
	}
}

// TestStreamsOfAnyLength reads more bytes than the host may hold for a call. What code has read and let go does not count.
func TestStreamsOfAnyLength(t *testing.T) {
	n := newNodeTools(t)
	const size = 150 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for range size / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + "/**,methods=GET,max-response=1000000000")
	if err != nil {
		t.Fatal(err)
	}
	const fill = `const block = new Uint8Array(1 << 20), parts = []; for (let i = 0; i < 30; i++) parts.push(block); const large = await env.store.createBlob(parts);`
	for name, body := range map[string]string{
		"a body": `for await (const piece of (await env.network.fetch(site)).body) n += piece.length;`,
		"both sides of a tee": `const [a, b] = (await env.network.fetch(site)).body.tee(), one = a.getReader(), other = b.getReader();
			for (;;) { const [p, q] = await Promise.all([one.read(), other.read()]); if (p.done) break; if (p.value.length !== q.value.length) throw new Error("not the same"); n += p.value.length; }`,
		"a blob": fill + `for (let i = 0; i < 5; i++) for await (const piece of large.stream()) n += piece.length;`,
		"a file": fill + `await env.files.write("large", large); for (let i = 0; i < 5; i++) for await (const piece of (await env.files.readBlob("large")).stream()) n += piece.length;`,
	} {
		t.Run(name, func(t *testing.T) {
			env := host.Env{"network": httpcap.Allow(rule), "files": n.store.Workspace("w"), "store": blob.NewStore(blob.StoreOptions{})}
			got, err := n.call(t, "", "", fmt.Sprintf("const site = %q; let n = 0; %s return n;", server.URL, body), host.Request{Env: env, Limits: host.Limits{CPU: time.Minute, Wall: time.Minute}})
			if err != nil || got != fmt.Sprint(size) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// TestUploads sends bodies larger than what a request takes inline: they go to the host in pieces, as their author makes them, and never as a
// whole through the guest's memory. Without a place for them, the error has the line that makes one.
func TestUploads(t *testing.T) {
	n := newNodeTools(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hash := sha256.New()
		size, err := io.Copy(hash, r.Body)
		_, _ = fmt.Fprintf(w, "%d %x %v", size, hash.Sum(nil)[:4], err)
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + "/**,methods=POST,headers=content-type")
	if err != nil {
		t.Fatal(err)
	}
	sum := func(size int) string {
		all := make([]byte, size)
		for i := range all {
			all[i] = byte(i / 1000)
		}
		hash := sha256.Sum256(all)
		return fmt.Sprintf(`"%d %x <nil>"`, size, hash[:4])
	}
	const numbers = `const numbers = (size, chunk) => { let at = 0; return new ReadableStream({ pull(c) { const bytes = new Uint8Array(Math.min(chunk, size - at)); for (let i = 0; i < bytes.length; i += 1000) bytes.fill((at + i) / 1000, i, i + 1000);
		at += bytes.length; if (bytes.length) c.enqueue(bytes); else c.close(); } }); }, send = async (body) => (await env.network.fetch(site, { method: "POST", duplex: "half", body })).text();`
	const refused = `"a body of more than 262144 bytes goes through a blob binding: add \"store\": { \"blob\": true } to \"bindings\" of the manifest, or --bind store=blob"`
	for _, test := range []struct {
		name, body  string
		with, plain string // the results with a blob binding, and without one
	}{
		{"a short stream", `return send(numbers(200_000, 1_000));`, sum(200_000), sum(200_000)},
		{"a piece", `return send(numbers(262_000, 262_000));`, sum(262_000), sum(262_000)},
		{"a stream", `return send(numbers(3_000_000, 70_000));`, sum(3_000_000), refused},
		{"one large chunk", `return send(numbers(3_000_000, 3_000_000));`, sum(3_000_000), refused},
		{"more than the guest's memory", `return send(numbers(20_000_000, 100_000));`, sum(20_000_000), refused},
		{"bytes", `return send(await new Response(numbers(3_000_000, 1_000_000)).bytes());`, sum(3_000_000), refused},
		{"a Blob", `return send(await new Response(numbers(3_000_000, 1_000_000)).blob());`, sum(3_000_000), refused},
		{"a form", `const f = new FormData(); f.append("a", new Blob([new Uint8Array(1_000_000)]), "a"); return (await send(f)).slice(0, 5);`, `"10001"`, refused},
		{"a request of a stream", `return (await env.network.fetch(new Request(site, { method: "POST", duplex: "half", body: numbers(3_000_000, 70_000) }))).text();`, sum(3_000_000), refused},
		{"an endless stream", `return send(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(262_144)); } }));`, `"too large: 25165824 bytes"`, refused},
		{"a stream that fails, and another one", `let n = 0, ended = 0; for (let i = 0; i < 5; i++) await send(new ReadableStream({ pull(c) { if (++n % 15 === 0) throw new Error("mine"); c.enqueue(new Uint8Array(262_144)); }, cancel() { ended++; } })).catch((e) => n += e.message === "mine"); return send(numbers(200_000, 1_000));`, sum(200_000), sum(200_000)},
		{"chunks that are no bytes", `let ended = 0; const why = await send(new ReadableStream({ start(c) { c.enqueue("text"); }, cancel() { ended++; } })).catch((e) => e.message); return [why, ended];`, `["the stream of a body has chunks other than Uint8Array",1]`, `["the stream of a body has chunks other than Uint8Array",1]`},
		{"a stream that is aborted while it waits", `const stop = new AbortController(); let why; const failed = await env.network.fetch(site, { method: "POST", duplex: "half", signal: stop.signal, body: new ReadableStream({ pull(c) { queueMicrotask(() => stop.abort(new Error("mine"))); return new Promise(() => {}); }, cancel(w) { why = w; } }) }).catch((e) => e); return [failed.message, why === failed];`, `["mine",true]`, `["mine",true]`},
		{"a stream that is aborted", `const stop = new AbortController(); let n = 0; await env.network.fetch(site, { method: "POST", duplex: "half", signal: stop.signal, body: new ReadableStream({ pull(c) { if (++n === 3) stop.abort(); c.enqueue(new Uint8Array(50_000)); } }) });`, `"this operation was aborted"`, `"this operation was aborted"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fmt.Sprintf("const site = %q; %s try { return await (async () => { %s })(); } catch (e) { return e.message; }", server.URL+"/", numbers, test.body)
			for _, store := range []bool{true, false} {
				env, want := host.Env{"network": httpcap.Allow(rule)}, test.plain
				if store {
					env["store"], want = blob.NewStore(blob.StoreOptions{Limit: 24 << 20}), test.with
				}
				got, err := n.call(t, "", "", body, host.Request{Env: env, Limits: host.Limits{CPU: time.Minute, Wall: time.Minute, Memory: 20 << 20}})
				if err != nil || got != want {
					t.Errorf("with a blob binding %t: got %s, %v, want %s", store, got, err, want)
				}
			}
		})
	}
}
