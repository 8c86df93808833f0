package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/usagetest"
)

// texts returns a large text from a function.
type texts struct {
	box
	get func(ctx context.Context) (string, error)
}

func (x *texts) Get(ctx context.Context) (string, error) { return x.get(ctx) }

// TestTextsWaitForRoom has 26 guests request texts of 16 MiB at once, and none has memory for one. It runs in a separate process. The
// host keeps only the texts that it converts, not the waiting ones.
func TestTextsWaitForRoom(t *testing.T) {
	from := os.Getenv("STILE_TEST_ROOM")
	if from == "" {
		t.Parallel()
		for _, from := range []string{"blob", "lines"} {
			if kib, out, err := usagetest.Grown(t, "TestTextsWaitForRoom", "STILE_TEST_ROOM="+from); err != nil || kib > 512<<10 {
				t.Errorf("%s: it grew by %d KiB: %v\n%s", from, kib, err, out)
			}
		}
		return
	}
	large := strings.Repeat("x", 16<<20)
	held := blob.New("text/plain", []byte(large))
	store, err := workspace.Open(t.Context(), t.TempDir()+"/ws.db", workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	files := store.Workspace("w")
	if err := files.Write(t.Context(), "f", large); err != nil {
		t.Fatal(err)
	}
	give := &texts{get: map[string]func(context.Context) (string, error){
		"blob":  func(ctx context.Context) (string, error) { return held.Text(ctx, 16<<20) },
		"file":  func(ctx context.Context) (string, error) { return files.Read(ctx, "f") },
		"lines": func(ctx context.Context) (string, error) { return files.ReadLines(ctx, "f", 1, nil) },
	}[from]}
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 20 * time.Second, Memory: 8 << 20}})
	asking := guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) ` + returns}.load(t, h)
	if _, err := asking.Call(t.Context(), "t", nil, host.Env{"box": &texts{get: func(context.Context) (string, error) { return "", abi.ErrExpired }}}); err != nil {
		t.Fatal(err)
	}
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 26 {
			ended.Go(func() {
				if _, err := asking.Call(t.Context(), "t", nil, host.Env{"box": give}); err == nil || !strings.Contains(err.Error(), "end of memory") {
					t.Errorf("got %v", err)
				}
			})
		}
		ended.Wait()
	})
}

// TestResultsCountUntilValidated has guests return 16 MB each while nothing can be validated. Once the results have all room for
// conversions, another guest cannot return a large result either, until one of them is validated.
func TestResultsCountUntilValidated(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{Output: 17 << 20}})
	large := guest{call: `(drop (memory.grow (i32.const 256)))
		(memory.fill (i32.const 65536) (i32.const 97) (i32.const 16000000))
		(i32.store8 (i32.const 65536) (i32.const 34)) (i32.store8 (i32.const 16065535) (i32.const 34))
		(call $ok (i32.const 65536) (i32.const 16000000))`}
	plain := large.load(t, h)
	large.data = `{\22minLength\22:1}` // checks of common keywords need no room
	large.describe = `(i32.store (i32.const 1136) (i32.const 1)) (i32.store (i32.const 1140) (i32.const 2048)) (i32.store (i32.const 1144) (i32.const 15)) (i32.const 1104)`
	checked := large.load(t, h)
	release := h.Decoding(t)
	var waiting sync.WaitGroup
	for range 6 {
		waiting.Go(func() {
			if output, err := checked.Call(t.Context(), "t", nil, nil); err != nil || len(output) != 16_000_000 {
				t.Errorf("got %d bytes, %v", len(output), err)
			}
		})
	}
	for began := time.Now(); ; {
		_, err := plain.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{Output: 17 << 20, Wall: 2 * time.Second}})
		if limit, ok := errors.AsType[*host.LimitError](err); ok && limit.Limit == "wall" {
			break
		}
		if err != nil || time.Since(began) > 2*time.Minute {
			t.Errorf("a result found room: %v", err)
			break
		}
	}
	release()
	waiting.Wait()
}

// TestSlowReceivers has 14 guests receive texts of 16 MiB at once. Each loops in the function that the engine calls to allocate memory
// for the text, and the engine holds the text meanwhile. It runs in a separate process. The texts together take no more than conversions
// may take, and a guest that takes too long ends.
func TestSlowReceivers(t *testing.T) {
	if os.Getenv("STILE_TEST_RECEIVE") == "" {
		t.Parallel()
		if kib, out, err := usagetest.Grown(t, "TestSlowReceivers", "STILE_TEST_RECEIVE=1"); err != nil || kib > 256<<10 {
			t.Errorf("it grew by %d KiB: %v\n%s", kib, err, out)
		} else {
			t.Logf("it grew by %d KiB", kib)
		}
		return
	}
	text := strings.Repeat("x", 16<<20)
	give := &texts{get: func(context.Context) (string, error) { return text, nil }}
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 500 * time.Millisecond, Wall: 10 * time.Minute}})
	loops := guest{
		realloc: `(if (i32.gt_u (local.get 3) (i32.const 1000000)) (then (loop $l (br $l))))`,
		uses:    "open get", call: `(call $get (local.get $box) (i32.const 256)) ` + returns,
	}.load(t, h)
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 14 {
			ended.Go(func() {
				_, err := loops.Call(t.Context(), "t", nil, host.Env{"box": give})
				if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "cpu" || limit.Value != "200ms" {
					t.Errorf("got %v", err)
				}
			})
		}
		ended.Wait()
	})
}

// TestReceivedIsReturned has a guest work for longer than it may take to receive a text, after it has received one: all of it, only an
// error in its place, or a small one. The text's memory is returned at once, so that other guests can use it. A guest that
// has the text written over its own address hides that it has received it, and only ends itself.
func TestReceivedIsReturned(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 16<<20)
	whole := func(context.Context) (string, error) { return text, nil }
	h := newHost(t, host.Options{})
	const works = `(local.set $i (i32.const 800000000)) (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) `
	for _, c := range []struct {
		name    string
		get     func(context.Context) (string, error)
		realloc string
		want    string // "" is success
	}{
		{"a text", whole, ``, ""},
		{"small texts", func(context.Context) (string, error) { return text[:7<<10], nil }, ``, ""},
		{"less than there was room for", func(ctx context.Context) (string, error) {
			if err := abi.Room(ctx, 16<<20); err != nil {
				return "", err
			}
			return "", abi.ErrExpired
		}, ``, ""},
		{"a text over its own address", whole, `(if (i32.gt_u (local.get 3) (i32.const 1000000)) (then (drop (memory.grow (i32.const 300))) (return (i32.const 256))))`, "limit reached: cpu (200ms)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			component := guest{uses: "open get", realloc: c.realloc, call: `(call $get (local.get $box) (i32.const 256)) ` + works + returns}.load(t, h)
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &texts{get: c.get}}, Limits: host.Limits{CPU: time.Minute}})
			if c.want != "" {
				if !strings.HasPrefix(fmt.Sprint(err), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Errorf("got %v", err)
			}
			if r.Usage.CPU < 300*time.Millisecond {
				t.Errorf("it worked for %s only", r.Usage.CPU)
			}
		})
	}
}
