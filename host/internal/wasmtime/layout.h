// Sizes and offsets that Go and C rely on, checked against our declarations in every build and against the real headers
// by TestDeclarations.
#ifndef STILE_LAYOUT_H
#define STILE_LAYOUT_H

#define STILE_OFFSET(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)
#define STILE_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)

STILE_SIZE(wasm_byte_vec_t, 16);
STILE_OFFSET(wasm_byte_vec_t, data, 8);
STILE_SIZE(wasmtime_component_valtype_t, 16);
STILE_OFFSET(wasmtime_component_valtype_t, of, 8);
STILE_SIZE(wasmtime_component_item_t, 24);
STILE_OFFSET(wasmtime_component_item_t, of, 8);
STILE_SIZE(wasmtime_component_val_t, 32);
STILE_OFFSET(wasmtime_component_val_t, of, 8);
STILE_SIZE(wasmtime_component_valunion_t, 24);
STILE_OFFSET(wasmtime_component_valvariant_t, val, 16);
STILE_OFFSET(wasmtime_component_valresult_t, val, 8);
STILE_SIZE(wasmtime_component_vallist_t, 16);
STILE_OFFSET(wasmtime_component_vallist_t, data, 8);
STILE_SIZE(wasmtime_component_valrecord_entry_t, 48);
STILE_OFFSET(wasmtime_component_valrecord_entry_t, val, 16);
STILE_SIZE(wasmtime_component_instance_t, 16);
STILE_SIZE(wasmtime_component_func_t, 24);
_Static_assert(WASMTIME_COMPONENT_BOOL == 0 && WASMTIME_COMPONENT_S8 == 1 && WASMTIME_COMPONENT_U8 == 2 && WASMTIME_COMPONENT_S16 == 3 &&
                   WASMTIME_COMPONENT_U16 == 4 && WASMTIME_COMPONENT_S32 == 5 && WASMTIME_COMPONENT_U32 == 6 && WASMTIME_COMPONENT_S64 == 7 &&
                   WASMTIME_COMPONENT_U64 == 8 && WASMTIME_COMPONENT_F32 == 9 && WASMTIME_COMPONENT_F64 == 10 && WASMTIME_COMPONENT_CHAR == 11 &&
                   WASMTIME_COMPONENT_STRING == 12 && WASMTIME_COMPONENT_LIST == 13 && WASMTIME_COMPONENT_RECORD == 14 &&
                   WASMTIME_COMPONENT_TUPLE == 15 && WASMTIME_COMPONENT_VARIANT == 16 && WASMTIME_COMPONENT_ENUM == 17 &&
                   WASMTIME_COMPONENT_OPTION == 18 && WASMTIME_COMPONENT_RESULT == 19 && WASMTIME_COMPONENT_FLAGS == 20 &&
                   WASMTIME_COMPONENT_RESOURCE == 21,
               "value kinds");
_Static_assert(WASMTIME_COMPONENT_VALTYPE_BOOL == 0 && WASMTIME_COMPONENT_VALTYPE_U8 == 5 && WASMTIME_COMPONENT_VALTYPE_F32 == 9 &&
                   WASMTIME_COMPONENT_VALTYPE_STRING == 12 && WASMTIME_COMPONENT_VALTYPE_FLAGS == 20 && WASMTIME_COMPONENT_VALTYPE_OWN == 21 &&
                   WASMTIME_COMPONENT_VALTYPE_BORROW == 22,
               "type kinds");
_Static_assert(WASMTIME_COMPONENT_ITEM_COMPONENT_INSTANCE == 1 && WASMTIME_COMPONENT_ITEM_MODULE == 2 &&
                   WASMTIME_COMPONENT_ITEM_COMPONENT_FUNC == 3 && WASMTIME_COMPONENT_ITEM_RESOURCE == 4 && WASMTIME_COMPONENT_ITEM_TYPE == 6,
               "item kinds");
#endif
