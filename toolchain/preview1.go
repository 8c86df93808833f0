package toolchain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
)

// preview1 is the module from which programs of WASI preview 1 import.
const preview1 = "wasi_snapshot_preview1"

// wasiWIT is the part of WASI 0.2 that the adapter imports. The host's empty world decides what its functions do.
const wasiWIT = `package wasi:io@0.2.0;
interface error { resource error; }
interface poll { resource pollable { block: func(); } }
interface streams {
  use error.{error};
  variant stream-error { last-operation-failed(error), closed }
  resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
}
package wasi:cli@0.2.0 {
  interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
  interface stderr { use wasi:io/streams@0.2.0.{output-stream}; get-stderr: func() -> output-stream; }
  interface exit { exit: func(status: result); }
}
package wasi:clocks@0.2.0 {
  interface monotonic-clock {
    use wasi:io/poll@0.2.0.{pollable};
    now: func() -> u64;
    resolution: func() -> u64;
    subscribe-duration: func(when: u64) -> pollable;
  }
  interface wall-clock {
    record datetime { seconds: u64, nanoseconds: u32 }
    now: func() -> datetime;
    resolution: func() -> datetime;
  }
}
package wasi:random@0.2.0 {
  interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; }
}
`

var wasi = sync.OnceValue(func() *abi.Resolve {
	known, err := abi.Parse(wasiWIT, filesWIT)
	if err != nil {
		panic(fmt.Sprintf("parse the WIT of WASI: %v", err))
	}
	return known
})

// wasiImports are the functions of wasiWIT by the identifiers they have in the adapter.
var wasiImports = sync.OnceValue(func() map[string]wasiImport {
	all := maps.Clone(filesImports)
	maps.Copy(all, map[string]wasiImport{
		"$get-stdout":     {"wasi:cli/stdout@0.2.0#get-stdout", "(result i32)"},
		"$get-stderr":     {"wasi:cli/stderr@0.2.0#get-stderr", "(result i32)"},
		"$put":            {"wasi:io/streams@0.2.0#[method]output-stream.blocking-write-and-flush", "(param i32 i32 i32 i32)"},
		"$drop-error":     {"wasi:io/error@0.2.0#[resource-drop]error", "(param i32)"},
		"$exit":           {"wasi:cli/exit@0.2.0#exit", "(param i32)"},
		"$ticks":          {"wasi:clocks/monotonic-clock@0.2.0#now", "(result i64)"},
		"$tick":           {"wasi:clocks/monotonic-clock@0.2.0#resolution", "(result i64)"},
		"$after":          {"wasi:clocks/monotonic-clock@0.2.0#subscribe-duration", "(param i64) (result i32)"},
		"$block":          {"wasi:io/poll@0.2.0#[method]pollable.block", "(param i32)"},
		"$drop-pollable":  {"wasi:io/poll@0.2.0#[resource-drop]pollable", "(param i32)"},
		"$date":           {"wasi:clocks/wall-clock@0.2.0#now", "(param i32)"},
		"$date-precision": {"wasi:clocks/wall-clock@0.2.0#resolution", "(param i32)"},
		"$random":         {"wasi:random/random@0.2.0#get-random-u64", "(result i64)"},
	})
	return all
})

type wasiImport struct{ name, signature string }

// The error numbers of preview 1 that the adapter answers with.
const (
	errnoAgain      = 6
	errnoBadf       = 8
	errnoInval      = 28
	errnoIo         = 29
	errnoNosys      = 52
	errnoNotdir     = 54
	errnoNotsock    = 57
	errnoNotsup     = 58
	errnoPipe       = 64
	errnoSpipe      = 70
	errnoNotcapable = 76
)

// adapterFunc is a function of preview 1, or one that others use. Its text calls what uses names: functions of adapterHelpers and of
// wasiImports.
type adapterFunc struct {
	params, results []abi.CoreType
	uses            string // separated by spaces
	text            string
}

