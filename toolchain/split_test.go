package toolchain

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/wasmbin"
)

func wat(t testing.TB, text string) []byte {
	t.Helper()
	wasm, err := wasmtime.Wat2Wasm(text)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// smallEngine has the parts that splitEngine requires, and every form of instruction that it must skip, with the
// bytes of memory.grow among the immediates.
const smallEngine = `(module
  (import "env" "log" (func $log (param i32)))
  (type $pair (func (param i32 i64) (result i32)))
  (table (export "table") 3 3 funcref)
  (memory (export "memory") 2)
  (global $g (mut i32) (i32.const 0x2040))
  (elem (i32.const 0) $grow $all)
  (func $grow (export "grow") (param i32) (result i32)
    (i32.add (memory.grow (local.get 0)) (i32.const 0)))
  (func $all (export "all") (param i32 i64) (result i32) (local f32 f64 funcref)
    (drop (i32.const 0x40)) (drop (i64.const 0x2040)) (drop (f32.const 64)) (drop (f64.const 2.0000000000000004))
    (block $a (block $b (br_table $a $b (i32.const 0))))
    (block (result i32) (drop (br_if 0 (i32.const 1) (i32.const 0))) (loop (result i32) (i32.const 8)))
    (if (result i32) (then (call_indirect (type $pair) (i32.const 64) (i64.const 0) (i32.const 1))) (else (i32.const 0)))
    (drop (select (result funcref) (ref.null func) (ref.func $grow) (i32.const 1)))
    (i32.store offset=64 align=1 (i32.load8_u offset=8256 (i32.const 0)) (memory.size))
    (memory.copy (i32.const 0) (i32.const 1) (i32.const 2)) (memory.fill (i32.const 0) (i32.const 1) (i32.const 2))
    (table.set 0 (i32.const 0) (table.get 0 (i32.const 1)))
    (drop (i32.trunc_sat_f64_s (f64.const 64))) (drop (i32.extend8_s (i32.const 64)))
    (global.set $g (global.get $g)) (local.set 2 (f32.const 1))
    (call $log (memory.grow (local.get 0)))
    return)
  (func (export "read") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (data (i32.const 16) "hello")
  (data (i32.const 131071) "!"))`

func TestSplitEngine(t *testing.T) {
	wasm := wat(t, smallEngine)
	split, err := splitEngine(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if split.Slot != 3 {
		t.Errorf("slot %d, want 3", split.Slot)
	}
	if len(split.memory) != 2*wasmPage || string(split.memory[16:21]) != "hello" || split.memory[131071] != '!' {
		t.Errorf("memory of %d bytes without its data", len(split.memory))
	}
	again, err := splitEngine(wasm)
	if err != nil || !bytes.Equal(again.module, split.module) {
		t.Error("not deterministic")
	}

	engine := wasmtime.NewEngine()
	module, err := wasmtime.NewModule(engine, split.module)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, i := range module.Imports() {
		imports = append(imports, i.Module()+"."+*i.Name())
	}
	if got := strings.Join(imports, " "); got != "env.log env.memory" {
		t.Errorf("imports %s", got)
	}

	for _, test := range []struct {
		name, call string
		pages      int32
		want       int32 // -1: host.MemoryTrap traps
	}{
		{"grow", "grow", 1, 2},
		{"grow by nothing", "grow", 0, 2},
		{"grow beyond the limit", "grow", 100, -1},
		{"grow by more than there is", "grow", -1, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := wasmtime.NewStore(engine)
			typ, err := wasmtime.NewMemoryType(2, true, 4, false)
			if err != nil {
				t.Fatal(err)
			}
			memory, err := wasmtime.NewMemory(store, typ)
			if err != nil {
				t.Fatal(err)
			}
			log := wasmtime.WrapFunc(store, func(int32) {})
			instance, err := wasmtime.NewInstance(store, module, []wasmtime.AsExtern{log, memory})
			if err != nil {
				t.Fatal(err)
			}
			got, err := instance.GetFunc(store, test.call).Call(store, test.pages)
			var trap *wasmtime.Trap
			switch {
			case test.want >= 0 && (err != nil || got != test.want):
				t.Errorf("%v, %v; want %d", got, err, test.want)
			case test.want < 0 && !errors.As(err, &trap):
				t.Errorf("%v, %v; want a trap", got, err)
			case test.want < 0 && *trap.Frames()[0].FuncName() != host.MemoryTrap:
				t.Errorf("trap in %s", *trap.Frames()[0].FuncName())
			}
		})
	}
}

func TestSplitEngineRefuses(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(smallEngine, old) {
			t.Fatalf("%s is not in the small engine", old)
		}
		return strings.Replace(smallEngine, old, new, 1)
	}
	for _, test := range []struct{ name, text, want string }{
		{"no memory", `(module (import "a" "b" (func)) (table 1 funcref) (func))`, "missing"},
		{"no imports", `(module (table 1 funcref) (memory 1) (func))`, "missing"},
		{"a start function", with(`(elem`, `(start $s) (func $s) (elem`), "start function"},
		{"an imported global", with(`(import "env" "log" (func $log (param i32)))`,
			`(import "env" "log" (func $log (param i32))) (import "a" "b" (global i32))`), "import of kind 3"},
		{"two tables", with(`(table`, `(table 1 funcref) (table`), "2 tables"},
		{"much memory", with(`(memory (export "memory") 2)`, `(memory (export "memory") 30000)`), "30000 pages"},
		{"passive data", with(`(data (i32.const 16) "hello")`, `(data "hello")`), "data segment of kind 1"},
		{"data outside", with(`(data (i32.const 16) "hello")`, `(data (i32.const 131070) "hello")`), "outside of memory"},
		{"data before the start", with(`(data (i32.const 16) "hello")`, `(data (i32.const -1) "hello")`), "outside of memory"},
		{"memory.init", with(`(data (i32.const 16) "hello")`, `(func (memory.init 1 (i32.const 0) (i32.const 0) (i32.const 0))) (data (i32.const 16) "hello")`), "0xfc 8"},
		{"vectors", with(`(drop (i32.const 0x40))`, `(drop (v128.const i64x2 64 64))`), "0xfd"},
		{"a type of another form", with(`(type $pair`, `(type (struct)) (type $pair`), "form 0x5f"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := splitEngine(wat(t, test.text))
			var wasmErr *WasmError
			if !errors.As(err, &wasmErr) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want a WasmError with %q", err, test.want)
			}
		})
	}
	component := wat(t, "(component)")
	for name, wasm := range map[string][]byte{
		"nothing": nil, "text": []byte("(module)"), "a component": component, "a header": []byte(wasmbin.CoreHeader),
		"half a section":  append([]byte(wasmbin.CoreHeader), 1, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"a long number":   append([]byte(wasmbin.CoreHeader), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"an unknown id":   append([]byte(wasmbin.CoreHeader), 99, 0),
		"one thing twice": append([]byte(wasmbin.CoreHeader), 1, 1, 0, 1, 1, 0),
	} {
		var wasmErr *WasmError
		if _, err := splitEngine(wasm); !errors.As(err, &wasmErr) {
			t.Errorf("%s: %v; want a WasmError", name, err)
		}
	}
}

// Whatever is truncated or changed, the result is a module or a WasmError.
func FuzzSplitEngine(f *testing.F) {
	wasm := wat(f, smallEngine)
	f.Add(wasm)
	for n := 0; n < len(wasm); n += 7 {
		f.Add(wasm[:n])
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		split, err := splitEngine(wasm)
		var wasmErr *WasmError
		if err != nil && !errors.As(err, &wasmErr) {
			t.Fatalf("%v", err)
		}
		if err != nil {
			return
		}
		if len(split.memory) > maxEnginePages*wasmPage {
			t.Fatalf("memory of %d bytes", len(split.memory))
		}
		if _, err := stopBeforeAllocations(split.module); err != nil && !errors.As(err, &wasmErr) {
			t.Fatalf("%v", err)
		}
	})
}

