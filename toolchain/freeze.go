package toolchain

import "encoding/binary"

// Where the engine keeps what it collects, and what a shape is: JSRuntime, JSShape and JSMallocBlockHeader in its quickjs.c.
const (
	runtimeObjects = 596 // the head of the list of all that is collected
	runtimeZero    = 604 // of what has no reference left
	runtimePhase   = 620 // of a collection
	runtimeStrings = 628 // the head of the list of all texts, which only a report of leaks would read
	runtimeHashed  = 764 // how many shapes are hashed

	runtimeStackLimit = 644
	runtimeTracing    = 657 // whether it makes the stack of an error

	headerSize  = 8 // of a block
	headerCount = headerSize + toCount
	largeBlock  = 0xffffff // what the header of a block outside of arenas begins with

	shapeHashed = 8 // whether it is
	typeShape   = 2
	typeContext = 5
)

// maxUnused bounds how much free memory of an image is taken out of use.
const maxUnused = 256 << 10

// freeze makes everything in the image of an extension immortal: see keepCounts. It empties the list of what is collected, so that a
// collection in a call visits, and so makes private, nothing of the image. The lists of texts and arenas have nothing of the image either. What a call allocates comes from our arenas, or from new ones:
// those of the engine's own that have free blocks count as full, unless that is much memory. The runtime has just collected garbage. Memory in which anything is not as
// expected stays as it is, and freeze returns false.
//
// It leaves the counts of shapes that belong to one object, because the engine changes these in place, and only while their count is 1.
func freeze(memory []byte, at roots, ours arenas) bool {
	h := heap{memory: memory, runtime: at.Runtime, ours: ours, used: map[uint32]bool{}}
	own := h.check(at.Context)
	if h.odd {
		return false
	}
	for header := range h.used {
		if count := int32(h.word(header + headerCount)); count > 0 && count < frozenCount && !own[header] {
			h.store(header+headerCount, immortalCount)
		}
	}
	for header := range own {
		h.empty(header + headerSize)
	}
	h.empty(h.runtime + runtimeObjects)
	h.close(h.runtime + runtimeStrings)
	for class := range arenaSizes {
		h.close(h.runtime + runtimeArenas + 8*uint32(class))
	}
	if ours == (arenas{}) || h.unused > maxUnused {
		return true // ours are looked for, see layout, or a call may need what is free
	}
	for _, a := range h.free {
		h.store(a+arenaFreeLink, 0)
		h.store(a+arenaFreeLink+4, 0)
		binary.LittleEndian.PutUint16(memory[a+arenaUsed:], uint16(h.half(a+arenaCount)))
		binary.LittleEndian.PutUint16(memory[a+arenaFirstFree:], noBlock)
	}
	for class, a := range ours {
		head := h.runtime + uint32(runtimeFreeArenas) + 8*uint32(class)
		h.empty(head)
		if a != 0 && h.half(a+arenaUsed) < h.half(a+arenaCount) {
			for _, p := range []uint32{head, head + 4} {
				h.store(p, a+arenaFreeLink)
			}
			for _, p := range []uint32{a + arenaFreeLink, a + arenaFreeLink + 4} {
				h.store(p, head)
			}
		}
	}
	return true
}

// heap reads the memory of an engine.
type heap struct {
	memory  []byte
	runtime uint32
	ours    arenas
	used    map[uint32]bool // the headers of blocks in use: all in arenas, and those outside of them that are collected
	free    []uint32        // arenas with free blocks, without ours
	unused  uint32          // bytes of those blocks
	odd     bool            // something is not as expected
}

func (h *heap) bytes(p, n uint32) []byte {
	if uint64(p)+uint64(n) > uint64(len(h.memory)) {
		h.odd = true
		return make([]byte, n)
	}
	return h.memory[p:][:n]
}

func (h *heap) word(p uint32) uint32 { return binary.LittleEndian.Uint32(h.bytes(p, 4)) }

func (h *heap) half(p uint32) uint32 { return uint32(binary.LittleEndian.Uint16(h.bytes(p, 2))) }

func (h *heap) store(p, v uint32) { binary.LittleEndian.PutUint32(h.bytes(p, 4), v) }

