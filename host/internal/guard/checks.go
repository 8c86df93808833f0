package guard

import (
	"fmt"
	"slices"
)

// wrap is a core function that is checked before the engine converts: of what it is given, or of what it returns.
type wrap struct {
	of      int    // its index in the component; -1 for what is lifted
	core    uint32 // its index in what is written
	fn      *funcType
	lift    bool
	options options
}

// signature is the core type of the function.
func (p *wrap) signature() (params, results []coreType) {
	params = p.fn.params.flat
	if p.fn.params.wide {
		params = []coreType{coreI32}
	}
	t := p.fn.result
	switch {
	case t == nil:
	case !t.wide && len(t.flat) <= 1:
		results = t.flat
	case p.lift:
		results = []coreType{coreI32}
	default:
		params = append(slices.Clip(params), coreI32)
	}
	return params, results
}

// maxChecks is the most code of one module of checks.
const maxChecks = 1 << 20

// checker writes a core module. Its functions are:
//
//	reserve(bytes)            imported
//	n functions               imported, those that are checked
//	add(n, weight)            adds to the sum, and ends the call when it is more than Limit
//	at(address)               one for each type with lists or strings: adds what is at an address
//	list(address, n)          one for each type of list
//	n functions               what takes the place of those that are checked
type checker struct {
	scope  *scope
	chars  int64
	first  uint32 // index of add
	bodies []writer
	types  []byte // of the bodies, as indices
	at     map[*valueType]uint32
	lists  map[*valueType]uint32
	size   int
}

const (
	typeReserve = iota
	typeAdd
	typeAt
	typeList
	typeFirst // of those that are checked
)

// Instructions.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opReturn      = 0x0f
	opMemorySize  = 0x3f
	opI64Shl      = 0x86
	opBrIf        = 0x0d
	opCall        = 0x10
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Load     = 0x28
	opI32Load8    = 0x2d
	opI32Load16   = 0x2f
	opI32Const    = 0x41
	opI64Const    = 0x42
	opI32Eq       = 0x46
	opI32GeU      = 0x4f
	opI64GtU      = 0x56
	opI32Add      = 0x6a
	opI32Mul      = 0x6c
	opI32And      = 0x71
	opI64Add      = 0x7c
	opI64Mul      = 0x7e
	opI32Wrap     = 0xa7
	opI64Extend   = 0xad
	blockEmpty    = 0x40
)

func checks(r *reader, wraps []*wrap, s *scope) []byte {
	c := &checker{scope: s, chars: weighChar, first: uint32(1 + len(wraps)), at: map[*valueType]uint32{}, lists: map[*valueType]uint32{}}
	if wraps[0].options.wide {
		c.chars = 3 * weighChar // bytes of UTF-8 for each unit
	}
	c.add()
	var wrappers []writer
	for i, p := range wraps {
		wrappers = append(wrappers, c.wrapper(uint32(1+i), p))
		c.size += len(wrappers[i])
		if c.size > maxChecks {
			r.fail("the types of its functions are too large to check")
			return nil
		}
	}

	var types, imports, functions, exports, code writer
	types.number(uint32(typeFirst + len(wraps)))
	writeType := func(params, results []coreType) {
		types.byte(0x60)
		for _, list := range [][]coreType{params, results} {
			types.number(uint32(len(list)))
			for _, t := range list {
				types.byte(byte(t))
			}
		}
	}
	writeType([]coreType{coreI32}, nil)
	writeType([]coreType{coreI32, coreI64}, nil)
	writeType([]coreType{coreI32}, nil)
	writeType([]coreType{coreI32, coreI32}, nil)

	imports.number(uint32(2 + len(wraps)))
	importing := func(name string, kind ...byte) {
		imports.text("")
		imports.text(name)
		imports.byte(kind...)
	}
	importing("r", 0, typeReserve)
	importing("m", 2, 0, 0)
	functions.number(uint32(len(c.bodies) + len(wraps)))
	for _, t := range c.types {
		functions.byte(t)
	}
	exports.number(uint32(len(wraps)))
	for i, p := range wraps {
		writeType(p.signature())
		imports.text("")
		imports.text(fmt.Sprint(i))
		imports.byte(0)
		imports.number(uint32(typeFirst + i))
		functions.number(uint32(typeFirst + i))
		exports.text(fmt.Sprint(i))
		exports.byte(0)
		exports.number(c.first + uint32(len(c.bodies)+i))
	}
	code.number(uint32(len(c.bodies) + len(wraps)))
	for _, body := range append(c.bodies, wrappers...) {
		code.number(uint32(len(body)))
		code.raw(body)
	}
	out := writer("\x00asm\x01\x00\x00\x00")
	out.section(1, types)
	out.section(2, imports)
	out.section(3, functions)
	out.section(6, []byte{1, byte(coreI64), 1, opI64Const, 0, opEnd}) // the sum
	out.section(7, exports)
	out.section(10, code)
	return out
}

