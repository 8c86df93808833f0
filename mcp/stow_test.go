package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

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
