package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/image"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// imaged is an extension whose memory is in a module of its own, as the toolchain makes it. Its parts are WebAssembly text.
type imaged struct {
	says   string // the answer of the tool: two letters
	memory string // fields of the module of the memory, in place of an ordinary one
	data   string // more fields of that module
	before string // what comes before the module
	with   string // arguments of its instance
	after  string // what comes after everything that instantiates it
	call   string // as in guest
}

func (m imaged) wasm(t testing.TB) []byte {
	t.Helper()
	if m.says == "" {
		m.says = "ok"
	}
	if m.memory == "" {
		m.memory = `(memory (export "memory") 2)`
	}
	var data, code strings.Builder
	for line := range strings.Lines(guest{call: m.call}.core()) {
		switch {
		case strings.Contains(line, "(data "):
			data.WriteString(strings.Replace(line, `\"ok\"`, `\"`+m.says+`\"`, 1))
		case strings.Contains(line, `(memory (export "memory")`):
			code.WriteString(`(import "image" "memory" (memory 2))`)
		default:
			code.WriteString(line)
		}
	}
	wasm, err := wasmtime.WAT(`(component
	(import "stile:capability/env@0.1.0" (instance $stile-env (export "env" (type (sub resource)))))
	(import "stile:capability/types@0.1.0" (instance $stile-types
		(type $d (record (field "binding" string) (field "operation" string) (field "reason" string) (field "remedy" string)))
		(export "denial" (type (eq $d)))))
	` + m.before + `
	(core module $image ` + m.memory + data.String() + m.data + `)
	(core ` + strings.Replace(code.String(), "(module", "(module $tools", 1)[1:] + `
	(core instance $image (instantiate $image ` + m.with + `))
	(core instance $m (instantiate $tools (with "image" (instance $image))))
	(alias core export $image "memory" (core memory $memory))
	(alias core export $m "cabi_realloc" (core func $realloc))
	` + m.after + exportTools() + ")")
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// whole returns a component that behaves the same and is compiled as a whole, because a core type follows its modules.
func whole(t testing.TB, wasm []byte) []byte {
	t.Helper()
	wasm = append(slices.Clip(wasm), 3, 4, 1, 0x60, 0, 0)
	if _, _, ok := image.Split(wasm); ok {
		t.Fatal("it is split")
	}
	return wasm
}

// compiledKinds counts the entries of a cache.
func compiledKinds(t *testing.T, dir string) (components, images int) {
	t.Helper()
	count := func(kind string) int {
		entries, err := os.ReadDir(filepath.Join(dir, kind))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return len(entries)
	}
	return count("component"), count("image")
}

// TestSharedCode loads extensions that differ only in their memory, one after the other and many at once. Their code is compiled once, and
// each answers from its own memory.
func TestSharedCode(t *testing.T) {
	for name, loads := range map[string]int{"one after the other": 1, "at once": 4} {
		t.Run(name, func(t *testing.T) {
			o := host.Options{CacheDir: t.TempDir(), KeyDir: t.TempDir()}
			h := newHost(t, o)
			compiledSoFar := func() (components, images int) {
				if err := h.Close(); err != nil { // which waits until all is in the cache
					t.Error(err)
				}
				return compiledKinds(t, o.CacheDir)
			}
			var all sync.WaitGroup
			limit := make(chan struct{}, loads)
			for i := range 10 {
				limit <- struct{}{}
				all.Go(func() {
					says := fmt.Sprint(10 + i)
					c, err := h.Load(t.Context(), imaged{says: says}.wasm(t))
					<-limit
					if err != nil {
						t.Error(err)
						return
					}
					for range 3 {
						if out, err := c.Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"`+says+`"` {
							t.Errorf("got %s, %v, want %s", out, err, says)
						}
					}
					if i%2 == 0 {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					}
					for _, x := range c.Imports() {
						if x.Kind == "module" {
							t.Errorf("it imports %s", x.Name)
						}
					}
				})
			}
			all.Wait()
			if components, images := compiledSoFar(); components != 1 || images != 10 {
				t.Errorf("%d components and %d images are compiled", components, images)
			}
			h = newHost(t, o)
			c, err := h.Load(t.Context(), imaged{call: `(call $ok (i32.const 1024) (i32.const 4)) nop`}.wasm(t))
			if err != nil {
				t.Fatal(err)
			}
			if out, err := c.Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"ok"` {
				t.Errorf("got %s, %v", out, err)
			}
			if components, images := compiledSoFar(); components != 2 || images != 11 {
				t.Errorf("with other code, %d components and %d images are compiled", components, images)
			}
		})
	}
}

// TestDamagedImage damages everything in the cache. It is compiled again.
func TestDamagedImage(t *testing.T) {
	dir, keyDir := t.TempDir(), t.TempDir()
	wasm := imaged{says: "42"}.wasm(t)
	for range 3 {
		func() {
			h := newHost(t, host.Options{CacheDir: dir, KeyDir: keyDir})
			c, err := h.Load(t.Context(), wasm)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := c.Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"42"` {
				t.Errorf("got %s, %v", out, err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		objects, err := filepath.Glob(filepath.Join(dir, "objects", "*"))
		if err != nil || len(objects) != 2 {
			t.Fatalf("%v, %v", objects, err)
		}
		for i, name := range objects { // each gets the content of the other
			if err := os.Rename(name, filepath.Join(dir, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range objects {
			if err := os.Rename(filepath.Join(dir, fmt.Sprint(1-i)), name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOddImages loads components whose memory is in a module of its own, in ordinary and odd forms. Each behaves as when it is compiled as
// a whole, whether it is split or not.
func TestOddImages(t *testing.T) {
	const memory = `(memory (export "memory") 2)`
	for _, c := range []struct {
		name  string
		of    imaged
		split bool
		want  string // part of the error of Load or Call; empty for the answer
	}{
		{"ordinary", imaged{}, true, ""},
		{"bounded", imaged{memory: `(memory (export "memory") 2 3)`}, true, ""},
		{"bounded, and grown beyond", imaged{memory: `(memory (export "memory") 2 3)`, call: `(if (i32.ne (memory.grow (i32.const 2)) (i32.const -1)) (then unreachable)) ` + returns}, true, ""},
		{"grown beyond the limit", imaged{call: `(if (i32.eq (memory.grow (i32.const 2000)) (i32.const -1)) (then unreachable)) ` + returns}, true, "memory (64 MiB)"},
		{"exported twice", imaged{memory: `(memory (export "memory") (export "again") 2)`}, true, ""},
		{"exported by the same name", imaged{memory: memory + `(export "memory" (memory 0))`}, true, "duplicate"},
		{"passive data", imaged{data: `(data "passive")`}, true, ""},
		{"data beyond the memory", imaged{data: `(data (i32.const 131070) "end")`}, true, "out of bounds"},
		{"data at a negative address", imaged{data: `(data (i32.const -1) "end")`}, true, "out of bounds"},
		{"data of no length beyond the memory", imaged{data: `(data (i32.const 131073) "")`}, true, "out of bounds"},
		{"data for another memory", imaged{data: `(data (memory 1) (i32.const 0) "x")`}, true, "memory 1"},
		{"data at a global", imaged{data: `(data (global.get 0) "x")`}, true, "global"},
		{"data far apart", imaged{memory: `(memory (export "memory") 900)`, data: `(data (i32.const 58982300) "far")`}, true, ""},
		{"much memory", imaged{memory: `(memory (export "memory") 1025)`}, true, "memory"},
		{"a memory of 64 bits", imaged{memory: `(memory (export "memory") i64 2)`}, false, "memory64"},
		{"a shared memory", imaged{memory: `(memory (export "memory") 2 2 shared)`}, false, "shared"},
		{"no memory", imaged{memory: `(func)`}, false, "memory"},
		{"two memories", imaged{memory: memory + `(memory 1)`}, false, "memories"},
		{"a global", imaged{data: `(global (export "g") i32 (i32.const 1))`}, false, ""},
		{"a table", imaged{data: `(table (export "t") 1 funcref)`}, false, ""},
		{"a start function", imaged{data: `(func $f (i32.store8 (i32.const 1025) (i32.const 0x58))) (start $f)`}, false, ""},
		{"a start function that traps", imaged{data: `(func $f unreachable) (start $f)`}, false, "unreachable"},
		{
			"an imported memory",
			imaged{before: `(core module $first (memory (export "memory") 2)) (core instance $first (instantiate $first))`, memory: `(memory (export "memory") (import "i" "memory") 2)`, with: `(with "i" (instance $first))`},
			true, "", // the first one is split off
		},
		{"another module with a memory", imaged{after: `(core module $x (memory 1)) (core instance (instantiate $x))`}, false, "exceeds the configured maximum of 1"},
		{"another instance", imaged{after: `(core instance (instantiate $image))`}, false, "exceeds the configured maximum of 1"},
		{"an instance of it from within", imaged{after: `(component $c (alias outer 1 $image (core module $x)) (export "m" (core module $x))) (instance $c (instantiate $c)) (alias export $c "m" (core module $x)) (core instance (instantiate $x))`}, false, "exceeds the configured maximum of 1"},
		{"exported", imaged{after: `(export "image" (core module $image))`}, true, ""},
		{"a type before it", imaged{before: `(core type (func)) (core type $m (module (export "memory" (memory 1))))`}, true, ""},
		{"a type after it", imaged{after: `(core type $t (module (export "memory" (memory 1))))`}, false, ""},
		{"an alias of a type after it", imaged{before: `(core type $t (module))`, after: `(alias outer 0 $t (core type $x))`}, false, ""},
		{"a module of the same name", imaged{before: `(import "stile-image" (core module (export "memory" (memory 1))))`}, false, "stile-image: the core module is not loaded"},
		{"a function of the same name", imaged{before: `(import "stile-image" (func))`}, false, "stile-image: a free function"},
		{"a function of the same name in capitals", imaged{before: `(import "STILE-IMAGE" (func))`}, false, "STILE-IMAGE: a free function"},
		{"the name of the host's check", imaged{before: `(import "stile-reserve" (func))`}, true, "is the host's own"},
		{"many instances", imaged{after: `(core module $x)` + strings.Repeat(`(core instance (instantiate $x))`, 20)}, false, ""},
		{"too many instances", imaged{after: `(core module $x)` + strings.Repeat(`(core instance (instantiate $x))`, 40)}, false, "43 core module instances"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, host.Options{})
			wasm := c.of.wasm(t)
			if _, _, ok := image.Split(wasm); ok != c.split {
				t.Errorf("split: %t", ok)
			}
			result := func(wasm []byte) string {
				component, err := h.Load(t.Context(), wasm)
				if err != nil {
					if _, ok := errors.AsType[*host.LoadError](err); !ok {
						t.Errorf("got %v, want a *LoadError", err)
					}
					return "load: " + err.Error()
				}
				out, err := component.Call(t.Context(), "t", nil, nil)
				if err != nil {
					return "call: " + err.Error()
				}
				return string(out)
			}
			split, together := result(wasm), result(whole(t, wasm))
			if c.want == "" && (len(split) != 4 || split[0] != '"') || !strings.Contains(split, c.want) {
				t.Errorf("got %s, want %q", split, c.want)
			}
			place := regexp.MustCompile(`\s*\(?at (offset|byte) \w+\)?|0x[0-9a-f]+`)
			if split, together := place.ReplaceAllString(split, ""), place.ReplaceAllString(together, ""); split != together {
				t.Errorf("split:    %s\ntogether: %s", split, together)
			}
		})
	}
}
