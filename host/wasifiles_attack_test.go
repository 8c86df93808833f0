package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

// errorCodes are the cases of the error-code of wasi:filesystem, in its order.
var errorCodes = strings.Fields(`access would-block already bad-descriptor busy deadlock quota exist file-too-large illegal-byte-sequence in-progress
	interrupted invalid io is-directory loop too-many-links message-size name-too-long no-device no-entry no-lock insufficient-memory
	insufficient-space not-directory not-empty not-recoverable unsupported no-tty no-such-device overflow not-permitted pipe read-only
	invalid-seek text-file-busy cross-device`)

// fileImports are wasi:filesystem and what it needs, in two versions.
var fileImports = func() string {
	var codes strings.Builder
	for _, code := range errorCodes {
		fmt.Fprintf(&codes, "%q ", code)
	}
	return `
	(import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
	(alias export $error "error" (type $error-t))
	(import "wasi:io/streams@0.2.3" (instance $streams
		(alias outer 1 $error-t (type $e')) (export "error" (type $e (eq $e')))
		(type $se' (variant (case "last-operation-failed" (own $e)) (case "closed"))) (export "stream-error" (type $se (eq $se')))
		(export "output-stream" (type $out (sub resource)))
		(export "input-stream" (type $in (sub resource)))
		(export "[method]input-stream.blocking-read" (func (param "self" (borrow $in)) (param "len" u64) (result (result (list u8) (error $se)))))
		(export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $se)))))
		(export "[method]output-stream.blocking-splice" (func (param "self" (borrow $out)) (param "src" (borrow $in)) (param "len" u64) (result (result u64 (error $se)))))))
	(alias export $streams "output-stream" (type $out-t))
	(alias export $streams "input-stream" (type $in-t))
	(import "wasi:cli/stdout@0.2.0" (instance $stdout
		(alias outer 1 $out-t (type $o')) (export "output-stream" (type $o (eq $o')))
		(export "get-stdout" (func (result (own $o))))))
	(import "wasi:filesystem/types@0.2.10" (instance $fs
		(alias outer 1 $out-t (type $o')) (export "output-stream" (type $o (eq $o')))
		(alias outer 1 $in-t (type $i')) (export "input-stream" (type $i (eq $i')))
		(type $code' (enum ` + codes.String() + `)) (export "error-code" (type $code (eq $code')))
		(type $kind' (enum "unknown" "block-device" "character-device" "directory" "fifo" "symbolic-link" "regular-file" "socket")) (export "descriptor-type" (type $kind (eq $kind')))
		(type $time' (record (field "seconds" u64) (field "nanoseconds" u32))) (export "datetime" (type $time (eq $time')))
		(type $stat' (record (field "type" $kind) (field "link-count" u64) (field "size" u64) (field "data-access-timestamp" (option $time))
			(field "data-modification-timestamp" (option $time)) (field "status-change-timestamp" (option $time)))) (export "descriptor-stat" (type $stat (eq $stat')))
		(type $path' (flags "symlink-follow")) (export "path-flags" (type $path (eq $path')))
		(type $open' (flags "create" "directory" "exclusive" "truncate")) (export "open-flags" (type $open (eq $open')))
		(type $flags' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync" "mutate-directory")) (export "descriptor-flags" (type $flags (eq $flags')))
		(type $entry' (record (field "type" $kind) (field "name" string))) (export "directory-entry" (type $entry (eq $entry')))
		(export "descriptor" (type $d (sub resource)))
		(export "directory-entry-stream" (type $entries (sub resource)))
		(export "[method]descriptor.open-at" (func (param "self" (borrow $d)) (param "path-flags" $path) (param "path" string) (param "open-flags" $open) (param "flags" $flags) (result (result (own $d) (error $code)))))
		(export "[method]descriptor.read-via-stream" (func (param "self" (borrow $d)) (param "offset" u64) (result (result (own $i) (error $code)))))
		(export "[method]descriptor.write-via-stream" (func (param "self" (borrow $d)) (param "offset" u64) (result (result (own $o) (error $code)))))
		(export "[method]descriptor.append-via-stream" (func (param "self" (borrow $d)) (result (result (own $o) (error $code)))))
		(export "[method]descriptor.read" (func (param "self" (borrow $d)) (param "length" u64) (param "offset" u64) (result (result (tuple (list u8) bool) (error $code)))))
		(export "[method]descriptor.write" (func (param "self" (borrow $d)) (param "buffer" (list u8)) (param "offset" u64) (result (result u64 (error $code)))))
		(export "[method]descriptor.set-size" (func (param "self" (borrow $d)) (param "size" u64) (result (result (error $code)))))
		(export "[method]descriptor.stat-at" (func (param "self" (borrow $d)) (param "path-flags" $path) (param "path" string) (result (result $stat (error $code)))))
		(export "[method]descriptor.read-directory" (func (param "self" (borrow $d)) (result (result (own $entries) (error $code)))))
		(export "[method]directory-entry-stream.read-directory-entry" (func (param "self" (borrow $entries)) (result (result (option $entry) (error $code)))))
		(export "[method]descriptor.create-directory-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $code)))))
		(export "[method]descriptor.unlink-file-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $code)))))
		(export "[method]descriptor.remove-directory-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $code)))))
		(export "[method]descriptor.rename-at" (func (param "self" (borrow $d)) (param "old-path" string) (param "new-descriptor" (borrow $d)) (param "new-path" string) (result (result (error $code)))))
		(export "[method]descriptor.symlink-at" (func (param "self" (borrow $d)) (param "old-path" string) (param "new-path" string) (result (result (error $code)))))
		(export "[method]descriptor.link-at" (func (param "self" (borrow $d)) (param "old-path-flags" $path) (param "old-path" string) (param "new-descriptor" (borrow $d)) (param "new-path" string) (result (result (error $code)))))
		(export "[method]descriptor.is-same-object" (func (param "self" (borrow $d)) (param "other" (borrow $d)) (result bool)))
	))
	(alias export $fs "descriptor" (type $d-t))
	(alias export $fs "directory-entry-stream" (type $entries-t))
	(import "wasi:filesystem/preopens@0.2.0" (instance $preopens
		(alias outer 1 $d-t (type $d')) (export "descriptor" (type $d (eq $d')))
		(export "get-directories" (func (result (list (tuple (own $d) string)))))))
`
}()

