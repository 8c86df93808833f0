package guard

import (
	"fmt"
	"slices"

	"github.com/stilehost/stile/internal/wasmbin"
)

// wrap is a core function whose arguments or result are checked before the engine converts them. A host function's result is weighed
// afterwards.
type wrap struct {
	of      int    // its index in the component; -1 for a lifted function
	core    uint32 // its index in the output
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

// maxChecks bounds the code of one module of checks.
const maxChecks = 1 << 20

// checker writes a core module. Its functions are:
//
//	reserve(bytes)            imported
//	n functions               imported, those that are checked
//	add(n, weight)            adds to the sum, and ends the call when it is more than the most allowed
//	at(address)               one for each type with lists or strings: adds what is at an address
//	list(address, n)          one for each type of list
//
// n functions the replacements of the checked functions
type checker struct {
	scope  *scope
	chars  int64
	first  uint32 // index of add
	bodies []writer
	types  []byte // of the bodies, as indices
	at     map[*valueType]uint32
	lists  map[*valueType]uint32
	same   map[string]uint32 // functions already written, by type and code
	size   int
}

const (
	typeReserve = iota
	typeAdd
	typeAt
	typeList
	typeFirst // the first type of the checked functions
)

const (
	globalSum  = iota
	globalMost // what add allows
)

// arrived is the sum above which a host function's result is reported as arrived. The host's own sum for it may be Free, and is at
// most twice this package's.
const arrived = Free / 4

func checks(r *reader, wraps []*wrap, s *scope) []byte {
	c := &checker{scope: s, chars: weighChar, first: uint32(1 + len(wraps)), at: map[*valueType]uint32{}, lists: map[*valueType]uint32{}, same: map[string]uint32{}}
	if wraps[0].options.wide {
		c.chars = 3 * weighChar // bytes of UTF-8 for each unit
	}
	c.add()
	var wrappers []writer
	for i, p := range wraps {
		wrappers = append(wrappers, c.wrapper(uint32(1+i), p))
		c.size += len(wrappers[i])
		if c.size > maxChecks {
			r.Fail("the types of its functions are too large to check")
			return nil
		}
	}

	var types, imports, functions, exports, code writer
	types.Number(uint32(typeFirst + len(wraps)))
	writeType := func(params, results []coreType) {
		types.Byte(0x60)
		for _, list := range [][]coreType{params, results} {
			types.Number(uint32(len(list)))
			for _, t := range list {
				types.Byte(byte(t))
			}
		}
	}
	writeType([]coreType{coreI32}, nil)
	writeType([]coreType{coreI32, coreI64}, nil)
	writeType([]coreType{coreI32}, nil)
	writeType([]coreType{coreI32, coreI32}, nil)

	imports.Number(uint32(2 + len(wraps)))
	importing := func(name string, kind ...byte) {
		imports.Text("")
		imports.Text(name)
		imports.Byte(kind...)
	}
	importing("r", 0, typeReserve)
	importing("m", 2, 0, 0)
	functions.Number(uint32(len(c.bodies) + len(wraps)))
	for _, t := range c.types {
		functions.Byte(t)
	}
	exports.Number(uint32(len(wraps)))
	for i, p := range wraps {
		writeType(p.signature())
		imports.Text("")
		imports.Text(fmt.Sprint(i))
		imports.Byte(0)
		imports.Number(uint32(typeFirst + i))
		functions.Number(uint32(typeFirst + i))
		exports.Text(fmt.Sprint(i))
		exports.Byte(0)
		exports.Number(c.first + uint32(len(c.bodies)+i))
	}
	code.Number(uint32(len(c.bodies) + len(wraps)))
	for _, body := range append(c.bodies, wrappers...) {
		code.Number(uint32(len(body)))
		code.Byte(body...)
	}
	out := writer(wasmbin.CoreHeader)
	out.Section(wasmbin.SectionType, types)
	out.Section(wasmbin.SectionImport, imports)
	out.Section(wasmbin.SectionFunction, functions)
	var globals writer
	globals.Number(2)
	for _, value := range []int64{0, Limit} { // the sum, and the most allowed
		globals.Byte(byte(coreI64), 1)
		globals.I64(value)
		globals.Byte(wasmbin.OpEnd)
	}
	out.Section(wasmbin.SectionGlobal, globals)
	out.Section(wasmbin.SectionExport, exports)
	out.Section(wasmbin.SectionCode, code)
	return out
}

// function writes a function and returns its index. Functions that
// do the same are written once: many types have a string at the same
// offset, and the engine takes longer for each function than for its code.
func (c *checker) function(kind byte, w writer) uint32 {
	w.Byte(wasmbin.OpEnd)
	key := string(kind) + string(w)
	index, ok := c.same[key]
	if !ok {
		index = c.first + uint32(len(c.bodies))
		c.same[key] = index
		c.bodies, c.types = append(c.bodies, w), append(c.types, kind)
		c.size += len(w)
	}
	return index
}

// load reads 1, 2 or 4 bytes at an offset from the address in local 0.
func load(w *writer, size, offset uint32) {
	w.Op(wasmbin.OpLocalGet, 0)
	switch size {
	case 1:
		w.Byte(wasmbin.OpI32Load8, 0)
	case 2:
		w.Byte(wasmbin.OpI32Load16, 0)
	default:
		w.Byte(wasmbin.OpI32Load, 0)
	}
	w.Number(offset)
}

func (c *checker) add() {
	w := writer{0} // no locals
	w.Op(wasmbin.OpGlobalGet, globalSum)
	w.Op(wasmbin.OpLocalGet, 0)
	w.Byte(wasmbin.OpI64Extend)
	w.Op(wasmbin.OpLocalGet, 1)
	w.Byte(wasmbin.OpI64Mul, wasmbin.OpI64Add)
	w.Op(wasmbin.OpGlobalSet, globalSum)
	w.Op(wasmbin.OpGlobalGet, globalSum)
	w.Op(wasmbin.OpGlobalGet, globalMost)
	w.Byte(wasmbin.OpI64GtU, wasmbin.OpIf, wasmbin.BlockEmpty)
	w.I32(Over)
	w.Op(wasmbin.OpCall, 0)
	w.Byte(wasmbin.OpUnreachable, wasmbin.OpEnd)
	c.function(typeAdd, w)
}

// callAdd adds the weight of characters, whose number is on the stack.
func (c *checker) callAdd(w *writer, weight int64) {
	w.I64(weight)
	w.Op(wasmbin.OpCall, c.first)
}

func (c *checker) characters(w *writer) {
	if c.chars != weighChar {
		w.I32(0x7fffffff) // the highest bit says how they are encoded
		w.Byte(wasmbin.OpI32And)
	}
	c.callAdd(w, c.chars)
}

// callOf calls the function for a type. The function is made once, after the functions that it calls.
func (c *checker) callOf(w *writer, made map[*valueType]uint32, kind byte, t *valueType, body func(*valueType) writer) {
	known, ok := made[t]
	if !ok {
		known = c.function(kind, body(t))
		made[t] = known
	}
	w.Op(wasmbin.OpCall, known)
}

// callAt adds the value at an address, which is on the stack, of a type with lists or strings.
func (c *checker) callAt(w *writer, t *valueType) {
	c.callOf(w, c.at, typeAt, t, c.address)
}

func (c *checker) address(t *valueType) writer {
	w := writer{0}
	switch t.kind {
	case kindString:
		load(&w, 4, 4)
		c.characters(&w)
	case kindList:
		load(&w, 4, 0)
		load(&w, 4, 4)
		c.callList(&w, t)
	case kindFields:
		for i, p := range t.parts {
			if p.dynamic {
				w.Op(wasmbin.OpLocalGet, 0)
				w.I32(t.offsets[i])
				w.Byte(wasmbin.OpI32Add)
				c.callAt(&w, p)
			}
		}
	case kindCases:
		for i, p := range t.parts {
			if p != nil && p.dynamic {
				load(&w, t.tag, 0)
				w.I32(uint32(i))
				w.Byte(wasmbin.OpI32Eq, wasmbin.OpIf, wasmbin.BlockEmpty)
				w.Op(wasmbin.OpLocalGet, 0)
				w.I32(t.payload)
				w.Byte(wasmbin.OpI32Add)
				c.callAt(&w, p)
				w.Byte(wasmbin.OpEnd)
			}
		}
	case kindPlain:
	}
	return w
}

// callList adds the contents of a list, whose address and length are on the stack.
func (c *checker) callList(w *writer, t *valueType) {
	c.callOf(w, c.lists, typeList, t, c.list)
}

func (c *checker) list(t *valueType) writer {
	element := t.parts[0]
	w := writer{1, 1, byte(coreI32)} // local 2 counts
	w.Op(wasmbin.OpLocalGet, 0)
	w.Byte(wasmbin.OpI64Extend)
	w.Op(wasmbin.OpLocalGet, 1)
	w.Byte(wasmbin.OpI64Extend)
	w.I64(int64(element.size))
	w.Byte(wasmbin.OpI64Mul, wasmbin.OpI64Add, wasmbin.OpMemorySize, 0, wasmbin.OpI64Extend)
	w.I64(16)
	w.Byte(wasmbin.OpI64Shl, wasmbin.OpI64GtU, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpReturn, wasmbin.OpEnd) // the engine refuses an address outside memory
	w.Op(wasmbin.OpLocalGet, 1)
	c.callAdd(&w, element.perElement(c.scope))
	if !element.dynamic {
		return w
	}
	w.Byte(wasmbin.OpBlock, wasmbin.BlockEmpty, wasmbin.OpLoop, wasmbin.BlockEmpty)
	w.Op(wasmbin.OpLocalGet, 2)
	w.Op(wasmbin.OpLocalGet, 1)
	w.Byte(wasmbin.OpI32GeU)
	w.Op(wasmbin.OpBrIf, 1)
	w.Op(wasmbin.OpLocalGet, 0)
	w.Op(wasmbin.OpLocalGet, 2)
	w.I32(element.size)
	w.Byte(wasmbin.OpI32Mul, wasmbin.OpI32Add)
	c.callAt(&w, element)
	w.Op(wasmbin.OpLocalGet, 2)
	w.I32(1)
	w.Byte(wasmbin.OpI32Add)
	w.Op(wasmbin.OpLocalSet, 2)
	w.Op(wasmbin.OpBr, 0)
	w.Byte(wasmbin.OpEnd, wasmbin.OpEnd)
	return w
}

// wrapper writes the replacement of a function.
func (c *checker) wrapper(imported uint32, p *wrap) writer {
	params, _ := p.signature()
	of, w := p.fn.params, writer{0}
	if p.lift {
		of, w = p.fn.result, writer{1, 1, byte(coreI32)}
	}
	call := func() {
		for i := range params {
			w.Op(wasmbin.OpLocalGet, uint32(i))
		}
		w.Op(wasmbin.OpCall, imported)
	}
	result := uint32(len(params)) // the local
	if p.lift {
		call()
		w.Op(wasmbin.OpLocalSet, result)
	}
	sum := func(t *valueType, contents func()) {
		w.I64(0)
		w.Op(wasmbin.OpGlobalSet, globalSum)
		w.I32(1)
		c.callAdd(&w, t.weight)
		contents()
	}
	// above calls the host if the sum is more than a number.
	above := func(most int64, bytes func()) {
		w.Op(wasmbin.OpGlobalGet, globalSum)
		w.I64(most)
		w.Byte(wasmbin.OpI64GtU, wasmbin.OpIf, wasmbin.BlockEmpty)
		bytes()
		w.Op(wasmbin.OpCall, 0)
		w.Byte(wasmbin.OpEnd)
	}
	if of.dynamic {
		sum(of, func() {
			switch {
			case p.lift:
				w.Op(wasmbin.OpLocalGet, result)
				c.callAt(&w, of)
			case of.wide:
				w.Op(wasmbin.OpLocalGet, 0)
				c.callAt(&w, of)
			default:
				c.flat(&w, of, params, 0)
			}
		})
		above(Free, func() {
			w.Op(wasmbin.OpGlobalGet, globalSum)
			w.Byte(wasmbin.OpI32Wrap)
		})
	}
	if p.lift {
		w.Op(wasmbin.OpLocalGet, result)
		w.Byte(wasmbin.OpEnd)
		return w
	}
	call()
	if p.fn.returns() { // at the address in the last parameter
		most := func(bytes int64) {
			w.I64(bytes)
			w.Op(wasmbin.OpGlobalSet, globalMost)
		}
		most(-1) // the host has bounded it
		sum(p.fn.result, func() {
			w.Op(wasmbin.OpLocalGet, result-1)
			c.callAt(&w, p.fn.result)
		})
		most(Limit)
		above(arrived, func() { w.I32(0) })
	}
	w.Byte(wasmbin.OpEnd)
	return w
}

// flat adds the contents of core values. The first is in the local at.
func (c *checker) flat(w *writer, t *valueType, locals []coreType, at uint32) {
	if c.size += len(*w) / 64; c.size > maxChecks {
		return // the caller refuses it
	}
	get := func(i uint32) {
		w.Op(wasmbin.OpLocalGet, i)
		if locals[i] == coreI64 {
			w.Byte(wasmbin.OpI32Wrap)
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
				w.I32(uint32(i))
				w.Byte(wasmbin.OpI32Eq, wasmbin.OpIf, wasmbin.BlockEmpty)
				c.flat(w, p, locals, at+1)
				w.Byte(wasmbin.OpEnd)
			}
		}
	case kindPlain:
	}
}
