package host_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
)

// box implements test:cap/box.
type box struct{ puts int }

func (*box) Interface() string { return "test:cap/box@1.0.0" }

func (*box) Get(context.Context) (string, error) {
	return "", abi.Errorf(abi.CodeNotFound, "nothing in it")
}
func (b *box) Put(_ context.Context, p []byte) error { b.puts += len(p); return nil }
func (*box) Fetch(_ context.Context, n uint32) []byte {
	return make([]byte, n)
}

func (*box) Deny(_ context.Context, what string) error {
	return abi.Deny(abi.Denial{Operation: what, Reason: "no rule", Wants: grant(`{"box":true}`)})
}

// grant is a grant that a call lacks, as JSON. Its type is not comparable.
type grant []byte

func (g grant) Remedy(binding string) string {
	return fmt.Sprintf(`"bindings": { %q: %s }`, binding, string(g))
}

func (*box) Never(context.Context) *abi.Pollable { return new(abi.Pollable) }
func (*box) Panic(context.Context)               { panic("the embedder's bug") }
func (*box) Split(context.Context) *box          { return &box{} }

// thing and either are types with lists and strings in many places.
type (
	either struct {
		Case   uint8
		Number *uint64
		Text   *string
		Lists  *struct {
			Words   []string
			Numbers []uint16
		}
	}
	thing struct {
		Scheme string
		Port   *uint16
		Maybe  **string
		Words  []string
		Either either
		Pair   struct {
			A uint8
			B float64
		}
		Path string
	}
	number struct {
		A uint64
		B float32
		C bool
	}
)

func (b *box) Things(_ context.Context, list []thing)    { b.puts += len(list) }
func (b *box) Texts(_ context.Context, list []string)    { b.puts += len(list) }
func (b *box) Text(_ context.Context, text string)       { b.puts += len(text) }
func (b *box) Numbers(_ context.Context, list []number)  { b.puts += len(list) }
func (b *box) Nested(_ context.Context, list [][][]byte) { b.puts += len(list) }
func (b *box) Either(context.Context, either)            { b.puts++ }

// Nest returns more bytes than allowed if p is nil.
func (*box) Nest(_ context.Context, p *[]byte) *[]byte {
	if p == nil {
		p = new([]byte)
		*p = make([]byte, 300_000)
	}
	return p
}

