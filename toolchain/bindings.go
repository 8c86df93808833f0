package toolchain

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
)

// roots are the addresses in a memory image that the bindings are generated for.
type roots struct {
	Context uint32 `json:"context"` // JSContext
	Runtime uint32 `json:"runtime"` // JSRuntime
	Block   uint32 `json:"block"`   // the words below
}

// The block of memory through which the bindings module and prelude/bindings.ts talk, as offsets in bytes.
// A slot holds one flat core value in its low bytes; slot 0 also holds a result.
const (
	blockSlots     = 0               // 16 parameters and the address of a result
	blockLength    = 17 * 8          // out parameter of the engine
	blockArgument  = blockLength + 8 // JSValue
	blockTime      = blockLength + 16
	blockEnter     = blockLength + 24 // JSValue, 0 until it is known, like the next three
	blockTurn      = blockLength + 32
	blockNow       = blockLength + 40
	blockRejected  = blockLength + 48
	blockRejection = blockLength + 56 // 3 JSValues
	blockReplacer  = blockLength + 80 // JSValue, like the next two
	blockRecord    = blockLength + 88
	blockArray     = blockLength + 96
	blockProperty  = blockLength + 104 // JSPropertyDescriptor: flags, and the JSValues of value, getter and setter
	blockSize      = blockLength + 136
)

// opImport is the first argument with which the JavaScript function `host` calls the first import of the world. Lower numbers are
// built-ins: see bindingsCore and prelude/bindings.ts.
const opImport = 16

// JavaScript values as the engine boxes them: a tag in the high word, a small integer in the low one.
const (
	jsNull      = 2 << 32
	jsUndefined = 3 << 32
	jsException = 6 << 32
)

// imageCore is the module that is instantiated before an engine with imports, without its head. It supplies all of them, and has a
// table for the three functions that need the engine, which the bindings fill. The engine that components share has these functions
// inside, and their places in its own table: see supplied.
//
// Each function takes the host longer to compile than its code: an export needs a second one, and instructions on ranges of memory
// three more. So there are none, and imports that do the same share a function.
const imageCore = `
  (type $time (func (result i64)))
  (type $realloc (func (param i32 i32 i32 i32) (result i32)))
  (type $rejected (func (param i32 i32 i32)))
  (table (export "table") 3 funcref)
  (func (export "realloc") (type $realloc)
    (call_indirect (type $realloc) (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 1)))
  (func (export "clock_time_get") (param i32 i64 i32) (result i32)
    (i64.store (local.get 2) (call_indirect (type $time) (i32.const 0)))
    i32.const 0)
  (func (export "random_get") (param i32 i32) (result i32)
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get 1)))
      (i32.store8 (local.get 0) (i32.const 0))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
      (br $next)))
    i32.const 0)
  (func (export "fd_close") (param i32) (result i32) i32.const 8)
  (func (export "fd_fdstat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) i32.const 8)
  (func (export "fd_write") (param i32 i32 i32 i32) (result i32) i32.const 8)
  (func (export "host_call") (param i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "host_get_timezone_offset") (export "host_module_normalize") (export "host_module_load") (param i32 i32) (result i32)
    i32.const 0)
  (func (export "host_interrupt") (result i32) i32.const 0)
  (func (export "host_promise_rejection") (type $rejected)
    (call_indirect (type $rejected) (local.get 0) (local.get 1) (local.get 2) (i32.const 2)))
`

// imageText is the whole of imageCore. fill declares what fills the table where no bindings follow: [unsetText].
func imageText(shape engineShape, fill string) string {
	return fmt.Sprintf("(module $image\n  (memory (export \"memory\") (import \"env\" \"memory\") %d)%s", shape.Pages, imageCore+fill+")\n")
}

// unsetText is what fills the table of an image that has no bindings yet.
const unsetText = `
  (elem (i32.const 0) func $unset_time $unset_realloc $unset_rejected)
  (func $unset_time (type $time) i64.const 0)
  (func $unset_realloc (type $realloc) unreachable)
  (func $unset_rejected (type $rejected))`

