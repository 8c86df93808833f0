package toolchain

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// maxOpenFiles is how many files a module of preview 1 has open at a time, directories that are there from the start included. The adapter has no
// memory, so what it knows of them is in global variables.
const maxOpenFiles = 64

// lent is how many bytes at address 0 of the guest's memory functions on files lend for results, and put back what was there.
const lent = 1024

// The error numbers that only functions on files answer with.
const (
	errnoMfile = 33
)

// filesWIT is the part of wasi:filesystem that the adapter imports.
const filesWIT = `package wasi:filesystem@0.2.0 {
  interface types {
    use wasi:io/streams@0.2.0.{output-stream};
    enum error-code { access, would-block, already, bad-descriptor, busy, deadlock, quota, exist, file-too-large, illegal-byte-sequence, in-progress,
      interrupted, invalid, io, is-directory, loop, too-many-links, message-size, name-too-long, no-device, no-entry, no-lock, insufficient-memory,
      insufficient-space, not-directory, not-empty, not-recoverable, unsupported, no-tty, no-such-device, overflow, not-permitted, pipe, read-only,
      invalid-seek, text-file-busy, cross-device }
    enum descriptor-type { unknown, block-device, character-device, directory, fifo, symbolic-link, regular-file, socket }
    flags descriptor-flags { read, write, file-integrity-sync, data-integrity-sync, requested-write-sync, mutate-directory }
    flags path-flags { symlink-follow }
    flags open-flags { create, directory, exclusive, truncate }
    use wasi:clocks/wall-clock@0.2.0.{datetime};
    record descriptor-stat { %type: descriptor-type, link-count: u64, size: u64, data-access-timestamp: option<datetime>,
      data-modification-timestamp: option<datetime>, status-change-timestamp: option<datetime> }
    record metadata-hash-value { lower: u64, upper: u64 }
    record directory-entry { %type: descriptor-type, name: string }
    resource directory-entry-stream { read-directory-entry: func() -> result<option<directory-entry>, error-code>; }
    resource descriptor {
      append-via-stream: func() -> result<output-stream, error-code>;
      sync: func() -> result<_, error-code>;
      get-type: func() -> result<descriptor-type, error-code>;
      set-size: func(size: u64) -> result<_, error-code>;
      read: func(length: u64, offset: u64) -> result<tuple<list<u8>, bool>, error-code>;
      write: func(buffer: list<u8>, offset: u64) -> result<u64, error-code>;
      read-directory: func() -> result<directory-entry-stream, error-code>;
      create-directory-at: func(path: string) -> result<_, error-code>;
      stat: func() -> result<descriptor-stat, error-code>;
      stat-at: func(path-flags: path-flags, path: string) -> result<descriptor-stat, error-code>;
      open-at: func(path-flags: path-flags, path: string, open-flags: open-flags, %flags: descriptor-flags) -> result<descriptor, error-code>;
      readlink-at: func(path: string) -> result<string, error-code>;
      remove-directory-at: func(path: string) -> result<_, error-code>;
      rename-at: func(old-path: string, new-descriptor: borrow<descriptor>, new-path: string) -> result<_, error-code>;
      symlink-at: func(old-path: string, new-path: string) -> result<_, error-code>;
      unlink-file-at: func(path: string) -> result<_, error-code>;
    }
  }
  interface preopens {
    use types.{descriptor};
    get-directories: func() -> list<tuple<descriptor, string>>;
  }
}
`

// filesImports are its functions, as wasiImports has others.
var filesImports = func() map[string]wasiImport {
	const types, d = "wasi:filesystem/types@0.2.0#", "[method]descriptor."
	all := map[string]wasiImport{
		"$directories": {"wasi:filesystem/preopens@0.2.0#get-directories", "(param i32)"},
		"$next":        {types + "[method]directory-entry-stream.read-directory-entry", "(param i32 i32)"},
		"$drop-list":   {types + "[resource-drop]directory-entry-stream", "(param i32)"},
		"$drop-file":   {types + "[resource-drop]descriptor", "(param i32)"},
		"$drop-out":    {"wasi:io/streams@0.2.0#[resource-drop]output-stream", "(param i32)"},
	}
	for id, f := range map[string]string{
		"$append":  "append-via-stream i32 i32",
		"$sync":    "sync i32 i32",
		"$type":    "get-type i32 i32",
		"$resize":  "set-size i32 i64 i32",
		"$read":    "read i32 i64 i64 i32",
		"$put-at":  "write i32 i32 i32 i64 i32",
		"$list":    "read-directory i32 i32",
		"$mkdir":   "create-directory-at i32 i32 i32 i32",
		"$stat":    "stat i32 i32",
		"$stat-at": "stat-at i32 i32 i32 i32 i32",
		"$open-at": "open-at i32 i32 i32 i32 i32 i32 i32",
		"$link-of": "readlink-at i32 i32 i32 i32",
		"$rmdir":   "remove-directory-at i32 i32 i32 i32",
		"$rename":  "rename-at i32 i32 i32 i32 i32 i32 i32",
		"$symlink": "symlink-at i32 i32 i32 i32 i32 i32",
		"$unlink":  "unlink-file-at i32 i32 i32 i32",
	} {
		name, params, _ := strings.Cut(f, " ")
		all[id] = wasiImport{types + d + name, "(param " + params + ")"}
	}
	return all
}()

