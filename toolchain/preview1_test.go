package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/wit"
)

// core is the text of a guest with one tool "t", which the body of call answers for: it leaves the address of a result. $json makes one
// from the text that $emit and $number wrote. Addresses from 65536 on are free.
func core(imports, more, call string) string {
	return `(module ` + imports + `
	(memory (export "memory") 3)
	(global $next (mut i32) (i32.const 131072))
	(global $out (mut i32) (i32.const 32768))
	(data (i32.const 1024) "t {}")
	(data (i32.const 1104) "\58\04\00\00\01\00\00\00")
	(data (i32.const 1112) "\00\04\00\00\01\00\00\00\00\04\00\00\00\00\00\00\02\04\00\00\02\00\00\00")
	(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
		(global.get $next)
		(global.set $next (i32.and (i32.add (global.get $next) (i32.add (local.get 3) (i32.const 15))) (i32.const -16))))
	(func $emit (param $char i32)
		(i32.store8 (global.get $out) (local.get $char))
		(global.set $out (i32.add (global.get $out) (i32.const 1))))
	(func $digits (param $n i64)
		(if (i64.ge_u (local.get $n) (i64.const 10)) (then (call $digits (i64.div_u (local.get $n) (i64.const 10)))))
		(call $emit (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10))))))
	(func $number (param $n i64)
		(call $emit (select (i32.const 91) (i32.const 44) (i32.eq (global.get $out) (i32.const 32768))))
		(call $digits (local.get $n)))
	(func $errno (param $n i32) (call $number (i64.extend_i32_u (local.get $n))))
	(func $json (result i32)
		(call $emit (i32.const 93))
		(i32.store (i32.const 2048) (i32.const 0))
		(i32.store (i32.const 2052) (i32.const 32768))
		(i32.store (i32.const 2056) (i32.sub (global.get $out) (i32.const 32768)))
		(i32.const 2048))
	` + more + `
	(func (export "stile:extension/tools@0.1.0#describe") (result i32) (i32.const 1104))
	(func (export "stile:extension/tools@0.1.0#call") (param i32 i32 i32 i32 i32) (result i32) ` + call + `(call $json)))`
}

var anyWorld = func() *abi.World {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		panic(err)
	}
	return ExtensionWorld(known)
}()