// empty makes a list empty, whose head this is, or takes a link out of every list.
func (h *heap) empty(head uint32) {
	h.store(head, head)
	h.store(head+4, head)
}

func (h *heap) expect(as bool) { h.odd = h.odd || !as }

// each visits the links of a list.
func (h *heap) each(head uint32, visit func(link uint32)) {
	// A list whose links agree comes back to its head.
	h.expect(h.word(h.word(head)+4) == head)
	for previous, link := head, h.word(head+4); link != head && !h.odd; {
		h.expect(link%4 == 0 && h.word(link) == previous)
		if !h.odd {
			visit(link)
		}
		previous, link = link, h.word(link+4)
	}
}

// check finds all blocks, and compares what there is with what is known of the engine. It returns the headers of shapes that
// belong to one object.
func (h *heap) check(context uint32) (own map[uint32]bool) {
	for class, size := range arenaSizes {
		partly := map[uint32]bool{}
		h.each(h.runtime+uint32(runtimeFreeArenas)+8*uint32(class), func(link uint32) { partly[link-arenaFreeLink] = true })
		h.each(h.runtime+runtimeArenas+8*uint32(class), func(link uint32) {
			a := link - arenaLink
			free := h.arena(a, uint32(class), size)
			h.expect(free > 0 == partly[a] || a == h.ours[class])
			if free > 0 && a != h.ours[class] {
				h.free = append(h.free, a)
				h.unused += free * size
			}
			delete(partly, a)
		})
		h.expect(len(partly) == 0)
	}
	own = map[uint32]bool{}
	hashed, contexts := uint32(0), 0
	h.each(h.runtime+runtimeObjects, func(link uint32) {
		header := link - headerSize
		first, count := h.word(header), int32(h.word(header+headerCount))
		h.expect(h.used[header] || first&largeBlock == largeBlock)
		h.used[header] = true
		typ := first >> 24 // the upmost bit, which a collection sets, is 0
		h.expect(typ <= typeContext && count > 0 && count < frozenCount)
		switch typ {
		case typeShape:
			switch h.bytes(link+shapeHashed, 1)[0] {
			case 0:
				own[header] = true
				h.expect(count == 1)
			case 1:
				hashed++
			default:
				h.odd = true
			}
		case typeContext:
			contexts++
			h.expect(link == context)
		}
	})
	h.expect(contexts == 1 && hashed == h.word(h.runtime+runtimeHashed))
	h.each(h.runtime+runtimeZero, func(uint32) { h.odd = true })
	h.each(h.runtime+runtimeStrings, func(uint32) {})
	h.expect(h.bytes(h.runtime+runtimePhase, 1)[0] == 0)
	return own
}

// close takes what the image has out of a list that the engine only adds to and removes from, so that an addition writes to nothing of the
// image. The members keep a list of their own without a head, from which one that is freed can be taken.
func (h *heap) close(head uint32) {
	last, first := h.word(head), h.word(head+4)
	if first == head {
		return
	}
	h.store(first, last)
	h.store(last+4, first)
	h.empty(head)
}

// noBlock ends a list of free blocks.
const noBlock = 0xffff

// arena finds the blocks of an arena that are in use, and returns how many are free.
func (h *heap) arena(a, class, size uint32) (free uint32) {
	blocks, used := h.half(a+arenaCount), h.half(a+arenaUsed)
	if a == h.ours[class] { // it counts one that is not there: see makeArena
		blocks, used = blocks-1, used-1
	}
	h.expect(h.bytes(a+arenaSize, 1)[0] == byte(class) && used <= blocks)
	h.bytes(a+arenaBlocks, blocks*size)
	if h.odd {
		return 0
	}
	unused := map[uint32]bool{}
	for i := h.half(a + arenaFirstFree); i != noBlock && !h.odd; {
		h.expect(i < blocks && !unused[i])
		unused[i] = true
		i = h.half(a + arenaBlocks + i*size)
	}
	h.expect(uint32(len(unused)) == blocks-used)
	for i := range blocks {
		block := a + arenaBlocks + i*size
		h.expect(h.bytes(block+2, 1)[0] == byte(class))
		if !unused[i] {
			h.expect(h.half(block) == i)
			h.used[block] = true
		}
	}
	return uint32(len(unused))
}
