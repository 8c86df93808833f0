package conformance

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

// builder makes the components of guests, once each, as files in a folder.
type builder struct {
	tools  *toolchain.Toolchain
	folder string
	known  *abi.Resolve
	made   map[string]string
}

func newBuilder(tools *toolchain.Toolchain, folder string) (*builder, error) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		return nil, err
	}
	return &builder{tools: tools, folder: folder, known: known, made: map[string]string{}}, nil
}

// build returns the path of the component of a case.
func (b *builder) build(ctx context.Context, c *Case) (string, error) {
	key := c.Guest
	if c.Wat != nil {
		key = b.text(c.Wat)
	}
	if file := b.made[key]; file != "" {
		return file, nil
	}
	var wasm []byte
	var err error
	if c.Wat != nil {
		wasm, err = b.hostile(c.Wat, key)
	} else {
		var tree fs.FS
		if tree, err = fs.Sub(files, path.Dir(c.Guest)); err == nil {
			// Bindings are looked up by each call, so one component serves cases with different envs.
			wasm, err = b.tools.Assemble(ctx, toolchain.Source{FS: tree, Entry: path.Base(c.Guest), Imports: imports()}, true)
		}
	}
	if err != nil {
		return "", fmt.Errorf("build the guest of %s: %w", c.Name, err)
	}
	file := filepath.Join(b.folder, sha256hex.Of(wasm)[:32]+".wasm")
	if _, err := os.Stat(file); err != nil {
		if err := atomicfile.Replace(atomicfile.Machine{}, file, file+".new", wasm, 0o600, false); err != nil {
			return "", err
		}
	}
	b.made[key] = file
	return file, nil
}

// imports are the interfaces that guests from TypeScript may use.
func imports() (all []string) {
	for _, kind := range []string{"blob", "browser", "clock", "console", "http", "kv", "random", "workspace"} {
		all = append(all, "stile:capability/"+kind+"@0.1.0")
	}
	return all
}

func (b *builder) hostile(w *Wat, text string) ([]byte, error) {
	core, err := wasmtime.Wat2Wasm(text)
	if err != nil {
		return nil, err
	}
	known := b.known
	if w.WIT != "" {
		if known, err = abi.ParseCapability(wit.Capability(), wit.Extension(), w.WIT); err != nil {
			return nil, err
		}
	}
	world := *known.World("stile:extension/with-everything@0.1.0")
	if w.Adds != "" {
		world.Imports = append(slices.Clone(world.Imports), known.Interface(w.Adds))
	}
	return toolchain.Componentize(&world, core)
}

// text is the core module of a guest.
func (b *builder) text(w *Wat) string {
	var imports strings.Builder
	for _, line := range w.Imports {
		imports.WriteString(b.imported(line))
	}
	call, describe := w.Call, w.Describe
	if call == "" {
		call = `(call $ok (i32.const 1024) (i32.const 4))`
	}
	if describe == "" {
		describe = `(i32.const 1104)`
	}
	return strings.NewReplacer("{{imports}}", imports.String()+w.Raw, "{{call}}", call, "{{describe}}", describe, "{{data}}", w.Data, "{{more}}", w.More).Replace(frame)
}

// imported is the import field of "interface function".
func (b *builder) imported(line string) string {
	short, name, _ := strings.Cut(line, " ")
	iface := "stile:capability/" + short + "@0.1.0"
	id := strings.TrimPrefix(name, "[method]")
	signature := "(param i32)"
	if resource, ok := strings.CutPrefix(name, "[resource-drop]"); ok {
		id = "drop-" + resource
	} else if known := b.known.Interface(iface); known != nil {
		if i := slices.IndexFunc(known.Funcs, func(f *abi.Func) bool { return f.Name == name }); i >= 0 {
			params, results := known.Funcs[i].Core(true)
			signature = types("param", params) + types("result", results)
		}
	}
	return fmt.Sprintf("(import %q %q (func $%s %s))\n", iface, name, id, signature)
}

func types(word string, all []abi.CoreType) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range all {
		b.WriteString(" " + t.String())
	}
	return "(" + word + b.String() + ")"
}

// frame is what every guest in WebAssembly text has: one tool "t" that accepts any input, an allocator that does not free, and these
// texts: "ok" with its quotes at 1024 (4 bytes), box at 1032 (3).
const frame = `(module
	{{imports}}
	(memory (export "memory") 4)
	(global $next (mut i32) (i32.const 131072))
	(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $need i32)
		(local.set $need (i32.add (global.get $next) (i32.add (local.get 3) (i32.const 15))))
		(block $fits
			(br_if $fits (i32.le_u (local.get $need) (i32.mul (memory.size) (i32.const 65536))))
			(drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 2)))))
		(global.get $next)
		(global.set $next (i32.and (local.get $need) (i32.const -16))))
	(data (i32.const 1024) "\"ok\"    box {}t   ")
	(data (i32.const 1104) "\58\04\00\00\01\00\00\00")
	(data (i32.const 1112) "\0e\04\00\00\01\00\00\00\00\04\00\00\00\00\00\00\0c\04\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
	(data (i32.const 2048) "{{data}}")
	(func $ok (param i32 i32) (result i32)
		(i32.store (i32.const 128) (i32.const 0)) (i32.store (i32.const 132) (local.get 0)) (i32.store (i32.const 136) (local.get 1))
		(i32.const 128))
	(func $fail (param $case i32) (result i32)
		(i32.store (i32.const 128) (i32.const 1)) (i32.store (i32.const 132) (local.get $case))
		(memory.fill (i32.const 136) (i32.const 0) (i32.const 64))
		(i32.const 128))
	(func $string (param $slot i32) (param $at i32) (param $len i32)
		(i32.store (i32.add (i32.const 136) (i32.mul (local.get $slot) (i32.const 8))) (local.get $at))
		(i32.store (i32.add (i32.const 140) (i32.mul (local.get $slot) (i32.const 8))) (local.get $len)))
	{{more}}
	(func (export "stile:extension/tools@0.1.0#describe") (result i32) {{describe}})
	(func (export "stile:extension/tools@0.1.0#call") (param $tool i32) (param i32) (param $input i32) (param i32) (param $env i32) (result i32)
		(local $h i32) (local $i i32) (local $j i32)
		{{call}}))`
