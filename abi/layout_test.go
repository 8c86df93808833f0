package abi_test

import (
	"slices"
	"testing"

	"github.com/stilehost/stile/abi"
)

// The numbers are worked out by hand from CanonicalABI.md.
func TestLayout(t *testing.T) {
	const i32, i64, f32, f64 = abi.CoreI32, abi.CoreI64, abi.CoreF32, abi.CoreF64
	for _, test := range []struct {
		wit                   string
		size, align           uint32
		flat                  []abi.CoreType
		offsets               []uint32
		discriminant, payload uint32
	}{
		{wit: "bool", size: 1, align: 1, flat: []abi.CoreType{i32}},
		{wit: "s16", size: 2, align: 2, flat: []abi.CoreType{i32}},
		{wit: "u64", size: 8, align: 8, flat: []abi.CoreType{i64}},
		{wit: "f32", size: 4, align: 4, flat: []abi.CoreType{f32}},
		{wit: "f64", size: 8, align: 8, flat: []abi.CoreType{f64}},
		{wit: "char", size: 4, align: 4, flat: []abi.CoreType{i32}},
		{wit: "string", size: 8, align: 4, flat: []abi.CoreType{i32, i32}},
		{wit: "list<u64>", size: 8, align: 4, flat: []abi.CoreType{i32, i32}},
		{wit: "res", size: 4, align: 4, flat: []abi.CoreType{i32}},
		{wit: "borrow<res>", size: 4, align: 4, flat: []abi.CoreType{i32}},
		{wit: "tuple<u8, u64, u8>", size: 24, align: 8, flat: []abi.CoreType{i32, i64, i32}, offsets: []uint32{0, 8, 16}},
		{wit: "rec", size: 12, align: 4, flat: []abi.CoreType{i32, i32, i32, i32}, offsets: []uint32{0, 2, 4}},
		{wit: "option<u8>", size: 2, align: 1, flat: []abi.CoreType{i32, i32}, discriminant: 1, payload: 1},
		{wit: "option<u64>", size: 16, align: 8, flat: []abi.CoreType{i32, i64}, discriminant: 1, payload: 8},
		{wit: "result", size: 1, align: 1, flat: []abi.CoreType{i32}, discriminant: 1, payload: 1},
		{wit: "result<u8, f32>", size: 8, align: 4, flat: []abi.CoreType{i32, i32}, discriminant: 1, payload: 4},
		{wit: "result<f32, f64>", size: 16, align: 8, flat: []abi.CoreType{i32, i64}, discriminant: 1, payload: 8},
		{wit: "result<_, string>", size: 12, align: 4, flat: []abi.CoreType{i32, i32, i32}, discriminant: 1, payload: 4},
		{wit: "result<f32, tuple<f32, u64>>", size: 24, align: 8, flat: []abi.CoreType{i32, f32, i64}, discriminant: 1, payload: 8},
		{wit: "number", size: 1, align: 1, flat: []abi.CoreType{i32}, discriminant: 1, payload: 1},
		{wit: "choice", size: 16, align: 8, flat: []abi.CoreType{i32, i64, i32}, discriminant: 1, payload: 8},
		{wit: "marks", size: 2, align: 2, flat: []abi.CoreType{i32}},
	} {
		t.Run(test.wit, func(t *testing.T) {
			r, err := abi.Parse("package a:b; interface i { f: func(a: " + test.wit + "); " + `
				resource res;
				record rec { a: bool, b: u16, c: list<rec2> }
				record rec2 { a: u8 }
				enum number { one, two, three }
				variant choice { a, b(string), c(f64), d(marks) }
				flags marks { a, b, c, d, e, f, g, h, i }
			}`)
			if err != nil {
				t.Fatal(err)
			}
			typ := r.Interfaces()[0].Funcs[0].Params[0].Type
			if typ.Size() != test.size || typ.Align() != test.align {
				t.Errorf("size %d, alignment %d, want %d and %d", typ.Size(), typ.Align(), test.size, test.align)
			}
			if !slices.Equal(typ.Flat(), test.flat) {
				t.Errorf("flat %v, want %v", typ.Flat(), test.flat)
			}
			if !slices.Equal(typ.Offsets(), test.offsets) {
				t.Errorf("offsets %v, want %v", typ.Offsets(), test.offsets)
			}
			if typ.DiscriminantSize() != test.discriminant {
				t.Errorf("discriminant of %d bytes, want %d", typ.DiscriminantSize(), test.discriminant)
			}
			if test.discriminant > 0 && typ.PayloadOffset() != test.payload {
				t.Errorf("payload at %d, want %d", typ.PayloadOffset(), test.payload)
			}
		})
	}
}

func TestDiscriminantSize(t *testing.T) {
	for cases, want := range map[int]uint32{1: 1, 256: 1, 257: 2, 65_536: 2, 65_537: 4} {
		typ := &abi.Type{Kind: abi.KindEnum, Cases: make([]abi.Case, cases)}
		if got := typ.DiscriminantSize(); got != want || typ.Size() != want {
			t.Errorf("%d cases: discriminant of %d bytes in %d, want %d", cases, got, typ.Size(), want)
		}
	}
}

func TestCoreTypeString(t *testing.T) {
	for core, want := range map[abi.CoreType]string{
		abi.CoreI32: "i32", abi.CoreI64: "i64", abi.CoreF32: "f32", abi.CoreF64: "f64", 0: "invalid",
	} {
		if core.String() != want {
			t.Errorf("%v, want %s", core, want)
		}
	}
}

func TestCore(t *testing.T) {
	const i32, i64 = abi.CoreI32, abi.CoreI64
	repeat := func(c abi.CoreType, n int) []abi.CoreType { return slices.Repeat([]abi.CoreType{c}, n) }
	text, number := &abi.Type{Kind: abi.KindString}, &abi.Type{Kind: abi.KindU64}
	for _, test := range []struct {
		name          string
		params        int
		result        *abi.Type
		lower, lift   []abi.CoreType
		lowers, lifts []abi.CoreType
	}{
		{name: "nothing"},
		{name: "one result", params: 1, result: number, lower: repeat(i64, 1), lowers: repeat(i64, 1), lift: repeat(i64, 1), lifts: repeat(i64, 1)},
		{name: "spilled result", params: 1, result: text, lower: []abi.CoreType{i64, i32}, lift: repeat(i64, 1), lifts: repeat(i32, 1)},
		{name: "16 parameters", params: 16, lower: repeat(i64, 16), lift: repeat(i64, 16)},
		{name: "16 and a pointer", params: 16, result: text, lower: append(repeat(i64, 16), i32), lift: repeat(i64, 16), lifts: repeat(i32, 1)},
		{name: "17 parameters", params: 17, lower: repeat(i32, 1), lift: repeat(i32, 1)},
		{name: "17 and a pointer", params: 17, result: text, lower: repeat(i32, 2), lift: repeat(i32, 1), lifts: repeat(i32, 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &abi.Func{Params: slices.Repeat([]abi.Field{{Type: number}}, test.params), Result: test.result}
			if params, results := f.Core(true); !slices.Equal(params, test.lower) || !slices.Equal(results, test.lowers) {
				t.Errorf("lower: %v -> %v, want %v -> %v", params, results, test.lower, test.lowers)
			}
			if params, results := f.Core(false); !slices.Equal(params, test.lift) || !slices.Equal(results, test.lifts) {
				t.Errorf("lift: %v -> %v, want %v -> %v", params, results, test.lift, test.lifts)
			}
		})
	}
}
