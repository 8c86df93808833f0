package toolchain

import (
	"errors"
	"fmt"
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
