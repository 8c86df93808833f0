package toolchain

import (
	"bytes"
	"encoding/binary"

	"github.com/stilehost/stile/internal/wasmbin"
)

// The engine asks whether its own stack is full, which is the one in its memory. Some functions that call themselves take little of that and
// much of the native stack, so that the native stack would be full first, which ends the call. Their frames get more bytes. The native
// stack is 4.6 times guestStack, and at top level 3.5 times topStack; a cycle of calls takes at most 3.4 times as much of it.

// widening is how many bytes the frame of a function of the engine gets more.
type widening struct{ function, frame, more uint32 }

// widened are functions of the pinned engine: see engineDigest. Each comment says how many bytes of the native stack a level takes.
var widened = []widening{
	{940, 16, 48},   // JSON.parse: 175
	{933, 16, 80},   // JSON.stringify: 255
	{1474, 80, 64},  // a regular expression: 382
	{1082, 32, 528}, // an expression in brackets: 2,300, or 3,300 for a function in it
	{1086, 16, 48},  // an operator before its operand: 175
	{991, 64, 800},  // a class: 4,800
	{1000, 48, 192}, // a function: 650
	{154, 32, 48},   // Object.setPrototypeOf of a proxy: 175
	{181, 16, 32},   // the prototype of a proxy: 96
	{219, 16, 32},   // Object.isExtensible of a proxy: 96
	{488, 16, 32},   // Object.preventExtensions of a proxy: 96
	{911, 32, 160},  // the keys of a proxy: 542
	{913, 48, 96},   // delete of a property of a proxy: 416
	{914, 64, 144},  // Object.defineProperty of a proxy: 603
	{915, 48, 48},   // in of a proxy: 240
	{689, 32, 240},  // new of a proxy: 686
}

// placing is the function of the pinned engine that finds the line and the column of an instruction: find_line_num in its quickjs.c.
const placing = 311

// mend rewrites functions of the pinned engine.
func mend(wasm []byte) ([]byte, error) {
	mends := map[uint32]func(*wasmbin.Reader) []byte{placing: placeColumn}
	for _, w := range widened {
		mends[w.function] = w.widen
	}
	return rewriteFunctions(wasm, mends)
}

// rewriteFunctions replaces the bodies of functions, by index.
func rewriteFunctions(wasm []byte, rewrite map[uint32]func(*wasmbin.Reader) []byte) ([]byte, error) {
	sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
	if err != nil {
		return nil, err
	}
	var function uint32
	rewritten := 0
	for i, s := range sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionImport:
			for range r.Count() {
				importedFunction(r)
				function++
			}
		case wasmbin.SectionCode:
			n := r.Count()
			out := binary.AppendUvarint(make([]byte, 0, len(s.Body)), uint64(n))
			for range n {
				code := r.Sub()
				body := code.Bytes
				if f := rewrite[function]; f != nil {
					body = f(&code)
					rewritten++
				}
				if code.Err != nil {
					return nil, code.Err
				}
				out = wasmbin.AppendBytes(out, body)
				function++
			}
			sections[i].Body = out
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	if rewritten != len(rewrite) {
		return nil, &WasmError{Offset: len(wasm), Reason: "a function to rewrite is missing"}
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, sections), nil
}

// widen returns the body of a function with its larger frame. The function must move the stack pointer by its frame where it begins and
// where it ends, and use it nowhere else.
func (w widening) widen(code *wasmbin.Reader) []byte {
	var out wasmbin.Writer
	var at [4]int // where the last four instructions begin
	copied, gets, sets := 0, 0, 0
	for range code.Count() {
		code.U32()
		code.Byte()
	}
	for code.Err == nil && code.Len() > 0 {
		copy(at[:], at[1:])
		at[3] = code.Pos
		switch instruction(code) {
		case wasmbin.OpGlobalGet:
			gets++
		case wasmbin.OpGlobalSet:
			from := at[min(sets, 1)] // then come i32.add or i32.sub, and local.tee at the begin
			sets++
			size := wasmbin.Reader{Bytes: code.Bytes, Pos: from}
			op, n := size.Byte(), size.Signed(32)
			if op != wasmbin.OpI32Const || n != int64(w.frame) && n != -int64(w.frame) {
				code.Fail("function %d moves the stack pointer by something else than %d", w.function, w.frame)
				break
			}
			more := int64(w.more)
			if n < 0 {
				more = -more
			}
			out.Byte(code.Bytes[copied:from]...)
			out.I32(uint32(n + more))
			copied = size.Pos
		}
	}
	if code.Err == nil && (gets != 1 || sets != 2) {
		code.Fail("function %d does not move the stack pointer exactly twice", w.function)
	}
	return append(out, code.Bytes[copied:]...)
}

// placeColumn has the engine return the column of the whole function where code has no position, as it does with the line: the code of
// `get x() { return this.x }` has none. The column was 1, which is the begin of a bundle.
func placeColumn(code *wasmbin.Reader) []byte {
	const functionColumn = 64 // in JSFunctionBytecode
	column := []byte{wasmbin.OpLocalGet, 2, wasmbin.OpI32Const, 1, i32Store, 2, 0}
	if bytes.Count(code.Bytes, column) != 1 {
		code.Fail("it does not set the column to 1 once")
	}
	own := []byte{wasmbin.OpLocalGet, 2, wasmbin.OpLocalGet, 0, wasmbin.OpI32Load, 2, functionColumn, i32Store, 2, 0}
	return bytes.Replace(code.Bytes, column, own, 1)
}
