package guard

// Refused is the innermost function on the stack of a guest that executed `unreachable` after the engine refused it memory.
const Refused = "stile:refused-memory"

const coreHeader = "\x00asm\x01\x00\x00\x00"

// The sections of a core module that memory watching reads or adds to.
const (
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionCode     = 10
)

// maxPages is how many pages a memory can have.
const maxPages = 1 << 16

// watchMemory returns a core module that remembers, in a global, whether its last `memory.grow` was refused, and then traps in
// the function [Refused] where it would trap by `unreachable`. Languages end that way when an allocation fails, and neither the
// engine's C API nor a stripped guest's backtrace tells that from a bug. The module is the same in all else.
//
// The engine looks whether a call has to end at the begin of functions and loops, and a function can have 20,000 instructions that each
// fill a memory. So the module also calls an empty function before each instruction on a range of memory or of a table.
//
// A growth beyond the maximum that the module itself declares does not count: the host's limit had no part in it. A module that
// has none of these instructions, is malformed, or would become much larger stays as it is.
func watchMemory(module []byte) []byte {
	most := len(module) + len(module)/4 + 64<<10
	if len(module) < len(coreHeader) || string(module[:len(coreHeader)]) != coreHeader {
		return module
	}
	m := watcher{limit: maxPages}
	out := writer(coreHeader)
	hasGlobals := false
	for r := (reader{rest: module[len(coreHeader):]}); len(r.rest) > 0; {
		id := r.byte()
		body := r.bytes()
		// These come before the code, in this order.
		in := reader{rest: body}
		switch id {
		case sectionType:
			body = added(&in, &m.types, []byte("\x60\x01\x7f\x01\x7f"), []byte("\x60\x00\x00"))
		case sectionImport:
			m.imports(&in)
		case sectionFunction:
			var grow, refused writer
			grow.number(m.types - 2)
			refused.number(m.types - 1)
			body = added(&in, &m.funcs, grow, refused, refused)
		case sectionMemory:
			for range in.count() {
				m.memory(&in)
			}
		case sectionGlobal:
			hasGlobals = true
			body = added(&in, &m.globals, refusedGlobal)
		}
		if id >= sectionExport && !hasGlobals {
			hasGlobals = true
			out.section(sectionGlobal, added(&reader{rest: []byte{0}}, &m.globals, refusedGlobal))
		}
		if id == sectionCode {
			if m.funcs < 3 {
				return module
			}
			body = m.code(&in, most)
		}
		if r.err != nil || in.err != nil || len(out)+len(body) > most {
			return module
		}
		out.section(id, body)
	}
	if !m.grows && !m.ranges {
		return module
	}
	names := writer{2}
	names.number(m.grower())
	names.text("memory.grow")
	names.number(m.refuser())
	names.text(Refused)
	var custom writer
	custom.text("name")
	custom.section(1, names)
	out.section(0, custom)
	return out
}

// refusedGlobal is a variable that is 1 when memory was refused.
var refusedGlobal = []byte("\x7f\x01\x41\x00\x0b")

// added returns the content of a section with more items at its end, and adds how many there are to n.
func added(r *reader, n *uint32, items ...[]byte) writer {
	had := uint32(r.count())
	var w writer
	w.number(had + uint32(len(items)))
	w.raw(r.rest)
	for _, item := range items {
		w.raw(item)
	}
	*n += had + uint32(len(items))
	return w
}

// watcher is what watchMemory knows of a module: how many there are of each index space, with what it adds.
type watcher struct {
	types, funcs, globals uint32
	limit                 uint32 // pages that the module allows itself
	grows, ranges         bool   // it grows memory, or changes ranges of memory or of tables
}

// The functions that are added, in their order: in place of `memory.grow`, before `unreachable`, and before what takes long.
func (m *watcher) grower() uint32 { return m.funcs - 3 }

func (m *watcher) refuser() uint32 { return m.funcs - 2 }

func (m *watcher) ticker() uint32 { return m.funcs - 1 }

func (m *watcher) imports(r *reader) {
	for range r.count() {
		r.bytes()
		r.bytes()
		switch r.byte() {
		case 0:
			r.number()
			m.funcs++
		case 1:
			r.byte()
			r.limits()
		case 2:
			m.memory(r)
		case 3:
			r.byte()
			r.byte()
			m.globals++
		default:
			r.fail("an import of another kind")
		}
	}
}

func (m *watcher) memory(r *reader) {
	if most, ok := r.limits(); ok {
		m.limit = min(m.limit, most)
	}
}

// limits reads how large a table or memory may become.
func (r *reader) limits() (most uint32, ok bool) {
	flags := r.byte()
	r.number()
	switch flags {
	case 0:
	case 1:
		return r.number(), true
	default:
		r.fail("limits of another kind")
	}
	return 0, false
}