var fileFuncs = []scriptFunc{
	{"directories", "preopens", "get-directories", "i"},
	{"open", "fs", "[method]descriptor.open-at", "iiiiiii"},
	{"reads", "fs", "[method]descriptor.read-via-stream", "iIi"},
	{"writes", "fs", "[method]descriptor.write-via-stream", "iIi"},
	{"appends", "fs", "[method]descriptor.append-via-stream", "ii"},
	{"read", "fs", "[method]descriptor.read", "iIIi"},
	{"write", "fs", "[method]descriptor.write", "iiiIi"},
	{"resize", "fs", "[method]descriptor.set-size", "iIi"},
	{"stat", "fs", "[method]descriptor.stat-at", "iiiii"},
	{"list", "fs", "[method]descriptor.read-directory", "ii"},
	{"next", "fs", "[method]directory-entry-stream.read-directory-entry", "ii"},
	{"mkdir", "fs", "[method]descriptor.create-directory-at", "iiii"},
	{"unlink", "fs", "[method]descriptor.unlink-file-at", "iiii"},
	{"rmdir", "fs", "[method]descriptor.remove-directory-at", "iiii"},
	{"rename", "fs", "[method]descriptor.rename-at", "iiiiiii"},
	{"symlink", "fs", "[method]descriptor.symlink-at", "iiiiii"},
	{"link", "fs", "[method]descriptor.link-at", "iiiiiiii"},
	{"take", "streams", "[method]input-stream.blocking-read", "iIi"},
	{"put", "streams", "[method]output-stream.blocking-write-and-flush", "iiii"},
	{"splice", "streams", "[method]output-stream.blocking-splice", "iiIi"},
}

// script is a guest that calls functions of WASI one after the other and prints how each ended.
type script struct {
	texts  string
	body   strings.Builder
	locals int
}

// text is a place of a text, and its length.
func (s *script) text(text string) string {
	at := 4096 + len(s.texts)/3
	for _, b := range []byte(text) {
		s.texts += fmt.Sprintf(`\%02x`, b)
	}
	return fmt.Sprintf("(i32.const %d) (i32.const %d)", at, len(text))
}

// Flags of open.
const (
	oCreate, oDirectory, oExclusive, oTruncate = 1, 2, 4, 8
	dRead, dWrite                              = 1, 2
)

// do calls a function, and notes how it ended. at is where its error is.
func (s *script) do(at int, call string) {
	fmt.Fprintf(&s.body, "(i32.store8 (i32.const 3000) (i32.const 0)) (call $%s (i32.const 3000)) (call $note (i32.const %d))\n", call, 3000+at)
}

// slot is the handle that the last call gave.
func (s *script) slot() string {
	s.locals++
	fmt.Fprintf(&s.body, "(i32.store (i32.const %d) (i32.load (i32.const 3004)))\n", 3200+4*s.locals)
	return fmt.Sprintf("(i32.load (i32.const %d))", 3200+4*s.locals)
}

// root gets the n-th directory that there is from the start.
func (s *script) root(n int) string {
	fmt.Fprintf(&s.body, "(call $directories (i32.const 3000)) (i32.store (i32.const 3004) (i32.load offset=%d (i32.load (i32.const 3000))))\n", n*12)
	return s.slot()
}

