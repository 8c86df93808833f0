package toolchain

import (
	"bytes"
	"slices"
)

// memoryLimitFunc is the name of the function that a backtrace ends in when the memory of a guest cannot grow any more.
const memoryLimitFunc = "stile:limit-memory"

// maxEnginePages bounds what an engine may ask for before anything has run: 16 MiB.
const maxEnginePages = 256

// splitModule is an engine made ready to be shared by components, each of which brings a memory of its own.
type splitModule struct {
	// module imports its memory as env.memory, has no data, and traps in memoryLimitFunc when the memory cannot grow.
	module []byte
	// shared is module with only the exports that bindings use. Each exported function costs every instance 32 bytes.
	shared []byte
	// memory is the content the engine starts with, whole pages.
	memory []byte
	// stackTop is the address below which the engine's stack lies, 0 if that is not known. The pages from there up to spareEnd
	// are for the heap.
	stackTop, spareEnd uint32
	// slot is an index in the engine's function table that the engine leaves free.
	slot uint32
}

// splitEngine rewrites a core module that defines its memory and has a function table. Custom sections are dropped.
// It returns a *WasmError for a module that it cannot rewrite safely, and never panics.
func splitEngine(wasm []byte) (*splitModule, error) {
	sections, err := readSections(wasm, coreHeader)
	if err != nil {
		return nil, err
	}
	var (
		split     splitModule
		functions uint32 // imported and defined
		growType  uint32
		exports   []byte
		seen      uint16
		out       []section
	)
	for _, s := range sections {
		if s.id == sectionCustom {
			continue
		}
		if s.id > sectionDataCount || seen&(1<<s.id) != 0 {
			return nil, &WasmError{s.offset, "unknown or repeated section"}
		}
		seen |= 1 << s.id
		r := s.reader()
		switch s.id {
		case sectionType:
			s.body, growType = addGrowType(r)
		case sectionImport:
			s.body = importMemory(r, &functions)
		case sectionFunction:
			n := r.count()
			functions += n
			s.body = append(appendUnsigned(nil, uint64(n)+1), r.rest()...)
			s.body = appendUnsigned(s.body, uint64(growType))
		case sectionTable:
			s.body, split.slot = addTableSlot(r)
		case sectionMemory:
			split.memory = readMemory(r)
			for _, d := range sections {
				if data := d.reader(); d.id == sectionData && r.err == nil {
					applyData(data, split.memory)
					r.err = data.err
				}
			}
			split.spareEnd = dataPage(split.memory)
		case sectionGlobal:
			s.body = split.moveStack(r)
		case sectionExport:
			exports = keepExports(r)
		case sectionStart:
			r.fail("a start function would run at every instantiation")
		case sectionCode:
			s.body = redirectGrow(r, functions, split.spareEnd)
		}
		if r.err != nil {
			return nil, r.err
		}
		if s.id != sectionMemory && s.id != sectionData && s.id != sectionDataCount {
			out = append(out, s)
		}
	}
	for _, id := range []byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionCode} {
		if seen&(1<<id) == 0 {
			return nil, &WasmError{len(wasm), "a section that every engine has is missing"}
		}
	}
	// The import section declares the memory, so it is written once the size is known.
	i := slices.IndexFunc(out, func(s section) bool { return s.id == sectionImport })
	out[i].body = appendUnsigned(out[i].body, uint64(len(split.memory)/wasmPage))
	out = append(out, nameSection(functions, memoryLimitFunc))
	split.module = writeSections(coreHeader, out)
	for i := range out {
		if out[i].id == sectionExport {
			out[i].body = exports
		}
	}
	split.shared = writeSections(coreHeader, out)
	return &split, nil
}

// keepExports leaves the exports that bindings use.
func keepExports(r *reader) []byte {
	var body []byte
	var kept uint64
	for range r.count() {
		start := r.pos
		name := r.name()
		kind := r.byte()
		r.u32()
		if r.err != nil {
			return nil
		}
		used := kind == 1 || slices.ContainsFunc(engineExports, func(e engineExport) bool { return e.name == name })
		if used {
			kept++
			body = append(body, r.bytes[start:r.pos]...)
		}
	}
	return append(appendUnsigned(nil, kept), body...)
}

