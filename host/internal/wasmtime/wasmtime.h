// The part of wasmtime's C API that this package uses, declared here because cgo cannot name another module's include
// folder. TestDeclarations compiles this header together with the real ones, so a drift between them fails the build:
// prototypes must agree, and layout.h checks sizes and offsets of the structures on both sides.
#ifndef STILE_WASMTIME_H
#define STILE_WASMTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The guards are those of the real headers: where they came first, their structures stand and the prototypes below must
// fit them.
#ifndef WASM_H
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasm_byte_vec_t {
  size_t size;
  char *data;
} wasm_byte_vec_t;
typedef wasm_byte_vec_t wasm_name_t;
#endif

#ifndef WASMTIME_ERROR_H
typedef struct wasmtime_error wasmtime_error_t;
#endif

#ifndef WASMTIME_CONFIG_H
typedef struct wasmtime_pooling_allocation_config_t wasmtime_pooling_allocation_config_t;
#endif

#ifndef WASMTIME_MODULE_H
typedef struct wasmtime_module wasmtime_module_t;
#endif

#ifndef WASMTIME_STORE_H
typedef struct wasmtime_store wasmtime_store_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef uint8_t wasmtime_update_deadline_kind_t;
#define WASMTIME_UPDATE_DEADLINE_CONTINUE 0
#endif

#ifndef WASMTIME_COMPONENT_TYPES_RESOURCE_H
typedef struct wasmtime_component_resource_type wasmtime_component_resource_type_t;
#endif

#ifndef WASMTIME_COMPONENT_TYPES_VAL_H
typedef struct wasmtime_component_list_type wasmtime_component_list_type_t;
typedef struct wasmtime_component_record_type wasmtime_component_record_type_t;
typedef struct wasmtime_component_tuple_type wasmtime_component_tuple_type_t;
typedef struct wasmtime_component_variant_type wasmtime_component_variant_type_t;
typedef struct wasmtime_component_enum_type wasmtime_component_enum_type_t;
typedef struct wasmtime_component_option_type wasmtime_component_option_type_t;
typedef struct wasmtime_component_result_type wasmtime_component_result_type_t;
typedef struct wasmtime_component_flags_type wasmtime_component_flags_type_t;
#define WASMTIME_COMPONENT_VALTYPE_BOOL 0
#define WASMTIME_COMPONENT_VALTYPE_S8 1
#define WASMTIME_COMPONENT_VALTYPE_S16 2
#define WASMTIME_COMPONENT_VALTYPE_S32 3
#define WASMTIME_COMPONENT_VALTYPE_S64 4
#define WASMTIME_COMPONENT_VALTYPE_U8 5
#define WASMTIME_COMPONENT_VALTYPE_U16 6
#define WASMTIME_COMPONENT_VALTYPE_U32 7
#define WASMTIME_COMPONENT_VALTYPE_U64 8
#define WASMTIME_COMPONENT_VALTYPE_F32 9
#define WASMTIME_COMPONENT_VALTYPE_F64 10
#define WASMTIME_COMPONENT_VALTYPE_CHAR 11
#define WASMTIME_COMPONENT_VALTYPE_STRING 12
#define WASMTIME_COMPONENT_VALTYPE_LIST 13
#define WASMTIME_COMPONENT_VALTYPE_RECORD 14
#define WASMTIME_COMPONENT_VALTYPE_TUPLE 15
#define WASMTIME_COMPONENT_VALTYPE_VARIANT 16
#define WASMTIME_COMPONENT_VALTYPE_ENUM 17
#define WASMTIME_COMPONENT_VALTYPE_OPTION 18
#define WASMTIME_COMPONENT_VALTYPE_RESULT 19
#define WASMTIME_COMPONENT_VALTYPE_FLAGS 20
#define WASMTIME_COMPONENT_VALTYPE_OWN 21
#define WASMTIME_COMPONENT_VALTYPE_BORROW 22
typedef union wasmtime_component_valtype_union {
  wasmtime_component_list_type_t *list;
  wasmtime_component_record_type_t *record;
  wasmtime_component_tuple_type_t *tuple;
  wasmtime_component_variant_type_t *variant;
  wasmtime_component_enum_type_t *enum_;
  wasmtime_component_option_type_t *option;
  wasmtime_component_result_type_t *result;
  wasmtime_component_flags_type_t *flags;
  wasmtime_component_resource_type_t *own;
  wasmtime_component_resource_type_t *borrow;
} wasmtime_component_valtype_union_t;
typedef struct wasmtime_component_valtype_t {
  uint8_t kind;
  wasmtime_component_valtype_union_t of;
} wasmtime_component_valtype_t;
#endif

