package toolchain

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/internal/wasmbin"
)

func TestSectionsComeBack(t *testing.T) {
	wasm := wat(t, smallEngine)
	sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
	if err != nil {
		t.Fatal(err)
	}
	if got := wasmbin.WriteSections(wasmbin.CoreHeader, sections); !bytes.Equal(got, wasm) {
		t.Error("written otherwise than read")
	}
}

func FuzzReadSections(f *testing.F) {
	f.Add(wat(f, smallEngine))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
		var wasmErr *WasmError
		if err != nil && !errors.As(err, &wasmErr) {
			t.Fatal(err)
		}
		again, _ := wasmbin.ReadSections(wasmbin.WriteSections(wasmbin.CoreHeader, sections), wasmbin.CoreHeader)
		if len(again) != len(sections) {
			t.Fatalf("%d sections, then %d", len(sections), len(again))
		}
	})
}

// TestMemoryModule instantiates modules and compares their memory with the one they were made from.
func TestMemoryModule(t *testing.T) {
	sparse := make([]byte, 4*wasmPage)
	for i := 0; i < len(sparse); i += 100 {
		sparse[i] = byte(i/100 + 1)
	}
	dense := bytes.Repeat([]byte{7}, 4*wasmPage)
	ends := make([]byte, 4*wasmPage)
	ends[0], ends[len(ends)-1] = 1, math.MaxUint8
	for name, memory := range map[string][]byte{"sparse": sparse, "dense": dense, "ends": ends, "empty": make([]byte, 4*wasmPage)} {
		t.Run(name, func(t *testing.T) {
			store := wasmtime.NewStore(wasmtime.NewEngine())
			compiled, err := wasmtime.NewModule(store.Engine, memoryModule(memory))
			if err != nil {
				t.Fatal(err)
			}
			instance, err := wasmtime.NewInstance(store, compiled, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(instance.GetExport(store, "memory").Memory().UnsafeData(store), memory) {
				t.Error("another memory")
			}
		})
	}
}

// A memory that would need more segments than engines accept gets fewer but longer ones.
func TestDataSegmentsAreBounded(t *testing.T) {
	memory := make([]byte, 104*(maxSegments+1)) // longer than minZeroRun apart
	for i := 0; i < len(memory); i += 104 {
		memory[i] = 1
	}
	r := &wasmbin.Reader{Bytes: dataSection(memory)}
	if n := r.U32(); n == 0 || n > maxSegments {
		t.Errorf("%d segments", n)
	}
}
