package host_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
)

// TestHostileSteps has guests misuse the way in which they give up their stack.
func TestHostileSteps(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 100 * time.Millisecond, Wall: 2 * time.Second, Pending: 4}})
	// announce passes handle $i to park, as many times as it says.
	announce := func(times string) string {
		return `(i32.store (i32.const 512) (local.get $i)) (i32.store (i32.const 516) (local.get $i)) (i32.store (i32.const 520) (local.get $i))
			(i32.store (i32.const 524) (local.get $i)) (i32.store (i32.const 528) (local.get $i))
			(drop (call $park (i32.const 512) (i32.const ` + times + `))) `
	}
	never := `(local.set $i (call $never (local.get $box))) `
	for _, c := range []struct {
		name  string
		guest guest
		want  string
		like  any
	}{
		{"does not wait", guest{uses: "open", start: `(call $some)`}, "", nil},
		{"waits for nothing", guest{start: `(call $none)`}, "nothing that it announced", new(*host.TrapError)},
		{"announces nothing", guest{uses: "park", start: announce("0") + `(call $none)`}, "poll of an empty list", new(*host.TrapError)},
		{"announces a forged handle", guest{uses: "park", start: `(local.set $i (i32.const 77)) ` + announce("1") + `(call $none)`}, "handle index", nil},
		{"announces an env", guest{uses: "park", start: `(local.set $i (local.get $env)) ` + announce("1") + `(call $none)`}, "handle index", nil},
		{"announces more than it may", guest{uses: "open never park", start: never + announce("5") + `(call $none)`}, "limit reached: pending (4)", new(*host.LimitError)},
		{"waits for ever", guest{uses: "open never park", start: never + announce("1") + `(call $none)`}, "limit reached: wall", new(*host.LimitError)},
		{
			"drops what it announced",
			guest{uses: "open never park drop-poll", start: never + announce("1") + `(call $drop-poll (local.get $i)) (call $none)`},
			"limit reached: wall", new(*host.LimitError),
		},
		{"keeps its stack", guest{uses: "open never park block", start: never + announce("1") + `(call $block (local.get $i)) (call $none)`}, "limit reached: wall", new(*host.LimitError)},
		{"announces, and ends", guest{uses: "open never park", start: never + announce("1") + `(call $some)`}, "", nil},
		{"loops in its first step", guest{start: `(loop $l (br $l)) unreachable`}, "limit reached: cpu (100ms)", new(*host.LimitError)},
		{"traps in its first step", guest{start: `unreachable`}, "unreachable", new(*host.TrapError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			component := c.guest.load(t, h)
			if !component.Stepwise() {
				t.Fatal("the host does not see its steps")
			}
			out, err := component.Call(t.Context(), "t", nil, host.Env{"box": &box{}})
			switch {
			case c.want == "":
				if err != nil || string(out) != `"ok"` {
					t.Errorf("got %s, %v", out, err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("got %s, %v", out, err)
			case c.like != nil && !errors.As(err, reflect.New(reflect.TypeOf(c.like).Elem()).Interface()):
				t.Errorf("got a %T", err)
			}
		})
	}
}

// TestParkInOnePiece has a guest without steps announce what it waits for: it must wait itself.
func TestParkInOnePiece(t *testing.T) {
	call := `(i32.store (i32.const 512) (call $never (local.get $box)))
		(if (call $park (i32.const 512) (i32.const 1)) (then unreachable)) ` + returns
	for _, c := range []struct {
		name  string
		whole bool
		start string
	}{{"without steps", false, ""}, {"with steps that the host does not use", true, `unreachable`}} {
		t.Run(c.name, func(t *testing.T) {
			component := guest{uses: "open never park", call: call, start: c.start}.load(t, newHost(t, host.Options{WholeCalls: c.whole}))
			if out, err := component.Call(t.Context(), "t", nil, host.Env{"box": &box{}}); err != nil || string(out) != `"ok"` {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
}

// TestHostileMemory has guests answer wrongly when the host takes their instance away or gives it back. The host has one slot, which
// another call wants.
func TestHostileMemory(t *testing.T) {
	start := `(i32.store (i32.const 512) (call $never (local.get $box))) (drop (call $park (i32.const 512) (i32.const 1))) (call $none)`
	wrong := "returns a text of a wrong length"
	for _, c := range []struct {
		name     string
		replaced map[string]string
		want     string // of the waiting call's error; the call is cancelled if it gave its instance back
	}{
		{"honest", nil, ""},
		{"a size beyond its limit", map[string]string{"size": `(i32.const 0x7fff0000)`}, "returns a wrong size"},
		{"a size of no whole pages", map[string]string{"size": `(i32.const 4097)`}, "returns a wrong size"},
		{"a size of nothing", map[string]string{"size": `(i32.const 0)`}, ""},
		{"changes of no whole words", map[string]string{"changes": zeros(15)}, wrong},
		{"changes that are too many", map[string]string{"changes": zeros(60000)}, wrong},
		{"changes of nothing", map[string]string{"changes": zeros(0)}, ""},
		{"a change of half a page", map[string]string{"changes": zeros(160)}, ""},
		{"a change outside of its memory", map[string]string{"changes": `(i32.store (i32.const 4096) (i32.const 0x7f7f7000)) ` + zeros(312)}, "returns a wrong page"},
		{"a change of no whole page", map[string]string{"changes": `(i32.store (i32.const 4096) (i32.const 256)) ` + zeros(312)}, "returns a wrong page"},
		{"text that is no bytes", map[string]string{"changes": `(memory.fill (i32.const 4104) (i32.const 0xc3) (i32.const 304)) ` + zeros(312)}, "utf-8"},
		{"blocks that are too short", map[string]string{"peek": zeros(296)}, wrong},
		{"blocks that are too long", map[string]string{"peek": zeros(100000)}, wrong},
		{"a trap", map[string]string{"size": `unreachable`}, "unreachable"},
		{"a loop", map[string]string{"changes": `(loop $l (br $l)) unreachable`}, "take too long"},
		{"a loop, in a fresh instance too", map[string]string{"peek": `(loop $l (br $l)) unreachable`}, "take too long"},
		{"a call of the host", map[string]string{"size": `(if (i32.load (i32.const 512)) (then (call $names (i32.const 1) (i32.const 700)))) (i32.const 65536)`}, "calls the host"},
		{"a drop of its handles", map[string]string{"size": `(if (i32.load (i32.const 512)) (then (call $drop-env (i32.const 1)))) (i32.const 65536)`}, "not open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, host.Options{Instances: 1, Limits: host.Limits{CPU: time.Minute}})
			component := guest{uses: "open never park drop-env drop-poll drop names", start: start, more: remembers(c.replaced)}.load(t, h)
			other := guest{}.load(t, h)
			if _, err := component.Tools(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Tools(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				_, err := component.Do(ctx, host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Begin: func(context.Context) error { close(began); return nil }})
				ended <- err
			}()
			<-began
			if out, err := other.Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"ok"` {
				t.Errorf("the other call: %s, %v", out, err)
			}
			if c.want == "" {
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			} else if err := <-ended; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// packs makes a call that waits without an instance, and returns what ends it. The host has one slot.
func packs(t *testing.T, h *host.Host, c *host.Component, env host.Env) (ended <-chan error) {
	t.Helper()
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := guest{}.load(t, h)
	if _, err := other.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	began, over := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), host.Request{Tool: "t", Env: env, Begin: func(context.Context) error { close(began); return nil }})
		over <- err
	}()
	<-began
	if out, err := other.Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"ok"` {
		t.Fatalf("the other call: %s, %v", out, err)
	}
	return over
}

// TestNoAdoptEnv has a component keep no envs. Places of its table that were free are filled with envs, so the host refuses it.
func TestNoAdoptEnv(t *testing.T) {
	h := newHost(t, host.Options{Instances: 1})
	whole := componentize(t, guest{
		uses: "open never park drop-env drop-poll drop", more: remembers(nil),
		start: `(i32.store (i32.const 512) (call $never (local.get $box))) (call $drop-env (local.get $env))
			(drop (call $park (i32.const 512) (i32.const 1))) (call $none)`,
	}.core())
	refused := 0
	for _, name := range []string{"adopt0", "adopt1", "adopt2"} { // the others belong to resources that it may keep
		c, err := h.Load(t.Context(), bytes.ReplaceAll(whole, []byte(name), []byte("b"+name[1:])))
		if err != nil {
			if !strings.Contains(err.Error(), "no function takes an own handle of an env") {
				t.Error(err)
			}
			refused++
			continue
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	if refused != 1 {
		t.Errorf("%d components are refused", refused)
	}
}

// sized is a box whose parts say how large they are.
type sized struct {
	promised
	text string
}

func (b *sized) Size() int { return len(b.text) }
func (b *sized) Split(context.Context) *sized {
	return &sized{promised: b.promised, text: strings.Repeat("x", 256)}
}

// closing is a box that is large and has to be closed.
type closing struct{ sized }

func (c *closing) Close() error                       { return nil }
func (c *closing) Split(ctx context.Context) *closing { return &closing{*c.sized.Split(ctx)} }

// TestPackedHandlesCount has calls wait without an instance while they hold as many handles as they may: envs with as many names as
// they may have together, or boxes that are large. Boxes in envs are closed with the call, even if their envs are dropped before.
func TestPackedHandlesCount(t *testing.T) {
	waits := `(i32.store (i32.const 512) (call $never (local.get $box))) (drop (call $park (i32.const 512) (i32.const 1))) (call $none)`
	again := func(n string) string {
		return `(br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ` + n + `))))`
	}
	boxesInEnvs := `
			(loop $l
				(i32.store16 (i32.const 512) (i32.add (i32.const 0x3030) (i32.add (i32.rem_u (local.get $i) (i32.const 64)) (i32.shl (i32.div_u (local.get $i) (i32.const 64)) (i32.const 8)))))
				(call $give (local.get $env) (i32.const 512) (i32.const 2) (call $split (local.get $box)) (i32.const 256))
				(if (i32.load8_u (i32.const 256)) (then unreachable))
				` + again("900")
	for name, start := range map[string]string{
		// The guest makes envs of 15 names. The list of the names is at 8192.
		"envs": `
			(loop $l
				(i32.store (i32.add (i32.const 8192) (i32.mul (local.get $i) (i32.const 8))) (i32.add (i32.const 2048) (local.get $i)))
				(i32.store (i32.add (i32.const 8196) (i32.mul (local.get $i) (i32.const 8))) (i32.const 1))
				` + again("15") + `
			(local.set $i (i32.const 0))
			(loop $l
				(call $subset (local.get $env) (i32.const 8192) (i32.const 15) (i32.const 512))
				(if (i32.load8_u (i32.const 512)) (then unreachable))
				` + again("130"),
		"boxes":                       `(loop $l (drop (call $split (local.get $box))) ` + again("990"),
		"boxes in envs":               boxesInEnvs,
		"boxes to be closed, in envs": boxesInEnvs,
		"boxes to be closed, in dropped envs": `
			(loop $l
				(call $subset (local.get $env) (i32.const 8192) (i32.const 0) (i32.const 512))
				(call $give (i32.load (i32.const 516)) (i32.const 2048) (i32.const 1) (call $split (local.get $box)) (i32.const 256))
				(if (i32.load8_u (i32.const 256)) (then unreachable))
				(call $drop-env (i32.load (i32.const 516)))
				` + again("900"),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, host.Options{Instances: 1, Limits: host.Limits{Wall: time.Hour}})
			c := guest{
				uses: "subset open never park split give drop-env drop-poll drop names", data: "abcdefghijklmno", more: remembers(nil),
				start: start + waits,
			}.load(t, h)
			ready := new(abi.Pollable)
			env := host.Env{"box": &sized{promised: promised{ready: ready}}}
			if strings.Contains(name, "closed") {
				env["box"] = &closing{sized{promised: promised{ready: ready}}}
			}
			for _, name := range "abcdefghijklmno" {
				env[string(name)] = &box{}
			}
			one := packs(t, h, c, env)
			heap := func() int64 {
				var m runtime.MemStats
				for range 2 { // the first leaves what is in pools
					runtime.GC()
				}
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			used, count := heap(), h.Packed()
			var others []<-chan error
			for range 8 {
				others = append(others, packs(t, h, c, env))
			}
			used, count = heap()-used, h.Packed()-count
			if used < 1<<20 || used > 2*count {
				t.Errorf("8 packed calls take %d bytes and count as %d", used, count)
			}
			ready.SetReady()
			for _, ended := range append(others, one) {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if used := h.Packed(); used > 1<<20 { // the base
				t.Errorf("%d bytes count after the calls", used)
			}
		})
	}
}

// TestOthersPackForLong has guests answer for ever when the host takes their instances away. Other calls that wait then keep theirs, and
// continue as soon as they can.
func TestOthersPackForLong(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Minute, Memory: 4 << 30}, MaxMemory: 4 << 30}) // so packing may take 8 s
	waits := func(nanoseconds, changes string) *host.Component {
		return guest{
			uses: "clock after park drop-env", data: "clock", more: remembers(map[string]string{"changes": changes}),
			start: `(call $clock (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
				(i32.store (i32.const 512) (call $after (i32.load (i32.const 264)) (i64.const ` + nanoseconds + `)))
				(if (call $park (i32.const 512) (i32.const 1)) (then (return (call $none)))) (call $some)`,
		}.load(t, h)
	}
	endless, waiting := waits("3600000000000", `(loop $l (br $l)) unreachable`), waits("100000000", `unreachable`)
	for _, c := range []*host.Component{endless, waiting} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	env := host.Env{"clock": clock.System()}
	var others sync.WaitGroup
	var over atomic.Int32
	for range 2 * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			_, _ = endless.Call(ctx, "t", nil, env)
			over.Add(1)
		})
	}
	var trap *host.TrapError
	for range 5 { // the first may come before the others, and is then asked for its memory
		if out, err := waiting.Call(ctx, "t", nil, env); (err != nil || string(out) != `"ok"`) && !errors.As(err, &trap) {
			t.Errorf("got %s, %v", out, err)
		}
	}
	if over.Load() > 0 {
		t.Error("a call that could continue has waited for others to be packed")
	}
	cancel()
	others.Wait()
}

// TestShortWaitsTakeTurns has a call wait for a millisecond again and again while others want its slot. No wait is long enough by itself.
func TestShortWaitsTakeTurns(t *testing.T) {
	h := newHost(t, host.Options{Instances: 1, Limits: host.Limits{CPU: time.Hour, Wall: time.Hour}})
	h.WaitWith(time.Hour)
	// The indices of clock and timer are always the same, and its memory is not kept.
	const waits = `(i32.store (i32.const 512) (call $after (i32.const 2) (i64.const 1000000)))
		(br_if $l (i32.eqz (call $park (i32.const 512) (i32.const 1))))) (call $none)`
	endless := guest{
		uses: "clock after park drop-env drop-poll", data: "clock", more: remembers(nil),
		start: `(call $clock (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
			(if (i32.ne (i32.load (i32.const 264)) (i32.const 2)) (then unreachable))
			(loop $l ` + waits,
		resume: `(loop $l (call $drop-poll (i32.const 3)) ` + waits,
	}.load(t, h)
	other := guest{}.load(t, h)
	for _, c := range []*host.Component{endless, other} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := endless.Do(ctx, host.Request{Tool: "t", Env: host.Env{"clock": clock.System()}, Begin: func(context.Context) error { close(began); return nil }})
		ended <- err
	}()
	<-began
	for range 3 {
		if out, err := other.Call(ctx, "t", nil, nil); err != nil || string(out) != `"ok"` {
			t.Fatalf("got %s, %v", out, err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that has waited all the time: %v", err)
	}
}

// TestDroppedTimersEnd has a guest drop more pollables of a clock than it may have timers. Nothing remains of them.
func TestDroppedTimersEnd(t *testing.T) {
	c := guest{
		uses: "clock after drop-poll", data: "clock",
		call: `(call $clock (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
			(loop $l
				(call $drop-poll (call $after (i32.load (i32.const 264)) (i64.const 3600000000000)))
				(br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3000)))) ` + returns,
	}.load(t, newHost(t, host.Options{}))
	if out, err := c.Call(t.Context(), "t", nil, host.Env{"clock": clock.System()}); err != nil || string(out) != `"ok"` {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestSameComponentPacksForLong has one call of a component answer for ever when the host first reads its memory. Another call of that
// component continues as soon as it can.
func TestSameComponentPacksForLong(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Hour, Wall: time.Hour, Memory: 4 << 30}, MaxMemory: 4 << 30}) // so packing may take 8 s
	// It waits for an hour, or with any input for 200 ms, which is longer than it keeps its instance.
	c := guest{
		uses: "clock after park drop-env", data: "clock", more: remembers(map[string]string{"peek": `(loop $l (br $l)) unreachable`}),
		start: `(call $clock (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
			(i32.store (i32.const 512) (call $after (i32.load (i32.const 264))
				(select (i64.const 3600000000000) (i64.const 200000000) (i32.eq (local.get 3) (i32.const 2)))))
			(if (call $park (i32.const 512) (i32.const 1)) (then (return (call $none)))) (call $some)`,
	}.load(t, h)
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := host.Env{"clock": clock.System()}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, "t", nil, env)
		first <- err
	}()
	for !h.Preparing() {
		runtime.Gosched()
	}
	if out, err := c.Call(t.Context(), "t", []byte(`{"short":true}`), env); err != nil || string(out) != `"ok"` {
		t.Errorf("got %s, %v", out, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
