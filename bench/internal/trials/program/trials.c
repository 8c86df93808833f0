// Trials in C, straight over wasmtime's C API: what a call and a start cost where there is no host around them.
//
//   trials prototype DIR          call a tool in a fresh instance of the prototype; two numbers a trial: until the result
//                                 is there, and until the instance is dropped too
//   trials instantiate DIR NAME   start an instance of DIR/component.wasm, which imports DIR/engine.wasm as NAME; two
//                                 numbers a trial: until it is there, and until it is dropped
//   trials serve DIR NAME         call the tool "tool" in a fresh instance of the same, for each request of bench/contenders;
//                                 an answer begins with the nanoseconds until the result is there, eight bytes
//
// For the first two, each line of input is a number of trials; each trial answers with a line of nanoseconds.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wasm.h>
#include <wasmtime.h>
#include <wasmtime/component.h>

static const char *directory;

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void check(const char *what, wasmtime_error_t *error) {
  if (!error) return;
  wasm_name_t message;
  wasmtime_error_message(error, &message);
  fprintf(stderr, "%s: %.*s\n", what, (int)message.size, message.data);
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static wasm_byte_vec_t contents(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END)) fail(path);
  long size = ftell(f);
  rewind(f);
  wasm_byte_vec_t v;
  wasm_byte_vec_new_uninitialized(&v, (size_t)size);
  if (fread(v.data, 1, v.size, f) != v.size) fail(path);
  fclose(f);
  return v;
}

static wasmtime_module_t *module_in(wasm_engine_t *engine, const char *name) {
  wasm_byte_vec_t wasm = contents(name);
  wasmtime_module_t *m;
  check(name, wasmtime_module_new(engine, (uint8_t *)wasm.data, wasm.size, &m));
  wasm_byte_vec_delete(&wasm);
  return m;
}

static wasmtime_component_t *component_in(wasm_engine_t *engine, const char *name) {
  wasm_byte_vec_t wasm = contents(name);
  wasmtime_component_t *c;
  check(name, wasmtime_component_new(engine, (uint8_t *)wasm.data, wasm.size, &c));
  wasm_byte_vec_delete(&wasm);
  return c;
}

// new_engine adds what both have to a configuration: the pooling allocator with memory kept resident.
static wasm_engine_t *new_engine(wasm_config_t *c, uint32_t core_instances, uint32_t tables, uint32_t warm) {
  enum { instances = 1000 };
  wasmtime_config_wasm_component_model_set(c, true);
  wasmtime_config_epoch_interruption_set(c, true);
  wasmtime_pooling_allocation_config_t *p = wasmtime_pooling_allocation_config_new();
  wasmtime_pooling_allocation_config_total_component_instances_set(p, instances);
  wasmtime_pooling_allocation_config_total_core_instances_set(p, instances * core_instances);
  wasmtime_pooling_allocation_config_total_memories_set(p, instances);
  wasmtime_pooling_allocation_config_total_tables_set(p, instances * tables);
  wasmtime_pooling_allocation_config_max_memory_size_set(p, 64 << 20);
  wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(p, 2 << 20);
  wasmtime_pooling_allocation_config_table_keep_resident_set(p, 65536);
  wasmtime_pooling_allocation_config_max_unused_warm_slots_set(p, warm);
  wasmtime_pooling_allocation_strategy_set(c, p);
  wasmtime_pooling_allocation_config_delete(p);
  return wasm_engine_new_with_config(c);
}

static wasmtime_error_t *nothing(void *data, wasmtime_context_t *context, const wasmtime_component_func_type_t *type,
                                 wasmtime_component_val_t *args, size_t nargs, wasmtime_component_val_t *results, size_t nresults) {
  (void)data, (void)context, (void)type, (void)args, (void)nargs, (void)results, (void)nresults;
  return NULL;
}

static wasmtime_error_t *dropped(void *data, wasmtime_context_t *context, uint32_t rep) {
  (void)data, (void)context, (void)rep;
  return NULL;
}

// The prototype: a component with one export, call(tool, input) -> string, and one import, log(string).
static wasm_engine_t *engine;
static wasmtime_component_linker_t *linker;
static wasmtime_component_t *component;
static wasmtime_component_export_index_t *call_index;

static void prototype_start(void) {
  engine = new_engine(wasm_config_new(), 15, 7, 1000);
  linker = wasmtime_component_linker_new(engine);
  wasmtime_component_linker_instance_t *root = wasmtime_component_linker_root(linker);
  wasmtime_module_t *m = module_in(engine, "prototype-engine.wasm");
  check("engine", wasmtime_component_linker_instance_add_module(root, "engine", 6, m));
  check("log", wasmtime_component_linker_instance_add_func(root, "log", 3, nothing, NULL, NULL));
  wasmtime_component_linker_instance_delete(root);
  component = component_in(engine, "prototype.wasm");
  call_index = wasmtime_component_get_export_index(component, NULL, "call", 4);
}

