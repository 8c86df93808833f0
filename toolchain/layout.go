package toolchain

//go:generate go test -run ^TestDeclarationsOf|^TestLayout$ . -update

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stilehost/stile/internal/wasmbin"
)

// The engine keeps blocks of up to 504 bytes in arenas of 4 KiB, one list of them for each size of block, and takes the next block
// from the first arena of the list that has one free. Every call writes to a few hundred blocks of an image, mostly to change a
// reference count. By default, these blocks are spread over as many pages as the image has, and a call's allocations come from a
// separate arena for each size. Each live instance has its own copy of every page that it writes to. So while a base image is made,
// such blocks are put into arenas that lie side by side and have room for a call's allocations. These arenas differ from the
// engine's own only in size.

// layout says which blocks of a base image lie together.
type layout struct {
	// Hot are the blocks that calls write to: the ordinals of their allocations, ascending.
	Hot []int `json:"hot"`
	// Blocks is how many blocks of each size fit: the hot ones, and those that a call allocates.
	Blocks []int `json:"blocks"`
	// observe, when not nil, is called before each of the allocations that ordinals count, with the runtime and the size.
	observe func(g *guest, runtime uint32, class int)
}

//go:embed layout.json
var layoutsText []byte

// baseKind says what a base image is for.
type baseKind string

// The kinds of base images.
const (
	basePlain     baseKind = "plain"     // extensions
	baseNet       baseKind = "net"       // extensions that use the web APIs of the network
	baseEvaluator baseKind = "evaluator" // code that comes with a call, and may use those too
)

func (k baseKind) net() bool { return k != basePlain }

// layout is the layout of a base image. TestLayout found it, and rewrites it with the flag -update.
func (k baseKind) layout() (layout, error) {
	var layouts map[baseKind]layout
	if err := json.Unmarshal(layoutsText, &layouts); err != nil {
		return layout{}, fmt.Errorf("read layout.json: %w", err)
	}
	return layouts[k], nil
}

// arenaSizes are the sizes of blocks, in bytes, with a header of 8.
var arenaSizes = [...]uint32{
	16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 144, 160, 176, 192, 208, 224, 240, 256,
	288, 320, 352, 384, 416, 448, 480, 512,
}

// sizeClass is the index in arenaSizes for an allocation of n bytes. It returns false if the allocation gets no block of an arena.
func sizeClass(n uint32) (int, bool) {
	i, _ := slices.BinarySearch(arenaSizes[:], n+8)
	return i, n > 0 && i < len(arenaSizes)
}

// Where the engine keeps its arenas: JSRuntime, JSArena and JSMallocBlockHeader in its quickjs.c. A list is circular, with its head
// in the runtime. A link that is in no list is zero.
const (
	runtimeArenas     = 40                                // heads of the lists of all arenas
	runtimeFreeArenas = runtimeArenas + 8*len(arenaSizes) // and of those with free blocks

	arenaFreeLink  = 0 // previous, next
	arenaLink      = 8
	arenaSize      = 16
	arenaUsed      = 18
	arenaCount     = 20
	arenaFirstFree = 22
	arenaBlocks    = 24
)

// While the word laying is not zero the engine stops before it allocates, with the runtime and the size in the words that
// follow, for which it calls host_interrupt.
const laying = spareWord + 4

// stopBeforeAllocations makes the engine's allocator stop: see laying. module is one that splitEngine made.
func stopBeforeAllocations(module []byte) ([]byte, error) {
	sections, err := wasmbin.ReadSections(module, wasmbin.CoreHeader)
	if err != nil {
		return nil, err
	}
	imports, interrupt, outer := uint32(0), -1, -1
	for i, s := range sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionImport:
			for range r.Count() {
				r.Name()
				name := r.Name()
				if name == "host_interrupt" {
					interrupt = int(imports)
				}
				if r.Byte() == 0 {
					imports++
					r.U32()
				} else { // the memory
					r.Limits()
				}
			}
		case wasmbin.SectionExport:
			for range r.Count() {
				name := r.Name()
				r.Byte()
				if f := r.U32(); name == "js_malloc_rt" {
					outer = int(f)
				}
			}
		case wasmbin.SectionCode:
			if interrupt < 0 || outer < int(imports) {
				r.Fail("an engine has host_interrupt and js_malloc_rt")
			} else {
				sections[i].Body = prefixAllocator(r, imports, uint32(outer), byte(interrupt))
			}
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, sections), nil
}

