// Package wasmbin reads and writes the binary format of WebAssembly: numbers, names, sections, and instructions with their operands.
// Callers decide what a module or component may contain.
package wasmbin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Error reports a WebAssembly binary that cannot be read or rewritten.
type Error struct {
	// Offset is the position in the binary, in bytes.
	Offset int
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("wasm at byte %d: %s", e.Offset, e.Reason) }

// The sections of a core module, by id.
const (
	SectionCustom    = 0
	SectionType      = 1
	SectionImport    = 2
	SectionFunction  = 3
	SectionTable     = 4
	SectionMemory    = 5
	SectionGlobal    = 6
	SectionExport    = 7
	SectionStart     = 8
	SectionElement   = 9
	SectionCode      = 10
	SectionData      = 11
	SectionDataCount = 12
)

// The headers of binaries.
const (
	Magic           = "\x00asm" // the begin of both
	CoreHeader      = Magic + "\x01\x00\x00\x00"
	ComponentHeader = Magic + "\x0d\x00\x01\x00"
)

// Section is one section of a module or component. Offset is where its body starts in the binary it was read from.
type Section struct {
	ID     byte
	Body   []byte
	Offset int
}

// Reader reads the body.
func (s Section) Reader() *Reader { return &Reader{Bytes: s.Body, base: s.Offset} }

// EachSection visits each section of a module or component, after its header of eight bytes.
func EachSection(wasm []byte, show func(id byte, r *Reader) error) error {
	for r := (Reader{Bytes: wasm, Pos: min(len(CoreHeader), len(wasm))}); r.Len() > 0; {
		id := r.Byte()
		body := r.Sub()
		if r.Err == nil {
			if err := show(id, &body); err != nil {
				return err
			}
			r.Err = body.Err
		}
		if r.Err != nil {
			return fmt.Errorf("section %d: %w", id, r.Err)
		}
	}
	return nil
}

// ReadSections splits a binary that starts with header into its sections, which share its memory.
func ReadSections(wasm []byte, header string) ([]Section, error) {
	if !bytes.HasPrefix(wasm, []byte(header)) {
		return nil, &Error{0, "not the expected kind of WebAssembly binary"}
	}
	var sections []Section
	err := EachSection(wasm, func(id byte, r *Reader) error {
		sections = append(sections, Section{id, r.Bytes, r.base})
		return nil
	})
	return sections, err
}

// WriteSections returns the binary of sections.
func WriteSections(header string, sections []Section) []byte {
	size := len(header)
	for _, s := range sections {
		size += 6 + len(s.Body)
	}
	out := append(make([]byte, 0, size), header...)
	for _, s := range sections {
		out = AppendBytes(append(out, s.ID), s.Body)
	}
	return out
}

// CustomSection makes a custom section.
func CustomSection(name string, content []byte) Section {
	return Section{ID: SectionCustom, Body: append(AppendName(nil, name), content...)}
}

// Reader reads Bytes from Pos on. After the first failure, Err is set, nothing is left, and every read returns zero.
type Reader struct {
	Bytes []byte
	Pos   int
	Err   error

	base int // position of Bytes in the binary
}

// Fail records a failure, unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = &Error{r.base + r.Pos, fmt.Sprintf(format, args...)}
	}
	r.Pos = len(r.Bytes)
}

// Len is how many bytes are left.
func (r *Reader) Len() int { return len(r.Bytes) - r.Pos }

// Rest reads everything that is left.
func (r *Reader) Rest() []byte { return r.Take(r.Len()) }

// Peek returns the next byte without reading it. It returns 0 at the end.
func (r *Reader) Peek() byte {
	if r.Pos < len(r.Bytes) {
		return r.Bytes[r.Pos]
	}
	return 0
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if r.Pos >= len(r.Bytes) {
		r.Fail("truncated")
		return 0
	}
	b := r.Bytes[r.Pos]
	r.Pos++
	return b
}

