package mcp

import (
	"context"
	"errors"
	"io"
	nethttp "net/http"
	"runtime"
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

// TestBodiesGiveWay has one agent send bodies that never end, until there is no room. Another agent's body gets the room of the largest, and is
// itself safe from those.
func TestBodiesGiveWay(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	const free = 1 << 20
	take(t, allBodies, maxAllBodies-free)
	defer allBodies.Release(maxAllBodies - free)
	stall := func(token string, size int) (status chan int, end func()) {
		t.Helper()
		body, feed := io.Pipe()
		r, err := nethttp.NewRequestWithContext(t.Context(), "POST", w.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		status = make(chan int, 1)
		go func() {
			answer, err := w.Client().Do(r)
			if err != nil {
				status <- 0
				return
			}
			_ = answer.Body.Close()
			status <- answer.StatusCode
		}()
		if _, err := feed.Write([]byte(strings.Repeat(" ", maxFirst+size))); err != nil {
			t.Fatal(err)
		}
		return status, func() { _ = feed.Close() }
	}
	holds := func(want int64) {
		t.Helper()
		for {
			var all int64
			incoming.mu.Lock()
			for _, bytes := range incoming.bodies {
				all += bytes
			}
			incoming.mu.Unlock()
			if all == want {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("bodies hold %d bytes, not %d", all, want)
			}
			runtime.Gosched()
		}
	}
	small, endSmall := stall(aliceToken, 300<<10)
	large, endLarge := stall(aliceToken, 600<<10)
	holds(900 << 10)
	status, _, _ := w.send("POST", initialize+strings.Repeat(" ", 400<<10), "Authorization", "Bearer "+bobToken)
	if status != 200 {
		t.Errorf("another agent's request: status %d", status)
	}
	if got := <-large; got != 503 && got != 0 { // the client may notice that the connection ends before it reads the answer
		t.Errorf("the largest body: status %d", got)
	}
	holds(300 << 10)
	if len(small) > 0 {
		t.Errorf("the smaller body: status %d", <-small)
	}
	others, endOther := stall(bobToken, 200<<10)
	holds(500 << 10)
	status, _, _ = w.send("POST", initialize+strings.Repeat(" ", 700<<10), "Authorization", "Bearer "+aliceToken)
	if status != 503 {
		t.Errorf("a request of the agent with the most: status %d", status)
	}
	holds(500 << 10)
	endSmall()
	endLarge()
	endOther()
	<-small
	<-others
}

// TestAgentsHaveHalf has one agent hold all that it may of the room for parsing, decoding and writing. Others have the rest.
func TestAgentsHaveHalf(t *testing.T) {
	greedy, other := newTraffic(), newTraffic()
	var held []*taken
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		one := &taken{traffic: greedy}
		err := one.write(ended, maxWriting/2)
		if one.shared.rest = maxParsing / 2; err == nil {
			err = one.parse(ended)
		}
		one.shared.rest = 0
		held = append(held, one)
		if (err == nil) != (len(held) == 1) {
			t.Errorf("request %d: %v", len(held), err)
		}
	}
	arguments := []byte(`{"a":[` + strings.Repeat(`1,`, 1<<20) + `1]}`)
	err := greedy.rooms.decode(t.Context(), arguments, func() error {
		if err := greedy.rooms.decode(ended, arguments, func() error { return nil }); err == nil {
			t.Error("an agent decodes two at once")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	one := &taken{traffic: other}
	one.shared.rest = maxParsing / 2
	if err := errors.Join(one.write(ended, maxWriting/2), one.parse(ended)); err != nil {
		t.Errorf("another agent: %v", err)
	}
	one.shared.rest = 0
	for _, one := range append(held, one) {
		one.giveBack()
	}
	for room, all := range map[*semaphore.Weighted]int64{parsing: maxParsing, decoding: maxDecoded, writing: maxWriting, greedy.rooms.writing: maxWriting / 2, greedy.rooms.parsing: maxParsing / 2} {
		take(t, room, all)
		room.Release(all)
	}
}