func (s *script) open(d, path string, oflags, flags int) string {
	s.do(4, fmt.Sprintf("open %s (i32.const 1) %s (i32.const %d) (i32.const %d)", d, s.text(path), oflags, flags))
	return s.slot()
}

// on is a function of a descriptor and a path without a result.
func (s *script) on(name, d, path string) { s.do(1, fmt.Sprintf("%s %s %s", name, d, s.text(path))) }

func (s *script) stat(d, path string) {
	s.do(8, fmt.Sprintf("stat %s (i32.const 1) %s", d, s.text(path)))
}

func (s *script) rename(d, old, to, path string) {
	s.do(1, fmt.Sprintf("rename %s %s %s %s", d, s.text(old), to, s.text(path)))
}

func (s *script) loop(times int, f func()) {
	s.locals++
	at := 3200 + 4*s.locals
	fmt.Fprintf(&s.body, "(i32.store (i32.const %d) (i32.const %d)) (loop $l%[1]d\n", at, times)
	f()
	fmt.Fprintf(&s.body, "(global.set $noted (i32.sub (global.get $noted) (i32.const 1)))\n(i32.store (i32.const %d) (i32.sub (i32.load (i32.const %[1]d)) (i32.const 1))) (br_if $l%[1]d (i32.load (i32.const %[1]d)))) (global.set $noted (i32.add (global.get $noted) (i32.const 1)))\n", at)
}

func (s *script) load(t *testing.T, h *host.Host) *host.Component {
	t.Helper()
	return s.loadWith(t, h, fileImports, fileFuncs, `(core func $same (canon lower (func $fs "[method]descriptor.is-same-object"))) (core func $out (canon lower (func $stdout "get-stdout")))
		(core func $drop (canon resource.drop $d-t)) (core func $drop-list (canon resource.drop $entries-t)) (core func $drop-in (canon resource.drop $in-t))
		(core instance $w %s(export "same" (func $same)) (export "out" (func $out)) (export "drop" (func $drop)) (export "drop-list" (func $drop-list)) (export "drop-in" (func $drop-in)))`,
		`(import "w" "same" (func $same (param i32 i32) (result i32))) (import "w" "out" (func $out (result i32))) (import "w" "drop" (func $drop (param i32)))
		(import "w" "drop-list" (func $drop-list (param i32))) (import "w" "drop-in" (func $drop-in (param i32)))`)
}

// scriptFunc is a function of WASI with its core parameters: i is i32, and I is i64. The last is where the result goes.
type scriptFunc struct{ id, instance, name, params string }