// callCore calls the tool of a core module.
func callCore(t testing.TB, h *host.Host, text string) ([]uint64, error) {
	t.Helper()
	component, err := Componentize(anyWorld, wat(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return callComponent(t, h, component)
}

// callComponent calls the tool of a component.
func callComponent(t testing.TB, h *host.Host, component []byte) ([]uint64, error) {
	t.Helper()
	c, err := h.Load(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	out, err := c.Call(t.Context(), "t", []byte("{}"), nil)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	if err := json.Unmarshal(out, &numbers); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return numbers, nil
}

func newTestHost(t testing.TB) *host.Host {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// importOld imports functions of preview 1.
func importOld(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		f := preview1Funcs()[name]
		fmt.Fprintf(&b, "(import %q %q (func $%s%s))\n", preview1, name, name, signature(f.params, f.results))
	}
	return b.String()
}

// The adapter answers every function of preview 1, and nothing in the guest's memory changes but the results.
func TestPreview1(t *testing.T) {
	h := newTestHost(t)
	calls := []struct {
		call string
		want uint64
	}{
		{`(args_sizes_get 65536 65540)`, 0},
		{`(args_get 65536 65540)`, 0},
		{`(environ_sizes_get 65544 65548)`, 0},
		{`(environ_get 65536 65540)`, 0},
		{`(sched_yield)`, 0},
		{`(clock_res_get 0 65600)`, 0},
		{`(clock_res_get 1 65600)`, 0},
		{`(clock_res_get 2 65600)`, errnoInval},
		{`(clock_time_get 0 0 65600)`, 0},
		{`(clock_time_get 1 0 65600)`, 0},
		{`(clock_time_get 3 0 65600)`, errnoInval},
		{`(fd_read 0 65536 0 65600)`, 0},
		{`(fd_read 1 65536 0 65600)`, errnoBadf},
		{`(fd_write 0 65536 0 65600)`, errnoBadf},
		{`(fd_write 1 65536 0 65600)`, 0},
		{`(fd_write 3 65536 0 65600)`, errnoBadf},
		{`(fd_write -1 65536 0 65600)`, errnoBadf},
		{`(fd_fdstat_get 0 65536)`, 0},
		{`(fd_fdstat_get 2 65536)`, 0},
		{`(fd_fdstat_get 3 65536)`, errnoBadf},
		{`(fd_filestat_get 1 65536)`, 0},
		{`(fd_filestat_get 99 65536)`, errnoBadf},
		{`(fd_prestat_get 3 65536)`, errnoBadf},
		{`(fd_prestat_get 0 65536)`, errnoBadf},
		{`(fd_prestat_dir_name 3 65536 8)`, errnoBadf},
		{`(fd_advise 0 0 0 0)`, errnoSpipe},
		{`(fd_advise 5 0 0 0)`, errnoBadf},
		{`(fd_allocate 1 0 0)`, errnoSpipe},
		{`(fd_datasync 1)`, errnoInval},
		{`(fd_sync 1)`, errnoInval},
		{`(fd_sync 4)`, errnoBadf},
		{`(fd_fdstat_set_flags 1 4)`, errnoNotsup},
		{`(fd_fdstat_set_rights 1 -1 -1)`, errnoNotcapable},
		{`(fd_filestat_set_size 1 0)`, errnoNotcapable},
		{`(fd_filestat_set_times 1 0 0 0)`, errnoNotcapable},
		{`(fd_pread 0 65536 1 0 65600)`, errnoSpipe},
		{`(fd_pwrite 1 65536 1 0 65600)`, errnoSpipe},
		{`(fd_readdir 0 65536 8 0 65600)`, errnoNotdir},
		{`(fd_readdir 3 65536 8 0 65600)`, errnoBadf},
		{`(fd_renumber 1 2)`, errnoNotsup},
		{`(fd_seek 1 0 0 65600)`, errnoSpipe},
		{`(fd_tell 1 65600)`, errnoSpipe},
		{`(path_create_directory 3 65536 1)`, errnoBadf},
		{`(path_filestat_get 0 0 65536 1 65600)`, errnoNotdir},
		{`(path_filestat_set_times 3 0 65536 1 0 0 0)`, errnoBadf},
		{`(path_link 3 0 65536 1 3 65536 1)`, errnoBadf},
		{`(path_open 3 0 65536 1 0 -1 -1 0 65600)`, errnoBadf},
		{`(path_open 1 0 65536 1 0 -1 -1 0 65600)`, errnoNotdir},
		{`(path_readlink 3 65536 1 65536 8 65600)`, errnoBadf},
		{`(path_remove_directory 3 65536 1)`, errnoBadf},
		{`(path_rename 3 65536 1 3 65536 1)`, errnoBadf},
		{`(path_symlink 65536 1 0 65536 1)`, errnoNotdir},
		{`(path_symlink 1 1 3 65536 1)`, errnoBadf},
		{`(path_unlink_file 3 65536 1)`, errnoBadf},
		{`(proc_raise 6)`, errnoNosys},
		{`(sock_accept 0 0 65600)`, errnoNotsock},
		{`(sock_recv 3 65536 1 0 65600 65604)`, errnoBadf},
		{`(sock_send 1 65536 1 0 65600)`, errnoNotsock},
		{`(sock_shutdown 0 0)`, errnoNotsock},
		{`(random_get 65700 0)`, 0},
		{`(poll_oneoff 65536 65600 0 65700)`, errnoInval},
		{`(fd_close 1)`, 0},
		{`(fd_close 1)`, errnoBadf},
		{`(fd_write 1 65536 0 65600)`, errnoBadf},
		{`(fd_fdstat_get 1 65536)`, errnoBadf},
		{`(fd_write 2 65536 0 65600)`, 0},
		{`(fd_close 3)`, errnoBadf},
	}
	named := map[string]bool{"proc_exit": true}
	var body strings.Builder
	body.WriteString("(i64.store (i32.const 0) (i64.const 1111)) (i64.store (i32.const 8) (i64.const 2222))")
	var want []uint64
	for _, c := range calls {
		words := strings.Fields(strings.Trim(c.call, "()"))
		f := preview1Funcs()[words[0]]
		named[words[0]] = true
		fmt.Fprintf(&body, "(call $errno (call $%s", words[0])
		for k, p := range f.params {
			fmt.Fprintf(&body, " (%s.const %s)", p, words[1+k])
		}
		body.WriteString("))\n")
		want = append(want, c.want)
	}
	for name := range preview1Funcs() {
		if !named[name] {
			t.Errorf("%s is not called", name)
		}
	}
	body.WriteString("(call $number (i64.load (i32.const 0))) (call $number (i64.load (i32.const 8)))")
	want = append(want, 1111, 2222)
	got, err := callCore(t, h, core(importOld(slices.Sorted(maps.Keys(named))...), "", body.String()))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v: %d answers, want %d", err, len(got), len(want))
	}
	for i, c := range calls {
		if got[i] != c.want {
			t.Errorf("%s: %d, want %d", c.call, got[i], c.want)
		}
	}
	if !slices.Equal(got[len(calls):], want[len(calls):]) {
		t.Errorf("the guest's memory is %d, want %d", got[len(calls):], want[len(calls):])
	}
}

func TestPreview1Values(t *testing.T) {
	h := newTestHost(t)
	for _, test := range []struct {
		name, uses, body string
		want             []uint64
	}{
		{
			"file types", "fd_fdstat_get",
			`(drop (call $fd_fdstat_get (i32.const 0) (i32.const 65536))) (drop (call $fd_fdstat_get (i32.const 1) (i32.const 65560)))
			(call $number (i64.load (i32.const 65536))) (call $number (i64.load (i32.const 65544))) (call $number (i64.load (i32.const 65552)))
			(call $number (i64.load (i32.const 65568)))`,
			[]uint64{0, 1<<27 | 1<<1, 0, 1<<27 | 1<<6},
		},
		{
			"the number of written bytes, over more than one call and vector", "fd_write",
			`(i32.store (i32.const 65536) (i32.const 70000)) (i32.store (i32.const 65540) (i32.const 10000))
			(i32.store (i32.const 65544) (i32.const 0)) (i32.store (i32.const 65548) (i32.const 16))
			(call $errno (call $fd_write (i32.const 2) (i32.const 65536) (i32.const 2) (i32.const 65600))) (call $errno (i32.load (i32.const 65600)))`,
			[]uint64{0, 10016},
		},
		{
			"a result that lies where the adapter borrows memory", "fd_write clock_time_get",
			`(i32.store (i32.const 65536) (i32.const 70000)) (i32.store (i32.const 65540) (i32.const 5))
			(call $errno (call $fd_write (i32.const 1) (i32.const 65536) (i32.const 1) (i32.const 8))) (call $errno (i32.load (i32.const 8)))
			(i64.store (i32.const 8) (i64.const -1))
			(call $errno (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 8))) (call $errno (i64.eq (i64.load (i32.const 8)) (i64.const -1)))`,
			[]uint64{0, 5, 0, 0},
		},
		{
			"a function that is imported twice, as Go does", "fd_write",
			`(call $errno (call $again (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (call $errno (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 65536)))`,
			[]uint64{errnoBadf, 0},
		},
		{
			"polling what is ready, and a file that is not there", "poll_oneoff",
			`(i64.store (i32.const 65536) (i64.const 7)) (i32.store8 (i32.const 65544) (i32.const 2)) (i32.store (i32.const 65552) (i32.const 1))
			(i64.store (i32.const 65584) (i64.const 8)) (i32.store8 (i32.const 65592) (i32.const 1)) (i32.store (i32.const 65600) (i32.const 5))
			(i64.store (i32.const 65632) (i64.const 9)) (i64.store (i32.const 65656) (i64.const 1000000))
			(i64.store (i32.const 65680) (i64.const 10)) (i32.store (i32.const 65696) (i32.const 1))
			(call $errno (call $poll_oneoff (i32.const 65536) (i32.const 66000) (i32.const 4) (i32.const 65900))) (call $errno (i32.load (i32.const 65900)))
			(call $number (i64.load (i32.const 66000))) (call $number (i64.load (i32.const 66008)))
			(call $number (i64.load (i32.const 66032))) (call $number (i64.load (i32.const 66040)))
			(call $number (i64.load (i32.const 66064))) (call $number (i64.load (i32.const 66072)))`,
			[]uint64{0, 3, 7, 2 << 16, 8, 1<<16 | errnoBadf, 10, 0},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			uses := importOld(strings.Fields(test.uses)...)
			if strings.Contains(test.body, "$again") {
				uses += `(import "wasi_snapshot_preview1" "fd_write" (func $again (param i32 i32 i32 i32) (result i32)))`
			}
			got, err := callCore(t, h, core(uses, "", test.body))
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v, %d, want %d", err, got, test.want)
			}
		})
	}
}

