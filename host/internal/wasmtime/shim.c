#define _GNU_SOURCE // for pthread_getattr_np
#include "shim.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include "_cgo_export.h"

static uint64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static stile_thread this_thread(void) {
#ifdef __APPLE__
  return pthread_mach_thread_np(pthread_self());
#else
  clockid_t clock;
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : CLOCK_THREAD_CPUTIME_ID;
#endif
}

// thread_time is the processor time of a thread that lives, whoever asks.
static uint64_t thread_time(stile_thread thread) {
#ifdef __APPLE__
  thread_basic_info_data_t info;
  mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
  if (thread_info(thread, THREAD_BASIC_INFO, (thread_info_t)&info, &count) != KERN_SUCCESS) return 0;
  return ((uint64_t)info.user_time.seconds + (uint64_t)info.system_time.seconds) * 1000000000u +
         ((uint64_t)info.user_time.microseconds + (uint64_t)info.system_time.microseconds) * 1000u;
#else
  return now(thread);
#endif
}

// thread_stack is the size of this thread's stack, and *lowest its lowest address. It is 0 if that is not known.
static size_t thread_stack(char **lowest) {
#ifdef __APPLE__
  size_t size = pthread_get_stacksize_np(pthread_self());
  *lowest = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
  return size;
#else
  static __thread char *known;
  static __thread size_t size;
  pthread_attr_t attr;
  void *at;
  if (!known && pthread_getattr_np(pthread_self(), &attr) == 0) {
    if (pthread_attr_getstack(&attr, &at, &size) == 0) known = at;
    pthread_attr_destroy(&attr);
  }
  *lowest = known;
  return known ? size : 0;
#endif
}

static size_t guest_stack = STILE_STACK_LEAST;

// measure_stack finds what the threads of this process have: those that are made, and this one, which may be the first.
static void measure_stack(void) {
  char *lowest;
  size_t size = thread_stack(&lowest);
#ifndef __APPLE__
  pthread_attr_t attr;
  size_t made;
  if (pthread_attr_init(&attr) == 0) {
    if (pthread_attr_getstacksize(&attr, &made) == 0 && made < size) size = made;
    pthread_attr_destroy(&attr);
  }
#endif
  size_t host = 3 * STILE_STACK_HOST;
  if (size > host + STILE_STACK_LEAST) guest_stack = size - host < STILE_STACK ? size - host : STILE_STACK;
}

size_t stile_guest_stack(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, measure_stack);
  return guest_stack;
}

// has_stack reports whether this thread has room for a guest. It has not where a guest far down its own stack started a call that the host
// makes on the same thread.
static bool has_stack(void) {
  char *lowest, here;
  if (thread_stack(&lowest) == 0) return true;
  return &here > lowest && (size_t)(&here - lowest) >= guest_stack + STILE_STACK_HOST;
}

// give_back returns the pages to the system that a guest far down this thread's stack has left there. Such a guest has left addresses and values
// where they begin, and there are zeros otherwise. To give back without looking takes 2.5 us, a twentieth of a call.
static void give_back(void) {
#ifdef __linux__
  char *lowest, here;
  if (thread_stack(&lowest) == 0) return;
  uintptr_t first = ((uintptr_t)lowest + 4095) & ~(uintptr_t)4095, end = ((uintptr_t)&here - STILE_STACK_KEPT) & ~(uintptr_t)4095;
  if (end < first + STILE_STACK_LOOK || end >= (uintptr_t)&here) return;
  const uint64_t *word = (const uint64_t *)(end - STILE_STACK_LOOK);
  uint64_t left = 0;
  for (int i = 0; i < STILE_STACK_LOOK / 8; i++) left |= word[i];
  if (left) madvise((void *)first, end - first, MADV_DONTNEED);
#endif
}

// reset_written_pages has the pool restore the pages that an instance has written to and no others, where the kernel can tell
// them (Linux 6.7). wasmtime calls that pagemap_scan; it is off by default, and the C API has no setter for it. Its byte is the
// second after a field that has one. In a struct that looks otherwise nothing is changed.
static void reset_written_pages(wasmtime_pooling_allocation_config_t *p) {
  enum { SIZE = 136, ON_IF_AVAILABLE = 0, OFF = 2 };
  const uint32_t mark = 0x5ca11ed5;
  unsigned char *bytes = (unsigned char *)p;
  wasmtime_pooling_allocation_config_max_unused_warm_slots_set(p, mark);
  for (size_t at = 0; at + sizeof mark + 4 <= SIZE; at += sizeof mark) {
    unsigned char *next = bytes + at + sizeof mark; // memory_protection_keys, pagemap_scan
    if (memcmp(bytes + at, &mark, sizeof mark) == 0 && next[0] == OFF && next[1] == OFF) next[1] = ON_IF_AVAILABLE;
  }
}

