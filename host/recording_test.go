package host_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/wit"
)

// kept stores recordings.
type kept struct {
	mu   sync.Mutex
	list []*host.Recording
}

func (k *kept) Record(_ context.Context, r *host.Recording) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, r)
}

func (k *kept) last(t testing.TB) *host.Recording {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.list) == 0 {
		t.Fatal("nothing was recorded")
	}
	return k.list[len(k.list)-1]
}

const (
	getOnce   = `(call $get (local.get $box) (i32.const 320)) `
	fetchOnce = `(call $fetch (local.get $box) (i32.const 8) (i32.const 256)) `
	denyOnce  = `(call $deny (local.get $box) (i32.const 2048) (i32.const 4) (i32.const 256)) `
	// claimed returns the error case `denied` with the answer that denyOnce got.
	claimed = `(drop (call $error (i32.const 2))) (call $string (i32.const 0) (i32.const 1032) (i32.const 3))
		(call $string (i32.const 1) (i32.const 2048) (i32.const 4)) (call $string (i32.const 2) (i32.const 2056) (i32.const 7)) (i32.const 128)`
	// answer returns the eight bytes that fetchOnce got, as a number.
	answer = `(call $ok (i32.load (i32.const 256)) (i32.const 2))`
)

// numbered is a box that returns a new number each time, so that only its recording can reproduce the answers.
type numbered struct {
	box
	n int
}

func (b *numbered) Fetch(_ context.Context, n uint32) []byte {
	b.n++
	p := make([]byte, n)
	for i := range p {
		p[i] = byte('1' + b.n%9)
	}
	return p
}

func (b *numbered) Split(context.Context) *numbered { return b }

// TestReplay records calls that end in every way, and replays them.
func TestReplay(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{CPU: 1e9, Handles: 50, Pending: 4, Output: 1000}})
	for _, c := range []struct {
		name  string
		guest guest
		kind  string
	}{
		{"nothing", guest{}, "ok"},
		{"an answer", guest{uses: "open fetch", call: fetchOnce + answer}, "ok"},
		{"two answers", guest{uses: "open fetch", call: fetchOnce + fetchOnce + answer}, "ok"},
		{"handles made, split and dropped", guest{uses: "open split drop fetch", call: `(local.set $i (call $split (local.get $box))) (call $drop (local.get $box)) (local.set $box (local.get $i)) ` + fetchOnce + answer}, "ok"},
		{"handles handed over", guest{uses: "open split give", call: `(call $give (local.get $env) (i32.const 1032) (i32.const 2) (call $split (local.get $box)) (i32.const 256)) ` + returns}, "ok"},
		{"a part of the env", guest{uses: "open subset names", call: `(call $names (local.get $env) (i32.const 256)) (call $subset (local.get $env) (i32.const 0) (i32.const 0) (i32.const 256)) ` + returns}, "ok"},
		{"a long argument", guest{uses: "open put", call: `(call $put (local.get $box) (i32.const 0) (i32.const 60000) (i32.const 256)) ` + returns}, "ok"},
		{"a denial, carried on", guest{uses: "open deny", data: "work    no rule", call: denyOnce + returns}, "ok"},
		{"a denial", guest{uses: "open deny", data: "work    no rule", call: denyOnce + claimed}, "denied"},
		{"a made-up denial", guest{data: "work    no rule", call: claimed}, "failed"},
		{"a trap", guest{uses: "open", call: `unreachable`}, "trap"},
		{"an empty poll", guest{uses: "poll", call: `(call $poll (i32.const 0) (i32.const 0) (i32.const 256)) ` + returns}, "trap"},
		{"too many handles", guest{uses: "open", call: `(loop $l (call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) (br $l)) unreachable`}, "limit"},
		{"too many waits", guest{uses: "open never", call: `(loop $l (drop (call $never (local.get $box))) (br $l)) unreachable`}, "limit"},
		{"a wait that does not end", guest{uses: "open never block", call: `(call $block (call $never (local.get $box))) ` + returns}, "limit"},
		{"too many bytes", guest{uses: "open fetch", call: `(call $fetch (local.get $box) (i32.const 300000) (i32.const 256)) ` + returns}, "limit"},
		{"too much output", guest{call: `(memory.fill (i32.const 65536) (i32.const 49) (i32.const 1001)) (call $ok (i32.const 65536) (i32.const 1001))`}, "limit"},
		{"a bug of the embedder", guest{uses: "open panic", call: `(call $panic (local.get $box)) ` + returns}, "fault"},
		{"no binding", guest{uses: "open", call: `(call $open (local.get $env) (i32.const 1024) (i32.const 4) (i32.const 256)) ` + returns}, "ok"},
		{"no JSON", guest{data: `{]`, call: `(call $ok (i32.const 2048) (i32.const 2))`}, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := c.guest.load(t, h)
			limits := host.Limits{}
			if c.name == "a wait that does not end" {
				limits.Wall = 20e6
			}
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &numbered{}}, Limits: limits})
			recording := records.last(t)
			if recording.Outcome.Kind != c.kind || string(recording.Output) != string(r.Output) {
				t.Fatalf("recorded %+v of %v", recording, err)
			}
			if _, err := recording.All(h.WIT()); err != nil || recording.Recorded != r.Usage.Operations {
				t.Errorf("%d operations of %d: %v", recording.Recorded, r.Usage.Operations, err)
			}
			for _, o := range []host.ReplayOptions{{}, {Deny: true}} {
				got, err := component.Replay(t.Context(), recording, o)
				if err != nil || !got.Same || string(got.Output) != string(r.Output) || got.Answered != recording.Recorded {
					t.Errorf("deny %v: %+v, %v", o.Deny, got, err)
				}
			}
		})
	}
}