// body takes the place of a function that is written later, since it may call itself others before.
func (c *checker) body(kind byte) (index int) {
	c.bodies, c.types = append(c.bodies, nil), append(c.types, kind)
	return len(c.bodies) - 1
}

func (c *checker) finish(index int, w writer) {
	w.byte(opEnd)
	c.bodies[index] = w
	c.size += len(w)
}

func (w *writer) op(op byte, n uint32) { w.byte(op); w.number(n) }

func (w *writer) i32(n uint32) { w.byte(opI32Const); w.signed(int64(int32(n))) }

func (w *writer) i64(n int64) { w.byte(opI64Const); w.signed(n) }

// load reads 1, 2 or 4 bytes at an offset from the address in local 0.
func (w *writer) load(size, offset uint32) {
	w.op(opLocalGet, 0)
	switch size {
	case 1:
		w.byte(opI32Load8, 0)
	case 2:
		w.byte(opI32Load16, 0)
	default:
		w.byte(opI32Load, 0)
	}
	w.number(offset)
}

func (c *checker) add() {
	at := c.body(typeAdd)
	w := writer{0} // no locals
	w.op(opGlobalGet, 0)
	w.op(opLocalGet, 0)
	w.byte(opI64Extend)
	w.op(opLocalGet, 1)
	w.byte(opI64Mul, opI64Add)
	w.op(opGlobalSet, 0)
	w.op(opGlobalGet, 0)
	w.i64(Limit)
	w.byte(opI64GtU, opIf, blockEmpty)
	w.i32(Over)
	w.op(opCall, 0)
	w.byte(opUnreachable, opEnd)
	c.finish(at, w)
}

// callAdd adds what some characters weigh; their number is on the stack.
func (c *checker) callAdd(w *writer, weight int64) {
	w.i64(weight)
	w.op(opCall, c.first)
}

func (c *checker) characters(w *writer) {
	if c.chars != weighChar {
		w.i32(0x7fffffff) // the highest bit says how they are encoded
		w.byte(opI32And)
	}
	c.callAdd(w, c.chars)
}

// callAt adds what is at an address, which is on the stack, of a type with lists or strings.
func (c *checker) callAt(w *writer, t *valueType) {
	known, ok := c.at[t]
	if !ok {
		index := c.body(typeAt)
		known = c.first + uint32(index)
		c.at[t] = known
		c.finish(index, c.address(t))
	}
	w.op(opCall, known)
}

func (c *checker) address(t *valueType) writer {
	w := writer{0}
	switch t.kind {
	case kindString:
		w.load(4, 4)
		c.characters(&w)
	case kindList:
		w.load(4, 0)
		w.load(4, 4)
		c.callList(&w, t)
	case kindFields:
		for i, p := range t.parts {
			if p.dynamic {
				w.op(opLocalGet, 0)
				w.i32(t.offsets[i])
				w.byte(opI32Add)
				c.callAt(&w, p)
			}
		}
	case kindCases:
		for i, p := range t.parts {
			if p != nil && p.dynamic {
				w.load(t.tag, 0)
				w.i32(uint32(i))
				w.byte(opI32Eq, opIf, blockEmpty)
				w.op(opLocalGet, 0)
				w.i32(t.payload)
				w.byte(opI32Add)
				c.callAt(&w, p)
				w.byte(opEnd)
			}
		}
	case kindPlain:
	}
	return w
}