// new_config has everything that compiled code depends on, so code of one engine is accepted by another. What components of known
// toolchains do not use is off, and so costs nothing to bound: garbage collection brings maps of the stack, exceptions bring tables.
static wasm_config_t *new_config(bool parallel) {
  wasm_config_t *c = wasm_config_new();
  wasmtime_config_wasm_component_model_set(c, true);
  wasmtime_config_concurrency_support_set(c, false);
  wasmtime_config_epoch_interruption_set(c, true);
  wasmtime_config_wasm_threads_set(c, false);
  wasmtime_config_wasm_memory64_set(c, false);
  wasmtime_config_wasm_multi_memory_set(c, false);
  wasmtime_config_wasm_function_references_set(c, false);
  wasmtime_config_wasm_gc_set(c, false);
  wasmtime_config_gc_support_set(c, false);
  wasmtime_config_wasm_exceptions_set(c, false);
  wasmtime_config_wasm_stack_switching_set(c, false);
  wasmtime_config_wasm_wide_arithmetic_set(c, false);
  wasmtime_config_wasm_custom_page_sizes_set(c, false);
  // A call is a function of its inputs: no bits of NaN and no choice of instruction may show the machine.
  wasmtime_config_wasm_relaxed_simd_set(c, false);
  wasmtime_config_cranelift_nan_canonicalization_set(c, true);
  wasmtime_config_async_stack_size_set(c, STILE_STACK + STILE_STACK_HOST); // unused; the next may not be larger
  wasmtime_config_max_wasm_stack_set(c, stile_guest_stack());
  wasmtime_config_parallel_compilation_set(c, parallel);
  // Stacks are walked by frame pointers. These tables, for debuggers and profilers, are a tenth of the time of a compilation.
  wasmtime_config_native_unwind_info_set(c, false);
  return c;
}

wasm_engine_t *stile_compiler_new(void) { return wasm_engine_new_with_config(new_config(true)); }

// has_space reports in errno, too, whether this process can reserve so much address space now.
static bool has_space(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, bytes);
  return true;
}

wasm_engine_t *stile_engine_new(stile_pool pool) {
  // wasmtime ends the process if it cannot reserve the pool.
  if (!has_space(pool.space)) return NULL;
#ifdef __GLIBC__
  // Converting a list takes many megabytes for a moment. Left to itself, glibc comes to serve such sizes from arenas, which
  // fragment and keep them: 450 MB instead of 60 after a few thousand calls.
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);
#endif
  // A trivial component shall not wait for the threads that compile a large one.
  wasm_config_t *c = new_config(false);
  wasmtime_pooling_allocation_config_t *p = wasmtime_pooling_allocation_config_new();
  wasmtime_pooling_allocation_config_total_component_instances_set(p, pool.instances);
  wasmtime_pooling_allocation_config_total_core_instances_set(p, pool.instances * pool.core_instances);
  wasmtime_pooling_allocation_config_total_stacks_set(p, 1); // none is used; each takes a system call when the engine starts
  wasmtime_pooling_allocation_config_total_memories_set(p, pool.instances * pool.memories);
  wasmtime_pooling_allocation_config_total_tables_set(p, pool.instances * pool.tables);
  wasmtime_pooling_allocation_config_max_core_instances_per_component_set(p, pool.core_instances);
  wasmtime_pooling_allocation_config_max_memories_per_component_set(p, pool.memories);
  wasmtime_pooling_allocation_config_max_tables_per_component_set(p, pool.tables);
  wasmtime_pooling_allocation_config_max_memory_size_set(p, pool.max_memory);
  wasmtime_pooling_allocation_config_table_elements_set(p, pool.table_elements);
  wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(p, pool.keep_resident);
  wasmtime_pooling_allocation_config_table_keep_resident_set(p, 65536);
  reset_written_pages(p);
  wasmtime_pooling_allocation_config_max_unused_warm_slots_set(p, pool.warm_slots);
  wasmtime_pooling_allocation_strategy_set(c, p);
  wasmtime_pooling_allocation_config_delete(p);
  return wasm_engine_new_with_config(c);
}

