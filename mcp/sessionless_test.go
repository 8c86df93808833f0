package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/extension/lifecycle"
)

// meta is what each request without a session says of its client.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + sessionless + `","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}`

// alone returns a request without a session, and its headers.
func alone(token, method, name string) (body string, headers []string) {
	params := meta
	headers = []string{"Authorization", "Bearer " + token, "Mcp-Protocol-Version", sessionless, "Mcp-Method", method}
	if name != "" {
		params += fmt.Sprintf(`,"name":%q,"arguments":{}`, name)
		headers = append(headers, "Mcp-Name", name)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":%q,"params":{%s}}`, method, params), headers
}

// A request without a session needs its token as others do, is told that nothing may be cached, and has no session afterwards.
func TestSessionless(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	for _, method := range []string{"server/discover", "tools/list", "resources/list", "resources/templates/list"} {
		body, headers := alone(aliceToken, method, "")
		status, header, answer := w.send("POST", body, headers...)
		if status != 200 || !strings.Contains(answer, `"ttlMs":0`) || !strings.Contains(answer, `"cacheScope":"private"`) {
			t.Errorf("%s: %d %s", method, status, answer)
		}
		if header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: it has a session", method)
		}
		if method == "server/discover" && (!strings.Contains(answer, sessionless) || !strings.Contains(answer, withSessions)) {
			t.Errorf("it does not name the versions that it speaks: %s", answer)
		}
		if status, _, _ := w.send("POST", body, headers[2:]...); status != 401 {
			t.Errorf("%s without a token: %d", method, status)
		}
	}
	body, headers := alone(aliceToken, "tools/list", "")
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"no version in the message": {list, headers, 400},
		"another version in the message": {
			strings.ReplaceAll(body, sessionless, "2026-07-29"), headers, 400,
		},
		"another method in the header": {body, append(headers[:4:4], "Mcp-Method", "tools/call"), 400},
		"a version to come":            {strings.ReplaceAll(body, sessionless, "2099-01-01"), append(headers[:2:2], "Mcp-Protocol-Version", "2099-01-01"), 400},
	} {
		if status, _, answer := w.send("POST", c.body, c.headers...); status != c.status || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, _, _ := w.send(method, "", headers...); status != 405 {
			t.Errorf("%s: %d", method, status)
		}
	}
	for _, e := range h.server.endpoints {
		if n := e.connections(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	}
}

// A call without a session ends when its client goes, and when its token is taken back.
func TestSessionlessEnds(t *testing.T) {
	for _, tool := range []string{"wait", "spin"} {
		for _, how := range []string{"broken off", "token taken back", "calls ended"} {
			t.Run(tool+" "+how, func(t *testing.T) {
				h := newHome(t, preApproved)
				var gone atomic.Bool
				w := h.web(HTTPOptions{Holder: func(token string) (lifecycle.Viewer, bool) { return alice, token == aliceToken && !gone.Load() }})
				writeWaiting(w.client(sessionless, aliceToken, "test", nil))
				ctx, breakOff := context.WithCancel(t.Context())
				defer breakOff()
				body, headers := alone(aliceToken, "tools/call", "slow_"+tool)
				r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = nethttp.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				response, err := w.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = response.Body.Close() }()
				if _, err := response.Body.Read(make([]byte, 1)); err != nil { // its log: it is at work
					t.Fatal(err)
				}
				switch how {
				case "broken off":
					breakOff()
				case "token taken back":
					gone.Store(true)
				default:
					h.server.EndCalls()
				}
				if got := h.outcome(tool); got != "cancelled" {
					t.Errorf("it ended as %s", got)
				}
			})
		}
	}
}

// Without sessions the bound of calls holds for a token, and not for each of its requests.
func TestSessionlessCallsAreBounded(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	call := func(token string) string {
		body, headers := alone(token, "tools/call", "extension_list")
		_, _, answer := w.send("POST", body, headers...)
		return answer
	}
	if answer := call(aliceToken); strings.Contains(answer, "too many") {
		t.Fatal(answer)
	}
	calls := 0
	for _, e := range h.server.endpoints {
		for _, p := range e.peers {
			for range maxCalls {
				if err := p.calls.begin(); err != nil { // as calls do
					t.Fatal(err)
				}
				calls++
			}
		}
	}
	if calls != maxCalls {
		t.Errorf("room for %d calls", calls)
	}
	if answer := call(aliceToken); !strings.Contains(answer, "too many calls") {
		t.Errorf("one call more: %s", answer)
	}
	if answer := call(bobToken); strings.Contains(answer, "too many") {
		t.Errorf("another token: %s", answer)
	}
}

