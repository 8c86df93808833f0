package toolchain

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/wasmbin"
)

// maxEnginePages bounds what an engine may ask for before anything has run: 16 MiB.
const maxEnginePages = 256

// splitModule is an engine that components can share, each with its own memory.
type splitModule struct {
	engineShape
	// module imports its memory as env.memory, has no data, and traps in host.MemoryTrap if the memory cannot grow.
	module []byte
	// shared is module with only the exports that bindings use, and supplied. Each exported function costs every instance 32 bytes.
	shared []byte
	// memory is the content the engine starts with, whole pages.
	memory []byte
}

// engineShape is what images and components need to know about an engine. Its fields are exported for JSON.
type engineShape struct {
	// StackTop is the address below which the engine's stack lies. It is 0 if unknown. The pages from the third up to SpareEnd are for
	// the heap.
	StackTop, SpareEnd uint32
	// Slot is the first of tableSlots indices in the engine's function table that the engine leaves free.
	Slot uint32
	// Pages is how much memory the engine starts with.
	Pages uint32
}

// splitEngine rewrites a core module that defines its memory and has a function table. Custom sections are dropped.
// It returns a *WasmError for a module that it cannot rewrite safely, and never panics.
func splitEngine(wasm []byte) (*splitModule, error) {
	sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
	if err != nil {
		return nil, err
	}
	var (
		split     splitModule
		functions uint32 // imported and defined
		growType  uint32
		exports   []byte
		seen      uint16
		out       []wasmbin.Section
	)
	for _, s := range sections {
		if s.ID == wasmbin.SectionCustom {
			continue
		}
		if s.ID > wasmbin.SectionDataCount || seen&(1<<s.ID) != 0 {
			return nil, &WasmError{Offset: s.Offset, Reason: "unknown or repeated section"}
		}
		seen |= 1 << s.ID
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionType:
			s.Body, growType = addGrowType(r)
		case wasmbin.SectionImport:
			s.Body = importMemory(r, &functions)
		case wasmbin.SectionFunction:
			n := r.Count()
			functions += uint32(n)
			s.Body = append(binary.AppendUvarint(nil, uint64(n)+2), r.Rest()...)
			s.Body = binary.AppendUvarint(s.Body, uint64(growType))
			s.Body = binary.AppendUvarint(s.Body, uint64(growType))
		case wasmbin.SectionTable:
			s.Body, split.Slot = addTableSlots(r)
		case wasmbin.SectionMemory:
			split.memory = readMemory(r)
			split.Pages = uint32(len(split.memory) / wasmPage)
			for _, d := range sections {
				if data := d.Reader(); d.ID == wasmbin.SectionData && r.Err == nil {
					applyData(data, split.memory)
					r.Err = data.Err
				}
			}
			split.SpareEnd = dataPage(split.memory)
		case wasmbin.SectionGlobal:
			s.Body = split.moveStack(r)
		case wasmbin.SectionExport:
			exports = keepExports(r)
		case wasmbin.SectionStart:
			r.Fail("a start function would run for every instance; remove it")
		case wasmbin.SectionCode:
			s.Body = guard(r, functions, split.engineShape)
		}
		if r.Err != nil {
			return nil, r.Err
		}
		if s.ID != wasmbin.SectionMemory && s.ID != wasmbin.SectionData && s.ID != wasmbin.SectionDataCount {
			out = append(out, s)
		}
	}
	for _, id := range []byte{wasmbin.SectionType, wasmbin.SectionImport, wasmbin.SectionFunction, wasmbin.SectionTable, wasmbin.SectionMemory, wasmbin.SectionCode} {
		if seen&(1<<id) == 0 {
			return nil, &WasmError{Offset: len(wasm), Reason: "a section that every engine has is missing"}
		}
	}
	// The import section declares the memory, so it is written once the size is known.
	i := slices.IndexFunc(out, func(s wasmbin.Section) bool { return s.ID == wasmbin.SectionImport })
	out[i].Body = binary.AppendUvarint(out[i].Body, uint64(split.Pages))
	out = append(out, nameSection(functions, host.MemoryTrap, host.StackTrap))
	split.module = wasmbin.WriteSections(wasmbin.CoreHeader, out)
	for i := range out {
		if out[i].ID == wasmbin.SectionExport {
			out[i].Body = exports
		}
	}
	if err := supply(out, split.Slot+1); err != nil {
		return nil, err
	}
	split.shared = wasmbin.WriteSections(wasmbin.CoreHeader, out)
	return &split, nil
}