// TestSupply calls everything that an engine imports, in an engine that gets it from imageCore and in one that is supplied: results, memory
// and traps are the same.
func TestSupply(t *testing.T) {
	const functions = `
		(func $time (result i64) (i64.const 42))
		(func $realloc (param i32 i32 i32 i32) (result i32)
			(i32.add (i32.add (local.get 0) (i32.mul (local.get 1) (i32.const 3))) (i32.add (i32.mul (local.get 2) (i32.const 5)) (i32.mul (local.get 3) (i32.const 7)))))
		(func $rejected (param i32 i32 i32)
			(i32.store (i32.const 96) (i32.add (local.get 0) (i32.add (i32.mul (local.get 1) (i32.const 3)) (i32.mul (local.get 2) (i32.const 5))))))`
	text := `(module (table (export "table") 2 funcref) (elem (i32.const 0) $last $last) (memory 2) (data (i32.const 64) "0123456789")`
	for n, i := range engineImports {
		text = strings.Replace(text, "(table", fmt.Sprintf("(import %q %q (func $i%d%s)) (table", i.module, i.name, n, i.signature), 1)
		given := ""
		for p := range strings.Count(strings.SplitN(i.signature, "(result", 2)[0], "i") {
			given += fmt.Sprintf("(local.get %d)", p)
		}
		text += fmt.Sprintf("(func (export %q)%s (call $i%d %s))", engineExports[n].name, i.signature, n, given)
	}
	split, err := splitEngine(wat(t, text+`(func $last))`))
	if err != nil {
		t.Fatal(err)
	}
	engine := wasmtime.NewEngine()
	defer engine.Close()
	// start returns the memory of an engine's instance and the instance.
	start := func(wasm []byte, text string, supplied bool) (*wasmtime.Store, *wasmtime.Memory, *wasmtime.Instance) {
		store, linker := wasmtime.NewStore(engine), wasmtime.NewLinker(engine)
		linker.AllowShadowing(true)
		instance := func(wasm []byte, names ...string) *wasmtime.Instance {
			module, err := wasmtime.NewModule(engine, wasm)
			if err != nil {
				t.Fatal(err)
			}
			i, err := linker.Instantiate(store, module)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if err := linker.DefineInstance(store, name, i); err != nil {
					t.Fatal(err)
				}
			}
			return i
		}
		memory := instance(memoryModule(split.memory), "env").GetExport(store, "memory").Memory()
		if !supplied {
			instance(wat(t, text), "env", "wasi_snapshot_preview1")
		}
		i := instance(wasm, "engine")
		if supplied {
			instance(wat(t, text))
		}
		return store, memory, i
	}
	rawStore, rawMemory, raw := start(split.module, imageText(engineShape{Pages: 2}, `(elem (i32.const 0) func $time $realloc $rejected)`+functions), false)
	ownStore, ownMemory, own := start(split.shared, fmt.Sprintf(`(module (import "env" "memory" (memory 2)) (import "engine" "table" (table %d funcref))
		(elem (i32.const %d) $time $realloc $rejected) %s)`, split.Slot+tableSlots, split.Slot+1, functions), true)
	realloc := own.GetFunc(ownStore, "realloc")
	if got, err := realloc.Call(ownStore, int32(1), int32(2), int32(3), int32(4)); err != nil || got != int32(1+2*3+3*5+4*7) {
		t.Errorf("realloc: %v, %v", got, err)
	}
	for n, i := range engineImports {
		name := engineExports[n].name
		var args []any
		for p, param := range strings.Fields(strings.NewReplacer("(param", "", ")", "").Replace(strings.SplitN(i.signature, "(result", 2)[0])) {
			if v := 66 + 3*p; param == "i64" {
				args = append(args, int64(v))
			} else {
				args = append(args, int32(v))
			}
		}
		a, errA := raw.GetFunc(rawStore, name).Call(rawStore, args...)
		b, errB := own.GetFunc(ownStore, name).Call(ownStore, args...)
		if a != b || (errA == nil) != (errB == nil) {
			t.Errorf("%s: %v, %v; supplied: %v, %v", i.name, a, errA, b, errB)
		}
		if !bytes.Equal(rawMemory.UnsafeData(rawStore), ownMemory.UnsafeData(ownStore)) {
			t.Errorf("%s: another memory", i.name)
		}
	}
	if bytes.Equal(rawMemory.UnsafeData(rawStore), split.memory) {
		t.Error("nothing was written")
	}
}