// perFile are the variables of each open file: its handle (0 if there is none), its position (of a directory: how many entries were read), its flags
// (1 for a directory, and those of preview 1 from bit 8 on), and the stream of its entries.
var perFile = []struct{ name, typ string }{{"handle", "i32"}, {"position", "i64"}, {"flags", "i32"}, {"entries", "i32"}}

// accessors are functions to read and write the variables of the file with a number.
func accessors() map[string]adapterFunc {
	all := map[string]adapterFunc{}
	branch := func(leaf func(k int) string) string {
		var b strings.Builder
		for range maxOpenFiles {
			b.WriteString("(block ")
		}
		b.WriteString("(br_table")
		for k := range maxOpenFiles {
			fmt.Fprintf(&b, " %d", k)
		}
		fmt.Fprintf(&b, " %d (local.get 0))", maxOpenFiles-1)
		for k := range maxOpenFiles {
			fmt.Fprintf(&b, ") %s\n", leaf(k))
		}
		return b.String()
	}
	for _, v := range perFile {
		all["$get-"+v.name] = adapterFunc{text: fmt.Sprintf("(func $get-%s (param i32) (result %s)\n%s unreachable)", v.name, v.typ, branch(func(k int) string {
			return fmt.Sprintf("(return (global.get $%s%d))", v.name, k)
		}))}
		all["$set-"+v.name] = adapterFunc{text: fmt.Sprintf("(func $set-%s (param i32 %s)\n%s)", v.name, v.typ, branch(func(k int) string {
			return fmt.Sprintf("(global.set $%s%d (local.get 1)) (return)", v.name, k)
		}))}
	}
	return all
}

// fileGlobals are the global variables of the adapter of a module that uses files.
var fileGlobals = sync.OnceValue(func() string {
	var b strings.Builder
	for k := range maxOpenFiles {
		for _, v := range perFile {
			fmt.Fprintf(&b, "  (global $%s%d (mut %s) (%s.const 0))\n", v.name, k, v.typ, v.typ)
		}
	}
	for at := 0; at < lent; at += 8 {
		fmt.Fprintf(&b, "  (global $lent%d (mut i64) (i64.const 0))\n", at)
	}
	b.WriteString("  (global $rooted (mut i32) (i32.const 0))\n  (global $roots (mut i32) (i32.const 0))\n")
	return b.String()
})

// fileErrnos are the numbers of preview 1 for the cases of error-code.
var fileErrnos = []byte{2, 6, 7, 8, 10, 16, 19, 20, 22, 25, 26, 27, 28, 29, 31, 32, 34, 35, 37, 43, 44, 46, 48, 51, 54, 55, 56, 58, 59, 60, 61, 63, 64, 69, 70, 74, 75}