// TestReplayWithinLimits replays recordings that claim larger limits than their host has, or none.
func TestReplayWithinLimits(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{CPU: 20e6, Wall: 60e9, Handles: 50, Pending: 4, Output: 1000}})
	for limit, g := range map[string]guest{
		"cpu":     {call: `(loop $l (br $l)) unreachable`},
		"handles": {uses: "open", call: `(loop $l (call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) (br $l)) unreachable`},
		"pending": {uses: "open never", call: `(loop $l (drop (call $never (local.get $box))) (br $l)) unreachable`},
		"output":  {call: `(memory.fill (i32.const 65536) (i32.const 49) (i32.const 1001)) (call $ok (i32.const 65536) (i32.const 1001))`},
	} {
		component := g.load(t, h)
		_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &numbered{}}})
		if reached, ok := errors.AsType[*host.LimitError](err); !ok || reached.Limit != limit {
			t.Fatalf("%s: %v", limit, err)
		}
		const many = math.MaxInt32
		for _, forged := range []host.Limits{{}, {Memory: many, CPU: many, Wall: math.MaxInt64, Input: many, Output: many, Handles: many, Pending: many, Nesting: many}} {
			r := *records.last(t)
			r.Limits = forged
			got, err := component.Replay(t.Context(), &r, host.ReplayOptions{})
			if err != nil || got.Outcome.Kind != "limit" || got.Outcome.Limit != limit {
				t.Errorf("%s: a replay with the limits %+v ended with %+v, %v", limit, forged, got.Outcome, err)
			}
		}
	}
	// Who replays can allow more.
	component := guest{call: `(memory.fill (i32.const 65536) (i32.const 49) (i32.const 1001)) (call $ok (i32.const 65536) (i32.const 1001))`}.load(t, h)
	if _, err := component.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{Output: 2000}}); err != nil {
		t.Fatal(err)
	}
	if got, err := component.Replay(t.Context(), records.last(t), host.ReplayOptions{Limits: host.Limits{Output: 2000}}); err != nil || !got.Same {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReplayParts replays recordings with other code, and reports where they diverge.
func TestReplayParts(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	recorded := guest{uses: "open fetch get", call: fetchOnce + getOnce + answer}.load(t, h)
	if _, err := recorded.Call(t.Context(), "t", nil, host.Env{"box": &numbered{}}); err != nil {
		t.Fatal(err)
	}
	r := records.last(t)
	for _, c := range []struct {
		name  string
		guest guest
		// strict and lenient are the differences without and with Deny.
		strict, lenient []host.Difference
	}{
		{"as it was", guest{uses: "open fetch get", call: fetchOnce + getOnce + answer + ` (drop) (i32.const 128)`}, nil, nil},
		{
			"fewer",
			guest{uses: "open fetch", call: fetchOnce + answer},
			[]host.Difference{{3, "test:cap/box@1.0.0#[method]box.get(#2)", ""}},
			[]host.Difference{{3, "test:cap/box@1.0.0#[method]box.get(#2)", ""}},
		},
		{
			"more",
			guest{uses: "open fetch get", call: fetchOnce + getOnce + getOnce + answer},
			[]host.Difference{{4, "", "test:cap/box@1.0.0#[method]box.get(#2)"}},
			[]host.Difference{{4, "", "test:cap/box@1.0.0#[method]box.get(#2)"}},
		},
		{
			"another order",
			guest{uses: "open fetch get", call: getOnce + fetchOnce + answer},
			[]host.Difference{{2, "test:cap/box@1.0.0#[method]box.fetch(#2, 8)", "test:cap/box@1.0.0#[method]box.get(#2)"}},
			nil,
		},
		{
			"another argument",
			guest{uses: "open fetch get put", call: fetchOnce + `(call $put (local.get $box) (i32.const 2048) (i32.const 3) (i32.const 256)) (if (i32.eqz (i32.load8_u (i32.const 256))) (then unreachable)) ` + returns},
			[]host.Difference{{3, "test:cap/box@1.0.0#[method]box.get(#2)", "test:cap/box@1.0.0#[method]box.put(#2, 3 bytes 0x000000)"}},
			[]host.Difference{
				{3, "", "test:cap/box@1.0.0#[method]box.put(#2, 3 bytes 0x000000)"},
				{3, "test:cap/box@1.0.0#[method]box.get(#2)", ""},
				{0, "22", `"ok"`},
			},
		},
		{
			"an operation that cannot be denied by a value",
			guest{uses: "open fetch get", call: fetchOnce + fetchOnce + getOnce + answer},
			[]host.Difference{{3, "test:cap/box@1.0.0#[method]box.get(#2)", "test:cap/box@1.0.0#[method]box.fetch(#2, 8)"}},
			[]host.Difference{
				{3, "", "test:cap/box@1.0.0#[method]box.fetch(#2, 8)"},
				{3, "test:cap/box@1.0.0#[method]box.get(#2)", ""},
				{0, "ok", `denied: test:cap/box@1.0.0#[method]box.fetch through "box": the recording has no such operation`},
			},
		},
		{"another output", guest{uses: "open fetch get", call: fetchOnce + getOnce + returns}, []host.Difference{{0, "22", `"ok"`}}, []host.Difference{{0, "22", `"ok"`}}},
		{
			"another end",
			guest{uses: "open fetch get", call: fetchOnce + getOnce + "unreachable"},
			[]host.Difference{{0, "ok", "trap: wasm `unreachable` instruction executed"}},
			[]host.Difference{{0, "ok", "trap: wasm `unreachable` instruction executed"}},
		},
		{
			"waits that were not recorded",
			guest{uses: "open fetch get poll never", call: fetchOnce + getOnce + answer + ` (drop) (call $poll (i32.const 0) (i32.const 0) (i32.const 256)) (i32.const 128)`},
			[]host.Difference{{4, "", "stile:capability/poll@0.1.0#poll([])"}},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := c.guest.load(t, h)
			for _, o := range []host.ReplayOptions{{OtherComponent: true}, {OtherComponent: true, Deny: true}} {
				want := c.strict
				if o.Deny {
					want = c.lenient
				}
				got, err := other.Replay(t.Context(), r, o)
				if err != nil || !reflect.DeepEqual(got.Differences, want) || got.Same != (want == nil) {
					t.Errorf("deny %v: %+v, %v", o.Deny, got, err)
				}
			}
		})
	}
	var refused *host.ReplayError
	if _, err := (guest{}).load(t, h).Replay(t.Context(), r, host.ReplayOptions{}); !errors.As(err, &refused) {
		t.Errorf("a recording of another component: %v", err)
	}
}

