package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/wit"
)

// sound is a module that becomes a component.
func sound() string { return core(importOld("fd_write"), "", `(call $number (i64.const 1))`) }

// A module that cannot become a component is refused, with the reason and what to do.
func TestComponentizeRefuses(t *testing.T) {
	without := func(old, replacement string) string {
		text := sound()
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the text", old)
		}
		return strings.ReplaceAll(text, old, replacement)
	}
	for _, test := range []struct {
		name, text string
		problem    CoreProblem
		names      []string
		message    string
	}{
		{"a component", "(component)", CoreMalformed, nil, "a component already"},
		{"a command", core("", `(func (export "_start"))`, ""), CoreCommand, nil, "-mexec-model=reactor"},
		{"nothing", "(module)", CoreMemory, nil, "does not export its memory"},
		{"a memory of its own", without(`(export "memory")`, ""), CoreMemory, nil, "--export-memory"},
		{"something else as memory", without(`(memory (export "memory") 3)`, `(memory 3) (global (export "memory") i32 (i32.const 0))`), CoreMemory, nil, "does not export its memory"},
		{"two memories", core("", `(memory 1)`, `(call $number (i64.const 1))`), CoreMemory, nil, "2 memories"},
		{"a 64-bit memory", `(module (memory (export "memory") i64 1))`, CoreMemory, nil, "wasm32"},
		{"a shared memory", `(module (memory (export "memory") 1 1 shared))`, CoreMemory, nil, "without threads"},
		{"small pages", `(module (memory (export "memory") 1 (pagesize 1)))`, CoreMemory, nil, "64 KiB"},
		{"no allocator", without(`(export "cabi_realloc")`, ""), CoreAllocator, nil, "cabi_realloc"},
		{
			"no tools", `(module (memory (export "memory") 1))`, CoreExport,
			[]string{"stile:extension/tools@0.1.0#describe", "stile:extension/tools@0.1.0#call"},
			"#describe, stile:extension/tools@0.1.0#call",
		},
		{"a tool of another type", without(`#call") (param i32 i32 i32 i32 i32)`, `#call") (param i32 i32 i32 i32 i64)`), CoreType, []string{"stile:extension/tools@0.1.0#call"}, "another type"},
		{"a tool that is a memory", without(`(func (export "stile:extension/tools@0.1.0#describe") (result i32) (i32.const 1104))`, `(export "stile:extension/tools@0.1.0#describe" (memory 0))`), CoreType, []string{"stile:extension/tools@0.1.0#describe"}, "another type"},
		{"an allocator of another type", without(`(export "cabi_realloc") (param i32 i32 i32 i32)`, `(export "cabi_realloc") (param i32 i32 i32 i64)`), CoreType, []string{"cabi_realloc"}, "another type"},
		{"an initialization with a result", core("", `(func (export "_initialize") (result i32) i32.const 0)`, `(call $number (i64.const 1))`), CoreType, []string{"_initialize"}, "another type"},
		{"an unknown import", core(`(import "env" "f" (func))`, "", ""), CoreImport, []string{"env#f"}, "env#f"},
		{"an unknown function of preview 1", core(`(import "wasi_snapshot_preview1" "fd_steal" (func))`, "", ""), CoreImport, []string{"wasi_snapshot_preview1#fd_steal"}, "fd_steal"},
		{"an older preview", core(`(import "wasi_unstable" "fd_write" (func))`, "", ""), CoreImport, []string{"wasi_unstable#fd_write"}, "fd_write"},
		{"threads", core(`(import "wasi" "thread-spawn" (func (param i32) (result i32)))`, "", ""), CoreImport, []string{"wasi#thread-spawn"}, "thread-spawn"},
		// What the adapter imports is not for the guest.
		{"WASI 0.2 beside preview 1", core(importOld("fd_write")+`(import "wasi:cli/stdout@0.2.0" "get-stdout" (func (result i32)))`, "", ""), CoreImport, []string{"wasi:cli/stdout@0.2.0#get-stdout"}, "get-stdout"},
		{"a helper of the adapter", core(`(import "wasi_snapshot_preview1" "$write" (func (param i32 i32 i32) (result i32)))`, "", ""), CoreImport, []string{"wasi_snapshot_preview1#$write"}, "$write"},
		{"what the component calls its parts", core(`(import "world" "" (func)) (import "guest" "memory" (func))`, "", ""), CoreImport, []string{"guest#memory", "world#"}, "guest#memory, world#"},
		{"a memory of someone else", `(module (import "env" "memory" (memory 1)))`, CoreImport, []string{"env#memory"}, "not a function"},
		{"a table of someone else", `(module (import "env" "__indirect_function_table" (table 1 funcref)))`, CoreImport, []string{"env#__indirect_function_table"}, "not a function"},
		{"a function of preview 1 with another type", core(`(import "wasi_snapshot_preview1" "fd_write" (func (param i32)))`, "", ""), CoreType, []string{"wasi_snapshot_preview1#fd_write"}, "another type"},
		{"a capability with another type", core(`(import "stile:capability/kv@0.1.0" "get" (func (param i32 i32 i32 i64)))`, "", ""), CoreType, []string{"stile:capability/kv@0.1.0#get"}, "another type"},
		{"two types for one import", core(`(import "stile:capability/kv@0.1.0" "get" (func (param i32 i32 i32 i32))) (import "stile:capability/kv@0.1.0" "get" (func))`, "", ""), CoreType, []string{"stile:capability/kv@0.1.0#get"}, "two types"},
		{"a name with control characters", core(`(import "\1b[2J\n" "f" (func))`, "", ""), CoreImport, []string{"\x1b[2J\n#f"}, `preview 1 has: `},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Componentize(anyWorld, wat(t, test.text))
			refused, ok := errors.AsType[*CoreError](err)
			if !ok || refused.Problem != test.problem || !slices.Equal(refused.Names, test.names) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%v, %+v", err, refused)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%q has control characters", err)
			}
		})
	}
}