// adapterHelpers are the functions that those of preview 1 share. They lend 16 bytes at address 0 of the guest's memory to the functions
// that they call, for their results, and put back what was there. So the adapter needs no memory, and nothing of the guest's allocator.
var adapterHelpers = sync.OnceValue(func() map[string]adapterFunc {
	return map[string]adapterFunc{
		"$open": {text: `(func $open (param $fd i32) (result i32)
    (i32.and (i32.lt_u (local.get $fd) (i32.const 3)) (i32.eqz (i32.and (i32.const 1) (i32.shr_u (global.get $closed) (local.get $fd))))))`},
		"$save": {text: `(func $save
    (global.set $first (i64.load (i32.const 0))) (global.set $second (i64.load (i32.const 8))))`},
		"$restore": {text: `(func $restore
    (i64.store (i32.const 0) (global.get $first)) (i64.store (i32.const 8) (global.get $second)))`},
		// The time of one of both clocks, in nanoseconds.
		"$time": {uses: "$date $ticks $save $restore", text: `(func $time (param $clock i32) (result i64)
    (if (i32.eq (local.get $clock) (i32.const 1)) (then
      (if (i32.eqz (global.get $allocating)) (then (global.set $last-ticks (call $ticks))))
      (return (global.get $last-ticks))))
    (if (i32.eqz (global.get $allocating)) (then
      (call $save)
      (call $date (i32.const 0))
      (global.set $last-date (i64.add (i64.mul (i64.load (i32.const 0)) (i64.const 1000000000)) (i64.load32_u (i32.const 8))))
      (call $restore)))
    (global.get $last-date))`},
		// WASI 0.2 takes at most 4,096 bytes at once.
		"$write": {uses: "$get-stdout $get-stderr $put $drop-error $save $restore", text: fmt.Sprintf(`(func $write (param $fd i32) (param $at i32) (param $left i32) (result i32)
    (local $stream i32) (local $n i32) (local $failed i32) (local $closed i32) (local $error i32)
    (if (global.get $allocating) (then (return (i32.const %d))))
    (if (i32.eq (local.get $fd) (i32.const 1))
      (then
        (if (i32.eqz (global.get $stdout)) (then (global.set $stdout (call $get-stdout))))
        (local.set $stream (global.get $stdout)))
      (else
        (if (i32.eqz (global.get $stderr)) (then (global.set $stderr (call $get-stderr))))
        (local.set $stream (global.get $stderr))))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $left)))
      (local.set $n (select (i32.const 4096) (local.get $left) (i32.gt_u (local.get $left) (i32.const 4096))))
      (call $save)
      (call $put (local.get $stream) (local.get $at) (local.get $n) (i32.const 0))
      (local.set $failed (i32.load8_u (i32.const 0)))
      (local.set $closed (i32.load8_u (i32.const 4)))
      (local.set $error (i32.load (i32.const 8)))
      (call $restore)
      (if (local.get $failed) (then
        (if (local.get $closed) (then (return (i32.const %d))))
        (call $drop-error (local.get $error))
        (return (i32.const %d))))
      (local.set $at (i32.add (local.get $at) (local.get $n)))
      (local.set $left (i32.sub (local.get $left) (local.get $n)))
      (br $next)))
    (i32.const 0))`, errnoAgain, errnoPipe, errnoIo)},
		// How long a subscription of poll_oneoff waits in nanoseconds, and -1 for a clock that does not exist.
		"$wait": {uses: "$time", text: `(func $wait (param $at i32) (result i64) (local $t i64) (local $now i64)
    (if (i32.gt_u (i32.load offset=16 (local.get $at)) (i32.const 1)) (then (return (i64.const -1))))
    (local.set $t (i64.load offset=24 (local.get $at)))
    (if (i32.and (i32.load16_u offset=40 (local.get $at)) (i32.const 1)) (then
      (local.set $now (call $time (i32.load offset=16 (local.get $at))))
      (local.set $t (select (i64.sub (local.get $t) (local.get $now)) (i64.const 0) (i64.gt_u (local.get $t) (local.get $now))))))
    (i64.shr_u (i64.shl (local.get $t) (i64.const 1)) (i64.const 1)))`},
		"$event": {text: `(func $event (param $at i32) (param $out i32) (param $errno i32)
    (memory.fill (local.get $out) (i32.const 0) (i32.const 32))
    (i64.store (local.get $out) (i64.load (local.get $at)))
    (i32.store16 offset=8 (local.get $out) (local.get $errno))
    (i32.store8 offset=10 (local.get $out) (i32.load8_u offset=8 (local.get $at))))`},
	}
})

