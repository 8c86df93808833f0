(module $kernel
  ;; The memory of the Extism kernel, which is a region of the plug-in's own memory: it begins where the pages end that the plug-in knows
  ;; of, and moves up when the plug-in grows them. So an offset, which is all the plug-in has, counts from the region's beginning. FIRST is
  ;; the offset of the first block; below are the area for results, and texts.
  ;;
  ;; A block has 16 bytes before its content: its capacity, its length, the next freed block, and a mark that depends on its offset.
  (import "guest" "memory" (memory 0))
  (import "guest" "stile:visible" (global $visible (mut i32))) ;; pages that the plug-in knows of
  (import "guest" "stile:kernel" (global $pages (mut i32))) ;; pages of the region
  (global (export "allocating") (mut i32) (i32.const 0)) ;; the adapter for preview 1 asks; this allocator calls nothing
  (global $top (mut i32) (i32.const FIRST)) ;; where the next new block begins
  (global $freed (mut i32) (i32.const 0))
  (global $input (mut i64) (i64.const 0))
  (global $input-length (mut i64) (i64.const 0))
  (global $output (mut i64) (i64.const 0))
  (global $output-length (mut i64) (i64.const 0))
  (global $error (mut i64) (i64.const 0))

  (func $at (param $offset i32) (result i32)
    (i32.add (i32.shl (global.get $visible) (i32.const 16)) (local.get $offset)))
  (func $mark (param $offset i32) (result i32) (i32.xor (local.get $offset) (i32.const 0x5ec0de0d)))
  (func $end (result i64) (i64.shl (i64.extend_i32_u (global.get $pages)) (i64.const 16)))

  ;; Makes the region this large. If memory is refused, it traps, which the host reports as the limit.
  (func $reserve (export "reserve") (param $bytes i64) (local $more i64)
    (if (i64.le_u (local.get $bytes) (call $end)) (then (return)))
    (local.set $more (i64.sub (i64.shr_u (i64.add (local.get $bytes) (i64.const 65535)) (i64.const 16)) (i64.extend_i32_u (global.get $pages))))
    (if (i32.eq (memory.grow (i32.wrap_i64 (local.get $more))) (i32.const -1)) (then (unreachable)))
    (global.set $pages (i32.add (global.get $pages) (i32.wrap_i64 (local.get $more)))))

  ;; Finds a freed block of this capacity, or a little more, among the 64 that were freed last.
  (func $reuse (param $capacity i32) (result i32) (local $block i32) (local $before i32) (local $n i32) (local $has i32)
    (local.set $block (global.get $freed))
    (loop $next
      (if (i32.or (i32.eqz (local.get $block)) (i32.eq (local.get $n) (i32.const 64))) (then (return (i32.const 0))))
      (local.set $has (i32.load (call $at (i32.sub (local.get $block) (i32.const 16)))))
      (if (i32.and (i32.ge_u (local.get $has) (local.get $capacity)) (i32.le_u (i32.shr_u (local.get $has) (i32.const 1)) (i32.add (local.get $capacity) (i32.const 128))))
        (then
          (if (local.get $before)
            (then (i32.store (call $at (i32.sub (local.get $before) (i32.const 8))) (i32.load (call $at (i32.sub (local.get $block) (i32.const 8))))))
            (else (global.set $freed (i32.load (call $at (i32.sub (local.get $block) (i32.const 8)))))))
          (return (local.get $block))))
      (local.set $before (local.get $block))
      (local.set $block (i32.load (call $at (i32.sub (local.get $block) (i32.const 8)))))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br $next))
    (unreachable))

  ;; Allocates a block, whose content is not cleared. Freed ones are used when the region would have to grow.
  (func $block (export "block") (param $length i32) (result i32) (local $capacity i32) (local $block i32) (local $end i64)
    (if (i32.gt_u (local.get $length) (i32.const 0x7fff0000)) (then (call $reserve (i64.const 0xffff0000)) (unreachable)))
    (local.set $capacity (i32.and (i32.add (local.get $length) (i32.const 15)) (i32.const -16)))
    (local.set $end (i64.add (i64.extend_i32_u (global.get $top)) (i64.add (i64.extend_i32_u (local.get $capacity)) (i64.const 16))))
    (if (i64.gt_u (local.get $end) (call $end)) (then (local.set $block (call $reuse (local.get $capacity)))))
    (if (i32.eqz (local.get $block)) (then
      (call $reserve (local.get $end))
      (local.set $block (i32.add (global.get $top) (i32.const 16)))
      (global.set $top (i32.wrap_i64 (local.get $end)))
      (i32.store (call $at (i32.sub (local.get $block) (i32.const 16))) (local.get $capacity))))
    (i32.store (call $at (i32.sub (local.get $block) (i32.const 12))) (local.get $length))
    (i32.store (call $at (i32.sub (local.get $block) (i32.const 4))) (call $mark (local.get $block)))
    (local.get $block))

  ;; Whether a block that was not freed begins at an offset.
  (func $is-block (param $offset i64) (result i32)
    (if (i32.or (i64.gt_u (local.get $offset) (i64.extend_i32_u (global.get $top))) (i64.lt_u (local.get $offset) (i64.const FIRST))) (then (return (i32.const 0))))
    (i32.eq (i32.load (call $at (i32.sub (i32.wrap_i64 (local.get $offset)) (i32.const 4)))) (call $mark (i32.wrap_i64 (local.get $offset)))))
  ;; Whether the region has this many bytes at an offset.
  (func $has (param $offset i64) (param $length i64) (result i32) (local $end i64)
    (local.set $end (call $end))
    (if (i64.gt_u (local.get $length) (local.get $end)) (then (return (i32.const 0))))
    (i32.and (i64.ge_u (local.get $offset) (i64.const FIRST)) (i64.le_u (local.get $offset) (i64.sub (local.get $end) (local.get $length)))))

  (func (export "cabi_realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32) (local $new i32)
    (local.set $new (call $at (call $block (local.get $size))))
    (memory.copy (local.get $new) (local.get $old) (select (local.get $old-size) (local.get $size) (i32.lt_u (local.get $old-size) (local.get $size))))
    (local.get $new))

  (func (export "alloc") (param $length i64) (result i64)
    (if (i64.eqz (local.get $length)) (then (return (i64.const 0))))
    (i64.extend_i32_u (call $block (select (i32.const -1) (i32.wrap_i64 (local.get $length)) (i64.gt_u (local.get $length) (i64.const 0xffffffff))))))
  (func (export "free") (param $offset i64) (local $block i32)
    (if (i32.eqz (call $is-block (local.get $offset))) (then (return)))
    (local.set $block (i32.wrap_i64 (local.get $offset)))
    (i32.store (call $at (i32.sub (local.get $block) (i32.const 4))) (i32.const 0))
    (i32.store (call $at (i32.sub (local.get $block) (i32.const 8))) (global.get $freed))
    (global.set $freed (local.get $block))
    (if (i64.eq (local.get $offset) (global.get $input)) (then (global.set $input-length (i64.const 0)))))
  (func (export "length") (export "length_unsafe") (param $offset i64) (result i64)
    (if (i32.eqz (call $is-block (local.get $offset))) (then (return (i64.const 0))))
    (i64.load32_u (call $at (i32.sub (i32.wrap_i64 (local.get $offset)) (i32.const 12)))))

  (func (export "load_u8") (param $offset i64) (result i32)
    (if (i32.eqz (call $has (local.get $offset) (i64.const 1))) (then (return (i32.const 0))))
    (i32.load8_u (call $at (i32.wrap_i64 (local.get $offset)))))
  (func (export "load_u64") (param $offset i64) (result i64)
    (if (i32.eqz (call $has (local.get $offset) (i64.const 8))) (then (return (i64.const 0))))
    (i64.load (call $at (i32.wrap_i64 (local.get $offset)))))
  (func (export "store_u8") (param $offset i64) (param $value i32)
    (if (i32.eqz (call $has (local.get $offset) (i64.const 1))) (then (return)))
    (i32.store8 (call $at (i32.wrap_i64 (local.get $offset))) (local.get $value)))
  (func (export "store_u64") (param $offset i64) (param $value i64)
    (if (i32.eqz (call $has (local.get $offset) (i64.const 8))) (then (return)))
    (i64.store (call $at (i32.wrap_i64 (local.get $offset))) (local.get $value)))

  (func (export "input_set") (param $offset i64) (param $length i64)
    (if (i32.eqz (call $has (local.get $offset) (local.get $length))) (then (return)))
    (global.set $input (local.get $offset))
    (global.set $input-length (local.get $length)))
  (func (export "input_offset") (result i64) (global.get $input))
  (func (export "input_length") (result i64) (global.get $input-length))
  (func (export "input_load_u8") (param $at i64) (result i32)
    (if (i64.ge_u (local.get $at) (global.get $input-length)) (then (return (i32.const 0))))
    (i32.load8_u (call $at (i32.wrap_i64 (i64.add (global.get $input) (local.get $at))))))
  (func (export "input_load_u64") (param $at i64) (result i64)
    (if (i32.or (i64.lt_u (global.get $input-length) (i64.const 8)) (i64.gt_u (local.get $at) (i64.sub (global.get $input-length) (i64.const 8)))) (then (return (i64.const 0))))
    (i64.load (call $at (i32.wrap_i64 (i64.add (global.get $input) (local.get $at))))))

  (func (export "output_set") (param $offset i64) (param $length i64)
    (if (i32.eqz (call $has (local.get $offset) (local.get $length))) (then (return)))
    (global.set $output (local.get $offset))
    (global.set $output-length (local.get $length)))
  (func (export "output_offset") (result i64) (global.get $output))
  (func (export "output_length") (result i64) (global.get $output-length))
  (func (export "error_set") (param $offset i64)
    (if (i64.ne (local.get $offset) (i64.const 0)) (then
      (if (i32.eqz (call $has (local.get $offset) (i64.const 1))) (then (return)))))
    (global.set $error (local.get $offset)))
  (func (export "error_get") (result i64) (global.get $error))
  (func (export "memory_bytes") (result i64) (call $end))
  (func (export "reset")
    (global.set $top (i32.const FIRST))
    (global.set $freed (i32.const 0))
    (global.set $input (i64.const 0))
    (global.set $input-length (i64.const 0))
    (global.set $output (i64.const 0))
    (global.set $output-length (i64.const 0))
    (global.set $error (i64.const 0))))
