package guard

import "github.com/stilehost/stile/internal/wasmbin"

// Refused is the innermost function on the stack of a guest that executed `unreachable` after the engine refused it memory.
const Refused = "stile:refused-memory"

// maxPages is how many pages a memory can have.
const maxPages = 1 << 16

// watchMemory returns a core module that behaves the same, except that it remembers in a global whether its last `memory.grow` was
// refused. Where it would trap by `unreachable` after that, it traps in the function [Refused] instead. Programs end that way when
// an allocation fails, and neither the engine's C API nor a stripped guest's backtrace distinguishes that from a bug.
//
// The engine checks at the start of functions and loops whether a call must end, and a function can have 20,000 instructions that
// each fill a memory. So the module also calls an empty function before each instruction on a range of memory or of a table.
//
// A growth beyond the maximum that the module itself declares does not count, because the host's limit did not cause it. A module
// without these instructions, a malformed one, and one that would become much larger stay unchanged.
func watchMemory(module []byte) []byte {
	most := len(module) + len(module)/4 + 64<<10
	if len(module) < len(wasmbin.CoreHeader) || string(module[:len(wasmbin.CoreHeader)]) != wasmbin.CoreHeader {
		return module
	}
	m := watcher{limit: maxPages}
	out := writer(wasmbin.CoreHeader)
	hasGlobals := false
	for r := (reader{Bytes: module, Pos: len(wasmbin.CoreHeader)}); r.Len() > 0; {
		id := r.Byte()
		in := r.Sub()
		body := in.Bytes
		// These come before the code, in this order.
		switch id {
		case wasmbin.SectionType:
			body = added(&in, &m.types, []byte("\x60\x01\x7f\x01\x7f"), []byte("\x60\x00\x00"))
		case wasmbin.SectionImport:
			m.imports(&in)
		case wasmbin.SectionFunction:
			var grow, refused writer
			grow.Number(m.types - 2)
			refused.Number(m.types - 1)
			body = added(&in, &m.funcs, grow, refused, refused)
		case wasmbin.SectionMemory:
			for range in.Count() {
				m.memory(&in)
			}
		case wasmbin.SectionGlobal:
			hasGlobals = true
			body = added(&in, &m.globals, refusedGlobal)
		}
		if id >= wasmbin.SectionExport && !hasGlobals {
			hasGlobals = true
			out.Section(wasmbin.SectionGlobal, added(&reader{Bytes: []byte{0}}, &m.globals, refusedGlobal))
		}
		if id == wasmbin.SectionCode {
			if m.funcs < 3 {
				return module
			}
			body = m.code(&in, most)
		}
		if r.Err != nil || in.Err != nil || len(out)+len(body) > most {
			return module
		}
		out.Section(id, body)
	}
	if !m.grows && !m.ranges {
		return module
	}
	names := writer{2}
	names.Number(m.grower())
	names.Text("memory.grow")
	names.Number(m.refuser())
	names.Text(Refused)
	var custom writer
	custom.Text("name")
	custom.Section(1, names)
	out.Section(wasmbin.SectionCustom, custom)
	return out
}

// refusedGlobal is a global that is 1 after memory was refused.
var refusedGlobal = []byte("\x7f\x01\x41\x00\x0b")

// added returns the content of a section with more items at its end, and adds their number to n.
func added(r *reader, n *uint32, items ...[]byte) writer {
	had := uint32(r.Count())
	var w writer
	w.Number(had + uint32(len(items)))
	w.Byte(r.Rest()...)
	for _, item := range items {
		w.Byte(item...)
	}
	*n += had + uint32(len(items))
	return w
}

// watcher is what watchMemory knows about a module: the size of each index space, including what it adds.
type watcher struct {
	types, funcs, globals uint32
	limit                 uint32 // pages that the module allows itself
	grows, ranges         bool   // it grows memory, or changes ranges of memory or of tables
}

// The added functions, in order: instead of `memory.grow`, before `unreachable`, and before long instructions.
func (m *watcher) grower() uint32 { return m.funcs - 3 }

