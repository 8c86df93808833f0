package abi_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

// declarations are the named types that tests refer to.
const declarations = `
	use stile:capability/types@0.1.0.{error, denial};
	resource file { name: func() -> string; }
	record entry { name: string, byte-size: u64 }
	record page { entries: list<entry>, cursor: option<string> }
	enum level { trace, debug, warn-once }
	flags access { read, write-all }
	variant content { none, text(string), bytes(list<u8>), file(file), level(level) }
	flags many { a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1 }
`

// parse reads an interface "test:test/test@0.1.0" that declares what is in body after the declarations.
func parse(t testing.TB, body string) *abi.Interface {
	t.Helper()
	resolve, err := abi.Parse(wit.Capability(), "package test:test@0.1.0; interface test {"+declarations+body+"}")
	if err != nil {
		t.Fatal(err)
	}
	return resolve.Interface("test:test/test@0.1.0")
}

// typeOf reads a type. `borrow` needs its own way in, because it stands in parameters only.
func typeOf(t testing.TB, text string) *abi.Type {
	t.Helper()
	funcs := parse(t, "probe: func(x: "+text+");").Funcs
	return funcs[len(funcs)-1].Params[0].Type
}

type (
	entry struct {
		Name string
		Size uint64 `wit:"byte-size"`
	}
	page struct {
		Entries []entry
		Cursor  *string
	}
	file      struct{ name string }
	level     uint8
	levelName string
	access    struct{ Read, WriteAll bool }
	content   struct {
		Case  int32
		Text  *string
		Bytes *[]byte
		File  *file
		Level *level
	}
	outcome struct {
		Case int
		Ok   *uint32
		Err  *string
	}
	sized struct {
		ByteSize uint64
	}
	embedding struct {
		sized
		Name   string
		Secret string `wit:"-"`
	}
	many struct {
		A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, B0, B1, B2, B3, B4, B5, B6, B7, B8, B9 bool
		C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, D0, D1                                 bool
	}
	values  = []abi.Value
	variant = abi.Variant
)

// handles is a table of resources.
type handles struct {
	held map[abi.Rep]any
	err  error
}

func (h *handles) Value(rep abi.Rep, _ *abi.Resource) (any, error) { return h.held[rep], h.err }

func (h *handles) Take(rep abi.Rep, _ *abi.Resource) (any, error) {
	v := h.held[rep]
	delete(h.held, rep)
	return v, h.err
}

func (h *handles) Add(_ *abi.Resource, v any) (abi.Rep, error) {
	rep := abi.Rep(len(h.held))
	h.held[rep] = v
	return rep, h.err
}

