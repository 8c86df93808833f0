package toolchain

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/wasmbin"
)

// typical are typical calls of extensions. The memory that they write is placed together in an image.
const typical = `import { extension } from "stile";
const input = { type: "object", properties: { key: { type: "string" }, n: { type: "number" } }, required: ["key"] } as const;
export default extension({ tools: {
	compute: {
		description: "Computes",
		input,
		run: async ({ n, key }: any) => {
			const area = Math.sqrt(n * n + 1) + Math.sin(n) * Math.cos(n) + Math.asin(Math.abs(n) / 10) + Math.min(n, 1) + Math.max(n, 2) + Math.floor(n);
			const words = key.split(" ").map((w: string) => w.slice(0, 1).toUpperCase() + w.slice(1).toLowerCase()).filter((w: string) => w.trim());
			const list = [];
			for (const x of [1, 2, 3]) list.push(Math.round(x * n));
			const total = list.reduce((sum, x) => sum + x, 0);
			const parts = Object.entries({ a: 1, b: 2 }).map(([k, v]) => k.padEnd(3) + Number(String(v)).toFixed(1));
			const sorted = [...list].sort((x, y) => y - x);
			const at = words.indexOf("Key") + (key.includes("k") && key.startsWith("a") ? 1 : 0);
			return { area, list, total, parts, sorted, at, keys: Object.keys({ n }), text: words.join(" ").replace("a", "b"), copy: JSON.parse(JSON.stringify({ list })) };
		},
	},
	wait: {
		description: "Uses what it is handed",
		input,
		run: async ({ key }: any, { store, clock }: any) => {
			const kept = await store.get(key);
			console.log("kept", kept);
			await clock.sleep(1);
			return { kept, at: clock.now() };
		},
	},
	small: {
		description: "A distance",
		input,
		run: async ({ n }: any, { store, clock }: any) => {
			const a = Math.sin(n / 2) ** 2 + Math.cos(n) * Math.cos(n / 3) * Math.sin(n / 4) ** 2;
			return { km: 12_742 * Math.asin(Math.sqrt(a)) };
		},
	},
} });`

// bodies are typical code that comes with a call.
const (
	computes = `const orders: { id: number; total: number; by: string }[] = Array.from({ length: 40 }, (_, i: number) => ({ id: i, total: i * 2.5, by: i % 3 ? "ada" : "grace" }));
const byName: Record<string, number> = {};
for (const { by, total } of orders) byName[by] = (byName[by] ?? 0) + total;
const large = orders.filter((o) => o.total > 50).map((o) => o.id);
return { byName, large, sum: large.reduce((sum, id) => sum + id, 0) };`
	reads = `const { text = "a: 1, b: 22, c: 333" } = (input ?? {}) as { text?: string };
const found = new Map<string, number>();
for (const [, name, value] of text.matchAll(/(\w+): (\d+)/g)) found.set(name, Number(value));
const lines = text.split(",").map((line) => line.trim()).filter((line) => line.length > 3);
const sorted = [...found].sort(([a], [b]) => (a < b ? 1 : -1));
console.log("found", found.size);
try {
  JSON.parse(lines[0]);
} catch (error) {
  lines.push(` + "`no JSON: ${error instanceof SyntaxError}`" + `);
}
return { lines, sorted, upper: text.toUpperCase().replace(/A/g, "b"), copy: JSON.parse(JSON.stringify({ sorted })) };`
	awaits = `async function twice(n: number): Promise<number> {
  await null;
  return 2 * n;
}
const all = await Promise.all([1, 2, 3].map(twice));
const { length, ...rest } = { length: all.length, first: all[0], last: all.at(-1) };
return [id(length), rest];
function id<T>(value: T): T {
  return value;
}`
)

// typicalCall is a typical call: of a tool of the typical extension, or of a body.
type typicalCall struct {
	tool, input, body string
	most              int // pages that it may write to
}

var typicalCalls = []typicalCall{
	{tool: "compute", input: `{"key":"a key and another","n":4,"points":[[1.5,2.25],[3,4]]}`, most: 14},
	{tool: "wait", input: `{"key":"another key","n":4}`, most: 15},
	{tool: "small", input: `{"key":"k","n":1.5}`, most: 12},
}

