package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session keeps nothing of long arguments once their call is answered, and other messages of a session are short.
func TestSessionsKeepLittle(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	e.builtin["length"] = true
	e.sdk.AddTool(&sdk.Tool{Name: "length", InputSchema: anyObject}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct{ Text string }
		err := json.Unmarshal(r.Params.Arguments, &in)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%d bytes", len(in.Text))}}}, err
	})
	const size, sessions = 4 << 20, 8
	call := func(id int) string {
		return callLine(id, "length", `{"text":"`+strings.Repeat("a", size)+`"}`)
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	says := fmt.Sprintf(`"%d bytes"`, size)
	before := heap()
	for n := range sessions {
		token := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Protocol-Version", "2025-03-26"}
		_, header, _ := w.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), token...)
		in := slices.Concat(token, []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id")})
		for _, long := range []string{
			`{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"` + strings.Repeat("a", maxRest) + `"}}`,
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"length","arguments":{},"_meta":{"x":"` + strings.Repeat("a", maxRest) + `"}}}`,
		} {
			if status, _, answer := w.send("POST", long, in...); status != 400 || !strings.Contains(answer, "besides the arguments") || !strings.Contains(answer, `"id":5`) {
				t.Errorf("a long message that is no call is answered %d %s", status, answer)
			}
		}
		if n == 0 { // a batch, and a call whose arguments are as short as they come
			_, _, answer := w.send("POST", "["+call(7)+","+callLine(8, "length", `{"text":"b"}`)+"]", in...)
			if !strings.Contains(answer, says) || !strings.Contains(answer, `"1 bytes"`) {
				t.Errorf("a batch is answered %s", answer)
			}
		}
		if _, _, answer := w.send("POST", call(9), in...); !strings.Contains(answer, says) {
			t.Errorf("a call is answered %s", answer)
		}
	}
	w.CloseClientConnections()
	if kept := heap() - before; kept > sessions*size/4 {
		t.Errorf("%d sessions keep %d KiB of arguments of %d KiB", sessions, kept>>10, sessions*size>>10)
	}
}

// The same holds for messages over pipes.
func TestLinesHoldLittle(t *testing.T) {
	h := newHome(t, `{}`)
	long := strings.Repeat("a", 1<<20)
	list := callLine(2, "extension_list", `{"query":"`+long+`"}`)
	m, stowed, _, bad := readLine([]byte(list))
	r, ok := m.(*jsonrpc.Request)
	if !ok || len(r.Params) > 1000 || len(stowed) != 1 {
		t.Errorf("a call is read as %T, with %d arguments taken out of it: %v", m, len(stowed), bad)
	}
	sent := h.raw(time.Minute, "", initialize, list, callLine(3, "extension_list", `{"query":"b"}`),
		`{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":"`+long+`"}}`, `{"jsonrpc":"2.0","id":"`+long+`","method":"ping"}`)
	for _, id := range []string{"2", "3"} {
		if !strings.Contains(string(sent[id]), "No tool fits") {
			t.Errorf("a call is answered %s", sent[id])
		}
	}
	for _, id := range []string{"4", "null"} {
		if !strings.Contains(string(sent[id]), "besides the arguments") {
			t.Errorf("a long message that is no call is answered %s", sent[id])
		}
	}
}

// A session keeps little of the messages that it has answered, however many were under way at once.
func TestSessionsKeepFewMessages(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const sessions, at = 8, 240
	long := strings.Repeat("a", maxLater-200)
	for range sessions {
		token := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Protocol-Version", "2025-03-26"}
		_, header, _ := w.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), token...)
		in := slices.Concat(token, []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id")})
		for _, bytes := range []int{maxLater, maxRest - 200} {
			message := `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"` + strings.Repeat("a", bytes) + `"}}`
			if status, _, answer := w.send("POST", message, in...); status != 400 || !strings.Contains(answer, "besides the arguments") {
				t.Errorf("a message of %d bytes is answered %d %.100s", bytes, status, answer)
			}
		}
		var batch []string
		for i := range 64 {
			batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":"b%d","method":"ping"}`, i))
		}
		var wait sync.WaitGroup
		for i := range at {
			wait.Go(func() {
				w.send("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"ping","params":{"x":"%s"}}`, i, long), in...)
			})
			wait.Go(func() { w.send("POST", "["+strings.Join(batch, ",")+"]", in...) })
		}
		wait.Wait()
		if status, _, answer := w.send("POST", `{"jsonrpc":"2.0","id":"end","method":"ping"}`, in...); status != 200 {
			t.Errorf("after the burst: %d %s", status, answer)
		}
	}
	w.CloseClientConnections()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > sessions*2<<20 {
		t.Errorf("%d sessions keep %d KiB", sessions, kept>>10)
	} else {
		t.Logf("%d sessions keep %d KiB", sessions, kept>>10)
	}
}