long stile_max_maps(void) {
  long maps = 0;
  FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
  if (!f) return 0;
  if (fscanf(f, "%ld", &maps) != 1) maps = 0;
  fclose(f);
  return maps;
}

// elapsed is the thread time of the running call. Of one that took less than a tick it is the time it took, which is no system call.
static uint64_t elapsed(const stile_state *s) {
  uint64_t t = now(CLOCK_MONOTONIC) - s->wall_start;
  return t < STILE_TICK ? t : thread_time(s->thread) - s->cpu_start;
}

// charge charges the budgets for the time that the store has used in all, and reports whether one of them is spent.
static int charge(stile_state *s, uint64_t used) {
  uint64_t more = used > s->cpu_charged ? used - s->cpu_charged : 0;
  int spent = 0;
  s->cpu_charged += more;
  for (stile_budget *b = s->budget; b; b = b->outer) spent |= __atomic_add_fetch(&b->used, more, __ATOMIC_RELAXED) >= b->limit;
  return spent;
}

// spent reports whether one of the budgets is.
static int spent(const stile_state *s) {
  for (const stile_budget *b = s->budget; b; b = b->outer)
    if (__atomic_load_n(&b->used, __ATOMIC_RELAXED) >= b->limit) return 1;
  return 0;
}

// on_epoch runs at every tick of the engine's epoch while the guest runs. What the guest has used counts before others get its turn. One
// instruction can fill 64 MiB: if many stores of one budget did that and were charged when they go on, each would have done it.
static wasmtime_error_t *on_epoch(wasmtime_context_t *context, void *data, uint64_t *delta, wasmtime_update_deadline_kind_t *kind) {
  (void)context;
  stile_state *s = data;
  uint64_t time = thread_time(s->thread);
  int over = charge(s, s->cpu_used + (time - s->cpu_start));
  if (!over && (s->converting == STILE_GIVING || __atomic_load_n(s->waiting, __ATOMIC_RELAXED) > 0)) {
    goYield(s->handle);
    over = spent(s);
  }
  // The engine holds the value as long as the guest makes room for it.
  if (s->converting == STILE_RECEIVING && s->receiving == 0) s->receiving = time;
  if (atomic_load_explicit(&s->cancelled, memory_order_relaxed))
    s->ended = STILE_CANCELLED;
  else if (over)
    s->ended = STILE_CPU;
  else if (s->converting == STILE_RECEIVING && time - s->receiving > STILE_RECEIVE)
    s->ended = STILE_LATE;
  if (s->ended) return wasmtime_error_new("ended");
  *delta = 1;
  *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return NULL;
}

wasmtime_store_t *stile_store_new(wasm_engine_t *engine, stile_state *state, int64_t memory, int64_t table_elements, int64_t instances,
                                  int64_t tables, int64_t memories) {
  wasmtime_store_t *store = wasmtime_store_new(engine, state, NULL);
  wasmtime_store_limiter(store, memory, table_elements, instances, tables, memories);
  wasmtime_store_epoch_deadline_callback(store, on_epoch, state, NULL);
  return store;
}

// begin starts the clock. If nothing is left, it returns an error, and the guest must not be entered.
static wasmtime_error_t *begin(wasmtime_context_t *context, stile_state *state) {
  if (spent(state)) {
    state->ended = STILE_CPU;
    return wasmtime_error_new("ended");
  }
  if (!has_stack()) return wasmtime_error_new("wasm trap: call stack exhausted");
  stile_thread thread = this_thread();
  uint64_t wall = now(CLOCK_MONOTONIC);
  if (state->instantiated && thread == state->thread && wall - state->wall_start < STILE_TICK) {
    // The first call goes on with the time of the instantiation, which saves a system call.
    state->cpu_used = state->cpu_before;
  } else {
    state->wall_start = wall;
    state->thread = thread;
    state->cpu_start = thread_time(thread);
    state->cpu_before = state->cpu_used;
  }
  state->instantiated = 0;
  wasmtime_context_set_epoch_deadline(context, 1);
  return NULL;
}

static void end(stile_state *state) {
  state->cpu_used += elapsed(state);
  charge(state, state->cpu_used);
}

wasmtime_error_t *stile_instantiate(wasmtime_component_linker_t *linker, wasmtime_context_t *context, wasmtime_component_t *component,
                                    stile_state *state, wasmtime_component_instance_t *instance) {
  wasmtime_error_t *error = begin(context, state);
  if (error) return error;
  error = wasmtime_component_linker_instantiate(linker, context, component, instance);
  end(state);
  state->instantiated = 1;
  return error;
}