// TestRecordingIsBounded has guests that do too much for a recording. The recording says so, and a replay ends there.
func TestRecordingIsBounded(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, RecordBytes: 100_000, Limits: host.Limits{CPU: 60e9, Output: 200_000}})
	many := `(loop $l (call $get (local.get $box) (i32.const 256)) (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const 200000)))) `
	for _, c := range []struct {
		name  string
		guest guest
		input int
		cut   string
	}{
		{"200,000 operations", guest{uses: "open get", call: many + returns}, 0, "bytes"},
		{"a huge answer", guest{uses: "open fetch", call: `(drop (memory.grow (i32.const 8))) (call $fetch (local.get $box) (i32.const 200000) (i32.const 256)) ` + fetchOnce + answer}, 0, "bytes"},
		{"a huge input", guest{uses: "open fetch", call: `(drop (memory.grow (i32.const 8)))` + fetchOnce + answer}, 200_000, "input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := c.guest.load(t, h)
			input := []byte(`{"a":"` + strings.Repeat("x", c.input) + `"}`)
			result, err := component.Do(t.Context(), host.Request{Tool: "t", Input: input, Env: host.Env{"box": &numbered{}}})
			if err != nil {
				t.Fatal(err)
			}
			r := records.last(t)
			if r.Cut != c.cut || len(r.Operations) > 100_000 || cap(r.Operations) > 300_000 || r.Usage.Operations != result.Usage.Operations {
				t.Errorf("cut %q at %d bytes of %d", r.Cut, len(r.Operations), cap(r.Operations))
			}
			for _, deny := range []bool{false, true} {
				got, err := component.Replay(t.Context(), r, host.ReplayOptions{Deny: deny})
				if c.cut == "input" {
					if _, refused := errors.AsType[*host.ReplayError](err); !refused {
						t.Errorf("got %v", err)
					}
				} else if err != nil || got.Same || !got.Cut || got.Answered != r.Recorded || got.Differences != nil {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	// A large output is compared by its digest.
	c := guest{call: `(drop (memory.grow (i32.const 8))) (memory.fill (i32.const 65536) (i32.const 49) (i32.const 150000)) (call $ok (i32.const 65536) (i32.const 150000))`}.load(t, h)
	if _, err := c.Call(t.Context(), "t", nil, nil); err != nil {
		t.Fatal(err)
	}
	r := records.last(t)
	got, err := c.Replay(t.Context(), r, host.ReplayOptions{})
	if r.Output != nil || len(r.OutputDigest) != 64 || err != nil || !got.Same {
		t.Errorf("%d bytes, %q: %+v, %v", len(r.Output), r.OutputDigest, got, err)
	}
	r.OutputDigest = strings.Repeat("0", 64)
	if got, err := c.Replay(t.Context(), r, host.ReplayOptions{}); err != nil || got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	// The total of all recordings is bounded too, and released at the end.
	small := newHost(t, host.Options{Recorder: records, RecordMemory: 300_000})
	c = guest{uses: "open fetch", call: `(drop (memory.grow (i32.const 8))) (call $fetch (local.get $box) (i32.const 200000) (i32.const 256)) (call $fetch (local.get $box) (i32.const 200000) (i32.const 256)) ` + returns}.load(t, small)
	for range 3 {
		if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &box{}}); err != nil {
			t.Fatal(err)
		}
		if r := records.last(t); r.Cut != "memory" || r.Recorded != 2 {
			t.Errorf("cut %q after %d operations", r.Cut, r.Recorded)
		}
	}
}

// holding is a box whose first answer is large. The next one comes when over is closed.
type holding struct {
	box
	first bool
	holds chan<- struct{}
	over  <-chan struct{}
}

func (b *holding) Fetch(_ context.Context, n uint32) []byte {
	if b.first = !b.first; !b.first {
		b.holds <- struct{}{}
		<-b.over
		return nil
	}
	return make([]byte, n)
}

// TestUsersShareRecordings has calls of one user, while they wait, hold recordings for which there is not enough memory. That of another user's
// call is complete.
func TestUsersShareRecordings(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, RecordMemory: 4 << 20})
	c := guest{uses: "open fetch", call: `(drop (memory.grow (i32.const 8))) (call $fetch (local.get $box) (i32.const 200000) (i32.const 256)) (call $fetch (local.get $box) (i32.const 200000) (i32.const 256)) ` + returns}.load(t, h)
	holds, over := make(chan struct{}), make(chan struct{})
	var busy sync.WaitGroup
	const many = 30
	for range many {
		busy.Go(func() {
			if _, err := c.Do(t.Context(), host.Request{Tool: "t", User: "agent:busy", Env: host.Env{"box": &holding{holds: holds, over: over}}}); err != nil {
				t.Error(err)
			}
		})
		<-holds
	}
	for _, user := range []string{"agent:other", "agent:third"} {
		if _, err := c.Do(t.Context(), host.Request{Tool: "t", User: user, Env: host.Env{"box": &box{}}}); err != nil {
			t.Fatal(err)
		}
		if r := records.last(t); r.Cut != "" {
			t.Errorf("the recording of %s is cut: %s", user, r.Cut)
		}
	}
	close(over)
	busy.Wait()
	cut := 0
	for _, r := range records.list {
		if r.Cut == "memory" {
			cut++
		}
	}
	if cut == 0 || cut == many {
		t.Errorf("%d of %d recordings of the busy user are cut", cut, many)
	}
}