// loadWith loads the script with functions, and others that are lowered and imported as these texts say.
func (s *script) loadWith(t *testing.T, h *host.Host, wasi string, funcs []scriptFunc, others, more string) *host.Component {
	t.Helper()
	lowered, given, imports := "", "", ""
	for _, f := range funcs {
		lowered += fmt.Sprintf("(core func $%s (canon lower (func $%s %q)%s))\n", f.id, f.instance, f.name, options)
		given += fmt.Sprintf("(export %q (func $%s)) ", f.id, f.id)
		params := ""
		for _, p := range f.params {
			params += map[rune]string{'i': " i32", 'I': " i64"}[p]
		}
		imports += fmt.Sprintf("(import \"w\" %q (func $%s (param%s)))\n", f.id, f.id, params)
	}
	lowered += fmt.Sprintf(others, given)
	imports += more + `
		(global $noted (mut i32) (i32.const 3500)) (data (i32.const 4096) "` + s.texts + `")
		(func $note (param i32)
			(i32.store8 (global.get $noted) (select (i32.add (i32.const 65) (i32.load8_u (local.get 0))) (i32.const 46) (i32.load8_u (i32.const 3000))))
			(global.set $noted (i32.add (global.get $noted) (i32.const 1))))`
	body := s.body.String() + `(call $put (call $out) (i32.const 3500) (i32.sub (global.get $noted) (i32.const 3500)) (i32.const 3000))`
	c, err := h.Load(t.Context(), lateComponent(t, wasi, lowered, imports, "", body))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// outcomes reads what a script printed.
func outcomes(text string) string {
	var all []string
	for _, b := range []byte(text) {
		name := "ok"
		if b != '.' {
			name = errorCodes[min(int(b-'A'), len(errorCodes)-1)]
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// places are a workspace and a directory on disk, in both of which is the same.
func places(t *testing.T) map[string]abi.Capability {
	t.Helper()
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(outside, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	disk, err := workspace.OpenDisk(filepath.Join(outside, "root"), workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), disk.Close()); err != nil {
			t.Error(err)
		}
	})
	whole := store.Workspace("w")
	if err := whole.WriteBytes(t.Context(), "secret", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	root, err := whole.Sub("root")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]abi.Capability{"workspace": root, "disk": disk.Directory()}
}

// directoryOf is the Go side of a place.
func directoryOf(c abi.Capability) *workspace.Directory { return c.(*workspace.Directory) }

func TestWorldFiles(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	for _, c := range []struct {
		name   string
		script func(s *script)
		want   string // how each step ended
		files  string // what is there afterwards
	}{
		{"paths lead nowhere else", func(s *script) {
			r := s.root(0)
			for _, at := range []string{"../secret", "/secret", "a/../../secret", "..", "./../secret", "", "a\x00b", `a\b`, strings.Repeat("x/", 2100)} {
				s.open(r, at, 0, dRead)
			}
			s.open(r, "../made", oCreate, dWrite)
			s.on("mkdir", r, "../made")
			s.on("unlink", r, "../secret")
			s.rename(r, "../secret", r, "got")
			s.open(r, "x", oCreate, dWrite)
			s.rename(r, "x", r, "../out")
			s.on("rmdir", r, ".")
			s.on("rmdir", r, "../root")
		}, "not-permitted not-permitted not-permitted not-permitted not-permitted no-entry illegal-byte-sequence invalid name-too-long " +
			"not-permitted not-permitted not-permitted not-permitted ok not-permitted invalid not-permitted", "x"},
		{"links lead nowhere else", func(s *script) {
			r := s.root(0)
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("../secret"), s.text("out")))
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("/secret"), s.text("out")))
			s.on("mkdir", r, "d")
			d := s.open(r, "d", oDirectory, dRead)
			s.open(r, "f", oCreate, dWrite)
			s.do(1, fmt.Sprintf("symlink %s %s %s", d, s.text("../f"), s.text("up"))) // out of the descriptor, but not of the binding
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("../f"), s.text("d/up")))
			s.open(d, "up", 0, dRead)
			s.open(r, "d/up", 0, dRead)
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("loop"), s.text("loop")))
			s.open(r, "loop", 0, dRead)
			s.do(1, fmt.Sprintf("link %s (i32.const 0) %s %s %s", r, s.text("f"), r, s.text("g")))
			s.do(4, fmt.Sprintf("open %s (i32.const 0) %s (i32.const 0) (i32.const 1)", r, s.text("d/up")))
		}, "not-permitted not-permitted ok ok ok not-permitted ok not-permitted ok ok loop unsupported loop", "d d/up f loop"},
		{"links in directories that are links", func(s *script) {
			r := s.root(0)
			s.open(r, "f", oCreate, dWrite)
			s.on("mkdir", r, "d")
			s.on("mkdir", r, "d/e")
			s.open(r, "d/f", oCreate, dWrite)
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("../f"), s.text("d/e/up")))
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("d/e"), s.text("in")))
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("."), s.text("same")))
			f := s.open(r, "in/up", 0, dWrite)
			s.do(8, fmt.Sprintf("write %s %s (i64.const 0)", f, s.text("x")))
			s.open(r, "same/same", 0, dRead)
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("in/../d/e"), s.text("far"))) // above in is d
			s.open(r, "far", 0, dRead)
			s.do(1, fmt.Sprintf("symlink %s %s %s", r, s.text("a/../b"), s.text("a")))
			s.open(r, "a", 0, dRead)
		}, "ok ok ok ok ok ok ok ok ok ok ok no-entry ok loop", "a d d/e d/e/up d/f=x f far in same"},
		{"a descriptor keeps to its directory", func(s *script) {
			r := s.root(0)
			s.on("mkdir", r, "a")
			s.on("mkdir", r, "b")
			a, b := s.open(r, "a", oDirectory, dRead), s.open(r, "b", 0, dRead)
			s.open(a, "x", oCreate|oExclusive, dWrite)
			s.open(a, "../b/y", oCreate, dWrite)
			s.rename(a, "x", a, "../b/x")
			s.rename(a, "../b", a, "c")
			s.rename(a, "x", b, "../x")
			s.rename(a, "x", b, "y")
			s.rename(b, "y", r, "z")
			s.rename(r, "z", r, "no/z")
			s.rename(r, "a", a, "into")
		}, "ok ok ok ok ok not-permitted not-permitted not-permitted not-permitted ok ok no-entry invalid", "a b z"},
		{"renames replace", func(s *script) {
			r := s.root(0)
			one, two := s.open(r, "one", oCreate, dRead|dWrite), s.open(r, "two", oCreate, dRead|dWrite)
			s.do(8, fmt.Sprintf("write %s %s (i64.const 0)", one, s.text("1")))
			s.do(8, fmt.Sprintf("write %s %s (i64.const 0)", two, s.text("2222")))
			s.rename(r, "one", r, "two")
			s.rename(r, "two", r, "two")
			s.on("mkdir", r, "d")
			s.on("mkdir", r, "e")
			s.rename(r, "two", r, "d")
			s.rename(r, "d", r, "two")
			s.open(r, "e/x", oCreate, dWrite)
			s.rename(r, "d", r, "e")
			s.rename(r, "e", r, "d")
			s.rename(r, "two/", r, "three")
			s.do(4, "read "+two+" (i64.const 9) (i64.const 0)")
			s.do(4, "read "+one+" (i64.const 9) (i64.const 0)")
		}, "ok ok ok ok ok ok ok ok is-directory not-directory ok not-empty ok not-directory ok no-entry", "d d/x two=1"},
		{"ways to open", func(s *script) {
			r := s.root(0)
			s.open(r, "f", 0, dRead)
			s.open(r, "f", oCreate|oExclusive, dWrite)
			s.open(r, "f", oCreate|oExclusive, dWrite)
			s.open(r, "f", oDirectory, dRead)
			s.open(r, "f/", 0, dRead)
			s.open(r, "f/g", oCreate, dRead)
			s.open(r, "d", oCreate|oDirectory, dRead)
			s.open(r, "no/f", oCreate, dRead)
			s.on("mkdir", r, "d/")
			s.on("mkdir", r, "d")
			s.on("mkdir", r, "no/d")
			s.open(r, "d", 0, dWrite)
			s.open(r, "d", oTruncate, dRead)
			s.on("unlink", r, "d")
			s.on("rmdir", r, "f")
			s.stat(r, "f/")
			s.stat(r, "no")
			f := s.open(r, "f", 0, dRead)
			s.do(8, fmt.Sprintf("write %s %s (i64.const 0)", f, s.text("no")))
			s.do(1, "resize "+f+" (i64.const 3)")
			s.do(4, "appends "+f)
			w := s.open(r, "f", 0, dWrite)
			s.do(4, "read "+w+" (i64.const 9) (i64.const 0)")
			s.do(4, "list "+f)
			s.open(f, "x", oCreate, dWrite)
			s.do(4, "reads "+r+" (i64.const 0)")
		}, "no-entry ok exist not-directory not-directory not-directory invalid no-entry ok exist no-entry is-directory is-directory is-directory not-directory not-directory no-entry " +
			"ok bad-descriptor bad-descriptor bad-descriptor ok bad-descriptor not-directory not-directory is-directory", "d f"},
		{"sizes", func(s *script) {
			r := s.root(0)
			f := s.open(r, "f", oCreate, dRead|dWrite)
			s.do(1, "resize "+f+" (i64.const 0x1000000000000000)")
			s.do(1, "resize "+f+" (i64.const -1)")
			s.do(8, fmt.Sprintf("write %s %s (i64.const -1)", f, s.text("x")))
			s.do(8, fmt.Sprintf("write %s %s (i64.const 0x7fffffffffffffff)", f, s.text("x")))
			s.do(8, fmt.Sprintf("write %s %s (i64.const 2)", f, s.text("x")))
			s.do(4, "read "+f+" (i64.const -1) (i64.const -1)")
			s.do(4, "read "+f+" (i64.const -1) (i64.const 0)")
			s.do(4, "writes "+f+" (i64.const -1)")
			st := s.slot()
			s.do(4, fmt.Sprintf("put %s %s", st, s.text("xx"))) // its error is a handle
			s.do(1, "resize "+f+" (i64.const 5)")
			s.do(1, "resize "+f+" (i64.const 4)")
		}, "ok file-too-large file-too-large file-too-large file-too-large ok ok ok ok access ok ok", "f=\x00\x00x\x00"},
		{"what outlives its parent", func(s *script) {
			r := s.root(0)
			s.on("mkdir", r, "d")
			d := s.open(r, "d", oDirectory, dRead)
			f := s.open(d, "f", oCreate, dRead|dWrite)
			s.do(4, "writes "+f+" (i64.const 0)")
			out := s.slot()
			s.do(4, "reads "+f+" (i64.const 0)")
			in := s.slot()
			s.do(4, "list "+d)
			l := s.slot()
			fmt.Fprintf(&s.body, "(call $drop %s) (call $drop %s) (call $drop %s)", r, d, f)
			s.do(4, fmt.Sprintf("put %s %s", out, s.text("kept")))
			s.do(8, fmt.Sprintf("splice %s %s (i64.const 2)", out, in)) // its own start, at its end
			s.do(4, "next "+l)
			r2 := s.root(0)
			s.on("unlink", r2, "d/f")
			s.do(4, "take "+in+" (i64.const 9)")
		}, "ok ok ok ok ok ok ok ok ok ok access", "d"},
		{"many descriptors, one after the other", func(s *script) {
			r := s.root(0)
			s.open(r, "f", oCreate, dWrite)
			s.loop(3000, func() {
				f := s.open(r, "f", 0, dRead)
				fmt.Fprintf(&s.body, "(call $drop %s)", f)
			})
		}, "ok ok", "f"},
		{"many listings", func(s *script) {
			r := s.root(0)
			s.loop(16, func() { s.do(4, "list "+r) })
			s.do(4, "list "+r)
			l := s.slot()
			s.do(4, "list "+r)
			_ = l
		}, "ok insufficient-memory insufficient-memory", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{}
			c.script(s)
			component := s.load(t, h)
			for where, place := range places(t) {
				var printed string
				env := host.Env{"files": place, "console": console.To(func(_ console.Level, m string) { printed += m })}
				began := time.Now()
				_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT})
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				if got := outcomes(printed); got != c.want {
					t.Errorf("%s: the steps ended with\n%s, want\n%s", where, got, c.want)
				}
				if got := tree(t, directoryOf(place), ""); strings.Join(got, " ") != c.files {
					t.Errorf("%s: there is %q, want %q", where, got, c.files)
				}
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("%s: it took %v", where, took)
				}
				again(t, component, records)
			}
		})
	}
}