// fileHelpers are the helpers of functions on files.
var fileHelpers = sync.OnceValue(func() map[string]adapterFunc {
	all := accessors()
	var lend, back, errno strings.Builder
	for at := 0; at < lent; at += 8 {
		fmt.Fprintf(&lend, "(global.set $lent%d (i64.load (i32.const %[1]d)))\n", at)
		fmt.Fprintf(&back, "(i64.store (i32.const %d) (global.get $lent%[1]d))\n", at)
	}
	for i, n := range fileErrnos {
		fmt.Fprintf(&errno, "(if (i32.eq (local.get 0) (i32.const %d)) (then (return (i32.const %d))))\n", i, n)
	}
	maps.Copy(all, map[string]adapterFunc{
		// Lends memory. What the host allocates meanwhile is in a buffer of the guest, unless that is in the lent memory, where it would not stay.
		"$lend": {text: fmt.Sprintf(`(func $lend (param $into i32) (param $end i32)
%s(global.set $into (select (i32.const 0) (local.get $into) (i32.lt_u (local.get $into) (i32.const %d)))) (global.set $end (local.get $end)))`, lend.String(), lent)},
		// Lends memory in which the host also allocates.
		"$lend-all": {uses: "$lend", text: fmt.Sprintf(`(func $lend-all (call $lend (i32.const 0) (i32.const 0)) (global.set $into (i32.const 32)) (global.set $end (i32.const %d)))`, lent)},
		"$back":     {text: "(func $back (global.set $into (i32.const 0))\n" + back.String() + ")"},
		"$code":     {text: "(func $code (param i32) (result i32)\n" + errno.String() + fmt.Sprintf("(i32.const %d))", errnoIo)},
		// The number of an open file, or -1.
		"$slot": {uses: "$get-handle", text: fmt.Sprintf(`(func $slot (param $fd i32) (result i32)
    (local.set $fd (i32.sub (local.get $fd) (i32.const 3)))
    (if (i32.ge_u (local.get $fd) (i32.const %d)) (then (return (i32.const -1))))
    (select (local.get $fd) (i32.const -1) (call $get-handle (local.get $fd))))`, maxOpenFiles)},
		"$free": {uses: "$get-handle", text: fmt.Sprintf(`(func $free (result i32) (local $k i32)
    (loop $next
      (if (i32.eqz (call $get-handle (local.get $k))) (then (return (local.get $k))))
      (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const %d))))
    (i32.const -1))`, maxOpenFiles)},
		// Leaves the list of the directories in lent memory, which the caller puts back. The first call keeps their handles.
		"$look": {uses: "$directories $lend-all $set-handle $set-flags $drop-file", text: fmt.Sprintf(`(func $look (local $k i32) (local $at i32)
    (call $lend-all)
    (call $directories (i32.const 0))
    (local.set $at (i32.load (i32.const 0)))
    (if (i32.eqz (global.get $rooted)) (then (global.set $roots (i32.load (i32.const 4)))))
    (if (i32.gt_u (global.get $roots) (i32.const %d)) (then unreachable))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $k) (i32.load (i32.const 4))))
      (if (global.get $rooted)
        (then (call $drop-file (i32.load (local.get $at))))
        (else (call $set-handle (local.get $k) (i32.load (local.get $at))) (call $set-flags (local.get $k) (i32.const 1))))
      (local.set $at (i32.add (local.get $at) (i32.const 12)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br $next)))
    (global.set $rooted (i32.const 1)))`, maxOpenFiles)},
		// A function whose result has an error at an address of lent memory.
		"$outcome": {uses: "$code $back", text: `(func $outcome (param $at i32) (result i32) (local $failed i32)
    (local.set $failed (select (i32.load8_u (local.get $at)) (i32.const -1) (i32.load8_u (i32.const 0))))
    (call $back)
    (if (i32.eq (local.get $failed) (i32.const -1)) (then (return (i32.const 0))))
    (call $code (local.get $failed)))`},
		// Writes a filestat from the descriptor-stat that is in lent memory, unless it is an error. It puts the memory back.
		"$filestat": {uses: "$back $outcome", text: `(func $filestat (param $out i32) (result i32) (local $type i32) (local $size i64) (local $links i64) (local $time i64)
    (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 8)))))
    (local.set $type (i32.load8_u (i32.const 8)))
    (local.set $links (i64.load (i32.const 16)))
    (local.set $size (i64.load (i32.const 24)))
    (if (i32.load8_u (i32.const 56)) (then
      (local.set $time (i64.add (i64.mul (i64.load (i32.const 64)) (i64.const 1000000000)) (i64.load32_u (i32.const 72))))))
    (call $back)
    (memory.fill (local.get $out) (i32.const 0) (i32.const 64))
    (i32.store8 offset=16 (local.get $out) (call $filetype (local.get $type)))
    (i64.store offset=24 (local.get $out) (local.get $links))
    (i64.store offset=32 (local.get $out) (local.get $size))
    (i64.store offset=40 (local.get $out) (local.get $time))
    (i64.store offset=48 (local.get $out) (local.get $time))
    (i64.store offset=56 (local.get $out) (local.get $time))
    (i32.const 0))`},
		"$filetype": {text: `(func $filetype (param $type i32) (result i32)
    (if (i32.eq (local.get $type) (i32.const 3)) (then (return (i32.const 3))))
    (if (i32.eq (local.get $type) (i32.const 5)) (then (return (i32.const 7))))
    (if (i32.eq (local.get $type) (i32.const 6)) (then (return (i32.const 4))))
    (i32.const 0))`},
		// Reads into buffers at an offset, until one is not full. The number of bytes goes to $out.
		"$read-in": {uses: "$get-handle $lend $back $read $outcome", text: `(func $read-in (param $k i32) (param $at i32) (param $n i32) (param $offset i64) (param $out i32) (result i32)
    (local $total i32) (local $to i32) (local $left i32) (local $got i32) (local $from i32)
    (block $end (loop $next
      (br_if $end (i32.eqz (local.get $n)))
      (local.set $to (i32.load (local.get $at)))
      (local.set $left (i32.load offset=4 (local.get $at)))
      (block $full (loop $more
        (br_if $full (i32.eqz (local.get $left)))
        (call $lend (local.get $to) (i32.add (local.get $to) (local.get $left)))
        (call $read (call $get-handle (local.get $k)) (i64.extend_i32_u (local.get $left)) (local.get $offset) (i32.const 0))
        (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
        (local.set $from (i32.load (i32.const 4)))
        (local.set $got (i32.load (i32.const 8)))
        (call $back)
        (br_if $end (i32.eqz (local.get $got)))
        (if (i32.gt_u (local.get $got) (local.get $left)) (then unreachable))
        (if (i32.ne (local.get $from) (local.get $to)) (then (memory.copy (local.get $to) (local.get $from) (local.get $got))))
        (local.set $to (i32.add (local.get $to) (local.get $got)))
        (local.set $left (i32.sub (local.get $left) (local.get $got)))
        (local.set $total (i32.add (local.get $total) (local.get $got)))
        (local.set $offset (i64.add (local.get $offset) (i64.extend_i32_u (local.get $got))))
        (br $more)))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $next)))
    (i32.store (local.get $out) (local.get $total))
    (i32.const 0))`},
		// Writes buffers at an offset, or at the end of a file that was opened for that.
		"$write-out": {uses: "$get-handle $get-flags $lend $back $put-at $append $put $drop-out $drop-error $outcome", text: fmt.Sprintf(`(func $write-out (param $k i32) (param $at i32) (param $n i32) (param $offset i64) (param $out i32) (result i32)
    (local $total i32) (local $from i32) (local $left i32) (local $some i32) (local $most i32) (local $stream i32) (local $errno i32)
    (local.set $most (i32.const 65536))
    (if (i32.and (call $get-flags (local.get $k)) (i32.const 0x100)) (then
      (call $lend (i32.const 0) (i32.const 0))
      (call $append (call $get-handle (local.get $k)) (i32.const 0))
      (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
      (local.set $stream (i32.load (i32.const 4)))
      (call $back)
      (local.set $most (i32.const 4096))))
    (block $end (loop $next
      (br_if $end (i32.eqz (local.get $n)))
      (local.set $from (i32.load (local.get $at)))
      (local.set $left (i32.load offset=4 (local.get $at)))
      (block $done (loop $more
        (br_if $done (i32.eqz (local.get $left)))
        (local.set $some (select (local.get $most) (local.get $left) (i32.gt_u (local.get $left) (local.get $most))))
        (call $lend (i32.const 0) (i32.const 0))
        (if (local.get $stream)
          (then
            (call $put (local.get $stream) (local.get $from) (local.get $some) (i32.const 0))
            (if (i32.load8_u (i32.const 0)) (then
              (local.set $errno (i32.const %d))
              (if (i32.eqz (i32.load8_u (i32.const 4))) (then (call $drop-error (i32.load (i32.const 8)))))))
            (call $back))
          (else
            (call $put-at (call $get-handle (local.get $k)) (local.get $from) (local.get $some) (local.get $offset) (i32.const 0))
            (local.set $errno (call $outcome (i32.const 8)))))
        (br_if $end (local.get $errno))
        (local.set $from (i32.add (local.get $from) (local.get $some)))
        (local.set $left (i32.sub (local.get $left) (local.get $some)))
        (local.set $total (i32.add (local.get $total) (local.get $some)))
        (local.set $offset (i64.add (local.get $offset) (i64.extend_i32_u (local.get $some))))
        (br $more)))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $next)))
    (if (local.get $stream) (then (call $drop-out (local.get $stream))))
    (if (i32.and (i32.ne (local.get $errno) (i32.const 0)) (i32.eqz (local.get $total))) (then (return (local.get $errno))))
    (i32.store (local.get $out) (local.get $total))
    (i32.const 0))`, errnoIo)},
		// Closes the stream of a directory's entries.
		"$rewind": {uses: "$get-entries $set-entries $set-position $drop-list", text: `(func $rewind (param $k i32)
    (if (call $get-entries (local.get $k)) (then (call $drop-list (call $get-entries (local.get $k)))))
    (call $set-entries (local.get $k) (i32.const 0))
    (call $set-position (local.get $k) (i64.const 0)))`},
	})
	return all
})

