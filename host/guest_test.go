package host_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

// testWIT is an embedder's capability. The hostile guests of these tests receive it.
const testWIT = `package test:cap@1.0.0;
interface box {
  variant either { nothing, number(u64), text(string), lists(tuple<list<string>, list<u16>>) }
  record thing { scheme: string, port: option<u16>, maybe: option<option<string>>, words: list<string>, either: either, pair: tuple<u8, f64>, path: string }
  use stile:capability/types@0.1.0.{error};
  use stile:capability/poll@0.1.0.{pollable};
  resource box {
    get: func() -> result<string, error>;
    put: func(bytes: list<u8>) -> result<_, error>;
    fetch: func(len: u32) -> list<u8>;
    deny: func(what: string) -> result<_, error>;
    never: func() -> pollable;
    panic: func();
    split: func() -> box;
    things: func(many: list<thing>);
    texts: func(many: list<string>);
    text: func(text: string);
    numbers: func(many: list<tuple<u64, f32, bool>>);
    nested: func(many: list<list<list<u8>>>);
    either: func(either: either);
    nest: func(bytes: option<list<u8>>) -> option<list<u8>>;
  }
}
`

// imports are the functions that a guest's text may name, with their core types.
var imports = map[string]string{
	"names":     `"stile:capability/env@0.1.0" "[method]env.names" (func $names (param i32 i32))`,
	"drop-env":  `"stile:capability/env@0.1.0" "[resource-drop]env" (func $drop-env (param i32))`,
	"subset":    `"stile:capability/env@0.1.0" "[method]env.subset" (func $subset (param i32 i32 i32 i32))`,
	"vars":      `"stile:capability/env@0.1.0" "[method]env.vars" (func $vars (param i32 i32))`,
	"poll":      `"stile:capability/poll@0.1.0" "poll" (func $poll (param i32 i32 i32))`,
	"park":      `"stile:capability/poll@0.1.0" "park" (func $park (param i32 i32) (result i32))`,
	"block":     `"stile:capability/poll@0.1.0" "[method]pollable.block" (func $block (param i32))`,
	"open":      `"test:cap/box@1.0.0" "get" (func $open (param i32 i32 i32 i32))`,
	"give":      `"test:cap/box@1.0.0" "put" (func $give (param i32 i32 i32 i32 i32))`,
	"get":       `"test:cap/box@1.0.0" "[method]box.get" (func $get (param i32 i32))`,
	"put":       `"test:cap/box@1.0.0" "[method]box.put" (func $put (param i32 i32 i32 i32))`,
	"fetch":     `"test:cap/box@1.0.0" "[method]box.fetch" (func $fetch (param i32 i32 i32))`,
	"deny":      `"test:cap/box@1.0.0" "[method]box.deny" (func $deny (param i32 i32 i32 i32))`,
	"never":     `"test:cap/box@1.0.0" "[method]box.never" (func $never (param i32) (result i32))`,
	"panic":     `"test:cap/box@1.0.0" "[method]box.panic" (func $panic (param i32))`,
	"nest":      `"test:cap/box@1.0.0" "[method]box.nest" (func $nest (param i32 i32 i32 i32 i32))`,
	"things":    `"test:cap/box@1.0.0" "[method]box.things" (func $things (param i32 i32 i32))`,
	"texts":     `"test:cap/box@1.0.0" "[method]box.texts" (func $texts (param i32 i32 i32))`,
	"text":      `"test:cap/box@1.0.0" "[method]box.text" (func $text (param i32 i32 i32))`,
	"numbers":   `"test:cap/box@1.0.0" "[method]box.numbers" (func $numbers (param i32 i32 i32))`,
	"nested":    `"test:cap/box@1.0.0" "[method]box.nested" (func $nested (param i32 i32 i32))`,
	"either":    `"test:cap/box@1.0.0" "[method]box.either" (func $either (param i32 i32 i64 i32 i32 i32))`,
	"split":     `"test:cap/box@1.0.0" "[method]box.split" (func $split (param i32) (result i32))`,
	"bucket":    `"stile:capability/kv@0.1.0" "get" (func $bucket (param i32 i32 i32 i32))`,
	"list":      `"stile:capability/kv@0.1.0" "[method]bucket.list" (func $list (param i32 i32 i32 i32 i32 i32 i32 i32))`,
	"directory": `"stile:capability/workspace@0.1.0" "get" (func $directory (param i32 i32 i32 i32))`,
	"grep":      `"stile:capability/workspace@0.1.0" "[method]directory.grep" (func $grep (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))`,
	"stat":      `"stile:capability/workspace@0.1.0" "[method]directory.stat" (func $stat (param i32 i32 i32 i32))`,
	"store":     `"stile:capability/blob@0.1.0" "get" (func $store (param i32 i32 i32 i32))`,
	"create":    `"stile:capability/blob@0.1.0" "[method]store.create" (func $create (param i32 i32 i32 i32))`,
	"append":    `"stile:capability/blob@0.1.0" "[method]writer.append" (func $append (param i32 i32 i32 i32))`,
	"client":    `"stile:capability/http@0.1.0" "get" (func $client (param i32 i32 i32 i32))`,
	"start":     `"stile:capability/http@0.1.0" "[method]client.start" (func $start (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))`,
	"log-get":   `"stile:capability/console@0.1.0" "get" (func $log-get (param i32 i32 i32 i32))`,
	"log":       `"stile:capability/console@0.1.0" "[method]console.log" (func $log (param i32 i32 i32 i32))`,
	"clock":     `"stile:capability/clock@0.1.0" "get" (func $clock (param i32 i32 i32 i32))`,
	"after":     `"stile:capability/clock@0.1.0" "[method]clock.subscribe" (func $after (param i32 i64) (result i32))`,
	"runner":    `"stile:capability/code@0.1.0" "get" (func $runner (param i32 i32 i32 i32))`,
	"lend":      `"stile:capability/code@0.1.0" "put" (func $lend (param i32 i32 i32 i32 i32))`,
	"run":       `"stile:capability/code@0.1.0" "[method]runner.start" (func $run (param i32 i32 i32 i32 i32 i32 i32 i32 i32))`,
	"drop-poll": `"stile:capability/poll@0.1.0" "[resource-drop]pollable" (func $drop-poll (param i32))`,
	"fd-write":  `"wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32))`,
	"drop":      `"test:cap/box@1.0.0" "[resource-drop]box" (func $drop (param i32))`,
}

