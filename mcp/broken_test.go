package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// strangeURI is the URI of a resource that Go does not quote as JSON does.
const strangeURI = `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"\u0001\udb40\udc01"}}`

// A name that is quoted differently in Go and in JSON is answered like any other unknown name, and the session goes on.
func TestStrangeURIs(t *testing.T) {
	h := newHome(t, `{}`)
	sent := h.raw(time.Minute, "", initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, strangeURI, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if !strings.Contains(string(sent["7"]), "not found") || string(sent["8"]) != "{}" {
		t.Errorf("over pipes, the answers are %s and %s", sent["7"], sent["8"])
	}
	w := h.web(HTTPOptions{})
	token := []string{"Authorization", "Bearer " + aliceToken}
	_, header, _ := w.send("POST", initialize, token...)
	in := append(token, "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	for range 2 {
		if status, _, body := w.send("POST", strangeURI, in...); status != 200 || !strings.Contains(body, "not found") {
			t.Errorf("over HTTP, the answer is %d %q", status, body)
		}
	}
	body, headers := alone(aliceToken, "resources/read", "")
	body = strings.Replace(body, `"params":{`, `"params":{"uri":"\udb40\udc01",`, 1)
	if status, _, answer := w.send("POST", body, append(headers, "Mcp-Name", "\U000e0001")...); !strings.Contains(answer, "not found") {
		t.Errorf("without a session, the answer is %d %q", status, answer)
	}
}

// A session that breaks, because an answer cannot be encoded, is over: nothing keeps it or what was sent to it.
func TestBrokenSessionsAreForgotten(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	e.sdk.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "prompts/list" {
				return nil, &jsonrpc.Error{Data: json.RawMessage("{")}
			}
			return next(ctx, method, r)
		}
	})
	token := []string{"Authorization", "Bearer " + aliceToken}
	_, header, _ := w.send("POST", initialize, token...)
	in := append(token, "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	_, _, _ = w.send("POST", list, in...)
	_, _, _ = w.send("POST", `{"jsonrpc":"2.0","id":7,"method":"prompts/list"}`, in...)
	for start := time.Now(); ; {
		status, _, body := w.send("POST", `{"jsonrpc":"2.0","id":8,"method":"ping"}`, in...)
		if status == 404 && strings.Contains(body, "session not found") {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("the session is still there: %d %s", status, body)
		}
	}
}