#ifndef WASMTIME_COMPONENT_TYPES_FUNC_H
typedef struct wasmtime_component_func_type_t wasmtime_component_func_type_t;
#endif
#ifndef WASMTIME_COMPONENT_TYPES_INSTANCE_H
typedef struct wasmtime_component_instance_type wasmtime_component_instance_type_t;
#endif

#ifndef WASMTIME_COMPONENT_TYPES_COMPONENT_H
typedef struct wasmtime_component_type_t wasmtime_component_type_t;
#define WASMTIME_COMPONENT_ITEM_COMPONENT 0
#define WASMTIME_COMPONENT_ITEM_COMPONENT_INSTANCE 1
#define WASMTIME_COMPONENT_ITEM_MODULE 2
#define WASMTIME_COMPONENT_ITEM_COMPONENT_FUNC 3
#define WASMTIME_COMPONENT_ITEM_RESOURCE 4
#define WASMTIME_COMPONENT_ITEM_CORE_FUNC 5
#define WASMTIME_COMPONENT_ITEM_TYPE 6
typedef union wasmtime_component_item_union {
  wasmtime_component_type_t *component;
  wasmtime_component_instance_type_t *component_instance;
  wasmtime_component_func_type_t *component_func;
  wasmtime_component_resource_type_t *resource;
  wasmtime_component_valtype_t type;
} wasmtime_component_item_union_t;
typedef struct wasmtime_component_item_t {
  uint8_t kind;
  wasmtime_component_item_union_t of;
} wasmtime_component_item_t;
#endif

