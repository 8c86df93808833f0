  (global $console (mut i32) (i32.const -1)) ;; -1 before it is known, and 0 if there is none
  (func $logs (result i32) (local $at i32) (local $end i32)
    (if (i32.eq (global.get $console) (i32.const -1)) (then
      (global.set $console (i32.const 0))
      (call $env-names (global.get $env) (call $result))
      (local.set $at (i32.load (call $result)))
      (local.set $end (i32.add (local.get $at) (i32.shl (i32.load offset=4 (call $result)) (i32.const 4))))
      (block $done (loop $next
        (br_if $done (i32.eq (local.get $at) (local.get $end)))
        (if (call $same (i32.load (local.get $at)) (i32.load offset=4 (local.get $at)) (call $text (i32.const NAME_CONSOLE)) (i32.const 7)) (then
          (call $console-get (global.get $env) (call $text (i32.const NAME_CONSOLE)) (i32.const 7) (call $result))
          (if (i32.eqz (i32.load8_u (call $result))) (then (global.set $console (i32.load offset=8 (call $result)))))
          (br $done)))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))))
    (global.get $console))
  (func (export "get_log_level") (result i32) (select (i32.const 0) (i32.const 0x7fffffff) (call $logs)))
  (func $log (param $level i32) (param $message i64) (local $at i32) (local $length i32)
    (local.set $length (i32.wrap_i64 (call $length (local.get $message))))
    (if (local.get $length) (then
      (if (call $logs) (then
        (local.set $at (call $at (i32.wrap_i64 (local.get $message))))
        (call $clean (local.get $at) (local.get $length))
        (call $console-log (call $logs) (local.get $level) (local.get $at) (local.get $length))))
      (call $discard (local.get $message)))))
  (func (export "log_trace") (param i64) (call $log (i32.const 0) (local.get 0)))
  (func (export "log_debug") (param i64) (call $log (i32.const 1) (local.get 0)))
  (func (export "log_info") (param i64) (call $log (i32.const 2) (local.get 0)))
  (func (export "log_warn") (param i64) (call $log (i32.const 3) (local.get 0)))
  (func (export "log_error") (param i64) (call $log (i32.const 4) (local.get 0)))