// teller is a box with a secret.
type teller struct{ box }

func (*teller) Get(context.Context) (string, error) { return `"s3cret"`, nil }
func (*teller) Deny(_ context.Context, what string) error {
	return abi.Deny(abi.Denial{Operation: what, Reason: "no rule", Wants: grant(`{"box":"/hidden"}`), Private: true})
}

// TestRecordingKeepsNoSecrets searches a recording for values that it must not contain, from every possible source.
func TestRecordingKeepsNoSecrets(t *testing.T) {
	records := &kept{}
	hide := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "s3cret", "[gone]")) }
	h := newHost(t, host.Options{Recorder: records, Redact: hide})
	for _, c := range []struct {
		name     string
		guest    guest
		redacted bool
	}{
		{"answer and output", guest{uses: "open get", call: getOnce + `(call $ok (i32.load (i32.const 324)) (i32.load (i32.const 328)))`}, true},
		{"argument", guest{uses: "open deny", data: "s3cret", call: `(call $deny (local.get $box) (i32.const 2048) (i32.const 6) (i32.const 256)) ` + returns}, true},
		{"denial", guest{uses: "open deny", data: "work    no rule", call: denyOnce + claimed}, false},
		{"failure", guest{data: "s3cret", call: `(drop (call $error (i32.const 4))) (call $string (i32.const 1) (i32.const 2048) (i32.const 6)) (i32.const 128)`}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := c.guest.load(t, h)
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &teller{}}})
			recording := records.last(t)
			all := recording.Outcome.Message + recording.Outcome.Stack + string(recording.Operations) + string(recording.Output)
			for _, d := range recording.Usage.Denials {
				all += d.Operation + d.Reason + d.Remedy
				if d.Wants != nil {
					t.Errorf("it has what was wanted: %v", d.Wants)
				}
			}
			for _, secret := range []string{"s3cret", "hidden"} {
				if strings.Contains(all, secret) {
					t.Errorf("it has %q: %s (%s, %v)", secret, all, r.Output, err)
				}
			}
			got, err := component.Replay(t.Context(), recording, host.ReplayOptions{})
			if err != nil || !got.Same || recording.Redacted != c.redacted || strings.Contains(string(got.Output), "s3cret") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	c := guest{}.load(t, h)
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Input: []byte(`{"a":"s3cret"}`)}); err != nil {
		t.Fatal(err)
	}
	if r := records.last(t); string(r.Input) != `{"a":"[gone]"}` {
		t.Errorf("input %s", r.Input)
	}
}