// TestTooLongFromGuests has guests pass too many bytes to operations of stile:capability. The operation returns `invalid`, which names
// the list and becomes the tool's failure. A value that would take too much memory to convert ends the call.
func TestTooLongFromGuests(t *testing.T) {
	h := newHost(t, host.Options{})
	client, err := http.New(http.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// tell fails with the error returned at 256, if that is `invalid`.
	const tell = ` (if (i32.eqz (i32.load8_u (i32.const 256))) (then (return ` + returns + `)))
		(if (i32.ne (i32.load8_u (i32.const 264)) (i32.const 9)) (then unreachable))
		(drop (call $error (i32.const 4))) (call $string (i32.const 1) (i32.load (i32.const 272)) (i32.load (i32.const 276))) (i32.const 128)`
	open := func(get string) string {
		return `(drop (memory.grow (i32.const 20))) (call $` + get + ` (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256))
			(if (i32.load8_u (i32.const 256)) (then unreachable)) (local.set $box (i32.load (i32.const 264))) `
	}
	appended := func(n int) guest {
		return guest{uses: "store create append", call: open("store") + `(call $create (local.get $box) (i32.const 0) (i32.const 0) (i32.const 256))
			(call $append (i32.load (i32.const 264)) (i32.const 65536) (i32.const ` + strconv.Itoa(n) + `) (i32.const 256))` + tell}
	}
	sent := func(n int) guest {
		return guest{uses: "client start", call: open("client") + `(call $start (local.get $box) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
			(i32.const 2) (i32.const 65536) (i32.const ` + strconv.Itoa(n) + `) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))` + tell}
	}
	for _, c := range []struct {
		name  string
		guest guest
		box   abi.Capability
		want  string
	}{
		{"as many as it may", appended(256 << 10), blob.NewStore(blob.StoreOptions{}), ""},
		{"one more", appended(256<<10 + 1), blob.NewStore(blob.StoreOptions{}), "tool failed: blob.writer.append.bytes: 262145 elements; at most 262144"},
		{"nearly twice as many", appended(450_000), blob.NewStore(blob.StoreOptions{}), "tool failed: blob.writer.append.bytes: 450000 elements; at most 262144"},
		{"more than are converted", appended(600_000), blob.NewStore(blob.StoreOptions{}), "limit reached: bytes (52 MiB)"},
		{"one more in a case of a variant", sent(256<<10 + 1), client, "tool failed: http.client.start.request.content.bytes: 262145 elements; at most 262144"},
		{"more than are converted in a case of a variant", sent(600_000), client, "limit reached: bytes (52 MiB)"},
	} {
		_, err := c.guest.load(t, h).Call(t.Context(), "t", nil, host.Env{"box": c.box})
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.HasPrefix(got, c.want) && c.want != "" {
			t.Errorf("%s: got %s, want %q", c.name, got, c.want)
		}
	}
}

// TestHostileGuests runs handwritten guests that break the contract in every way the ABI allows.
func TestHostileGuests(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 200 * time.Millisecond, Wall: 10 * time.Second, Handles: 50, Pending: 4, Output: 1000}})
	denied := `(call $deny (local.get $box) (i32.const 2048) (i32.const 4) (i32.const 256))`
	// claim returns the error case `denied` with binding "box", and the operation and reason at 2048 and 2056.
	claim := `(drop (call $error (i32.const 2))) (call $string (i32.const 0) (i32.const 1032) (i32.const 3))
		(call $string (i32.const 1) (i32.const 2048) (i32.const 4)) (call $string (i32.const 2) (i32.const 2056) (i32.const 7)) (i32.const 128)`
	for _, c := range []struct {
		name  string
		guest guest
		// want is a part of the error's text, and like is an error of its type; "" is success.
		want string
		like any
	}{
		{"does as it should", guest{uses: "open get drop", call: `(call $get (local.get $box) (i32.const 256)) (call $drop (local.get $box)) ` + returns}, "", nil},
		{"leaves its handles open", guest{uses: "open open"[:4], call: returns}, "", nil},
		{"uses a handle it dropped", guest{uses: "open get drop", call: `(call $drop (local.get $box)) (call $get (local.get $box) (i32.const 256)) ` + returns}, "handle index", nil},
		{"drops a handle twice", guest{uses: "open drop", call: `(call $drop (local.get $box)) (call $drop (local.get $box)) ` + returns}, "handle index", nil},
		{"forges a handle", guest{uses: "get", call: `(call $get (i32.const 77) (i32.const 256)) ` + returns}, "handle index", nil},
		{"passes an env as a box", guest{uses: "get", call: `(call $get (local.get $env) (i32.const 256)) ` + returns}, "handle index", nil},
		{"uses the env it dropped", guest{uses: "drop-env names", call: `(call $drop-env (local.get $env)) (call $names (local.get $env) (i32.const 256)) ` + returns}, "handle index", nil},
		{"opens handles for ever", guest{uses: "open", call: `(loop $l (call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) (br $l)) unreachable`}, "limit reached: handles (50)", new(*host.LimitError)},
		{"asks for a binding that is not there", guest{uses: "open", more: `(func $none (param i32))`, call: `(call $open (local.get $env) (i32.const 1024) (i32.const 4) (i32.const 256)) (if (i32.eqz (i32.load8_u (i32.const 256))) (then unreachable)) ` + returns}, "", nil},
		{"polls nothing", guest{uses: "poll", call: `(call $poll (i32.const 0) (i32.const 0) (i32.const 256)) ` + returns}, "poll of an empty list", new(*host.TrapError)},
		{"polls a list out of bounds", guest{uses: "poll", call: `(call $poll (i32.const 0) (i32.const 0x7fffffff) (i32.const 256)) ` + returns}, "out of bounds", nil},
		{"polls forged handles", guest{uses: "poll", call: `(call $poll (i32.const 4096) (i32.const 1000) (i32.const 256)) ` + returns}, "handle index", nil},
		{"waits for ever", guest{uses: "open never block", call: `(call $block (call $never (local.get $box))) ` + returns}, "limit reached: wall", new(*host.LimitError)},
		{"waits for more than it may", guest{uses: "open never", call: `(loop $l (drop (call $never (local.get $box))) (br $l)) unreachable`}, "limit reached: pending (4): operations that one call may wait for at a time", new(*host.LimitError)},
		{"loops for ever", guest{call: `(loop $l (br $l)) unreachable`}, "limit reached: cpu (200ms)", new(*host.LimitError)},
		{"loops for ever in describe", guest{describe: `(loop $l (br $l)) unreachable`}, "limit reached: cpu (200ms)", new(*host.LimitError)},
		{"recurses for ever", guest{more: `(func $deep (call $deep))`, call: `(call $deep) unreachable`}, "limit reached: stack", new(*host.LimitError)},
		{"traps", guest{call: `unreachable`}, "unreachable", new(*host.TrapError)},
		{"returns what is not UTF-8", guest{data: `\ff\fe\00`, call: `(call $ok (i32.const 2048) (i32.const 3))`}, "utf-8", nil},
		{"returns what is not JSON", guest{data: `{]`, call: `(call $ok (i32.const 2048) (i32.const 2))`}, "not JSON", new(*host.GuestError)},
		{"returns too much", guest{call: `(memory.fill (i32.const 65536) (i32.const 49) (i32.const 1001)) (call $ok (i32.const 65536) (i32.const 1001))`}, "limit reached: output (1000 bytes)", new(*host.LimitError)},
		{"returns a string out of bounds", guest{call: `(call $ok (i32.const 0x7fffff00) (i32.const 1001))`}, "out of bounds", nil},
		{"returns a case that does not exist", guest{call: `(drop (call $error (i32.const 99))) (i32.const 128)`}, "discriminant", nil},
		{"returns an address that is not aligned", guest{call: `(i32.const 129)`}, "not aligned", nil},
		{"passes more bytes than it may", guest{uses: "open put", call: `(drop (memory.grow (i32.const 8))) (call $put (local.get $box) (i32.const 0) (i32.const 300000) (i32.const 256)) ` + returns}, "limit reached: bytes (256 KiB)", new(*host.LimitError)},
		{"passes more nested bytes than it may", guest{uses: "open nest", call: `(drop (memory.grow (i32.const 8))) (call $nest (local.get $box) (i32.const 1) (i32.const 0) (i32.const 300000) (i32.const 256)) ` + returns}, "limit reached: bytes (256 KiB)", new(*host.LimitError)},
		{"gets more nested bytes than it may", guest{uses: "open nest", call: `(drop (memory.grow (i32.const 8))) (call $nest (local.get $box) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256)) ` + returns}, "limit reached: bytes (256 KiB)", new(*host.LimitError)},
		{"passes more text than it may", guest{uses: "open deny", call: `(drop (memory.grow (i32.const 260))) (call $deny (local.get $box) (i32.const 0) (i32.const 16777217) (i32.const 256)) ` + returns}, "limit reached: bytes (16 MiB)", new(*host.LimitError)},
		{"puts under a name that is too long", guest{uses: "open give", call: `(memory.fill (i32.const 2048) (i32.const 97) (i32.const 65)) ` + misnamed(65)}, "", nil},
		{"puts under a name that cannot be printed", guest{uses: "open give", data: `a\1b`, call: misnamed(2)}, "", nil},
		{"puts under a name that is not ASCII", guest{uses: "open give", data: `\c3\a9`, call: misnamed(2)}, "", nil},
		{"puts under no name", guest{uses: "open give", call: misnamed(0)}, "", nil},
		{"asks for more bytes than it may", guest{uses: "open fetch", call: `(call $fetch (local.get $box) (i32.const 300000) (i32.const 256)) ` + returns}, "limit reached: bytes (256 KiB): a list<u8> of 300000 bytes", new(*host.LimitError)},
		{"finds a bug of the embedder", guest{uses: "open panic", call: `(call $panic (local.get $box)) ` + returns}, "panic in a host function: the embedder's bug", new(error)},
		{"is denied and says so", guest{uses: "open deny", data: "work    no rule", call: denied + claim}, `denied: work through "box": no rule; to allow it: "bindings": { "box": {"box":true} }`, new(*host.DeniedError)},
		{"is denied and carries on", guest{uses: "open deny", data: "work    no rule", call: denied + returns}, "", nil},
		{"claims a denial that did not happen", guest{data: "work    no rule", call: claim}, "claims a denial that this host did not make", new(*host.GuestError)},
		{"claims another denial than happened", guest{uses: "open deny", data: "work    go home", call: denied + claim}, "claims a denial that this host did not make", new(*host.GuestError)},
		{
			"fails with terminal escapes",
			guest{data: `\1b[31mred\e2\80\ae`, call: `(drop (call $error (i32.const 4))) (call $string (i32.const 1) (i32.const 2048) (i32.const 11)) (i32.const 128)`},
			`tool failed: \x1b[31mred\u202e`, new(*host.GuestError),
		},
		{"says a tool is unknown", guest{call: `(drop (call $error (i32.const 0))) (i32.const 128)`}, `unknown tool ""; there are: t`, new(*host.UnknownToolError)},
		{"says it ran out", guest{data: "promise: never", call: `(drop (call $error (i32.const 3))) (call $string (i32.const 0) (i32.const 2048) (i32.const 14)) (i32.const 128)`}, "limit reached: promise: never", new(*host.LimitError)},
		{"claims a limit of the host", guest{data: "cpu: 5s", call: `(drop (call $error (i32.const 3))) (call $string (i32.const 0) (i32.const 2048) (i32.const 7)) (i32.const 128)`}, "claims a limit that this host did not reach: cpu: 5s", new(*host.GuestError)},
		{"traps in a function named like a limit", trapIn(`wasm trap: call stack exhausted`), "guest trapped: wasm `unreachable` instruction executed", new(*host.TrapError)},
		{"traps in a function named like a backtrace", trapIn(`a\0a\0aCaused by:\0a    wasm trap: call stack exhausted`), "guest trapped: wasm `unreachable` instruction executed", new(*host.TrapError)},
		{"traps above a function named like the memory limit", guest{more: `(func $fails (result i32) unreachable) (func $"stile:limit-memory" (result i32) (i32.add (call $fails) (i32.const 1)))`, call: `(call $"stile:limit-memory")`}, "guest trapped", new(*host.TrapError)},
		{"describes tools out of bounds", guest{describe: `(i32.store (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.const 0x1000000)) (i32.const 64)`}, "out of bounds", nil},
		{"describes two tools of one name", guest{describe: `(memory.copy (i32.const 1152) (i32.const 1112) (i32.const 40)) (i32.store (i32.const 1108) (i32.const 2)) (i32.const 1104)`}, "two tools have this name", new(*host.DefinitionError)},
		{"describes a tool with a bad name", guest{describe: `(i32.store8 (i32.const 1038) (i32.const 27)) (i32.const 1104)`}, "its name must be", new(*host.DefinitionError)},
		{"describes a tool with a broken schema", guest{describe: `(i32.store (i32.const 1132) (i32.const 1)) (i32.const 1104)`}, "input schema: not JSON", new(*host.DefinitionError)},
		{
			"refers to a schema on the network",
			guest{data: `{\"$ref\":\"https://example.com/x\"}`, describe: `(i32.store (i32.const 1128) (i32.const 2048)) (i32.store (i32.const 1132) (i32.const 32)) (i32.const 1104)`},
			"cannot be fetched", new(*host.DefinitionError),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := c.guest.load(t, h)
			limits := host.Limits{}
			if strings.HasPrefix(c.name, "waits for ever") {
				limits.Wall = 50 * time.Millisecond
			}
			r, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Limits: limits})
			if c.want == "" {
				if err != nil || string(r.Output) != `"ok"` {
					t.Fatalf("got %s, %v", r.Output, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.like == nil {
				c.like = new(*host.TrapError)
			}
			if !errors.As(err, c.like) {
				t.Errorf("got a %T", err)
			}
			if errors.As(err, new(*host.LimitError)) && !strings.HasPrefix(strings.TrimPrefix(err.Error(), "describe: "), "limit reached: ") {
				t.Errorf("got %v: what the host did meanwhile says nothing", err)
			}
		})
	}
}