// addGrowType adds the type (i32) -> i32 and returns its index.
func addGrowType(r *reader) ([]byte, uint32) {
	n := r.count()
	start := r.pos
	for range n {
		if form := r.byte(); form != 0x60 {
			r.fail("type of form %#x is not supported", form)
		}
		r.take(r.count())
		r.take(r.count())
	}
	body := append(appendUnsigned(nil, uint64(n)+1), r.bytes[start:r.pos]...)
	return append(body, 0x60, 1, 0x7f, 1, 0x7f), n
}

// importMemory adds the import of env.memory, without the number of pages, and counts the imported functions.
func importMemory(r *reader, functions *uint32) []byte {
	n := r.count()
	start := r.pos
	for range n {
		r.name()
		r.name()
		if kind := r.byte(); kind != 0 {
			r.fail("import of kind %d is not supported", kind)
		}
		r.u32()
		if r.err != nil {
			return nil
		}
		*functions++
	}
	body := append(appendUnsigned(nil, uint64(n)+1), r.bytes[start:r.pos]...)
	body = appendName(body, "env")
	body = appendName(body, "memory")
	return append(body, 2, 0)
}

// addTableSlot makes the only table one element larger and returns the index of that element.
func addTableSlot(r *reader) (body []byte, slot uint32) {
	if n := r.count(); n != 1 {
		r.fail("%d tables instead of one", n)
	}
	kind := r.byte()
	slot, maximum := r.limits()
	if slot > 1<<20 {
		r.fail("table of %d elements", slot)
	}
	body = []byte{1, kind, 0}
	if maximum != nil {
		body[2] = 1
	}
	body = appendUnsigned(body, uint64(slot)+1)
	if maximum != nil {
		body = appendUnsigned(body, max(uint64(*maximum), uint64(slot)+1))
	}
	return body, slot
}

func readMemory(r *reader) []byte {
	if n := r.count(); n != 1 {
		r.fail("%d memories instead of one", n)
	}
	pages, _ := r.limits()
	if pages > maxEnginePages {
		r.fail("memory of %d pages at the start", pages)
	}
	if r.err != nil {
		return nil
	}
	return make([]byte, int(pages)*wasmPage)
}

// applyData writes the active data segments into memory.
func applyData(r *reader, memory []byte) {
	for range r.count() {
		if kind := r.u32(); kind != 0 {
			r.fail("data segment of kind %d is not supported", kind)
		}
		if op := r.byte(); op != 0x41 {
			r.fail("data segment whose place is not a constant")
		}
		at := uint64(uint32(r.s32()))
		if end := r.byte(); end != 0x0b {
			r.fail("data segment whose place is not a constant")
		}
		content := r.take(r.u32())
		if r.err != nil {
			return
		}
		if at+uint64(len(content)) > uint64(len(memory)) {
			r.fail("data segment outside of memory")
			return
		}
		copy(memory[at:], content)
	}
}

// stackPages is how much of the engine's stack is left to it: twice guestStack, beyond which most scripts do not get.
const stackPages = 2 * guestStack / wasmPage

// dataPage is the first page that the data of an engine is on, at most 63. An engine's stack begins there, to grow down.
func dataPage(memory []byte) uint32 {
	data := len(memory) - len(bytes.TrimLeft(memory, "\x00"))
	return uint32(min(data/wasmPage, 63))
}

// moveStack puts the stack, which is larger than scripts can use, as low as it can be, and so makes the pages between it
// and the data spare. Each page of memory costs time when an instance ends, and less below what an image holds. Beyond the
// stack there is nothing then that it could grow into.
func (s *splitModule) moveStack(r *reader) []byte {
	const i32, mutable, constant, end = 0x7f, 1, 0x41, 0x0b
	count, kind, mutability, op := r.count(), r.byte(), r.byte(), r.byte()
	top := uint32(r.s32())
	if r.byte() != end || count != 1 || kind != i32 || mutability != mutable || op != constant || r.pos != len(r.bytes) ||
		top != s.spareEnd*wasmPage || s.spareEnd <= 1+stackPages {
		s.spareEnd = 0
		return r.bytes
	}
	s.stackTop = (1 + stackPages) * wasmPage
	return append(appendSigned([]byte{1, i32, mutable, constant}, int64(s.stackTop)), end)
}