// Take reads n bytes, which share the memory of the binary.
func (r *Reader) Take(n int) []byte {
	if n < 0 || n > r.Len() {
		r.Fail("truncated: %d bytes expected, %d left", n, r.Len())
		return nil
	}
	b := r.Bytes[r.Pos : r.Pos+n : r.Pos+n]
	r.Pos += n
	return b
}

// U32 reads an unsigned number of 32 bits.
func (r *Reader) U32() uint32 {
	n, k := binary.Uvarint(r.Bytes[r.Pos:])
	switch {
	case k == 0:
		r.Fail("truncated")
	case k < 0 || k > 5 || n > math.MaxUint32:
		r.Fail("number of more than 32 bits")
	default:
		r.Pos += k
		return uint32(n)
	}
	return 0
}

// Signed reads a signed number of at most bits bits.
func (r *Reader) Signed(bits int) int64 {
	var n int64
	for shift := 0; shift < bits; shift += 7 {
		b := r.Byte()
		n |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift < 57 {
				n |= -1 << (shift + 7)
			}
			return n
		}
	}
	r.Fail("number of more than %d bits", bits)
	return 0
}

// Numbers skips n numbers of any size and sign.
func (r *Reader) Numbers(n int) {
	for range n {
		for r.Byte() >= 0x80 {
		}
	}
}

// Count reads the number of the parts that follow, each of at least one byte.
func (r *Reader) Count() int {
	n := r.U32()
	if uint64(n) > uint64(r.Len()) {
		r.Fail("truncated: %d parts in %d bytes", n, r.Len())
		return 0
	}
	return int(n)
}

// Vector reads a length and that many bytes.
func (r *Reader) Vector() []byte { return r.Take(r.Count()) }

// Name reads a name.
func (r *Reader) Name() string { return string(r.Vector()) }

// Sub reads a length and that many bytes, and returns a reader of them.
func (r *Reader) Sub() Reader {
	b := r.Vector()
	return Reader{Bytes: b, base: r.base + r.Pos - len(b)}
}

// Limits reads the limits of a memory or table.
func (r *Reader) Limits() (least, most uint32, bounded bool) {
	switch flags := r.Byte(); flags {
	case 0:
		return r.U32(), 0, false
	case 1:
		least = r.U32()
		return least, r.U32(), true
	default:
		r.Fail("limits of kind %#x are not supported", flags)
		return 0, 0, false
	}
}

// ValueType skips a type, which is one byte unless it is a reference to a numbered type.
func (r *Reader) ValueType() {
	const nullable, reference = 0x63, 0x64
	if b := r.Byte(); b == nullable || b == reference {
		r.Numbers(1)
	}
}

// IsValueType reports whether the block type that follows is empty or a value type, rather than the number of a type.
func (r *Reader) IsValueType() bool { return r.Peek() >= 0x40 && r.Peek() < 0x80 }

// Instructions, by their first byte.
const (
	OpUnreachable     = 0x00
	OpBlock           = 0x02
	OpLoop            = 0x03
	OpIf              = 0x04
	OpEnd             = 0x0b
	OpBr              = 0x0c
	OpBrIf            = 0x0d
	OpReturn          = 0x0f
	OpCall            = 0x10
	OpReturnCall      = 0x12
	OpReturnCallTable = 0x13
	OpLocalGet        = 0x20
	OpLocalSet        = 0x21
	OpGlobalGet       = 0x23
	OpGlobalSet       = 0x24
	OpI32Load         = 0x28
	OpI32Load8        = 0x2d
	OpI32Load16       = 0x2f
	OpMemorySize      = 0x3f
	OpMemoryGrow      = 0x40
	OpI32Const        = 0x41
	OpI64Const        = 0x42
	OpI32Eq           = 0x46
	OpI32GeU          = 0x4f
	OpI64GtU          = 0x56
	OpI32Add          = 0x6a
	OpI32Mul          = 0x6c
	OpI32And          = 0x71
	OpI64Add          = 0x7c
	OpI64Mul          = 0x7e
	OpI64Shl          = 0x86
	OpI32Wrap         = 0xa7
	OpI64Extend       = 0xad
	OpBulk            = 0xfc
	OpVector          = 0xfd
)