// misnamed puts the box under the name of n bytes at 2048 and expects the error `invalid`.
func misnamed(n int) string {
	return fmt.Sprintf(`(call $give (local.get $env) (i32.const 2048) (i32.const %d) (local.get $box) (i32.const 256))
		(if (i32.ne (i32.load8_u (i32.const 256)) (i32.const 1)) (then unreachable))
		(if (i32.ne (i32.load8_u (i32.const 264)) (i32.const %d)) (then unreachable)) `, n, abi.CodeInvalid) + returns
}

// trapIn traps in a function with this name.
func trapIn(name string) guest {
	return guest{more: `(func $"` + name + `" (result i32) unreachable)`, call: `(call $"` + name + `")`}
}

// TestClaimedLimits distinguishes limits that only the guest reports from those that the host enforces.
func TestClaimedLimits(t *testing.T) {
	const tooDeep = "calls or a value nest too deep; end the recursion, or nest less"
	h := newHost(t, host.Options{})
	says := func(text string) guest {
		return guest{data: text, call: fmt.Sprintf(`(drop (call $error (i32.const 3))) (call $string (i32.const 0) (i32.const 2048) (i32.const %d)) (i32.const 128)`, len(text))}
	}
	for _, c := range []struct {
		name  string
		guest guest
		want  host.LimitError
	}{
		{"says memory", says("memory: string too long"), host.LimitError{Limit: "memory", Value: "64 MiB", Detail: "string too long", Claimed: true}},
		{"says stack", says("stack"), host.LimitError{Limit: "stack", Claimed: true}},
		{"says stack, and why", says("stack: full"), host.LimitError{Limit: "stack", Detail: "full; what the tool returns, or gave to structuredClone or the like, nests too deep", Claimed: true}},
		{"says promise", says("promise: nothing left"), host.LimitError{Limit: "promise", Detail: "nothing left", Claimed: true}},
		{"traps for memory", trapIn("stile:limit-memory"), host.LimitError{Limit: "memory", Value: "64 MiB", Claimed: true}},
		{"traps for the stack", trapIn("stile:limit-stack"), host.LimitError{Limit: "stack", Detail: "the engine's own stack is full: " + tooDeep, Claimed: true}},
		{"recurses", guest{more: `(func $deep (call $deep))`, call: `(call $deep) unreachable`}, host.LimitError{Limit: "stack", Value: printable.Size(wasmtime.MaxStack()), Detail: tooDeep}},
	} {
		_, err := c.guest.load(t, h).Call(t.Context(), "t", nil, nil)
		var limit *host.LimitError
		if !errors.As(err, &limit) || *limit != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, err, c.want)
		}
	}
}

