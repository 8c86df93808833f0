package toolchain

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

// freezeImage freezes an image, and returns the headers of what is counted and immortal: what is collected, atoms, and what values in blocks
// point at. The word before any other block means nothing.
func freezeImage(t *testing.T, img *image, ours arenas) (counted []uint32) {
	t.Helper()
	const runtimeAtoms, runtimeAtomArray = 556, 568
	const firstCounted, lastCounted = -9, -1 // tags of values
	h := heap{memory: img.memory, runtime: img.roots.Runtime, ours: ours, used: map[uint32]bool{}}
	own := h.check(img.roots.Context)
	blocks := blocksOf(img.memory, arenasOf(img.memory, img.roots.Runtime))
	found := map[uint32]bool{}
	h.each(h.runtime+runtimeObjects, func(link uint32) { found[link-headerSize] = true })
	for i := range h.word(h.runtime + runtimeAtoms) {
		if atom := h.word(h.word(h.runtime+runtimeAtomArray) + 4*i); atom&1 == 0 { // not free
			found[atom-headerSize] = true
		}
	}
	for block, state := range blocks {
		for at := block + headerSize; state.used && at < block+arenaSizes[state.class]; at += 8 {
			if tag := int32(h.word(at + 4)); tag >= firstCounted && tag <= lastCounted {
				found[h.word(at)-headerSize] = true
			}
		}
	}
	for header := range found {
		if h.used[header] && !own[header] && int32(h.word(header+headerCount)) > 0 { // or a value was there earlier
			counted = append(counted, header)
		}
	}
	if !freeze(img.memory, img.roots, ours) {
		t.Fatal("the image is not as expected")
	}
	for _, header := range counted {
		if count := h.word(header + headerCount); count != immortalCount {
			t.Errorf("the count of the block at %#x is %#x", header, count)
		}
	}
	return counted
}