func TestConvert(t *testing.T) {
	doc := &file{"doc"}
	tests := []struct {
		wit   string
		goal  any
		value abi.Value
	}{
		{"bool", true, true},
		{"s8", int8(-128), int8(-128)},
		{"s16", int16(-32768), int16(-32768)},
		{"s32", int32(-1), int32(-1)},
		{"s64", int64(-1 << 63), int64(-1 << 63)},
		{"u8", uint8(255), uint8(255)},
		{"u16", uint16(65535), uint16(65535)},
		{"u32", uint32(1<<32 - 1), uint32(1<<32 - 1)},
		{"u64", uint64(1<<64 - 1), uint64(1<<64 - 1)},
		{"u8", level(7), uint8(7)},
		{"f32", float32(0.1), float32(0.1)},
		{"f64", 0.1, 0.1},
		{"char", '\U0010FFFF', '\U0010FFFF'},
		{"string", "grüezi\x00", "grüezi\x00"},
		{"string", levelName("any"), "any"},
		{"list<u8>", []byte{1, 2}, []byte{1, 2}},
		{"list<u8>", []level{1, 2}, []byte{1, 2}},
		{"list<s8>", []int8{1, 2}, values{int8(1), int8(2)}},
		{"list<list<string>>", [][]string{{"a"}, {}}, values{values{"a"}, values{}}},
		{"tuple<string, string>", [2]string{"a", "b"}, values{"a", "b"}},
		{"tuple<string, u64>", entry{"a", 1}, values{"a", uint64(1)}},
		{"entry", entry{"a", 1}, values{"a", uint64(1)}},
		{"entry", embedding{sized: sized{1}, Name: "a"}, values{"a", uint64(1)}},
		{"page", page{Entries: []entry{{"a", 1}}}, values{values{values{"a", uint64(1)}}, variant{}}},
		{"page", page{[]entry{}, new("b")}, values{values{}, variant{1, "b"}}},
		{"level", level(2), variant{Case: 2}},
		{"level", int64(2), variant{Case: 2}},
		{"level", levelName("warn-once"), variant{Case: 2}},
		{"list<level>", []level{2, 0}, values{variant{Case: 2}, variant{}}},
		{"access", access{WriteAll: true}, uint32(2)},
		{"many", many{A0: true, D1: true}, uint32(1<<31 | 1)},
		{"option<u32>", (*uint32)(nil), variant{}},
		{"option<u32>", new(uint32(3)), variant{1, uint32(3)}},
		{"option<option<u32>>", new((*uint32)(nil)), variant{1, variant{}}},
		{"option<file>", (*file)(nil), variant{}},
		{"option<file>", doc, variant{1, abi.Rep(0)}},
		{"option<option<file>>", &doc, variant{1, variant{1, abi.Rep(0)}}},
		{"option<error>", error(&abi.Error{Code: abi.CodeExpired}), variant{1, variant{Case: 2}}},
		{"content", content{Case: 0}, variant{}},
		{"content", content{Case: 1, Text: new("x")}, variant{1, "x"}},
		{"content", content{Case: 2, Bytes: &[]byte{1}}, variant{2, []byte{1}}},
		{"content", content{Case: 3, File: doc}, variant{3, abi.Rep(0)}},
		{"content", content{Case: 4, Level: new(level(1))}, variant{4, variant{Case: 1}}},
		{"result<u32, string>", outcome{Case: 0, Ok: new(uint32(1))}, variant{0, uint32(1)}},
		{"result<u32, string>", outcome{Case: 1, Err: new("x")}, variant{1, "x"}},
		{"result", struct{ Case uint8 }{1}, variant{Case: 1}},
		{"file", doc, abi.Rep(0)},
		{"file", fmt.Stringer(doc), abi.Rep(0)},
		{"error", abi.Deny(abi.Denial{Operation: "GET"}), variant{0, values{"", "GET", "", ""}}},
		{"error", &abi.Error{Code: abi.CodeTimedOut}, variant{Case: 4}},
		{"error", &abi.Error{Code: abi.CodeTooLarge, Size: 9}, variant{5, uint64(9)}},
		{"error", abi.Errorf(abi.CodeUnavailable, "down"), variant{10, "down"}},
		{"denial", abi.Denial{Binding: "a", Operation: "b", Reason: "c", Remedy: "d"}, values{"a", "b", "c", "d"}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/%T", test.wit, test.goal), func(t *testing.T) {
			wit, h := typeOf(t, test.wit), &handles{held: map[abi.Rep]any{}}
			if test.wit == "option<error>" { // an interface cannot come as any
				got := new(error)
				equal(t, nil, abi.Decode(wit, test.value, got, h))
				equal(t, test.goal, any(*got))
				return
			}
			value, err := abi.Encode(wit, test.goal, h)
			equal(t, nil, err)
			equal(t, test.value, value)
			got := reflect.New(reflect.TypeOf(test.goal))
			equal(t, nil, abi.Decode(wit, test.value, got.Interface(), h))
			equal(t, test.goal, got.Elem().Interface())
		})
	}
}

func (f *file) String() string { return f.name }

func equal(t testing.TB, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("want %#v\nhave %#v", want, got)
	}
}

func TestDecodeBorrow(t *testing.T) {
	doc := &file{"doc"}
	h := &handles{held: map[abi.Rep]any{3: doc}}
	borrow := typeOf(t, "borrow<file>")
	var got fmt.Stringer
	equal(t, nil, abi.Decode(borrow, abi.Rep(3), &got, h))
	equal(t, fmt.Stringer(doc), got)
	equal(t, 1, len(h.held))

	equal(t, nil, abi.Decode(typeOf(t, "file"), abi.Rep(3), &got, h))
	equal(t, 0, len(h.held))

	_, err := abi.Encode(borrow, doc, h)
	equal(t, "want an own: a borrow is only ever a parameter, have borrow<file>", err.Error())
}

func TestStringsBecomeUTF8(t *testing.T) {
	for text, want := range map[string]string{"a\xff\xfeb": "a\uFFFDb", "\xed\xa0\x80": "\uFFFD", "ok": "ok"} {
		got, err := abi.Encode(typeOf(t, "string"), text, nil)
		equal(t, nil, err)
		equal(t, abi.Value(want), got)
	}
}