// redirectGrow replaces each memory.grow by a call of a function that it adds as the last one, with the index grow.
func redirectGrow(r *reader, grow, spare uint32) []byte {
	call := appendUnsigned([]byte{0x10}, uint64(grow))
	n := r.count()
	out := appendUnsigned(make([]byte, 0, len(r.bytes)+64), uint64(n)+1)
	var body []byte
	for range n {
		size := r.u32()
		start := r.pos
		code := &reader{bytes: r.take(size), base: r.base + start}
		body = body[:0]
		for range code.count() { // locals
			code.u32()
			code.byte()
		}
		copied := 0
		for code.err == nil && code.pos < len(code.bytes) {
			at := code.pos
			if code.instruction() == opMemoryGrow {
				body = append(append(body, code.bytes[copied:at]...), call...)
				copied = code.pos
			}
		}
		if code.err != nil {
			r.err = code.err
			return nil
		}
		out = appendBytes(out, append(body, code.bytes[copied:]...))
	}
	return appendBytes(out, growBody(spare))
}

const opMemoryGrow = 0x40

// spareWord is the address of a word below the stack. While it is not zero it is the number of the next spare page that
// memory is grown by.
const spareWord = 16

// growBody is memory.grow that traps when it fails, so that whoever sees the trap knows why, whatever the engine and the
// code it runs would have made of the failure. It gives out the pages up to spare while spareWord says so.
func growBody(spare uint32) []byte {
	body := []byte{1, 1, 0x7f} // one local of type i32
	if spare > 1 {
		body = append(body,
			0x41, spareWord, 0x28, 2, 0, 0x22, 1, // the next page, kept in local 1
			0x20, 0, 0x6a, 0x41, byte(spare), 0x4d, // if it and local 0 are at most spare
			0x20, 0, 0x41, byte(spare), 0x49, // and local 0 is less than that
			0x20, 1, 0x41, 0, 0x47, // and it is not 0
			0x71, 0x71, 0x04, 0x40,
			0x41, spareWord, 0x20, 1, 0x20, 0, 0x6a, 0x36, 2, 0, // go on after these
			0x20, 1, 0x0f, // and return the first
			0x0b)
	}
	return append(body,
		0x20, 0, opMemoryGrow, 0, 0x22, 1, // memory.grow(local 0), kept in local 1
		0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b, // if it is -1: unreachable
		0x20, 1, 0x0b)
}

// instruction reads one instruction with its immediates and returns its first byte.
func (r *reader) instruction() byte {
	op := r.byte()
	switch {
	case op <= 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	case op >= 0x02 && op <= 0x04, op == 0xd0: // block, loop, if; ref.null
		r.leb(33, true)
	case op == 0x0c, op == 0x0d, op == 0x10, op >= 0x20 && op <= 0x26, op == 0xd2:
		r.u32()
	case op == 0x0e: // br_table
		for range r.count() {
			r.u32()
		}
		r.u32()
	case op == 0x11: // call_indirect
		r.u32()
		r.u32()
	case op == 0x1c: // select with types
		r.take(r.count())
	case op >= 0x28 && op <= 0x3e: // load, store
		if align := r.u32(); align >= 1<<6 {
			r.fail("access to more than one memory")
		}
		r.u32()
	case op == 0x3f, op == opMemoryGrow:
		if r.byte() != 0 {
			r.fail("access to more than one memory")
		}
	case op == 0x41:
		r.leb(32, true)
	case op == 0x42:
		r.leb(64, true)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op == 0xfc:
		switch sub := r.u32(); {
		case sub <= 7: // saturating conversions
		case sub == 10, sub == 12, sub == 14: // memory.copy, table.init, table.copy
			r.u32()
			r.u32()
		case sub == 11, sub == 13, sub >= 15 && sub <= 17: // memory.fill, elem.drop, table.grow, table.size, table.fill
			r.u32()
		default: // memory.init and data.drop among them: the data is gone
			r.fail("instruction 0xfc %d is not supported", sub)
		}
	default:
		r.fail("instruction %#x is not supported", op)
	}
	return op
}

// nameSection names one function.
func nameSection(function uint32, name string) section {
	names := appendName(appendUnsigned([]byte{1}, uint64(function)), name)
	return customSection("name", appendBytes([]byte{1}, names))
}
