package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
)

// working is a box whose function `panic` works or waits, until its context ends or for a fixed time.
type working struct {
	box
	wait  bool
	while time.Duration
}

func (w *working) Panic(ctx context.Context) {
	if w.wait {
		<-ctx.Done()
		return
	}
	for began := time.Now(); ctx.Err() == nil && (w.while == 0 || time.Since(began) < w.while); {
	}
}

// TestOperationsEndWithTheProcessorTime ends operations that use processor time, and not those that only wait.
func TestOperationsEndWithTheProcessorTime(t *testing.T) {
	h := newHost(t, host.Options{})
	const once = `(call $panic (local.get $box)) `
	for _, c := range []struct {
		name  string
		box   *working
		call  string
		wall  time.Duration
		limit string
	}{
		{"one that works for ever", &working{}, once + returns, time.Minute, "cpu"},
		{"many short ones", &working{while: time.Millisecond}, `(loop $l ` + once + `(br $l)) unreachable`, time.Minute, "cpu"},
		{"one that waits", &working{wait: true}, once + returns, 500 * time.Millisecond, "wall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const cpu = 200 * time.Millisecond
			component := guest{uses: "open panic", call: c.call}.load(t, h)
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": c.box}, Limits: host.Limits{CPU: cpu, Wall: c.wall}})
			var limit *host.LimitError
			if !errors.As(err, &limit) || limit.Limit != c.limit {
				t.Fatalf("got %v, want limit %s", err, c.limit)
			}
			if worked := c.limit == "cpu"; worked != (r.Usage.CPU >= cpu) || r.Usage.CPU > 100*cpu { // a busy machine detects the end late; without a limit it would be a minute
				t.Errorf("%v of processor time; the limit is %v", r.Usage.CPU, cpu)
			}
		})
	}
}