func TestDecodeKeepsWhatIsSkipped(t *testing.T) {
	e := embedding{Secret: "kept"}
	equal(t, nil, abi.Decode(typeOf(t, "entry"), values{"a", uint64(1)}, &e, nil))
	equal(t, embedding{sized{1}, "a", "kept"}, e)
}

func TestDecodeClearsOtherCases(t *testing.T) {
	c := content{Case: 1, Text: new("old")}
	equal(t, nil, abi.Decode(typeOf(t, "content"), variant{}, &c, nil))
	equal(t, content{}, c)
}

func TestGoTypeMisfits(t *testing.T) {
	type cursorOnly struct{ Cursor *string }
	tests := []struct {
		wit  string
		goal any
		want string
	}{
		{"u32", 1, "want uint32, have int"},
		{"u32", nil, "want uint32, have nil"},
		{"char", "a", "want rune, have string"},
		{"list<u8>", "ab", "want []byte, have string"},
		{"list<entry>", entry{}, "want []Entry, have abi_test.entry"},
		{"list<entry>", []string{}, "[]: want struct{ Name string; ByteSize uint64 }, have string"},
		{"page", page{}.Cursor, "want struct{ Entries []Entry; Cursor *string }, have *string"},
		{"page", cursorOnly{}, "entries: want a field Entries, have none in abi_test.cursorOnly"},
		{"page", struct {
			Entries []struct{ Name, ByteSize string }
			Cursor  *string
		}{}, "entries[].byte-size: want uint64, have string"},
		{"entry", struct {
			Name  string
			Size  uint64 `wit:"byte-size"`
			Extra int
		}{}, "want no field Extra in struct { Name string; Size uint64 \"wit:\\\"byte-size\\\"\"; Extra int }, or the tag `wit:\"-\"` on it"},
		{"entry", struct {
			*sized
			Name string
		}{}, "byte-size: want a field ByteSize, have none in struct { *abi_test.sized; Name string }"},
		{"level", true, "want an integer type (case index) or a string type (case name), have bool"},
		{"level", uintptr(1), "want an integer type (case index) or a string type (case name), have uintptr"},
		{"access", struct {
			Read     bool
			WriteAll int
		}{}, "write-all: want bool, have int"},
		{"access", struct{ Read bool }{}, "write-all: want a field WriteAll, have none in struct { Read bool }"},
		{"option<string>", "", "want *string, have string"},
		{"option<file>", file{}, "want a Go type that can be nil, have abi_test.file"},
		{"tuple<string, string>", [3]string{}, "want struct{ F0 string; F1 string } or an array, have [3]string"},
		{"tuple<string, u8>", [2]string{}, "1: want uint8, have string"},
		{"tuple<string, u8>", struct{ A string }{}, "want struct{ F0 string; F1 uint8 } or an array, have struct { A string }"},
		{"content", struct{ Text *string }{}, "want struct{ Case int; Text *string; Bytes *[]byte; File File; Level *Level }, have struct { Text *string }"},
		{"result<u32>", struct {
			Case int
			Ok   uint32
		}{}, "ok: want *uint32, have uint32"},
		{"error", "text", "want error or *abi.Error, have string"},
		{"error", error(nil), "want error or *abi.Error, have nil"},
		{"option<string>", nil, "want *string, have nil"},
	}
	for _, test := range tests {
		t.Run(test.wit, func(t *testing.T) {
			_, err := abi.Encode(typeOf(t, test.wit), test.goal, nil)
			checkMisfit(t, test.want, err)
		})
	}
}

func checkMisfit(t *testing.T, want string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*abi.ValueError](err); !ok {
		t.Fatalf("want a *ValueError, have %v", err)
	}
	equal(t, want, err.Error())
}

