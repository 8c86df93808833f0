package host_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
)

// withSection appends a custom section to a component.
func withSection(wasm []byte, name, content string) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), content...)
	return append(binary.AppendUvarint(append(slices.Clip(wasm), 0), uint64(len(body))), body...)
}

// TestMappedFrames checks a stack whose frames the guest mapped or forged itself. Frames that name source files are kept unchanged.
func TestMappedFrames(t *testing.T) {
	h := newHost(t, host.Options{})
	stack := "    at a (extension.js:1:1)\n    at b (a.ts:7:8)\n    at c (./extension.js:9:9)\n    at d (/etc/passwd:1:1)\n" +
		"    at e (lib/extension.js:1:1)\n    at f (native)\n    at g (:0:1)\n    at h (b.ts:1:1)\nCaused by x\n"
	wasm := componentize(t, guest{
		data: literal(stack),
		call: fmt.Sprintf(`(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 2048) (i32.const %d)) (i32.const 128)`, len(stack)),
	}.core())
	c, err := h.Load(t.Context(), withSection(wasm, "stile:source-map", `{"version":3,"sources":["a.ts","extension.js","lib/extension.js"],"mappings":"AAAA"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "    at a (a.ts:1:1)\n    at b (a.ts:7:8)\n    at c (./extension.js:9:9)\n    at e (lib/extension.js:1:1)\nCaused by x\n"
	_, err = c.Call(t.Context(), "t", nil, nil)
	if failed, ok := errors.AsType[*host.GuestError](err); !ok || failed.Failure.Stack != want {
		t.Errorf("got %v", err)
	}
}

// TestHostileSections loads a component whose custom sections attack their readers.
func TestHostileSections(t *testing.T) {
	h := newHost(t, host.Options{})
	stack := "    at run (extension.js:1:1)\n"
	wasm := componentize(t, guest{
		data: literal(stack),
		call: fmt.Sprintf(`(drop (call $error (i32.const 4))) (call $string (i32.const 2) (i32.const 2048) (i32.const %d)) (i32.const 128)`, len(stack)),
	}.core())
	for _, name := range []string{"stile:\x1b[2J", "stile:Meta", "stile:", "stile:a\nb", "other", "stile:meta"} {
		wasm = withSection(wasm, name, "x")
	}
	c, err := h.Load(t.Context(), withSection(wasm, "stile:source-map", `{"version":3,"sections":[{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Sections() {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz:-") != "" || name == "stile:" {
			t.Errorf("section %q", name)
		}
	}
	if string(c.Section("stile:meta")) != "x" {
		t.Error("the section stile:meta is missing")
	}
	for range 64 {
		wasm = withSection(wasm, "stile:meta", "x")
	}
	var refused *host.LoadError
	if _, err := h.Load(t.Context(), wasm); !errors.As(err, &refused) || !strings.Contains(err.Error(), "more than 64 custom sections") {
		t.Errorf("got %v", err)
	}
	var failed *host.GuestError
	if _, err = c.Call(t.Context(), "t", nil, nil); !errors.As(err, &failed) || failed.Failure.Stack != stack {
		t.Errorf("got %v", err)
	}
}
