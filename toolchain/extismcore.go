package toolchain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/wasmbin"
)

// What a plug-in's module exports once its memory has room for the kernel: the pages that the plug-in knows of, and the pages of the kernel's
// region above them.
const (
	visiblePages = "stile:visible"
	kernelPages  = "stile:kernel"
)

// withKernel returns a module whose memory has room for the kernel, above the pages that the plug-in itself knows of. Its instructions
// for the size of the memory become calls of two new functions, which leave the kernel's pages out. The one that grows the memory moves
// them up: allocators expect their pages one after the other. A component has at most one memory, so the kernel has none of its own.
//
// New types, functions and globals have the last indices, so that all others keep theirs. Sections for debuggers, which hold positions
// in the code, are left out. The module is valid.
func (m *coreModule) withKernel() ([]byte, error) {
	var out []wasmbin.Section
	var globals uint32
	least, most := uint32(0), uint32(1<<16)
	types, funcs := uint32(len(m.types)), uint32(len(m.funcs))
	var added bool
	global := func(had []byte, n uint32) []byte {
		globals = n
		w := wasmbin.Writer(nil)
		w.Number(n + 2)
		w.Byte(had...)
		for _, pages := range []uint32{least, 0} {
			w.Byte(0x7f, 1)
			w.I32(pages)
			w.Byte(wasmbin.OpEnd)
		}
		return w
	}
	for _, s := range m.outSections() {
		r := s.Reader()
		if !added && (s.ID >= wasmbin.SectionExport && s.ID != tagSection) {
			added = true
			out = append(out, wasmbin.Section{ID: wasmbin.SectionGlobal, Body: global(nil, 0)})
		}
		switch s.ID {
		case wasmbin.SectionCustom:
			if name := r.Name(); strings.HasPrefix(name, ".debug_") || name == "sourceMappingURL" {
				continue
			}
		case wasmbin.SectionType:
			s.Body = appended(r, []byte("\x60\x00\x01\x7f"), []byte("\x60\x01\x7f\x01\x7f"))
		case wasmbin.SectionFunction:
			s.Body = appended(r, wasmNumber(types), wasmNumber(types+1))
		case wasmbin.SectionMemory:
			var bounded bool
			r.Count()
			if least, most, bounded = r.Limits(); !bounded {
				most = 1 << 16
			}
			s.Body = append([]byte{1, 0}, wasmNumber(least)...)
		case wasmbin.SectionGlobal:
			added = true
			n := uint32(r.Count())
			s.Body = global(r.Rest(), n)
		case wasmbin.SectionExport:
			s.Body = appended(r, exportOf(visiblePages, globals), exportOf(kernelPages, globals+1))
		case wasmbin.SectionCode:
			body, err := sizedCode(r, funcs, globals, most)
			if err != nil {
				return nil, malformed(err)
			}
			s.Body = body
		}
		if r.Err != nil {
			return nil, malformed(r.Err)
		}
		out = append(out, s)
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, out), nil
}

// tagSection is the section of exceptions, which comes between those of memories and globals.
const tagSection = 13

func wasmNumber(n uint32) []byte {
	w := wasmbin.Writer(nil)
	w.Number(n)
	return w
}

func exportOf(name string, global uint32) []byte {
	w := wasmbin.Writer(nil)
	w.Text(name)
	w.Byte(externGlobal)
	w.Number(global)
	return w
}

// appended returns the content of a section with more items.
func appended(r *wasmbin.Reader, items ...[]byte) []byte {
	w := wasmbin.Writer(nil)
	w.Number(uint32(r.Count() + len(items)))
	w.Byte(r.Rest()...)
	return slices.Concat(append([][]byte{w}, items...)...)
}

// sizedCode returns a section of code in which memory.size and memory.grow are calls of the functions after the first funcs ones, and which
// has these two.
func sizedCode(r *wasmbin.Reader, funcs, visible, most uint32) ([]byte, error) {
	w := wasmbin.Writer(nil)
	n := r.Count()
	w.Number(uint32(n) + 2)
	for range n {
		body := r.Sub()
		b := make(wasmbin.Writer, 0, body.Len()+16)
		for range body.Count() {
			body.U32()
			body.ValueType()
		}
		from := 0
		for body.Len() > 0 {
			at := body.Pos
			op := body.Byte()
			body.Operands(op)
			if op == wasmbin.OpMemorySize || op == wasmbin.OpMemoryGrow {
				b.Byte(body.Bytes[from:at]...)
				b.Op(wasmbin.OpCall, funcs+uint32(op-wasmbin.OpMemorySize))
				from = body.Pos
			}
		}
		if body.Err != nil {
			return nil, fmt.Errorf("code: %w", body.Err)
		}
		b.Byte(body.Bytes[from:]...)
		w.Bytes(b)
	}
	var size wasmbin.Writer
	size.Byte(0)
	size.Op(wasmbin.OpGlobalGet, visible)
	size.Byte(wasmbin.OpEnd)
	w.Bytes(size)
	w.Bytes(growAround(visible, visible+1, most))
	return w, nil
}

// growAround is the function that replaces memory.grow. The kernel's pages move up, and those that the plug-in gets are zero.
func growAround(visible, kernel, most uint32) []byte {
	const i32Shl, i32Sub, i32GtU, i32LtU, i32Select, pageBits = 0x74, 0x6b, 0x4b, 0x49, 0x1b, 16
	var w wasmbin.Writer
	bytes := func() { w.I32(pageBits); w.Byte(i32Shl) }
	fail := func() {
		w.Byte(wasmbin.OpIf, wasmbin.BlockEmpty)
		w.I32(^uint32(0))
		w.Byte(wasmbin.OpReturn, wasmbin.OpEnd)
	}
	pages := func() { w.Op(wasmbin.OpLocalGet, 0) }
	w.Byte(0)
	pages() // more than the module allows itself
	w.I32(most)
	w.Op(wasmbin.OpGlobalGet, visible)
	w.Byte(i32Sub, i32GtU)
	fail()
	pages()
	w.Byte(wasmbin.OpMemoryGrow, 0)
	w.I32(^uint32(0))
	w.Byte(wasmbin.OpI32Eq)
	fail()
	w.Op(wasmbin.OpGlobalGet, visible) // move the kernel
	pages()
	w.Byte(wasmbin.OpI32Add)
	bytes()
	w.Op(wasmbin.OpGlobalGet, visible)
	bytes()
	w.Op(wasmbin.OpGlobalGet, kernel)
	bytes()
	w.Byte(wasmbin.OpBulk, 10, 0, 0)
	w.Op(wasmbin.OpGlobalGet, visible) // clear where it was, as far as it is not there any more
	bytes()
	w.I32(0)
	pages()
	w.Op(wasmbin.OpGlobalGet, kernel)
	pages()
	w.Op(wasmbin.OpGlobalGet, kernel)
	w.Byte(i32LtU, i32Select)
	bytes()
	w.Byte(wasmbin.OpBulk, 11, 0)
	w.Op(wasmbin.OpGlobalGet, visible) // the result
	w.Op(wasmbin.OpGlobalGet, visible)
	pages()
	w.Byte(wasmbin.OpI32Add)
	w.Op(wasmbin.OpGlobalSet, visible)
	w.Byte(wasmbin.OpEnd)
	return w
}