// tree lists what is in a directory.
func tree(t *testing.T, d *workspace.Directory, at string) (all []string) {
	t.Helper()
	page, err := d.List(t.Context(), "/"+at, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		name := e.Name
		if at != "" {
			name = at + "/" + name
		}
		text := name
		if e.Status.Kind == workspace.KindFile && e.Status.Size > 0 {
			b, err := d.ReadBytes(t.Context(), name, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			text += "=" + string(b)
		}
		all = append(all, text)
		if e.Status.Kind == workspace.KindDirectory {
			all = append(all, tree(t, d, name)...)
		}
	}
	return all
}

// TestWorldFilesLimits has guests that never give anything back.
func TestWorldFilesLimits(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Limits: host.Limits{Handles: 100}, Recorder: records})
	for name, body := range map[string]func(s *script, r string){
		"descriptors": func(s *script, r string) { s.open(r, "f", 0, dRead) },
		"directories": func(s *script, r string) { s.open(r, "d", 0, dRead) },
		"streams":     func(s *script, r string) { f := s.open(r, "f", 0, dRead); s.do(4, "reads "+f+" (i64.const 0)") },
		"roots":       func(s *script, _ string) { s.root(0) },
		"long paths": func(s *script, r string) {
			d := s.open(r, strings.Repeat("long/", 100), 0, dRead)
			s.open(d, strings.Repeat("long/", 70)+"f", 0, dRead)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			r := s.root(0)
			s.open(r, "f", oCreate, dWrite)
			s.on("mkdir", r, "d")
			s.loop(100_000, func() { body(s, r) })
			component := s.load(t, h)
			for where, place := range places(t) {
				if err := directoryOf(place).WriteBytes(t.Context(), strings.Repeat("long/", 170)+"f", nil); err != nil {
					t.Fatal(err)
				}
				_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"files": place}, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT})
				var limit *host.LimitError
				if !errors.As(err, &limit) || limit.Limit != "handles" {
					t.Errorf("%s: ended with %v", where, err)
				}
				again(t, component, records)
			}
		})
	}
}