#ifndef WASMTIME_COMPONENT_VAL_H
#define WASMTIME_COMPONENT_BOOL 0
#define WASMTIME_COMPONENT_S8 1
#define WASMTIME_COMPONENT_U8 2
#define WASMTIME_COMPONENT_S16 3
#define WASMTIME_COMPONENT_U16 4
#define WASMTIME_COMPONENT_S32 5
#define WASMTIME_COMPONENT_U32 6
#define WASMTIME_COMPONENT_S64 7
#define WASMTIME_COMPONENT_U64 8
#define WASMTIME_COMPONENT_F32 9
#define WASMTIME_COMPONENT_F64 10
#define WASMTIME_COMPONENT_CHAR 11
#define WASMTIME_COMPONENT_STRING 12
#define WASMTIME_COMPONENT_LIST 13
#define WASMTIME_COMPONENT_RECORD 14
#define WASMTIME_COMPONENT_TUPLE 15
#define WASMTIME_COMPONENT_VARIANT 16
#define WASMTIME_COMPONENT_ENUM 17
#define WASMTIME_COMPONENT_OPTION 18
#define WASMTIME_COMPONENT_RESULT 19
#define WASMTIME_COMPONENT_FLAGS 20
#define WASMTIME_COMPONENT_RESOURCE 21
typedef struct wasmtime_component_resource_any wasmtime_component_resource_any_t;
typedef struct wasmtime_component_resource_host wasmtime_component_resource_host_t;
struct wasmtime_component_val;
struct wasmtime_component_valrecord_entry;
typedef struct wasmtime_component_vallist {
  size_t size;
  struct wasmtime_component_val *data;
} wasmtime_component_vallist_t;
typedef struct wasmtime_component_valrecord {
  size_t size;
  struct wasmtime_component_valrecord_entry *data;
} wasmtime_component_valrecord_t;
typedef struct wasmtime_component_valtuple {
  size_t size;
  struct wasmtime_component_val *data;
} wasmtime_component_valtuple_t;
typedef struct wasmtime_component_valflags {
  size_t size;
  wasm_name_t *data;
} wasmtime_component_valflags_t;
typedef struct {
  wasm_name_t discriminant;
  struct wasmtime_component_val *val;
} wasmtime_component_valvariant_t;
typedef struct {
  bool is_ok;
  struct wasmtime_component_val *val;
} wasmtime_component_valresult_t;
typedef union {
  bool boolean;
  int8_t s8;
  uint8_t u8;
  int16_t s16;
  uint16_t u16;
  int32_t s32;
  uint32_t u32;
  int64_t s64;
  uint64_t u64;
  float f32;
  double f64;
  uint32_t character;
  wasm_name_t string;
  wasmtime_component_vallist_t list;
  wasmtime_component_valrecord_t record;
  wasmtime_component_valtuple_t tuple;
  wasmtime_component_valvariant_t variant;
  wasm_name_t enumeration;
  struct wasmtime_component_val *option;
  wasmtime_component_valresult_t result;
  wasmtime_component_valflags_t flags;
  wasmtime_component_resource_any_t *resource;
} wasmtime_component_valunion_t;
typedef struct wasmtime_component_val {
  uint8_t kind;
  wasmtime_component_valunion_t of;
} wasmtime_component_val_t;
typedef struct wasmtime_component_valrecord_entry {
  wasm_name_t name;
  wasmtime_component_val_t val;
} wasmtime_component_valrecord_entry_t;
#endif

#ifndef WASMTIME_COMPONENT_COMPONENT_H
typedef struct wasmtime_component_t wasmtime_component_t;
typedef struct wasmtime_component_export_index_t wasmtime_component_export_index_t;
#endif
#ifndef WASMTIME_COMPONENT_INSTANCE_H
typedef struct wasmtime_component_instance {
  uint64_t store_id;
  uint32_t __private;
} wasmtime_component_instance_t;
#endif
#ifndef WASMTIME_COMPONENT_FUNC_H
typedef struct wasmtime_component_func {
  struct {
    uint64_t store_id;
    uint32_t __private1;
  };
  uint32_t __private2;
} wasmtime_component_func_t;
#endif
#ifndef WASMTIME_COMPONENT_LINKER_H
typedef struct wasmtime_component_linker_t wasmtime_component_linker_t;
typedef struct wasmtime_component_linker_instance_t wasmtime_component_linker_instance_t;
typedef wasmtime_error_t *(*wasmtime_component_func_callback_t)(void *, wasmtime_context_t *, const wasmtime_component_func_type_t *,
                                                                wasmtime_component_val_t *, size_t, wasmtime_component_val_t *, size_t);
typedef wasmtime_error_t *(*wasmtime_component_resource_destructor_t)(void *, wasmtime_context_t *, uint32_t);
#endif