// A module whose numbers lead nowhere, or whose code is not valid, is refused before anything is made of it.
func TestComponentizeForged(t *testing.T) {
	good := wat(t, sound())
	if _, err := Componentize(anyWorld, good); err != nil {
		t.Fatal(err)
	}
	sections, err := wasmbin.ReadSections(good, wasmbin.CoreHeader)
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(id byte, body []byte) []byte {
		forged := slices.Clone(sections)
		for i := range forged {
			if forged[i].ID == id {
				forged[i].Body = body
			}
		}
		return wasmbin.WriteSections(wasmbin.CoreHeader, forged)
	}
	large := binary.AppendUvarint(nil, 1<<32-1)
	for name, forged := range map[string][]byte{
		"empty":                   nil,
		"a header alone":          []byte(wasmbin.CoreHeader),
		"cut":                     good[:len(good)/2],
		"too many types":          replaced(wasmbin.SectionType, large),
		"too many parameters":     replaced(wasmbin.SectionType, append([]byte{1, 0x60}, large...)),
		"a type of another kind":  replaced(wasmbin.SectionType, []byte{1, 0x5f, 0}),
		"an import without types": replaced(wasmbin.SectionType, []byte{0}),
		"too many imports":        replaced(wasmbin.SectionImport, large),
		"a long name":             replaced(wasmbin.SectionImport, append([]byte{1}, large...)),
		"too many functions":      replaced(wasmbin.SectionFunction, large),
		"functions without types": replaced(wasmbin.SectionFunction, bytes.Repeat([]byte{9}, 10)),
		"too many exports":        replaced(wasmbin.SectionExport, large),
		"an export of nothing":    replaced(wasmbin.SectionExport, append(wasmbin.AppendName([]byte{1}, "memory"), 2, 7)),
		"invalid code":            replaced(wasmbin.SectionCode, []byte{0}),
		"a section twice":         wasmbin.WriteSections(wasmbin.CoreHeader, append(slices.Clone(sections), sections...)),
	} {
		if component, err := Componentize(anyWorld, forged); !errors.As(err, new(*CoreError)) {
			t.Errorf("%s: %d bytes, %v", name, len(component), err)
		}
	}
}

// A world can have interfaces of WASI, which the adapter imports for others. In a module without preview 1 they are the world's.
func TestComponentizeWorldOfWASI(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension(), `package wasi:cli@0.2.0; interface stdout { get-stdout: func() -> u32; }`)
	if err != nil {
		t.Fatal(err)
	}
	own := `(import "wasi:cli/stdout@0.2.0" "get-stdout" (func (result i32)))`
	component, err := Componentize(ExtensionWorld(known), wat(t, core(own, "", "")))
	if err != nil || !bytes.Contains(component, []byte("get-stdout")) {
		t.Errorf("%d bytes, %v", len(component), err)
	}
}

// Tools for components describe the world in the module. The component does not keep that.
func TestComponentizeDropsDescriptions(t *testing.T) {
	sections, err := wasmbin.ReadSections(wat(t, sound()), wasmbin.CoreHeader)
	if err != nil {
		t.Fatal(err)
	}
	sections = append(sections, wasmbin.CustomSection("component-type:bindings", []byte("described-here")), wasmbin.CustomSection("producers", []byte("\x00kept-here")))
	component, err := Componentize(anyWorld, wasmbin.WriteSections(wasmbin.CoreHeader, sections))
	if err != nil || bytes.Contains(component, []byte("described-here")) || !bytes.Contains(component, []byte("kept-here")) {
		t.Errorf("%v", err)
	}
}

func FuzzComponentize(f *testing.F) {
	f.Add(wat(f, sound()))
	f.Add(wat(f, core("", `(func (export "_initialize"))`, "")))
	f.Add(wat(f, `(module (import "env" "memory" (memory 1)))`))
	f.Fuzz(func(t *testing.T, module []byte) {
		component, err := Componentize(anyWorld, module)
		if err != nil {
			if !errors.As(err, new(*CoreError)) {
				t.Error(err)
			}
			return
		}
		if _, err := wasmbin.ReadSections(component, wasmbin.ComponentHeader); err != nil {
			t.Error(err)
		}
	})
}
