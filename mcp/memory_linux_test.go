package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/abi"
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

// TestUnfinishedLinesTakeLittle has 40 clients with pipes send most of a line of 15 MiB each, in a separate process. It measures how far
// that process's peak memory rose. When the lines end, those that found no room are answered with the reason.
func TestUnfinishedLinesTakeLittle(t *testing.T) {
	if os.Getenv("STILE_TEST_UNFINISHED") != "" {
		sendUnfinished(t)
		return
	}
	t.Parallel()
	kib, out, err := usagetest.Grown(t, "TestUnfinishedLinesTakeLittle", "STILE_TEST_UNFINISHED=1")
	if err != nil || kib > 512<<10 {
		t.Errorf("%d KiB, %v\n%s", kib, err, out)
	}
	t.Logf("%d KiB", kib)
}

// sendUnfinished runs in the separate process.
func sendUnfinished(t *testing.T) {
	const clients = 40
	var write [clients]io.Writer
	var answered [clients]chan string // an answer, or what was received
	var connections [clients]sdk.Connection
	var ends [clients]io.Closer
	for i := range clients {
		in, client := io.Pipe()
		answers, out := io.Pipe()
		c, err := Lines(in, out, time.Minute).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write[i], answered[i], connections[i] = client, make(chan string, 2), c
		ends[i] = out
		go func() {
			line, _ := bufio.NewReader(answers).ReadString('\n')
			answered[i] <- line
		}()
		go func() {
			if _, err := c.Read(t.Context()); err == nil {
				answered[i] <- "received"
			}
		}()
	}
	part := strings.Repeat("{ ", 1<<19) // which an outline could keep
	each := func(do func(i int)) {
		var done sync.WaitGroup
		for i := range clients {
			done.Go(func() { do(i) })
		}
		done.Wait()
	}
	usagetest.Tell(t, func() {
		each(func(i int) {
			_, _ = fmt.Fprintf(write[i], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":"`, i)
			for range 15 {
				_, _ = io.WriteString(write[i], part)
			}
		})
	})
	var received, refused atomic.Int64
	each(func(i int) {
		_, _ = io.WriteString(write[i], "\"}}\n")
		switch answer := <-answered[i]; {
		case answer == "received":
			received.Add(1)
		case strings.Contains(answer, fmt.Sprintf(`"id":%d,`, i)) && strings.Contains(answer, errBusy.Error()):
			refused.Add(1)
		default:
			t.Errorf("%d: %q", i, answer)
		}
	})
	if received.Load() == 0 || received.Load() > maxAllBodies/(15<<20) || refused.Load() == 0 {
		t.Errorf("%d lines were received, and %d refused", received.Load(), refused.Load())
	}
	each(func(i int) {
		if err := errors.Join(connections[i].Close(), ends[i].Close()); err != nil {
			t.Error(err)
		}
	})
	take(t, allBodies, maxAllBodies)
}

// TestReadingTakesLittle has an agent call a tool that reads a stored version of 8 MiB, 16 times at once, in a separate process for each
// tool. With escapes for HTML, the version's files have six times as many bytes.
func TestReadingTakesLittle(t *testing.T) {
	tools := map[string]object{"extension_source": {"extension": "large"}, "extension_test": {"extension": "large"}}
	if name := os.Getenv("STILE_TEST_READING"); name != "" {
		readMany(t, name, tools[name])
		return
	}
	t.Parallel()
	for name := range tools {
		kib, out, err := usagetest.Grown(t, "TestReadingTakesLittle", "STILE_TEST_READING="+name)
		if err != nil || kib > 384<<10 {
			t.Errorf("%s: %d KiB, %v\n%.1000s", name, kib, err, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// readMany runs in the separate process.
func readMany(t *testing.T, name string, arguments object) {
	h := newHome(t, preApproved)
	large := draft("large", `"x".repeat(100000)`, nil)
	files := object{"index.ts": large["source"]}
	for i := range 15 {
		files[fmt.Sprintf("d%d.txt", i)] = strings.Repeat("<", 520<<10)
	}
	delete(large, "source")
	large["files"] = files
	c := h.client()
	does[writeOutput](c, "extension_write", large)
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 16 {
			ended.Go(func() {
				if r := c.tool(name, arguments); r.IsError {
					t.Errorf("%.300s", text(r))
				}
			})
		}
		ended.Wait()
	})
}

// TestOfferedSchemasTakeLittle offers tools whose schemas take 20 times their bytes when they are decoded. They are offered as long as their
// extensions are active.
func TestOfferedSchemasTakeLittle(t *testing.T) {
	const test, variable = "TestOfferedSchemasTakeLittle", "STILE_TEST_OFFERED"
	const size, tools = 256 << 10, 20
	if os.Getenv(variable) != "" {
		nested := strings.Repeat("[", 55) + strings.Repeat("]", 55)
		schema := `{"type":"object","default":[` + strings.Repeat(nested+",", size/(len(nested)+1)-1) + `0]}`
		server := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
		usagetest.Tell(t, func() {
			for i := range tools {
				tool, err := toolOf(lifecycle.Tool{Name: fmt.Sprintf("x_get%d", i), Definition: abi.Definition{InputSchema: schema}})
				if err != nil {
					t.Fatal(err)
				}
				server.AddTool(tool, nil)
			}
		})
		runtime.KeepAlive(server)
		return
	}
	t.Parallel()
	kib, out, err := usagetest.Grown(t, test, variable+"=1")
	if most := 24 * tools * size >> 10; err != nil || kib > most {
		t.Errorf("%d KiB, more than %d, %v\n%.1000s", kib, most, err, out)
	}
	t.Logf("%d KiB", kib)
}
