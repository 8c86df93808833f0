package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
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
	return abi.Deny(abi.Denial{Operation: what, Reason: "no rule", Grant: `{"box":true}`})
}
func (*box) Never(context.Context) abi.Pollable { return make(chan struct{}) }
func (*box) Panic(context.Context)              { panic("the embedder's bug") }

// TestHostileGuests has guests, written by hand, that break the contract in every way the ABI leaves open.
func TestHostileGuests(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 200 * time.Millisecond, Wall: 10 * time.Second, Handles: 50, Pending: 4, Output: 1000}})
	denied := `(call $deny (local.get $box) (i32.const 2048) (i32.const 4) (i32.const 256))`
	// claim returns the error case `denied` with binding "box", the operation and reason at 2048 and 2056.
	claim := `(drop (call $error (i32.const 2))) (call $string (i32.const 0) (i32.const 1032) (i32.const 3))
		(call $string (i32.const 1) (i32.const 2048) (i32.const 4)) (call $string (i32.const 2) (i32.const 2056) (i32.const 7)) (i32.const 128)`
	for _, c := range []struct {
		name  string
		guest guest
		// want is a part of the error's text and like its type; "" is success.
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
		{"waits for more than it may", guest{uses: "open never", call: `(loop $l (drop (call $never (local.get $box))) (br $l)) unreachable`}, "limit reached: pending (4)", new(*host.LimitError)},
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
		{"passes more bytes than it may", guest{uses: "open put", call: `(drop (memory.grow (i32.const 8))) (call $put (local.get $box) (i32.const 0) (i32.const 300000) (i32.const 256)) ` + returns}, "limit reached: bytes (256 KiB", new(*host.LimitError)},
		{"asks for more bytes than it may", guest{uses: "open fetch", call: `(call $fetch (local.get $box) (i32.const 300000) (i32.const 256)) ` + returns}, "300000 bytes", new(error)},
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
		{"says it ran out", guest{data: "promise: never", call: `(drop (call $error (i32.const 3))) (call $string (i32.const 0) (i32.const 2048) (i32.const 14)) (i32.const 128)`}, "limit reached: promise (never)", new(*host.LimitError)},
		{"describes tools out of bounds", guest{describe: `(i32.store (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.const 0x1000000)) (i32.const 64)`}, "out of bounds", nil},
		{"describes two tools of one name", guest{describe: `(memory.copy (i32.const 1152) (i32.const 1112) (i32.const 40)) (i32.store (i32.const 1108) (i32.const 2)) (i32.const 1104)`}, "there are two of that name", new(*host.DefinitionError)},
		{"describes a tool with a bad name", guest{describe: `(i32.store8 (i32.const 1038) (i32.const 27)) (i32.const 1104)`}, "its name must be", new(*host.DefinitionError)},
		{"describes a tool with a broken schema", guest{describe: `(i32.store (i32.const 1132) (i32.const 1)) (i32.const 1104)`}, "input schema: not JSON", new(*host.DefinitionError)},
		{
			"refers to a schema on the network",
			guest{data: `{\"$ref\":\"https://example.com/x\"}`, describe: `(i32.store (i32.const 1128) (i32.const 2048)) (i32.store (i32.const 1132) (i32.const 32)) (i32.const 1104)`},
			"is not fetched", new(*host.DefinitionError),
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
		})
	}
}

// TestRefused loads components that ask for more than this host gives.
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
		{"10,000 exports", wat("(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) (func $f (canon lift (core func $i \"f\")))" + manyExports(10_000) + ")"), "is not exported"},
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
		{"WASI of another time", wat(`(component (import "wasi:cli/environment@0.3.0" (instance)))`), "only WASI 0.2 is answered"},
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

func manyExports(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "(export \"f%d\" (func $f))", i)
	}
	return b.String()
}
