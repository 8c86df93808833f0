package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/sync/semaphore"
)

const (
	initializeLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	pingLine       = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// A line that is not a valid message is answered, and the connection continues.
func TestLines(t *testing.T) {
	h := newHome(t, `{}`)
	for _, bad := range []struct {
		name, line string
		code       int
	}{
		{"garbage", "garbage", -32700},
		{"an end that is missing", `{"jsonrpc":"2.0"`, -32700},
		{"two messages", pingLine + pingLine, -32700},
		{"bytes", "\x00\xff", -32700},
		{"nested deep", strings.Repeat("[", 1<<20), -32700},
		{"an empty list", "[]", -32600},
		{"a list", "[" + pingLine + "]", -32600},
		{"null", "null", -32600},
		{"a number", "7", -32600},
		{"an object", "{}", -32600},
		{"another version", `{"jsonrpc":"1.0","id":2,"method":"ping"}`, -32600},
		{"a number that is none", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{"a method that is none", `{"jsonrpc":"2.0","id":2,"method":7}`, -32600},
		{"too long", `"` + strings.Repeat("x", maxLine) + `"`, -32600},
	} {
		for _, before := range []string{"", initializeLine + "\n"} { // in one burst with it, before and after
			t.Run(fmt.Sprintf("%s/%t", bad.name, before == ""), func(t *testing.T) {
				in, client := io.Pipe()
				answers, out := io.Pipe()
				served := make(chan error, 1)
				go func() {
					served <- h.server.Serve(context.WithoutCancel(t.Context()), alice, Lines(in, out, time.Minute))
					_ = out.Close()
				}()
				lines := before + bad.line + "\r\n\n"
				if before == "" {
					lines += initializeLine + "\n"
				}
				go func() { _, _ = io.WriteString(client, lines+pingLine+"\n") }()
				refused := 0
				d := json.NewDecoder(bufio.NewReader(answers))
				for left := 3; left > 0; left-- {
					var a struct {
						ID    *int
						Error *struct{ Code int }
					}
					if err := d.Decode(&a); err != nil {
						t.Fatal(err)
					}
					switch {
					case a.ID == nil && a.Error != nil && a.Error.Code == bad.code:
						refused++
					case a.ID == nil || a.Error != nil:
						t.Errorf("got %+v", a)
					}
				}
				if refused != 1 {
					t.Errorf("%d refusals", refused)
				}
				_ = client.Close()
				_, _ = io.Copy(io.Discard, answers)
				if err := <-served; err != nil {
					t.Errorf("serve: %v", err)
				}
			})
		}
	}
}

// raw serves a client that writes only these lines. Its input ends once it has received until, if that is set. It returns the messages to
// the client by number; the others are under "".
func (h *home) raw(finish time.Duration, until string, lines ...string) map[string]json.RawMessage {
	h.t.Helper()
	in, client := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- h.server.Serve(context.WithoutCancel(h.t.Context()), alice, Lines(in, out, finish))
		_ = out.Close()
	}()
	go func() {
		_, _ = io.WriteString(client, strings.Join(lines, "\n"))
		if until == "" {
			_ = client.Close()
		}
	}()
	sent := map[string]json.RawMessage{}
	for d := json.NewDecoder(answers); ; {
		var m struct {
			ID                    json.RawMessage
			Method                string
			Params, Result, Error json.RawMessage
		}
		if err := d.Decode(&m); err != nil {
			break
		}
		if m.Method != "" {
			m.ID = nil
			if m.Method == until {
				_ = client.Close()
			}
		}
		sent[string(m.ID)] = slices.Concat(m.Params, m.Result, m.Error)
	}
	if err := soon(h.t, served, "the end"); err != nil {
		h.t.Errorf("serve: %v", err)
	}
	return sent
}

func callLine(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// Requests before the end of input are answered, with or without a final line end.
func TestEndOfInput(t *testing.T) {
	h := newHome(t, `{}`)
	lines := []string{initializeLine, "garbage"}
	lines = append(lines, callLine(20, "code_run", `{"code":"return input"}`), callLine(20, "code_run", `{}`)) // the SDK answers a number once
	for id := 2; id < 20; id++ {
		lines = append(lines, callLine(id, "code_run", fmt.Sprintf(`{"code":"await new Promise((done) => setTimeout(done, 20)); return %d"}`, 1000+id)))
	}
	for _, end := range []string{"", "\n", `{"jsonrpc":"2.0",`} {
		sent := h.raw(time.Minute, "", append(lines, end)...)
		for id := 2; id < 20; id++ {
			if got := string(sent[fmt.Sprint(id)]); !strings.Contains(got, fmt.Sprintf(`"result":%d`, 1000+id)) {
				t.Errorf("%q: answer %d is %s", end, id, got)
			}
		}
	}
}

// An endless call is cancelled, and its client is told. The server does not wait for a person who has left.
func TestEndOfInputIsBounded(t *testing.T) {
	h := newHome(t, withPersons)
	writeWaiting(h.client())
	level := `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}`
	cut := h.raw(time.Millisecond, "notifications/message", initializeLine, level, callLine(2, "slow_wait", "{}"), "")
	if got := string(cut["2"]); !strings.Contains(got, "context canceled") {
		t.Errorf("the answer to a call that was cut is %q", got)
	}
	if got := h.outcome("wait"); got != "cancelled" {
		t.Errorf("it ended as %s", got)
	}
	asking, err := json.Marshal(draft("greedy", "1", object{"network": []string{"api.example.test"}}))
	if err != nil {
		t.Fatal(err)
	}
	client := strings.NewReplacer(`"capabilities":{}`, `"capabilities":{"elicitation":{}}`, `"name":"test"`, `"name":"editor"`).Replace(initializeLine)
	sent := h.raw(time.Minute, "elicitation/create", client, callLine(2, "extension_write", string(asking)), "")
	if got := string(sent["2"]); !strings.Contains(got, "could not be asked") {
		t.Errorf("got %s", got)
	}
}

// A client that stops reading blocks neither a logging call nor the shutdown.
func TestDeafClient(t *testing.T) {
	for _, how := range []string{"cancelled", "asked to end", "end of input", "limit"} {
		t.Run(how, func(t *testing.T) {
			h := newHome(t, `{}`)
			if how == "limit" {
				h.with(func(o *Options) { o.Limits.Wall = 200 * time.Millisecond })
			}
			does[writeOutput](h.client(), "extension_write", tools("talk", nil, object{"get": `(async () => { for (;;) { console.log("here"); await new Promise((done) => setTimeout(done, 1)); } })()`}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in, client := io.Pipe()
			answers, out := io.Pipe()
			defer func() { _ = answers.Close() }() // it blocks the one running write
			served := make(chan error, 1)
			go func() { served <- h.server.Serve(ctx, alice, Lines(in, out, time.Millisecond)) }()
			d := json.NewDecoder(answers)
			for i, line := range []string{initializeLine, `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}`, callLine(4, "talk_get", "{}")} {
				if _, err := io.WriteString(client, line+"\n"); err != nil {
					t.Fatal(err)
				}
				want := "id"
				if i == 2 {
					want = "level" // of what it logs
				}
				for text := json.RawMessage(nil); !strings.Contains(string(text), `"`+want+`":`); {
					if err := d.Decode(&text); err != nil {
						t.Fatal(err)
					}
				}
			}
			switch how {
			case "cancelled":
				_, _ = io.WriteString(client, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`+"\n")
			case "asked to end":
				cancel()
			case "end of input":
				_ = client.Close()
			}
			if got := h.outcome("get"); got != "cancelled" && got != how {
				t.Errorf("it ended as %s", got)
			}
			_ = client.Close()
			if err := soon(t, served, "the end"); err != nil && how != "asked to end" {
				t.Errorf("serve: %v", err)
			}
		})
	}
}

// Whatever a client sends, no line is more than one message or refusal.
func FuzzLines(f *testing.F) {
	for _, s := range []string{pingLine, "garbage\n" + pingLine + "\r\n", "[]", "{}\n\n", "\"\\n\"\n", pingLine + " " + pingLine} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var refused strings.Builder
		r := &lineReader{lines: bufio.NewReaderSize(strings.NewReader(string(in)), 16), refuse: &refused}
		passed := 0
		for {
			a := r.next(t.Context())
			a.shared.giveBack()
			if errors.Is(a.err, io.EOF) {
				break
			}
			if a.err != nil {
				t.Fatal(a.err)
			}
			passed++
			if text, err := jsonrpc.EncodeMessage(a.message); err != nil || bytes.Contains(text, []byte("\n")) {
				t.Errorf("%q passed: %v", text, err)
			}
		}
		given := 0
		for line := range strings.Lines(string(in)) {
			if strings.TrimSpace(line) != "" {
				given++
			}
		}
		if got := passed + strings.Count(refused.String(), "\n"); got > given {
			t.Errorf("%d messages and refusals of %d lines", got, given)
		}
	})
}

// TestDeafClientIsNotRead has a client send continually and read nothing. The server takes a limited amount, and the rest when it reads.
func TestDeafClientIsNotRead(t *testing.T) {
	ping := func(id int, size int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":"%s"}}`, id, strings.Repeat("x", size))
	}
	for _, test := range []struct {
		name           string
		lines          int
		line           func(i int) string
		taken, refused int // while nothing is read; in the end, -1 for some, -2 when some are not answered
	}{
		{"requests", 1000, func(i int) string { return ping(i, 30_000) }, 256, 0},
		{"the same request", 1000, func(int) string { return ping(0, 30_000) }, 1, -2},
		{"large requests", 16, func(i int) string { return callLine(i, "x", `"`+strings.Repeat("x", 5<<20)+`"`) }, 6, -1},
		{"requests with large answers", 20, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, i, []string{"resources/read", "tools/list"}[i%2])
		}, 2, 0},
		{"notifications", 1000, func(i int) string {
			if i == 0 {
				return pingLine
			}
			return `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
		}, 257, 0},
		{"answers to nothing", 1000, func(i int) string {
			if i == 0 {
				return pingLine
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i)
		}, 257, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				answers, out := io.Pipe()
				c, err := Lines(in, out, time.Minute).Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var taken, refused atomic.Int64
				go func() { // as the SDK does
					for {
						m, err := c.Read(t.Context())
						if err != nil {
							return
						}
						taken.Add(1)
						if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
							go func() { _ = c.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage("{}")}) }()
						}
					}
				}()
				send := func(from, to int) {
					for i := from; i < to; i++ {
						_, _ = io.WriteString(client, test.line(i)+"\n")
					}
				}
				go send(0, 1)
				synctest.Wait() // its answer is being written, so the client is known to read nothing
				go send(1, test.lines)
				synctest.Wait()
				if n := taken.Load(); n != int64(test.taken) {
					t.Errorf("%d messages were taken from a client that reads nothing, want %d", n, test.taken)
				}
				go func() {
					for lines := bufio.NewReader(answers); ; {
						line, err := lines.ReadString('\n')
						if err != nil {
							return
						}
						if strings.Contains(line, "more than 32 MiB together") {
							refused.Add(1)
						}
					}
				}()
				synctest.Wait()
				if n := taken.Load() + refused.Load(); test.refused != -2 && n != int64(test.lines) || test.refused == 0 && refused.Load() > 0 || test.refused == -1 && refused.Load() == 0 {
					t.Errorf("in the end %d messages were taken and %d refused, of %d", taken.Load(), refused.Load(), test.lines)
				}
				_ = client.Close()
				_ = answers.Close()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStalledLines has clients stall in the middle of lines that take much of the memory for messages. It is free again after a while, and the
// lines are answered if they go on.
func TestStalledLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 3
		var ends []io.Closer
		var answers []*bufio.Reader
		var rest []io.Writer
		for i := range clients {
			in, client := io.Pipe()
			read, out := io.Pipe()
			c, err := Lines(in, out, time.Minute).Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends, answers, rest = append(ends, read, client, c), append(answers, bufio.NewReader(read)), append(rest, client)
			go func() {
				_, _ = fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":"%s`, i, strings.Repeat("x", maxLine-1<<10))
			}()
		}
		synctest.Wait()
		if allBodies.TryAcquire(maxAllBodies - 2*maxLine) {
			t.Error("the lines take no memory")
			allBodies.Release(maxAllBodies - 2*maxLine)
		}
		time.Sleep(readTime)
		synctest.Wait()
		for room, all := range map[*semaphore.Weighted]int64{allBodies: maxAllBodies, allFirst: maxAllFirst} {
			if !room.TryAcquire(all) {
				t.Fatal("lines that stall keep memory")
			}
			room.Release(all)
		}
		for i := range clients {
			go func() { _, _ = io.WriteString(rest[i], "\"}}\n") }()
			line, err := answers[i].ReadString('\n')
			if err != nil || !strings.Contains(line, fmt.Sprintf(`"id":%d,`, i)) || !strings.Contains(line, "a line did not arrive within 30s") {
				t.Errorf("got %q, %v", line, err)
			}
		}
		for _, end := range ends {
			_ = end.Close()
		}
	})
}

// A request before initialize is refused with a JSON-RPC code, and the error says what to do.
func TestBeforeInitialize(t *testing.T) {
	sent := newHome(t, `{}`).raw(time.Minute, "", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, callLine(8, "code_run", `{"code":"return 1"}`), pingLine, initializeLine, "")
	for _, id := range []string{"7", "8"} {
		var refused struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(sent[id], &refused); err != nil || refused.Code != jsonrpc.CodeInvalidRequest || !strings.HasSuffix(refused.Message, "; send initialize first") {
			t.Errorf("%s is answered %s", id, sent[id])
		}
	}
	if string(sent["2"]) != "{}" || !strings.Contains(string(sent["1"]), "serverInfo") {
		t.Errorf("got %s", sent)
	}
}

// Only initialized clients are notified of changes to the list of tools.
func TestChangesBeforeInitialize(t *testing.T) {
	h := newHome(t, preApproved)
	in, client := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- h.server.Serve(context.WithoutCancel(t.Context()), alice, Lines(in, out, time.Minute))
		_ = out.Close()
	}()
	received := json.NewDecoder(answers)
	next := func() (m struct {
		ID     int
		Method string
	},
	) {
		t.Helper()
		if err := received.Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	send(pingLine)
	if m := next(); m.ID != 2 {
		t.Fatalf("got %+v", m)
	}
	other := h.client() // is told after the first one
	change := func(name string) {
		does[writeOutput](other, "extension_write", tools(name, nil, object{"a": "1"}))
	}
	change("one")
	soon(t, other.changes, "a word of the new tool")
	send(initializeLine)
	if m := next(); m.ID != 1 {
		t.Errorf("before the answer to initialize came %+v", m)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(pingLine)
	if m := next(); m.ID != 2 {
		t.Errorf("got %+v", m)
	}
	change("two")
	if m := next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("got %+v", m)
	}
	_ = client.Close()
	if err := soon(t, served, "the end"); err != nil {
		t.Error(err)
	}
}
