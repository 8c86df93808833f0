package host_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
)

// writing are the functions to write with.
const (
	writingLowered = `(core func $out (canon lower (func $stdout "get-stdout")))
		(core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")` + options + `))
		(core func $exit (canon lower (func $exit "exit")))
		(core instance $w (export "out" (func $out)) (export "write" (func $write)) (export "exit" (func $exit)))`
	writingImports = `(import "w" "out" (func $out (result i32))) (import "w" "write" (func $write4 (param i32 i32 i32 i32))) (import "w" "exit" (func $exit (param i32)))
		(func $write (param i32 i32) (call $write4 (call $out) (local.get 0) (local.get 1) (i32.const 64)))`
)

// writes has writes of texts.
func writes(all ...string) string {
	var b strings.Builder
	for _, text := range all {
		for i := range len(text) {
			fmt.Fprintf(&b, "(i32.store8 (i32.const %d) (i32.const %d))", 3000+i, text[i])
		}
		fmt.Fprintf(&b, "(call $write (i32.const 3000) (i32.const %d))\n", len(text))
	}
	return b.String()
}

// onlyT are the definitions of the components here. With them, a call does not ask the component first.
var onlyT = []abi.Definition{{Name: "t", InputSchema: "{}"}}

// again replays the last recording, which must be the same, and returns it.
func again(t *testing.T, c *host.Component, records *kept) *host.Recording {
	t.Helper()
	r := records.last(t)
	compared, err := c.Replay(t.Context(), r, host.ReplayOptions{Approved: onlyT})
	if err != nil || !compared.Same {
		t.Errorf("the replay differs: %v, %+v", err, compared)
	}
	return r
}

// TestWorldText has guests write text and fail. What they wrote is in the failure and in the log.
func TestWorldText(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Redact: func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "secret", "[s]")) }})
	long := `(local $n i32) (loop $l (call $write (i32.const 60000) (i32.const 30000)) (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100)))) unreachable`
	for _, c := range []struct {
		name, start, late string
		error             string // its text, or with "..." its end
		lines             []string
	}{
		{"nothing", "", "unreachable", "guest trapped: wasm `unreachable` instruction executed", nil},
		{"a panic", "", writes("panic: ", "boom\n", "\n", "goroutine 1") + "unreachable", "guest trapped: wasm `unreachable` instruction executed; it wrote:\npanic: boom\n\ngoroutine 1", []string{"panic: boom", "", "goroutine 1"}},
		{"while it starts", writes("hello\n"), "unreachable", "...executed; it wrote: hello", []string{"hello"}},
		{"traps while it starts", writes("bad") + "unreachable", "", "...executed; it wrote: bad", []string{"bad"}},
		{"escapes", "", writes("\x1b[2J\u202e\xff\r\n") + "unreachable", `...it wrote: \x1b[2J\u202e\xff`, []string{`\x1b[2J\u202e` + "\uFFFD"}},
		{"a secret", "", writes("secret\n") + "unreachable", "...it wrote: secret", []string{"secret"}},
		{"exits", "", writes("usage\n") + "(call $exit (i32.const 1))", "tool failed: Exit: the guest called wasi:cli/exit with an error; it wrote: usage", []string{"usage"}},
		{"succeeds", "", writes("one\ntwo\nthr", "ee"), "", []string{"one\ntwo", "three"}},
		{"characters in two writes", "", writes("\xe2\x82", "\xac\n"), "", []string{"€"}},
		{"a long line", "", writes(strings.Repeat("é", 2000), strings.Repeat("é", 100)), "", []string{strings.Repeat("é", 2048), strings.Repeat("é", 52)}},
		{"more than is kept", "", long, "..." + strings.Repeat(`\x00`, 100), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			component, err := h.Load(t.Context(), lateComponent(t, wasiImports, writingLowered, writingImports, c.start, c.late))
			if err != nil {
				t.Fatal(err)
			}
			for _, logs := range []bool{false, true} {
				env := host.Env{}
				var lines []string
				if logs {
					env["console"] = console.To(func(_ console.Level, m string) { lines = append(lines, m) })
				}
				_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, Approved: onlyT})
				got := ""
				if err != nil {
					got = err.Error()
				}
				end, isEnd := strings.CutPrefix(c.error, "...")
				if isEnd && !strings.HasSuffix(got, end) || !isEnd && got != c.error {
					t.Errorf("ended with %q, want %q", got, c.error)
				}
				if len(got) > 17<<10 {
					t.Errorf("a text of %d bytes", len(got))
				}
				if logs && c.lines != nil && !slices.Equal(lines, c.lines) {
					t.Errorf("logged %q, want %q", lines, c.lines)
				}
				recorded := again(t, component, records)
				if strings.Contains(fmt.Sprintf("%s %+v", recorded.Operations, recorded.Outcome), "secret") {
					t.Error("a secret is recorded")
				}
			}
		})
	}
}

