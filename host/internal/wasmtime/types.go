package wasmtime

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/stilehost/stile/abi"
)

// ItemKind is the kind of an import or export.
type ItemKind uint8

// The kinds of items. ItemOther is a nested component or a core function, which this host never links.
const (
	ItemOther ItemKind = iota
	ItemInstance
	ItemModule
	ItemFunc
	ItemResource
	ItemType
)

// Item is one import or export of a component, or of an instance.
type Item struct {
	Name string
	Kind ItemKind
	// Items are the exports of an instance.
	Items []Item
	// Func is a function's type; its Name is that of the item. Types are anonymous.
	Func *abi.Func
	// Resource is the identity of a resource type: handles of the same resource share the pointer.
	Resource *abi.Resource
	// Type is an exported value type.
	Type *abi.Type
}

// Types are the imports and exports of a component.
type Types struct {
	Imports, Exports []Item
}

// Types reads a component's type. It fails for types that a synchronous host cannot link, such as streams.
func (c *Component) Types() (Types, error) {
	ty := C.wasmtime_component_type(c.c)
	defer C.wasmtime_component_type_delete(ty)
	r := reader{engine: c.engine}
	defer r.close()
	var t Types
	var err error
	if t.Imports, err = r.items(C.wasmtime_component_type_import_count(ty, c.engine.c), "",
		func(n C.size_t, name **C.char, size *C.size_t, item *C.wasmtime_component_item_t) C.bool {
			return C.wasmtime_component_type_import_nth(ty, c.engine.c, n, name, size, item)
		}); err != nil {
		return Types{}, fmt.Errorf("import %w", err)
	}
	if t.Exports, err = r.items(C.wasmtime_component_type_export_count(ty, c.engine.c), "",
		func(n C.size_t, name **C.char, size *C.size_t, item *C.wasmtime_component_item_t) C.bool {
			return C.wasmtime_component_type_export_nth(ty, c.engine.c, n, name, size, item)
		}); err != nil {
		return Types{}, fmt.Errorf("export %w", err)
	}
	return t, nil
}

// Bounds of a component's types, with every part counted wherever it is used. A component that imports all of WASI has 20 resources
// and a few thousand parts.
const (
	maxTypes     = 100_000
	nameBytes    = 64    // bytes of a name that count as a part
	maxResources = 1_000 // finding one takes a call for each
)

// reader converts types, and gives each resource type one *abi.Resource.
type reader struct {
	engine    *Engine
	resources []known
	types     int // read so far
}

// count counts an item or a part of a type, and the cost of reading a list of n: for each element, the engine walks the list from
// its start.
func (r *reader) count(n C.size_t) error {
	if r.types += 1 + int(n*n/1250); r.types > maxTypes {
		return fmt.Errorf("the component's types have more than %d parts", maxTypes)
	}
	if len(r.resources) > maxResources {
		return fmt.Errorf("the component has more than %d resources", maxResources)
	}
	return nil
}

// name copies a name and counts it, because a short component can use a long name in every part.
func (r *reader) name(c *C.char, size C.size_t) (string, error) {
	if n := int(size / nameBytes); n > 0 {
		if err := r.count(0); err != nil {
			return "", err
		}
		r.types += n
	}
	return C.GoStringN(c, C.int(size)), nil
}

type known struct {
	c        *C.wasmtime_component_resource_type_t
	resource *abi.Resource
}

func (r *reader) close() {
	for _, k := range r.resources {
		C.wasmtime_component_resource_type_delete(k.c)
	}
}

// resource finds a resource type by identity. The place where it is first seen gives it its name.
func (r *reader) resource(c *C.wasmtime_component_resource_type_t, iface, name string) *abi.Resource {
	i := slices.IndexFunc(r.resources, func(k known) bool { return bool(C.wasmtime_component_resource_type_equal(k.c, c)) })
	if i >= 0 {
		return r.resources[i].resource
	}
	res := &abi.Resource{Name: name, Interface: &abi.Interface{Name: iface}}
	r.resources = append(r.resources, known{C.wasmtime_component_resource_type_clone(c), res})
	return res
}

type nth func(n C.size_t, name **C.char, size *C.size_t, item *C.wasmtime_component_item_t) C.bool