// fileFunc is a function of preview 1 on files.
type fileFunc struct {
	fd           int // its parameter that names a file; -1 for one that has another answer to every file
	uses, locals string
	text         string // $k is the number of the file, which is open
}

// fileFuncs are the functions of preview 1 on files.
var fileFuncs = sync.OnceValue(func() map[string]fileFunc {
	path := func(id string) fileFunc {
		return fileFunc{uses: "$lend $outcome " + id, text: fmt.Sprintf(`(call $lend (i32.const 0) (i32.const 0))
    (call %s (call $get-handle (local.get $k)) (local.get 1) (local.get 2) (i32.const 0))
    (call $outcome (i32.const 1))`, id)}
	}
	sync := fileFunc{uses: "$sync $lend $outcome", text: `(call $lend (i32.const 0) (i32.const 0)) (call $sync (call $get-handle (local.get $k)) (i32.const 0)) (call $outcome (i32.const 1))`}
	moves := func(amount string) string {
		return `(local.set $errno (call ` + amount + ` (local.get $k) (local.get 1) (local.get 2) (call $get-position (local.get $k)) (local.get 3)))
    (if (i32.eqz (local.get $errno)) (then
      (call $set-position (local.get $k) (i64.add (call $get-position (local.get $k)) (i64.extend_i32_u (i32.load (local.get 3)))))))
    (local.get $errno)`
	}
	return map[string]fileFunc{
		"path_create_directory": path("$mkdir"), "path_remove_directory": path("$rmdir"), "path_unlink_file": path("$unlink"),
		"fd_sync": sync, "fd_datasync": sync,
		"fd_advise": {text: `(i32.const 0)`},
		"fd_read":   {uses: "$read-in $get-position $set-position", locals: "(local $errno i32)", text: moves("$read-in")},
		"fd_write":  {uses: "$write-out $get-position $set-position", locals: "(local $errno i32)", text: moves("$write-out")},
		"fd_pread":  {uses: "$read-in", text: `(call $read-in (local.get $k) (local.get 1) (local.get 2) (local.get 3) (local.get 4))`},
		"fd_pwrite": {uses: "$write-out", text: `(call $write-out (local.get $k) (local.get 1) (local.get 2) (local.get 3) (local.get 4))`},
		"fd_close": {uses: "$rewind $set-handle $drop-file", text: `(call $rewind (local.get $k))
    (call $drop-file (call $get-handle (local.get $k)))
    (call $set-handle (local.get $k) (i32.const 0))
    (i32.const 0)`},
		"fd_tell": {uses: "$get-position", text: `(i64.store (local.get 1) (call $get-position (local.get $k))) (i32.const 0)`},
		"fd_seek": {uses: "$get-flags $get-position $set-position $rewind $stat $lend $outcome $back", locals: "(local $at i64)", text: fmt.Sprintf(`
    (if (i32.and (call $get-flags (local.get $k)) (i32.const 1)) (then
      (if (i32.or (i64.ne (local.get 1) (i64.const 0)) (local.get 2)) (then (return (i32.const %[1]d))))
      (call $rewind (local.get $k))
      (i64.store (local.get 3) (i64.const 0))
      (return (i32.const 0))))
    (if (i32.gt_u (local.get 2) (i32.const 2)) (then (return (i32.const %[1]d))))
    (if (i32.eq (local.get 2) (i32.const 1)) (then (local.set $at (call $get-position (local.get $k)))))
    (if (i32.eq (local.get 2) (i32.const 2)) (then
      (call $lend (i32.const 0) (i32.const 0))
      (call $stat (call $get-handle (local.get $k)) (i32.const 0))
      (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 8)))))
      (local.set $at (i64.load (i32.const 24)))
      (call $back)))
    (local.set $at (i64.add (local.get $at) (local.get 1)))
    (if (i64.lt_s (local.get $at) (i64.const 0)) (then (return (i32.const %[1]d))))
    (call $set-position (local.get $k) (local.get $at))
    (i64.store (local.get 3) (local.get $at))
    (i32.const 0)`, errnoInval)},
		"fd_filestat_get": {uses: "$stat $lend $filestat $filetype", text: `(call $lend (i32.const 0) (i32.const 0))
    (call $stat (call $get-handle (local.get $k)) (i32.const 0))
    (call $filestat (local.get 1))`},
		"fd_filestat_set_size": {uses: "$resize $lend $outcome", text: `(call $lend (i32.const 0) (i32.const 0))
    (call $resize (call $get-handle (local.get $k)) (local.get 1) (i32.const 0))
    (call $outcome (i32.const 1))`},
		"path_filestat_get": {uses: "$stat-at $lend $filestat $filetype", text: `(call $lend (i32.const 0) (i32.const 0))
    (call $stat-at (call $get-handle (local.get $k)) (i32.and (local.get 1) (i32.const 1)) (local.get 2) (local.get 3) (i32.const 0))
    (call $filestat (local.get 4))`},
		"fd_fdstat_get": {uses: "$get-flags", text: `(memory.fill (local.get 1) (i32.const 0) (i32.const 24))
    (i32.store8 (local.get 1) (select (i32.const 3) (i32.const 4) (i32.and (call $get-flags (local.get $k)) (i32.const 1))))
    (i32.store16 offset=2 (local.get 1) (i32.shr_u (call $get-flags (local.get $k)) (i32.const 8)))
    (i64.store offset=8 (local.get 1) (i64.const 0xfffffff))
    (i64.store offset=16 (local.get 1) (i64.const 0xfffffff))
    (i32.const 0)`},
		"fd_fdstat_set_flags": {uses: "$get-flags $set-flags", text: `
    (call $set-flags (local.get $k) (i32.or (i32.and (call $get-flags (local.get $k)) (i32.const 0xff)) (i32.shl (i32.and (local.get 1) (i32.const 0x1f)) (i32.const 8))))
    (i32.const 0)`},
		"path_open": {uses: "$open-at $lend $outcome $back $free $set-handle $set-flags $set-position $set-entries $type $drop-file", locals: "(local $new i32) (local $handle i32) (local $flags i32)", text: fmt.Sprintf(`
    (local.set $new (call $free))
    (if (i32.eq (local.get $new) (i32.const -1)) (then (return (i32.const %d))))
    (if (i64.ne (i64.and (local.get 5) (i64.const 0x4002)) (i64.const 0)) (then (local.set $flags (i32.const 1))))
    (if (i32.and (i64.ne (i64.and (local.get 5) (i64.const 0x40)) (i64.const 0)) (i32.eqz (i32.and (local.get 4) (i32.const 2)))) (then
      (local.set $flags (i32.or (local.get $flags) (i32.const 2)))))
    (call $lend (i32.const 0) (i32.const 0))
    (call $open-at (call $get-handle (local.get $k)) (i32.and (local.get 1) (i32.const 1)) (local.get 2) (local.get 3) (i32.and (local.get 4) (i32.const 15)) (local.get $flags) (i32.const 0))
    (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
    (local.set $handle (i32.load (i32.const 4)))
    (call $type (local.get $handle) (i32.const 0))
    (local.set $flags (i32.and (i32.eqz (i32.load8_u (i32.const 0))) (i32.eq (i32.load8_u (i32.const 1)) (i32.const 3))))
    (call $back)
    (call $set-handle (local.get $new) (local.get $handle))
    (call $set-flags (local.get $new) (i32.or (local.get $flags) (i32.shl (i32.and (local.get 7) (i32.const 0x1f)) (i32.const 8))))
    (call $set-position (local.get $new) (i64.const 0))
    (call $set-entries (local.get $new) (i32.const 0))
    (i32.store (local.get 8) (i32.add (local.get $new) (i32.const 3)))
    (i32.const 0)`, errnoMfile)},
		"path_rename": {uses: "$rename $lend $outcome", locals: "(local $to i32)", text: fmt.Sprintf(`(local.set $to (call $slot (local.get 3)))
    (if (i32.eq (local.get $to) (i32.const -1)) (then (return (i32.const %d))))
    (call $lend (i32.const 0) (i32.const 0))
    (call $rename (call $get-handle (local.get $k)) (local.get 1) (local.get 2) (call $get-handle (local.get $to)) (local.get 4) (local.get 5) (i32.const 0))
    (call $outcome (i32.const 1))`, errnoBadf)},
		"path_symlink": {fd: 2, uses: "$symlink $lend $outcome", text: `(call $lend (i32.const 0) (i32.const 0))
    (call $symlink (call $get-handle (local.get $k)) (local.get 0) (local.get 1) (local.get 3) (local.get 4) (i32.const 0))
    (call $outcome (i32.const 1))`},
		"path_readlink": {uses: "$link-of $lend $outcome $back", locals: "(local $from i32) (local $n i32)", text: `(call $lend (local.get 3) (i32.add (local.get 3) (local.get 4)))
    (call $link-of (call $get-handle (local.get $k)) (local.get 1) (local.get 2) (i32.const 0))
    (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
    (local.set $from (i32.load (i32.const 4)))
    (local.set $n (i32.load (i32.const 8)))
    (call $back)
    (if (i32.gt_u (local.get $n) (local.get 4)) (then (local.set $n (local.get 4))))
    (if (i32.ne (local.get $from) (local.get 3)) (then (memory.copy (local.get 3) (local.get $from) (local.get $n))))
    (i32.store (local.get 5) (local.get $n))
    (i32.const 0)`},
		// Entries are whole, unless not even one fits. What is left of a full buffer reads as an entry that is cut off.
		"fd_readdir": {
			uses: "$get-flags $get-position $set-position $get-entries $set-entries $rewind $list $next $lend $lend-all $outcome $back $filetype", locals: "(local $at i32) (local $left i32) (local $type i32) (local $from i32) (local $n i32)",
			text: fmt.Sprintf(`(local.set $at (local.get 1))
    (if (i32.eqz (i32.and (call $get-flags (local.get $k)) (i32.const 1))) (then (return (i32.const %d))))
    (if (i64.ne (local.get 3) (call $get-position (local.get $k))) (then (call $rewind (local.get $k))))
    (if (i32.eqz (call $get-entries (local.get $k))) (then
      (call $lend (i32.const 0) (i32.const 0))
      (call $list (call $get-handle (local.get $k)) (i32.const 0))
      (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
      (call $set-entries (local.get $k) (i32.load (i32.const 4)))
      (call $back)
      (call $set-position (local.get $k) (i64.const 0))))
    (block $end (loop $next-entry
      (local.set $left (i32.sub (i32.add (local.get 1) (local.get 2)) (local.get $at)))
      (if (i64.ge_u (call $get-position (local.get $k)) (local.get 3))
        (then
          (if (i32.and (i32.lt_u (local.get $left) (i32.const 280)) (i32.ne (local.get $at) (local.get 1))) (then
            (memory.fill (local.get $at) (i32.const 0) (local.get $left))
            (if (i32.ge_u (local.get $left) (i32.const 24)) (then (i32.store offset=16 (local.get $at) (local.get $left))))
            (i32.store (local.get 4) (local.get 2))
            (return (i32.const 0))))
          (call $lend (i32.add (local.get $at) (i32.const 24)) (i32.add (local.get $at) (local.get $left))))
        (else (call $lend-all))) ;; an entry before the one that is asked for
      (call $next (call $get-entries (local.get $k)) (i32.const 0))
      (if (i32.load8_u (i32.const 0)) (then (return (call $outcome (i32.const 4)))))
      (if (i32.eqz (i32.load8_u (i32.const 4))) (then (call $back) (br $end)))
      (local.set $type (i32.load8_u (i32.const 8)))
      (local.set $from (i32.load (i32.const 12)))
      (local.set $n (i32.load (i32.const 16)))
      (call $back)
      (call $set-position (local.get $k) (i64.add (call $get-position (local.get $k)) (i64.const 1)))
      (br_if $next-entry (i64.le_u (call $get-position (local.get $k)) (local.get 3)))
      (if (i32.lt_u (local.get $left) (i32.add (local.get $n) (i32.const 24))) (then
        (memory.fill (local.get $at) (i32.const 0) (local.get $left))
        (if (i32.ge_u (local.get $left) (i32.const 24)) (then (i32.store offset=16 (local.get $at) (local.get $n))))
        (i32.store (local.get 4) (local.get 2))
        (return (i32.const 0))))
      (if (i32.ne (local.get $from) (i32.add (local.get $at) (i32.const 24))) (then
        (memory.copy (i32.add (local.get $at) (i32.const 24)) (local.get $from) (local.get $n))))
      (i64.store (local.get $at) (call $get-position (local.get $k)))
      (i64.store offset=8 (local.get $at) (i64.const 0))
      (i32.store offset=16 (local.get $at) (local.get $n))
      (i32.store offset=20 (local.get $at) (call $filetype (local.get $type)))
      (local.set $at (i32.add (local.get $at) (i32.add (local.get $n) (i32.const 24))))
      (br $next-entry)))
    (i32.store (local.get 4) (i32.sub (local.get $at) (local.get 1)))
    (i32.const 0)`, errnoNotdir),
		},
		// Those of directories that are there from the start.
		"fd_prestat_get": {fd: -1, uses: "$look $back", locals: "(local $n i32)", text: fmt.Sprintf(`(call $look)
    (local.set 0 (i32.sub (local.get 0) (i32.const 3)))
    (if (i32.ge_u (local.get 0) (global.get $roots)) (then (call $back) (return (i32.const %d))))
    (local.set $n (i32.load offset=8 (i32.add (i32.load (i32.const 0)) (i32.mul (local.get 0) (i32.const 12)))))
    (call $back)
    (i32.store (local.get 1) (i32.const 0))
    (i32.store offset=4 (local.get 1) (local.get $n))
    (i32.const 0)`, errnoBadf)},
		"fd_prestat_dir_name": {fd: -1, uses: "$look $back", locals: "(local $n i32) (local $from i32)", text: fmt.Sprintf(`(call $look)
    (local.set 0 (i32.sub (local.get 0) (i32.const 3)))
    (if (i32.ge_u (local.get 0) (global.get $roots)) (then (call $back) (return (i32.const %d))))
    (local.set $from (i32.add (i32.load (i32.const 0)) (i32.mul (local.get 0) (i32.const 12))))
    (local.set $n (i32.load offset=8 (local.get $from)))
    (local.set $from (i32.load offset=4 (local.get $from)))
    (if (i32.gt_u (local.get $n) (local.get 2)) (then (call $back) (return (i32.const %d))))
    (if (i32.or (i32.lt_u (local.get 1) (i32.const %d)) (i32.gt_u (local.get $n) (i32.const %[3]d))) (then (call $back) (return (i32.const %d))))
    (memory.copy (local.get 1) (local.get $from) (local.get $n))
    (call $back)
    (i32.const 0)`, errnoBadf, 37, lent, errnoInval)},
		"fd_allocate": {text: fmt.Sprintf(`(i32.const %d)`, errnoNotsup)}, "fd_filestat_set_times": {text: fmt.Sprintf(`(i32.const %d)`, errnoNotsup)},
		"path_filestat_set_times": {text: fmt.Sprintf(`(i32.const %d)`, errnoNotsup)}, "path_link": {text: fmt.Sprintf(`(i32.const %d)`, errnoNotsup)},
		"fd_renumber": {text: fmt.Sprintf(`(i32.const %d)`, errnoNotsup)}, "fd_fdstat_set_rights": {text: `(i32.const 0)`},
	}
})

