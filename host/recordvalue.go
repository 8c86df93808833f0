package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

// maxArgument is how many bytes of an operation's arguments a recording keeps. For longer ones, it keeps the digest.
const maxArgument = 4 * kib

// maxRecordedValues is how many values the operations of a recording have at most. Each takes up to 60 bytes when it is read.
const maxRecordedValues = 4 << 20

var errManyValues = fmt.Errorf("more than %d values", maxRecordedValues)

// redacted replaces the value of a header that carries a credential in a recording.
const redacted = "[redacted]"

// encoder writes values by their types, without names. Recordings hold values in this form. Every value takes at least one byte. It
// runs during a call, so it allocates only the buffer.
type encoder struct {
	buf []byte
	// max bounds buf. A value that does not fit sets full.
	max  int
	full bool
	// values counts the values in buf. More than maxRecordedValues set full.
	values int
	// redact, if not nil, replaces the parts of texts and bytes that
	// must not be kept. altered reports whether it replaced something.
	redact  func([]byte) []byte
	altered bool
	// plain keeps credentials in headers, for what is encrypted.
	plain bool
	// handle, if not nil, returns the number of a handle in the recording.
	handle func(t *abi.Type, r abi.Rep) abi.Rep

	// While brief is set, the bytes after from are replaced by their digest once they exceed maxArgument.
	brief bool
	from  int
	sum   hash.Hash
	size  uint64
}

func put[T string | []byte](e *encoder, p T) {
	if e.brief {
		e.size += uint64(len(p))
		for len(e.buf)-e.from+len(p) > maxArgument {
			if e.sum == nil {
				e.sum = sha256.New()
			}
			room := maxArgument - (len(e.buf) - e.from)
			e.buf = append(e.buf, p[:room]...)
			e.sum.Write(e.buf[e.from:])
			e.buf, p = e.buf[:e.from], p[room:]
		}
	}
	if len(e.buf)+len(p) > e.max {
		e.full = true
		return
	}
	e.buf = append(e.buf, p...)
}

func (e *encoder) byte(b byte) { put(e, []byte{b}) }

func (e *encoder) number(n uint64) {
	var space [binary.MaxVarintLen64]byte
	put(e, binary.AppendUvarint(space[:0], n))
}

func (e *encoder) signed(n int64) {
	var space [binary.MaxVarintLen64]byte
	put(e, binary.AppendVarint(space[:0], n))
}

func (e *encoder) text(s string) {
	if e.redact != nil {
		s = strings.ToValidUTF8(string(e.without([]byte(s))), "\uFFFD")
	}
	e.number(uint64(len(s)))
	put(e, s)
}

func (e *encoder) bytes(b []byte) {
	b = e.without(b)
	e.number(uint64(len(b)))
	put(e, b)
}

// without returns b without the parts that must not be kept.
func (e *encoder) without(b []byte) []byte {
	if e.redact == nil {
		return b
	}
	kept := e.redact(b)
	e.altered = e.altered || !bytes.Equal(kept, b)
	return kept
}

// sized writes the output of write, after its length.
func (e *encoder) sized(write func()) {
	at := len(e.buf)
	put(e, "\x00\x00\x00\x00")
	write()
	if !e.full {
		binary.LittleEndian.PutUint32(e.buf[at:], uint32(len(e.buf)-at-4))
	}
}

// Arguments are kept whole or by their digest.
const (
	argsWhole = iota
	argsDigest
)

// arguments writes one of the two, and its length.
func (e *encoder) arguments(params []abi.Field, args []abi.Value) {
	kind, values := len(e.buf), e.values
	e.byte(argsWhole)
	e.sized(func() {
		e.brief, e.from, e.size = true, len(e.buf), 0
		for i, p := range params {
			e.value(p.Type, args[i])
		}
		e.brief = false
		if e.sum == nil {
			e.full = e.full || e.values > maxRecordedValues
			return
		}
		e.values = values
		e.sum.Write(e.buf[e.from:])
		e.buf = e.sum.Sum(binary.LittleEndian.AppendUint64(e.buf[:e.from], e.size))
		e.buf[kind], e.sum = argsDigest, nil
	})
}

