package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// reader reads the binary format. After a mistake it has nothing left and err is set, so callers look once.
type reader struct {
	rest []byte
	err  error
}

var errTruncated = errors.New("truncated")

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.rest = nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("%w", errTruncated)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number() uint32 {
	n, k := binary.Uvarint(r.rest)
	if k <= 0 || k > 5 || n > 1<<32-1 {
		r.fail("%w", errTruncated)
		return 0
	}
	r.rest = r.rest[k:]
	return uint32(n)
}

// count reads how many parts follow, each of at least one byte.
func (r *reader) count() int {
	n := r.number()
	if int64(n) > int64(len(r.rest)) {
		r.fail("%w", errTruncated)
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.count()
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes()) }

// writer makes the binary format.
type writer []byte

func (w *writer) byte(b ...byte)  { *w = append(*w, b...) }
func (w *writer) number(n uint32) { *w = binary.AppendUvarint(*w, uint64(n)) }
func (w *writer) raw(b []byte)    { *w = append(*w, b...) }
func (w *writer) bytes(b []byte)  { w.number(uint32(len(b))); w.raw(b) }
func (w *writer) text(s string)   { w.bytes([]byte(s)) }
func (w *writer) section(id byte, body []byte) {
	w.byte(id)
	w.bytes(body)
}

// signed writes a number as signed LEB128.
func (w *writer) signed(n int64) {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			w.byte(b)
			return
		}
		w.byte(b | 0x80)
	}
}
