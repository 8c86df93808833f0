package toolchain

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
)

// asText and ofText are the texts of stile:extension/memory, written after its description.
func asText(b []byte) []byte {
	var text []byte
	for group := range slices.Chunk(b, 56) {
		high := make([]byte, 8)
		for i, c := range group {
			text = append(text, c&0x7f)
			high[i%8] |= c >> 7 << (6 - i/8)
		}
		text = append(text, high...)
	}
	return text
}

func ofText(text []byte) []byte {
	var b []byte
	for group := range slices.Chunk(text, 64) {
		words := len(group) - 8
		for i, c := range group[:words] {
			b = append(b, c|group[words+i%8]>>(6-i/8)<<7)
		}
	}
	return b
}

// sumsOf are the sums of a block of 256 bytes.
func sumsOf(block, key []byte) (sums [16]byte) {
	word := func(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	for i := range 2 {
		total := uint64(0)
		for at := 0; at < 256; at += 32 {
			for n := at; n < at+16; n += 4 {
				total += uint64(word(block, n)+word(key, 32*i+n)) * uint64(word(block, n+16)+word(key, 32*i+n+16))
			}
		}
		binary.LittleEndian.PutUint64(sums[8*i:], total)
	}
	return sums
}

// TestMemoryFunctions calls the functions of stile:extension/memory in an image: they see and change its memory, and nothing else of it.
func TestMemoryFunctions(t *testing.T) {
	t.Parallel()
	const page = 4096
	m, l := testImager(t, imageLimits{}), testLinkage(t)
	img, _, err := m.extension(t.Context(), testBase(t, m), nil, testDescriptor(t, l), []byte(`export default globalThis[Symbol.for("stile.sdk")].extension({ tools: { t: { description: "test", run() {} } } })`), "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	handle := int32(1)
	g, instance := startBindings(t, m, l, img, func(g *guest, c coreImport, f *abi.Func) *wasmtime.Func { return answerZero(g, c, f, &handle) })
	memory := func() []byte { return g.memory.UnsafeData(g.store) }
	scratch, top := m.shape.StackTop-scratchSize, m.shape.StackTop
	call := func(name string, text []byte, args ...any) []byte {
		t.Helper()
		if text != nil {
			copy(memory()[scratch:top], text)
			args = append(args, int32(scratch), int32(len(text)))
		}
		before := bytes.Clone(memory())
		result, err := instance.GetFunc(g.store, abi.ExtensionMemory+"#"+name).Call(g.store, args...)
		if err != nil {
			t.Fatal(name, err)
		}
		if name != "patch" {
			copy(before[scratch:top], memory()[scratch:top])
			if !bytes.Equal(before, memory()) {
				t.Errorf("%s has changed the memory", name)
			}
		}
		at, ok := result.(int32)
		if !ok || name == "size" {
			return nil
		}
		pair := memory()[at:]
		return bytes.Clone(memory()[binary.LittleEndian.Uint32(pair):][:binary.LittleEndian.Uint32(pair[4:])])
	}
	for n := range 200 {
		b := make([]byte, 8*n)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		if back := ofText(asText(b)); !bytes.Equal(back, b) {
			t.Fatal("the text of this test is wrong")
		}
	}

	key := make([]byte, page+32)
	for i := range key {
		key[i] = byte(rand.Uint32())
	}
	pageSum := func(n int) []byte {
		var a, b uint64
		for at := 0; at < page; at += 256 {
			s := sumsOf(memory()[n*page+at:], key[at:])
			a, b = a+binary.LittleEndian.Uint64(s[:]), b+binary.LittleEndian.Uint64(s[8:])
		}
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b)
	}
	pages := min(len(memory())/page, 512)
	known := bytes.Clone(key)
	for n := range pages {
		known = append(known, pageSum(n)...)
	}
	if got := call("changes", asText(known), int32(0), int32(pages)); len(got) != 0 {
		t.Errorf("%d pages have changed, but none was written", len(ofText(got))/272)
	}
	for name, written := range map[string]int{"all": pages, "every other": pages / 2, "one": 1} {
		k := bytes.Clone(known)
		var want []int
		for n := range written {
			at := n * pages / written
			k[len(key)+16*at+n%16]++ // as if the page had been another
			if uint32(at*page) < top-guestStack || uint32(at*page) >= top {
				want = append(want, at)
			}
		}
		got := ofText(call("changes", asText(k), int32(0), int32(pages)))
		want = want[:min(len(want), changedPages)]
		if len(got) != 272*len(want) {
			t.Fatalf("%s: %d bytes for %d pages", name, len(got), len(want))
		}
		for i, n := range want {
			c := got[272*i:]
			if at := binary.LittleEndian.Uint32(c); at != uint32(n*page) {
				t.Errorf("%s: page %d is at %#x", name, n, at)
			}
			for b := range 16 {
				if s := sumsOf(memory()[n*page+256*b:], key[256*b:]); !bytes.Equal(s[:], c[16+16*b:][:16]) {
					t.Errorf("%s: the sums of block %d of page %d are wrong", name, b, n)
				}
			}
		}
	}

	var list, want, runs []byte
	for range 192 {
		at := uint32(rand.IntN(int(scratch)/256)) * 256
		list = binary.LittleEndian.AppendUint32(list, at)
		want = append(want, asText(memory()[at:][:256])...)
	}
	if got := call("peek", asText(list)); !bytes.Equal(got, want) {
		t.Error("peek returns something else than the memory")
	}

	after := bytes.Clone(memory())
	for at := uint32(2 * wasmPage); len(runs) < 48<<10; {
		length := uint32(8 * (1 + rand.IntN(20)))
		runs = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(runs, at), length)
		for range length {
			after[at] = byte(rand.Uint32())
			runs = append(runs, after[at])
			at++
		}
		at += uint32(8 * rand.IntN(100))
	}
	call("patch", asText(runs))
	copy(after[scratch:top], memory()[scratch:top])
	if !bytes.Equal(after, memory()) {
		t.Error("patch has written something else than its runs")
	}
}
