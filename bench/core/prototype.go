package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"
)

// The prototype is the minimum that the same engine can do: a memory image with one tool in it, evaluated beforehand, and a
// hand-written component whose call(tool, input) takes strings and whose only import is log(string). It has no env, handles, schema
// or limits, and checks nothing. What Stile takes beyond it is the price of being a host.

// prelude is all that the tool finds besides the language.
const prelude = `
const tools = {};
globalThis.tool = (name, run) => { tools[name] = run; };
let answer;
globalThis.invoke = (name, input) => {
  Promise.resolve(tools[name](JSON.parse(input), { log: (text) => host_log(String(text)) }))
    .then((ok) => { answer = JSON.stringify({ ok }); }, (error) => { answer = JSON.stringify({ error: String(error) }); });
};
globalThis.take = () => answer;
`

const prototypeTool = `
const R = 6371;
tool("haversine", async ({ lat1, lon1, lat2, lon2 }, env) => {
  const d2r = Math.PI / 180, dLat = (lat2 - lat1) * d2r, dLon = (lon2 - lon1) * d2r;
  const a = Math.sin(dLat / 2) ** 2 + Math.cos(lat1 * d2r) * Math.cos(lat2 * d2r) * Math.sin(dLon / 2) ** 2;
  await null;
  env.log("done");
  return { km: 2 * R * Math.asin(Math.sqrt(a)) };
});
`

// snapshot is the memory of an engine that is ready to be called, with the positions of the boxed values in it.
type snapshot struct {
	memory                  []byte
	pages                   int32 // of the engine that goes on with it, whose stack may be above the memory
	invoke, take, undefined int32
}

// engineImports are the engine's imports besides its memory. The tool reaches only host_call.
var engineImports = []struct{ module, name, signature, body string }{
	{"env", "host_get_timezone_offset", "(param i32 i32) (result i32)", "i32.const 0"},
	{"env", "host_interrupt", "(result i32)", "i32.const 0"},
	{"env", "host_promise_rejection", "(param i32 i32 i32)", ""},
	{"env", "host_module_normalize", "(param i32 i32) (result i32)", "i32.const 0"},
	{"env", "host_module_load", "(param i32 i32) (result i32)", "i32.const 0"},
	{"env", "host_call", "(param i32 i32 i32 i32 i32) (result i32)", "local.get 0 local.get 1 local.get 2 local.get 3 local.get 4 i32.const 0 call_indirect (type $call)"},
	{"wasi_snapshot_preview1", "clock_time_get", "(param i32 i64 i32) (result i32)", "i32.const 0"},
	{"wasi_snapshot_preview1", "fd_close", "(param i32) (result i32)", "i32.const 8"},
	{"wasi_snapshot_preview1", "fd_fdstat_get", "(param i32 i32) (result i32)", "i32.const 8"},
	{"wasi_snapshot_preview1", "fd_seek", "(param i32 i64 i32 i32) (result i32)", "i32.const 8"},
	{"wasi_snapshot_preview1", "fd_write", "(param i32 i32 i32 i32) (result i32)", "i32.const 8"},
	{"wasi_snapshot_preview1", "random_get", "(param i32 i32) (result i32)", "i32.const 0"},
}

// engineExports is what the component calls.
var engineExports = []struct{ name, signature string }{
	{"wasm_malloc", "(param i32) (result i32)"},
	{"qjs_new_string", "(param i32 i32) (result i32)"},
	{"qjs_call", "(param i32 i32 i32 i32) (result i32)"},
	{"qjs_is_job_pending", "(result i32)"},
	{"qjs_execute_pending_job", "(result i32)"},
	{"qjs_get_string_len", "(param i32 i32) (result i32)"},
	{"qjs_get_undefined", "(result i32)"},
}

// trampoline is a module that supplies the engine's imports. host_call goes through its table, which is filled once the engine
// exists.
func trampoline() string {
	var b strings.Builder
	b.WriteString(`module $trampoline (type $call (func (param i32 i32 i32 i32 i32) (result i32))) (table (export "table") 1 funcref)` + "\n")
	for _, i := range engineImports {
		fmt.Fprintf(&b, "(func (export %q) %s %s)\n", i.name, i.signature, i.body)
	}
	return b.String()
}