var typicalBodies = []typicalCall{
	{tool: BodyTool, input: `{"input":null}`, body: computes, most: 25},
	{tool: BodyTool, input: `{"input":{"text":"some: 1, words: 2"}}`, body: reads, most: 27},
	{tool: BodyTool, input: `{"input":null}`, body: awaits, most: 25},
}

// calls are those for which an image of a kind is laid out.
func (k baseKind) calls() []typicalCall {
	if k == baseEvaluator {
		return typicalBodies
	}
	return typicalCalls
}

// tracingImager makes images with an engine that marks what it writes to.
func tracingImager(t *testing.T) *imager {
	t.Helper()
	m := testImager(t, imageLimits{})
	whole, err := m.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if whole.stopping, err = traceStores(whole.stopping); err != nil {
		t.Fatal(err)
	}
	m.digest = sha256hex.Of(whole.stopping)
	if m.shared, err = m.compileShared(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// The stored layouts are those that result from these calls.
func TestLayout(t *testing.T) {
	m := tracingImager(t)
	found := map[baseKind]layout{}
	for _, kind := range []baseKind{basePlain, baseNet, baseEvaluator} {
		found[kind] = observeCalls(t, m, kind)
		t.Logf("%s: %d blocks are hot, of %v", kind, len(found[kind].Hot), found[kind].Blocks)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("layout.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(text, layoutsText) {
		t.Error("the prelude or the calls have changed: write layout.json anew with go test ./toolchain -run TestLayout -update")
	}
}

// TestWrittenPages counts the pages that calls write to: each is copied for each live instance, and restored after the call.
func TestWrittenPages(t *testing.T) {
	m := tracingImager(t)
	for _, kind := range []baseKind{basePlain, baseEvaluator} {
		stored, err := kind.layout()
		if err != nil {
			t.Fatal(err)
		}
		typical := imageOfTypical(t, m, kind, stored)
		const page = 4096
		for _, c := range kind.calls() {
			memory, pages := traceCall(t, m, typical, c), 0
			for at := uint32(trace + len(memory)>>6 + page - 1); int(at) < len(memory); at += page { // after the marks themselves
				if written(memory, at&^(page-1), page) {
					pages++
				}
			}
			if t.Logf("%s %.20q: %d pages", c.tool, c.body, pages); pages == 0 || pages > c.most {
				t.Errorf("%s %.20q writes to %d pages, want at most %d", c.tool, c.body, pages, c.most)
			}
		}
	}
}

// observeCalls makes a base image and an extension without any layout, and records what the calls write.
func observeCalls(t *testing.T, m *imager, kind baseKind) layout {
	t.Helper()
	ordinals := map[uint32]int{} // of the last allocation of each block
	var count int
	newArena := -1    // the size for which the engine made an arena
	var newest uint32 // the link of the arena of that size before
	typical := imageOfTypical(t, m, kind, layout{observe: func(g *guest, rt uint32, class int) {
		link := func(class int) uint32 { return g.load32(rt + runtimeArenas + 8*uint32(class) + 4) }
		if newArena >= 0 {
			if made := link(newArena); made != newest { // otherwise the block is free again, and its arena with it
				ordinals[made-arenaLink+arenaBlocks] = count - 1
			}
			newArena = -1
		}
		head := rt + uint32(runtimeFreeArenas) + 8*uint32(class)
		if a := g.load32(head + 4); a == head {
			newArena, newest = class, link(class)
		} else {
			ordinals[a+arenaBlocks+uint32(g.load16(a+arenaFirstFree))*arenaSizes[class]] = count
		}
		count++
	}})
	img, base := typical.image, typical.base
	inBase, before := blocksOf(base.memory, arenasOf(base.memory, base.roots.Runtime)), blocksOf(img.memory, typical.arenas)
	hot := map[int]bool{}
	found := layout{Blocks: make([]int, len(arenaSizes))}
	var hotOf [len(arenaSizes)]int
	for _, c := range kind.calls() {
		memory := traceCall(t, m, typical, c)
		var taken [len(arenaSizes)]int
		for block, a := range blocksOf(memory, slices.Concat(typical.arenas, arenasOf(memory, img.roots.Runtime))) {
			header, body := written(memory, block, 8), written(memory, block+8, arenaSizes[a.class]-8)
			if ordinal, ok := ordinals[block]; ok && inBase[block].used && before[block].used && (header || body) {
				if !hot[ordinal] {
					hot[ordinal] = true
					hotOf[a.class]++
				}
			} else if !before[block].used && (body || a.used) {
				taken[a.class]++
			}
		}
		for i, n := range taken {
			found.Blocks[i] = max(found.Blocks[i], n)
		}
	}
	for i, n := range hotOf {
		found.Blocks[i] += n
		if arenaSizes[i] <= 128 && found.Blocks[i] > 0 {
			found.Blocks[i]++ // with this layout a call may take one more, and an arena that the engine makes for it writes to two pages
		}
	}
	found.Hot = slices.Sorted(maps.Keys(hot))
	return found
}

// typicalImage is an image for typical calls.
type typicalImage struct {
	*image
	base    *baseImage
	linkage *linkage
	arenas  []uint32 // of the image
}

// imageOfTypical makes the image of the typical extension, or of the evaluator, with a layout.
func imageOfTypical(t *testing.T, m *imager, kind baseKind, laid layout) typicalImage {
	t.Helper()
	prelude, err := preludeSource(testEngine(t).modules, kind.net())
	if err != nil {
		t.Fatal(err)
	}
	base, err := m.makeBase(t.Context(), prelude, laid)
	if err != nil {
		t.Fatal(err)
	}
	if base.bindings, err = m.compileBindings(t.Context(), base.roots); err != nil {
		t.Fatal(err)
	}
	var l *linkage
	code, name := []byte(sdk), sdkName
	if kind == baseEvaluator {
		l = testLinkageOf(t, []string{abi.ExtensionTools, abi.ExtensionStepwise, abi.ExtensionMemory, abi.ExtensionEvaluator}, "env", "poll", "console", "tools")
		l.bindings = map[string]string{"console": console.Interface, "tools": tools.Interface}
	} else {
		l = testLinkage(t, "env", "poll", "clock", "kv", "console", "random")
		l.bindings = map[string]string{"store": kv.Interface, "clock": clock.Interface}
		b, err := bundle(t.Context(), Source{FS: fstest.MapFS{"typical.ts": {Data: []byte(typical)}}, Entry: "typical.ts"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		code, name = b.code, "extension.js"
	}
	img, _, err := m.evaluated(t.Context(), base, nil, testDescriptor(t, l), code, name, false)
	if err != nil {
		t.Fatal(err)
	}
	made := typicalImage{img, base, l, arenasOf(img.memory, img.roots.Runtime)}
	if !freeze(img.memory, img.roots, base.arenas) {
		t.Fatal("the image is not as expected")
	}
	return made
}

type blockState struct {
	class int
	used  bool
}

// arenasOf lists the arenas of a memory, without those of the image if that is frozen.
func arenasOf(memory []byte, rt uint32) (arenas []uint32) {
	word := func(p uint32) uint32 { return binary.LittleEndian.Uint32(memory[p:]) }
	for class := range arenaSizes {
		head := rt + runtimeArenas + 8*uint32(class)
		for link := word(head + 4); link != head; link = word(link + 4) {
			arenas = append(arenas, link-arenaLink)
		}
	}
	return arenas
}

// blocksOf lists the blocks of arenas.
func blocksOf(memory []byte, arenas []uint32) map[uint32]blockState {
	half := func(p uint32) uint32 { return uint32(binary.LittleEndian.Uint16(memory[p:])) }
	blocks := map[uint32]blockState{}
	for _, a := range arenas {
		class := int(memory[a+arenaSize])
		size := arenaSizes[class]
		for i := range half(a + arenaCount) {
			blocks[a+arenaBlocks+i*size] = blockState{class, true}
		}
		for i := half(a + arenaFirstFree); i != 0xffff; {
			block := a + arenaBlocks + i*size
			blocks[block] = blockState{class, false}
			i = half(block)
		}
	}
	return blocks
}

// trace is where an engine changed by traceStores marks its writes: one bit for each 8 bytes.
const trace = 4096

func written(memory []byte, p, n uint32) bool {
	for at := p &^ 7; at < p+n; at += 8 {
		if memory[trace+at>>6]>>(at>>3&7)&1 != 0 {
			return true
		}
	}
	return false
}

// traceCall makes a call in a host whose answers are all zero, and returns its memory.
func traceCall(t *testing.T, m *imager, typical typicalImage, c typicalCall) []byte {
	t.Helper()
	code := ""
	if c.body != "" {
		var ok bool
		if code, ok, _ = Body(Program{Name: "code.ts", Text: c.body}).erase(t.Context()); !ok {
			t.Fatalf("the types of %q cannot be erased", c.body)
		}
	}
	g, _ := callCode(t, m, typical.linkage, typical.image, code, c.tool, c.input)
	return g.snapshot()
}

// callZero calls a tool in a host whose answers are all zero, and returns its guest and its output.
func callZero(t *testing.T, m *imager, l *linkage, img *image, tool, input string) (*guest, string) {
	t.Helper()
	return callCode(t, m, l, img, "", tool, input)
}

// callCode does that after it has evaluated the call's code, if there is any.
func callCode(t *testing.T, m *imager, l *linkage, img *image, code, tool, input string) (*guest, string) {
	t.Helper()
	handle := int32(1)
	g, instance := startBindings(t, m, l, img, func(g *guest, c coreImport, f *abi.Func) *wasmtime.Func {
		return answerZero(g, c, f, &handle)
	})
	clear(g.memory.UnsafeData(g.store)[trace:wasmPage])
	if code != "" {
		result, err := instance.GetFunc(g.store, abi.ExtensionEvaluator+"#evaluate").Call(g.store, g.text(code), int32(len(code)))
		if err != nil || g.err != nil {
			t.Fatal(err, g.err)
		}
		if memory, at := g.memory.UnsafeData(g.store), uint32(result.(int32)); memory[at] != 0 {
			t.Fatalf("the code of %s failed", tool)
		}
	}
	name, argument := g.text(tool), g.text(input)
	result, err := instance.GetFunc(g.store, abi.ExtensionStepwise+"#start").
		Call(g.store, name, int32(len(tool)), argument, int32(len(input)), int32(1))
	for {
		if err != nil || g.err != nil {
			t.Fatal(tool, err, g.err)
		}
		memory, at := g.memory.UnsafeData(g.store), uint32(result.(int32))
		text := func(at uint32) string { return string(memory[g.load32(at):][:g.load32(at+4)]) }
		if memory[at] != 0 {
			println(tool, g.load32(at+4), g.load32(at+8), g.load32(at+12), g.load32(at+16), g.load32(at+20))
			println(text(at + 8))
			panic(1)
		}
		if memory[at+4] != 0 { // the output, or else the tool waits
			return g, text(at + 8)
		}
		result, err = instance.GetFunc(g.store, abi.ExtensionStepwise+"#resume").Call(g.store)
	}
}

// answerZero returns success and zero: handles are new, and poll reports that the first one is ready.
func answerZero(g *guest, c coreImport, f *abi.Func, handle *int32) *wasmtime.Func {
	kinds := func(types []abi.CoreType) []*wasmtime.ValType {
		var vs []*wasmtime.ValType
		for _, t := range types {
			kind := map[abi.CoreType]wasmtime.ValKind{
				abi.CoreI32: wasmtime.KindI32, abi.CoreI64: wasmtime.KindI64, abi.CoreF32: wasmtime.KindF32, abi.CoreF64: wasmtime.KindF64,
			}[t]
			vs = append(vs, wasmtime.NewValType(kind))
		}
		return vs
	}
	size := uint32(0) // of a result that is too large to be returned
	if f != nil && f.Result != nil {
		size = f.Result.Size()
	}
	return wasmtime.NewFunc(g.store, wasmtime.NewFuncType(kinds(c.params), kinds(c.results)), func(_ *wasmtime.Caller, args []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
		switch {
		case len(c.results) == 1 && c.results[0] == abi.CoreI64:
			return []wasmtime.Val{wasmtime.ValI64(0)}, nil
		case len(c.results) == 1:
			*handle++
			return []wasmtime.Val{wasmtime.ValI32(*handle)}, nil
		case size == 0:
			return nil, nil
		}
		at := uint32(args[len(args)-1].I32())
		g.write(at, make([]byte, size))
		switch {
		case strings.HasSuffix(c.name, "#get"):
			*handle++
			g.store32(at+8, uint32(*handle)) // after the discriminant: the error has a u64
		case strings.HasSuffix(c.name, "#poll"):
			ready := g.malloc(4)
			g.store32(ready, 0)
			g.store32(at, ready)
			g.store32(at+4, 1)
		}
		return nil, nil
	})
}

// traceStores makes an engine mark its writes.
func traceStores(module []byte) ([]byte, error) {
	sections, err := wasmbin.ReadSections(module, wasmbin.CoreHeader)
	if err != nil {
		return nil, err
	}
	const firstStore, lastStore = 0x36, 0x3e
	valueTypes := [...]byte{0x7f, 0x7e, 0x7d, 0x7c, 0x7f, 0x7f, 0x7e, 0x7e, 0x7e}
	var types, functions, imports uint32
	for i, s := range sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionType:
			types = uint32(r.Count())
			body := append(binary.AppendUvarint(nil, uint64(types)+uint64(len(valueTypes))), r.Rest()...)
			for _, v := range valueTypes {
				body = append(body, 0x60, 3, 0x7f, v, 0x7f, 0) // (address, value, offset)
			}
			sections[i].Body = body
		case wasmbin.SectionImport:
			for range r.Count() {
				r.Name()
				r.Name()
				if r.Byte() == 0 {
					imports++
					r.U32()
				} else {
					r.Limits()
				}
			}
		case wasmbin.SectionFunction:
			functions = uint32(r.Count())
			body := append(binary.AppendUvarint(nil, uint64(functions)+uint64(len(valueTypes))), r.Rest()...)
			for k := range valueTypes {
				body = binary.AppendUvarint(body, uint64(types)+uint64(k))
			}
			sections[i].Body = body
		case wasmbin.SectionCode:
			n := r.Count()
			out := binary.AppendUvarint(nil, uint64(n)+uint64(len(valueTypes)))
			for range n {
				code := &wasmbin.Reader{Bytes: r.Vector()}
				skipLocals(code)
				var body []byte
				copied := 0
				for code.Err == nil && code.Pos < len(code.Bytes) {
					at := code.Pos
					if op := instruction(code); op >= firstStore && op <= lastStore {
						immediates := wasmbin.Reader{Bytes: code.Bytes, Pos: at + 1}
						immediates.U32() // alignment
						offset := immediates.U32()
						body = append(body, code.Bytes[copied:at]...)
						body = wasmbin.AppendSigned(append(body, 0x41), int64(int32(offset)))
						body = binary.AppendUvarint(append(body, 0x10), uint64(imports+functions)+uint64(op-firstStore))
						copied = code.Pos
					}
				}
				if code.Err != nil {
					return nil, code.Err
				}
				out = wasmbin.AppendBytes(out, append(body, code.Bytes[copied:]...))
			}
			for k := range valueTypes {
				out = wasmbin.AppendBytes(out, []byte{
					0,
					0x20, 0, 0x20, 2, 0x6a, 0x22, 0, 0x20, 1, firstStore + byte(k), 0, 0, // store at address + offset, kept in local 0
					0x20, 0, 0x41, 6, 0x76, 0x22, 2, // the address of the mark, kept in local 2
					0x20, 2, 0x2d, 0, 0x80, 0x20, // load8_u offset=trace
					0x41, 1, 0x20, 0, 0x41, 3, 0x76, 0x41, 7, 0x71, 0x74, 0x72, // or 1 << (address >> 3 & 7)
					0x3a, 0, 0x80, 0x20, // store8 offset=trace
					0x0b,
				})
			}
			sections[i].Body = out
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, sections), nil
}
