package abi

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Handles turns resources into Go values and back, for the conversions of one call.
type Handles interface {
	// Value returns the value that a borrow<r> parameter lends for the duration of the call.
	Value(rep Rep, r *Resource) (any, error)
	// Take returns the value that an own<r> parameter hands over. From then on it belongs to the Go side.
	Take(rep Rep, r *Resource) (any, error)
	// Add hands v over to the guest as an own<r>.
	Add(r *Resource, v any) (Rep, error)
}

// ValueError reports a value, or a Go type, that does not fit the WIT type.
type ValueError struct {
	// Path leads to the part that does not fit: "request.headers[3].name". It is empty for the value as a whole.
	Path string
	// Want describes what fits there. Got describes what was found: a Go type, or a number that is out of range. Neither contains a
	// value's contents.
	Want, Got string
	// Err is the error of [Handles], or an error that has no place in the WIT type. It is nil if the value simply does not fit.
	Err error
}

// Error implements error.
func (e *ValueError) Error() string {
	text := "want " + e.Want
	if e.Got != "" {
		text += ", have " + e.Got
	}
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }

// in puts a step ("name" or "[3]") before the path of e.
func (e *ValueError) in(step string) *ValueError {
	if e.Path != "" && e.Path[0] != '[' {
		step += "."
	}
	e.Path = step + e.Path
	return e
}

// Encode converts a Go value to a [Value] of type t, by the mapping that [Implement] describes. h may be nil if t holds no resource.
// Every failure is a *[ValueError]. A []byte is not copied.
func Encode(t *Type, v any, h Handles) (Value, error) {
	goValue := reflect.ValueOf(v)
	if err, ok := v.(error); ok && isError(t) {
		goValue = reflect.ValueOf(&err).Elem()
	}
	if !goValue.IsValid() {
		return nil, &ValueError{Want: goShape(t), Got: "nil"}
	}
	c, misfit := newCompiler().codec(t, goValue.Type())
	if misfit != nil {
		return nil, misfit
	}
	value, misfit := c.encode(goValue, h)
	if misfit != nil {
		return nil, misfit
	}
	return value, nil
}

// Decode converts a [Value] of type t to Go and stores it where dst points, by the mapping that [Implement] describes. h may be nil
// if t holds no resource. Every failure is a *[ValueError] and may leave *dst partly written. A []byte is not copied.
func Decode(t *Type, v Value, dst any, h Handles) error {
	pointer := reflect.ValueOf(dst)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() {
		return &ValueError{Want: "a pointer to decode into", Got: fmt.Sprintf("%T", dst)}
	}
	c, misfit := newCompiler().codec(t, pointer.Type().Elem())
	if misfit != nil {
		return misfit
	}
	if misfit := c.decode(v, pointer.Elem(), h); misfit != nil {
		return misfit
	}
	return nil
}

// codec converts between one WIT type and one Go type.
type codec struct {
	// encode reads a Go value of the codec's Go type.
	encode func(v reflect.Value, h Handles) (Value, *ValueError)
	// decode stores into a settable Go value of the codec's Go type.
	decode func(v Value, dst reflect.Value, h Handles) *ValueError
}

type pair struct {
	wit    *Type
	goType reflect.Type
}

// compiler makes each codec once, so a type that is used in many places costs as much as one that is used once.
type compiler struct{ done map[pair]*codec }

func newCompiler() *compiler { return &compiler{done: map[pair]*codec{}} }

func (c *compiler) codec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	key := pair{t, goType}
	if known := c.done[key]; known != nil {
		return known, nil
	}
	made, misfit := c.compile(t, goType)
	if misfit == nil {
		c.done[key] = made
	}
	return made, misfit
}