// BlockEmpty is the type of a block without parameters and results.
const BlockEmpty = 0x40

// Operands skips the operands of an instruction. It fails for instructions that components for the host never have.
func (r *Reader) Operands(op byte) {
	switch {
	case op <= 0x01, op == 0x05, op == OpEnd, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	case op >= OpBlock && op <= OpIf:
		if r.IsValueType() {
			r.ValueType()
		} else {
			r.Numbers(1)
		}
	case op == 0x0c, op == 0x0d, op == OpCall, op == OpReturnCall, op >= 0x20 && op <= 0x26, op == 0x3f, op == OpMemoryGrow,
		op == 0x41, op == 0x42, op == 0xd0, op == 0xd2:
		r.Numbers(1)
	case op == 0x0e: // br_table
		r.Numbers(r.Count() + 1)
	case op == 0x11, op == OpReturnCallTable:
		r.Numbers(2)
	case op == 0x1c: // select of types
		for range r.Count() {
			r.ValueType()
		}
	case op >= 0x28 && op <= 0x3e:
		r.memory()
	case op == 0x43:
		r.Take(4)
	case op == 0x44:
		r.Take(8)
	case op == OpBulk:
		r.bulk(r.U32())
	case op == OpVector:
		r.vector(r.U32())
	default:
		r.Unsupported(op)
	}
}

// Unsupported fails because of an instruction that begins with op.
func (r *Reader) Unsupported(op byte) { r.Fail("instruction %#x is not supported", op) }

// UnsupportedBulk fails because of the instruction that is [OpBulk] and a number.
func (r *Reader) UnsupportedBulk(n uint32) { r.Fail("instruction %#x %d is not supported", OpBulk, n) }

// memory skips an alignment, an optional memory index, and an offset.
func (r *Reader) memory() {
	const numbered = 1 << 6
	if r.U32()&numbered != 0 {
		r.Numbers(1)
	}
	r.Numbers(1)
}

// bulk skips the operands of saturating conversions, and of instructions on ranges of memories and tables.
func (r *Reader) bulk(op uint32) {
	switch {
	case op <= 7:
	case op == 8, op == 10, op == 12, op == 14:
		r.Numbers(2)
	case op <= 17:
		r.Numbers(1)
	default:
		r.UnsupportedBulk(op)
	}
}

// vector skips the operands of a vector instruction.
func (r *Reader) vector(op uint32) {
	switch {
	case op <= 11, op == 92, op == 93:
		r.memory()
	case op == 12, op == 13: // a constant, a shuffle
		r.Take(16)
	case op >= 21 && op <= 34:
		r.Byte()
	case op >= 84 && op <= 91:
		r.memory()
		r.Byte()
	}
}

// AppendSigned appends a signed number. For unsigned numbers, use [binary.AppendUvarint].
func AppendSigned(b []byte, n int64) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// AppendBytes appends a length and the bytes.
func AppendBytes(b, content []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

// AppendName appends a name.
func AppendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// Writer writes the binary format.
type Writer []byte

// Byte appends bytes.
func (w *Writer) Byte(b ...byte) { *w = append(*w, b...) }

// Number appends an unsigned number.
func (w *Writer) Number(n uint32) { *w = binary.AppendUvarint(*w, uint64(n)) }

// Signed appends a signed number.
func (w *Writer) Signed(n int64) { *w = AppendSigned(*w, n) }

// Bytes appends a length and the bytes.
func (w *Writer) Bytes(b []byte) { *w = AppendBytes(*w, b) }

// Text appends a name.
func (w *Writer) Text(s string) { *w = AppendName(*w, s) }

// Section appends a section.
func (w *Writer) Section(id byte, body []byte) { w.Byte(id); w.Bytes(body) }

// Op appends an instruction with a number.
func (w *Writer) Op(op byte, n uint32) { w.Byte(op); w.Number(n) }

// I32 appends a constant.
func (w *Writer) I32(n uint32) { w.Byte(OpI32Const); w.Signed(int64(int32(n))) }

// I64 appends a constant.
func (w *Writer) I64(n int64) { w.Byte(OpI64Const); w.Signed(n) }