// supply replaces the imported functions of an engine by functions of its own, which do what [imageCore] does, so that a component needs no
// instance for them: each takes time and memory in every call. Their indices stay the same. Three call functions of the bindings, which
// lie in the table from slot on. The last of these, realloc, is exported.
func supply(sections []wasmbin.Section, slot uint32) error {
	var newTypes uint32 // the first of them
	var types []uint32  // of the imported functions
	var names []string
	var last uint32 // function
	for i := range sections {
		s := &sections[i]
		r := s.Reader()
		var w wasmbin.Writer
		switch s.ID {
		case wasmbin.SectionType:
			newTypes = uint32(r.Count())
			w.Number(newTypes + 3)
			w.Byte(r.Rest()...)
			w.Byte(0x60, 0, 1, 0x7e)                         // time
			w.Byte(0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f) // realloc
			w.Byte(0x60, 3, 0x7f, 0x7f, 0x7f, 0)             // rejected
		case wasmbin.SectionImport:
			w.Number(1)
			for n := r.Count(); n > 1; n-- { // the last is the memory
				r.Name()
				names = append(names, r.Name())
				r.Byte()
				types = append(types, r.U32())
			}
			w.Byte(r.Rest()...)
		case wasmbin.SectionFunction:
			last = uint32(len(types) + r.Count())
			w.Number(last + 1)
			for _, t := range types {
				w.Number(t)
			}
			w.Byte(r.Rest()...)
			w.Number(newTypes + 1)
		case wasmbin.SectionExport:
			w.Number(uint32(r.Count() + 1))
			w.Byte(r.Rest()...)
			w.Text("realloc")
			w.Byte(0)
			w.Number(last)
		case wasmbin.SectionCode:
			w.Number(uint32(len(names)+r.Count()) + 1)
			for _, name := range names {
				w.Bytes(supplied(name, newTypes, slot))
			}
			w.Byte(r.Rest()...)
			w.Bytes(supplied("realloc", newTypes, slot))
		default:
			continue
		}
		if r.Err != nil {
			return r.Err
		}
		s.Body = w
	}
	return nil
}

// supplied is the code of a function that supply adds.
func supplied(name string, types, slot uint32) []byte {
	w := wasmbin.Writer{0} // no locals
	// call calls the function of the bindings with this number, with the parameters that are given.
	call := func(number, params uint32) {
		for p := range params {
			w.Op(wasmbin.OpLocalGet, p)
		}
		w.I32(slot + number)
		w.Op(0x11, types+number)
		w.Byte(0)
	}
	switch name {
	case "clock_time_get":
		w.Op(wasmbin.OpLocalGet, 2)
		call(0, 0)
		w.Byte(0x37, 3, 0) // i64.store
		w.I32(0)
	case "realloc":
		call(1, 4)
	case "host_promise_rejection":
		call(2, 3)
	case "random_get": // zeros
		w.Op(wasmbin.OpLocalGet, 0)
		w.I32(0)
		w.Op(wasmbin.OpLocalGet, 1)
		w.Byte(wasmbin.OpBulk, 11, 0) // memory.fill
		w.I32(0)
	case "fd_close", "fd_fdstat_get", "fd_seek", "fd_write":
		w.I32(8)
	case "host_get_timezone_offset", "host_module_normalize", "host_module_load", "host_interrupt":
		w.I32(0)
	default:
		w.Byte(wasmbin.OpUnreachable)
	}
	w.Byte(wasmbin.OpEnd)
	return w
}

// keepExports keeps only the exports that bindings use.
func keepExports(r *wasmbin.Reader) []byte {
	var body []byte
	var kept uint64
	for range r.Count() {
		start := r.Pos
		name := r.Name()
		kind := r.Byte()
		r.U32()
		if r.Err != nil {
			return nil
		}
		used := kind == 1 || slices.ContainsFunc(engineExports, func(e engineExport) bool { return e.name == name })
		if used {
			kept++
			body = append(body, r.Bytes[start:r.Pos]...)
		}
	}
	return append(binary.AppendUvarint(nil, kept), body...)
}

// addGrowType adds the type (i32) -> i32 and returns its index.
func addGrowType(r *wasmbin.Reader) ([]byte, uint32) {
	n := r.Count()
	start := r.Pos
	for range n {
		readArity(r)
	}
	body := append(binary.AppendUvarint(nil, uint64(n)+1), r.Bytes[start:r.Pos]...)
	return append(body, 0x60, 1, 0x7f, 1, 0x7f), uint32(n)
}

