package sqlitetest

import (
	"encoding/binary"
	"os"
	"testing"
)

// Endless damages a database that nobody has open: pages of which each is the child of the next 500 times lead from the root of its schema to the real one.
func Endless(t *testing.T, file string) {
	t.Helper()
	const size, header, levels, children = 4096, 100, 6, 500
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	leaf := make([]byte, size)
	copy(leaf, b[:size])
	head := 8 + 2*int(binary.BigEndian.Uint16(b[header+3:]))
	clear(leaf[:header+head])
	copy(leaf, b[header:header+head])
	b = append(b, leaf...)
	parent := func(page []byte, at int) {
		child, end := uint32(len(b)/size), size
		clear(page[at:])
		page[at] = 5 // an inner page of a table
		binary.BigEndian.PutUint16(page[at+3:], children)
		binary.BigEndian.PutUint32(page[at+8:], child)
		for i := range children {
			end -= 5
			binary.BigEndian.PutUint32(page[end:], child)
			binary.BigEndian.PutUint16(page[at+12+2*i:], uint16(end))
		}
		binary.BigEndian.PutUint16(page[at+5:], uint16(end))
	}
	for range levels {
		page := make([]byte, size)
		parent(page, 0)
		b = append(b, page...)
	}
	parent(b[:size], header)
	binary.BigEndian.PutUint32(b[28:], uint32(len(b)/size))
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