func TestEncodeMisfits(t *testing.T) {
	full := &handles{held: map[abi.Rep]any{}, err: errors.New("the table is full")}
	tests := []struct {
		wit  string
		goal any
		h    abi.Handles
		want string
	}{
		{"char", rune(0xD800), nil, "want a Unicode scalar value, have 0xd800"},
		{"char", rune(-1), nil, "want a Unicode scalar value, have -0x1"},
		{"char", rune(0x110000), nil, "want a Unicode scalar value, have 0x110000"},
		{"level", level(3), nil, "want a case from 0 to 2, have 3"},
		{"level", int8(-1), nil, "want a case from 0 to 2, have -1"},
		{"level", uint64(1 << 63), nil, "want a case from 0 to 2, have 9223372036854775808"},
		{"list<level>", []levelName{"trace", "secret"}, nil, "[1]: want a case of level, have another text"},
		{"content", content{Case: 5}, nil, "want a case from 0 to 4, have 5"},
		{"content", content{Case: -1}, nil, "want a case from 0 to 4, have -1"},
		{"content", content{Case: 1}, nil, "text: want a value: it is the case, have nil"},
		{"content", content{Text: new("x")}, nil, "text: want nil: the case is none, have a value"},
		{"content", content{Case: 3, File: &file{}}, nil, "file: want Handles for file, have nil"},
		{"list<option<file>>", []*file{nil, {}}, full, "[1]: want file: the table is full"},
		{"file", (*file)(nil), full, "want file, have nil"},
		{"tuple<file>", [1]fmt.Stringer{}, full, "0: want file, have nil"},
		{"tuple<file>", [1]fmt.Stringer{(*file)(nil)}, full, "0: want file, have nil"},
		{"tuple<error>", [1]error{}, nil, "0: want an error for the guest, have a nil error"},
		{"error", &abi.Error{Code: 12}, nil, "want a case from 0 to 11, have 12"},
		{"error", context.Canceled, nil, "want an error for the guest, have error: context canceled"},
	}
	for _, test := range tests {
		t.Run(test.wit, func(t *testing.T) {
			_, err := abi.Encode(typeOf(t, test.wit), test.goal, test.h)
			checkMisfit(t, test.want, err)
		})
	}
}

func TestDecodeMisfits(t *testing.T) {
	h := &handles{held: map[abi.Rep]any{0: "no file"}}
	stale := &handles{err: errors.New("there is no such handle")}
	tests := []struct {
		wit   string
		value abi.Value
		dst   any
		h     abi.Handles
		want  string
	}{
		{"bool", nil, new(bool), nil, "want bool, have <nil>"},
		{"u32", int32(1), new(uint32), nil, "want uint32, have int32"},
		{"string", []byte("a"), new(string), nil, "want string, have []uint8"},
		{"char", "a", new(rune), nil, "want int32, have string"},
		{"char", rune(0xDFFF), new(rune), nil, "want a Unicode scalar value, have 0xdfff"},
		{"list<u8>", values{uint8(1)}, new([]byte), nil, "want []uint8, have []interface {}"},
		{"list<string>", values{"a", 1}, new([]string), nil, "[1]: want string, have int"},
		{"page", values{values{values{"a", "b"}}, variant{}}, new(page), nil, "entries[0].byte-size: want uint64, have string"},
		{"page", values{values{}}, new(page), nil, "want 2 fields, have 1"},
		{"page", "page", new(page), nil, "want []interface {}, have string"},
		{"tuple<u8, u8>", values{uint8(1)}, new([2]uint8), nil, "want 2 fields, have 1"},
		{"level", variant{Case: 3}, new(level), nil, "want a case from 0 to 2, have 3"},
		{"level", variant{Case: 3}, new(levelName), nil, "want a case from 0 to 2, have 3"},
		{"level", uint32(1), new(level), nil, "want abi.Variant, have uint32"},
		{"access", uint32(4), new(access), nil, "want 2 flags, have 0x4"},
		{"access", variant{}, new(access), nil, "want uint32, have abi.Variant"},
		{"option<u8>", variant{Case: 2}, new(*uint8), nil, "want a case from 0 to 1, have 2"},
		{"option<u8>", variant{1, nil}, new(*uint8), nil, "want uint8, have <nil>"},
		{"option<u8>", &variant{}, new(*uint8), nil, "want abi.Variant, have *abi.Variant"},
		{"content", variant{Case: 5}, new(content), nil, "want a case from 0 to 4, have 5"},
		{"content", variant{1, 2}, new(content), nil, "text: want string, have int"},
		{"result<u32, string>", variant{2, "x"}, new(outcome), nil, "want a case from 0 to 1, have 2"},
		{"error", variant{Case: 12}, new(error), nil, "want a case from 0 to 11, have 12"},
		{"error", variant{0, "x"}, new(error), nil, "denied: want []interface {}, have string"},
		{"error", variant{5, "x"}, new(*abi.Error), nil, "too-large: want uint64, have string"},
		{"file", 0, new(*file), h, "want abi.Rep, have int"},
		{"file", abi.Rep(0), new(*file), h, "want *abi_test.file, have string"},
		{"file", abi.Rep(0), new(*file), nil, "want Handles for file, have nil"},
		{"borrow<file>", abi.Rep(7), new(*file), h, "want *abi_test.file, have <nil>"},
		{"borrow<file>", abi.Rep(7), new(*file), stale, "want borrow<file>: there is no such handle"},
		{"u8", uint8(1), nil, nil, "want a pointer to decode into, have <nil>"},
		{"u8", uint8(1), uint8(0), nil, "want a pointer to decode into, have uint8"},
		{"u8", uint8(1), (*uint8)(nil), nil, "want a pointer to decode into, have *uint8"},
		{"u8", uint8(1), new(any), nil, "want uint8, have interface {}"},
	}
	for _, test := range tests {
		t.Run(test.wit, func(t *testing.T) {
			checkMisfit(t, test.want, abi.Decode(typeOf(t, test.wit), test.value, test.dst, test.h))
		})
	}
	equal(t, true, errors.Is(abi.Decode(typeOf(t, "file"), abi.Rep(7), new(*file), stale), stale.err))
}