// withFiles is a function of preview 1 in a module that uses files. For a standard stream, and for a file that is not open, it answers as
// it does in others.
func withFiles(name string, plain adapterFunc, f fileFunc) (adapterFunc, adapterFunc) {
	std := adapterFunc{params: plain.params, results: plain.results, uses: plain.uses, text: fmt.Sprintf("(func $std-%s%s %s)", name, signature(plain.params, plain.results), plain.text)}
	var args strings.Builder
	for k := range plain.params {
		fmt.Fprintf(&args, " (local.get %d)", k)
	}
	text := f.locals
	if f.fd >= 0 {
		text += fmt.Sprintf(` (local $k i32)
    (local.set $k (call $slot (local.get %d)))
    (if (i32.eq (local.get $k) (i32.const -1)) (then (return (call $std-%s%s))))
`, f.fd, name, args.String())
	}
	text += fmt.Sprintf("    (if (global.get $allocating) (then (return (i32.const %d))))\n    %s", errnoAgain, f.text)
	return adapterFunc{params: plain.params, results: plain.results, uses: "$slot $get-handle $std-" + name + " " + f.uses, text: text}, std
}

// usesFiles reports whether a module that imports these functions can open or name a file.
func usesFiles(names []string) bool {
	for _, name := range names {
		if strings.HasPrefix(name, "path_") {
			return true
		}
	}
	return false
}