func (m *watcher) refuser() uint32 { return m.funcs - 2 }

func (m *watcher) ticker() uint32 { return m.funcs - 1 }

func (m *watcher) imports(r *reader) {
	for range r.Count() {
		r.Vector()
		r.Vector()
		switch r.Byte() {
		case 0:
			r.U32()
			m.funcs++
		case 1:
			r.Byte()
			r.Limits()
		case 2:
			m.memory(r)
		case 3:
			r.Byte()
			r.Byte()
			m.globals++
		default:
			r.Fail("an import of another kind")
		}
	}
}

func (m *watcher) memory(r *reader) {
	if _, most, bounded := r.Limits(); bounded {
		m.limit = min(m.limit, most)
	}
}

// code returns the code section, with calls instead of `memory.grow` and before `unreachable`.
func (m *watcher) code(r *reader, most int) (w writer) {
	n := r.Count()
	w.Number(uint32(n) + 3)
	for range n {
		body := r.Sub()
		var b writer
		for range body.Count() {
			body.U32()
			body.Byte()
		}
		b.Byte(body.Bytes[:body.Pos]...)
		m.instructions(&body, &b)
		if body.Err != nil || len(w)+len(b) > most {
			r.Fail("the code is not as expected")
			return nil
		}
		w.Bytes(b)
	}
	w.Bytes(m.grow())
	var refused writer
	refused.Byte(0, 0x23)
	refused.Number(m.globals - 1)
	refused.Byte(0x04, 0x40, 0x00, 0x0b, 0x0b) // if it is set, unreachable
	w.Bytes(refused)
	w.Bytes([]byte{0, 0x0b})
	return w
}

// grow is the function that replaces `memory.grow`. A growth by zero only
// asks for the size, so it does not change whether memory was refused.
func (m *watcher) grow() (w writer) {
	w.Byte(1, 1, 0x7f) // one local
	w.Byte(0x23)
	w.Number(m.globals - 1)
	w.Byte(0x20, 0, 0x40, 0, 0x22, 1) // grow by the parameter, and keep the result
	w.Byte(0x41, 0x7f, 0x46)          // is it -1
	if m.limit < maxPages {           // and was it within the module's own limit
		w.Byte(0x41)
		w.Signed(int64(m.limit))
		w.Byte(0x3f, 0, 0x6b, 0x20, 0, 0x4f, 0x71)
	}
	w.Byte(0x20, 0, 0x45, 0x1b, 0x24) // as before when the parameter is 0
	w.Number(m.globals - 1)
	w.Byte(0x20, 1, 0x0b)
	return w
}

func (m *watcher) instructions(r *reader, w *writer) {
	for r.Len() > 0 {
		at := r.Pos
		op := r.Byte()
		r.Operands(op)
		switch op {
		case wasmbin.OpUnreachable:
			w.Byte(wasmbin.OpCall)
			w.Number(m.refuser())
			w.Byte(wasmbin.OpUnreachable)
		case wasmbin.OpMemoryGrow:
			if r.Bytes[r.Pos-1] != 0 {
				r.Fail("another memory")
			}
			m.grows = true
			w.Byte(wasmbin.OpCall)
			w.Number(m.grower())
		case wasmbin.OpBulk:
			if in := (reader{Bytes: r.Bytes, Pos: at + 1}); IsRange(in.U32()) {
				m.ranges = true
				w.Byte(wasmbin.OpCall)
				w.Number(m.ticker())
			}
			w.Byte(r.Bytes[at:r.Pos]...)
		default:
			w.Byte(r.Bytes[at:r.Pos]...)
		}
	}
}

// IsRange reports whether an instruction that begins with 0xfc works on a range of a memory or table, and so can take long.
func IsRange(sub uint32) bool {
	const memoryInit, dataDrop, elemDrop, tableSize, tableFill = 8, 9, 13, 16, 17
	return sub >= memoryInit && sub <= tableFill && sub != dataDrop && sub != elemDrop && sub != tableSize
}