// callList adds what a list holds; its address and length are on the stack.
func (c *checker) callList(w *writer, t *valueType) {
	known, ok := c.lists[t]
	if !ok {
		index := c.body(typeList)
		known = c.first + uint32(index)
		c.lists[t] = known
		c.finish(index, c.list(t))
	}
	w.op(opCall, known)
}

func (c *checker) list(t *valueType) writer {
	element := t.parts[0]
	w := writer{1, 1, byte(coreI32)} // local 2 counts
	w.op(opLocalGet, 0)
	w.byte(opI64Extend)
	w.op(opLocalGet, 1)
	w.byte(opI64Extend)
	w.i64(int64(element.size))
	w.byte(opI64Mul, opI64Add, opMemorySize, 0, opI64Extend)
	w.i64(16)
	w.byte(opI64Shl, opI64GtU, opIf, blockEmpty, opReturn, opEnd) // the engine refuses what is not in memory
	w.op(opLocalGet, 1)
	c.callAdd(&w, element.perElement(c.scope))
	if !element.dynamic {
		return w
	}
	w.byte(opBlock, blockEmpty, opLoop, blockEmpty)
	w.op(opLocalGet, 2)
	w.op(opLocalGet, 1)
	w.byte(opI32GeU)
	w.op(opBrIf, 1)
	w.op(opLocalGet, 0)
	w.op(opLocalGet, 2)
	w.i32(element.size)
	w.byte(opI32Mul, opI32Add)
	c.callAt(&w, element)
	w.op(opLocalGet, 2)
	w.i32(1)
	w.byte(opI32Add)
	w.op(opLocalSet, 2)
	w.op(opBr, 0)
	w.byte(opEnd, opEnd)
	return w
}

// wrapper is what takes the place of a function.
func (c *checker) wrapper(imported uint32, p *wrap) writer {
	params, _ := p.signature()
	of, w := p.fn.params, writer{0}
	if p.lift {
		of, w = p.fn.result, writer{1, 1, byte(coreI32)}
	}
	call := func() {
		for i := range params {
			w.op(opLocalGet, uint32(i))
		}
		w.op(opCall, imported)
	}
	result := uint32(len(params)) // the local
	if p.lift {
		call()
		w.op(opLocalSet, result)
	}
	w.i64(0)
	w.op(opGlobalSet, 0)
	w.i32(1)
	c.callAdd(&w, of.weight)
	switch {
	case p.lift:
		w.op(opLocalGet, result)
		c.callAt(&w, of)
	case of.wide:
		w.op(opLocalGet, 0)
		c.callAt(&w, of)
	default:
		c.flat(&w, of, params, 0)
	}
	w.op(opGlobalGet, 0)
	w.i64(Free)
	w.byte(opI64GtU, opIf, blockEmpty)
	w.op(opGlobalGet, 0)
	w.byte(opI32Wrap)
	w.op(opCall, 0)
	w.byte(opEnd)
	if p.lift {
		w.op(opLocalGet, result)
	} else {
		call()
	}
	w.byte(opEnd)
	return w
}

// flat adds what is in core values, the first of which is in the local at.
func (c *checker) flat(w *writer, t *valueType, locals []coreType, at uint32) {
	if c.size += len(*w) / 64; c.size > maxChecks {
		return // the caller refuses it
	}
	get := func(i uint32) {
		w.op(opLocalGet, i)
		if locals[i] == coreI64 {
			w.byte(opI32Wrap)
		}
	}
	switch t.kind {
	case kindString:
		get(at + 1)
		c.characters(w)
	case kindList:
		get(at)
		get(at + 1)
		c.callList(w, t)
	case kindFields:
		for _, p := range t.parts {
			if p.dynamic {
				c.flat(w, p, locals, at)
			}
			at += uint32(len(p.flat))
		}
	case kindCases:
		for i, p := range t.parts {
			if p != nil && p.dynamic {
				get(at)
				w.i32(uint32(i))
				w.byte(opI32Eq, opIf, blockEmpty)
				c.flat(w, p, locals, at+1)
				w.byte(opEnd)
			}
		}
	case kindPlain:
	}
}