const (
	worldLowered = `(core func $random (canon lower (func $random "get-random-u64")))
		(core func $now (canon lower (func $clock "now")))
		(core func $sleep (canon lower (func $clock "subscribe-duration")))
		(core func $block (canon lower (func $poll "[method]pollable.block")))
		(core func $poll (canon lower (func $poll "poll")` + options + `))
		(core func $seed (canon lower (func $seed "insecure-seed")` + options + `))
		(core instance $w (export "random" (func $random)) (export "now" (func $now)) (export "sleep" (func $sleep)) (export "block" (func $block)) (export "poll" (func $poll))
			(export "seed" (func $seed)))`
	worldImports = `(import "w" "random" (func $random (result i64))) (import "w" "now" (func $now (result i64))) (import "w" "sleep" (func $sleep (param i64) (result i32)))
		(import "w" "block" (func $block (param i32))) (import "w" "poll" (func $poll (param i32 i32 i32))) (import "w" "seed" (func $seed (param i32)))
		(func $show (param $at i32) (param $v i64) (local $i i32)
			(loop $l
				(i32.store8 (i32.add (local.get $at) (local.get $i)) (i32.wrap_i64 (i64.add (i64.const 97) (i64.and (i64.shr_u (local.get $v) (i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 4))) (i64.const 15)))))
				(br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2)))))`
)

// shown are two characters for a number, at the place of the tool's result.
func shown(number string) string { return "(call $show (i32.const 1025) " + number + ")" }

func loadWorld(t *testing.T, h *host.Host, start, late string) *host.Component {
	t.Helper()
	c, err := h.Load(t.Context(), lateComponent(t, wasiImports, worldLowered, worldImports, start, late))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWorldRandom draws random numbers while the guest starts and later, with and without a binding.
func TestWorldRandom(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Wants: func(string) abi.Wants { return remedy("bind it") }})
	outputs := func(c *host.Component, env func(n int) host.Env) (all []string) {
		for n := range 8 {
			r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: env(n), Approved: onlyT})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(r.Output))
			again(t, c, records)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	bound := func(int) host.Env { return host.Env{"dice": random.System()} }
	none := func(int) host.Env { return nil }
	late, early := loadWorld(t, h, "", shown("(call $random)")), loadWorld(t, h, "(i64.store (i32.const 512) (call $random))", shown("(i64.load (i32.const 512))"))
	if got := outputs(late, bound); len(got) < 2 {
		t.Errorf("every call draws %q", got)
	}
	if got := outputs(early, bound); len(got) < 2 {
		t.Errorf("every call starts with %q: its seed is frozen", got)
	}
	if got := outputs(early, none); len(got) != 1 {
		t.Errorf("calls without a binding start with %q", got)
	}
	if got := outputs(loadWorld(t, h, "", "(call $seed (i32.const 512))"+shown("(i64.load (i32.const 520))")), bound); len(got) != 1 {
		t.Errorf("the insecure seeds of calls are %q", got)
	}
	_, err := late.Call(t.Context(), "t", nil, host.Env{"console": console.To(func(console.Level, string) {})})
	want := abi.Denial{Binding: "random", Operation: "wasi:random/random@0.2.0#get-random-u64", Reason: "WASI gets it from a binding of random, and the call has none", Remedy: "bind it"}
	denied, _ := errors.AsType[*host.DeniedError](err)
	if denied == nil || denied.Denial.Text() != want.Text() || denied.Denial.Remedy != want.Remedy {
		t.Errorf("without a binding: %v, want %q", err, want.Text())
	}
	again(t, late, records)
	if _, err := late.Tools(t.Context()); err != nil {
		t.Error(err)
	}
	revoked := host.NewGrant(random.System(), host.GrantOptions{})
	revoked.Revoke("no more dice")
	if _, err := late.Call(t.Context(), "t", nil, host.Env{"random": revoked}); err == nil || !strings.Contains(err.Error(), "no more dice") {
		t.Errorf("with a revoked grant: %v", err)
	}
	again(t, late, records)
}