// evaluator runs the published engine as a core module.
type evaluator struct {
	store    *wasmtime.Store
	instance *wasmtime.Instance
	memory   *wasmtime.Memory
	err      error // the first
}

// call calls an export of the engine that takes and returns i32.
func (e *evaluator) call(name string, args ...any) int32 {
	if e.err != nil {
		return 0
	}
	f := e.instance.GetFunc(e.store, name)
	if f == nil {
		e.err = fmt.Errorf("the engine has no %s", name)
		return 0
	}
	result, err := f.Call(e.store, args...)
	if err != nil {
		e.err = fmt.Errorf("%s: %w", name, err)
	}
	n, _ := result.(int32)
	return n
}

// text puts a string, followed by a zero byte, into the engine's memory.
func (e *evaluator) text(s string) int32 {
	p := e.call("wasm_malloc", int32(len(s)+1))
	if e.err == nil {
		copy(e.memory.UnsafeData(e.store)[p:], s+"\x00")
	}
	return p
}

func (e *evaluator) evaluate(code string) int32 {
	value := e.call("qjs_eval", e.text(code), int32(len(code)), e.text("prototype.js"), int32(0))
	if e.call("qjs_is_exception", value) != 0 && e.err == nil {
		length := e.call("wasm_malloc", int32(4))
		p := e.call("qjs_get_string_len", e.call("qjs_get_exception"), length)
		data := e.memory.UnsafeData(e.store)
		e.err = fmt.Errorf("evaluate: %s", data[p:][:binary.LittleEndian.Uint32(data[length:])])
	}
	return value
}

// takeSnapshot evaluates the tool in the engine.
func takeSnapshot(quickjs []byte) (*snapshot, error) {
	engine := wasmtime.NewEngine()
	module, err := wasmtime.NewModule(engine, quickjs)
	if err != nil {
		return nil, err
	}
	supply, err := wasmtime.Wat2Wasm("(" + trampoline() + ")")
	if err != nil {
		return nil, err
	}
	supplies, err := wasmtime.NewModule(engine, supply)
	if err != nil {
		return nil, err
	}
	e := &evaluator{store: wasmtime.NewStore(engine)}
	linker := wasmtime.NewLinker(engine)
	for _, name := range []string{"env", "wasi_snapshot_preview1"} {
		instance, err := linker.Instantiate(e.store, supplies)
		if err != nil {
			return nil, err
		}
		if err := linker.DefineInstance(e.store, name, instance); err != nil {
			return nil, err
		}
	}
	if e.instance, err = linker.Instantiate(e.store, module); err != nil {
		return nil, err
	}
	e.memory = e.instance.GetExport(e.store, "memory").Memory()
	e.call("_initialize")
	e.call("qjs_init")
	log := e.call("qjs_new_host_function", e.text("log"), int32(len("log")), int32(0))
	e.call("qjs_set_prop_string", e.call("qjs_get_global"), e.text("host_log"), log)
	e.evaluate(prelude)
	e.evaluate(prototypeTool)
	s := &snapshot{invoke: e.evaluate("invoke"), take: e.evaluate("take"), undefined: e.call("qjs_get_undefined")}
	e.call("qjs_run_gc")
	if e.err != nil {
		return nil, e.err
	}
	s.memory = bytes.Clone(e.memory.UnsafeData(e.store))
	return s, nil
}

// pagesOf returns the pages of the memory that an engine imports.
func pagesOf(engine []byte) (int32, error) {
	module, err := wasmtime.NewModule(wasmtime.NewEngine(), engine)
	if err != nil {
		return 0, err
	}
	for _, i := range module.Imports() {
		if memory := i.Type().MemoryType(); memory != nil {
			return int32(memory.Minimum()), nil
		}
	}
	return 0, errors.New("the engine imports no memory")
}

