package toolchain

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"
	"pgregory.net/rapid"
)

func TestNumbersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unsigned, signed, long := rapid.Uint32().Draw(t, "unsigned"), rapid.Int32().Draw(t, "signed"), rapid.Int64().Draw(t, "long")
		b := appendUnsigned(nil, uint64(unsigned))
		b = appendSigned(b, int64(signed))
		b = appendSigned(b, long)
		r := &reader{bytes: b}
		if u, s, l := r.u32(), r.s32(), int64(r.leb(64, true)); r.err != nil || u != unsigned || s != signed || l != long || r.pos != len(b) {
			t.Fatalf("%d %d %d after %d bytes, %v", u, s, l, r.pos, r.err)
		}
	})
}

func TestReaderRefusesLongNumbers(t *testing.T) {
	for _, b := range [][]byte{
		{}, {0x80}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, {0xff, 0xff, 0xff, 0xff, 0x1f}, bytes.Repeat([]byte{0x80}, 100),
	} {
		r := &reader{bytes: b}
		if r.u32(); r.err == nil {
			t.Errorf("%x: no error", b)
		}
	}
}

func TestSectionsComeBack(t *testing.T) {
	wasm := wat(t, smallEngine)
	sections, err := readSections(wasm, coreHeader)
	if err != nil {
		t.Fatal(err)
	}
	if got := writeSections(coreHeader, sections); !bytes.Equal(got, wasm) {
		t.Error("written otherwise than read")
	}
}

func FuzzReadSections(f *testing.F) {
	f.Add(wat(f, smallEngine))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		sections, err := readSections(wasm, coreHeader)
		var wasmErr *WasmError
		if err != nil && !errors.As(err, &wasmErr) {
			t.Fatal(err)
		}
		again, _ := readSections(writeSections(coreHeader, sections), coreHeader)
		if len(again) != len(sections) {
			t.Fatalf("%d sections, then %d", len(sections), len(again))
		}
	})
}

// Instantiating a module with data gives back the memory that the data was made from.
func TestAddData(t *testing.T) {
	module := wat(t, `(module (memory (export "memory") 4) (func))`)
	sparse := make([]byte, 4*wasmPage)
	for i := 0; i < len(sparse); i += 100 {
		sparse[i] = byte(i/100 + 1)
	}
	dense := bytes.Repeat([]byte{7}, 4*wasmPage)
	ends := make([]byte, 4*wasmPage)
	ends[0], ends[len(ends)-1] = 1, math.MaxUint8
	for name, memory := range map[string][]byte{"sparse": sparse, "dense": dense, "ends": ends, "empty": make([]byte, 4*wasmPage)} {
		t.Run(name, func(t *testing.T) {
			wasm, err := addData(module, memory)
			if err != nil {
				t.Fatal(err)
			}
			store := wasmtime.NewStore(wasmtime.NewEngine())
			compiled, err := wasmtime.NewModule(store.Engine, wasm)
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

// A memory that would need more segments than engines accept gets fewer, longer ones.
func TestDataSegmentsAreBounded(t *testing.T) {
	memory := make([]byte, 104*(maxSegments+1)) // longer than minZeroRun apart
	for i := 0; i < len(memory); i += 104 {
		memory[i] = 1
	}
	r := &reader{bytes: dataSection(memory)}
	if n := r.u32(); n == 0 || n > maxSegments {
		t.Errorf("%d segments", n)
	}
}