// TestProgressTokensAreShort sends calls whose progress tokens would come back each second.
func TestProgressTokensAreShort(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	const long, odd = "the progressToken has more than 1000 bytes", "the progressToken is no text or number"
	for _, c := range []struct{ token, refusal string }{
		{text(maxEcho), ""},
		{"7", ""},
		{"null", ""},
		{text(maxEcho + 1), long},
		{`{"a":` + text(maxEcho) + `}`, odd},
		{"[" + text(maxEcho) + "]", odd},
	} {
		body, headers := alone(aliceToken, "tools/call", "extension_list")
		body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":`+c.token+`,`, 1)
		if _, _, answer := w.send("POST", body, headers...); strings.Contains(answer, "progressToken") != (c.refusal != "") || !strings.Contains(answer, c.refusal) {
			t.Errorf("%.20s: %s", c.token, answer)
		}
	}
}

// TestIDsOfOtherParsers sends ids that a parser finds which takes "ID" for "id", or looks at what is behind the message, and the SDK does not.
func TestIDsOfOtherParsers(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"id":99999999999999999999,"ID":1}`:                false,
		`{"ID":1,"id":99999999999999999999}`:                false,
		`{"id":1.5,"Id":1}`:                                 false,
		`{"id":9007199254740993} {}`:                        false,
		`{"id":9007199254740993}]`:                          false,
		`[{"id":1},{"id":9007199254740993,"iD":1}]`:         false,
		`[{"id":9007199254740993}] x`:                       false,
		`{"i\u0064":9007199254740993}`:                      false,
		`{"id":1,"Id":99999999999999999999}`:                true,
		`[{"id":1},{"id":2}]`:                               true,
		`[` + strings.Repeat(`{"id":1},`, 63) + `{"id":1}]`: true,
		`[` + strings.Repeat(`{"id":1},`, 64) + `{"id":1}]`: false,
		"\n[" + strings.Repeat(`{},`, 1_000_000) + `{}`:     false,
	} {
		if _, bad := checkIDs([]byte(body)); (bad == nil) != ok {
			t.Errorf("%.60s: %v", body, bad)
		}
	}
}

// An id is sent back as it came, or is refused under itself: larger numbers would come back as others.
func TestRequestIDs(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
	inSession := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
	_, alone := alone(aliceToken, "tools/list", "")
	for id, ok := range map[string]bool{
		"7": true, "-7": true, "9007199254740991": true, "-9007199254740991": true, `"9223372036854775808"`: true, `"ü\n"`: true,
		"9007199254740992": false, "9223372036854775807": false, "9223372036854775808": false, "-9223372036854775809": false,
		"1e300": false, "1e999": false, "1.5": false, "5e-324": false, "{}": false, "[1]": false, "true": false,
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":{%s}}`, id, meta)
		plain := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/list"}`, id)
		var refused strings.Builder
		answers := map[string]string{}
		_, _, answers["with a session"] = w.send("POST", plain, inSession...)
		_, _, answers["without one"] = w.send("POST", body, alone...)
		if _, _, number, bad := readLine([]byte(plain)); bad != nil {
			if err := (&lineReader{refuse: &refused}).answer(number, bad); err != nil {
				t.Fatal(err)
			}
			answers["as a line"] = refused.String()
		} else if !ok {
			t.Errorf("%s: the line passes", id)
		}
		for way, answer := range answers {
			_, data, found := strings.Cut(answer, "data: ")
			if !found {
				data = answer
			}
			var message struct {
				ID     json.RawMessage `json:"id"`
				Result json.RawMessage `json:"result"`
				Error  *struct{ Message string }
			}
			if err := json.NewDecoder(strings.NewReader(data)).Decode(&message); err != nil {
				t.Errorf("%s %s: %v in %.200s", id, way, err, answer)
				continue
			}
			want := id
			if strings.ContainsAny(id, "{[t") {
				want = "null"
			}
			if string(message.ID) != want && !sameText(string(message.ID), want) {
				t.Errorf("%s %s: it came back as %s", id, way, message.ID)
			}
			if (message.Error == nil) != ok || ok && len(message.Result) == 0 {
				t.Errorf("%s %s: answered with %.200s", id, way, data)
			}
		}
	}
}

// sameText compares strings of JSON.
func sameText(a, b string) bool {
	var x, y string
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x == y
}