// preview1Funcs are all functions of preview 1.
var preview1Funcs = sync.OnceValue(func() map[string]adapterFunc {
	const i32, i64 = abi.CoreI32, abi.CoreI64
	one := []abi.CoreType{i32}
	funcs := map[string]adapterFunc{
		"args_sizes_get":    {params: types("ii"), results: one, text: `(i32.store (local.get 0) (i32.const 0)) (i32.store (local.get 1) (i32.const 0)) (i32.const 0)`},
		"environ_sizes_get": {params: types("ii"), results: one, text: `(i32.store (local.get 0) (i32.const 0)) (i32.store (local.get 1) (i32.const 0)) (i32.const 0)`},
		"args_get":          {params: types("ii"), results: one, text: `(i32.const 0)`},
		"environ_get":       {params: types("ii"), results: one, text: `(i32.const 0)`},
		"sched_yield":       {results: one, text: `(i32.const 0)`},
		"clock_res_get": {params: types("ii"), results: one, uses: "$tick $date-precision $save $restore", text: fmt.Sprintf(`(local $t i64)
    (if (i32.gt_u (local.get 0) (i32.const 1)) (then (return (i32.const %d))))
    (if (global.get $allocating) (then (return (i32.const %d))))
    (if (local.get 0)
      (then (local.set $t (call $tick)))
      (else
        (call $save)
        (call $date-precision (i32.const 0))
        (local.set $t (i64.add (i64.mul (i64.load (i32.const 0)) (i64.const 1000000000)) (i64.load32_u (i32.const 8))))
        (call $restore)))
    (i64.store (local.get 1) (local.get $t))
    (i32.const 0)`, errnoInval, errnoAgain)},
		"clock_time_get": {params: types("iIi"), results: one, uses: "$time", text: fmt.Sprintf(`
    (if (i32.gt_u (local.get 0) (i32.const 1)) (then (return (i32.const %d))))
    (i64.store (local.get 2) (call $time (local.get 0)))
    (i32.const 0)`, errnoInval)},
		"random_get": {params: types("ii"), results: one, uses: "$random", text: fmt.Sprintf(`(local $r i64)
    (if (global.get $allocating) (then (return (i32.const %d))))
    (block $done (loop $next
      (br_if $done (i32.lt_u (local.get 1) (i32.const 8)))
      (i64.store (local.get 0) (call $random))
      (local.set 0 (i32.add (local.get 0) (i32.const 8)))
      (local.set 1 (i32.sub (local.get 1) (i32.const 8)))
      (br $next)))
    (if (local.get 1) (then (local.set $r (call $random))))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get 1)))
      (i64.store8 (local.get 0) (local.get $r))
      (local.set $r (i64.shr_u (local.get $r) (i64.const 8)))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
      (br $next)))
    (i32.const 0)`, errnoAgain)},
		"proc_exit": {params: types("i"), uses: "$exit", text: `(call $exit (i32.ne (local.get 0) (i32.const 0))) unreachable`},
		"fd_close": {params: types("i"), results: one, uses: "$open", text: fmt.Sprintf(`
    (if (i32.eqz (call $open (local.get 0))) (then (return (i32.const %d))))
    (global.set $closed (i32.or (global.get $closed) (i32.shl (i32.const 1) (local.get 0))))
    (i32.const 0)`, errnoBadf)},
		// Standard input is at its end.
		"fd_read": {params: types("iiii"), results: one, uses: "$open", text: fmt.Sprintf(`
    (if (i32.or (local.get 0) (i32.eqz (call $open (local.get 0)))) (then (return (i32.const %d))))
    (i32.store (local.get 3) (i32.const 0))
    (i32.const 0)`, errnoBadf)},
		"fd_write": {params: types("iiii"), results: one, uses: "$open $write", text: fmt.Sprintf(`(local $total i32) (local $errno i32)
    (if (i32.or (i32.eqz (local.get 0)) (i32.eqz (call $open (local.get 0)))) (then (return (i32.const %d))))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get 2)))
      (local.set $errno (call $write (local.get 0) (i32.load (local.get 1)) (i32.load offset=4 (local.get 1))))
      (if (local.get $errno) (then (return (local.get $errno))))
      (local.set $total (i32.add (local.get $total) (i32.load offset=4 (local.get 1))))
      (local.set 1 (i32.add (local.get 1) (i32.const 8)))
      (local.set 2 (i32.sub (local.get 2) (i32.const 1)))
      (br $next)))
    (i32.store (local.get 3) (local.get $total))
    (i32.const 0)`, errnoBadf)},
		// Of unknown type, so that no library takes it for a terminal. Its rights are fd_read or fd_write, and poll_fd_readwrite.
		"fd_fdstat_get": {params: types("ii"), results: one, uses: "$open", text: fmt.Sprintf(`
    (if (i32.eqz (call $open (local.get 0))) (then (return (i32.const %d))))
    (memory.fill (local.get 1) (i32.const 0) (i32.const 24))
    (i64.store offset=8 (local.get 1) (select (i64.const 0x8000040) (i64.const 0x8000002) (local.get 0)))
    (i32.const 0)`, errnoBadf)},
		"fd_filestat_get": {params: types("ii"), results: one, uses: "$open", text: fmt.Sprintf(`
    (if (i32.eqz (call $open (local.get 0))) (then (return (i32.const %d))))
    (memory.fill (local.get 1) (i32.const 0) (i32.const 64))
    (i32.const 0)`, errnoBadf)},
		// Reports what is ready at once. If nothing is, it waits for the first clock and reports that one.
		"poll_oneoff": {params: types("iiii"), results: one, uses: "$open $wait $event $after $block $drop-pollable", text: fmt.Sprintf(`
    (local $at i32) (local $i i32) (local $events i32) (local $fd i32) (local $first i32) (local $ready i32) (local $errno i32)
    (local $wait i64) (local $least i64) (local $pollable i32)
    (if (i32.eqz (local.get 2)) (then (return (i32.const %[1]d))))
    (local.set $least (i64.const -1))
    (local.set $at (local.get 0))
    (block $done (loop $next
      (br_if $done (i32.eq (local.get $i) (local.get 2)))
      (local.set $errno (i32.const 0))
      (local.set $ready (i32.const 1))
      (if (i32.load8_u offset=8 (local.get $at))
        (then ;; tag 1 reads, which standard input is ready for, and tag 2 writes
          (local.set $fd (i32.load offset=16 (local.get $at)))
          (if (i32.or (i32.eqz (call $open (local.get $fd))) (i32.eq (i32.eqz (local.get $fd)) (i32.ne (i32.load8_u offset=8 (local.get $at)) (i32.const 1))))
            (then (local.set $errno (i32.const %[2]d)))))
        (else
          (local.set $wait (call $wait (local.get $at)))
          (if (i64.eq (local.get $wait) (i64.const -1))
            (then (local.set $errno (i32.const %[1]d)))
            (else (if (i64.ne (local.get $wait) (i64.const 0)) (then
              (local.set $ready (i32.const 0))
              (if (i64.lt_u (local.get $wait) (local.get $least)) (then
                (local.set $least (local.get $wait))
                (local.set $first (local.get $at))))))))))
      (if (local.get $ready) (then
        (call $event (local.get $at) (i32.add (local.get 1) (i32.mul (local.get $events) (i32.const 32))) (local.get $errno))
        (local.set $events (i32.add (local.get $events) (i32.const 1)))))
      (local.set $at (i32.add (local.get $at) (i32.const 48)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next)))
    (if (i32.eqz (local.get $events)) (then
      (if (i32.eqz (global.get $allocating)) (then
        (local.set $pollable (call $after (local.get $least)))
        (call $block (local.get $pollable))
        (call $drop-pollable (local.get $pollable))))
      (call $event (local.get $first) (local.get 1) (i32.const 0))
      (local.set $events (i32.const 1))))
    (i32.store (local.get 3) (local.get $events))
    (i32.const 0)`, errnoInval, errnoBadf)},
		"proc_raise": {params: types("i"), results: one, text: fmt.Sprintf("(i32.const %d)", errnoNosys)},
	}
	// The rest fails: with this error for a standard stream, which the parameter fd names, and else because there is no such file.
	for _, f := range []struct {
		name, params string
		fd, errno    int
	}{
		{"fd_advise", "iIIi", 0, errnoSpipe},
		{"fd_allocate", "iII", 0, errnoSpipe},
		{"fd_datasync", "i", 0, errnoInval},
		{"fd_fdstat_set_flags", "ii", 0, errnoNotsup},
		{"fd_fdstat_set_rights", "iII", 0, errnoNotcapable},
		{"fd_filestat_set_size", "iI", 0, errnoNotcapable},
		{"fd_filestat_set_times", "iIIi", 0, errnoNotcapable},
		{"fd_pread", "iiiIi", 0, errnoSpipe},
		{"fd_prestat_get", "ii", 0, errnoBadf},
		{"fd_prestat_dir_name", "iii", 0, errnoBadf},
		{"fd_pwrite", "iiiIi", 0, errnoSpipe},
		{"fd_readdir", "iiiIi", 0, errnoNotdir},
		{"fd_renumber", "ii", 0, errnoNotsup},
		{"fd_seek", "iIii", 0, errnoSpipe},
		{"fd_sync", "i", 0, errnoInval},
		{"fd_tell", "ii", 0, errnoSpipe},
		{"path_create_directory", "iii", 0, errnoNotdir},
		{"path_filestat_get", "iiiii", 0, errnoNotdir},
		{"path_filestat_set_times", "iiiiIIi", 0, errnoNotdir},
		{"path_link", "iiiiiii", 0, errnoNotdir},
		{"path_open", "iiiiiIIii", 0, errnoNotdir},
		{"path_readlink", "iiiiii", 0, errnoNotdir},
		{"path_remove_directory", "iii", 0, errnoNotdir},
		{"path_rename", "iiiiii", 0, errnoNotdir},
		{"path_symlink", "iiiii", 2, errnoNotdir},
		{"path_unlink_file", "iii", 0, errnoNotdir},
		{"sock_accept", "iii", 0, errnoNotsock},
		{"sock_recv", "iiiiii", 0, errnoNotsock},
		{"sock_send", "iiiii", 0, errnoNotsock},
		{"sock_shutdown", "ii", 0, errnoNotsock},
	} {
		text := fmt.Sprintf("(select (i32.const %d) (i32.const %d) (call $open (local.get %d)))", f.errno, errnoBadf, f.fd)
		funcs[f.name] = adapterFunc{params: types(f.params), results: one, uses: "$open", text: text}
	}
	return funcs
})