// importMemory adds the import of env.memory, without the number of pages, and counts the imported functions.
func importMemory(r *wasmbin.Reader, functions *uint32) []byte {
	n := r.Count()
	start := r.Pos
	for range n {
		importedFunction(r)
		if r.Err != nil {
			return nil
		}
		*functions++
	}
	body := append(binary.AppendUvarint(nil, uint64(n)+1), r.Bytes[start:r.Pos]...)
	body = wasmbin.AppendName(body, "env")
	body = wasmbin.AppendName(body, "memory")
	return append(body, 2, 0)
}

// tableSlots is how many functions of the bindings the engine calls through its table: host, and the three of supplied.
const tableSlots = 4

// addTableSlots makes the only table larger by tableSlots and returns the index of the first of them.
func addTableSlots(r *wasmbin.Reader) (body []byte, slot uint32) {
	if n := r.Count(); n != 1 {
		r.Fail("%d tables instead of one", n)
	}
	kind := r.Byte()
	slot, maximum, bounded := r.Limits()
	if slot > 1<<20 {
		r.Fail("table of %d elements", slot)
	}
	body = []byte{1, kind, 0}
	if bounded {
		body[2] = 1
	}
	body = binary.AppendUvarint(body, uint64(slot)+tableSlots)
	if bounded {
		body = binary.AppendUvarint(body, max(uint64(maximum), uint64(slot)+tableSlots))
	}
	return body, slot
}

func readMemory(r *wasmbin.Reader) []byte {
	if n := r.Count(); n != 1 {
		r.Fail("%d memories instead of one", n)
	}
	pages, _, _ := r.Limits()
	if pages > maxEnginePages {
		r.Fail("memory of %d pages at the start", pages)
	}
	if r.Err != nil {
		return nil
	}
	return make([]byte, int(pages)*wasmPage)
}

// applyData writes the active data segments into memory.
func applyData(r *wasmbin.Reader, memory []byte) {
	for range r.Count() {
		if kind := r.U32(); kind != 0 {
			r.Fail("data segment of kind %d is not supported", kind)
		}
		if op := r.Byte(); op != 0x41 {
			r.Fail("data segment whose place is not a constant")
		}
		at := uint64(uint32(r.Signed(32)))
		if end := r.Byte(); end != 0x0b {
			r.Fail("data segment whose place is not a constant")
		}
		content := r.Vector()
		if r.Err != nil {
			return
		}
		if at+uint64(len(content)) > uint64(len(memory)) {
			r.Fail("data segment outside of memory")
			return
		}
		copy(memory[at:], content)
	}
}

// stackPages is the engine's stack: guestStack, and at least 160 KiB for work of the engine that checks no limit of its own.
const stackPages = (guestStack + 160<<10 + wasmPage - 1) / wasmPage

// dataPage is the first page with data of an engine, at most 63. The engine's stack begins there and grows down.
func dataPage(memory []byte) uint32 {
	data := len(memory) - len(bytes.TrimLeft(memory, "\x00"))
	return uint32(min(data/wasmPage, 63))
}

// moveStack puts the stack above the data, in pages that the engine gets in addition, because the pages that it lay in are too few. Those become
// spare: the heap begins there, so the image of most extensions ends below the stack. Each page of memory costs time when an instance ends, but less
// below the size of an image.
func (s *splitModule) moveStack(r *wasmbin.Reader) []byte {
	const i32, mutable, constant, end = 0x7f, 1, 0x41, 0x0b
	count, kind, mutability, op := r.Count(), r.Byte(), r.Byte(), r.Byte()
	top := uint32(r.Signed(32))
	if r.Byte() != end || count != 1 || kind != i32 || mutability != mutable || op != constant || r.Pos != len(r.Bytes) ||
		top != s.SpareEnd*wasmPage || s.SpareEnd <= 1 {
		s.SpareEnd = 0
		return r.Bytes
	}
	s.memory = append(s.memory, make([]byte, stackPages*wasmPage)...)
	s.Pages += stackPages
	s.StackTop = s.Pages * wasmPage
	return append(wasmbin.AppendSigned([]byte{1, i32, mutable, constant}, int64(s.StackTop)), end)
}

