package abi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// goField is a field of a Go struct that has a WIT counterpart.
type goField struct {
	reflect.StructField
	// name is the WIT name from the tag. If it is empty, the Go name is compared.
	name string
}

// fieldsOf lists the exported fields of a struct in order, with the fields of embedded structs in their place and without those
// tagged `wit:"-"`.
func fieldsOf(goType reflect.Type) []goField {
	var fields []goField
	for _, f := range reflect.VisibleFields(goType) {
		tag := f.Tag.Get("wit")
		if tag == "-" || !f.IsExported() || flattened(f) || !promoted(goType, f.Index) {
			continue
		}
		fields = append(fields, goField{StructField: f, name: tag})
	}
	return fields
}

// flattened reports whether an embedded struct is replaced by its fields.
func flattened(f reflect.StructField) bool {
	return f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("wit") == ""
}

// promoted reports whether every struct on the way to a field is flattened. Embedded pointers are not, because they may be nil.
func promoted(goType reflect.Type, index []int) bool {
	for ; len(index) > 1; index = index[1:] {
		f := goType.Field(index[0])
		if !flattened(f) {
			return false
		}
		goType = f.Type
	}
	return true
}

// sameName reports whether a Go identifier stands for a kebab-case name. It ignores case, so `url` can be URL.
func sameName(goName, witName string) bool {
	return strings.EqualFold(goName, strings.ReplaceAll(witName, "-", ""))
}

// matchFields finds the Go field for each WIT name. Every field and every name must have a counterpart.
func matchFields(fields []goField, names []string, goType reflect.Type) ([]goField, *ValueError) {
	matched := make([]goField, len(names))
	left := fields
	for i, name := range names {
		found := slices.IndexFunc(left, func(f goField) bool { return f.name == name || f.name == "" && sameName(f.Name, name) })
		if found < 0 {
			return nil, (&ValueError{Want: "a field " + goName(name), Got: "none in " + goType.String()}).in(name)
		}
		matched[i] = left[found]
		left = append(left[:found:found], left[found+1:]...)
	}
	if len(left) > 0 {
		return nil, &ValueError{
			Want: fmt.Sprintf("no field %s in %s, or the tag `wit:\"-\"` on it", left[0].Name, goType),
		}
	}
	return matched, nil
}

// part is one field of a record, element of a tuple, or payload of a variant. A case without a payload has no codec.
type part struct {
	name string
	*codec
	of func(reflect.Value) reflect.Value
}

func fieldAt(index []int) func(reflect.Value) reflect.Value {
	if len(index) == 1 {
		i := index[0]
		return func(v reflect.Value) reflect.Value { return v.Field(i) }
	}
	return func(v reflect.Value) reflect.Value { return v.FieldByIndex(index) }
}

func (c *compiler) recordCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
	}
	fields, misfit := matchFields(fieldsOf(goType), names, goType)
	if misfit != nil {
		return nil, misfit
	}
	return c.structCodec(t, fields)
}

func (c *compiler) tupleCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	if goType.Kind() == reflect.Struct {
		fields := fieldsOf(goType)
		if len(fields) != len(t.Fields) {
			return nil, misfitType(t, goType)
		}
		return c.structCodec(t, fields)
	}
	if goType.Len() != len(t.Fields) {
		return nil, misfitType(t, goType)
	}
	parts := make([]part, len(t.Fields))
	for i, f := range t.Fields {
		elem, misfit := c.codec(f.Type, goType.Elem())
		if misfit != nil {
			return nil, misfit.in(f.Name)
		}
		parts[i] = part{f.Name, elem, func(v reflect.Value) reflect.Value { return v.Index(i) }}
	}
	return partsCodec(parts), nil
}

func (c *compiler) structCodec(t *Type, fields []goField) (*codec, *ValueError) {
	parts := make([]part, len(t.Fields))
	for i, f := range t.Fields {
		field, misfit := c.codec(f.Type, fields[i].Type)
		if misfit != nil {
			return nil, misfit.in(f.Name)
		}
		parts[i] = part{f.Name, field, fieldAt(fields[i].Index)}
	}
	return partsCodec(parts), nil
}