// TestErrorsAreBounded has guests put as much text as they can into their errors.
func TestErrorsAreBounded(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{Output: 64 << 20}})
	long := `(drop (memory.grow (i32.const 600))) (memory.fill (i32.const 131072) (i32.const 97) (i32.const 4000000)) `
	text := func(slot int) string {
		return fmt.Sprintf(`(call $string (i32.const %d) (i32.const 131072) (i32.const 4000000)) `, slot)
	}
	for _, c := range []struct {
		name string
		call string
		like any
	}{
		{"a tool", long + `(drop (call $error (i32.const 0))) ` + text(0) + `(i32.const 128)`, new(*host.UnknownToolError)},
		{"20,000 problems", `(drop (memory.grow (i32.const 60))) (drop (call $error (i32.const 1))) (i32.store (i32.const 136) (i32.const 131072)) (i32.store (i32.const 140) (i32.const 20000)) (i32.const 128)`, new(*host.InputError)},
		{"a denial", long + `(drop (call $error (i32.const 2))) ` + text(1) + text(2) + `(i32.const 128)`, new(*host.GuestError)},
		{"a limit", long + `(drop (call $error (i32.const 3))) ` + text(0) + `(i32.const 128)`, new(*host.GuestError)},
		{"a failure", long + `(drop (call $error (i32.const 4))) ` + text(0) + text(1) + text(2) + `(i32.const 128)`, new(*host.GuestError)},
	} {
		_, err := guest{call: c.call}.load(t, h).Call(t.Context(), "t", nil, nil)
		if !errors.As(err, c.like) || len(fmt.Sprintf("%+v", err)) > 40_000 {
			t.Errorf("%s: a %T of %d bytes", c.name, err, len(fmt.Sprintf("%+v", err)))
		}
		var input *host.InputError
		if errors.As(err, &input) && len(input.Problems) != 20 {
			t.Errorf("%d problems", len(input.Problems))
		}
		var failed *host.GuestError
		if errors.As(err, &failed) && len(failed.Failure.Stack) > 20_000 {
			t.Errorf("%s: a stack of %d bytes", c.name, len(failed.Failure.Stack))
		}
	}
	var trap *host.TrapError
	_, err := trapIn(strings.Repeat("x", 10_000)+`\1b[2J`).load(t, h).Call(t.Context(), "t", nil, nil)
	if !errors.As(err, &trap) || trap.Functions[0] != strings.Repeat("x", 100)+"..." {
		t.Errorf("got %v", err)
	}
	_, err = trapIn(`\1b[2J`).load(t, h).Call(t.Context(), "t", nil, nil)
	if !errors.As(err, &trap) || trap.Functions[0] != `\x1b[2J` {
		t.Errorf("got %v", err)
	}
}