wasmtime_error_t *stile_call(wasmtime_component_instance_t *instance, wasmtime_context_t *context, wasmtime_component_export_index_t *index,
                             stile_state *state, wasmtime_component_val_t *args, size_t nargs, wasmtime_component_val_t *results,
                             size_t nresults) {
  wasmtime_component_func_t func;
  if (!wasmtime_component_instance_get_func(instance, context, index, &func)) return wasmtime_error_new("no such export");
  wasmtime_error_t *error = begin(context, state);
  if (error) return error;
  error = wasmtime_component_func_call(&func, context, args, nargs, results, nresults);
  give_back();
  end(state);
  return error;
}

// stile_left charges the budgets for the running call and returns the nanoseconds that are left of the tightest. Any thread may
// ask while the call's own is in a host function.
int64_t stile_left(stile_state *s) {
  int64_t left = INT64_MAX;
  uint64_t now = thread_time(s->thread);
  charge(s, s->cpu_used + (now > s->cpu_start ? now - s->cpu_start : 0));
  for (stile_budget *b = s->budget; b; b = b->outer) {
    int64_t more = (int64_t)(b->limit - __atomic_load_n(&b->used, __ATOMIC_RELAXED));
    if (more < left) left = more;
  }
  return left;
}

void stile_charge(stile_state *s) { charge(s, s->cpu_used + elapsed(s)); }

// The pages that the guest has written are restored or returned here, which takes a tenth of the time that it took to write them. After a
// short call, the time is that of the wall clock, which is no system call, but no more than the call's own.
void stile_store_delete(wasmtime_store_t *store, stile_state *s) {
  int brief = s->cpu_used < STILE_TICK;
  uint64_t before = now(brief ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
  wasmtime_store_delete(store);
  uint64_t took = now(brief ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID) - before;
  if (brief && took > s->cpu_used) took = s->cpu_used;
  s->cpu_used += took;
  charge(s, s->cpu_used);
}

void stile_cancel(stile_state *state) { atomic_store_explicit(&state->cancelled, 1, memory_order_relaxed); }

static wasmtime_error_t *on_call(void *data, wasmtime_context_t *context, const wasmtime_component_func_type_t *type,
                                 wasmtime_component_val_t *args, size_t nargs, wasmtime_component_val_t *results, size_t nresults) {
  (void)type;
  stile_state *s = wasmtime_context_get_data(context);
  return goCall((uintptr_t)data, s->handle, context, args, nargs, results, nresults);
}

static wasmtime_error_t *on_drop(void *data, wasmtime_context_t *context, uint32_t rep) {
  stile_state *s = wasmtime_context_get_data(context);
  return goDrop((uintptr_t)data, s->handle, rep);
}

static void on_release(void *data) { goRelease((uintptr_t)data); }

wasmtime_error_t *stile_add_func(wasmtime_component_linker_instance_t *instance, const char *name, size_t len, uintptr_t handle) {
  return wasmtime_component_linker_instance_add_func(instance, name, len, on_call, (void *)handle, on_release);
}

wasmtime_error_t *stile_add_resource(wasmtime_component_linker_instance_t *instance, const char *name, size_t len, uint32_t type,
                                     uintptr_t handle) {
  wasmtime_component_resource_type_t *t = wasmtime_component_resource_type_new_host(type);
  wasmtime_error_t *error = wasmtime_component_linker_instance_add_resource(instance, name, len, t, on_drop, (void *)handle, on_release);
  wasmtime_component_resource_type_delete(t);
  return error;
}

wasmtime_error_t *stile_resource_rep(wasmtime_context_t *context, wasmtime_component_resource_any_t *any, uint32_t *rep,
                                     uint32_t *type) {
  wasmtime_component_resource_host_t *host = NULL;
  wasmtime_error_t *error = wasmtime_component_resource_any_to_host(context, any, &host);
  if (error) return error;
  *rep = wasmtime_component_resource_host_rep(host);
  *type = wasmtime_component_resource_host_type(host);
  wasmtime_component_resource_host_delete(host);
  return NULL;
}

wasmtime_error_t *stile_resource_new(wasmtime_context_t *context, uint32_t rep, uint32_t type, wasmtime_component_resource_any_t **any) {
  wasmtime_component_resource_host_t *host = wasmtime_component_resource_host_new(true, rep, type);
  wasmtime_error_t *error = wasmtime_component_resource_host_to_any(context, host, any);
  wasmtime_component_resource_host_delete(host);
  return error;
}
