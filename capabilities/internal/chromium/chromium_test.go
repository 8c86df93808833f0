package chromium

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started returns a browser that ends with the test. Its network is that of this process, which tests of egress separate.
func started(t *testing.T, o Options) *Browser {
	t.Helper()
	o.Network = "/proc/self/ns/net"
	b, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// newPage opens a page, and returns its session.
func newPage(t *testing.T, b *Browser, url string) string {
	t.Helper()
	var made struct{ TargetID, SessionID string }
	for _, c := range []struct {
		method string
		params map[string]any
	}{{"Target.createTarget", map[string]any{"url": url}}, {"Target.attachToTarget", map[string]any{"flatten": true}}} {
		if made.TargetID != "" {
			c.params["targetId"] = made.TargetID
		}
		if err := b.Call(t.Context(), "", c.method, c.params, &made); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Call(t.Context(), made.SessionID, "Runtime.evaluate", map[string]any{"expression": "0"}, nil); err != nil { // it is there
		t.Fatal(err)
	}
	return made.SessionID
}

func TestCall(t *testing.T) {
	b := started(t, Options{})
	page := newPage(t, b, "about:blank")
	var r struct{ Result struct{ Value int } }
	if err := b.Call(t.Context(), page, "Runtime.evaluate", map[string]any{"expression": "6 * 7"}, &r); err != nil || r.Result.Value != 42 {
		t.Errorf("got %v, %v", r, err)
	}
	refused := (*CallError)(nil)
	if err := b.Call(t.Context(), "", "No.method", nil, nil); !errors.As(err, &refused) || refused.Method != "No.method" {
		t.Errorf("got %v", err)
	}
	events := make(chan Event, 10)
	b.Handle(page, func(e Event) { events <- e })
	if err := b.Call(t.Context(), page, "Page.enable", nil, nil); err != nil {
		t.Fatal(err)
	}
	b.Send(page, "Page.navigate", map[string]any{"url": "data:text/html,x"})
	if e := <-events; !strings.HasPrefix(e.Method, "Page.") {
		t.Errorf("got %v", e)
	}
	b.Handle(page, func(Event) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Call(ctx, page, "Runtime.evaluate", map[string]any{"expression": "new Promise(() => 0)", "awaitPromise": true}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// An answer that is too large fails its call, and no other.
	if err := b.Call(t.Context(), page, "Runtime.evaluate", map[string]any{"expression": "'x'.repeat(60e6)", "returnByValue": true}, &r); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := b.Call(t.Context(), page, "Runtime.evaluate", map[string]any{"expression": "1"}, &r); err != nil || r.Result.Value != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestEnds(t *testing.T) {
	b := started(t, Options{})
	p, err := os.FindProcess(b.Pid())
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	page := newPage(t, b, "about:blank")
	go func() {
		waiting <- b.Call(context.Background(), page, "Runtime.evaluate", map[string]any{"expression": "new Promise(() => 0)", "awaitPromise": true}, nil)
	}()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
	<-b.Done()
	if err := b.Call(t.Context(), "", "Browser.getVersion", nil, nil); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMissing(t *testing.T) {
	_, err := Start(t.Context(), Options{Path: "/nowhere/chromium", Network: "/proc/self/ns/net"})
	if err == nil || !strings.HasPrefix(err.Error(), "start Chromium: ") {
		t.Errorf("got %v", err)
	}
	_, err = Start(t.Context(), Options{Path: "/bin/true", Network: "/proc/self/ns/net"})
	if !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
	lack := (*LackError)(nil)
	if _, err := Start(t.Context(), Options{Network: "/nowhere"}); !errors.As(err, &lack) {
		t.Errorf("got %v", err)
	}
	if path, err := Find(); err != nil || !filepath.IsAbs(path) || isScript(path) {
		t.Errorf("found %s, %v: apt install chromium-headless-shell", path, err)
	}
}

func TestProbe(t *testing.T) {
	r := Probe(t.Context(), Options{Network: "/proc/self/ns/net"})
	if !strings.HasPrefix(r.Version, "HeadlessChrome/") || len(r.Lacks) > 0 {
		t.Errorf("got %+v", r)
	}
	r = Probe(t.Context(), Options{Path: "/nowhere", Network: "/proc/self/ns/net"})
	if r.Version != "" || len(r.Lacks) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestReadMessage(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	in := bufio.NewReaderSize(strings.NewReader("{}\x00"+long+"\x00\x00{\"id\":7,"+long+"\x00{}\x00rest"), 4096)
	for _, c := range []struct {
		want  string
		whole bool
	}{{"{}", true}, {long, true}, {"", true}, {`{"id":7,` + long[:248], false}, {"{}", true}} {
		got, whole, err := readMessage(in, len(long))
		if err != nil || whole != c.whole || string(got) != c.want {
			t.Errorf("got %.20q (%d), %v, %v, want %.20q (%d)", got, len(got), whole, err, c.want, len(c.want))
		}
	}
	if _, _, err := readMessage(in, 100); err == nil {
		t.Error("a message without an end is read")
	}
}

// FuzzDeliver reads messages of a browser that was taken over.
func FuzzDeliver(f *testing.F) {
	for _, seed := range []string{`{"id":1,"result":{}}`, `{"id":1,"error":{"code":1,"message":"x"}}`, `{"method":"a","sessionId":"s","params":{}}`, `{"id":9}`, "{}", "x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		c := &conn{calls: map[int64]*call{1: {method: "m", done: make(chan struct{})}}, handlers: map[string]func(Event){"s": func(Event) {}}}
		if ok := c.deliver(message); ok && !json.Valid(message) {
			t.Error("no JSON is delivered")
		}
		c.tooLarge(message)
		got, _, err := readMessage(bufio.NewReaderSize(bytes.NewReader(append(message, 0)), 16), 64)
		if err != nil || len(got) > 256 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// BenchmarkStart starts browsers until they answer, and ends them.
func BenchmarkStart(b *testing.B) {
	var all []time.Duration
	for b.Loop() {
		since := time.Now()
		started, err := Start(b.Context(), Options{Network: "/proc/self/ns/net"})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(since))
		_ = started.Close()
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms/start")
}
