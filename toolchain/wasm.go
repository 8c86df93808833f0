package toolchain

import "github.com/stilehost/stile/internal/wasmbin"

// WasmError reports a WebAssembly binary that cannot be read or rewritten.
type WasmError = wasmbin.Error

const wasmPage = 64 << 10

// instruction reads one instruction of an engine with its operands and returns its first byte. An engine has one memory, whose data is
// applied before it begins, and only instructions that the rewriting knows.
func instruction(r *wasmbin.Reader) byte {
	op := r.Byte()
	operands := *r
	r.Operands(op)
	const sharedMemory, memoryInit, dataDrop = 1 << 6, 8, 9
	switch first := operands.U32(); {
	case op >= 0x28 && op <= 0x3e && first >= sharedMemory, (op == 0x3f || op == wasmbin.OpMemoryGrow) && first != 0:
		r.Fail("access to more than one memory")
	case op == wasmbin.OpBulk && (first == memoryInit || first == dataDrop):
		r.UnsupportedBulk(first)
	case op == wasmbin.OpReturnCall, op == wasmbin.OpReturnCallTable, op == wasmbin.OpVector:
		r.Unsupported(op)
	}
	return op
}

// importedFunction reads an import of an engine, which is a function, and returns the index of its type.
func importedFunction(r *wasmbin.Reader) uint32 {
	r.Name()
	r.Name()
	if kind := r.Byte(); kind != 0 {
		r.Fail("import of kind %d is not supported", kind)
	}
	return r.U32()
}

// nameSection names functions from one on.
func nameSection(function uint32, list ...string) wasmbin.Section {
	var names wasmbin.Writer
	names.Number(uint32(len(list)))
	for i, name := range list {
		names.Number(function + uint32(i))
		names.Text(name)
	}
	return wasmbin.CustomSection("name", wasmbin.AppendBytes([]byte{1}, names))
}
