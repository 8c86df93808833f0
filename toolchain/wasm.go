package toolchain

import (
	"bytes"
	"fmt"
	"math"
)

// WasmError reports a WebAssembly binary that cannot be read or rewritten.
type WasmError struct {
	// Offset is where in the binary, in bytes.
	Offset int
	Reason string
}

// Error implements error.
func (e *WasmError) Error() string { return fmt.Sprintf("wasm at byte %d: %s", e.Offset, e.Reason) }

// The sections of a core module, by id.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

// componentCoreModule is the id of a section of a component that holds a core module.
const componentCoreModule = 1

var (
	coreHeader      = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	componentHeader = []byte{0, 'a', 's', 'm', 0x0d, 0, 1, 0}
)

const wasmPage = 64 << 10

// section is one section of a module or component. Offset is where its body starts in the binary it was read from.
type section struct {
	id     byte
	body   []byte
	offset int
}

// readSections splits a binary that starts with header into its sections, which share its memory.
func readSections(wasm, header []byte) ([]section, error) {
	if !bytes.HasPrefix(wasm, header) {
		return nil, &WasmError{0, "not the kind of WebAssembly binary that is expected here"}
	}
	r := &reader{bytes: wasm, pos: len(header)}
	var sections []section
	for r.err == nil && r.pos < len(wasm) {
		id := r.byte()
		n := r.u32()
		offset := r.pos
		sections = append(sections, section{id, r.take(n), offset})
	}
	return sections, r.err
}

func writeSections(header []byte, sections []section) []byte {
	size := len(header)
	for _, s := range sections {
		size += 6 + len(s.body)
	}
	out := append(make([]byte, 0, size), header...)
	for _, s := range sections {
		out = append(out, s.id)
		out = appendUnsigned(out, uint64(len(s.body)))
		out = append(out, s.body...)
	}
	return out
}

// reader reads a binary from pos on. After the first failure err is set and every further read gives zero.
type reader struct {
	bytes []byte
	pos   int
	base  int // added to pos in errors
	err   error
}

func (s section) reader() *reader { return &reader{bytes: s.body, base: s.offset} }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &WasmError{r.base + r.pos, fmt.Sprintf(format, args...)}
	}
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.bytes)-r.pos) {
		r.fail("ends early: %d bytes wanted, %d left", n, len(r.bytes)-r.pos)
		return nil
	}
	b := r.bytes[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// leb reads a LEB128 number of at most bits bits and returns its bits, with the sign extended if signed.
func (r *reader) leb(bits uint, signed bool) uint64 {
	var v uint64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if signed && b&0x40 != 0 && shift+7 < 64 {
				v |= math.MaxUint64 << (shift + 7)
			}
			return v
		}
	}
	r.fail("number of more than %d bits", bits)
	return 0
}

func (r *reader) u32() uint32 {
	v := r.leb(32, false)
	if v > math.MaxUint32 {
		r.fail("number of more than 32 bits")
	}
	return uint32(v)
}

func (r *reader) s32() int32 { return int32(r.leb(32, true)) }

func (r *reader) name() string { return string(r.take(r.u32())) }

// count reads the length of a vector, each element of which takes at least one byte.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(len(r.bytes)-r.pos) {
		r.fail("vector of %d elements in %d bytes", n, len(r.bytes)-r.pos)
		return 0
	}
	return n
}

// limits reads the limits of a memory or table. maximum is nil when there is none.
func (r *reader) limits() (minimum uint32, maximum *uint32) {
	switch flags := r.byte(); flags {
	case 0:
		return r.u32(), nil
	case 1:
		minimum = r.u32()
		limit := r.u32()
		return minimum, &limit
	default:
		r.fail("limits of kind %#x are not supported", flags)
		return 0, nil
	}
}

func (r *reader) rest() []byte { return r.take(uint32(len(r.bytes) - r.pos)) }

func appendUnsigned(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte {
	return append(appendUnsigned(b, uint64(len(s))), s...)
}

func appendBytes(b, content []byte) []byte {
	return append(appendUnsigned(b, uint64(len(content))), content...)
}

// customSection makes the body of a custom section.
func customSection(name string, content []byte) section {
	return section{id: sectionCustom, body: append(appendName(nil, name), content...)}
}
