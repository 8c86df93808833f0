//go:build long

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// agents is how many agents attack the server at once.
const agents = 4

// TestLongServeMemory has many agents keep a real server busy with the largest messages, calls, lists, builds and tests at once. Beside the
// memory of guests, the server never takes more than SECURITY.md says.
func TestLongServeMemory(t *testing.T) {
	const lasts = time.Minute
	h := newHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h.ctx = ctx
	many := strings.Repeat("x", 990_000)
	h.offer("shared", "large", nil, map[string]string{
		"output": `"<".repeat(990_000)`,
		"deep":   `JSON.parse("[" + "[[[[[[[[[[]]]]]]]]]],".repeat(40_000) + "0]")`,
		"take":   `input.text.length`,
		"wait":   `(input.text, new Promise((done) => setTimeout(done, 2000)))`,
	}, "1")
	for i := range 12 { // their schemas make long lists
		get := map[string]string{}
		for k := range 7 {
			get[fmt.Sprintf("get%d", k)] = "1"
		}
		scope := "shared"
		if i >= 8 { // a scope has 16 MiB
			scope = "user"
		}
		h.offer(scope, fmt.Sprintf("listed%d", i), nil, get, `"x".repeat(250_000)`)
	}
	files := map[string]string{}
	for i := range 15 {
		files[fmt.Sprintf("d%d.txt", i)] = strings.Repeat("<", 520<<10)
	}
	h.offer("shared", "source", files, map[string]string{"get": "1"}, "1")
	tokens := make([]string, agents)
	for i := range tokens {
		tokens[i] = strings.TrimSpace(h.stile("serve", "token", "add", fmt.Sprintf("agent%d", i)))
	}
	server, address, stderr := h.serve()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	object := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	call := func(tool string, arguments any) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + object(arguments) + `}}`
	}
	nested := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"large_take","arguments":{"text":"x","more":[` + strings.Repeat("[[[[[[[[[[]]]]]]]]]],", 9_000) + `0]}}}`
	n := 0
	write := func() string {
		n++
		return call("extension_write", map[string]any{
			"manifest": `{"name":"w` + strconv.Itoa(n) + `","version":"1.0.0","description":"d","tools":["get"]}`,
			"source":   `import { extension } from "stile"; export const x = "` + many + `"; export default extension({ tools: { get: { description: "d", run: async () => x } } });`,
		})
	}
	type load struct {
		at    int // of each agent
		body  func() string
		tells string // in an answer that is as it should be, if that is an error
	}
	loads := map[string]load{
		"inputs of 15 MiB":     {2, func() string { return call("large_take", map[string]string{"text": strings.Repeat("x", 15<<20)}) }, "limit reached: input (1 MiB)"},
		"many values":          {at: 2, body: func() string { return nested }},
		"outputs":              {at: 4, body: func() string { return call("large_output", struct{}{}) }},
		"outputs of lists":     {at: 4, body: func() string { return call("large_deep", struct{}{}) }},
		"inputs":               {at: 4, body: func() string { return call("large_take", map[string]string{"text": many}) }},
		"inputs of slow calls": {at: 8, body: func() string { return call("large_wait", map[string]string{"text": many}) }},
		"code": {at: 2, body: func() string {
			return call("code_run", map[string]string{"code": `return "x".repeat(990_000) /*` + many[:200_000] + `*/`})
		}},
		"lists of tools": {at: 3, body: func() string { return `{"jsonrpc":"2.0","id":7,"method":"tools/list"}` }},
		"sources":        {at: 2, body: func() string { return call("extension_source", map[string]string{"extension": "source"}) }},
		"tests":          {at: 1, body: func() string { return call("extension_test", map[string]string{"extension": "source"}) }},
		"drafts":         {at: 1, body: write},
	}
	for name, load := range loads {
		if !post(ctx, address, tokens[0], load.body(), load.tells) {
			t.Errorf("%s: refused by a server that has nothing else to do", name)
		}
	}
	over, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var busy sync.WaitGroup
	counts := map[string]*[2]atomic.Int64{}
	for name, load := range loads {
		counts[name] = &[2]atomic.Int64{}
		for _, token := range tokens {
			body := load.body() // made once, so that the test takes little
			for range load.at {
				busy.Go(func() {
					for over.Err() == nil {
						if post(over, address, token, body, load.tells) {
							counts[name][0].Add(1)
						} else {
							counts[name][1].Add(1)
						}
					}
				})
			}
		}
	}
	for _, token := range tokens { // bodies that never arrive, answers that nobody reads
		busy.Go(func() { stall(over, address, token, "tools/list", 0) })
		busy.Go(func() { stall(over, address, token, "ping", 5<<20) })
	}
	guests := 0
	for over.Err() == nil {
		guests = max(guests, pooled(t, server.Process.Pid))
		select {
		case <-time.After(100 * time.Millisecond):
		case <-over.Done():
		}
	}
	most := peak(t, server.Process.Pid)
	busy.Wait()
	for name, c := range counts {
		t.Logf("%s: %d answered, %d refused", name, c[0].Load(), c[1].Load())
	}
	t.Logf("%d MiB at most, of which guests had up to %d MiB", most>>10, guests>>10)
	if bound := declared(t); most-guests > bound {
		t.Errorf("the server took %d MiB beside its guests, more than the %d MiB that SECURITY.md states", (most-guests)>>10, bound>>10)
	}
}

// declared returns the bound that SECURITY.md states, in KiB.
func declared(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "the process of `stile serve` or `stile mcp` stays below ")
	var gib float64
	if _, err := fmt.Sscanf(after, "%g GiB", &gib); err != nil {
		t.Fatal(err)
	}
	return int(gib * (1 << 20))
}

// offer adds an extension for all agents that see the scope. The schema of each tool has a default.
func (h *home) offer(scope, name string, files, tools map[string]string, otherwise string) {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), name)
	names, source := []string{}, `import { extension } from "stile";`+"\nexport default extension({ tools: {\n"
	for tool, body := range tools {
		names = append(names, tool)
		source += tool + `: { description: "d", input: { type: "object", properties: { text: { type: "string" } }, default: ` + otherwise + ` }, output: {}, run: async (input: any) => ` + body + " },\n"
	}
	list, err := json.Marshal(names)
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string]string{"index.ts": source + "} });", "manifest.json": `{"name":"` + name + `","version":"1.0.0","description":"d","tools":` + string(list) + `}`}
	maps.Copy(all, files)
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	for file, text := range all {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	h.stile("ext", "add", dir, "--scope", scope, "--entry", "index.ts")
	h.approveAll()
}

// begin begins a session, and returns the headers of its requests.
func begin(ctx context.Context, client *http.Client, address, token string) (http.Header, error) {
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/mcp", strings.NewReader(initialize))
	if err != nil {
		return nil, err
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	header.Set("Mcp-Session-Id", response.Header.Get("Mcp-Session-Id"))
	return header, response.Body.Close()
}

// post sends one message in a session of its own. It reports whether it was answered without an error, or with one that tells this text.
func post(ctx context.Context, address, token, body, tells string) bool {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	header, err := begin(ctx, client, address, token)
	if err != nil {
		return false
	}
	head := make([]byte, 4096)
	good := true
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		text := body
		if method == http.MethodDelete {
			text = ""
		}
		r, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/mcp", strings.NewReader(text))
		if err != nil {
			return false
		}
		r.Header = header
		response, err := client.Do(r)
		if err != nil {
			return false
		}
		n, _ := io.ReadFull(response.Body, head)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if method == http.MethodPost {
			failed := bytes.Contains(head[:n], []byte(`"error":`)) || bytes.Contains(head[:n], []byte(`"isError":true`))
			good = response.StatusCode == http.StatusOK && failed == (tells != "") && bytes.Contains(head[:n], []byte(tells))
		}
	}
	return good
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// stall sends all but the end of a request, or reads nothing of the answer, until ctx ends.
func stall(ctx context.Context, address, token, method string, missing int) {
	for ctx.Err() == nil {
		func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			header, err := begin(ctx, client, address, token)
			if err != nil {
				return
			}
			c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			body := `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"x":"` + strings.Repeat("x", missing) + `"}}`
			if _, err := fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", address, token, header.Get("Mcp-Session-Id"), len(body)+min(missing, 1), body); err != nil {
				return
			}
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
		}()
	}
}

// peak returns the most memory that a process ever had, in KiB.
func peak(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil {
		_, after, _ := strings.Cut(string(text), "VmHWM:")
		_, err = fmt.Sscan(after, &kib)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// pooled returns how much of a process's memory is in the pools of guests, in KiB. They are the only parts of its address space that are
// larger than 64 GiB.
func pooled(t *testing.T, pid int) (kib int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var start, end uint64 // of adjacent mappings
	rss := 0
	add := func() {
		if end-start > 64<<30 {
			kib += rss
		}
		rss = 0
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			if from != end {
				add()
				start = from
			}
			end = to
		}
		if text, ok := strings.CutPrefix(lines.Text(), "Rss:"); ok {
			n := 0
			_, _ = fmt.Sscan(text, &n)
			rss += n
		}
	}
	add()
	return kib
}