// The script answers the same with the engine as it is and with the rewritten one, whose image is immortal. No count of that changes.
func TestImmortalImages(t *testing.T) {
	code, err := os.ReadFile("testdata/immortal.ts")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle(t.Context(), Source{FS: fstest.MapFS{"immortal.ts": {Data: code}}, Entry: "immortal.ts"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := testLinkage(t, "env", "poll", "clock", "console", "random")
	limits := imageLimits{cpu: 5 * time.Minute, memory: 512 << 20}
	mortal := imagerOf(t, splitWhole, cachetest.Open(t).Do, limits)
	mortalBase := testLaidOutBase(t, mortal)
	unchanged, _, err := mortal.evaluated(t.Context(), mortalBase, nil, testDescriptor(t, l), b.code, "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	m := testImager(t, limits)
	base := testLaidOutBase(t, m)
	img, _, err := m.evaluated(t.Context(), base, nil, testDescriptor(t, l), b.code, "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	frozen := freezeImage(t, img, base.arenas)
	if len(frozen) < 5000 {
		t.Fatalf("%d counts", len(frozen))
	}
	for _, input := range []string{`{"n":0}`, `{"n":30}`, `{"n":20000}`} {
		_, want := callZero(t, mortal, l, unchanged, "run", input)
		g, got := callZero(t, m, l, img, "run", input)
		if len(want) < 50_000 {
			t.Errorf("%s: an answer of %d bytes", input, len(want))
		}
		if got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			from := max(0, at-200)
			t.Errorf("%s: %d and %d bytes, which differ at %d\ngot  %.400s\nwant %.400s", input, len(got), len(want), at, got[from:], want[from:])
		}
		for _, header := range frozen {
			if count := g.load32(header + headerCount); count != immortalCount {
				t.Errorf("%s: the count of the block at %#x is %#x", input, header, count)
			}
		}
		if collected := g.call("qjs_get_gc_threshold") != gcThreshold; collected != (input == `{"n":20000}`) {
			t.Errorf("%s: garbage was collected: %t", input, collected)
		}
	}
}

// Memory in which anything is not as expected is left as it was.
func TestFreezeRefuses(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testLaidOutBase(t, m)
	made, _, err := m.evaluated(t.Context(), base, nil, testDescriptor(t, testLinkage(t)), oneTool(""), "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	at, ours := made.roots, base.arenas
	word := func(p uint32) uint32 { return binary.LittleEndian.Uint32(made.memory[p:]) }
	var shape uint32
	for link := word(at.Runtime + runtimeObjects + 4); shape == 0; link = word(link + 4) {
		if word(link-headerSize)>>24 == typeShape {
			shape = link
		}
	}
	arena := word(at.Runtime+runtimeArenas+4) - arenaLink
	for name, damage := range map[string]func(memory []byte){
		"no memory":                         nil,
		"a list that leads nowhere":         func(b []byte) { binary.LittleEndian.PutUint32(b[at.Runtime+runtimeObjects+4:], 0xfffffff0) },
		"a list that leads to itself":       func(b []byte) { binary.LittleEndian.PutUint32(b[shape+4:], shape) },
		"an empty list":                     func(b []byte) { clear(b[at.Runtime+runtimeObjects:][:8]) },
		"an object of no type":              func(b []byte) { b[shape-headerSize+3] = typeContext + 1 },
		"an object that is being collected": func(b []byte) { b[shape-headerSize+3] |= 0x80 },
		"an object without references":      func(b []byte) { clear(b[shape+4-headerSize:][:4]) },
		"an object in no block":             func(b []byte) { b[shape-headerSize]++ },
		"a shape that is hashed or not":     func(b []byte) { b[shape+shapeHashed] = 2 },
		"another number of hashed shapes":   func(b []byte) { b[shape+shapeHashed] ^= 1 },
		"a collection":                      func(b []byte) { b[at.Runtime+runtimePhase] = 1 },
		"an arena of another size":          func(b []byte) { b[arena+arenaSize]++ },
		"an arena with more blocks":         func(b []byte) { b[arena+arenaCount+1]++ },
		"an arena with more in use":         func(b []byte) { b[arena+arenaUsed]++ },
		"a block of another size":           func(b []byte) { b[arena+arenaBlocks+2]++ },
		"an arena full of free blocks":      func(b []byte) { binary.LittleEndian.PutUint16(b[arena+arenaFirstFree:], 0) },
	} {
		t.Run(name, func(t *testing.T) {
			memory := bytes.Clone(made.memory)
			if damage == nil {
				memory = nil
			} else {
				damage(memory)
			}
			before := bytes.Clone(memory)
			if freeze(memory, at, ours) || !bytes.Equal(memory, before) {
				t.Error("it is frozen")
			}
		})
	}
	elsewhere := at
	elsewhere.Runtime += 8
	if memory := bytes.Clone(made.memory); freeze(memory, elsewhere, ours) || !bytes.Equal(memory, made.memory) {
		t.Error("a runtime that is elsewhere is frozen")
	}
	if memory := bytes.Clone(made.memory); !freeze(memory, at, ours) || bytes.Equal(memory, made.memory) {
		t.Error("nothing is frozen")
	}
}

// What is free in an image is of use to calls, if it is much.
func TestCallsUseFreeMemoryOfTheImage(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testLaidOutBase(t, m)
	l := testLinkage(t, "env", "poll")
	limit := m.limits.memory
	for name, code := range map[string]string{
		"blocks in arenas": `let objects: any[] = [];
for (let i = 0; i < 100_000; i++) objects.push({ i, text: "text " + i });
objects = objects.filter((_, i) => i % 2);
const run = async () => { const a = []; for (let i = 0; i < 40_000; i++) a.push({ i, text: "text " + i }); return a.length; };`,
	} {
		t.Run(name, func(t *testing.T) {
			code = `import { extension } from "stile";` + code + `export default extension({ tools: { t: { description: "test", run } } });`
			b, err := bundle(t.Context(), Source{FS: fstest.MapFS{"t.ts": {Data: []byte(code)}}, Entry: "t.ts"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.limits.memory = limit
			img, _, err := m.extension(t.Context(), base, nil, testDescriptor(t, l), b.code, "extension.js", false)
			if err != nil {
				t.Fatal(err)
			}
			m.limits.memory = uint64(len(img.memory)) + 1<<20
			if _, got := callZero(t, m, l, img, "t", "{}"); got != "40000" {
				t.Error(got)
			}
		})
	}
}

// testLaidOutBase makes the base image that extensions without the network have.
func testLaidOutBase(t *testing.T, m *imager) *baseImage {
	t.Helper()
	l, err := basePlain.layout()
	if err != nil {
		t.Fatal(err)
	}
	prelude, err := preludeSource(testEngine(t).modules, false)
	if err != nil {
		t.Fatal(err)
	}
	base, err := m.makeBase(t.Context(), prelude, l)
	if err != nil {
		t.Fatal(err)
	}
	if base.bindings, err = m.compileBindings(t.Context(), base.roots); err != nil {
		t.Fatal(err)
	}
	return base
}