// code returns the code section, with calls in place of `memory.grow` and before `unreachable`.
func (m *watcher) code(r *reader, most int) (w writer) {
	n := r.count()
	w.number(uint32(n) + 3)
	for range n {
		body := reader{rest: r.bytes()}
		var b writer
		head := body.rest
		for range body.count() {
			body.number()
			body.byte()
		}
		b.raw(head[:len(head)-len(body.rest)])
		m.instructions(&body, &b)
		if body.err != nil || len(w)+len(b) > most {
			r.fail("the code is not as expected")
			return nil
		}
		w.bytes(b)
	}
	w.bytes(m.grow())
	var refused writer
	refused.byte(0, 0x23)
	refused.number(m.globals - 1)
	refused.byte(0x04, 0x40, 0x00, 0x0b, 0x0b) // if it is set, unreachable
	w.bytes(refused)
	w.bytes([]byte{0, 0x0b})
	return w
}

// grow is the function that takes the place of `memory.grow`. A growth by nothing asks for the size, and says nothing.
func (m *watcher) grow() (w writer) {
	w.byte(1, 1, 0x7f) // one local
	w.byte(0x23)
	w.number(m.globals - 1)
	w.byte(0x20, 0, 0x40, 0, 0x22, 1) // grow by the parameter, and keep the result
	w.byte(0x41, 0x7f, 0x46)          // is it -1
	if m.limit < maxPages {           // and was it within the module's own limit
		w.byte(0x41)
		w.signed(int64(m.limit))
		w.byte(0x3f, 0, 0x6b, 0x20, 0, 0x4f, 0x71)
	}
	w.byte(0x20, 0, 0x45, 0x1b, 0x24) // as before when the parameter is 0
	w.number(m.globals - 1)
	w.byte(0x20, 1, 0x0b)
	return w
}

func (m *watcher) instructions(r *reader, w *writer) {
	const unreachable, call, memoryGrow, bulk = 0x00, 0x10, 0x40, 0xfc
	for len(r.rest) > 0 {
		from := r.rest
		op := r.byte()
		r.operands(op)
		switch op {
		case unreachable:
			w.byte(call)
			w.number(m.refuser())
			w.byte(unreachable)
		case memoryGrow:
			m.grows = true
			w.byte(call)
			w.number(m.grower())
		case bulk:
			if in := (reader{rest: from[1:]}); IsRange(in.number()) {
				m.ranges = true
				w.byte(call)
				w.number(m.ticker())
			}
			w.raw(from[:len(from)-len(r.rest)])
		default:
			w.raw(from[:len(from)-len(r.rest)])
		}
	}
}

// IsRange says whether an instruction that begins with 0xfc is on a range of a memory or table, and so can take long.
func IsRange(sub uint32) bool {
	const memoryInit, dataDrop, elemDrop, tableSize, tableFill = 8, 9, 13, 16, 17
	return sub >= memoryInit && sub <= tableFill && sub != dataDrop && sub != elemDrop && sub != tableSize
}

// operands passes over what follows an instruction.
func (r *reader) operands(op byte) {
	switch {
	case op >= 0x02 && op <= 0x04, op == 0x0c, op == 0x0d, op == 0x10, op == 0x12, op >= 0x20 && op <= 0x26,
		op == 0x3f, op == 0x41, op == 0x42, op == 0xd0, op == 0xd2:
		r.numbers(1)
	case op == 0x40:
		if r.byte() != 0 {
			r.fail("another memory")
		}
	case op == 0x0e: // br_table
		r.numbers(r.count() + 1)
	case op == 0x11, op == 0x13: // calls through a table
		r.numbers(2)
	case op == 0x1c: // select of a type
		r.numbers(r.count())
	case op >= 0x28 && op <= 0x3e:
		r.numbers(2)
	case op == 0x43:
		r.skip(4)
	case op == 0x44:
		r.skip(8)
	case op == 0xfc:
		switch sub := r.number(); {
		case sub == 8, sub == 10, sub == 12, sub == 14:
			r.numbers(2)
		case sub >= 9 && sub <= 17:
			r.numbers(1)
		case sub > 17:
			r.fail("instruction 0xfc %d is not supported", sub)
		}
	case op == 0xfd:
		switch sub := r.number(); {
		case sub <= 11, sub == 92, sub == 93:
			r.numbers(2)
		case sub == 12, sub == 13:
			r.skip(16)
		case sub >= 21 && sub <= 34:
			r.skip(1)
		case sub >= 84 && sub <= 91:
			r.numbers(2)
			r.skip(1)
		}
	case op <= 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	default:
		r.fail("instruction %#x is not supported", op)
	}
}

// numbers passes over n numbers in LEB128, whatever their size and sign.
func (r *reader) numbers(n int) {
	for range n {
		for r.byte() >= 0x80 {
		}
	}
}

func (r *reader) skip(n int) {
	if n > len(r.rest) {
		r.fail("%w", errTruncated)
		return
	}
	r.rest = r.rest[n:]
}