// guest is a hand-written extension with one tool "t". Its parts are WebAssembly text; the zero value returns `"ok"`.
type guest struct {
	uses string // names from imports, separated by spaces
	// call is the body of the tool, which has $env and $box (a handle of the binding "box", when `open` is used) and leaves
	// the address of the result. $ok, $text and $fail make results from the literals in data.
	call string
	// start and resume are the bodies of a guest that also makes calls in steps, if start is not empty. start has what call has. $none
	// makes the result of a guest that waits, and $some that of one that does not.
	start, resume string
	// describe is the body of describe. By default it returns one tool that accepts any input.
	describe string
	// data is text at address 2048. more is further module fields. realloc precedes the allocation of parameter 3 bytes.
	data, more, realloc string
}

const returns = `(call $ok (i32.const 1024) (i32.const 4))`

func (g guest) core() string {
	var head strings.Builder
	opens := ""
	for name := range strings.FieldsSeq(g.uses) {
		fmt.Fprintf(&head, "(import %s)\n", imports[name])
		if name == "open" {
			opens = `(call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256))
				(if (i32.load8_u (i32.const 256)) (then unreachable))
				(local.set $box (i32.load (i32.const 264)))`
		}
	}
	if g.call == "" {
		g.call = returns
	}
	if g.describe == "" {
		g.describe = `(i32.const 1104)`
	}
	return `(module
		` + head.String() + `
		(memory (export "memory") 2)
		(global $next (mut i32) (i32.const 65536))
		(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $need i32)
			` + g.realloc + `
			(local.set $need (i32.add (global.get $next) (i32.add (local.get 3) (i32.const 15))))
			(block $fits
				(br_if $fits (i32.le_u (local.get $need) (i32.mul (memory.size) (i32.const 65536))))
				(drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 2)))))
			(global.get $next)
			(global.set $next (i32.and (local.get $need) (i32.const -16))))
		(data (i32.const 1024) "\"ok\"    box {}t   ")
		(data (i32.const 1104) "\58\04\00\00\01\00\00\00")
		(data (i32.const 1112) "\0e\04\00\00\01\00\00\00\00\04\00\00\00\00\00\00\0c\04\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
		(data (i32.const 2048) "` + g.data + `")
		(func $ok (param i32 i32) (result i32)
			(i32.store (i32.const 128) (i32.const 0)) (i32.store (i32.const 132) (local.get 0)) (i32.store (i32.const 136) (local.get 1))
			(i32.const 128))
		(func $error (param $case i32) (result i32)
			(i32.store (i32.const 128) (i32.const 1)) (i32.store (i32.const 132) (local.get $case))
			(memory.fill (i32.const 136) (i32.const 0) (i32.const 64))
			(i32.const 128))
		(func $string (param $slot i32) (param $at i32) (param $len i32)
			(i32.store (i32.add (i32.const 136) (i32.mul (local.get $slot) (i32.const 8))) (local.get $at))
			(i32.store (i32.add (i32.const 140) (i32.mul (local.get $slot) (i32.const 8))) (local.get $len)))
		` + g.more + `
		(func (export "stile:extension/tools@0.1.0#describe") (result i32) ` + g.describe + `)
		(func (export "stile:extension/tools@0.1.0#call") (param $tool i32) (param i32) (param $input i32) (param i32) (param $env i32) (result i32)
			(local $box i32) (local $i i32)
			` + opens + g.call + `)` + g.steps(opens) + `)`
}

