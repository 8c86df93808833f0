package wasmtime

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/stilehost/stile/abi"
)

// crossing converts values between Go and the engine for one store and linker.
type crossing struct {
	store   *Store
	linker  *Linker
	context *C.wasmtime_context_t
	// hosted is set for the values of host functions, which have limits, abi.MaxBytes and abi.MaxText. Those of exports have none.
	hosted bool
	// checked is set for arguments whose lists the host function bounds itself.
	checked bool
}

// The weights of a value, a field of a record, a byte of text and an element of a list<u8>.
const perValue, perField, perChar, perElement = 170, 240, 3, 100

// weighText is weigh for a text of this many bytes, as the payload of a result.
func weighText(bytes int64) int64 { return 2*perValue + perChar*bytes }

// weigh estimates the bytes that the host holds for one of its own values while it is converted. Package guard weighs those of
// guests.
func weigh(t *abi.Type, v abi.Value) int64 {
	sum := int64(perValue)
	switch v := v.(type) {
	case string:
		sum += perChar * int64(len(v))
	case []byte:
		sum += perElement * int64(len(v))
	case []abi.Value:
		for i, part := range v {
			switch {
			case t.Kind == abi.KindList:
				sum += weigh(t.Elem, part)
			case i < len(t.Fields):
				sum += perField + weigh(t.Fields[i].Type, part)
			}
		}
	case abi.Variant:
		if p := t.Payload(v.Case); p != nil {
			sum += weigh(p, v.Value)
		}
	}
	return sum
}

type cval = C.wasmtime_component_val_t

// of reads the payload of a value.
func of[T any](v *cval) *T { return (*T)(unsafe.Pointer(&v.of)) }

func text(n *C.wasm_name_t) string { return string(bytesOf(n)) }

// bytesOf are the engine's own.
func bytesOf(n *C.wasm_name_t) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(n.data)), n.size) }

// same compares a name without copying it.
func same(n *C.wasm_name_t, s string) bool {
	return int(n.size) == len(s) && unsafe.String((*byte)(unsafe.Pointer(n.data)), n.size) == s
}

func mismatch(t *abi.Type, v *cval) error {
	return fmt.Errorf("the engine gave a value of kind %d for a type of kind %d", v.kind, t.Kind)
}

// lift reads a value that the engine owns. Types were compared when the component was loaded, so a mismatch is a fault of the host.
// It is an error nevertheless, never a wild read.
func (x *crossing) lift(t *abi.Type, v *cval) (abi.Value, error) {
	if kinds[t.Kind] != v.kind {
		return nil, mismatch(t, v)
	}
	switch t.Kind {
	case abi.KindBool:
		return bool(*of[C.bool](v)), nil
	case abi.KindS8:
		return *of[int8](v), nil
	case abi.KindU8:
		return *of[uint8](v), nil
	case abi.KindS16:
		return *of[int16](v), nil
	case abi.KindU16:
		return *of[uint16](v), nil
	case abi.KindS32, abi.KindChar:
		return *of[int32](v), nil
	case abi.KindU32:
		return *of[uint32](v), nil
	case abi.KindS64:
		return *of[int64](v), nil
	case abi.KindU64:
		return *of[uint64](v), nil
	case abi.KindF32:
		return *of[float32](v), nil
	case abi.KindF64:
		return *of[float64](v), nil
	case abi.KindString:
		n := of[C.wasm_name_t](v)
		if x.hosted && n.size > abi.MaxText {
			return nil, &SizeError{"string", int(n.size), abi.MaxText}
		}
		return text(n), nil
	case abi.KindList:
		l := of[C.wasmtime_component_vallist_t](v)
		if t.Elem.Kind == abi.KindU8 {
			return x.liftBytes(unsafe.Slice(l.data, l.size))
		}
		return x.liftAll(unsafe.Slice(l.data, l.size), func(int) *abi.Type { return t.Elem })
	case abi.KindTuple:
		l := of[C.wasmtime_component_valtuple_t](v)
		if int(l.size) != len(t.Fields) {
			return nil, mismatch(t, v)
		}
		return x.liftAll(unsafe.Slice(l.data, l.size), func(i int) *abi.Type { return t.Fields[i].Type })
	case abi.KindRecord:
		r := of[C.wasmtime_component_valrecord_t](v)
		if int(r.size) != len(t.Fields) {
			return nil, mismatch(t, v)
		}
		out := make([]abi.Value, r.size)
		for i := range out {
			var err error
			if out[i], err = x.lift(t.Fields[i].Type, &unsafe.Slice(r.data, r.size)[i].val); err != nil {
				return nil, err
			}
		}
		return out, nil
	case abi.KindVariant:
		n := of[C.wasmtime_component_valvariant_t](v)
		return x.liftCase(t, v, &n.discriminant, n.val)
	case abi.KindEnum:
		return x.liftCase(t, v, of[C.wasm_name_t](v), nil)
	case abi.KindOption:
		if p := *of[*cval](v); p != nil {
			return x.liftPayload(1, t.Elem, p)
		}
		return abi.Variant{}, nil
	case abi.KindResult:
		r := of[C.wasmtime_component_valresult_t](v)
		if r.is_ok {
			return x.liftPayload(0, t.Ok, r.val)
		}
		return x.liftPayload(1, t.Err, r.val)
	case abi.KindFlags:
		f := of[C.wasmtime_component_valflags_t](v)
		var bits uint32
		for _, name := range unsafe.Slice(f.data, f.size) {
			for i, label := range t.Labels {
				if same(&name, label) {
					bits |= 1 << i
				}
			}
		}
		return bits, nil
	case abi.KindOwn, abi.KindBorrow:
		return x.liftHandle(t, *of[*C.wasmtime_component_resource_any_t](v))
	}
	return nil, mismatch(t, v)
}