func partsCodec(parts []part) *codec {
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			values := make([]Value, len(parts))
			for i := range parts {
				var misfit *ValueError
				if values[i], misfit = parts[i].encode(parts[i].of(v), h); misfit != nil {
					return nil, misfit.in(parts[i].name)
				}
			}
			return values, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			values, ok := v.([]Value)
			if !ok {
				return misfitValue[[]Value](v)
			}
			if len(values) != len(parts) {
				return &ValueError{Want: fmt.Sprintf("%d fields", len(parts)), Got: fmt.Sprint(len(values))}
			}
			for i := range parts {
				if misfit := parts[i].decode(values[i], parts[i].of(dst), h); misfit != nil {
					return misfit.in(parts[i].name)
				}
			}
			return nil
		},
	}
}

func (c *compiler) flagsCodec(t *Type, goType reflect.Type) (*codec, *ValueError) {
	if len(t.Labels) > maxLabels {
		return nil, &ValueError{Want: fmt.Sprintf("at most %d labels", maxLabels), Got: fmt.Sprint(len(t.Labels))}
	}
	fields, misfit := matchFields(fieldsOf(goType), t.Labels, goType)
	if misfit != nil {
		return nil, misfit
	}
	bits := make([]func(reflect.Value) reflect.Value, len(fields))
	for i, f := range fields {
		if f.Type.Kind() != reflect.Bool {
			return nil, (&ValueError{Want: "bool", Got: f.Type.String()}).in(t.Labels[i])
		}
		bits[i] = fieldAt(f.Index)
	}
	return &codec{
		encode: func(v reflect.Value, _ Handles) (Value, *ValueError) {
			var set uint32
			for i, bit := range bits {
				if bit(v).Bool() {
					set |= 1 << i
				}
			}
			return set, nil
		},
		decode: func(v Value, dst reflect.Value, _ Handles) *ValueError {
			set, ok := v.(uint32)
			if !ok {
				return misfitValue[uint32](v)
			}
			if uint64(set)>>len(bits) != 0 {
				return &ValueError{Want: fmt.Sprintf("%d flags", len(bits)), Got: fmt.Sprintf("%#x", set)}
			}
			for i, bit := range bits {
				bit(dst).SetBool(set&(1<<i) != 0)
			}
			return nil
		},
	}, nil
}

// variantCodec maps a variant, or a result as its two cases, to a struct whose first field is the index of the case.
func (c *compiler) variantCodec(t *Type, cases []Case, goType reflect.Type) (*codec, *ValueError) {
	fields := fieldsOf(goType)
	if len(fields) == 0 || fields[0].Name != "Case" || !holdsCases(fields[0].Type, len(cases)) {
		return nil, misfitType(t, goType)
	}
	caseField := fieldAt(fields[0].Index)
	var names []string
	for _, cs := range cases {
		if cs.Type != nil {
			names = append(names, cs.Name)
		}
	}
	fields, misfit := matchFields(fields[1:], names, goType)
	if misfit != nil {
		return nil, misfit
	}
	payloads := make([]part, len(cases))
	for i, cs := range cases {
		payloads[i].name = cs.Name
		if cs.Type == nil {
			continue
		}
		made, misfit := c.nilable(cs.Type, fields[0].Type)
		if misfit != nil {
			return nil, misfit.in(cs.Name)
		}
		payloads[i].codec, payloads[i].of = made, fieldAt(fields[0].Index)
		fields = fields[1:]
	}
	return &codec{
		encode: func(v reflect.Value, h Handles) (Value, *ValueError) {
			chosen, misfit := caseIndex(caseField(v), len(payloads))
			if misfit != nil {
				return nil, misfit
			}
			variant := Variant{Case: chosen}
			for i, p := range payloads {
				switch {
				case p.codec == nil:
				case uint32(i) != chosen && !p.of(v).IsNil():
					return nil, (&ValueError{Want: "nil: the case is " + payloads[chosen].name, Got: "a value"}).in(p.name)
				case uint32(i) != chosen:
				case p.of(v).IsNil():
					return nil, (&ValueError{Want: "a value: it is the case", Got: "nil"}).in(p.name)
				default:
					if variant.Value, misfit = p.encode(p.of(v), h); misfit != nil {
						return nil, misfit.in(p.name)
					}
				}
			}
			return variant, nil
		},
		decode: func(v Value, dst reflect.Value, h Handles) *ValueError {
			variant, misfit := asVariant(v, len(payloads))
			if misfit != nil {
				return misfit
			}
			dst.SetZero()
			setCase(caseField(dst), variant.Case)
			p := payloads[variant.Case]
			if p.codec == nil {
				return nil
			}
			if misfit := p.decode(variant.Value, p.of(dst), h); misfit != nil {
				return misfit.in(p.name)
			}
			return nil
		},
	}, nil
}