func (g guest) steps(opens string) string {
	if g.start == "" {
		return ""
	}
	if g.resume == "" {
		g.resume = `(call $some)`
	}
	return `
		(func $none (result i32) (i64.store (i32.const 128) (i64.const 0)) (i32.const 128))
		(func $some (result i32)
			(i32.store (i32.const 128) (i32.const 0)) (i32.store (i32.const 132) (i32.const 1))
			(i32.store (i32.const 136) (i32.const 1024)) (i32.store (i32.const 140) (i32.const 4)) (i32.const 128))
		(func (export "stile:extension/stepwise@0.1.0#start") (param $tool i32) (param i32) (param $input i32) (param i32) (param $env i32) (result i32)
			(local $box i32) (local $i i32)
			` + opens + g.start + `)
		(func (export "stile:extension/stepwise@0.1.0#resume") (result i32) ` + g.resume + `)`
}

// componentize makes a component from core text, in a world that can import everything.
func componentize(t testing.TB, core string) []byte {
	t.Helper()
	module, err := wasmtime.WAT(core)
	if err != nil {
		t.Fatal(err)
	}
	return componentizeModule(t, module)
}

func componentizeModule(t testing.TB, module []byte) []byte {
	t.Helper()
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension(), testWIT)
	if err != nil {
		t.Fatal(err)
	}
	world := *known.World("stile:extension/with-everything@0.1.0")
	world.Imports = append(world.Imports, known.Interface("test:cap/box@1.0.0"))
	if bytes.Contains(module, []byte(abi.ExtensionStepwise)) {
		world.Exports = append(slices.Clone(world.Exports), known.Interface(abi.ExtensionStepwise))
	}
	if bytes.Contains(module, []byte(abi.ExtensionMemory)) {
		world.Exports = append(slices.Clone(world.Exports), known.Interface(abi.ExtensionMemory))
	}
	component, err := toolchain.Componentize(&world, module)
	if err != nil {
		t.Fatal(err)
	}
	return component
}

func newHost(t testing.TB, o host.Options) *host.Host {
	t.Helper()
	o.WIT = append(o.WIT, testWIT)
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (g guest) load(t testing.TB, h *host.Host) *host.Component {
	t.Helper()
	c, err := h.Load(t.Context(), componentize(t, g.core()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// zeros returns a text of this length.
func zeros(length int) string {
	return fmt.Sprintf(`(i32.store (i32.const 640) (i32.const 4096)) (i32.store (i32.const 644) (i32.const %d)) (i32.const 640)`, length)
}

// remembers are the functions of stile:extension/memory for a guest without memory to keep. Each of its blocks is zero, and its first
// page has changed. Names in replaced have other bodies.
func remembers(replaced map[string]string) string {
	var b strings.Builder
	for _, f := range []struct{ name, signature, body string }{
		{"size", "(result i32)", `(i32.mul (memory.size) (i32.const 65536))`},
		{"grow", "(param i32)", ``},
		{"changes", "(param i32 i32 i32 i32) (result i32)", zeros(312)},
		{"peek", "(param i32 i32) (result i32)", `(i32.store (i32.const 640) (i32.const 4096))
			(local.set 1 (i32.div_u (local.get 1) (i32.const 8)))
			(i32.store (i32.const 644) (i32.mul (i32.sub (local.get 1) (i32.div_u (i32.add (local.get 1) (i32.const 7)) (i32.const 8))) (i32.const 592))) (i32.const 640)`},
		{"patch", "(param i32 i32)", ``},
		{"discard", "(param i32)", `(call $drop-env (local.get 0))`},
		{"adopt0", "(param i32)", ``},
		{"adopt1", "(param i32)", ``},
		{"adopt2", "(param i32)", ``},
	} {
		if body, ok := replaced[f.name]; ok {
			f.body = body
		}
		fmt.Fprintf(&b, "(func (export \"stile:extension/memory@0.1.0#%s\") %s %s)\n", f.name, f.signature, f.body)
	}
	return b.String()
}