// TestDamagedRecording alters a recording in every place. A replay ends with a typed error or reports a difference. It opens
// nothing and never panics.
func TestDamagedRecording(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{CPU: 1e9}})
	c := guest{uses: "open fetch names split give", call: `(call $names (local.get $env) (i32.const 256)) (call $give (local.get $env) (i32.const 1032) (i32.const 2) (call $split (local.get $box)) (i32.const 256)) ` + fetchOnce + answer}.load(t, h)
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &numbered{}}); err != nil {
		t.Fatal(err)
	}
	whole := *records.last(t)
	check := func(r host.Recording) {
		t.Helper()
		_, _ = r.All(h.WIT())
		for _, deny := range []bool{false, true} {
			got, err := c.Replay(t.Context(), &r, host.ReplayOptions{Deny: deny})
			var damaged *host.DamagedError
			if err != nil && !errors.As(err, &damaged) {
				t.Errorf("got %+v, %T %v", got, err, err)
			}
		}
	}
	for i := range whole.Operations {
		for _, flip := range []byte{1, 0x80, 0xff} {
			r := whole
			r.Operations = append([]byte{}, whole.Operations...)
			r.Operations[i] ^= flip
			check(r)
		}
		r := whole
		r.Operations = whole.Operations[:i]
		check(r)
	}
	r := whole
	r.Recorded++
	check(r)
}

