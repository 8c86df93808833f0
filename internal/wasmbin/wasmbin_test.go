package wasmbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unsigned, signed, long := rapid.Uint32().Draw(t, "unsigned"), rapid.Int32().Draw(t, "signed"), rapid.Int64().Draw(t, "long")
		b := binary.AppendUvarint(nil, uint64(unsigned))
		b = AppendSigned(b, int64(signed))
		b = AppendSigned(b, long)
		r := &Reader{Bytes: b}
		if u, s, l := r.U32(), r.Signed(32), r.Signed(64); r.Err != nil || u != unsigned || s != int64(signed) || l != long || r.Pos != len(b) {
			t.Fatalf("%d %d %d after %d bytes, %v", u, s, l, r.Pos, r.Err)
		}
	})
}

func TestReaderRefusesLongNumbers(t *testing.T) {
	for _, b := range [][]byte{
		{}, {0x80}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, {0xff, 0xff, 0xff, 0xff, 0x1f}, bytes.Repeat([]byte{0x80}, 100),
	} {
		r := &Reader{Bytes: b}
		if r.U32(); r.Err == nil {
			t.Errorf("%x: no error", b)
		}
	}
}

// Operands of whatever kind end where the next instruction begins.
func TestOperands(t *testing.T) {
	for name, code := range map[string]string{
		"none":                       "\x01",
		"a block without a type":     "\x02\x40",
		"a block of a value":         "\x03\x7f",
		"a block of a reference":     "\x04\x64\x80\x01",
		"a block of a long type":     "\x02\x80\x01",
		"br_table":                   "\x0e\x02\x80\x01\x02\x03",
		"call_indirect":              "\x11\x80\x01\x00",
		"select of references":       "\x1c\x01\x63\x70",
		"a load":                     "\x28\x02\x80\x01",
		"a load from another memory": "\x28\x42\x01\x80\x01",
		"i32.const":                  "\x41\x80\x80\x80\x80\x78",
		"i64.const":                  "\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f",
		"f32.const":                  "\x43abcd",
		"f64.const":                  "\x44abcdefgh",
		"ref.null of a long type":    "\xd0\x80\x01",
		"memory.init":                "\xfc\x08\x80\x01\x00",
		"memory.fill":                "\xfc\x0b\x00",
		"a conversion":               "\xfc\x07",
		"v128.const":                 "\xfd\x0cabcdefghijklmnop",
		"a lane":                     "\xfd\x15\x0f",
		"a lane of another memory":   "\xfd\x54\x40\x01\x00\x0f",
		"a sum of vectors":           "\xfd\xae\x01",
	} {
		r := Reader{Bytes: []byte(code + "\x0b")}
		if r.Operands(r.Byte()); r.Err != nil || r.Len() != 1 {
			t.Errorf("%s: %v, %d bytes are left", name, r.Err, r.Len())
		}
		for n := range code {
			r := Reader{Bytes: []byte(code[:n])}
			if r.Operands(r.Byte()); r.Err == nil {
				t.Errorf("%s: the first %d bytes are enough", name, n)
			}
		}
	}
	for _, code := range []string{"\x06", "\x14", "\xc5", "\xfb\x00", "\xfc\x12", "\xfe\x00"} {
		r := Reader{Bytes: []byte(code + "\x00\x00\x00")}
		if r.Operands(r.Byte()); r.Err == nil {
			t.Errorf("%q is supported", code)
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	r := Reader{Bytes: []byte("\x01\x02\x05\x01")}
	r.Byte()
	part := r.Sub()
	part.Byte()
	part.Sub()
	if err, ok := errors.AsType[*Error](part.Err); !ok || err.Offset != 4 {
		t.Errorf("got %v", part.Err)
	}
}
