package toolchain

import (
	"encoding/binary"

	"github.com/stilehost/stile/internal/wasmbin"
)

// The engine can print each instruction that a script executes. Nothing asks for that, but before each of them the interpreter reads this bit
// of a byte of its JSRuntime.
const (
	tracingByte = 753
	tracingBit  = 0x80
)

// foundTraces is how many such checks the pinned engine has: see engineDigest.
const foundTraces = 223

// dropTracing takes these checks out of an engine, with what they guard. It returns how many there were.
func dropTracing(wasm []byte) (_ []byte, traces int, err error) {
	sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
	if err != nil {
		return nil, 0, err
	}
	for i, s := range sections {
		if s.ID != wasmbin.SectionCode {
			continue
		}
		r := s.Reader()
		n := r.Count()
		out := binary.AppendUvarint(make([]byte, 0, len(s.Body)), uint64(n))
		for range n {
			code := r.Sub()
			body, found := untraced(&code)
			if code.Err != nil {
				return nil, 0, code.Err
			}
			traces += found
			out = wasmbin.AppendBytes(out, body)
		}
		if r.Err != nil {
			return nil, 0, r.Err
		}
		sections[i].Body = out
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, sections), traces, nil
}

// untraced returns the body of a function without its checks. A check is i32.load8_u offset=tracingByte, i32.const tracingBit, i32.and, if.
func untraced(code *wasmbin.Reader) (body []byte, traces int) {
	const and, drop = 0x71, 0x1a
	for range code.Count() {
		code.U32()
		code.Byte()
	}
	type place struct {
		op byte
		at int
	}
	var before [5]place // the last comes last
	var out wasmbin.Writer
	copied := 0
	for code.Len() > 0 {
		now := place{at: code.Pos}
		now.op = instruction(code)
		b := before
		copy(before[:], b[1:])
		before[4] = now
		if now.op != wasmbin.OpIf || b[2].op != wasmbin.OpI32Load8 || b[3].op != wasmbin.OpI32Const || b[4].op != and {
			continue
		}
		load, mask := wasmbin.Reader{Bytes: code.Bytes, Pos: b[2].at + 1}, wasmbin.Reader{Bytes: code.Bytes, Pos: b[3].at + 1}
		load.U32()
		if load.U32() != tracingByte || mask.Signed(32) != tracingBit {
			continue
		}
		after := *code
		if !skipIf(&after) {
			continue
		}
		if b[0].op == wasmbin.OpLocalGet && b[1].op == wasmbin.OpI32Load { // which is the address
			out.Byte(code.Bytes[copied:b[0].at]...)
		} else {
			out.Byte(code.Bytes[copied:b[2].at]...)
			out.Byte(drop)
		}
		code.Pos, code.Err = after.Pos, after.Err
		copied = code.Pos
		before = [5]place{}
		traces++
	}
	out.Byte(code.Bytes[copied:]...)
	return out, traces
}

// skipIf reads until after the end of an if. It returns false if the if has an else.
func skipIf(code *wasmbin.Reader) bool {
	const elseOp = 0x05
	for depth := 1; depth > 0 && code.Err == nil; {
		switch instruction(code) {
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
			depth++
		case wasmbin.OpEnd:
			depth--
		case elseOp:
			if depth == 1 {
				return false
			}
		}
	}
	return true
}