// While the host calls the allocator, a component may call nothing. The adapter answers all the same.
func TestPreview1Allocating(t *testing.T) {
	h := newTestHost(t)
	text := core(importOld("clock_time_get", "clock_res_get", "random_get", "fd_write", "poll_oneoff"), "",
		`(call $number (i64.load (i32.const 66000))) (call $number (i64.load (i32.const 66008)))
		(call $errno (i32.load (i32.const 66020))) (call $errno (i32.load (i32.const 66024))) (call $errno (i32.load (i32.const 66028)))
		(call $errno (i32.load (i32.const 66032))) (call $errno (i32.load (i32.const 66036)))
		(call $errno (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 66000))) (call $errno (i64.gt_u (i64.load (i32.const 66000)) (i64.const 1)))`)
	text = strings.Replace(text, `(export "cabi_realloc") (param i32 i32 i32 i32) (result i32)`, `(export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
		(drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 66000)))
		(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 66008)))
		(i32.store (i32.const 66020) (call $clock_res_get (i32.const 0) (i32.const 66016)))
		(i32.store (i32.const 66024) (call $random_get (i32.const 65900) (i32.const 4)))
		(i32.store (i32.const 65800) (i32.const 1024)) (i32.store (i32.const 65804) (i32.const 1))
		(i32.store (i32.const 66028) (call $fd_write (i32.const 1) (i32.const 65800) (i32.const 1) (i32.const 65900)))
		(i64.store (i32.const 65736) (i64.const 1000000))
		(i32.store (i32.const 66032) (call $poll_oneoff (i32.const 65712) (i32.const 65904) (i32.const 1) (i32.const 66036)))`, 1)
	got, err := callCore(t, h, text)
	if want := []uint64{1, 1, errnoAgain, errnoAgain, errnoAgain, 0, 1, 0, 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %d, want %d", err, got, want)
	}
}