// TestMangledNames has guests trap in functions with mangled Rust and C++ names. Demangled in full, the last one would
// fill the machine's memory.
func TestMangledNames(t *testing.T) {
	h := newHost(t, host.Options{})
	bomb := "_Z1f1AIiiE"
	for i := range 12 { // each type has the previous one 16 times as its arguments
		bomb += "1BI" + strings.Repeat("S"+strings.ToUpper(strconv.FormatInt(int64(2*i), 36))+"_", 16) + "E"
	}
	for name, want := range map[string]string{
		"plain":                           "plain",
		"_ZN3foo3bar17h0123456789abcdefE": "foo::bar",
		"_ZN3foo3bar17h0123456789abcdef":  "_zN3foo3bar17h0123456789abcdef",
		"_ZN3foo9E":                       "_zN3foo9E",
		"_ZN3fooI3barEE":                  "_zN3fooI3barEE",
		"_Z3fooi":                         "_z3fooi",
		"___Z3fooi":                       "___z3fooi",
		"_GLOBAL__I__Z3fooi":              "_GLOBAL__I__z3fooi",
		"_ZN1aE" + bomb[4:]:               "_zN1aE1AIiiE",
		bomb:                              "_z" + bomb[2:100],
		"_RNvCs1234_5crate3foo":           "crate[3c1c0]::foo",
		"_RNvB_3foo":                      "{recursion limit reached}", // a place around it
		"_RINvC1a1bTeeETB7_B7_EE":         "_rINvC1a1bTeeETB7_B7_EE",
		"__RINvC1a1bTeeETB7_B7_EE":        "__rINvC1a1bTeeETB7_B7_EE",
		"RINvC1a1bTeeETB7_B7_EE":          "rINvC1a1bTeeETB7_B7_EE",
		"RunBigBatch":                     "RunBigBatch",
		strings.Repeat("n", 16<<10):       "nnn",
		strings.Repeat("n", 16<<10+1):     "<wasm function ",
	} {
		_, err := trapIn(name).load(t, h).Call(t.Context(), "t", nil, nil)
		trap, ok := errors.AsType[*host.TrapError](err)
		if !ok || !strings.HasPrefix(trap.Functions[0], want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRangesEnd has functions without calls or loops change a whole memory or table a thousand times.
func TestRangesEnd(t *testing.T) {
	h := newHost(t, host.Options{})
	for _, c := range []struct {
		times int
		text  string
	}{
		{400, `(memory.fill (i32.const 65536) (i32.const 1) (i32.const 65000000))`},
		{400, `(memory.copy (i32.const 65536) (i32.const 65537) (i32.const 65000000))`},
		{6000, `(memory.init $d (i32.const 65536) (i32.const 0) (i32.const 1000000))`},
		{6000, `(table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 19999))`},
		{3000, `(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 10000))`},
	} {
		g := guest{
			more: `(table $t 20000 funcref) (elem $e func ` + strings.Repeat("$many ", 10_000) + `) (data $d "` + strings.Repeat("0123456789", 100_000) + `")
				(func $many ` + strings.Repeat(c.text, c.times) + `)`,
			call: `(drop (memory.grow (i32.const 1000))) (call $many) ` + returns,
		}
		_, err := g.load(t, h).Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{CPU: time.Millisecond}})
		if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "cpu" {
			t.Errorf("%.12s: %v", c.text, err)
		}
	}
}

// TestManyDenials has 150 different operations denied, each twice, and ends with the last.
func TestManyDenials(t *testing.T) {
	h := newHost(t, host.Options{})
	deny := `(call $deny (local.get $box) (i32.const 2048) (i32.const 4) (i32.const 256)) `
	c := guest{uses: "open deny", data: "....    no rule", call: `(loop $l
		(i32.store8 (i32.const 2048) (i32.add (i32.const 97) (i32.rem_u (local.get $i) (i32.const 15))))
		(i32.store8 (i32.const 2049) (i32.add (i32.const 97) (i32.div_u (local.get $i) (i32.const 15)))) ` + deny + deny + `
		(local.set $i (i32.add (local.get $i) (i32.const 1)))
		(br_if $l (i32.lt_u (local.get $i) (i32.const 150))))
		(drop (call $error (i32.const 2))) (call $string (i32.const 0) (i32.const 1032) (i32.const 3))
		(call $string (i32.const 1) (i32.const 2048) (i32.const 4)) (call $string (i32.const 2) (i32.const 2056) (i32.const 7)) (i32.const 128)`}.load(t, h)
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}})
	var denied *host.DeniedError
	if !errors.As(err, &denied) || denied.Denial.Operation != "oj.." {
		t.Errorf("got %v", err)
	}
	// The 51 that do not fit each replace the last entry. All but the latest are dropped, and its second denial is not counted.
	if len(r.Usage.Denials) != 100 || r.Usage.DenialsDropped != 50 || r.Usage.Denials[99].Operation != "oj.." {
		t.Errorf("%d kept, %d dropped", len(r.Usage.Denials), r.Usage.DenialsDropped)
	}
	c = guest{uses: "open deny", call: `(drop (memory.grow (i32.const 16))) (memory.fill (i32.const 131072) (i32.const 97) (i32.const 900000))
		(call $deny (local.get $box) (i32.const 131072) (i32.const 900000) (i32.const 256)) ` + returns}.load(t, h)
	r, err = c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}})
	if err != nil || len(r.Usage.Denials) != 1 || len(r.Usage.Denials[0].Operation) != 4096 {
		t.Errorf("got %v", err)
	}
	c = guest{uses: "open deny", call: `(memory.fill (i32.const 65536) (i32.const 97) (i32.const 4096)) (loop $l
		(i32.store8 (i32.const 65536) (i32.add (i32.const 32) (local.get $i)))
		(call $deny (local.get $box) (i32.const 65536) (i32.const 4096) (i32.const 256))
		(br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 90)))) ` + returns}.load(t, h)
	r, err = c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}})
	size := 0
	for _, d := range r.Usage.Denials {
		size += len(d.Operation) + len(d.Reason) + len(d.Remedy)
	}
	if err != nil || size > 70<<10 || len(r.Usage.Denials)+r.Usage.DenialsDropped != 90 || r.Usage.Denials[len(r.Usage.Denials)-1].Operation[0] != 32+89 {
		t.Errorf("%d kept with %d bytes, %d dropped, %v", len(r.Usage.Denials), size, r.Usage.DenialsDropped, err)
	}
}