type remedy string

func (r remedy) Remedy(string) string { return string(r) }

// TestWorldRandomBytes draws many bytes at once.
func TestWorldRandomBytes(t *testing.T) {
	const wasi = `(import "wasi:random/random@0.2.0" (instance $random (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))`
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	var seen []string
	for _, c := range []struct {
		bytes uint64
		want  string
	}{{0, ""}, {100, ""}, {200_000, ""}, {1<<20 + 1, "limit reached: bytes (1 MiB): 1048577 random bytes at once"}, {1 << 63, "limit reached: bytes"}} {
		component, err := h.Load(t.Context(), lateComponent(t, wasi, `(core func $f (canon lower (func $random "get-random-bytes")`+options+`)) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i64 i32)))`, "", fmt.Sprintf(`(call $f (i64.const %d) (i32.const 64)) (if (i32.ne (i32.load (i32.const 68)) (i32.const %d)) (then unreachable))`, int64(c.bytes), int32(c.bytes))))
		if err != nil {
			t.Fatal(err)
		}
		_, err = component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"random": random.Seeded([32]byte{1})}, Observe: func(o host.Operation) {
			if b, ok := o.Result.(abi.Variant).Value.([]byte); ok && o.Binding == "random" {
				seen = append(seen, fmt.Sprintf("%d %s", len(b), hex.EncodeToString(b[:2])))
			}
		}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d bytes: %v, want %q", c.bytes, err, c.want)
		}
		again(t, component, records)
	}
	if len(seen) != 5 || !strings.HasPrefix(seen[0], "100 ") || !strings.HasPrefix(seen[4], "3392 ") {
		t.Errorf("the observer saw %q", seen)
	}
}

// TestWorldClock waits for the clock to move, and sleeps, with every kind of clock.
func TestWorldClock(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{CPU: 30 * time.Second}})
	const (
		spins  = `(local $from i64) (local.set $from (call $now)) (loop $l (br_if $l (i64.lt_u (i64.sub (call $now) (local.get $from)) (i64.const 20000000))))`
		sleeps = `(local $from i64) (local.set $from (call $now)) (call $block (call $sleep (i64.const 20000000)))
			(if (i64.lt_u (i64.sub (call $now) (local.get $from)) (i64.const 20000000)) (then unreachable))`
		polls = `(local $from i64) (local.set $from (call $now))
			(i32.store (i32.const 512) (call $sleep (i64.const 900000000000))) (i32.store (i32.const 516) (call $sleep (i64.const 20000000)))
			(call $poll (i32.const 512) (i32.const 2) (i32.const 64))
			(if (i32.eqz (i32.load (i32.const 68))) (then unreachable)) (if (i64.lt_u (i64.sub (call $now) (local.get $from)) (i64.const 20000000)) (then unreachable))`
	)
	for name, env := range map[string]host.Env{"none": nil, "system": {"clock": clock.System()}, "fixed": {"clock": clock.Fixed(time.Unix(1e9, 0))}} {
		for what, body := range map[string]string{"spins": spins, "sleeps": sleeps, "polls": polls} {
			t.Run(what+" with "+name, func(t *testing.T) {
				c := loadWorld(t, h, "", body+shown("(call $now)"))
				before := time.Now()
				if _, err := c.Call(t.Context(), "t", nil, env); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(before); name == "system" && took < 20*time.Millisecond {
					t.Errorf("it took %v, less than it waited", took)
				}
				again(t, c, records)
			})
		}
	}
	c := loadWorld(t, h, "", `(loop $l (drop (call $sleep (i64.const 1))) (br $l))`)
	if _, err := c.Call(t.Context(), "t", nil, nil); err == nil || !strings.Contains(err.Error(), "limit reached: handles") {
		t.Errorf("endless pollables: %v", err)
	}
	again(t, c, records)
	c = loadWorld(t, h, "", `(call $block (call $sleep (i64.const 3600000000000)))`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "t", nil, host.Env{"clock": clock.System()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an hour's sleep: %v", err)
	}
}

// TestWorldSays has each import of WASI say what it does.
func TestWorldSays(t *testing.T) {
	h := newHost(t, host.Options{})
	for _, i := range loadWorld(t, h, "", "").Imports() {
		for _, f := range i.Funcs {
			if says := i.Kind == "wasi"; says == (f.Answer == "") {
				t.Errorf("%s#%s says %q", i.Name, f.Name, f.Answer)
			}
		}
	}
}