func (c *compiler) compile(t *Type, goType reflect.Type) (*codec, *ValueError) {
	goKind := goType.Kind()
	isStruct := goKind == reflect.Struct
	switch {
	case scalars[t.Kind].codec != nil && scalars[t.Kind].kind == goKind:
		return scalars[t.Kind].codec, nil
	case isError(t):
		return c.errorCodec(t, goType)
	case t.Kind == KindList && goKind == reflect.Slice:
		return c.listCodec(t, goType)
	case t.Kind == KindRecord && isStruct:
		return c.recordCodec(t, goType)
	case t.Kind == KindTuple && (isStruct || goKind == reflect.Array):
		return c.tupleCodec(t, goType)
	case t.Kind == KindFlags && isStruct:
		return c.flagsCodec(t, goType)
	case t.Kind == KindVariant && isStruct:
		return c.variantCodec(t, t.Cases, goType)
	case t.Kind == KindResult && isStruct:
		return c.variantCodec(t, resultCases(t), goType)
	case t.Kind == KindEnum:
		return enumCodec(t, goType)
	case t.Kind == KindOption:
		return c.optionCodec(t, goType)
	case t.IsPollable() && !reflect.TypeFor[*Pollable]().AssignableTo(goType):
		return nil, misfitType(t, goType)
	case t.Kind == KindOwn || t.Kind == KindBorrow:
		return handleCodec(t, goType), nil
	default:
		return nil, misfitType(t, goType)
	}
}

// resultCases returns the cases of a result, as a variant.
func resultCases(t *Type) []Case { return []Case{{Name: "ok", Type: t.Ok}, {Name: "err", Type: t.Err}} }

// misfitType reports that goType cannot represent t.
func misfitType(t *Type, goType reflect.Type) *ValueError {
	return &ValueError{Want: goShape(t), Got: goType.String()}
}

// misfitValue reports that v does not have the Go type that [Value] requires.
func misfitValue[T any](v Value) *ValueError {
	return &ValueError{Want: reflect.TypeFor[T]().String(), Got: fmt.Sprintf("%T", v)}
}

// scalars are the types that fit any Go type of one kind.
var scalars = map[Kind]struct {
	kind  reflect.Kind
	codec *codec
}{
	KindBool:   {reflect.Bool, scalar(reflect.Value.Bool, reflect.Value.SetBool)},
	KindS8:     {reflect.Int8, signed[int8]()},
	KindS16:    {reflect.Int16, signed[int16]()},
	KindS32:    {reflect.Int32, signed[int32]()},
	KindS64:    {reflect.Int64, signed[int64]()},
	KindU8:     {reflect.Uint8, unsigned[uint8]()},
	KindU16:    {reflect.Uint16, unsigned[uint16]()},
	KindU32:    {reflect.Uint32, unsigned[uint32]()},
	KindU64:    {reflect.Uint64, unsigned[uint64]()},
	KindF32:    {reflect.Float32, float[float32]()},
	KindF64:    {reflect.Float64, float[float64]()},
	KindChar:   {reflect.Int32, charCodec()},
	KindString: {reflect.String, scalar(func(v reflect.Value) string { return validUTF8(v.String()) }, reflect.Value.SetString)},
}

func scalar[T any](get func(reflect.Value) T, set func(reflect.Value, T)) *codec {
	return &codec{
		encode: func(v reflect.Value, _ Handles) (Value, *ValueError) { return get(v), nil },
		decode: func(v Value, dst reflect.Value, _ Handles) *ValueError {
			x, ok := v.(T)
			if !ok {
				return misfitValue[T](v)
			}
			set(dst, x)
			return nil
		},
	}
}

func signed[T int8 | int16 | int32 | int64]() *codec {
	return scalar(func(v reflect.Value) T { return T(v.Int()) }, func(dst reflect.Value, x T) { dst.SetInt(int64(x)) })
}

func unsigned[T uint8 | uint16 | uint32 | uint64]() *codec {
	return scalar(func(v reflect.Value) T { return T(v.Uint()) }, func(dst reflect.Value, x T) { dst.SetUint(uint64(x)) })
}

func float[T float32 | float64]() *codec {
	return scalar(func(v reflect.Value) T { return T(v.Float()) }, func(dst reflect.Value, x T) { dst.SetFloat(float64(x)) })
}