// types reads a list of core types: i is i32, and I is i64.
func types(letters string) []abi.CoreType {
	list := make([]abi.CoreType, len(letters))
	for at, letter := range letters {
		list[at] = abi.CoreI32
		if letter == 'I' {
			list[at] = abi.CoreI64
		}
	}
	return list
}

// adapter is a core module that implements functions of preview 1 with functions of WASI 0.2. It imports the guest's memory as
// "guest" "memory", and the functions from "world". It has no authority: what they do is up to the host.
//
// While the host calls the guest's allocator, a component may call nothing. Some runtimes ask for the time even then; Go's does, each time it
// starts a goroutine. So the host calls an allocator that says so to the adapter, which then answers from what it knows: with the time that it
// gave last, and else with the error "again".
type adapter struct {
	exports []string        // in byte order
	ticks   uint64          // what the monotonic clock says until it was read
	parts   map[string]bool // the helpers, and the functions of WASI 0.2 by identifier
	funcs   map[string]adapterFunc
	helpers map[string]adapterFunc
	files   bool // whether the module gets those of the call
}

// allocatorText is a core module with the allocator that the host calls.
const allocatorText = `(module $allocator
  (import "guest" "cabi_realloc" (func $allocate (param i32 i32 i32 i32) (result i32)))
  (global $allocating (export "allocating") (mut i32) (i32.const 0))
%s  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
%s    (global.set $allocating (i32.const 1))
    (call $allocate (local.get 0) (local.get 1) (local.get 2) (local.get 3))
    (global.set $allocating (i32.const 0))))
`

