// The C side of this package: callbacks that wasmtime calls, and the state of one store that they read without Go.
#ifndef STILE_SHIM_H
#define STILE_SHIM_H

#include <stdatomic.h>

#include "wasmtime.h"

#include "layout.h"

// How often the epoch advances while guests run, in nanoseconds.
#define STILE_TICK 5000000

// The native stack of a guest, in bytes: at most, at least, what a thread keeps for the host, what stays resident after a call,
// and how much below that is looked at to know whether there is more.
#define STILE_STACK ((size_t)6 << 20)
#define STILE_STACK_LEAST ((size_t)1 << 20)
#define STILE_STACK_HOST ((size_t)512 << 10)
#define STILE_STACK_KEPT ((size_t)256 << 10)
#define STILE_STACK_LOOK 1024

// Why the epoch callback ended a call.
enum { STILE_RUNNING = 0, STILE_CANCELLED = 1, STILE_CPU = 2, STILE_LATE = 3 };

// What the engine's bytes are held for.
enum { STILE_NOTHING = 0, STILE_GIVING = 1, STILE_RECEIVING = 2 };

// The thread time in which a guest must make room for one value, in nanoseconds.
#define STILE_RECEIVE 200000000u

// stile_budget is processor time, in nanoseconds, that a store shares with the stores which its guest has others run. Theirs count
// here too. Stores change `used` on their threads, so it is accessed atomically.
typedef struct stile_budget {
  struct stile_budget *outer;  // of the guest that had this one run; may be NULL
  uint64_t limit, used;
} stile_budget;

// stile_thread names a thread to others that ask for its processor time.
#ifdef __APPLE__
typedef uint32_t stile_thread;
#else
typedef int stile_thread;
#endif

// stile_state is the state of one store. Everything but `cancelled` belongs to the thread that runs the call.
typedef struct {
  uintptr_t handle;          // cgo.Handle of the Go Store
  atomic_int cancelled;      // set by any thread
  int ended;                 // one of the reasons above
  stile_budget *budget;      // of thread time for the call
  uint64_t cpu_used;         // nanoseconds used by earlier calls on this store
  int converting;            // what the engine's bytes are held for: values that the guest gives or receives
  uint64_t receiving;        // thread time when a tick first found it receiving; 0 before
  uint64_t cpu_charged;      // nanoseconds that the budgets were charged
  uint64_t wall_start;       // CLOCK_MONOTONIC when the running call began
  uint64_t cpu_start;        // thread time when the running call began
  stile_thread thread;       // that runs the call
  uint64_t cpu_before;       // cpu_used when the running call began
  int instantiated;          // whether the last call was the instantiation
  int32_t *waiting;          // how many stores wait for their turn; shared by all, may be NULL
} stile_state;

typedef struct {
  uint32_t instances, warm_slots;
  uint32_t core_instances, memories, tables;  // of one instance
  size_t max_memory, table_elements, keep_resident;
  size_t space;  // address space that must be free
} stile_pool;

// stile_engine_new returns NULL if there is too little address space, with the reason in errno.
wasm_engine_t *stile_engine_new(stile_pool pool);
// stile_guest_stack is the native stack of a guest in this process.
size_t stile_guest_stack(void);

wasm_engine_t *stile_compiler_new(void);
long stile_max_maps(void);
wasmtime_store_t *stile_store_new(wasm_engine_t *engine, stile_state *state, int64_t memory, int64_t table_elements, int64_t instances,
                                  int64_t tables, int64_t memories);
wasmtime_error_t *stile_instantiate(wasmtime_component_linker_t *linker, wasmtime_context_t *context, wasmtime_component_t *component,
                                    stile_state *state, wasmtime_component_instance_t *instance);
wasmtime_error_t *stile_call(wasmtime_component_instance_t *instance, wasmtime_context_t *context, wasmtime_component_export_index_t *index,
                             stile_state *state, wasmtime_component_val_t *args, size_t nargs, wasmtime_component_val_t *results,
                             size_t nresults);
void stile_cancel(stile_state *state);
int64_t stile_left(stile_state *state);
// stile_charge charges the budgets for the running call so far, on the call's thread.
void stile_charge(stile_state *state);
// stile_store_delete charges the budgets for the time that it takes.
void stile_store_delete(wasmtime_store_t *store, stile_state *state);
wasmtime_error_t *stile_add_func(wasmtime_component_linker_instance_t *instance, const char *name, size_t len, uintptr_t handle);
wasmtime_error_t *stile_add_resource(wasmtime_component_linker_instance_t *instance, const char *name, size_t len, uint32_t type,
                                     uintptr_t handle);
wasmtime_error_t *stile_resource_rep(wasmtime_context_t *context, wasmtime_component_resource_any_t *any, uint32_t *rep,
                                     uint32_t *type);
wasmtime_error_t *stile_resource_new(wasmtime_context_t *context, uint32_t rep, uint32_t type, wasmtime_component_resource_any_t **any);

#endif