// TestRecordedEnds records calls that were ended from outside, or never began.
func TestRecordedEnds(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{CPU: 50e6}})
	// The clock ends it. The replay compares its operations, but not how it ended.
	c := guest{uses: "open get", call: getOnce + `(loop $l (br $l)) unreachable`}.load(t, h)
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &box{}}); err == nil {
		t.Fatal("it ended by itself")
	}
	got, err := c.Replay(t.Context(), records.last(t), host.ReplayOptions{})
	if err != nil || !got.Same || !got.Timed {
		t.Errorf("%+v, %v", got, err)
	}
	// It is cancelled while it waits.
	ctx, cancel := context.WithCancel(t.Context())
	held := newStuck()
	c = guest{uses: "open get fetch", call: getOnce + fetchOnce + answer}.load(t, h)
	ended := make(chan error)
	go func() {
		_, err := c.Call(ctx, "t", nil, host.Env{"box": held})
		ended <- err
	}()
	<-held.inside
	cancel()
	close(held.release)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if r := records.last(t); r.Outcome.Kind != "cancelled" {
		t.Errorf("recorded %+v", r.Outcome)
	}
	if got, err := c.Replay(t.Context(), records.last(t), host.ReplayOptions{}); err != nil || !got.Same || !got.Timed {
		t.Errorf("%+v, %v", got, err)
	}
	// A replay can be cancelled too.
	if _, err := c.Replay(ctx, records.last(t), host.ReplayOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// A call that never ran is recorded as well.
	if _, err := c.Do(t.Context(), host.Request{Tool: "none"}); err == nil || records.last(t).Outcome.Kind != "unknown-tool" {
		t.Errorf("%v, recorded %+v", err, records.last(t).Outcome)
	}
	if got, err := c.Replay(t.Context(), records.last(t), host.ReplayOptions{}); err != nil || !got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Input: []byte("{")}); err == nil || records.last(t).Outcome.Kind != "input" {
		t.Errorf("%v, recorded %+v", err, records.last(t).Outcome)
	}
	if got, err := c.Replay(t.Context(), records.last(t), host.ReplayOptions{}); err != nil || !got.Same {
		t.Errorf("%+v, %v", got, err)
	}
}

// slow is a recorder with a delay.
type slow struct {
	kept
	inside, release chan struct{}
}

func (s *slow) Record(ctx context.Context, r *host.Recording) {
	close(s.inside)
	<-s.release
	s.kept.Record(ctx, r)
}

// TestCloseWaitsForRecordings closes a host while a call is being recorded.
func TestCloseWaitsForRecordings(t *testing.T) {
	s := &slow{inside: make(chan struct{}), release: make(chan struct{})}
	h, err := host.New(t.Context(), host.Options{WIT: []string{testWIT}})
	if err != nil {
		t.Fatal(err)
	}
	c := guest{}.load(t, h)
	ended := make(chan error, 2)
	go func() {
		_, err := c.Do(t.Context(), host.Request{Tool: "t", Recorder: s})
		ended <- err
	}()
	<-s.inside
	go func() {
		ended <- h.Close()
	}()
	select {
	case err := <-ended:
		t.Errorf("closed before the recording was taken: %v", err)
	default:
	}
	close(s.release)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if s.last(t).Outcome.Kind != "ok" {
		t.Error("not recorded")
	}
}

// TestRecordedValues checks that every value survives recording and reading.
func TestRecordedValues(t *testing.T) {
	known, err := abi.Parse(`package a:b@1.0.0; interface i {
		record r { a: u8, b: string } variant v { x, y(list<u8>), z(tuple<f32, f64>) } flags f { a, b, c } enum e { p, q }
		x: func(a: bool, b: s8, c: s16, d: s32, e: s64, f: u8, g: u16, h: u32, i: u64, j: f32, k: f64, l: char, m: string,
			n: list<u8>, o: list<option<r>>, p: result<v, e>, q: f, r: result, s: list<string>);
	}`)
	if err != nil {
		t.Fatal(err)
	}
	params := known.Interface("a:b/i@1.0.0").Funcs[0].Params
	rapid.Check(t, func(rt *rapid.T) {
		for _, p := range params {
			v := drawValue(rt, p.Type)
			back, err := host.RoundTrip(p.Type, v)
			if err != nil || !reflect.DeepEqual(back, v) {
				rt.Fatalf("%s: %#v came back as %#v, %v", p.Type, v, back, err)
			}
		}
	})
}