// prefixAllocator changes the first function that the function outer calls, which takes the runtime and a size.
func prefixAllocator(r *wasmbin.Reader, imports, outer uint32, interrupt byte) []byte {
	n := r.Count()
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = r.Vector()
	}
	if r.Err != nil || int(outer-imports) >= n {
		r.Fail("the function js_malloc_rt is not there")
		return nil
	}
	allocator := uint32(0)
	code := &wasmbin.Reader{Bytes: bodies[outer-imports]}
	skipLocals(code)
	for code.Err == nil && allocator == 0 {
		at := code.Pos
		if instruction(code) == 0x10 {
			call := wasmbin.Reader{Bytes: code.Bytes, Pos: at + 1}
			allocator = call.U32()
		}
	}
	if code.Err != nil || allocator < imports || int(allocator-imports) >= n {
		r.Fail("js_malloc_rt calls no allocator")
		return nil
	}
	body := &bodies[allocator-imports]
	code = &wasmbin.Reader{Bytes: *body}
	skipLocals(code)
	*body = slices.Concat((*body)[:code.Pos], []byte{
		0x41, laying, 0x28, 2, 0, 0x04, 0x40, // if laying is not 0
		0x41, laying + 4, 0x20, 0, 0x36, 2, 0,
		0x41, laying + 8, 0x20, 1, 0x36, 2, 0,
		0x10, interrupt, 0x1a,
		0x0b,
	}, code.Rest())
	out := binary.AppendUvarint(nil, uint64(n))
	for _, b := range bodies {
		out = wasmbin.AppendBytes(out, b)
	}
	return out
}

func skipLocals(code *wasmbin.Reader) {
	for range code.Count() {
		code.U32()
		code.ValueType()
	}
}

// arenas are those of a layout in the memory of a guest, by size. An entry is 0 if there is none.
type arenas [len(arenaSizes)]uint32

// layOut begins to give blocks their place. The engine has not been initialised yet.
func (g *guest) layOut(l layout) {
	if l.observe == nil && len(l.Blocks) != len(arenaSizes) {
		return
	}
	var next uint32
	var at arenas
	for i, blocks := range l.Blocks {
		if blocks > 0 {
			at[i] = next
			next += arenaBlocks + uint32(blocks)*arenaSizes[i]
		}
	}
	const page = 4096 // of the system
	start := (g.malloc(int(next)+page) + page - 1) &^ (page - 1)
	if g.err != nil {
		return
	}
	hot, ordinal := l.Hot, 0
	g.onAllocate = func(rt, size uint32) {
		i, small := sizeClass(size)
		if !small {
			return
		}
		if l.observe != nil {
			l.observe(g, rt, i)
		}
		if ordinal == 0 {
			for i, blocks := range l.Blocks {
				if blocks > 0 {
					at[i] += start
					g.makeArena(rt, at[i], i, blocks)
				}
			}
			g.arenas = at
		}
		wanted := len(hot) > 0 && hot[0] == ordinal
		if wanted {
			hot = hot[1:]
		}
		ordinal++
		g.offer(rt, i, wanted)
	}
	g.store32(laying, 1)
}

// laidOut ends that, and keeps the rest of our arenas from use.
func (g *guest) laidOut() {
	g.onAllocate = nil
	g.write(laying, make([]byte, 12))
	g.offerAll(false)
}

// makeArena makes an arena in the list of all arenas. It counts one more block as used than there is, so that the engine never frees
// the arena.
func (g *guest) makeArena(rt, at uint32, class, blocks int) {
	head := rt + runtimeArenas + 8*uint32(class)
	g.insert(head, at+arenaLink)
	g.store16(at+arenaSize, uint16(class))
	g.store16(at+arenaUsed, 1)
	g.store16(at+arenaCount, uint16(blocks+1))
	g.store16(at+arenaFirstFree, 0)
	for b := range blocks {
		block := at + arenaBlocks + uint32(b)*arenaSizes[class]
		next := uint16(b + 1)
		if b == blocks-1 {
			next = 0xffff
		}
		g.store16(block, next)
		g.store16(block+2, uint16(class))
	}
}

// offer puts our arena first among those with free blocks, or removes it.
func (g *guest) offer(rt uint32, class int, wanted bool) {
	a := g.arenas[class]
	if a == 0 {
		return
	}
	if next := g.load32(a + arenaFreeLink + 4); next != 0 {
		previous := g.load32(a + arenaFreeLink)
		g.store32(previous+4, next)
		g.store32(next, previous)
		g.store64(a+arenaFreeLink, 0)
	}
	if wanted && g.load16(a+arenaUsed) < g.load16(a+arenaCount) {
		g.insert(rt+uint32(runtimeFreeArenas)+8*uint32(class), a+arenaFreeLink)
	}
}

// offerAll does that for all of them, so that the next allocations go there, or not.
func (g *guest) offerAll(wanted bool) {
	for i := range g.arenas {
		g.offer(uint32(g.runtime), i, wanted)
	}
}

// insert puts a link behind the head of a list.
func (g *guest) insert(head, link uint32) {
	next := g.load32(head + 4)
	g.store32(link, head)
	g.store32(link+4, next)
	g.store32(next, link)
	g.store32(head+4, link)
}

func (g *guest) load32(p uint32) uint32 { return uint32(g.load64(p)) }

func (g *guest) load16(p uint32) uint16 { return uint16(g.load64(p)) }

func (g *guest) store32(p, v uint32) { g.write(p, binary.LittleEndian.AppendUint32(nil, v)) }

func (g *guest) store16(p uint32, v uint16) { g.write(p, binary.LittleEndian.AppendUint16(nil, v)) }