// TestWorldFilesDeep has a guest open a directory in a directory, and so on, each through a link with a long name.
func TestWorldFilesDeep(t *testing.T) {
	const levels = 280
	h := newHost(t, host.Options{})
	s := &script{}
	d, link := s.root(0), strings.Repeat("l", 250)
	s.loop(levels, func() {
		s.on("mkdir", d, "d")
		s.do(1, fmt.Sprintf("symlink %s %s %s", d, s.text("."), s.text(link)))
		s.do(4, fmt.Sprintf("open %s (i32.const 1) %s (i32.const 0) (i32.const 1)", d, s.text(link+"/d")))
		fmt.Fprintf(&s.body, "(call $drop %s) (i32.store %s (i32.load (i32.const 3004)))\n", d, strings.TrimSuffix(strings.TrimPrefix(d, "(i32.load "), ")"))
	})
	component := s.load(t, h)
	place := places(t)["workspace"]
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, opened, more := heap(), 0, int64(0)
	_, err := component.Do(t.Context(), host.Request{
		Tool: "t", Env: host.Env{"files": place}, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT,
		Observe: func(o host.Operation) {
			if o.Func == "[method]directory.subdirectory" {
				if opened++; opened == levels {
					more = heap() - before
				}
			}
		},
	})
	if err != nil || opened != levels {
		t.Errorf("opened %d, %v", opened, err)
	}
	if more > 4<<20 {
		t.Errorf("%d bytes are kept", more)
	}
}