// value writes v of type t. t is nil for no type.
func (e *encoder) value(t *abi.Type, v abi.Value) {
	if t == nil {
		return
	}
	if e.values++; e.values > maxRecordedValues && !e.brief { // brief values are few, or only a digest remains
		e.full = true
		return
	}
	switch t.Kind {
	case abi.KindBool:
		if v.(bool) {
			e.byte(1)
		} else {
			e.byte(0)
		}
	case abi.KindS8:
		e.signed(int64(v.(int8)))
	case abi.KindS16:
		e.signed(int64(v.(int16)))
	case abi.KindS32:
		e.signed(int64(v.(int32)))
	case abi.KindS64:
		e.signed(v.(int64))
	case abi.KindU8:
		e.number(uint64(v.(uint8)))
	case abi.KindU16:
		e.number(uint64(v.(uint16)))
	case abi.KindU32:
		e.number(uint64(v.(uint32)))
	case abi.KindU64:
		e.number(v.(uint64))
	case abi.KindF32:
		e.number(uint64(math.Float32bits(v.(float32))))
	case abi.KindF64:
		e.number(math.Float64bits(v.(float64)))
	case abi.KindChar:
		e.number(uint64(v.(rune)))
	case abi.KindFlags:
		e.number(uint64(v.(uint32)))
	case abi.KindString:
		e.text(v.(string))
	case abi.KindList:
		e.list(t, v)
	case abi.KindRecord, abi.KindTuple:
		fields := v.([]abi.Value)
		if t.Name == "header" && len(fields) == 2 && t.Fields[1].Type.Kind == abi.KindString {
			fields = e.header(fields)
		}
		for i, f := range t.Fields {
			e.value(f.Type, fields[i])
		}
	case abi.KindVariant, abi.KindEnum, abi.KindOption, abi.KindResult:
		c := v.(abi.Variant)
		e.number(uint64(c.Case))
		payload, _ := caseType(t, c.Case)
		e.value(payload, c.Value)
	case abi.KindOwn, abi.KindBorrow:
		rep := v.(abi.Rep)
		if e.handle != nil {
			rep = e.handle(t, rep)
		}
		e.number(uint64(rep))
	default:
		panic(fmt.Sprintf("a type of kind %d", t.Kind))
	}
}

func (e *encoder) list(t *abi.Type, v abi.Value) {
	if t.Elem.Kind == abi.KindU8 {
		e.bytes(v.([]byte))
		return
	}
	list := v.([]abi.Value)
	e.number(uint64(len(list)))
	for _, item := range list {
		if e.full {
			return
		}
		e.value(t.Elem, item)
	}
}

// credentials are headers whose values are never kept.
var credentials = map[string]bool{
	"authorization": true, "proxy-authorization": true, "authentication-info": true, "proxy-authentication-info": true, "cookie": true, "cookie2": true,
	"set-cookie": true, "set-cookie2": true, "x-api-key": true, "x-auth-token": true, "x-csrf-token": true, "x-amz-security-token": true,
}

// header writes the record `header` of stile:capability/types, without the credential if it has one.
func (e *encoder) header(fields []abi.Value) []abi.Value {
	name, ok := fields[0].(string)
	if !ok || e.plain || !credentials[strings.ToLower(name)] {
		return fields
	}
	e.altered = true
	return []abi.Value{name, redacted}
}

// caseType is the type of a case's payload, or nil. It returns false if there is no such case.
func caseType(t *abi.Type, index uint32) (*abi.Type, bool) {
	switch {
	case t.Kind == abi.KindOption && index == 1:
		return t.Elem, true
	case t.Kind == abi.KindOption:
		return nil, index == 0
	case t.Kind == abi.KindResult && index == 0:
		return t.Ok, true
	case t.Kind == abi.KindResult:
		return t.Err, index == 1
	case uint64(index) < uint64(len(t.Cases)):
		return t.Cases[index].Type, true
	default:
		return nil, false
	}
}

// errMalformed is the error for bytes that no encoder wrote.
var errMalformed = errors.New("malformed")

// decoder reads the output of an encoder. Its bytes may come from
// anywhere: it fails instead of panicking, and makes only values that
// its type allows. After the first error, it reads zeros.
type decoder struct {
	rest   []byte
	err    error
	values int // how many it has read
	// handle, if not nil, returns the handle for a number of the recording.
	handle func(t *abi.Type, r abi.Rep) (abi.Rep, error)
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.rest = err, nil
	}
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail(errMalformed)
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

