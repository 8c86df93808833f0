package mcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestMessagesShareMemory sends messages while others use all the memory for large ones. A large one is refused with the reason, and a
// small one is not. Both pass afterwards, over HTTP and pipes.
func TestMessagesShareMemory(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	const call = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"extension_list","arguments":{}}}`
	large := call + strings.Repeat(" ", 2*maxFirst)
	long := strings.Replace(call, "{}", `{"query":"`+strings.Repeat("x ", maxFirst)+`"}`, 1)
	initialized := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	for _, c := range []struct {
		name    string
		taken   int64
		message string
		refused bool
	}{
		{"small", maxAllBodies, call, false},
		{"large", maxAllBodies, large, true},
		{"long", maxAllBodies, long, true},
		{"large with room", 0, large, false},
		{"long with room", 0, long, false},
	} {
		take(t, allBodies, c.taken)
		_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
		status, _, answer := w.send("POST", c.message, "Authorization", "Bearer "+aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
		if (status == 503) != c.refused || strings.Contains(answer, errBusy.Error()) != c.refused {
			t.Errorf("%s: %d %.200s", c.name, status, answer)
		}
		sent := h.raw(time.Minute, "", initializeLine, initialized, c.message+"\n")
		if strings.Contains(string(sent["3"]), errBusy.Error()) != c.refused {
			t.Errorf("%s over pipes: %.200s", c.name, sent["3"])
		}
		allBodies.Release(c.taken)
	}
	for room, all := range map[*semaphore.Weighted]int64{allBodies: maxAllBodies, allFirst: maxAllFirst, parsing: maxParsing, decoding: maxDecoded, writing: maxWriting} {
		take(t, room, all)
		room.Release(all)
	}
}

// take takes all the room, which nothing may still hold. A request releases its room shortly after its answer.
func take(t *testing.T, room *semaphore.Weighted, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := room.Acquire(ctx, n); err != nil {
		t.Fatalf("something keeps memory, of %d", n)
	}
}

// TestBeforeInitializeOverHTTP sends requests before initialize. They are answered with the JSON-RPC code.
func TestBeforeInitializeOverHTTP(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	for _, c := range []struct{ name, body, want string }{
		{"a list", list, `"id":2`},
		{"a call", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"extension_list"}}`, `"id":"x"`},
		{"a batch", "[" + pingLine + "," + list + "]", `"id":2`},
		{"odd params", `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}`, `"id":2`},
		{"two methods", `{"jsonrpc":"2.0","id":2,"method":"tools/list","Method":"initialize"}`, `"id":2`},
		{"a name in escapes", strings.Replace(list, "tools", `t\u006fols`, 1), `"id":2`},
	} {
		status, _, body := w.send("POST", c.body, "Authorization", "Bearer "+aliceToken)
		if status != 400 || !strings.Contains(body, c.want) || !strings.Contains(body, `"code":-32600`) || !strings.Contains(body, "send initialize first") {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	for _, body := range []string{pingLine, initialize} {
		if status, _, answer := w.send("POST", body, "Authorization", "Bearer "+aliceToken); status != 200 || strings.Contains(answer, "error") {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}