// TestWorldFilesAbsolute has a guest follow a link on disk to an absolute path. That names nothing in the directory, which has the same names.
func TestWorldFilesAbsolute(t *testing.T) {
	folder := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(folder, "secret"), []byte("other"), 0o600), os.Mkdir(filepath.Join(folder, "d"), 0o700),
		os.Symlink("/secret", filepath.Join(folder, "there")), os.Symlink("/", filepath.Join(folder, "root")), os.Symlink("root/../secret", filepath.Join(folder, "through")))
	if err != nil {
		t.Fatal(err)
	}
	disk, err := workspace.OpenDisk(folder, workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	s := &script{}
	r := s.root(0)
	s.open(r, "there", 0, dRead)
	s.open(r, "there", oTruncate, dWrite)
	s.open(r, "root", 0, dRead)
	s.open(r, "through", 0, dRead)
	var printed string
	env := host.Env{"files": disk.Directory(), "console": console.To(func(_ console.Level, m string) { printed += m })}
	request := host.Request{Tool: "t", Env: env, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT}
	if _, err := s.load(t, newHost(t, host.Options{})).Do(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if got, want := outcomes(printed), "not-permitted not-permitted not-permitted not-permitted"; got != want {
		t.Errorf("the steps ended with %s, want %s", got, want)
	}
}

// TestWorldFilesMany lists a directory of 10,000 files.
func TestWorldFilesMany(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	s := &script{}
	r := s.root(0)
	s.do(4, "list "+r)
	l := s.slot()
	s.loop(10_001, func() { s.do(4, "next "+l) })
	component := s.load(t, h)
	folder := t.TempDir()
	for i := range 10_000 {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("f%05d", i)))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := workspace.OpenDisk(folder, workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	place := disk.Directory()
	result, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"files": place}, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT})
	if err != nil {
		t.Fatal(err)
	}
	if result.Usage.Operations > 20 {
		t.Errorf("%d operations", result.Usage.Operations)
	}
	again(t, component, records)
}

// TestWorldFilesDenied has a guest use bindings that only read, have expired, are revoked meanwhile, or do not exist.
func TestWorldFilesDenied(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	s := &script{}
	r := s.root(0)
	f := s.open(r, "there", 0, dRead|dWrite)
	s.do(4, "read "+f+" (i64.const 9) (i64.const 0)")
	s.do(8, fmt.Sprintf("write %s %s (i64.const 0)", f, s.text("x")))
	s.do(1, "resize "+f+" (i64.const 0)")
	s.on("unlink", r, "there")
	component := s.load(t, h)
	for where, place := range places(t) {
		d := directoryOf(place)
		if err := d.WriteBytes(t.Context(), "there", []byte("there")); err != nil {
			t.Fatal(err)
		}
		expired := host.NewGrant(place, host.GrantOptions{Expires: time.Now().Add(-time.Hour)})
		revoked := host.NewGrant(place, host.GrantOptions{})
		operations := 0
		for name, c := range map[string]struct {
			given   abi.Capability
			want    string
			denials int
		}{
			"reads only": {d.AsReadOnly(), "ok ok not-permitted not-permitted not-permitted", 2},
			"expired":    {expired, "not-permitted bad-descriptor", 0},
			"budget":     {host.NewGrant(place, host.GrantOptions{Operations: 2}), "ok ok quota quota quota", 0},
			"revoked":    {revoked, "ok ok not-permitted not-permitted not-permitted", 0},
		} {
			t.Run(where+" "+name, func(t *testing.T) {
				var printed string
				result, err := component.Do(t.Context(), host.Request{
					Tool: "t", WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT,
					Env: host.Env{"files": c.given, "console": console.To(func(_ console.Level, m string) { printed += m })},
					Observe: func(o host.Operation) {
						if o.Func == "[method]directory.read-bytes" && name == "revoked" {
							revoked.Revoke("no more")
						}
						operations++
					},
				})
				if name == "expired" { // the second step uses a handle that the first did not give
					if !errkind.Is[*host.TrapError](err) {
						t.Errorf("ended with %v", err)
					}
				} else if got := outcomes(printed); err != nil || got != c.want {
					t.Errorf("the steps ended with %s, want %s: %v", got, c.want, err)
				}
				if len(result.Usage.Denials) != c.denials {
					t.Errorf("%d denials: %v", len(result.Usage.Denials), result.Usage.Denials)
				}
				again(t, component, records)
			})
		}
		if got := tree(t, d, ""); !slices.Equal(got, []string{"there=there"}) {
			t.Errorf("there is %q", got)
		}
	}
	for name, w := range map[string]abi.WASI{
		"no binding":      {Filesystem: map[string]string{"/": "other"}},
		"another kind":    {Filesystem: map[string]string{"/": "console"}},
		"a relative path": {Filesystem: map[string]string{"a": "files"}},
		"dots":            {Filesystem: map[string]string{"/a/../b": "files"}},
		"hidden":          {Filesystem: map[string]string{"/a\u202e": "files"}},
		"http of files":   {HTTP: "files"},
	} {
		env := host.Env{"files": places(t)["disk"], "console": console.To(func(console.Level, string) {})}
		if _, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, WASI: w, Approved: onlyT}); err == nil || errkind.Is[*host.TrapError](err) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// TestWorldFilesForged has a guest use handles that it was not given.