// component assembles the component, which imports the engine with its memory taken out as "engine".
func (s *snapshot) component() ([]byte, error) {
	var imports, exports, shimImports strings.Builder
	for _, i := range engineImports {
		fmt.Fprintf(&imports, "(import %q %q (func %s))\n", i.module, i.name, i.signature)
	}
	for _, e := range engineExports {
		fmt.Fprintf(&exports, "(export %q (func %s))\n", e.name, e.signature)
		fmt.Fprintf(&shimImports, "(import \"engine\" %q (func $%[1]s %s))\n", e.name, e.signature)
	}
	var env strings.Builder
	for _, i := range engineImports {
		if i.module == "env" {
			fmt.Fprintf(&env, "(export %q (func $trampoline %[1]q))", i.name)
		}
	}
	return wasmtime.Wat2Wasm(fmt.Sprintf(`(component
  (core module $image (memory (export "memory") %[1]d) %[2]s)
  (import "log" (func $log (param "text" string)))
  (import "engine" (core module $engine %[3]s (import "env" "memory" (memory %[1]d)) %[4]s))
  (core %[5]s)
  (core module $shim
    (import "image" "memory" (memory 1))
    (import "trampoline" "table" (table 1 funcref))
    (import "host" "log" (func $log (param i32 i32)))
    %[6]s
    (elem (i32.const 0) $host_call)
    (func $host_call (param i32 i32 i32 i32) (param $argv i32) (result i32) (local $length i32)
      (local.set $length (call $wasm_malloc (i32.const 4)))
      (call $log (call $qjs_get_string_len (i32.load (local.get $argv)) (local.get $length)) (i32.load (local.get $length)))
      (call $qjs_get_undefined))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (call $wasm_malloc (local.get 3)))
    (func (export "call") (param i32 i32 i32 i32) (result i32) (local $argv i32) (local $result i32)
      (local.set $argv (call $wasm_malloc (i32.const 8)))
      (local.set $result (call $wasm_malloc (i32.const 8)))
      (i32.store (local.get $argv) (call $qjs_new_string (local.get 0) (local.get 1)))
      (i32.store offset=4 (local.get $argv) (call $qjs_new_string (local.get 2) (local.get 3)))
      (drop (call $qjs_call (i32.const %[7]d) (i32.const %[9]d) (i32.const 2) (local.get $argv)))
      (block $idle (loop $job
        (br_if $idle (i32.eqz (call $qjs_is_job_pending)))
        (drop (call $qjs_execute_pending_job))
        (br $job)))
      (i32.store (local.get $result) (call $qjs_get_string_len
        (call $qjs_call (i32.const %[8]d) (i32.const %[9]d) (i32.const 0) (i32.const 0))
        (i32.add (local.get $result) (i32.const 4))))
      (local.get $result)))
  (core instance $image (instantiate $image))
  (core instance $trampoline (instantiate $trampoline))
  (alias core export $image "memory" (core memory $memory))
  (core instance $env (export "memory" (memory $memory)) %[10]s)
  (core instance $engine (instantiate $engine (with "env" (instance $env)) (with "wasi_snapshot_preview1" (instance $trampoline))))
  (core func $lowered (canon lower (func $log) (memory $memory)))
  (core instance $host (export "log" (func $lowered)))
  (core instance $shim (instantiate $shim (with "image" (instance $image)) (with "trampoline" (instance $trampoline))
    (with "host" (instance $host)) (with "engine" (instance $engine))))
  (func (export "call") (param "tool" string) (param "input" string) (result string)
    (canon lift (core func $shim "call") (memory $memory) (realloc (func $shim "realloc"))))
)`, s.pages, dataText(s.memory), imports.String(), exports.String(), trampoline(), shimImports.String(), s.invoke, s.take, s.undefined, env.String()))
}

// dataText writes memory as data segments, without long runs of zeros.
func dataText(memory []byte) string {
	const chunk = 4096
	var b strings.Builder
	for at := 0; at < len(memory); at += chunk {
		part := bytes.TrimRight(memory[at:at+chunk], "\x00")
		if len(part) == 0 {
			continue
		}
		fmt.Fprintf(&b, "(data (i32.const %d) \"", at)
		for _, c := range part {
			fmt.Fprintf(&b, "\\%02x", c)
		}
		b.WriteString("\")\n")
	}
	return b.String()
}