// engineImports are the engine's imports, apart from the memory.
var engineImports = []struct{ module, name, signature string }{
	{"env", "host_get_timezone_offset", " (param i32 i32) (result i32)"},
	{"env", "host_interrupt", " (result i32)"},
	{"env", "host_promise_rejection", " (param i32 i32 i32)"},
	{"env", "host_module_normalize", " (param i32 i32) (result i32)"},
	{"env", "host_module_load", " (param i32 i32) (result i32)"},
	{"env", "host_call", " (param i32 i32 i32 i32 i32) (result i32)"},
	{"wasi_snapshot_preview1", "clock_time_get", " (param i32 i64 i32) (result i32)"},
	{"wasi_snapshot_preview1", "fd_close", " (param i32) (result i32)"},
	{"wasi_snapshot_preview1", "fd_fdstat_get", " (param i32 i32) (result i32)"},
	{"wasi_snapshot_preview1", "fd_seek", " (param i32 i64 i32 i32) (result i32)"},
	{"wasi_snapshot_preview1", "fd_write", " (param i32 i32 i32 i32) (result i32)"},
	{"wasi_snapshot_preview1", "random_get", " (param i32 i32) (result i32)"},
}

type engineExport struct{ name, signature string }

// engineExports are the engine's exports that the bindings call.
var engineExports = []engineExport{
	{"wasm_malloc", " (param i32) (result i32)"},
	{"wasm_free", " (param i32)"},
	{"JS_ToCStringLen2", " (param i32 i32 i64 i32) (result i32)"},
	{"JS_FreeCString", " (param i32 i32)"},
	{"JS_NewStringLen", " (param i32 i32 i32) (result i64)"},
	{"JS_GetUint8Array", " (param i32 i32 i64) (result i32)"},
	{"JS_NewUint8ArrayCopy", " (param i32 i32 i32) (result i64)"},
	{"JS_Call", " (param i32 i64 i64 i32 i32) (result i64)"},
	{"JS_DupValue", " (param i32 i64) (result i64)"},
	{"JS_FreeValue", " (param i32 i64)"},
	{"JS_GetClassID", " (param i64) (result i32)"},
	{"JS_GetPrototype", " (param i32 i64) (result i64)"},
	{"JS_GetOwnProperty", " (param i32 i32 i64 i32) (result i32)"},
	{"JS_ValueToAtom", " (param i32 i64) (result i32)"},
	{"JS_FreeAtom", " (param i32 i32)"},
	{"JS_GetException", " (param i32) (result i64)"},
	{"qjs_eval", " (param i32 i32 i32 i32) (result i32)"},
	{"JS_IsJobPending", " (param i32) (result i32)"},
	{"JS_ExecutePendingJob", " (param i32 i32) (result i32)"},
}

