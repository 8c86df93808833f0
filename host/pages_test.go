package host_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/usagetest"
)

// TestPagesWaitForRoom has 64 guests request the largest pages at once, and none has memory for one. It runs in a separate process.
func TestPagesWaitForRoom(t *testing.T) {
	from := os.Getenv("STILE_TEST_PAGES")
	if from == "" {
		t.Parallel()
		for _, from := range []string{"list", "grep", "grep with context"} {
			if kib, out, err := usagetest.Grown(t, "TestPagesWaitForRoom", "STILE_TEST_PAGES="+from); err != nil || kib > 512<<10 {
				t.Errorf("%s: it grew by %d KiB: %v\n%s", from, kib, err, out)
			}
		}
		return
	}
	const (
		name  = `(i32.const 1032) (i32.const 3)`
		from0 = `(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256)` // no cursor, and where the answer goes
	)
	open := func(what string) string {
		return `(call $` + what + ` (local.get $env) ` + name + ` (i32.const 256)) (if (i32.load8_u (i32.const 256)) (then unreachable))
			(local.set $box (i32.load (i32.const 264)))`
	}
	grep := func(context int) guest {
		return guest{uses: "directory grep", data: "x", call: open("directory") + fmt.Sprintf(`(call $grep (local.get $box) (i32.const 2048) (i32.const 1)
			(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const %d) (i32.const 1000) `, context) + from0 + `) ` + returns}
	}
	ctx := t.Context()
	dir := t.TempDir()
	var g guest
	var give abi.Capability
	switch from {
	case "list":
		store, err := kv.Open(ctx, dir+"/kv.db", kv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		b := store.Bucket("b")
		n, size := 1000, 1040
		for i := range n {
			if i == n-1 {
				size = 1 << 20
			}
			if err := b.Set(ctx, fmt.Sprintf("%04d", i), strings.Repeat("v", size)); err != nil {
				t.Fatal(err)
			}
		}
		give, g = b, guest{uses: "bucket list", call: open("bucket") + `(call $list (local.get $box) (i32.const 0) (i32.const 0) (i32.const 1000) ` + from0 + `) ` + returns}
	default:
		store, err := workspace.Open(ctx, dir+"/ws.db", workspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		files := store.Workspace("w")
		deep := ""
		for range 15 {
			deep += strings.Repeat("d", 250) + "/"
		}
		if err := files.MakeDirectory(ctx, deep[:len(deep)-1]); err != nil {
			t.Fatal(err)
		}
		switch from {
		case "grep":
			if err := files.Write(ctx, deep+"f", strings.Repeat("x"+strings.Repeat("y", 1000)+"\n", 1000)); err != nil {
				t.Fatal(err)
			}
			g = grep(0)
		default:
			if err := files.Write(ctx, deep+"f", strings.Repeat("x\n", 3000)); err != nil {
				t.Fatal(err)
			}
			g = grep(20)
		}
		give = files
	}
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 60 * time.Second, Wall: 60 * time.Second, Memory: 192 << 10}})
	component := g.load(t, h)
	call := func() {
		if _, err := component.Call(ctx, "t", nil, host.Env{"box": give}); err == nil || !strings.Contains(err.Error(), "end of memory") {
			t.Errorf("got %v", err)
		}
	}
	call()
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 64 {
			ended.Go(call)
		}
		ended.Wait()
	})
}
