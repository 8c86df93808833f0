// Package guesttest makes components of WebAssembly text, as toolchains of other languages make them; for tests only. It makes them of
// any form: also those that no toolchain makes.
package guesttest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

// Guest is an extension with one tool, "get", described as "Gets a value". The zero value returns "ok" as JSON.
type Guest struct {
	// Result is the JSON that the tool returns. Default: "ok". Description is that of the tool. Default: "Gets a value".
	Result, Description string
	// Imports are core imports, such as `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))`.
	Imports string
	// Call is the body of call, which has the handle $env and leaves the address of a result. $ok makes one of an address and a length
	// of JSON, and Result is at $result with $length. Default: it returns Result.
	Call string
	// Describe is the body of describe, which leaves the address of a list. Default: that of the tool, at $tools.
	Describe string
	// More are further fields of the core module, and Exports further interfaces that the component exports.
	More    string
	Exports []string
}

const (
	resultAt = 4096
	textAt   = 2048
)

// quoted is text as a string of WebAssembly text.
func quoted(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "\\%02x", c)
	}
	return b.String()
}

// number is an i32 in memory.
func number(n int) string {
	return quoted(string(binary.LittleEndian.AppendUint32(nil, uint32(n))))
}

// Core returns the core module, as text.
func (g Guest) Core() string {
	if g.Result == "" {
		g.Result = `"ok"`
	}
	if g.Description == "" {
		g.Description = "Gets a value"
	}
	if g.Call == "" {
		g.Call = `(call $ok (global.get $result) (global.get $length))`
	}
	if g.Describe == "" {
		g.Describe = `(global.get $tools)`
	}
	// A list of one definition: name, description, schema of its input, and none of its output.
	definition := number(1024) + number(3) + number(textAt) + number(len(g.Description)) + number(1028) + number(2) + strings.Repeat(number(0), 3)
	return `(module
		` + g.Imports + `
		(memory (export "memory") 2)
		(global $next (mut i32) (i32.const 65536))
		(global $result i32 (i32.const ` + fmt.Sprint(resultAt) + `)) (global $length i32 (i32.const ` + fmt.Sprint(len(g.Result)) + `))
		(global $tools i32 (i32.const 1040))
		(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $need i32)
			(local.set $need (i32.add (global.get $next) (i32.add (local.get 3) (i32.const 15))))
			(block $fits
				(br_if $fits (i32.le_u (local.get $need) (i32.mul (memory.size) (i32.const 65536))))
				(drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 2)))))
			(global.get $next)
			(global.set $next (i32.and (local.get $need) (i32.const -16))))
		(data (i32.const 1024) "get {}")
		(data (i32.const 1040) "` + number(1056) + number(1) + `")
		(data (i32.const 1056) "` + definition + `")
		(data (i32.const ` + fmt.Sprint(textAt) + `) "` + quoted(g.Description) + `")
		(data (i32.const ` + fmt.Sprint(resultAt) + `) "` + quoted(g.Result) + `")
		(func $ok (param i32 i32) (result i32)
			(i32.store (i32.const 128) (i32.const 0)) (i32.store (i32.const 132) (local.get 0)) (i32.store (i32.const 136) (local.get 1))
			(i32.const 128))
		` + g.More + `
		(func (export "stile:extension/tools@0.1.0#describe") (result i32) ` + g.Describe + `)
		(func (export "stile:extension/tools@0.1.0#call") (param $tool i32) (param i32) (param $input i32) (param i32) (param $env i32) (result i32)
			` + g.Call + `))`
}

// Component returns the component.
func (g Guest) Component(t testing.TB) []byte {
	t.Helper()
	return Componentize(t, WAT(t, g.Core()), g.Exports...)
}

// Componentize makes a component of a core module of any compiler. It may import every interface of stile:capability, and also exports
// these interfaces.
func Componentize(t testing.TB, core []byte, exports ...string) []byte {
	t.Helper()
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	world := *known.World("stile:extension/with-everything@0.1.0")
	for _, name := range exports {
		world.Exports = append(slices.Clone(world.Exports), known.Interface(name))
	}
	component, err := toolchain.Componentize(&world, core)
	if err != nil {
		t.Fatal(err)
	}
	return component
}

// WAT returns the binary of a module or a component in WebAssembly text.
func WAT(t testing.TB, text string) []byte {
	t.Helper()
	wasm, err := wasmtime.Wat2Wasm(text)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// WithProducers adds a section that says what made the component: fields, and in each names with versions.
func WithProducers(component []byte, fields map[string]map[string]string) []byte {
	content := wasmbin.Writer(nil)
	content.Number(uint32(len(fields)))
	for field, producers := range fields {
		content.Text(field)
		content.Number(uint32(len(producers)))
		for name, version := range producers {
			content.Text(name)
			content.Text(version)
		}
	}
	return WithSection(component, "producers", content)
}

// WithSection adds a custom section.
func WithSection(component []byte, name string, content []byte) []byte {
	s := wasmbin.CustomSection(name, content)
	return append(slices.Clone(component), wasmbin.WriteSections("", []wasmbin.Section{s})...)
}