// An `error` that drifted from the Go type is noticed when types are matched, not when an error happens.
func TestErrorOfAnotherContract(t *testing.T) {
	tests := []struct {
		change func(e *abi.Type)
		want   string
	}{
		{func(e *abi.Type) { e.Cases = e.Cases[:3] }, "want 12 cases, have 3"},
		{func(e *abi.Type) { e.Cases[4].Name = "late" }, "want the case timed-out, have late"},
		{func(e *abi.Type) { e.Cases[5].Type = &abi.Type{Kind: abi.KindU32} }, "too-large: want uint32, have uint64"},
		{func(e *abi.Type) { e.Cases[0].Type = &abi.Type{Kind: abi.KindString} }, "denied: want string, have abi.Denial"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			i := parse(t, "resource r { f: func() -> result<_, error>; }")
			r := resource(t, i, "r")
			e := i.Funcs[len(i.Funcs)-1].Result.Err
			test.change(e)
			_, err := abi.Encode(e, abi.ErrExpired, nil)
			checkMisfit(t, test.want, err)
			_, err = abi.Implement(r, reflect.TypeFor[interface{ F(context.Context) error }]())
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Fatalf("have %v", err)
			}
		})
	}
}

func TestTooManyFlags(t *testing.T) {
	flags := &abi.Type{Kind: abi.KindFlags, Labels: strings.Split(strings.Repeat("a ", 33), " ")[:33]}
	_, err := abi.Encode(flags, struct{}{}, nil)
	checkMisfit(t, "want at most 32 labels, have 33", err)
}

// shape is a WIT type with a Go type for it and its values.
type shape struct {
	wit    *abi.Type
	goType reflect.Type
	value  *rapid.Generator[abi.Value]
}

func boxed[T any](g *rapid.Generator[T]) *rapid.Generator[abi.Value] {
	return rapid.Map(g, func(x T) abi.Value { return x })
}

func leaf[T any](k abi.Kind, g *rapid.Generator[T]) shape {
	return shape{&abi.Type{Kind: k}, reflect.TypeFor[T](), boxed(g)}
}

var leaves = []shape{
	leaf(abi.KindBool, rapid.Bool()),
	leaf(abi.KindS8, rapid.Int8()), leaf(abi.KindS16, rapid.Int16()), leaf(abi.KindS32, rapid.Int32()), leaf(abi.KindS64, rapid.Int64()),
	leaf(abi.KindU8, rapid.Uint8()), leaf(abi.KindU16, rapid.Uint16()), leaf(abi.KindU32, rapid.Uint32()), leaf(abi.KindU64, rapid.Uint64()),
	leaf(abi.KindF32, rapid.Float32()), leaf(abi.KindF64, rapid.Float64()),
	leaf(abi.KindChar, rapid.Rune()), leaf(abi.KindString, rapid.String()),
}

// label is the i-th name, and its Go name.
func label(i int) (witName, goName string) {
	return fmt.Sprintf("the-n%d", i), fmt.Sprintf("TheN%d", i)
}

