// Package wordtext has texts that stand for words of 8 bytes, each character of which is one byte: a component gets a text hundreds of
// times as fast as a list of bytes. After at most 7 words comes one with their high bits, which are zero in the words themselves.
package wordtext

import (
	"encoding/binary"
	"slices"
)

const (
	wordsOfGroup = 7
	lowBits      = 0x7f7f7f7f7f7f7f7f
	highBits     = ^uint64(lowBits)
)

// Length is the length of the text that stands for this many bytes, a multiple of 8.
func Length(bytes int) int {
	words := bytes / 8
	return 8 * (words + (words+wordsOfGroup-1)/wordsOfGroup)
}

// Encode appends the text that stands for b, whose length is a multiple of 8.
func Encode(text, b []byte) []byte {
	text = slices.Grow(text, Length(len(b)))
	for len(b) > 0 {
		group := b[:min(8*wordsOfGroup, len(b))]
		b = b[len(group):]
		var high uint64
		for n := 0; n < len(group); n += 8 {
			w := binary.LittleEndian.Uint64(group[n:])
			high |= w & highBits >> (1 + n/8)
			text = binary.LittleEndian.AppendUint64(text, w&lowBits)
		}
		text = binary.LittleEndian.AppendUint64(text, high)
	}
	return text
}

// Decode appends the bytes that a text of whole words stands for.
func Decode(b, text []byte) []byte {
	b = slices.Grow(b, len(text))
	for len(text) > 8 {
		group := text[:min(8*wordsOfGroup, len(text)-8)]
		high := binary.LittleEndian.Uint64(text[len(group):])
		text = text[len(group)+8:]
		for n := 0; n < len(group); n += 8 {
			b = binary.LittleEndian.AppendUint64(b, binary.LittleEndian.Uint64(group[n:])|high<<(1+n/8)&highBits)
		}
	}
	return b
}

// Pack returns the text of any number of bytes: first the number as u64, then the bytes, and zeros up to a whole word.
func Pack(data []byte) string {
	words := binary.LittleEndian.AppendUint64(make([]byte, 0, len(data)+16), uint64(len(data)))
	words = append(words, data...)
	words = append(words, make([]byte, -len(data)&7)...)
	return string(Encode(nil, words))
}

// Unpack returns the bytes of a text that Pack made. It reports false for a text that stands for none.
func Unpack(text string) (data []byte, ok bool) {
	if len(text)%8 != 0 {
		return nil, false
	}
	words := Decode(nil, []byte(text))
	if len(words) < 8 {
		return nil, false
	}
	n, data := binary.LittleEndian.Uint64(words), words[8:]
	if n > uint64(len(data)) {
		return nil, false
	}
	return data[:n], true
}
