package wordtext_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/internal/wordtext"
)

func TestTextsStandForBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 1_000).Draw(t, "bytes")
		b = b[:len(b)&^7]
		text := wordtext.Encode([]byte("head"), b)[len("head"):]
		if len(text) != wordtext.Length(len(b)) || bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
			t.Fatalf("the text has %d bytes, want %d of ASCII", len(text), wordtext.Length(len(b)))
		}
		if back := wordtext.Decode(nil, text); !bytes.Equal(back, b) {
			t.Fatalf("got %x, want %x", back, b)
		}
	})
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 1_000).Draw(t, "bytes")
		text := wordtext.Pack(b)
		if back, ok := wordtext.Unpack(text); !ok || !bytes.Equal(back, b) {
			t.Fatalf("got %x, %t, want %x", back, ok, b)
		}
		cut := text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]
		if back, ok := wordtext.Unpack(cut); ok && len(back) == len(b) && len(b) > 0 {
			t.Fatalf("%d of %d characters stand for as many bytes", len(cut), len(text))
		}
		wordtext.Unpack(rapid.String().Draw(t, "any")) // does not panic
	})
}