// allocator is the text of the allocator. That of a module that uses files also gives memory that the adapter has at the time, while there is some.
func (a *adapter) allocator() string {
	if !a.files {
		return fmt.Sprintf(allocatorText, "", "")
	}
	return fmt.Sprintf(allocatorText, `  (global $into (export "into") (mut i32) (i32.const 0))
  (global $end (export "end") (mut i32) (i32.const 0))
`, `    (local $at i32)
    (if (i32.and (i32.ne (global.get $into) (i32.const 0)) (i32.eqz (local.get 1))) (then
      (local.set $at (i32.and (i32.sub (i32.add (global.get $into) (local.get 2)) (i32.const 1)) (i32.sub (i32.const 0) (local.get 2))))
      (if (i32.and (i32.ge_u (global.get $end) (local.get $at)) (i32.ge_u (i32.sub (global.get $end) (local.get $at)) (local.get 3))) (then
        (global.set $into (i32.add (local.get $at) (local.get 3)))
        (return (local.get $at))))))
`)
}

func newAdapter(exports []string, files bool) *adapter {
	a := &adapter{ticks: 1, exports: slices.Sorted(slices.Values(exports)), parts: map[string]bool{}, funcs: preview1Funcs(), helpers: adapterHelpers(), files: files}
	if a.files {
		a.funcs, a.helpers = maps.Clone(a.funcs), maps.Clone(a.helpers)
		maps.Copy(a.helpers, fileHelpers())
		for name, f := range fileFuncs() {
			a.funcs[name], a.helpers["$std-"+name] = withFiles(name, a.funcs[name], f)
		}
		if !slices.Contains(exports, "fd_readdir") { // then there are none
			a.helpers["$drop-list"] = adapterFunc{text: "(func $drop-list (param i32))"}
		}
	}
	var use func(names string)
	use = func(names string) {
		for name := range strings.FieldsSeq(names) {
			if !a.parts[name] {
				a.parts[name] = true
				use(a.helpers[name].uses)
			}
		}
	}
	for _, name := range a.exports {
		use(a.funcs[name].uses)
	}
	return a
}