func drawValue(t *rapid.T, ty *abi.Type) abi.Value {
	if ty == nil {
		return nil
	}
	switch ty.Kind {
	case abi.KindBool:
		return rapid.Bool().Draw(t, "bool")
	case abi.KindS8:
		return rapid.Int8().Draw(t, "s8")
	case abi.KindS16:
		return rapid.Int16().Draw(t, "s16")
	case abi.KindS32:
		return rapid.Int32().Draw(t, "s32")
	case abi.KindS64:
		return rapid.Int64().Draw(t, "s64")
	case abi.KindU8:
		return rapid.Uint8().Draw(t, "u8")
	case abi.KindU16:
		return rapid.Uint16().Draw(t, "u16")
	case abi.KindU32:
		return rapid.Uint32().Draw(t, "u32")
	case abi.KindU64:
		return rapid.Uint64().Draw(t, "u64")
	case abi.KindF32:
		return rapid.Float32().Draw(t, "f32")
	case abi.KindF64:
		return math.Float64frombits(rapid.Uint64Max(0x7ff0000000000000).Draw(t, "f64"))
	case abi.KindChar:
		return rapid.Rune().Draw(t, "char")
	case abi.KindString:
		return rapid.String().Draw(t, "string")
	case abi.KindFlags:
		return rapid.Uint32Max(7).Draw(t, "flags")
	case abi.KindList:
		if ty.Elem.Kind == abi.KindU8 {
			return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		list := []abi.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawValue(t, ty.Elem))
		}
		return list
	case abi.KindRecord, abi.KindTuple:
		fields := []abi.Value{}
		for _, f := range ty.Fields {
			fields = append(fields, drawValue(t, f.Type))
		}
		return fields
	case abi.KindOption:
		if rapid.Bool().Draw(t, "some") {
			return abi.Variant{Case: 1, Value: drawValue(t, ty.Elem)}
		}
		return abi.Variant{}
	case abi.KindResult:
		if rapid.Bool().Draw(t, "err") {
			return abi.Variant{Case: 1, Value: drawValue(t, ty.Err)}
		}
		return abi.Variant{Value: drawValue(t, ty.Ok)}
	default:
		i := rapid.IntRange(0, len(ty.Cases)-1).Draw(t, "case")
		return abi.Variant{Case: uint32(i), Value: drawValue(t, ty.Cases[i].Type)}
	}
}

// FuzzRecording uses arbitrary data as the operations of a recording.
func FuzzRecording(f *testing.F) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension(), testWIT)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("\x00\x00\x12test:cap/box@1.0.0\x00\x10[method]box.deny\x03box\x00\x06\x00\x00\x00\x02\x04work\x00\x02\x00\x00\x00\x01\x01"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		r := host.Recording{Operations: operations, Recorded: 1}
		list, err := r.All(known)
		for _, o := range list {
			if text := o.String(); printable.Text(text) != text || strings.Contains(text, "\n") {
				t.Errorf("%q", text)
			}
		}
		var damaged *host.DamagedError
		if err != nil && !errors.As(err, &damaged) {
			t.Errorf("got %T %v", err, err)
		}
	})
}

// nester is a box whose operations make other calls.
type nester struct {
	box
	nest func(context.Context) error
}

func (n *nester) Get(ctx context.Context) (string, error) { return "", n.nest(ctx) }

// Fetch ends the call with the error, because its type has no error case.
func (n *nester) Fetch(ctx context.Context, _ uint32) ([]byte, error) { return nil, n.nest(ctx) }

// newRevoker returns a grant that its operation `panic` revokes.
func newRevoker() *host.Grant {
	inside := newGranted()
	g := host.NewGrant(inside, host.GrantOptions{})
	inside.panics = func() { g.Revoke("by the test") }
	return g
}

// TestRecordedGrants records and replays calls whose operations a grant refuses, and calls that a grant ends.
func TestRecordedGrants(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	revoke := `(call $panic (local.get $box)) `
	for _, c := range []struct{ name, call, kind string }{
		{"refused", revoke + put4 + code, "ok"},
		{"refused, with a handle", revoke + `(call $give (local.get $env) (i32.const 2048) (i32.const 3) (local.get $box) (i32.const 256)) ` + code, "ok"},
		{"not opened again", revoke + `(call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) ` + code, "ok"},
		{"a pollable", revoke + `(call $block (call $never (local.get $box))) ` + returns, "ok"},
		{"nothing", revoke + revoke + returns, "ok"},
		{"the end", revoke + `(call $fetch (local.get $box) (i32.const 4) (i32.const 256)) ` + returns, "grant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := guest{uses: "open put give never block panic fetch", data: "two", call: c.call}.load(t, h)
			result, err := component.Call(t.Context(), "t", nil, host.Env{"box": newRevoker()})
			r := records.last(t)
			if r.Outcome.Kind != c.kind || (c.kind == "ok") != (err == nil) || err != nil && r.Outcome.Message != err.Error() {
				t.Errorf("recorded %+v of %s, %v", r.Outcome, result, err)
			}
			for _, deny := range []bool{false, true} {
				got, err := component.Replay(t.Context(), r, host.ReplayOptions{Deny: deny})
				if err != nil || !got.Same || got.Outcome != r.Outcome || got.Answered != r.Recorded {
					t.Errorf("deny %v: %+v, %v", deny, got, err)
				}
			}
		})
	}
}