// guard replaces each memory.grow by a call of a function that it adds, with the index added. Where a function moves the stack pointer down, it
// adds a call of a further function, which traps, for a pointer that is below the stack: there is data of the engine. It makes room for
// the hook that formats stacks, see room.
func guard(r *wasmbin.Reader, added uint32, shape engineShape) []byte {
	grow := binary.AppendUvarint([]byte{0x10}, uint64(added))
	var below []byte
	if shape.StackTop != 0 {
		below = wasmbin.AppendSigned([]byte{0x23, 0, 0x41}, int64(shape.StackTop-stackPages*wasmPage)) // the pointer, and the end of the stack
		below = append(below, 0x48, 0x04, 0x40, 0x41, 0)                                               // if it is less, with 0
		below = append(binary.AppendUvarint(append(below, 0x10), uint64(added)+1), 0x1a, 0x0b)
	}
	n := r.Count()
	out := binary.AppendUvarint(make([]byte, 0, len(r.Bytes)+64<<10), uint64(n)+2)
	var body []byte
	for range n {
		code := r.Sub()
		body = body[:0]
		for range code.Count() { // locals
			code.U32()
			code.Byte()
		}
		copied := 0
		last := byte(0)
		var earlier [2]int // where the last two instructions begin
		for code.Err == nil && code.Pos < len(code.Bytes) {
			at := code.Pos
			op := instruction(&code)
			switch {
			case op == wasmbin.OpMemoryGrow:
				body = append(append(body, code.Bytes[copied:at]...), grow...)
				copied = code.Pos
			case op == globalSet && last != i32Add && below != nil: // an addition moves it up again
				body = append(append(body, code.Bytes[copied:code.Pos]...), below...)
				copied = code.Pos
			case op == i32Store8:
				if more := room(code.Bytes[earlier[1]:code.Pos]); more != nil {
					body = append(append(body, code.Bytes[copied:code.Pos]...), more...)
					copied = code.Pos
				}
			}
			last = op
			earlier = [2]int{at, earlier[0]}
		}
		if code.Err != nil {
			r.Err = code.Err
			return nil
		}
		out = wasmbin.AppendBytes(out, append(body, code.Bytes[copied:]...))
	}
	return wasmbin.AppendBytes(wasmbin.AppendBytes(out, growBody(shape.SpareEnd)), []byte{0, 0x00, 0x0b})
}

// traceRoom is how far the stack may grow below its limit while the engine makes the stack of an error, in bytes: the prelude's hook runs in
// it, and so does Error.prepareStackTrace of the author. Without it, the engine could not call the hook for the error of a full stack. The
// engine calls no hook within a hook.
const traceRoom = 32 << 10

// room follows the three instructions with which the engine remembers that it makes the stack of an error, or that it is done. It lowers the
// limit of the stack by traceRoom, or raises it again. It is nil for other instructions.
func room(set []byte) []byte {
	r := wasmbin.Reader{Bytes: set}
	if r.Byte() != wasmbin.OpLocalGet {
		return nil
	}
	runtime := r.U32()
	constant, value := r.Byte(), r.Byte()
	store, align, at := r.Byte(), r.Byte(), r.U32()
	if r.Err != nil || constant != wasmbin.OpI32Const || value > 1 || store != i32Store8 || align != 0 || at != runtimeTracing {
		return nil
	}
	var w wasmbin.Writer
	w.Op(wasmbin.OpLocalGet, runtime)
	w.Op(wasmbin.OpLocalGet, runtime)
	w.Byte(i32Load, 2)
	w.Number(runtimeStackLimit)
	w.I32(traceRoom)
	w.Byte(i32Add + value) // or subtract
	w.Byte(i32Store, 2)
	w.Number(runtimeStackLimit)
	return w
}

// Instructions. The stack pointer is the only global.
const (
	globalSet = 0x24
	i32Add    = 0x6a
	i32Load   = 0x28
	i32Store  = 0x36
	i32Store8 = 0x3a
)

// spareWord is the address of a word below the stack. While it is not zero it is the number of the next spare page that
// memory is grown by.
const spareWord = 16

// growBody is a memory.grow that traps on failure, so that the trap shows the cause, whatever the engine and its code would do about
// the failure. It hands out the pages up to spare while spareWord says so.
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
		0x20, 0, wasmbin.OpMemoryGrow, 0, 0x22, 1, // memory.grow(local 0), kept in local 1
		0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b, // if it is -1: unreachable
		0x20, 1, 0x0b)
}