// A component imports only what its module uses, runs its initialization in every instance, and ends when it says so.
func TestPreview1Imports(t *testing.T) {
	h := newTestHost(t)
	load := func(text string) *host.Component {
		t.Helper()
		component, err := Componentize(anyWorld, wat(t, text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Componentize(anyWorld, wat(t, text))
		if err != nil || !bytes.Equal(component, again) {
			t.Errorf("the same module gives other bytes, %v", err)
		}
		c, err := h.Load(t.Context(), component)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	for _, test := range []struct{ uses, want string }{
		{"", "env types"},
		{"args_get fd_close fd_read fd_readdir fd_prestat_get", "env types"},
		{"args_get path_open fd_close fd_read", "env types wasi:filesystem/types"},
		{"clock_time_get", "env types wasi:clocks/monotonic-clock wasi:clocks/wall-clock"},
		{"random_get", "env types wasi:random/random"},
		{"proc_exit", "env types wasi:cli/exit"},
		{"fd_write", "env types wasi:cli/stderr wasi:cli/stdout wasi:io/error wasi:io/streams"},
		{"poll_oneoff", "env types wasi:clocks/monotonic-clock wasi:clocks/wall-clock wasi:io/poll"},
	} {
		var have []string
		for _, i := range load(core(importOld(strings.Fields(test.uses)...), "", `(call $number (i64.const 1))`)).Imports() {
			name, _, _ := strings.Cut(i.Name, "@")
			have = append(have, strings.TrimPrefix(name, "stile:capability/"))
		}
		slices.Sort(have)
		if got := strings.Join(have, " "); got != test.want {
			t.Errorf("with %q, imports %s, want %s", test.uses, got, test.want)
		}
	}
	started := core("", `(global $n (mut i32) (i32.const 40)) (func (export "_initialize") (global.set $n (i32.add (global.get $n) (i32.const 2))))`,
		`(call $errno (global.get $n)) (global.set $n (i32.const 0))`)
	for range 2 {
		if got, err := callCore(t, h, started); err != nil || !slices.Equal(got, []uint64{42}) {
			t.Errorf("initialized: %d, %v", got, err)
		}
	}
	_, err := callCore(t, h, core(importOld("proc_exit"), "", `(call $proc_exit (i32.const 3)) (call $number (i64.const 1))`))
	if guest, ok := errors.AsType[*host.GuestError](err); !ok || guest.Failure.Name != "Exit" {
		t.Errorf("exit: %v", err)
	}
}