// bindingsCore is the part of the bindings that is the same for every world. $host is the JavaScript function `host`, called as the
// engine calls a function written in C: the first argument says what to do, and numbers among the others are i32. If the first
// argument is not a number, it is a key, and $host acts as the replacer of JSON.stringify.
const bindingsCore = `
  (global $context i32 (i32.const %[1]d))
  (global $runtime i32 (i32.const %[2]d))
  (global $block i32 (i32.const %[3]d))
  (elem (table $engine) (i32.const %[4]d) func $host)
  (func $stile:limit-memory unreachable)
  (func $stile:uncaught-error unreachable)

  (func $host (param $context i32) (param $this i64) (param $argc i32) (param $argv i32) (result i64)
    (local $op i32) (local $a i32) (local $b i32) (local $n i32) (local $from i32) (local $to i32)
    (if (i32.load offset=4 (local.get $argv)) (then (return (call $replace (local.get $this) (local.get $argv)))))
    (local.set $op (i32.load (local.get $argv)))
    (if (i32.ge_u (local.get $op) (i32.const %[5]d))
      (then
        (call $call (i32.sub (local.get $op) (i32.const %[5]d)))
        (return (i64.const %[6]d))))
    (local.set $a (i32.load offset=8 (local.get $argv)))
    (local.set $b (i32.load offset=16 (local.get $argv)))
    (block $evaluate (block $pack (block $unpack (block $take_bytes (block $bytes (block $free_utf8 (block $free (block $malloc (block $text (block $utf8
      (br_table $utf8 $text $malloc $free $free_utf8 $bytes $take_bytes $evaluate $unpack $pack (local.get $op)))
    ;; (string, to address, to length) -> address
    (local.set $a (call $JS_ToCStringLen2 (global.get $context) (i32.add (global.get $block) (i32.const %[8]d))
      (i64.load offset=8 (local.get $argv)) (i32.const 0)))
    (if (i32.eqz (local.get $a)) (then (return (i64.const %[7]d))))
    (call $replace_surrogates (local.get $a) (i32.load offset=%[8]d (global.get $block)))
    (i32.store (local.get $b) (local.get $a))
    (i32.store (i32.load offset=24 (local.get $argv)) (i32.load offset=%[8]d (global.get $block)))
    (return (i64.extend_i32_u (local.get $a))))
    ;; (address, length) -> string, and frees
    (call $JS_NewStringLen (global.get $context) (local.get $a) (local.get $b))
    (if (local.get $b) (then (call $wasm_free (local.get $a))))
    (return))
    (return (i64.extend_i32_u (call $malloc (local.get $a)))))
    (call $wasm_free (local.get $a))
    (return (i64.const %[6]d)))
    (call $JS_FreeCString (global.get $context) (local.get $a))
    (return (i64.const %[6]d)))
    ;; (Uint8Array, to address, to length); the bytes stay where they are
    (local.set $a (call $JS_GetUint8Array (global.get $context) (i32.add (global.get $block) (i32.const %[8]d))
      (i64.load offset=8 (local.get $argv))))
    (if (i32.eqz (local.get $a)) (then (return (i64.const %[7]d))))
    (i32.store (local.get $b) (local.get $a))
    (i32.store (i32.load offset=24 (local.get $argv)) (i32.load offset=%[8]d (global.get $block)))
    (return (i64.const %[6]d)))
    ;; (address, length) -> Uint8Array, and frees
    (call $JS_NewUint8ArrayCopy (global.get $context) (local.get $a) (local.get $b))
    (if (local.get $b) (then (call $wasm_free (local.get $a))))
    (return))
    ;; (address and length of a text) -> Uint8Array, if it stands for words, of which the first is the number of bytes; otherwise string.
    ;; Frees it. What people read has no zeros.
    (if (i32.and (i32.ge_u (local.get $b) (i32.const 16)) (i32.eqz (i32.and (local.get $b) (i32.const 7))))
      (then
        (if (i32.eqz (i32.load offset=4 (local.get $a)))
          (then
            (local.set $n (i32.sub (call $stile:decode (local.get $a) (local.get $b)) (i32.add (local.get $a) (i32.const 8))))
            (if (i32.lt_u (i32.load (local.get $a)) (local.get $n)) (then (local.set $n (i32.load (local.get $a)))))
            (call $JS_NewUint8ArrayCopy (global.get $context) (i32.add (local.get $a) (i32.const 8)) (local.get $n))
            (call $wasm_free (local.get $a))
            (return)))))
    (call $JS_NewStringLen (global.get $context) (local.get $a) (local.get $b))
    (if (local.get $b) (then (call $wasm_free (local.get $a))))
    (return))
    ;; (Uint8Array, to address, to length) -> address of a text that stands for words: first the number of bytes, then the bytes, and zeros
    ;; up to a whole word
    (local.set $a (call $JS_GetUint8Array (global.get $context) (i32.add (global.get $block) (i32.const %[8]d))
      (i64.load offset=8 (local.get $argv))))
    (if (i32.eqz (local.get $a)) (then (return (i64.const %[7]d))))
    (local.set $n (i32.and (i32.add (i32.load offset=%[8]d (global.get $block)) (i32.const 15)) (i32.const -8)))
    (local.set $to (call $malloc (i32.add (i32.mul (local.get $n) (i32.const 2)) (i32.add (i32.div_u (local.get $n) (i32.const 7)) (i32.const 16)))))
    (i32.store (local.get $b) (local.get $to))
    (local.set $from (i32.add (local.get $to) (i32.add (local.get $n) (i32.add (i32.div_u (local.get $n) (i32.const 7)) (i32.const 16)))))
    (local.set $from (i32.and (local.get $from) (i32.const -8)))
    (i64.store (i32.sub (i32.add (local.get $from) (local.get $n)) (i32.const 8)) (i64.const 0))
    (i64.store (local.get $from) (i64.load32_u offset=%[8]d (global.get $block)))
    ;; In a loop, because the host adds code to instructions for ranges of memory.
    (local.set $b (i32.const 0))
    (block $end (loop $word
      (br_if $end (i32.gt_u (i32.add (local.get $b) (i32.const 8)) (i32.load offset=%[8]d (global.get $block))))
      (i64.store offset=8 (i32.add (local.get $from) (local.get $b)) (i64.load (i32.add (local.get $a) (local.get $b))))
      (local.set $b (i32.add (local.get $b) (i32.const 8)))
      (br $word)))
    (block $end (loop $byte
      (br_if $end (i32.ge_u (local.get $b) (i32.load offset=%[8]d (global.get $block))))
      (i32.store8 offset=8 (i32.add (local.get $from) (local.get $b)) (i32.load8_u (i32.add (local.get $a) (local.get $b))))
      (local.set $b (i32.add (local.get $b) (i32.const 1)))
      (br $byte)))
    (i32.store (i32.load offset=24 (local.get $argv))
      (i32.sub (call $stile:encode (local.get $from) (i32.add (local.get $from) (local.get $n)) (local.get $to)) (local.get $to)))
    (return (i64.extend_i32_u (local.get $to))))
    ;; (address and length of a module's text that the host passed, address of its name) -> a promise of its namespace, in a block to be
    ;; freed. The engine wants a zero byte after the text.
    (if (local.get $b) (then (i32.store8 (i32.add (local.get $a) (local.get $b)) (i32.const 0))))
    (local.set $a (call $qjs_eval (local.get $a) (local.get $b) (i32.load offset=24 (local.get $argv)) (i32.const 1)))
    (i64.load (local.get $a))
    (call $wasm_free (local.get $a)))

  ;; The replacer of prelude/json.ts, for values that it would return as they are: texts, booleans, finite numbers, null that is the
  ;; property's own, objects and arrays without a class. No code of the extension's runs here. All else is for the replacer itself.
  (func $replace (param $this i64) (param $argv i32) (result i64) (local $value i64) (local $tag i32)
    (local.set $value (i64.load offset=8 (local.get $argv)))
    (local.set $tag (i32.wrap_i64 (i64.shr_u (local.get $value) (i64.const 32))))
    (block $other
      (block $same
        (br_if $same (i32.lt_u (local.get $tag) (i32.const 2))) ;; integers and booleans
        (br_if $same (i32.lt_u (i32.add (local.get $tag) (i32.const 7)) (i32.const 2))) ;; strings
        (if (i32.eq (local.get $tag) (i32.const -1)) (then (br_if $other (i32.eqz (call $is_plain (local.get $value)))) (br $same)))
        (if (i32.eq (local.get $tag) (i32.const 2))
          (then (br_if $other (i32.eqz (call $holds_null (local.get $this) (i64.load (local.get $argv))))) (br $same)))
        (br_if $other (i32.lt_u (i32.add (local.get $tag) (i32.const 9)) (i32.const 17))) ;; no number
        ;; A number lies 0x7ff8000a in the high word below its bits; an exponent of ones is none that JSON has.
        (br_if $other (i64.eq (i64.const 0x7ff0000000000000)
          (i64.and (i64.const 0x7ff0000000000000) (i64.add (local.get $value) (i64.const 0x7ff8000a00000000))))))
      (return (call $JS_DupValue (global.get $context) (local.get $value))))
    (call $JS_Call (global.get $context) (i64.load offset=%[18]d (global.get $block)) (local.get $this) (i32.const 2) (local.get $argv)))
  ;; Whether it is of the engine's class of objects, 1, or of arrays, 2: no Proxy, and no function.
  (func $is_ordinary (param $object i64) (result i32)
    (i32.lt_u (i32.sub (call $JS_GetClassID (local.get $object)) (i32.const 1)) (i32.const 2)))
  (func $is_plain (param $object i64) (result i32) (local $proto i64)
    (if (i32.eqz (call $is_ordinary (local.get $object))) (then (return (i32.const 0))))
    (local.set $proto (call $JS_GetPrototype (global.get $context) (local.get $object)))
    (call $JS_FreeValue (global.get $context) (local.get $proto))
    (i32.or (i64.eq (local.get $proto) (i64.load offset=%[19]d (global.get $block)))
      (i64.eq (local.get $proto) (i64.load offset=%[20]d (global.get $block)))))
  ;; Whether a property is null, and not what toJSON made null.
  (func $holds_null (param $object i64) (param $key i64) (result i32) (local $atom i32) (local $has i32) (local $value i64)
    (if (i32.eqz (call $is_ordinary (local.get $object))) (then (return (i32.const 0))))
    (local.set $atom (call $JS_ValueToAtom (global.get $context) (local.get $key)))
    (if (i32.eqz (local.get $atom)) (then (call $stile:limit-memory)))
    (local.set $has (call $JS_GetOwnProperty (global.get $context) (i32.add (global.get $block) (i32.const %[21]d))
      (local.get $object) (local.get $atom)))
    (call $JS_FreeAtom (global.get $context) (local.get $atom))
    (if (i32.ne (local.get $has) (i32.const 1)) (then (return (i32.const 0))))
    (local.set $value (i64.load offset=%[22]d (global.get $block)))
    (call $JS_FreeValue (global.get $context) (local.get $value))
    (call $JS_FreeValue (global.get $context) (i64.load offset=%[23]d (global.get $block)))
    (call $JS_FreeValue (global.get $context) (i64.load offset=%[24]d (global.get $block)))
    (i64.eq (local.get $value) (i64.const %[25]d)))

  (func $malloc (param $n i32) (result i32) (local $p i32)
    (local.set $p (call $wasm_malloc (local.get $n)))
    (if (i32.eqz (local.get $p)) (then (call $stile:limit-memory)))
    (local.get $p))
  (func $realloc (param $old i32) (param $size i32) (param $align i32) (param $n i32) (result i32)
    (local $p i32) (local $from i32) (local $to i32) (local $end i32)
    (if (i32.eqz (local.get $n)) (then (return (local.get $align))))
    (local.set $p (call $malloc (i32.add (local.get $n) (i32.const 1)))) ;; with room for a zero byte
    (if (local.get $size)
      (then
        (local.set $from (local.get $old))
        (local.set $to (local.get $p))
        (local.set $end (i32.add (local.get $p)
          (select (local.get $size) (local.get $n) (i32.lt_u (local.get $size) (local.get $n)))))
        (block $done (loop $next
          (br_if $done (i32.eq (local.get $to) (local.get $end)))
          (i32.store8 (local.get $to) (i32.load8_u (local.get $from)))
          (local.set $to (i32.add (local.get $to) (i32.const 1)))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (br $next)))
        (call $wasm_free (local.get $old))))
    (local.get $p))

  ;; A lone surrogate, which UTF-8 has no place for, becomes U+FFFD, which is as long.
  (func $replace_surrogates (param $p i32) (param $n i32) (local $end i32)
    (local.set $end (i32.add (local.get $p) (local.get $n)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $p) (local.get $end)))
      (if (i32.le_u (i32.add (local.get $p) (i32.const 8)) (local.get $end))
        (then
          (if (i64.eqz (i64.and (i64.load (local.get $p)) (i64.const 0x8080808080808080)))
            (then
              (local.set $p (i32.add (local.get $p) (i32.const 8)))
              (br $next)))))
      (if (i32.eq (i32.load8_u (local.get $p)) (i32.const 0xed))
        (then
          (if (i32.ge_u (i32.load8_u offset=1 (local.get $p)) (i32.const 0xa0))
            (then
              (i32.store16 (local.get $p) (i32.const 0xbfef))
              (i32.store8 offset=2 (local.get $p) (i32.const 0xbd))))))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (br $next))))

  (func $is_exception (param $value i64) (result i32)
    (i64.eq (i64.and (local.get $value) (i64.const 0xffffffff00000000)) (i64.const %[7]d)))
  (func $forget_exception
    (call $JS_FreeValue (global.get $context) (call $JS_GetException (global.get $context))))
  (func $time (type $time_type) (local $r i64)
    (if (i64.eqz (i64.load offset=%[9]d (global.get $block))) (then (return (i64.const 0))))
    (if (call $is_exception (call $JS_Call (global.get $context)
        (i64.load offset=%[9]d (global.get $block)) (i64.const %[6]d) (i32.const 0) (i32.const 0)))
      (then
        (call $forget_exception)
        (return (i64.const 0))))
    (i64.trunc_sat_f64_s (f64.mul (f64.load offset=%[10]d (global.get $block)) (f64.const 1e6))))

  ;; The engine says that a promise was rejected that nobody waits for, or that somebody does after all. What it passes are
  ;; copies of the promise and the reason, in blocks to be freed.
  (func $rejected (param $promise i32) (param $reason i32) (param $handled i32)
    (if (i64.ne (i64.load offset=%[14]d (global.get $block)) (i64.const 0))
      (then
        (i64.store offset=%[15]d (global.get $block) (i64.load (local.get $promise)))
        (i64.store offset=%[16]d (global.get $block) (i64.load (local.get $reason)))
        (i64.store offset=%[17]d (global.get $block) (i64.extend_i32_u (local.get $handled)))
        (if (call $is_exception (call $JS_Call (global.get $context) (i64.load offset=%[14]d (global.get $block))
            (i64.const %[6]d) (i32.const 3) (i32.add (global.get $block) (i32.const %[15]d))))
          (then (call $forget_exception)))))
    (call $JS_FreeValue (global.get $context) (i64.load (local.get $promise)))
    (call $JS_FreeValue (global.get $context) (i64.load (local.get $reason)))
    (call $wasm_free (local.get $promise))
    (call $wasm_free (local.get $reason)))

  ;; Calls an export: enter starts it, then jobs run and turn decides, until turn has put the result into slot 0.
  (func $run (param $export i32) (local $r i64)
    (i64.store offset=%[11]d (global.get $block) (i64.extend_i32_u (local.get $export)))
    (local.set $r (call $JS_Call (global.get $context) (i64.load offset=%[12]d (global.get $block))
      (i64.const %[6]d) (i32.const 1) (i32.add (global.get $block) (i32.const %[11]d))))
    (if (call $is_exception (local.get $r)) (then (call $stile:uncaught-error)))
    (loop $again
      (block $idle (loop $job
        (br_if $idle (i32.eqz (call $JS_IsJobPending (global.get $runtime))))
        (if (i32.lt_s (call $JS_ExecutePendingJob (global.get $runtime)
            (i32.add (global.get $block) (i32.const %[8]d))) (i32.const 0))
          (then (call $forget_exception)))
        (br $job)))
      (local.set $r (call $JS_Call (global.get $context) (i64.load offset=%[13]d (global.get $block))
        (i64.const %[6]d) (i32.const 0) (i32.const 0)))
      (if (call $is_exception (local.get $r)) (then (call $stile:uncaught-error)))
      (br_if $again (i32.eqz (i32.wrap_i64 (local.get $r))))))
`