func (r *reader) items(count C.size_t, iface string, at nth) ([]Item, error) {
	if err := r.count(count); err != nil {
		return nil, err
	}
	items := make([]Item, 0, count)
	for n := range count {
		var name *C.char
		var size C.size_t
		var c C.wasmtime_component_item_t
		if !at(n, &name, &size, &c) {
			return nil, fmt.Errorf("%d has no type", n)
		}
		known, err := r.name(name, size)
		var item Item
		if err == nil {
			item, err = r.item(known, iface, &c)
		}
		C.wasmtime_component_item_delete(&c)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (r *reader) item(name, iface string, c *C.wasmtime_component_item_t) (Item, error) {
	item := Item{Name: name}
	payload := unsafe.Pointer(&c.of)
	err := r.count(0)
	if err != nil {
		return Item{}, err
	}
	switch c.kind {
	case C.WASMTIME_COMPONENT_ITEM_COMPONENT_INSTANCE:
		item.Kind = ItemInstance
		instance := *(**C.wasmtime_component_instance_type_t)(payload)
		item.Items, err = r.items(C.wasmtime_component_instance_type_export_count(instance, r.engine.c), name,
			func(n C.size_t, name **C.char, size *C.size_t, item *C.wasmtime_component_item_t) C.bool {
				return C.wasmtime_component_instance_type_export_nth(instance, r.engine.c, n, name, size, item)
			})
	case C.WASMTIME_COMPONENT_ITEM_MODULE:
		item.Kind = ItemModule
	case C.WASMTIME_COMPONENT_ITEM_COMPONENT_FUNC:
		item.Kind = ItemFunc
		item.Func, err = r.function(name, *(**C.wasmtime_component_func_type_t)(payload))
	case C.WASMTIME_COMPONENT_ITEM_RESOURCE:
		item.Kind = ItemResource
		item.Resource = r.resource(*(**C.wasmtime_component_resource_type_t)(payload), iface, name)
	case C.WASMTIME_COMPONENT_ITEM_TYPE:
		item.Kind = ItemType
		item.Type, err = r.valueType((*C.wasmtime_component_valtype_t)(payload))
	}
	if err != nil {
		return Item{}, fmt.Errorf("%s: %w", name, err)
	}
	return item, nil
}

func (r *reader) function(name string, c *C.wasmtime_component_func_type_t) (*abi.Func, error) {
	if C.wasmtime_component_func_type_async(c) {
		return nil, fmt.Errorf("async functions are not supported")
	}
	f := &abi.Func{Name: name}
	for n := range C.wasmtime_component_func_type_param_count(c) {
		var param *C.char
		var size C.size_t
		var t C.wasmtime_component_valtype_t
		C.wasmtime_component_func_type_param_nth(c, n, &param, &size, &t)
		ty, err := r.take(&t)
		if err != nil {
			return nil, err
		}
		name, err := r.name(param, size)
		if err != nil {
			return nil, err
		}
		f.Params = append(f.Params, abi.Field{Name: name, Type: ty})
	}
	var t C.wasmtime_component_valtype_t
	if C.wasmtime_component_func_type_result(c, &t) {
		var err error
		if f.Result, err = r.take(&t); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// take converts and frees an owned type.
func (r *reader) take(t *C.wasmtime_component_valtype_t) (*abi.Type, error) {
	defer C.wasmtime_component_valtype_delete(t)
	return r.valueType(t)
}

var primitives = map[C.uint8_t]abi.Kind{
	C.WASMTIME_COMPONENT_VALTYPE_BOOL: abi.KindBool,
	C.WASMTIME_COMPONENT_VALTYPE_S8:   abi.KindS8, C.WASMTIME_COMPONENT_VALTYPE_U8: abi.KindU8,
	C.WASMTIME_COMPONENT_VALTYPE_S16: abi.KindS16, C.WASMTIME_COMPONENT_VALTYPE_U16: abi.KindU16,
	C.WASMTIME_COMPONENT_VALTYPE_S32: abi.KindS32, C.WASMTIME_COMPONENT_VALTYPE_U32: abi.KindU32,
	C.WASMTIME_COMPONENT_VALTYPE_S64: abi.KindS64, C.WASMTIME_COMPONENT_VALTYPE_U64: abi.KindU64,
	C.WASMTIME_COMPONENT_VALTYPE_F32: abi.KindF32, C.WASMTIME_COMPONENT_VALTYPE_F64: abi.KindF64,
	C.WASMTIME_COMPONENT_VALTYPE_CHAR: abi.KindChar, C.WASMTIME_COMPONENT_VALTYPE_STRING: abi.KindString,
}

func (r *reader) valueType(c *C.wasmtime_component_valtype_t) (*abi.Type, error) {
	if err := r.count(0); err != nil {
		return nil, err
	}
	if kind, ok := primitives[c.kind]; ok {
		return &abi.Type{Kind: kind}, nil
	}
	payload := unsafe.Pointer(&c.of)
	var name *C.char
	var size C.size_t
	var inner C.wasmtime_component_valtype_t
	switch c.kind {
	case C.WASMTIME_COMPONENT_VALTYPE_LIST:
		C.wasmtime_component_list_type_element(*(**C.wasmtime_component_list_type_t)(payload), &inner)
		elem, err := r.take(&inner)
		return &abi.Type{Kind: abi.KindList, Elem: elem}, err
	case C.WASMTIME_COMPONENT_VALTYPE_OPTION:
		C.wasmtime_component_option_type_ty(*(**C.wasmtime_component_option_type_t)(payload), &inner)
		elem, err := r.take(&inner)
		return &abi.Type{Kind: abi.KindOption, Elem: elem}, err
	case C.WASMTIME_COMPONENT_VALTYPE_RECORD:
		t := &abi.Type{Kind: abi.KindRecord}
		record := *(**C.wasmtime_component_record_type_t)(payload)
		count := C.wasmtime_component_record_type_field_count(record)
		if err := r.count(count); err != nil {
			return nil, err
		}
		for n := range count {
			C.wasmtime_component_record_type_field_nth(record, n, &name, &size, &inner)
			var field abi.Field
			var err error
			if field.Type, err = r.take(&inner); err != nil {
				return nil, err
			}
			if field.Name, err = r.name(name, size); err != nil {
				return nil, err
			}
			t.Fields = append(t.Fields, field)
		}
		return t, nil
	case C.WASMTIME_COMPONENT_VALTYPE_TUPLE:
		t := &abi.Type{Kind: abi.KindTuple}
		tuple := *(**C.wasmtime_component_tuple_type_t)(payload)
		count := C.wasmtime_component_tuple_type_types_count(tuple)
		if err := r.count(count); err != nil {
			return nil, err
		}
		for n := range count {
			C.wasmtime_component_tuple_type_types_nth(tuple, n, &inner)
			elem, err := r.take(&inner)
			if err != nil {
				return nil, err
			}
			t.Fields = append(t.Fields, abi.Field{Name: strconv.Itoa(int(n)), Type: elem})
		}
		return t, nil
	case C.WASMTIME_COMPONENT_VALTYPE_VARIANT:
		t := &abi.Type{Kind: abi.KindVariant}
		variant := *(**C.wasmtime_component_variant_type_t)(payload)
		count := C.wasmtime_component_variant_type_case_count(variant)
		if err := r.count(count); err != nil {
			return nil, err
		}
		for n := range count {
			var has C.bool
			C.wasmtime_component_variant_type_case_nth(variant, n, &name, &size, &has, &inner)
			var one abi.Case
			var err error
			if has {
				if one.Type, err = r.take(&inner); err != nil {
					return nil, err
				}
			}
			if one.Name, err = r.name(name, size); err != nil {
				return nil, err
			}
			t.Cases = append(t.Cases, one)
		}
		return t, nil
	case C.WASMTIME_COMPONENT_VALTYPE_ENUM:
		t := &abi.Type{Kind: abi.KindEnum}
		enum := *(**C.wasmtime_component_enum_type_t)(payload)
		count := C.wasmtime_component_enum_type_names_count(enum)
		if err := r.count(count); err != nil {
			return nil, err
		}
		for n := range count {
			C.wasmtime_component_enum_type_names_nth(enum, n, &name, &size)
			label, err := r.name(name, size)
			if err != nil {
				return nil, err
			}
			t.Cases = append(t.Cases, abi.Case{Name: label})
		}
		return t, nil
	case C.WASMTIME_COMPONENT_VALTYPE_FLAGS:
		t := &abi.Type{Kind: abi.KindFlags}
		flags := *(**C.wasmtime_component_flags_type_t)(payload)
		for n := range C.wasmtime_component_flags_type_names_count(flags) {
			C.wasmtime_component_flags_type_names_nth(flags, n, &name, &size)
			label, err := r.name(name, size)
			if err != nil {
				return nil, err
			}
			t.Labels = append(t.Labels, label)
		}
		return t, nil
	case C.WASMTIME_COMPONENT_VALTYPE_RESULT:
		t := &abi.Type{Kind: abi.KindResult}
		result := *(**C.wasmtime_component_result_type_t)(payload)
		var err error
		if C.wasmtime_component_result_type_ok(result, &inner) {
			if t.Ok, err = r.take(&inner); err != nil {
				return nil, err
			}
		}
		if C.wasmtime_component_result_type_err(result, &inner) {
			t.Err, err = r.take(&inner)
		}
		return t, err
	case C.WASMTIME_COMPONENT_VALTYPE_OWN, C.WASMTIME_COMPONENT_VALTYPE_BORROW:
		kind := abi.KindOwn
		if c.kind == C.WASMTIME_COMPONENT_VALTYPE_BORROW {
			kind = abi.KindBorrow
		}
		return &abi.Type{Kind: kind, Resource: r.resource(*(**C.wasmtime_component_resource_type_t)(payload), "", "")}, nil
	}
	return nil, fmt.Errorf("futures, streams, maps and error contexts are not supported")
}