// number reads a number of at most max.
func (d *decoder) number(max uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > max {
		d.fail(errMalformed)
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// signed reads a signed number of this many bits.
func (d *decoder) signed(bits int) int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 || n>>(bits-1) != 0 && n>>(bits-1) != -1 {
		d.fail(errMalformed)
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes() []byte { return d.take(d.number(math.MaxUint32)) }

func (d *decoder) text() string {
	s := string(d.bytes())
	if !utf8.ValidString(s) {
		d.fail(errMalformed)
		return ""
	}
	return s
}

func (d *decoder) sized() []byte {
	size := d.take(4)
	if size == nil {
		return nil
	}
	return d.take(uint64(binary.LittleEndian.Uint32(size)))
}

func (d *decoder) value(t *abi.Type) abi.Value {
	if t == nil {
		return nil
	}
	if d.values++; d.values > maxRecordedValues {
		d.fail(errManyValues)
	}
	switch t.Kind {
	case abi.KindBool:
		return d.number(1) == 1
	case abi.KindS8:
		return int8(d.signed(8))
	case abi.KindS16:
		return int16(d.signed(16))
	case abi.KindS32:
		return int32(d.signed(32))
	case abi.KindS64:
		return d.signed(64)
	case abi.KindU8:
		return uint8(d.number(math.MaxUint8))
	case abi.KindU16:
		return uint16(d.number(math.MaxUint16))
	case abi.KindU32:
		return uint32(d.number(math.MaxUint32))
	case abi.KindU64:
		return d.number(math.MaxUint64)
	case abi.KindF32:
		return math.Float32frombits(uint32(d.number(math.MaxUint32)))
	case abi.KindF64:
		return math.Float64frombits(d.number(math.MaxUint64))
	case abi.KindChar:
		r := rune(d.number(utf8.MaxRune))
		if !utf8.ValidRune(r) {
			d.fail(errMalformed)
			return rune(0)
		}
		return r
	case abi.KindFlags:
		return uint32(d.number(1<<len(t.Labels) - 1))
	case abi.KindString:
		return d.text()
	case abi.KindList:
		if t.Elem.Kind == abi.KindU8 {
			return d.bytes()
		}
		list := []abi.Value{}
		for n := d.number(uint64(len(d.rest))); n > 0 && d.err == nil; n-- {
			list = append(list, d.value(t.Elem))
		}
		return list
	case abi.KindRecord, abi.KindTuple:
		fields := make([]abi.Value, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = d.value(f.Type)
		}
		return fields
	case abi.KindVariant, abi.KindEnum, abi.KindOption, abi.KindResult:
		c := abi.Variant{Case: uint32(d.number(math.MaxUint32))}
		payload, ok := caseType(t, c.Case)
		if !ok {
			d.fail(errMalformed)
			return abi.Variant{}
		}
		c.Value = d.value(payload)
		return c
	case abi.KindOwn, abi.KindBorrow:
		rep := abi.Rep(d.number(math.MaxUint32))
		if d.handle != nil && d.err == nil {
			var err error
			if rep, err = d.handle(t, rep); err != nil {
				d.fail(err)
			}
		}
		return rep
	default:
		d.fail(errMalformed)
		return nil
	}
}

// appendText writes a value for people: with the names of WIT, quoted texts, and handles as #number. It omits most of the text
// beyond max bytes.
func appendText(b []byte, t *abi.Type, v abi.Value, max int) []byte {
	if len(b) > max || t == nil {
		return b
	}
	switch t.Kind {
	case abi.KindString:
		s := v.(string)
		return strconv.AppendQuote(b, s[:min(len(s), max)])
	case abi.KindChar:
		return strconv.AppendQuoteRune(b, v.(rune))
	case abi.KindList:
		if data, ok := v.([]byte); ok {
			return fmt.Appendf(b, "%d bytes 0x%x", len(data), data[:min(len(data), 32)])
		}
		b = append(b, '[')
		for i, item := range v.([]abi.Value) {
			if i > 0 {
				b = append(b, ", "...)
			}
			if len(b) > max {
				break
			}
			b = appendText(b, t.Elem, item, max)
		}
		return append(b, ']')
	case abi.KindRecord, abi.KindTuple:
		b = append(b, '{')
		for i, f := range t.Fields {
			if i > 0 {
				b = append(b, ", "...)
			}
			if t.Kind == abi.KindRecord {
				b = append(b, f.Name+": "...)
			}
			b = appendText(b, f.Type, v.([]abi.Value)[i], max)
		}
		return append(b, '}')
	case abi.KindVariant, abi.KindEnum, abi.KindOption, abi.KindResult:
		c := v.(abi.Variant)
		b = append(b, caseName(t, c.Case)...)
		if payload, _ := caseType(t, c.Case); payload != nil {
			b = append(appendText(append(b, '('), payload, c.Value, max), ')')
		}
		return b
	case abi.KindOwn, abi.KindBorrow:
		return fmt.Appendf(b, "#%d", v)
	default:
		return fmt.Appendf(b, "%v", v)
	}
}

func caseName(t *abi.Type, index uint32) string {
	switch t.Kind {
	case abi.KindOption:
		return [...]string{"none", "some"}[index]
	case abi.KindResult:
		return [...]string{"ok", "err"}[index]
	default:
		return t.Cases[index].Name
	}
}