static void set_string(wasmtime_component_val_t *v, const char *s) {
  v->kind = WASMTIME_COMPONENT_STRING;
  wasm_byte_vec_new(&v->of.string, strlen(s), s);
}

static void prototype_trial(uint64_t ns[2]) {
  static const char want[] = "{\"ok\":{\"km\":343.556";
  uint64_t start = now();
  wasmtime_store_t *store = wasmtime_store_new(engine, NULL, NULL);
  wasmtime_context_t *context = wasmtime_store_context(store);
  wasmtime_context_set_epoch_deadline(context, 10);
  wasmtime_component_instance_t instance;
  check("instantiate", wasmtime_component_linker_instantiate(linker, context, component, &instance));
  wasmtime_component_func_t func;
  if (!wasmtime_component_instance_get_func(&instance, context, call_index, &func)) fail("no function call");
  wasmtime_component_val_t args[2], result = {0};
  set_string(&args[0], "haversine");
  set_string(&args[1], "{\"lat1\":48.8566,\"lon1\":2.3522,\"lat2\":51.5074,\"lon2\":-0.1278}");
  check("call", wasmtime_component_func_call(&func, context, args, 2, &result, 1));
  ns[0] = now() - start;
  if (result.of.string.size < sizeof want || memcmp(result.of.string.data, want, sizeof want - 1)) fail("a wrong answer");
  wasmtime_component_val_delete(&result);
  wasmtime_component_val_delete(&args[0]);
  wasmtime_component_val_delete(&args[1]);
  wasmtime_store_delete(store);
  ns[1] = now() - start;
}

// The loop: the same engine, limits and imports as the host's, but every import does nothing.
static wasmtime_error_t *go_on(wasmtime_context_t *context, void *data, uint64_t *delta, wasmtime_update_deadline_kind_t *kind) {
  (void)context, (void)data;
  *delta = 1;
  *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return NULL;
}

// resource_number is the same for all resources of a name: interfaces that use another's resource keep its name.
static uint32_t resource_number(const char *name, size_t len) {
  static char known[64][64];
  for (uint32_t i = 0; i < 64; i++) {
    if (!known[i][0] && len < sizeof known[i]) memcpy(known[i], name, len);
    if (strlen(known[i]) == len && !memcmp(known[i], name, len)) return i + 1;
  }
  fail("too many resources");
  return 0;
}

static void define(wasmtime_component_linker_instance_t *instance, const char *name, size_t len, wasmtime_component_item_t *item) {
  if (item->kind == WASMTIME_COMPONENT_ITEM_COMPONENT_FUNC)
    check(name, wasmtime_component_linker_instance_add_func(instance, name, len, nothing, NULL, NULL));
  if (item->kind == WASMTIME_COMPONENT_ITEM_RESOURCE) {
    wasmtime_component_resource_type_t *t = wasmtime_component_resource_type_new_host(resource_number(name, len));
    check(name, wasmtime_component_linker_instance_add_resource(instance, name, len, t, dropped, NULL, NULL));
    wasmtime_component_resource_type_delete(t);
  }
}

static void instantiate_start(const char *engine_name) {
  wasm_config_t *c = wasm_config_new();
  wasmtime_config_concurrency_support_set(c, false);
  wasmtime_config_max_wasm_stack_set(c, 1 << 20);
  wasmtime_config_wasm_threads_set(c, false);
  wasmtime_config_wasm_memory64_set(c, false);
  wasmtime_config_wasm_relaxed_simd_deterministic_set(c, true);
  wasmtime_config_cranelift_nan_canonicalization_set(c, true);
  engine = new_engine(c, 12, 4, 64);
  linker = wasmtime_component_linker_new(engine);
  component = component_in(engine, "component.wasm");
  wasmtime_component_linker_instance_t *root = wasmtime_component_linker_root(linker);
  wasmtime_module_t *m = module_in(engine, "engine.wasm");
  check("engine", wasmtime_component_linker_instance_add_module(root, engine_name, strlen(engine_name), m));
  wasmtime_component_type_t *type = wasmtime_component_type(component);
  for (size_t i = 0, n = wasmtime_component_type_import_count(type, engine); i < n; i++) {
    const char *name;
    size_t len;
    wasmtime_component_item_t item;
    if (!wasmtime_component_type_import_nth(type, engine, i, &name, &len, &item)) fail("no import");
    if (item.kind == WASMTIME_COMPONENT_ITEM_COMPONENT_INSTANCE) {
      wasmtime_component_linker_instance_t *instance;
      check("import", wasmtime_component_linker_instance_add_instance(root, name, len, &instance));
      wasmtime_component_instance_type_t *t = item.of.component_instance;
      for (size_t k = 0, count = wasmtime_component_instance_type_export_count(t, engine); k < count; k++) {
        wasmtime_component_item_t inner;
        if (!wasmtime_component_instance_type_export_nth(t, engine, k, &name, &len, &inner)) fail("no export");
        define(instance, name, len, &inner);
        wasmtime_component_item_delete(&inner);
      }
      wasmtime_component_linker_instance_delete(instance);
    }
    wasmtime_component_item_delete(&item);
  }
  wasmtime_component_type_delete(type);
  wasmtime_component_linker_instance_delete(root);
}

