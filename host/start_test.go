package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// ending is what a started call gave to done.
type ending struct {
	host.Result
	err error
}

func start(t *testing.T, ctx context.Context, c *host.Component, r host.Request, ended chan<- ending) {
	t.Helper()
	if err := c.Start(ctx, r, func(r host.Result, err error) { ended <- ending{r, err} }); err != nil {
		t.Fatal(err)
	}
}

// sleeper waits for the box without a stack, and remembers nothing.
var sleeper = guest{
	uses: "open never park drop-env drop-poll drop", more: remembers(nil),
	start: `(i32.store (i32.const 512) (call $never (local.get $box)))
		(if (call $park (i32.const 512) (i32.const 1)) (then (return (call $none)))) (call $some)`,
	resume: `(call $some)`,
}

// awaited is a box that counts those who wait for it.
type awaited struct {
	box
	calls atomic.Int32
	ready abi.Pollable
}

func (c *awaited) Never(context.Context) *abi.Pollable {
	c.calls.Add(1)
	return &c.ready
}

// TestStart has calls wait that no goroutine waits for: for what their guests have started, and for a slot.
func TestStart(t *testing.T) {
	h := newHost(t, host.Options{Instances: 2, Limits: host.Limits{Wall: time.Hour}})
	c := sleeper.load(t, h)
	const calls = 200
	waiting := &awaited{}
	env := host.Env{"box": waiting}
	ended := make(chan ending, calls)
	before := runtime.NumGoroutine()
	for range calls {
		start(t, t.Context(), c, host.Request{Tool: "t", Env: env}, ended)
	}
	for waiting.calls.Load() < calls || runtime.NumGoroutine() > before+calls/10 { // workers pack the last ones
		runtime.Gosched()
	}
	waiting.ready.SetReady()
	for range calls {
		if e := <-ended; e.err != nil || string(e.Output) != `"ok"` {
			t.Fatalf("got %s, %v", e.Output, e.err)
		}
	}
}

// TestStartedCallsEnd has started calls end in other ways than with a result.
func TestStartedCallsEnd(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{Wall: time.Hour}})
	c := sleeper.load(t, h)
	env := host.Env{"box": &promised{ready: new(abi.Pollable)}}
	ended := make(chan ending, 1)
	t.Run("its caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start(t, ctx, c, host.Request{Tool: "t", Env: env}, ended)
		cancel()
		if e := <-ended; !errors.Is(e.err, context.Canceled) {
			t.Errorf("got %v", e.err)
		}
	})
	t.Run("its time is over", func(t *testing.T) {
		start(t, t.Context(), c, host.Request{Tool: "t", Env: env, Limits: host.Limits{Wall: 20 * time.Millisecond}}, ended)
		var limit *host.LimitError
		if e := <-ended; !errors.As(e.err, &limit) || limit.Limit != "wall" {
			t.Errorf("got %v", e.err)
		}
	})
	t.Run("the embedder's own function panics", func(t *testing.T) {
		observe := func(host.Operation) { panic("as it should") }
		start(t, t.Context(), c, host.Request{Tool: "t", Env: env, Observe: observe}, ended)
		if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "as it should") {
			t.Errorf("got %v", e.err)
		}
		begin := func(context.Context) error { panic("as it should") }
		start(t, t.Context(), c, host.Request{Tool: "t", Env: env, Begin: begin}, ended)
		if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "as it should") {
			t.Errorf("got %v", e.err)
		}
	})
	t.Run("it cannot begin", func(t *testing.T) {
		never := func(host.Result, error) { t.Error("done was called") }
		var unknown *host.UnknownToolError
		if err := c.Start(t.Context(), host.Request{Tool: "u"}, never); !errors.As(err, &unknown) {
			t.Errorf("got %v", err)
		}
		var limit *host.LimitError
		if err := c.Start(t.Context(), host.Request{Tool: "t", Input: make([]byte, 64<<20)}, never); !errors.As(err, &limit) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("its caller gave up before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := func(context.Context) error { t.Error("it began"); return nil }
		if r, err := c.Do(ctx, host.Request{Tool: "t", Env: env, Begin: begun}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %s, %v", r.Output, err)
		}
	})
	t.Run("the host closes", func(t *testing.T) {
		start(t, t.Context(), c, host.Request{Tool: "t", Env: env}, ended)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if e := <-ended; !errors.Is(e.err, host.ErrClosed) {
			t.Errorf("got %v", e.err)
		}
		if err := c.Start(t.Context(), host.Request{Tool: "t", Env: env}, nil); !errors.Is(err, host.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