func (x *crossing) liftAll(values []cval, at func(int) *abi.Type) (abi.Value, error) {
	out := make([]abi.Value, len(values))
	for i := range values {
		var err error
		if out[i], err = x.lift(at(i), &values[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (x *crossing) liftBytes(values []cval) (abi.Value, error) {
	if x.hosted && !x.checked && len(values) > abi.MaxBytes {
		return nil, &SizeError{"list<u8>", len(values), abi.MaxBytes}
	}
	out := make([]byte, len(values))
	for i := range values {
		if values[i].kind != C.WASMTIME_COMPONENT_U8 {
			return nil, fmt.Errorf("the engine gave a value of kind %d in a list of bytes", values[i].kind)
		}
		out[i] = *of[byte](&values[i])
	}
	return out, nil
}

func (x *crossing) liftCase(t *abi.Type, v *cval, name *C.wasm_name_t, payload *cval) (abi.Value, error) {
	for i, c := range t.Cases {
		if same(name, c.Name) {
			return x.liftPayload(uint32(i), c.Type, payload)
		}
	}
	return nil, mismatch(t, v)
}

func (x *crossing) liftPayload(index uint32, t *abi.Type, v *cval) (abi.Value, error) {
	if t == nil || v == nil {
		return abi.Variant{Case: index}, nil
	}
	payload, err := x.lift(t, v)
	return abi.Variant{Case: index, Value: payload}, err
}

func (x *crossing) liftHandle(t *abi.Type, any *C.wasmtime_component_resource_any_t) (abi.Value, error) {
	var rep, number C.uint32_t
	if err := takeError(C.stile_resource_rep(x.context, any, &rep, &number)); err != nil {
		return nil, err
	}
	if want := x.linker.types[t.Resource]; want != uint32(number) {
		return nil, fmt.Errorf("a handle is not of resource %s", t.Resource.Name)
	}
	return abi.Rep(rep), nil
}

// lower makes a value for the engine, which then owns it. It overwrites out. Even after an error, out holds a value that can be
// deleted.
func (x *crossing) lower(t *abi.Type, v abi.Value, out *cval) error {
	*out = cval{kind: C.WASMTIME_COMPONENT_BOOL}
	bad := func() error { return fmt.Errorf("a Go value of type %T does not fit a WIT type of kind %d", v, t.Kind) }
	ok := true
	kind := kinds[t.Kind]
	switch t.Kind {
	case abi.KindBool:
		*of[bool](out), ok = v.(bool)
	case abi.KindS8:
		*of[int8](out), ok = v.(int8)
	case abi.KindU8:
		*of[uint8](out), ok = v.(uint8)
	case abi.KindS16:
		*of[int16](out), ok = v.(int16)
	case abi.KindU16:
		*of[uint16](out), ok = v.(uint16)
	case abi.KindS32, abi.KindChar:
		*of[int32](out), ok = v.(int32)
	case abi.KindU32:
		*of[uint32](out), ok = v.(uint32)
	case abi.KindS64:
		*of[int64](out), ok = v.(int64)
	case abi.KindU64:
		*of[uint64](out), ok = v.(uint64)
	case abi.KindF32:
		*of[float32](out), ok = v.(float32)
	case abi.KindF64:
		*of[float64](out), ok = v.(float64)
	case abi.KindString:
		switch s := v.(type) {
		case string:
			setName(of[C.wasm_name_t](out), s)
		case []byte:
			setName(of[C.wasm_name_t](out), unsafe.String(unsafe.SliceData(s), len(s))) // which copies it
		default:
			ok = false
		}
	case abi.KindList:
		return x.lowerList(t, v, out)
	case abi.KindRecord, abi.KindTuple:
		fields, isSlice := v.([]abi.Value)
		if !isSlice || len(fields) != len(t.Fields) {
			return bad()
		}
		return x.lowerFields(t, fields, out)
	case abi.KindEnum, abi.KindVariant:
		c, isVariant := v.(abi.Variant)
		if !isVariant || int(c.Case) >= len(t.Cases) {
			return bad()
		}
		name := t.Cases[c.Case].Name
		if t.Kind == abi.KindEnum {
			setName(of[C.wasm_name_t](out), name)
			break
		}
		payload, err := x.box(t.Cases[c.Case].Type, c.Value)
		if err != nil {
			return err
		}
		n := of[C.wasmtime_component_valvariant_t](out)
		setName(&n.discriminant, name)
		n.val = payload
	case abi.KindOption, abi.KindResult:
		c, isVariant := v.(abi.Variant)
		if !isVariant || c.Case > 1 {
			return bad()
		}
		return x.lowerOptionOrResult(t, c, out)
	case abi.KindFlags:
		var bits uint32
		if bits, ok = v.(uint32); ok {
			lowerFlags(t, bits, out)
		}
	case abi.KindOwn:
		var rep abi.Rep
		if rep, ok = v.(abi.Rep); ok {
			if err := takeError(C.stile_resource_new(x.context, C.uint32_t(rep), C.uint32_t(x.linker.types[t.Resource]),
				of[*C.wasmtime_component_resource_any_t](out))); err != nil {
				return err
			}
		}
	default:
		ok = false
	}
	if !ok {
		return bad()
	}
	out.kind = kind
	return nil
}

func (x *crossing) lowerList(t *abi.Type, v abi.Value, out *cval) error {
	l := of[C.wasmtime_component_vallist_t](out)
	switch v := v.(type) {
	case []byte:
		if t.Elem.Kind != abi.KindU8 {
			return fmt.Errorf("bytes do not fit a list of kind %d", t.Elem.Kind)
		}
		if x.hosted && len(v) > abi.MaxBytes {
			return &SizeError{"list<u8>", len(v), abi.MaxBytes}
		}
		C.wasmtime_component_vallist_new_uninit(l, C.size_t(len(v)))
		out.kind = C.WASMTIME_COMPONENT_LIST
		values := unsafe.Slice(l.data, len(v))
		for i, b := range v {
			values[i] = cval{kind: C.WASMTIME_COMPONENT_U8}
			*of[byte](&values[i]) = b
		}
		return nil
	case []abi.Value:
		C.wasmtime_component_vallist_new_uninit(l, C.size_t(len(v)))
		out.kind = C.WASMTIME_COMPONENT_LIST
		return x.lowerAll(unsafe.Slice(l.data, len(v)), v, func(int) *abi.Type { return t.Elem })
	}
	return fmt.Errorf("a Go value of type %T does not fit a list", v)
}

// lowerAll fills every element, even after an error, so that the whole can be deleted.
func (x *crossing) lowerAll(out []cval, values []abi.Value, at func(int) *abi.Type) error {
	clear(out)
	for i, v := range values {
		if err := x.lower(at(i), v, &out[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *crossing) lowerFields(t *abi.Type, fields []abi.Value, out *cval) error {
	if t.Kind == abi.KindTuple {
		l := of[C.wasmtime_component_valtuple_t](out)
		C.wasmtime_component_valtuple_new_uninit(l, C.size_t(len(fields)))
		out.kind = C.WASMTIME_COMPONENT_TUPLE
		return x.lowerAll(unsafe.Slice(l.data, len(fields)), fields, func(i int) *abi.Type { return t.Fields[i].Type })
	}
	r := of[C.wasmtime_component_valrecord_t](out)
	C.wasmtime_component_valrecord_new_uninit(r, C.size_t(len(fields)))
	out.kind = C.WASMTIME_COMPONENT_RECORD
	entries := unsafe.Slice(r.data, len(fields))
	clear(entries)
	for i, f := range t.Fields {
		setName(&entries[i].name, f.Name)
	}
	for i, f := range t.Fields {
		if err := x.lower(f.Type, fields[i], &entries[i].val); err != nil {
			return err
		}
	}
	return nil
}

func (x *crossing) lowerOptionOrResult(t *abi.Type, c abi.Variant, out *cval) error {
	var payloadType *abi.Type
	switch {
	case t.Kind == abi.KindOption && c.Case == 1:
		payloadType = t.Elem
	case t.Kind == abi.KindResult && c.Case == 0:
		payloadType = t.Ok
	case t.Kind == abi.KindResult:
		payloadType = t.Err
	}
	payload, err := x.box(payloadType, c.Value)
	if err != nil {
		return err
	}
	if t.Kind == abi.KindOption {
		*of[*cval](out) = payload
		out.kind = C.WASMTIME_COMPONENT_OPTION
		return nil
	}
	r := of[C.wasmtime_component_valresult_t](out)
	r.is_ok = c.Case == 0
	r.val = payload
	out.kind = C.WASMTIME_COMPONENT_RESULT
	return nil
}

// box lowers a payload into the engine's memory. It returns nil for no payload.
func (x *crossing) box(t *abi.Type, v abi.Value) (*cval, error) {
	if t == nil {
		return nil, nil
	}
	var payload cval
	if err := x.lower(t, v, &payload); err != nil {
		C.wasmtime_component_val_delete(&payload)
		return nil, err
	}
	return C.wasmtime_component_val_new(&payload), nil
}

func lowerFlags(t *abi.Type, bits uint32, out *cval) {
	var labels []string
	for i, label := range t.Labels {
		if bits&(1<<i) != 0 {
			labels = append(labels, label)
		}
	}
	f := of[C.wasmtime_component_valflags_t](out)
	C.wasmtime_component_valflags_new_uninit(f, C.size_t(len(labels)))
	for i, label := range labels {
		setName(&unsafe.Slice(f.data, len(labels))[i], label)
	}
}

// setName makes an engine string. The engine aborts the process on text that is not UTF-8, so setName excludes such text.
func setName(n *C.wasm_name_t, s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	C.wasm_byte_vec_new_uninitialized(n, C.size_t(len(s)))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(n.data)), len(s)), s)
}

// kinds maps WIT kinds to the engine's kinds of values.
var kinds = [...]C.uint8_t{
	abi.KindBool: C.WASMTIME_COMPONENT_BOOL, abi.KindS8: C.WASMTIME_COMPONENT_S8, abi.KindU8: C.WASMTIME_COMPONENT_U8,
	abi.KindS16: C.WASMTIME_COMPONENT_S16, abi.KindU16: C.WASMTIME_COMPONENT_U16, abi.KindS32: C.WASMTIME_COMPONENT_S32,
	abi.KindU32: C.WASMTIME_COMPONENT_U32, abi.KindS64: C.WASMTIME_COMPONENT_S64, abi.KindU64: C.WASMTIME_COMPONENT_U64,
	abi.KindF32: C.WASMTIME_COMPONENT_F32, abi.KindF64: C.WASMTIME_COMPONENT_F64, abi.KindChar: C.WASMTIME_COMPONENT_CHAR,
	abi.KindString: C.WASMTIME_COMPONENT_STRING, abi.KindList: C.WASMTIME_COMPONENT_LIST, abi.KindRecord: C.WASMTIME_COMPONENT_RECORD,
	abi.KindTuple: C.WASMTIME_COMPONENT_TUPLE, abi.KindVariant: C.WASMTIME_COMPONENT_VARIANT, abi.KindEnum: C.WASMTIME_COMPONENT_ENUM,
	abi.KindOption: C.WASMTIME_COMPONENT_OPTION, abi.KindResult: C.WASMTIME_COMPONENT_RESULT, abi.KindFlags: C.WASMTIME_COMPONENT_FLAGS,
	abi.KindOwn: C.WASMTIME_COMPONENT_RESOURCE, abi.KindBorrow: C.WASMTIME_COMPONENT_RESOURCE,
}
