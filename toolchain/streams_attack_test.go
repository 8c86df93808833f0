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
			// A call whose instance is taken away at each wait, as with the tag packed, keeps pieces for longer: it reaches the bound on them first.
			if test.limit == "cpu" && err != nil && strings.Contains(err.Error(), "exhausted: bytes held for http") {
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s%s", got, err, test.want, test.limit)
			}
		})
	}
}