// TestObserve checks that each operation is observed once, however it ends.
func TestObserve(t *testing.T) {
	h := newHost(t, host.Options{})
	for _, c := range []struct {
		name  string
		guest guest
		want  string
	}{
		{"an answer", guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) ` + returns}, "get <nil>;[method]box.get <nil>;"},
		{"a panic", guest{uses: "open panic", call: `(call $panic (local.get $box)) ` + returns}, "get <nil>;[method]box.panic panic in a host function: the embedder's bug;"},
		{"a refusal", guest{uses: "poll", call: `(call $poll (i32.const 0) (i32.const 0) (i32.const 256)) ` + returns}, "poll guest trapped: poll of an empty list;"},
	} {
		var seen strings.Builder
		_, _ = c.guest.load(t, h).Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Observe: func(o host.Operation) { fmt.Fprintf(&seen, "%s %v;", o.Func, o.Err) }})
		if seen.String() != c.want {
			t.Errorf("%s: saw %s, want %s", c.name, seen.String(), c.want)
		}
	}
}

// TestRefused loads components that require more than this host allows.
func TestRefused(t *testing.T) {
	h := newHost(t, host.Options{MaxComponent: 4 << 20})
	wat := func(text string) []byte {
		wasm, err := wasmtime.WAT(text)
		if err != nil {
			t.Fatal(err)
		}
		return wasm
	}
	whole := componentize(t, guest{}.core())
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"nothing", nil, "not WebAssembly"},
		{"text", []byte("hello, world"), "not WebAssembly"},
		{"a core module", wat(`(module)`), "a core module, not a component"},
		{"half a component", whole[:len(whole)/2], "component refused"},
		{"a component cut in a section", whole[:11], "component refused"},
		{"garbage in a component", append(append([]byte{}, whole[:len(whole)/2]...), make([]byte, len(whole)/2)...), "component refused"},
		{"100 MB", make([]byte, 100_000_000), "more than 4 MiB"},
		{"no exports", wat(`(component)`), "stile:extension/tools@0.1.0: is not exported"},
		{"10,000 exports", wat("(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) (func $f (canon lift (core func $i \"f\")))" + manyTimes(10_000, `(export "f%d" (func $f))`) + ")"), "is not exported"},
		{"2,000 resources", wat(`(component (import "wasi:a/b@0.2.0" (instance ` + manyTimes(2_000, `(export "r%d" (type (sub resource)))`) + `)))`), "more than 1000 resources"},
		{"200,000 imports", wat(`(component (import "wasi:a/b@0.2.0" (instance (type $t (func)) ` + manyTimes(200_000, `(export "f%d" (func (type $t)))`) + `)))`), "more than 100000 parts"},
		{
			"a type of half a million parts",
			wat(`(component (import "wasi:a/b@0.2.0" (instance (type (tuple u8 u8)) ` + manyTimes(17, `(type (tuple %[1]d %[1]d))`) + `(export "f" (func (result 17))))))`),
			"more than 100000 parts",
		},
		{
			"long names of fields, used 10,000 times",
			wat(`(component (import "wasi:a/b@0.2.0" (instance (type (record (field "` + strings.Repeat("a", 99_000) + `" u8))) (export "r" (type (eq 0)))` +
				`(type (tuple ` + strings.Repeat("1 ", 100) + `)) (type (tuple ` + strings.Repeat("(list 2) ", 100) + `)) (export "f" (func (result 3))))))`),
			"the names in its types, written out wherever they are used, have more than 8 MiB",
		},
		{
			"many names of cases, used 100 times",
			wat(`(component (import "wasi:a/b@0.2.0" (instance (type (enum` + manyTimes(10_000, ` "e%d"`) + `)) (export "e" (type (eq 0)))` +
				`(type (tuple ` + strings.Repeat("1 ", 100) + `)) (export "f" (func (param "x" 2))))))`),
			"the names in its types, written out wherever they are used, have more than 8 MiB",
		},
		{
			"long names of exports, in instances in instances",
			wat(`(component (type (instance (export "` + strings.Repeat("a", 99_000) + `" (func))))` +
				`(type (instance (alias outer 1 0 (type))` + manyTimes(50, `(export "x%d" (instance (type 0)))`) + `))` +
				`(type (instance (alias outer 1 1 (type))` + manyTimes(50, `(export "x%d" (instance (type 0)))`) + `)) (import "wasi:a/b@0.2.0" (instance (type 2))))`),
			"the names in its types, written out wherever they are used, have more than 8 MiB",
		},
		{"a free function", wat(`(component (import "steal" (func)))`), "steal: a free function is authority without a handle"},
		{"an unknown interface", wat(`(component (import "evil:x/y@1.0.0" (instance)))`), "evil:x/y@1.0.0: this host has no such import"},
		{"another version", wat(`(component (import "stile:capability/kv@0.2.0" (instance)))`), "stile:capability/kv@0.2.0: this host has no such import"},
		{"an unknown function", wat(`(component (import "stile:capability/kv@0.1.0" (instance (export "steal" (func)))))`), "#steal: there is no such function"},
		{"an unknown resource", wat(`(component (import "stile:capability/kv@0.1.0" (instance (export "safe" (type (sub resource))))))`), "#safe: there is no such resource"},
		{
			"a method of another type",
			wat(`(component (import "stile:capability/random@0.1.0" (instance (export "random" (type $r (sub resource))) (export "[method]random.u64" (func (param "self" (borrow $r)) (result u32))))))`),
			"[method]random.u64: its type is not the host's: result: u32, not u64",
		},
		{
			"a method without its handle",
			wat(`(component (import "stile:capability/poll@0.1.0" (instance (export "poll" (func (param "pollables" (list u32)) (result (list u32)))))))`),
			"its type is not the host's",
		},
		{
			"a handle of another resource",
			wat(`(component (import "stile:capability/env@0.1.0" (instance $e (export "env" (type (sub resource))))) (alias export $e "env" (type $env))
				(import "stile:capability/poll@0.1.0" (instance (alias outer 1 $env (type $p)) (export "poll" (func (param "pollables" (list (borrow $p))) (result (list u32)))))))`),
			"a handle of stile:capability/env@0.1.0/env, not of stile:capability/poll@0.1.0/pollable",
		},
		{"an engine that is not there", wat(`(component (import "engine-xab" (core module)))`), "engine-xab: the core module is not loaded"},
		{"WASI of another time", wat(`(component (import "wasi:cli/environment@0.3.0" (instance)))`), "only WASI 0.2 is supported"},
		{"four memories", wat(`(component (core module $m (memory 1))` + strings.Repeat("(core instance (instantiate $m))", 4) + ")"), "contains 4 Wasm linear memories, which exceeds the configured maximum of 1"},
		{
			"5,000 cases in 1,000 functions that are lowered",
			wat(`(component (import "wasi:a/b@0.2.0" (instance $w (type (enum` + manyTimes(5_000, ` "e%d"`) + `)) (export "e" (type $e (eq 0))) (export "f" (func (param "x" $e)))))
				(alias export $w "f" (func $f)) ` + strings.Repeat(`(core func (canon lower (func $f)))`, 1_000) + `)`),
			"written out wherever they are used",
		},
		{
			"5,000 cases in 1,000 functions that are lifted",
			wat(`(component (core module $m (func (export "f") (param i32))) (core instance $i (instantiate $m)) (type $e (enum` + manyTimes(5_000, ` "e%d"`) + `))
				(type $f (func (param "x" $e))) ` + strings.Repeat(`(func (type $f) (canon lift (core func $i "f")))`, 1_000) + `)`),
			"written out wherever they are used",
		},
		{"a resource of its own", wat(`(component (type $r (resource (rep i32))) (core func (canon resource.new $r)))`), "handles of its own resource"},
		{
			"25 instances of 280,000 elements",
			wat(`(component (core module $t (table (export "t") 20000 funcref)) (core instance $t (instantiate $t))
				(core module $m (import "" "t" (table 20000 funcref)) (func) ` + strings.Repeat(`(elem (i32.const 0) func `+strings.Repeat("0 ", 20_000)+`)`, 14) + `)` +
				strings.Repeat(`(core instance (instantiate $m (with "" (instance $t))))`, 25) + `)`),
			"to start; the limit is 500ms",
		},
		{"a stream", wat(`(component (import "stile:capability/kv@0.1.0" (instance (export "get" (func async)))))`), "async"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := h.Load(t.Context(), c.wasm)
			var refused *host.LoadError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func manyTimes(n int, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, text, i)
	}
	return b.String()
}
