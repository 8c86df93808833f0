package toolchain

import (
	"encoding/binary"

	"github.com/stilehost/stile/internal/wasmbin"
)

const (
	// A data segment costs several bytes, so shorter runs of zeros are kept.
	minZeroRun = 64
	// maxSegments stays well below the 100,000 data segments that engines accept.
	maxSegments = 50_000
)

// memoryModule is a module that exports a memory with this content, in whole pages, and has nothing else.
func memoryModule(memory []byte) []byte {
	const unbounded, exported = 0, 2
	size := wasmbin.Writer{1, unbounded}
	size.Number(uint32(len(memory) / wasmPage))
	export := wasmbin.Writer{1}
	export.Text("memory")
	export.Byte(exported, 0)
	return wasmbin.WriteSections(wasmbin.CoreHeader, []wasmbin.Section{
		{ID: wasmbin.SectionMemory, Body: size}, {ID: wasmbin.SectionExport, Body: export}, {ID: wasmbin.SectionData, Body: dataSection(memory)},
	})
}

// dataSection writes memory as active segments, leaving out runs of zeros.
func dataSection(memory []byte) []byte {
	type span struct{ start, end int }
	var spans []span
	for gap := minZeroRun; ; gap *= 2 {
		spans = spans[:0]
		for i := 0; i < len(memory); i += 8 {
			if binary.LittleEndian.Uint64(memory[i:]) == 0 {
				continue
			}
			if last := len(spans) - 1; last >= 0 && i-spans[last].end < gap {
				spans[last].end = i + 8
			} else {
				spans = append(spans, span{i, i + 8})
			}
		}
		if len(spans) <= maxSegments {
			break
		}
	}
	size := 0
	for _, s := range spans {
		size += 13 + s.end - s.start
	}
	body := binary.AppendUvarint(make([]byte, 0, size+5), uint64(len(spans)))
	for _, s := range spans {
		body = append(body, 0, 0x41) // memory 0, i32.const
		body = append(wasmbin.AppendSigned(body, int64(int32(s.start))), 0x0b)
		body = wasmbin.AppendBytes(body, memory[s.start:s.end])
	}
	return body
}