func validUTF8(s string) string {
	if utf8.ValidString(s) { // several times as fast
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// charCodec refuses anything that is not a Unicode scalar value, in particular surrogates.
func charCodec() *codec {
	check := func(r int64) *ValueError {
		if r < 0 || r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return &ValueError{Want: "a Unicode scalar value", Got: fmt.Sprintf("%#x", r)}
		}
		return nil
	}
	return &codec{
		encode: func(v reflect.Value, _ Handles) (Value, *ValueError) {
			if misfit := check(v.Int()); misfit != nil {
				return nil, misfit
			}
			return rune(v.Int()), nil
		},
		decode: func(v Value, dst reflect.Value, _ Handles) *ValueError {
			r, ok := v.(rune)
			if !ok {
				return misfitValue[rune](v)
			}
			if misfit := check(int64(r)); misfit != nil {
				return misfit
			}
			dst.SetInt(int64(r))
			return nil
		},
	}
}

func (c *compiler) listCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	elem, misfit := c.codec(t.Elem, goType.Elem())
	if misfit != nil {
		return nil, misfit.in("[]")
	}
	if t.Elem.Kind == KindU8 {
		return scalar(reflect.Value.Bytes, reflect.Value.SetBytes), nil
	}
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			values := make([]Value, v.Len())
			for i := range values {
				var misfit *ValueError
				if values[i], misfit = elem.encode(v.Index(i), h); misfit != nil {
					return nil, misfit.in(index(i))
				}
			}
			return values, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			values, ok := v.([]Value)
			if !ok {
				return misfitValue[[]Value](v)
			}
			list := reflect.MakeSlice(goType, len(values), len(values))
			for i, value := range values {
				if misfit := elem.decode(value, list.Index(i), h); misfit != nil {
					return misfit.in(index(i))
				}
			}
			dst.Set(list)
			return nil
		},
	}, nil
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func enumCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	if goType.Kind() == reflect.String {
		return enumTextCodec(t), nil
	}
	if !holdsCases(goType, len(t.Cases)) {
		return nil, misfitType(t, goType)
	}
	return &codec{
		encode: func(v reflect.Value, _ Handles) (Value, *ValueError) {
			i, misfit := caseIndex(v, len(t.Cases))
			return Variant{Case: i}, misfit
		},
		decode: func(v Value, dst reflect.Value, _ Handles) *ValueError {
			variant, misfit := asVariant(v, len(t.Cases))
			if misfit == nil {
				setCase(dst, variant.Case)
			}
			return misfit
		},
	}, nil
}

func enumTextCodec(t *Type) *codec {
	cases := make(map[string]uint32, len(t.Cases))
	for i, c := range t.Cases {
		cases[c.Name] = uint32(i)
	}
	return &codec{
		encode: func(v reflect.Value, _ Handles) (Value, *ValueError) {
			i, ok := cases[v.String()]
			if !ok {
				return nil, &ValueError{Want: "a case of " + t.String(), Got: "another text"}
			}
			return Variant{Case: i}, nil
		},
		decode: func(v Value, dst reflect.Value, _ Handles) *ValueError {
			variant, misfit := asVariant(v, len(t.Cases))
			if misfit == nil {
				dst.SetString(t.Cases[variant.Case].Name)
			}
			return misfit
		},
	}
}

// asVariant checks that v is a variant with an index below n.
func asVariant(v Value, n int) (Variant, *ValueError) {
	variant, ok := v.(Variant)
	if !ok {
		return variant, misfitValue[Variant](v)
	}
	if uint64(variant.Case) >= uint64(n) {
		return variant, misfitCase(n, strconv.FormatUint(uint64(variant.Case), 10))
	}
	return variant, nil
}

func misfitCase(n int, got string) *ValueError {
	return &ValueError{Want: fmt.Sprintf("a case from 0 to %d", n-1), Got: got}
}

