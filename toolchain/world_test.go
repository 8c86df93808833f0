package toolchain

import (
	"errors"
	"strings"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// Interfaces that a world declares become imports and exports like others. What a world has outside of interfaces is refused, and so
// is by the host what it does not know.
func TestWorldsOfTheirOwn(t *testing.T) {
	known, err := abi.Parse(`package test:inline;
interface types { record point { x: u8 } }
world w {
  import logger: interface {
    use types.{point};
    resource line { constructor(p: point); text: func() -> string; }
  }
  export runner: interface {
    use types.{point};
    run: func(p: point) -> u8;
  }
}
world same { include w with { runner as logger } }
world resource-only { resource r; include w; }
world imported { import f: func(); include w; }
world exported { export f: func(); include w; }
world methods { resource r { m: func(); } include w; }
world held { export runner: interface { resource r; } }`)
	if err != nil {
		t.Fatal(err)
	}
	core, err := wasmtime.Wat2Wasm(`(module
		(import "logger" "[constructor]line" (func (param i32) (result i32)))
		(import "logger" "[method]line.text" (func (param i32 i32)))
		(import "logger" "[resource-drop]line" (func (param i32)))
		(memory (export "memory") 1)
		(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
		(func (export "runner#run") (param i32) (result i32) local.get 0))`)
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Options{WIT: append(known.WIT(), "package acme:inline; interface i {} world w { import i; import j: interface { f: func(); } resource r; }")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, test := range []struct{ world, message string }{
		{"w", ""},
		{"resource-only", ""},
		{"imported", ""}, // the module does not import it
		{"methods", ""},
		{"exported", "functions outside of an interface are not supported"},
		{"held", "exported resources are not supported"},
		{"same", "logger is imported and exported, which is not supported"},
	} {
		component, err := Componentize(known.World("test:inline/"+test.world), core)
		switch {
		case test.message != "":
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s: %v, want %q", test.world, err, test.message)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", test.world, err)
			continue
		}
		_, err = h.Load(t.Context(), component)
		refused, ok := errors.AsType[*host.LoadError](err)
		if !ok || !strings.Contains(refused.Error(), "logger: this host has no such import") {
			t.Errorf("%s: loaded with %v, want a *LoadError that names logger", test.world, err)
		}
	}
	rooted, err := wasmtime.Wat2Wasm(`(module (import "$root" "f" (func)) (memory (export "memory") 1))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Componentize(known.World("test:inline/imported"), rooted); err == nil || !strings.Contains(err.Error(), "preview 1 has: $root#f") {
		t.Errorf("a module that imports a function of the world itself: %v", err)
	}
}