// anyShape draws a random type, at most depth deep.
func anyShape(t *rapid.T, depth int) shape {
	form := 0
	if depth > 0 {
		form = rapid.IntRange(0, 7).Draw(t, "form")
	}
	inner := func() shape { return anyShape(t, depth-1) }
	switch form {
	case 1:
		elem := inner()
		list := shape{&abi.Type{Kind: abi.KindList, Elem: elem.wit}, reflect.SliceOf(elem.goType), boxed(rapid.SliceOfN(elem.value, 0, 4))}
		if elem.wit.Kind == abi.KindU8 {
			list.value = boxed(rapid.SliceOfN(rapid.Byte(), 0, 4))
		}
		return list
	case 2:
		elem := inner()
		return shape{
			&abi.Type{Kind: abi.KindOption, Elem: elem.wit}, reflect.PointerTo(elem.goType),
			rapid.Custom(func(t *rapid.T) abi.Value {
				if rapid.Bool().Draw(t, "none") {
					return variant{}
				}
				return variant{1, elem.value.Draw(t, "some")}
			}),
		}
	case 3:
		n := rapid.IntRange(1, 300).Draw(t, "cases")
		wit := &abi.Type{Kind: abi.KindEnum}
		for i := range n {
			name, _ := label(i)
			wit.Cases = append(wit.Cases, abi.Case{Name: name})
		}
		goType := rapid.SampledFrom([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint]()}).Draw(t, "enum")
		return shape{wit, goType, rapid.Map(rapid.IntRange(0, n-1), func(i int) abi.Value { return variant{Case: uint32(i)} })}
	case 4:
		n := rapid.IntRange(1, 32).Draw(t, "labels")
		wit := &abi.Type{Kind: abi.KindFlags}
		var fields []reflect.StructField
		for i := range n {
			name, goName := label(i)
			wit.Labels = append(wit.Labels, name)
			fields = append(fields, reflect.StructField{Name: goName, Type: reflect.TypeFor[bool]()})
		}
		return shape{wit, reflect.StructOf(fields), rapid.Map(rapid.Uint32(), func(bits uint32) abi.Value { return bits >> (32 - n) })}
	case 5, 6:
		wit := &abi.Type{Kind: rapid.SampledFrom([]abi.Kind{abi.KindRecord, abi.KindTuple}).Draw(t, "product")}
		var fields []reflect.StructField
		var parts []shape
		for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
			part := inner()
			name, goName := label(i)
			parts = append(parts, part)
			wit.Fields = append(wit.Fields, abi.Field{Name: name, Type: part.wit})
			fields = append(fields, reflect.StructField{Name: goName, Type: part.goType})
		}
		return shape{wit, reflect.StructOf(fields), rapid.Custom(func(t *rapid.T) abi.Value {
			fields := make(values, len(parts))
			for i, part := range parts {
				fields[i] = part.value.Draw(t, "field")
			}
			return fields
		})}
	case 7:
		wit := &abi.Type{Kind: abi.KindVariant}
		fields := []reflect.StructField{{Name: "Case", Type: reflect.TypeFor[uint8]()}}
		payloads := make([]*shape, rapid.IntRange(1, 4).Draw(t, "cases"))
		for i := range payloads {
			name, goName := label(i)
			c := abi.Case{Name: name}
			if rapid.Bool().Draw(t, "carries") {
				payload := inner()
				payloads[i], c.Type = &payload, payload.wit
				fields = append(fields, reflect.StructField{Name: goName, Type: reflect.PointerTo(payload.goType)})
			}
			wit.Cases = append(wit.Cases, c)
		}
		return shape{wit, reflect.StructOf(fields), rapid.Custom(func(t *rapid.T) abi.Value {
			i := rapid.IntRange(0, len(payloads)-1).Draw(t, "case")
			if payloads[i] == nil {
				return variant{Case: uint32(i)}
			}
			return variant{uint32(i), payloads[i].value.Draw(t, "payload")}
		})}
	default:
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyShape(t, 3)
		value := s.value.Draw(t, "value")
		dst := reflect.New(s.goType)
		if err := abi.Decode(s.wit, value, dst.Interface(), nil); err != nil {
			t.Fatal(err)
		}
		got, err := abi.Encode(s.wit, dst.Elem().Interface(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(value, got) {
			t.Fatalf("want %#v\nhave %#v", value, got)
		}
	})
}

// A value of another type, or a Go value of another type, gives an error and no panic.
func TestMixedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyShape(t, 3), anyShape(t, 3)
		var misfit *abi.ValueError
		value := b.value.Draw(t, "value")
		if err := abi.Decode(a.wit, value, reflect.New(a.goType).Interface(), nil); err != nil && !errors.As(err, &misfit) {
			t.Fatal(err)
		}
		if _, err := abi.Encode(a.wit, reflect.New(b.goType).Elem().Interface(), nil); err != nil && !errors.As(err, &misfit) {
			t.Fatal(err)
		}
	})
}