// TestRecordedNesting records and replays calls that other calls end.
func TestRecordedNesting(t *testing.T) {
	records := &kept{}
	hide := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "s3cret", "[gone]")) }
	h := newHost(t, host.Options{Recorder: records, Redact: hide})
	fails := guest{data: "s3cret", call: `(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 2048) (i32.const 6)) (i32.const 128)`}
	for _, c := range []struct {
		name  string
		inner guest
		tool  string
		kind  string
	}{
		{"a failure", fails, "t", "failed"},
		{"a trap", guest{call: "unreachable"}, "t", "trap"},
		{"a bad description", guest{describe: "unreachable"}, "t", "trap"},
		{"no such tool", guest{}, "none", "unknown-tool"},
		{"a denial", guest{uses: "open deny", data: "work    no rule", call: denyOnce + claimed}, "t", "denied"},
		{"a grant", guest{uses: "open panic fetch", call: `(call $panic (local.get $box)) ` + fetchOnce + returns}, "t", "grant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, outer := c.inner.load(t, h), guest{uses: "open fetch", call: fetchOnce + returns}.load(t, h)
			_, err := outer.Call(t.Context(), "t", nil, host.Env{"box": &nester{nest: func(ctx context.Context) error {
				_, err := inner.Do(ctx, host.Request{Tool: c.tool, Env: host.Env{"box": newRevoker()}})
				return err
			}}})
			r := records.last(t)
			if r.Outcome.Kind != c.kind {
				t.Errorf("recorded %+v of %v", r.Outcome, err)
			}
			if all := string(r.Operations) + r.Outcome.Stack; strings.Contains(all, "s3cret") {
				t.Errorf("it has a secret: %s", all)
			}
			if got, err := outer.Replay(t.Context(), r, host.ReplayOptions{}); err != nil || !got.Same {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestRecordedNamesKeepNoSecrets checks the names of bindings: a guest chooses the names that a tool passes on.
func TestRecordedNamesKeepNoSecrets(t *testing.T) {
	records := &kept{}
	hide := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "s3cret", "[gone]")) }
	h := newHost(t, host.Options{Recorder: records, Redact: hide})
	c := guest{uses: "open get", data: "s3cret", call: `(call $open (local.get $env) (i32.const 2048) (i32.const 6) (i32.const 256))
		(local.set $box (i32.load (i32.const 264))) ` + getOnce + returns}.load(t, h)
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &box{}, "s3cret": &box{}}); err != nil {
		t.Fatal(err)
	}
	r := records.last(t)
	if _, known := r.Bindings["s3cret"]; known || strings.Contains(string(r.Operations), "s3cret") || !r.Redacted {
		t.Errorf("it has a secret: %v, %q", r.Bindings, r.Operations)
	}
	if got, err := c.Replay(t.Context(), r, host.ReplayOptions{}); err != nil || !got.Same {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRecordingOfRefusedNesting checks that a call its caller could not make is not recorded, because it would run in a replay.
func TestRecordingOfRefusedNesting(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	c := guest{uses: "open get", call: getOnce + returns}.load(t, h)
	var refused error
	n := &nester{}
	n.nest = func(ctx context.Context) error {
		_, refused = c.Do(ctx, host.Request{Tool: "t", Env: host.Env{"box": n}})
		return abi.Errorf(abi.CodeInvalid, "it is at work")
	}
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": n}); err != nil {
		t.Fatal(err)
	}
	if _, cycle := errors.AsType[*host.CycleError](refused); !cycle || len(records.list) != 1 {
		t.Errorf("%v, %d recordings", refused, len(records.list))
	}
}