// imports lists the functions of WASI 0.2 that the adapter imports, as "interface#name", in byte order of their identifiers.
func (a *adapter) imports() []string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(a.parts)) {
		if i, ok := a.imported(id); ok {
			names = append(names, i.name)
		}
	}
	return names
}

// imported is the function of WASI 0.2 with an identifier, unless the adapter has one of its own.
func (a *adapter) imported(id string) (wasiImport, bool) {
	i, ok := wasiImports()[id]
	_, own := a.helpers[id]
	return i, ok && !own
}

func (a *adapter) text() string {
	var b strings.Builder
	b.WriteString("(module $adapter\n")
	parts := slices.Sorted(maps.Keys(a.parts))
	for _, id := range parts {
		if i, ok := a.imported(id); ok {
			fmt.Fprintf(&b, "  (import \"world\" %q (func %s %s))\n", i.name, id, i.signature)
		}
	}
	b.WriteString(`  (import "guest" "memory" (memory 0))
  (import "allocator" "allocating" (global $allocating (mut i32)))
`)
	globals := fmt.Sprintf(`  (global $stdout (mut i32) (i32.const 0))
  (global $stderr (mut i32) (i32.const 0))
  (global $closed (mut i32) (i32.const 0))
  (global $first (mut i64) (i64.const 0))
  (global $second (mut i64) (i64.const 0))
  (global $last-ticks (mut i64) (i64.const %d))
  (global $last-date (mut i64) (i64.const 1))
`, a.ticks)
	if a.files {
		b.WriteString(`  (import "allocator" "into" (global $into (mut i32)))
  (import "allocator" "end" (global $end (mut i32)))
`)
	}
	b.WriteString(globals)
	if a.files {
		b.WriteString(fileGlobals())
	}
	for _, id := range parts {
		if f, ok := a.helpers[id]; ok {
			fmt.Fprintf(&b, "  %s\n", f.text)
		}
	}
	for _, name := range a.exports {
		f := a.funcs[name]
		fmt.Fprintf(&b, "  (func (export %q)%s %s)\n", name, signature(f.params, f.results), f.text)
	}
	b.WriteString(")\n")
	return b.String()
}