// Bytes and errors.
void wasm_byte_vec_new_uninitialized(wasm_byte_vec_t *, size_t);
void wasm_byte_vec_delete(wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_error_new(const char *);
void wasmtime_error_delete(wasmtime_error_t *);
void wasmtime_error_message(const wasmtime_error_t *, wasm_name_t *);

// Configuration and engine.
wasm_config_t *wasm_config_new(void);
wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *);
void wasm_engine_delete(wasm_engine_t *);
void wasmtime_engine_increment_epoch(wasm_engine_t *);
void wasmtime_config_wasm_component_model_set(wasm_config_t *, bool);
void wasmtime_config_concurrency_support_set(wasm_config_t *, bool);
void wasmtime_config_epoch_interruption_set(wasm_config_t *, bool);
void wasmtime_config_async_stack_size_set(wasm_config_t *, uint64_t);
void wasmtime_config_max_wasm_stack_set(wasm_config_t *, size_t);
void wasmtime_config_wasm_threads_set(wasm_config_t *, bool);
void wasmtime_config_wasm_memory64_set(wasm_config_t *, bool);
void wasmtime_config_wasm_multi_memory_set(wasm_config_t *, bool);
void wasmtime_config_wasm_function_references_set(wasm_config_t *, bool);
void wasmtime_config_wasm_gc_set(wasm_config_t *, bool);
void wasmtime_config_gc_support_set(wasm_config_t *, bool);
void wasmtime_config_wasm_exceptions_set(wasm_config_t *, bool);
void wasmtime_config_wasm_stack_switching_set(wasm_config_t *, bool);
void wasmtime_config_wasm_wide_arithmetic_set(wasm_config_t *, bool);
void wasmtime_config_wasm_custom_page_sizes_set(wasm_config_t *, bool);
void wasmtime_config_parallel_compilation_set(wasm_config_t *, bool);
void wasmtime_config_native_unwind_info_set(wasm_config_t *, bool);
void wasmtime_config_wasm_relaxed_simd_set(wasm_config_t *, bool);
void wasmtime_config_cranelift_nan_canonicalization_set(wasm_config_t *, bool);
wasmtime_pooling_allocation_config_t *wasmtime_pooling_allocation_config_new();
void wasmtime_pooling_allocation_config_delete(wasmtime_pooling_allocation_config_t *);
void wasmtime_pooling_allocation_config_max_unused_warm_slots_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(wasmtime_pooling_allocation_config_t *, size_t);
void wasmtime_pooling_allocation_config_table_keep_resident_set(wasmtime_pooling_allocation_config_t *, size_t);
void wasmtime_pooling_allocation_config_total_component_instances_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_total_core_instances_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_total_stacks_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_total_memories_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_total_tables_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_max_core_instances_per_component_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_max_memories_per_component_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_max_tables_per_component_set(wasmtime_pooling_allocation_config_t *, uint32_t);
void wasmtime_pooling_allocation_config_max_memory_size_set(wasmtime_pooling_allocation_config_t *, size_t);
void wasmtime_pooling_allocation_config_table_elements_set(wasmtime_pooling_allocation_config_t *, size_t);
void wasmtime_pooling_allocation_strategy_set(wasm_config_t *, const wasmtime_pooling_allocation_config_t *);

