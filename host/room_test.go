package host_test

import (
	"context"
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

// TestTextsWaitForRoom has 40 guests request texts of 16 MiB at once, and none has memory for one. It runs in a separate process. The
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
		for range 40 {
			ended.Go(func() {
				if _, err := asking.Call(t.Context(), "t", nil, host.Env{"box": give}); err == nil || !strings.Contains(err.Error(), "end of memory") {
					t.Errorf("got %v", err)
				}
			})
		}
		ended.Wait()
	})
}
