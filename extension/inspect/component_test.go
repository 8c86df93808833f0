package inspect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain/guesttest"
)

func TestInspectComponent(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	wasm := guesttest.Guest{Imports: `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))
		(import "stile:capability/workspace@0.1.0" "get" (func $directory (param i32 i32 i32 i32)))
		(import "stile:capability/clock@0.1.0" "get" (func $clock (param i32 i32 i32 i32)))`}.Component(t)
	wasm = guesttest.WithProducers(wasm, map[string]map[string]string{"language": {"Rust\n    source: reviewed\x1b[2J": "1.90"}})
	c, err := h.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := InspectComponent(ComponentInput{Wasm: wasm, Component: c, Bindings: []extension.Binding{
		{Name: "api", Grant: http.Rights{}}, {Name: "clock", Grant: clock.Kind.On()}, {Name: "first", Grant: kv.Rights{}}, {Name: "second", Grant: kv.Rights{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text()
	for _, want := range []string{
		"no source to read", c.Digest(), "imports stile:capability/kv@0.1.0 (with first, second): get\n", "imports stile:capability/clock@0.1.0 (with clock): get\n",
		"imports stile:capability/workspace@0.1.0 (no binding of the manifest): get\n", "says of itself, unchecked: language Rust     source: reviewed\\x1b[2J 1.90\n",
		"bindings requested but not imported: api\n", "imported but not requested: workspace or dir (import stile:capability/workspace@0.1.0)\n", "compilation: at most 0.0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text != printable.Text(text) {
		t.Errorf("got %q", text)
	}
}

// TestBindingsOfWASI has a program of WASI that uses bindings through WASI alone. The report must not say that it does not use them.
func TestBindingsOfWASI(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	wasm := guesttest.Guest{Imports: `(import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))`}.Component(t)
	c, err := h.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := InspectComponent(ComponentInput{Wasm: wasm, Component: c, Bindings: []extension.Binding{
		{Name: "api", Grant: http.Rights{}}, {Name: "dice", Grant: random.Kind.On()}, {Name: "lines", Grant: console.Kind.On()}, {Name: "time", Grant: clock.Kind.On()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"api", "time"}; !slices.Equal(r.BindingsUnused, want) {
		t.Errorf("unused: %q, want %q", r.BindingsUnused, want)
	}
	text := r.Text()
	for _, want := range []string{
		"imports wasi:random/random@0.2.0 (empty world, with dice, random): get-random-u64: answers by the binding of random; without one, before the call's env arrives, from a fixed seed, and then it ends the call\n",
		"imports wasi:io/streams@0.2.0 (empty world, with console, lines): ", "bindings requested but not imported: api, time\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Imports of WASI, of which there can be any number, do not crowd out those of capabilities.
func TestManyImports(t *testing.T) {
	var all []host.Import
	for i := range 1000 {
		all = append(all, host.Import{Name: fmt.Sprintf("wasi:x/y%d@0.2.0", i), Kind: "wasi", Funcs: slices.Repeat([]host.ImportedFunc{{Name: "f", Answer: "refuses"}}, 10)})
	}
	all = append(all, host.Import{Name: "stile:capability/kv@0.1.0", Kind: "capability", Funcs: []host.ImportedFunc{{Name: "get"}}})
	c := &Component{}
	c.imports(all, nil, nil, nil)
	if c.Imports[0].Name != "stile:capability/kv@0.1.0" || len(c.Imports[0].Functions) != 1 || len(c.Imports) != maxImports {
		t.Errorf("got %+v first of %d", c.Imports[0], len(c.Imports))
	}
	if want := (1001 - maxImports) + (1 + 10*(maxImports-1) - maxImported); c.Omitted != want {
		t.Errorf("%d are omitted, want %d", c.Omitted, want)
	}
	if text := strings.Join(c.Lines(), "\n"); !strings.Contains(text, fmt.Sprintf("%d more names are not listed", c.Omitted)) || !strings.Contains(text, "(empty world): f, f, f, f, f, f, f, f, f, f: refuses\n") {
		t.Error(text)
	}
}

// FuzzProducers reads what files say of themselves.
func FuzzProducers(f *testing.F) {
	empty := []byte(wasmbin.ComponentHeader)
	f.Add(guesttest.WithProducers(empty, map[string]map[string]string{"sdk": {"a": "1"}, "language": {"C": ""}}))
	f.Add(guesttest.WithSection(empty, "producers", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}))
	f.Add(wasmbin.WriteSections(wasmbin.ComponentHeader, []wasmbin.Section{{ID: wasmbin.SectionCoreModule, Body: guesttest.WithProducers([]byte(wasmbin.CoreHeader), map[string]map[string]string{"processed-by": {"x": "2"}})}}))
	nested := empty
	for range 10 {
		nested = wasmbin.WriteSections(wasmbin.ComponentHeader, []wasmbin.Section{{ID: wasmbin.SectionComponent, Body: nested}})
	}
	f.Add(nested)
	many := bytes.Repeat([]byte{1, 'f', 1, 1, 'n', 0}, 1000)
	f.Add(guesttest.WithSection(empty, "producers", append([]byte{0xe8, 0x07}, many...)))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		c := &Component{}
		c.producers(wasm)
		if len(c.Producers) > maxProducers || c.Omitted > len(wasm) {
			t.Errorf("%d producers, %d omitted", len(c.Producers), c.Omitted)
		}
		for _, line := range c.Lines() {
			if line != printable.Line(line) || len(line) > 10*maxName {
				t.Errorf("got %q", line)
			}
		}
	})
}

// What modules inside say of themselves is read too.
func TestProducersInside(t *testing.T) {
	module := guesttest.WithProducers([]byte(wasmbin.CoreHeader), map[string]map[string]string{"processed-by": {"x": "2"}})
	c := &Component{}
	c.producers(wasmbin.WriteSections(wasmbin.ComponentHeader, []wasmbin.Section{{ID: wasmbin.SectionCoreModule, Body: module}}))
	if len(c.Producers) != 1 || c.Producers[0] != (Producer{"processed-by", "x", "2"}) {
		t.Errorf("got %+v", c.Producers)
	}
}