// Core modules, which components may import.
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_serialize(wasmtime_module_t *, wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_module_deserialize_file(wasm_engine_t *, const char *, wasmtime_module_t **);
void wasmtime_module_delete(wasmtime_module_t *);

// Components and their types.
wasmtime_error_t *wasmtime_component_new(const wasm_engine_t *, const uint8_t *, size_t, wasmtime_component_t **);
wasmtime_error_t *wasmtime_component_serialize(const wasmtime_component_t *, wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_component_deserialize(const wasm_engine_t *, const uint8_t *, size_t, wasmtime_component_t **);
wasmtime_error_t *wasmtime_component_deserialize_file(const wasm_engine_t *, const char *, wasmtime_component_t **);
void wasmtime_component_delete(wasmtime_component_t *);
wasmtime_component_export_index_t *wasmtime_component_get_export_index(const wasmtime_component_t *, const wasmtime_component_export_index_t *,
                                                                       const char *, size_t);
void wasmtime_component_export_index_delete(wasmtime_component_export_index_t *);
wasmtime_component_type_t *wasmtime_component_type(const wasmtime_component_t *);
void wasmtime_component_type_delete(wasmtime_component_type_t *);
size_t wasmtime_component_type_import_count(const wasmtime_component_type_t *, const wasm_engine_t *);
bool wasmtime_component_type_import_nth(const wasmtime_component_type_t *, const wasm_engine_t *, size_t, const char **, size_t *,
                                        struct wasmtime_component_item_t *);
size_t wasmtime_component_type_export_count(const wasmtime_component_type_t *, const wasm_engine_t *);
bool wasmtime_component_type_export_nth(const wasmtime_component_type_t *, const wasm_engine_t *, size_t, const char **, size_t *,
                                        struct wasmtime_component_item_t *);
void wasmtime_component_item_delete(wasmtime_component_item_t *);
size_t wasmtime_component_instance_type_export_count(const wasmtime_component_instance_type_t *, const wasm_engine_t *);
bool wasmtime_component_instance_type_export_nth(const wasmtime_component_instance_type_t *, const wasm_engine_t *, size_t, const char **,
                                                 size_t *, struct wasmtime_component_item_t *);
bool wasmtime_component_func_type_async(const wasmtime_component_func_type_t *);
size_t wasmtime_component_func_type_param_count(const wasmtime_component_func_type_t *);
bool wasmtime_component_func_type_param_nth(const wasmtime_component_func_type_t *, size_t, const char **, size_t *,
                                            wasmtime_component_valtype_t *);
bool wasmtime_component_func_type_result(const wasmtime_component_func_type_t *, wasmtime_component_valtype_t *);
void wasmtime_component_valtype_delete(wasmtime_component_valtype_t *);
void wasmtime_component_list_type_element(const wasmtime_component_list_type_t *, struct wasmtime_component_valtype_t *);
size_t wasmtime_component_record_type_field_count(const wasmtime_component_record_type_t *);
bool wasmtime_component_record_type_field_nth(const wasmtime_component_record_type_t *, size_t, const char **, size_t *,
                                              struct wasmtime_component_valtype_t *);
size_t wasmtime_component_tuple_type_types_count(const wasmtime_component_tuple_type_t *);
bool wasmtime_component_tuple_type_types_nth(const wasmtime_component_tuple_type_t *, size_t, struct wasmtime_component_valtype_t *);
size_t wasmtime_component_variant_type_case_count(const wasmtime_component_variant_type_t *);
bool wasmtime_component_variant_type_case_nth(const wasmtime_component_variant_type_t *, size_t, const char **, size_t *, bool *,
                                              struct wasmtime_component_valtype_t *);
size_t wasmtime_component_enum_type_names_count(const wasmtime_component_enum_type_t *);
bool wasmtime_component_enum_type_names_nth(const wasmtime_component_enum_type_t *, size_t, const char **, size_t *);
void wasmtime_component_option_type_ty(const wasmtime_component_option_type_t *, struct wasmtime_component_valtype_t *);
bool wasmtime_component_result_type_ok(const wasmtime_component_result_type_t *, struct wasmtime_component_valtype_t *);
bool wasmtime_component_result_type_err(const wasmtime_component_result_type_t *, struct wasmtime_component_valtype_t *);
size_t wasmtime_component_flags_type_names_count(const wasmtime_component_flags_type_t *);
bool wasmtime_component_flags_type_names_nth(const wasmtime_component_flags_type_t *, size_t, const char **, size_t *);
wasmtime_component_resource_type_t *wasmtime_component_resource_type_new_host(uint32_t);
wasmtime_component_resource_type_t *wasmtime_component_resource_type_clone(const wasmtime_component_resource_type_t *);
bool wasmtime_component_resource_type_equal(const wasmtime_component_resource_type_t *, const wasmtime_component_resource_type_t *);
void wasmtime_component_resource_type_delete(wasmtime_component_resource_type_t *);

// Linking.
wasmtime_component_linker_t *wasmtime_component_linker_new(const wasm_engine_t *);
void wasmtime_component_linker_delete(wasmtime_component_linker_t *);
wasmtime_component_linker_instance_t *wasmtime_component_linker_root(wasmtime_component_linker_t *);
void wasmtime_component_linker_instance_delete(wasmtime_component_linker_instance_t *);
wasmtime_error_t *wasmtime_component_linker_instance_add_instance(wasmtime_component_linker_instance_t *, const char *, size_t,
                                                                  wasmtime_component_linker_instance_t **);
wasmtime_error_t *wasmtime_component_linker_instance_add_module(wasmtime_component_linker_instance_t *, const char *, size_t,
                                                                const wasmtime_module_t *);
wasmtime_error_t *wasmtime_component_linker_instance_add_func(wasmtime_component_linker_instance_t *, const char *, size_t,
                                                              wasmtime_component_func_callback_t, void *, void (*)(void *));
wasmtime_error_t *wasmtime_component_linker_instance_add_resource(wasmtime_component_linker_instance_t *, const char *, size_t,
                                                                  const wasmtime_component_resource_type_t *,
                                                                  wasmtime_component_resource_destructor_t, void *, void (*)(void *));
wasmtime_error_t *wasmtime_component_linker_instantiate(const wasmtime_component_linker_t *, wasmtime_context_t *,
                                                        const wasmtime_component_t *, wasmtime_component_instance_t *);

// Stores, instances and calls.
wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *, void (*)(void *));
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
void wasmtime_store_limiter(wasmtime_store_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
void wasmtime_store_delete(wasmtime_store_t *);
void *wasmtime_context_get_data(const wasmtime_context_t *);
void wasmtime_context_set_epoch_deadline(wasmtime_context_t *, uint64_t);
void wasmtime_store_epoch_deadline_callback(wasmtime_store_t *,
                                            wasmtime_error_t *(*)(wasmtime_context_t *, void *, uint64_t *, wasmtime_update_deadline_kind_t *),
                                            void *, void (*)(void *));
bool wasmtime_component_instance_get_func(const wasmtime_component_instance_t *, wasmtime_context_t *,
                                          const wasmtime_component_export_index_t *, wasmtime_component_func_t *);
wasmtime_error_t *wasmtime_component_func_call(const wasmtime_component_func_t *, wasmtime_context_t *, const wasmtime_component_val_t *, size_t,
                                               wasmtime_component_val_t *, size_t);

// Values.
void wasmtime_component_vallist_new_uninit(wasmtime_component_vallist_t *, size_t);
void wasmtime_component_valrecord_new_uninit(wasmtime_component_valrecord_t *, size_t);
void wasmtime_component_valtuple_new_uninit(wasmtime_component_valtuple_t *, size_t);
void wasmtime_component_valflags_new_uninit(wasmtime_component_valflags_t *, size_t);
wasmtime_component_val_t *wasmtime_component_val_new(wasmtime_component_val_t *);
void wasmtime_component_val_delete(wasmtime_component_val_t *);
wasmtime_component_resource_host_t *wasmtime_component_resource_host_new(bool, uint32_t, uint32_t);
uint32_t wasmtime_component_resource_host_rep(const wasmtime_component_resource_host_t *);
uint32_t wasmtime_component_resource_host_type(const wasmtime_component_resource_host_t *);
void wasmtime_component_resource_host_delete(wasmtime_component_resource_host_t *);
wasmtime_error_t *wasmtime_component_resource_any_to_host(wasmtime_context_t *, const wasmtime_component_resource_any_t *,
                                                          wasmtime_component_resource_host_t **);
wasmtime_error_t *wasmtime_component_resource_host_to_any(wasmtime_context_t *, const wasmtime_component_resource_host_t *,
                                                          wasmtime_component_resource_any_t **);
wasmtime_error_t *wasmtime_component_resource_any_drop(wasmtime_context_t *, const wasmtime_component_resource_any_t *);
void wasmtime_component_resource_any_delete(wasmtime_component_resource_any_t *);

#endif
