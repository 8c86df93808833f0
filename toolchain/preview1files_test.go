package toolchain

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

// TestPreview1Files has a guest use files through preview 1: with forged and closed numbers, paths that lead out, buffers in the memory that the
// adapter lends, at the end of the memory and beyond it, and more files than there are numbers.
func TestPreview1Files(t *testing.T) {
	h := newTestHost(t)
	folder := t.TempDir()
	root := filepath.Join(folder, "root")
	for name, text := range map[string]string{filepath.Join(root, "f"): "hello", filepath.Join(root, "d", "inside"): "", filepath.Join(folder, "secret"): "secret"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := workspace.OpenDisk(root, workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	// At 70000: texts. At 66000: a buffer of 100 bytes at 66100. At 66008: one of 3 bytes at 200, which is lent. At 66016: one of a
	// whole memory at 66100.
	const texts = "f../secret/secretd/insidedgf/x"
	const data = `(data (i32.const 70000) "` + texts + `")
		(data (i32.const 66000) "\34\02\01\00\64\00\00\00\c8\00\00\00\03\00\00\00\34\02\01\00\ff\ff\ff\ff")`
	calls := []struct {
		call string
		want uint64
	}{
		{"(fd_prestat_get 3 65536)", 0},
		{"=65540", 6}, // the length of "/mount"
		{"(fd_prestat_get 4 65536)", errnoBadf},
		{"(fd_prestat_get 0 65536)", errnoBadf},
		{"(fd_prestat_get -1 65536)", errnoBadf},
		{"(fd_prestat_dir_name 3 65600 6)", 0},
		{"=65600", 0x6e756f6d2f}, // "/moun", of which a number has the first 5 bytes
		{"(fd_prestat_dir_name 3 65600 5)", 37},
		{"(path_open 3 1 70001 9 0 0x42 0 0 65536)", 63}, // ../secret
		{"(path_open 3 1 70010 7 0 0x42 0 0 65536)", 63}, // /secret
		{"(path_open 9 1 70000 1 0 0x42 0 0 65536)", errnoBadf},
		{"(path_open 3 1 70000 0 0 0x42 0 0 65536)", 44},
		{"(path_open 3 1 70000 1 0 0x42 0 0 65536)", 0}, // f
		{"=65536", 6<<32 | 4},
		{"(path_open 4 1 70000 1 0 0x42 0 0 65540)", errnoNotdir},
		{"(fd_read 4 66008 1 65544)", 0}, // into memory that was lent
		{"=65544", 3},
		{"=200", 0x6c6568}, // "hel"
		{"(fd_tell 4 65552)", 0},
		{"=65552", 3},
		{"(fd_read 4 66000 1 65544)", 0},
		{"=65544", 2},
		{"(fd_seek 4 0 0 65552)", 0},
		{"(fd_read 4 66016 1 65544)", 0}, // a buffer that is larger than what is there
		{"=65544", 5},
		{"(fd_seek 4 -9 1 65552)", errnoInval},
		{"(fd_seek 4 0 3 65552)", errnoInval},
		{"(fd_pread 4 66000 1 -1 65544)", 0},
		{"=65544", 0},
		{"(fd_filestat_get 4 65560)", 0},
		{"=65592", 5},
		{"(fd_filestat_set_size 4 0x1000000000000000)", 22},
		{"(fd_readdir 4 66100 100 0 65544)", errnoNotdir},
		{"(path_open 3 1 70025 1 0 0x42 0 0 65536)", 31}, // d, for writing
		{"(path_open 3 1 70025 1 2 0x42 0 0 65536)", 0},  // d
		{"=65536", 6<<32 | 5},
		{"(fd_readdir 5 66100 400 0 65544)", 0},
		{"=65544", 30},
		{"(fd_readdir 5 66100 30 0 65544)", 0}, // the buffer is full, so there may be more
		{"(fd_readdir 5 66100 10 0 65544)", 0},
		{"=65544", 10},
		{"(fd_readdir 5 66100 400 1 65544)", 0},
		{"=65544", 0},
		{"(fd_readdir 5 66100 400 -1 65544)", 0},
		{"(fd_read 5 66000 1 65544)", 31},
		{"(fd_write 5 66000 1 65544)", 31},
		{"(path_open 5 1 70001 9 0 2 0 0 65536)", 63}, // ../secret of d
		{"(path_rename 5 70019 6 3 70026 1)", 0},      // inside, out of d, is g
		{"(path_rename 5 70026 1 77 70026 1)", errnoBadf},
		{"(path_link 3 0 70000 1 3 70025 1)", errnoNotsup},
		{"(fd_close 4)", 0},
		{"(fd_close 4)", errnoBadf},
		{"(fd_read 4 66000 1 65544)", errnoBadf},
		{"(fd_close 70)", errnoBadf},
		{"(fd_close -1)", errnoBadf},
		{"=0", 0}, // what was lent
	}
	named := map[string]bool{}
	var body strings.Builder
	var want []uint64
	for _, c := range calls {
		if at, ok := strings.CutPrefix(c.call, "="); ok {
			fmt.Fprintf(&body, "(call $number (i64.and (i64.load (i32.const %s)) (i64.const 0xffffffffff)))\n", at)
			want = append(want, c.want)
			continue
		}
		words := strings.Fields(strings.Trim(c.call, "()"))
		named[words[0]] = true
		fmt.Fprintf(&body, "(call $errno (call $%s", words[0])
		for k, p := range preview1Funcs()[words[0]].params {
			fmt.Fprintf(&body, " (%s.const %s)", p, words[1+k])
		}
		body.WriteString("))\n")
		want = append(want, c.want)
	}
	do := func(body string, names ...string) ([]uint64, error) {
		component, err := Componentize(anyWorld, wat(t, core(importOld(names...), data, body)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.Load(t.Context(), component)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"files": disk.Directory()}, WASI: abi.WASI{Filesystem: map[string]string{"/mount": "files"}}})
		var numbers []uint64
		if err == nil {
			err = json.Unmarshal(r.Output, &numbers)
		}
		return numbers, err
	}
	got, err := do(body.String(), slices.Sorted(maps.Keys(named))...)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v: %d answers, want %d", err, len(got), len(want))
	}
	for i, c := range calls {
		if got[i] != c.want {
			t.Errorf("%d %s: %#x, want %#x", i, c.call, got[i], c.want)
		}
	}
	many, err := do(`(local $n i32) (drop (call $fd_prestat_get (i32.const 3) (i32.const 65536)))
		(loop $l (drop (call $path_open (i32.const 3) (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 65536)))
			(br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
		(call $errno (call $path_open (i32.const 3) (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 65536)))
		(call $number (i64.load (i32.const 65536)))`, "fd_prestat_get", "path_open")
	if err != nil || !slices.Equal(many, []uint64{errnoMfile, 6<<32 | (maxOpenFiles + 2)}) {
		t.Errorf("with too many files: %v, %v", many, err)
	}
	for name, call := range map[string]string{
		"a path beyond the memory":   `(call $errno (call $path_open (i32.const 3) (i32.const 1) (i32.const -1) (i32.const 100) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 65536)))`,
		"buffers beyond the memory":  `(drop (call $path_open (i32.const 3) (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 65536))) (call $errno (call $fd_read (i32.const 4) (i32.const -8) (i32.const 9) (i32.const 65536)))`,
		"a result beyond the memory": `(call $errno (call $path_open (i32.const 3) (i32.const 1) (i32.const 70000) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const -2)))`,
	} {
		if got, err := do(`(drop (call $fd_prestat_get (i32.const 3) (i32.const 65536)))`+call, "fd_prestat_get", "path_open", "fd_read"); err == nil || !strings.Contains(err.Error(), "trapped") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "secret")); err != nil || string(text) != "secret" {
		t.Errorf("the secret is %q: %v", text, err)
	}
}