// holdsCases reports whether goType is an integer type that can hold the indexes of n cases.
func holdsCases(goType reflect.Type, n int) bool {
	switch goType.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return !goType.OverflowInt(int64(n - 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return !goType.OverflowUint(uint64(n - 1))
	default:
		return false
	}
}

// caseIndex reads an integer that holdsCases accepted.
func caseIndex(v reflect.Value, n int) (uint32, *ValueError) {
	if v.CanInt() {
		if i := v.Int(); i < 0 || i >= int64(n) {
			return 0, misfitCase(n, strconv.FormatInt(i, 10))
		}
		return uint32(v.Int()), nil
	}
	if i := v.Uint(); i >= uint64(n) {
		return 0, misfitCase(n, strconv.FormatUint(i, 10))
	}
	return uint32(v.Uint()), nil
}

func setCase(dst reflect.Value, i uint32) {
	if dst.CanInt() {
		dst.SetInt(int64(i))
	} else {
		dst.SetUint(uint64(i))
	}
}

func (c *compiler) optionCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	some, misfit := c.nilable(t.Elem, goType)
	if misfit != nil {
		return nil, misfit
	}
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			if v.IsNil() {
				return Variant{}, nil
			}
			value, misfit := some.encode(v, h)
			if misfit != nil {
				return nil, misfit
			}
			return Variant{Case: 1, Value: value}, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			variant, misfit := asVariant(v, 2)
			if misfit != nil {
				return misfit
			}
			if variant.Case == 0 {
				dst.SetZero()
				return nil
			}
			return some.decode(variant.Value, dst, h)
		},
	}, nil
}

// nilable makes the codec of a value that may be absent: a pointer to t, or t's own Go type if Go holds it by reference anyway.
// encode must not get nil.
func (c *compiler) nilable(t *Type, goType reflect.Type) (*codec, *ValueError) {
	if byReference(t) {
		if !canBeNil(goType.Kind()) {
			return nil, &ValueError{Want: "a Go type that can be nil", Got: goType.String()}
		}
		return c.codec(t, goType)
	}
	if goType.Kind() != reflect.Pointer {
		return nil, &ValueError{Want: "*" + goText(t), Got: goType.String()}
	}
	elem, misfit := c.codec(t, goType.Elem())
	if misfit != nil {
		return nil, misfit
	}
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) { return elem.encode(v.Elem(), h) },
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			pointer := reflect.New(goType.Elem())
			if misfit := elem.decode(v, pointer.Elem(), h); misfit != nil {
				return misfit
			}
			dst.Set(pointer)
			return nil
		},
	}, nil
}

// byReference reports whether the Go value of a t is already a reference.
func byReference(t *Type) bool { return t.Kind == KindOwn || t.Kind == KindBorrow || isError(t) }

func handleCodec(t *Type, goType reflect.Type) *codec {
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			if v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			switch {
			case t.Kind == KindBorrow:
				return nil, &ValueError{Want: "an own: a borrow is only ever a parameter", Got: t.String()}
			case h == nil:
				return nil, &ValueError{Want: "Handles for " + t.String(), Got: "nil"}
			case isNil(v):
				return nil, &ValueError{Want: t.String(), Got: "nil"}
			}
			rep, err := h.Add(t.Resource, v.Interface())
			if err != nil {
				return nil, &ValueError{Want: t.String(), Err: err}
			}
			return rep, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			rep, ok := v.(Rep)
			if !ok {
				return misfitValue[Rep](v)
			}
			if h == nil {
				return &ValueError{Want: "Handles for " + t.String(), Got: "nil"}
			}
			var held any
			var err error
			if t.Kind == KindBorrow {
				held, err = h.Value(rep, t.Resource)
			} else {
				held, err = h.Take(rep, t.Resource)
			}
			if err != nil {
				return &ValueError{Want: t.String(), Err: err}
			}
			goValue := reflect.ValueOf(held)
			if !goValue.IsValid() || !goValue.Type().AssignableTo(goType) {
				return &ValueError{Want: goType.String(), Got: fmt.Sprintf("%T", held)}
			}
			dst.Set(goValue)
			return nil
		},
	}
}

func isNil(v reflect.Value) bool {
	return !v.IsValid() || canBeNil(v.Kind()) && v.IsNil()
}

func canBeNil(k reflect.Kind) bool {
	switch k {
	case reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func, reflect.Map, reflect.Slice:
		return true
	default:
		return false
	}
}
