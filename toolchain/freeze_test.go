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

// frozenHeaders are those of the blocks of an image that are immortal.
func frozenHeaders(t *testing.T, img *image, ours arenas) []uint32 {
	t.Helper()
	h := heap{memory: img.memory, runtime: img.roots.Runtime, ours: ours, used: map[uint32]bool{}}
	h.check(img.roots.Context)
	var frozen []uint32
	for header := range h.used {
		if h.word(header+headerCount) == immortalCount {
			frozen = append(frozen, header)
		}
	}
	return frozen
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
	mortalBase := testBase(t, mortal)
	unchanged, _, err := mortal.evaluated(t.Context(), mortalBase, testDescriptor(t, l), b.code, "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	m := testImager(t, limits)
	base := testBase(t, m)
	img, _, err := m.extension(t.Context(), base, testDescriptor(t, l), b.code, "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	frozen := frozenHeaders(t, img, base.arenas)
	if len(frozen) < 5000 {
		t.Fatalf("%d immortal blocks", len(frozen))
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
	base := testBase(t, m)
	made, _, err := m.evaluated(t.Context(), base, testDescriptor(t, testLinkage(t)), oneTool(""), "extension.js", false)
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
