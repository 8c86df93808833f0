package abi

import "iter"

// The layout follows CanonicalABI.md of the component model, sections Alignment, Element Size and Flattening, for a
// memory with 32-bit addresses. Nothing is cached: a parsed type has a bounded number of parts.

// CoreType is a value type of core WebAssembly.
type CoreType uint8

// The core value types that WIT types flatten to.
const (
	CoreI32 CoreType = iota + 1
	CoreI64
	CoreF32
	CoreF64
)

// String gives the name in WebAssembly text: "i32".
func (c CoreType) String() string {
	switch c {
	case CoreI32:
		return "i32"
	case CoreI64:
		return "i64"
	case CoreF32:
		return "f32"
	case CoreF64:
		return "f64"
	}
	return "invalid"
}

const (
	maxFlatParams  = 16
	maxFlatResults = 1
)

// Size is the number of bytes a value takes in memory, a multiple of [Type.Align]. It does not count the contents of strings and
// lists.
func (t *Type) Size() uint32 {
	size, _ := t.layout()
	return size
}

// Align is the alignment of a value in memory: 1, 2, 4 or 8 bytes.
func (t *Type) Align() uint32 {
	_, align := t.layout()
	return align
}

// Offsets are the byte offsets of the fields of a record or tuple; nil for any other type.
func (t *Type) Offsets() []uint32 {
	if t.Kind != KindRecord && t.Kind != KindTuple {
		return nil
	}
	offsets := make([]uint32, len(t.Fields))
	fieldLayout(t.Fields, func(i int, offset uint32) { offsets[i] = offset })
	return offsets
}

// DiscriminantSize is the number of bytes of the case index of a variant, enum, option or result: 1, 2 or 4; 0 for any
// other type.
func (t *Type) DiscriminantSize() uint32 {
	switch cases := t.caseCount(); {
	case cases == 0:
		return 0
	case cases <= 1<<8:
		return 1
	case cases <= 1<<16:
		return 2
	default:
		return 4
	}
}

// PayloadOffset is the byte offset of the payload of a variant, option or result. All cases share it.
func (t *Type) PayloadOffset() uint32 {
	_, align := t.payloadLayout()
	return alignTo(t.DiscriminantSize(), align)
}

// Flat is the sequence of core values that stands for one value in core function signatures.
func (t *Type) Flat() []CoreType { return t.appendFlat(nil) }

// Core is f's core function type under the canonical ABI, with at most 16 parameters and one result: more parameters become
// one i32 pointer to a tuple in memory. With lower, it is the type of an import (canon lower), and a result of more than one
// core value is written to a pointer passed as last parameter. Without, it is the type of an export (canon lift), which
// returns that pointer.
func (f *Func) Core(lower bool) (params, results []CoreType) {
	for _, p := range f.Params {
		params = p.Type.appendFlat(params)
	}
	if len(params) > maxFlatParams {
		params = []CoreType{CoreI32}
	}
	if f.Result != nil {
		results = f.Result.Flat()
	}
	if len(results) > maxFlatResults {
		if lower {
			return append(params, CoreI32), nil
		}
		results = []CoreType{CoreI32}
	}
	return params, results
}

func (t *Type) layout() (size, align uint32) {
	switch t.Kind {
	case KindBool, KindS8, KindU8:
		return 1, 1
	case KindS16, KindU16:
		return 2, 2
	case KindS32, KindU32, KindF32, KindChar, KindOwn, KindBorrow:
		return 4, 4
	case KindS64, KindU64, KindF64:
		return 8, 8
	case KindString, KindList:
		return 8, 4
	case KindRecord, KindTuple:
		return fieldLayout(t.Fields, func(int, uint32) {})
	case KindVariant, KindEnum, KindOption, KindResult:
		discriminant := t.DiscriminantSize()
		size, align = t.payloadLayout()
		size += alignTo(discriminant, align)
		align = max(align, discriminant)
		return alignTo(size, align), align
	case KindFlags:
		switch n := len(t.Labels); {
		case n <= 8:
			return 1, 1
		case n <= 16:
			return 2, 2
		default:
			return 4, 4
		}
	}
	return 0, 1
}

// fieldLayout calls visit with the index and offset of each field.
func fieldLayout(fields []Field, visit func(i int, offset uint32)) (size, align uint32) {
	align = 1
	for i, f := range fields {
		fieldSize, fieldAlign := f.Type.layout()
		offset := alignTo(size, fieldAlign)
		visit(i, offset)
		size = offset + fieldSize
		align = max(align, fieldAlign)
	}
	return alignTo(size, align), align
}

// payloadLayout returns the size of the largest payload and the strictest alignment.
func (t *Type) payloadLayout() (size, align uint32) {
	align = 1
	for p := range t.payloads() {
		payloadSize, payloadAlign := p.layout()
		size, align = max(size, payloadSize), max(align, payloadAlign)
	}
	return size, align
}

func (t *Type) appendFlat(flat []CoreType) []CoreType {
	switch t.Kind {
	case KindBool, KindS8, KindU8, KindS16, KindU16, KindS32, KindU32, KindChar, KindFlags, KindOwn, KindBorrow:
		return append(flat, CoreI32)
	case KindS64, KindU64:
		return append(flat, CoreI64)
	case KindF32:
		return append(flat, CoreF32)
	case KindF64:
		return append(flat, CoreF64)
	case KindString, KindList:
		return append(flat, CoreI32, CoreI32)
	case KindRecord, KindTuple:
		for _, f := range t.Fields {
			flat = f.Type.appendFlat(flat)
		}
	case KindVariant, KindEnum, KindOption, KindResult:
		flat = append(flat, CoreI32)
		first := len(flat)
		for p := range t.payloads() {
			for i, c := range p.Flat() {
				if at := first + i; at == len(flat) {
					flat = append(flat, c)
				} else {
					flat[at] = joinCore(flat[at], c)
				}
			}
		}
	}
	return flat
}

// joinCore returns the smallest core type that can carry the bits of both.
func joinCore(a, b CoreType) CoreType {
	switch {
	case a == b:
		return a
	case a == CoreI32 && b == CoreF32, a == CoreF32 && b == CoreI32:
		return CoreI32
	default:
		return CoreI64
	}
}

func (t *Type) caseCount() int {
	switch t.Kind {
	case KindOption, KindResult:
		return 2
	case KindVariant, KindEnum:
		return len(t.Cases)
	default:
		return 0
	}
}

// payloads yields the payload types of a variant-like type.
func (t *Type) payloads() iter.Seq[*Type] {
	return func(yield func(*Type) bool) {
		for _, p := range [...]*Type{t.Ok, t.Err} {
			if p != nil && !yield(p) {
				return
			}
		}
		if t.Kind == KindOption && !yield(t.Elem) {
			return
		}
		for _, c := range t.Cases {
			if c.Type != nil && !yield(c.Type) {
				return
			}
		}
	}
}

func alignTo(offset, align uint32) uint32 { return (offset + align - 1) / align * align }