// bindingsText is the core module that connects a world to the engine, as WebAssembly text. It imports the functions of the
// world from "world" and exports one function for each function the world exports. The engine has imports, or is supplied.
func bindingsText(l *linkage, at roots, shape engineShape, supplied bool) string {
	var b strings.Builder
	b.WriteString("(module $bindings\n  (type $time_type (func (result i64)))\n")
	b.WriteString("  (import \"image\" \"memory\" (memory 1))\n")
	fmt.Fprintf(&b, "  (import \"engine\" \"__indirect_function_table\" (table $engine %d funcref))\n", shape.Slot+tableSlots)
	table, first := "$engine", shape.Slot+1
	if !supplied {
		b.WriteString("  (import \"image\" \"table\" (table $image 3 funcref))\n")
		table, first = "$image", 0
	}
	for _, f := range engineExports {
		fmt.Fprintf(&b, "  (import \"engine\" %q (func $%s%s))\n", f.name, f.name, f.signature)
	}
	for i, c := range l.core() {
		fmt.Fprintf(&b, "  (import \"world\" %q (func $import%d%s))\n", c.name, i, signature(c.params, c.results))
	}
	fmt.Fprintf(&b, "  (elem (table %s) (i32.const %d) func $time $realloc $rejected)\n", table, first)
	fmt.Fprintf(&b, bindingsCore, at.Context, at.Runtime, at.Block, shape.Slot, opImport, jsUndefined, jsException,
		blockLength, blockNow, blockTime, blockArgument, blockEnter, blockTurn,
		blockRejected, blockRejection, blockRejection+8, blockRejection+16,
		blockReplacer, blockRecord, blockArray, blockProperty, blockProperty+8, blockProperty+16, blockProperty+24, int64(jsNull))
	writeCall(&b, l.core())
	b.WriteString(textCode)
	for i, f := range l.exportFuncs() {
		if f.Interface.Name == abi.ExtensionMemory { // after all others
			writeMemory(&b, l, f, shape.StackTop)
			continue
		}
		params, results := f.Core(false)
		fmt.Fprintf(&b, "  (func $export%d (export %q)%s\n", i, coreName(f), signature(params, results))
		for k, p := range params {
			fmt.Fprintf(&b, "    (%s.store offset=%d (global.get $block) (local.get %d))\n", p, blockSlots+8*k, k)
		}
		fmt.Fprintf(&b, "    (call $run (i32.const %d))\n", i)
		for _, r := range results {
			fmt.Fprintf(&b, "    (%s.load offset=%d (global.get $block))\n", r, blockSlots)
		}
		b.WriteString("  )\n")
	}
	b.WriteString(")\n")
	return b.String()
}