static wasmtime_store_t *new_store(void) {
  wasmtime_store_t *store = wasmtime_store_new(engine, NULL, NULL);
  wasmtime_store_limiter(store, 64 << 20, 100000, 24, 16, 4);
  wasmtime_store_epoch_deadline_callback(store, go_on, NULL, NULL);
  wasmtime_context_set_epoch_deadline(wasmtime_store_context(store), 1);
  return store;
}

static void instantiate_trial(uint64_t ns[2]) {
  uint64_t start = now();
  wasmtime_store_t *store = new_store();
  wasmtime_context_t *context = wasmtime_store_context(store);
  wasmtime_component_instance_t instance;
  check("instantiate", wasmtime_component_linker_instantiate(linker, context, component, &instance));
  ns[0] = now() - start;
  wasmtime_store_delete(store);
  ns[1] = now() - start;
}

// The call: the same instances, asked by frames that bench/contenders/driver.go describes.
static void find_tools(void) {
  static const char tools[] = "stile:extension/tools@0.1.0";
  wasmtime_component_export_index_t *instance = wasmtime_component_get_export_index(component, NULL, tools, sizeof tools - 1);
  if (!instance) fail("no tools");
  call_index = wasmtime_component_get_export_index(component, instance, "call", 4);
}

static void answer(uint32_t id, uint64_t ns, const wasmtime_component_val_t *text) {
  const uint32_t head[] = {id, (uint32_t)(sizeof ns + text->of.string.size)}, gone[] = {id, 0};
  fwrite(head, sizeof head, 1, stdout);
  fwrite(&ns, sizeof ns, 1, stdout);
  fwrite(text->of.string.data, 1, text->of.string.size, stdout);
  fwrite(gone, sizeof gone, 1, stdout);
  fflush(stdout);
}

static void call_trial(uint32_t id, const char *input) {
  uint64_t start = now();
  wasmtime_store_t *store = new_store();
  wasmtime_context_t *context = wasmtime_store_context(store);
  wasmtime_component_instance_t instance;
  check("instantiate", wasmtime_component_linker_instantiate(linker, context, component, &instance));
  wasmtime_component_func_t func;
  if (!wasmtime_component_instance_get_func(&instance, context, call_index, &func)) fail("no function call");
  wasmtime_component_val_t args[3], result = {0};
  set_string(&args[0], "tool");
  set_string(&args[1], input);
  wasmtime_component_resource_host_t *env = wasmtime_component_resource_host_new(true, 1, resource_number("env", 3));
  args[2].kind = WASMTIME_COMPONENT_RESOURCE;
  check("env", wasmtime_component_resource_host_to_any(context, env, &args[2].of.resource));
  check("call", wasmtime_component_func_call(&func, context, args, 3, &result, 1));
  uint64_t ns = now() - start;
  if (!result.of.result.is_ok) fail("the tool failed");
  for (int i = 0; i < 3; i++) wasmtime_component_val_delete(&args[i]);
  wasmtime_component_resource_host_delete(env);
  wasmtime_store_delete(store);
  answer(id, ns, result.of.result.val);
  wasmtime_component_val_delete(&result);
}

static void serve(void) {
  find_tools();
  uint32_t head[4]; // id, kept, lengths of source and input
  static char source[1 << 16], input[1 << 16];
  while (fread(head, sizeof head, 1, stdin) == 1) {
    if (head[2] >= sizeof source || head[3] >= sizeof input) fail("too long");
    if (fread(source, 1, head[2], stdin) != head[2] || fread(input, 1, head[3], stdin) != head[3]) fail("cut short");
    input[head[3]] = 0;
    call_trial(head[0], input);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) fail("usage: trials prototype DIR | trials instantiate DIR NAME | trials serve DIR NAME");
  directory = argv[2];
  void (*trial)(uint64_t[2]) = prototype_trial;
  if (!strcmp(argv[1], "prototype")) {
    prototype_start();
  } else if (argc > 3) {
    instantiate_start(argv[3]);
    trial = instantiate_trial;
  }
  if (!strcmp(argv[1], "serve")) {
    serve();
    return 0;
  }
  static uint64_t ns[100000][2];
  int count;
  while (scanf("%d", &count) == 1 && count >= 0 && count <= 100000) {
    for (int i = 0; i < count; i++) trial(ns[i]);
    for (int i = 0; i < count; i++) printf("%" PRIu64 " %" PRIu64 "\n", ns[i][0], ns[i][1]);
    fflush(stdout);
  }
  return 0;
}
