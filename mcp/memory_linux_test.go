package mcp

import (
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/usagetest"
)

// hostileMessages are messages that take far more memory than their size when decoded, by their content.
func hostileMessages() map[string]string {
	call := func(tool, text string) string {
		return `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"` + tool + `",` + text + `}}`
	}
	params := func(text string) string { return call("extension_list", text) }
	deep := strings.Repeat("[", 900) + strings.Repeat("1,", maxValues-1000) + "1" + strings.Repeat("]", 900)
	objects := "[" + strings.Repeat(`{"":0},`, maxValues-10) + "0]"
	return map[string]string{
		"objects in _meta":     params(`"_meta":{"a":` + objects + `}`),
		"objects in arguments": params(`"arguments":{"a":` + objects + `}`),
		"a deep manifest":      call("extension_write", `"arguments":{"source":"1","manifest":{"name":"a","tests":`+deep+`}}`),
		"a text":               params(`"arguments":{"other":"` + strings.Repeat("x", 15<<20) + `"}`),
	}
}

// TestMessagesTakeLittle has 16 agents send two such messages each at once, in a separate process for each kind. It measures how far
// that process's peak memory rose.
func TestMessagesTakeLittle(t *testing.T) {
	messages := hostileMessages()
	if name := os.Getenv("STILE_TEST_MESSAGE"); name != "" {
		sendMany(t, messages[name])
		return
	}
	t.Parallel()
	for name := range messages {
		kib, out, err := usagetest.Grown(t, "TestMessagesTakeLittle", "STILE_TEST_MESSAGE="+name)
		if err != nil || kib > 512<<10 {
			t.Errorf("%s: %d KiB, %v\n%s", name, kib, err, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// sendMany runs in the separate process.
func sendMany(t *testing.T, message string) {
	h := newHome(t, `{}`)
	handler, err := h.server.Handler(HTTPOptions{Holder: func(token string) (lifecycle.Viewer, bool) { return lifecycle.Viewer{Agent: token}, true }})
	if err != nil {
		t.Fatal(err)
	}
	const agents = 16
	send := func(agent, id int, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/", io.MultiReader(strings.NewReader(fmt.Sprintf(`{"id":%d,`, id)), strings.NewReader(body[1:])))
		r.Header = nethttp.Header{
			"Authorization": {fmt.Sprintf("Bearer agent-%d", agent)}, "Mcp-Session-Id": {session},
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	var sessions [agents]string
	for a := range sessions {
		sessions[a] = send(a, 1, "", strings.Replace(initialize, `"id":1,`, "", 1)).Header().Get("Mcp-Session-Id")
	}
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for i := range 2 * agents {
			ended.Go(func() {
				w := send(i%agents, 2+i, sessions[i%agents], message)
				t.Logf("%d %.200s", w.Code, w.Body)
			})
		}
		ended.Wait()
	})
}