// writeCall writes the function that calls an import of the world by number, with its parameters in the slots.
func writeCall(b *strings.Builder, imports []coreImport) {
	b.WriteString("  (func $call (param $number i32)\n")
	b.WriteString(strings.Repeat("    (block\n", len(imports)))
	b.WriteString("    (br_table")
	for i := range len(imports) + 1 {
		fmt.Fprintf(b, " %d", i)
	}
	b.WriteString(" (local.get $number))\n")
	for i, c := range imports {
		b.WriteString("    )\n    ")
		if len(c.results) > 0 {
			fmt.Fprintf(b, "(%s.store offset=%d (global.get $block) ", c.results[0], blockSlots)
		}
		fmt.Fprintf(b, "(call $import%d", i)
		for k, p := range c.params {
			fmt.Fprintf(b, " (%s.load offset=%d (global.get $block))", p, blockSlots+8*k)
		}
		b.WriteString(strings.Repeat(")", 1+len(c.results)) + "\n    (return)\n")
	}
	b.WriteString("  )\n")
}

// coreImport is a function that the bindings import from "world".
type coreImport struct {
	name            string
	params, results []abi.CoreType
}

// core lists the imports of the bindings in the order of their numbers.
func (l *linkage) core() []coreImport {
	var imports []coreImport
	for _, f := range l.calls {
		params, results := f.Core(true)
		imports = append(imports, coreImport{coreName(f), params, results})
	}
	for _, r := range l.drops {
		name := r.Interface.Name + "#[resource-drop]" + r.Name
		imports = append(imports, coreImport{name, []abi.CoreType{abi.CoreI32}, nil})
	}
	return imports
}

func coreName(f *abi.Func) string { return f.Interface.Name + "#" + f.Name }

func signature(params, results []abi.CoreType) string {
	var s strings.Builder
	for _, p := range params {
		fmt.Fprintf(&s, " (param %s)", p)
	}
	for _, r := range results {
		fmt.Fprintf(&s, " (result %s)", r)
	}
	return s.String()
}
