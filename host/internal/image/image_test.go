package image

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/wasmbin"
)

func wat(t testing.TB, text string) []byte {
	t.Helper()
	wasm, err := wasmtime.WAT(text)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestSplit splits components that differ only in their memories. The rest is the same.
func TestSplit(t *testing.T) {
	of := func(data, custom string) (rest, module string) {
		r, m, ok := Split(wat(t, `(component (core type (func)) (import "engine" (core module $engine (export "f" (func))))
			(core module $code (import "" "m" (memory 1)) (func (export "f")))
			(core module $image (memory (export "m") 1 2) (data (i32.const 8) "`+data+`"))
			(core instance $image (instantiate $image))
			(core instance (instantiate $engine))
			(core instance $code (instantiate $code (with "" (instance $image))))
			(func (export "f") (canon lift (core func $code "f"))) `+custom+`)`))
		if !ok {
			t.Fatal("not split")
		}
		return string(r), string(m)
	}
	rest, module := of("one", "")
	again, other := of("something else", `(@custom "stile:meta" "x")`)
	if rest != again || module == other || strings.Contains(rest, "one") || !strings.Contains(module, "one") {
		t.Errorf("%q and %q\n%q and %q", rest, module, again, other)
	}
	e := wasmtime.NewCompiler()
	defer e.Close()
	c, err := e.Compile([]byte(rest))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	types, err := c.Types()
	if err != nil || len(types.Imports) != 2 || types.Imports[1].Name != Import {
		t.Errorf("%+v, %v", types.Imports, err)
	}
}

// TestHostileParts has components that would take much work or memory to split. They stay whole.
func TestHostileParts(t *testing.T) {
	const memory, start = `(memory (export "m") 300)`, `(core instance (instantiate $m))`
	module := func(fields string) []byte { return wat(t, "(component (core module $m "+fields+")"+start+")") }
	export := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `(export "%d" (memory 0))`, i)
		}
		return b.String()
	}
	custom := []byte{0, 1, 0}
	component := func(sections ...byte) []byte {
		m := wasmbin.WriteSections(wasmbin.CoreHeader, nil)
		return wasmbin.WriteSections(wasmbin.ComponentHeader, []wasmbin.Section{
			{ID: wasmbin.SectionCoreModule, Body: append(m, sections...)}, {ID: wasmbin.SectionCoreInstance, Body: []byte{1, 0, 0, 0}},
		})
	}
	for _, c := range []struct {
		name string
		wasm []byte
		want bool
	}{
		{"data", module(memory + `(data (i32.const 0) "` + strings.Repeat("x", maxSize-1000) + `")`), true},
		{"more data", module(memory + `(data (i32.const 0) "` + strings.Repeat("x", maxSize) + `")`), false},
		{"exports", module(memory + export(maxExports-1)), true},
		{"more exports", module(memory + export(maxExports)), false},
		{"few sections", append(module(memory), bytes.Repeat(custom, 1000)...), true},
		{"many sections", append(module(memory), bytes.Repeat(custom, 10_000_000)...), false},
		{"more after the memory", component(5, 4, 1, 0, 1, 9, 7, 5, 1, 1, 'm', 2, 0), false},
		{"nothing after the memory", component(5, 3, 1, 0, 1, 7, 5, 1, 1, 'm', 2, 0), true},
	} {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		allocated := m.TotalAlloc
		if _, _, ok := Split(c.wasm); ok != c.want {
			t.Errorf("%s: %t", c.name, ok)
		}
		runtime.ReadMemStats(&m)
		if took := m.TotalAlloc - allocated; took > uint64(len(c.wasm))/8+1<<20 {
			t.Errorf("%s: %d bytes for %d", c.name, took, len(c.wasm))
		}
	}
}

// FuzzSplit compares what the engine says about a component and about its parts.
func FuzzSplit(f *testing.F) {
	for _, image := range []string{
		`(memory (export "m") 1) (data (i32.const 0) "x")`, `(memory (export "m") (export "n") 1 2)`, `(memory (export "m") 1) (data "x")`, `(memory (export "m") 1) (global i32 (i32.const 0))`,
	} {
		for _, text := range []string{
			`(core module $m ` + image + `) (core instance $i (instantiate $m)) (alias core export $i "m" (core memory $x))`,
			`(core type (func)) (import "m" (core module)) (import "f" (func)) (core module $m ` + image + `) (core instance (instantiate $m)) (export "x" (core module $m))`,
			`(core module $m ` + image + `) (component $c (alias outer 1 $m (core module $n)) (export "n" (core module $n))) (core instance (instantiate $m)) (core type (module))`,
		} {
			f.Add(wat(f, "(component "+text+")"))
		}
	}
	e := wasmtime.NewCompiler()
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		rest, module, ok := Split(wasm)
		if !ok {
			return
		}
		if _, _, ok := Split(rest); ok {
			t.Error("the rest is split again")
		}
		whole, err := e.Compile(wasm)
		if err == nil {
			whole.Close()
		}
		var parts error
		m, failed := e.CompileModule(module)
		if failed == nil {
			m.Close()
		} else {
			parts = failed
		}
		c, failed := e.Compile(rest)
		if failed == nil {
			c.Close()
		} else {
			parts = failed
		}
		if (err == nil) != (parts == nil) {
			t.Errorf("the whole: %v\nin parts: %v", err, parts)
		}
	})
}