func TestWorldFilesForged(t *testing.T) {
	h := newHost(t, host.Options{})
	for name, body := range map[string]func(s *script, r string){
		"a number":     func(s *script, _ string) { s.open("(i32.const 77)", "f", oCreate, dWrite) },
		"dropped":      func(s *script, r string) { fmt.Fprintf(&s.body, "(call $drop %s)", r); s.open(r, "f", oCreate, dWrite) },
		"dropped once": func(s *script, r string) { fmt.Fprintf(&s.body, "(call $drop %s) (call $drop %[1]s)", r) },
		"a stream":     func(s *script, _ string) { s.open("(call $out)", "f", oCreate, dWrite) },
		"a file as a stream": func(s *script, r string) {
			s.do(4, fmt.Sprintf("put %s %s", r, s.text("x")))
		},
		"a listing": func(s *script, r string) {
			s.do(4, "list "+r)
			s.open(s.slot(), "f", oCreate, dWrite)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			body(s, s.root(0))
			component := s.load(t, h)
			place := places(t)["disk"]
			_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"files": place}, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT})
			if !errkind.Is[*host.TrapError](err) {
				t.Errorf("ended with %v", err)
			}
			if got := tree(t, directoryOf(place), ""); len(got) > 0 {
				t.Errorf("there is %q", got)
			}
		})
	}
}

// TestWorldRewrite has a guest write in the middle of a file of 2 MB, shorten it, and be refused the rest.
func TestWorldRewrite(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, RecordBytes: 16 << 20})
	s := &script{}
	r := s.root(0)
	f := s.open(r, "large", 0, dRead|dWrite)
	s.do(8, fmt.Sprintf("write %s %s (i64.const 1000000)", f, s.text("in the middle")))
	s.do(8, fmt.Sprintf("write %s %s (i64.const 1999995)", f, s.text("beyond the end")))
	s.do(1, "resize "+f+" (i64.const 1000013)")
	s.on("mkdir", r, "d")
	g := s.open(r, "huge", 0, dRead|dWrite)
	s.do(8, fmt.Sprintf("write %s %s (i64.const 5)", g, s.text("x")))
	s.do(8, fmt.Sprintf("write %s %s (i64.const 17000000)", g, s.text("x")))
	s.do(1, "resize "+g+" (i64.const 0)")
	component := s.load(t, h)
	for where, place := range places(t) {
		d := directoryOf(place)
		data := make([]byte, 2_000_000)
		for i := range data {
			data[i] = byte(i >> 3 * 7)
		}
		for at := 0; at < len(data); at += 250_000 {
			if err := d.AppendBytes(t.Context(), "large", data[at:at+250_000]); err != nil {
				t.Fatal(err)
			}
		}
		for range 68 {
			if err := d.AppendBytes(t.Context(), "huge", data[:250_000]); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.WriteBytes(t.Context(), "stile-rewrite-0", []byte("somebody else's")); err != nil {
			t.Fatal(err)
		}
		var printed string
		env := host.Env{"files": place, "console": console.To(func(_ console.Level, m string) { printed += m })}
		if _, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, WASI: abi.WASI{Filesystem: map[string]string{"/": "files"}}, Approved: onlyT}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if got, want := outcomes(printed), "ok ok ok ok ok ok file-too-large ok ok"; got != want {
			t.Errorf("%s: the steps ended with %s, want %s", where, got, want)
		}
		copy(data[1_000_000:], "in the middle")
		for at := range 5 {
			got, err := d.ReadBytes(t.Context(), "large", uint64(at)*250_000, 250_000)
			if want := data[min(at*250_000, 1_000_013):min((at+1)*250_000, 1_000_013)]; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: piece %d differs: %v", where, at, err)
			}
		}
		names := tree(t, d, "")
		for i, name := range names {
			names[i], _, _ = strings.Cut(name, "=")
		}
		if got := strings.Join(names, " "); got != "d huge large stile-rewrite-0" {
			t.Errorf("%s: there is %s", where, got)
		}
		again(t, component, records)
	}
}
