package host_test

import (
	"runtime"
	"testing"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/host"
)

// TestKeptTextsAreShort has a guest pass texts of 16 MiB, parts of which its caller keeps: in the record of denials, in a log and in a
// failure. They keep no memory beyond their own.
func TestKeptTextsAreShort(t *testing.T) {
	h := newHost(t, host.Options{})
	const large = `(drop (memory.grow (i32.const 600))) (memory.fill (i32.const 131072) (i32.const 97) (i32.const 16000000)) `
	var lines []string
	env := host.Env{"box": &box{}, "con": console.To(func(_ console.Level, line string) { lines = append(lines, line) })}
	for _, c := range []struct {
		name  string
		guest guest
		times int
	}{
		{"denials", guest{uses: "open deny", call: large + `(local.set $i (i32.const 20))
			(loop $l
				(i32.store8 (i32.const 131072) (i32.add (i32.const 97) (local.get $i)))
				(call $deny (local.get $box) (i32.const 131072) (i32.const 16000000) (i32.const 256))
				(br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) ` + returns}, 1},
		{"stacks", guest{call: large + `(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 131072) (i32.const 16000000)) (i32.const 128)`}, 20},
		{"lines", guest{uses: "log-get log", data: "con", call: large + `(call $log-get (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256))
			(call $log (i32.load (i32.const 264)) (i32.const 1) (i32.const 131072) (i32.const 16000000)) ` + returns}, 20},
	} {
		component := c.guest.load(t, h)
		var kept []any
		before := heap()
		for range c.times {
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env})
			kept = append(kept, r, err)
		}
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("%s: what is kept takes %d bytes", c.name, grown)
		}
		runtime.KeepAlive(kept)
	}
	if len(lines) < 20 {
		t.Errorf("%d lines were logged", len(lines))
	}
}

// heap returns the bytes of live values.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
