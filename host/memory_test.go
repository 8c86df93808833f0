package host_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// TestMemoryRefused has guests end as different languages do when an allocation fails, with and without function names. It distinguishes
// them from guests that trap for another reason.
func TestMemoryRefused(t *testing.T) {
	const (
		push    = `(block $refused (loop $l (br_if $refused (i32.eq (memory.grow (i32.const 1)) (i32.const -1))) (br $l))) `
		huge    = `(drop (memory.grow (i32.const 16384))) `
		all     = `(drop (memory.grow (i32.const 65535))) `
		less    = `(if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (loop $forever (br $forever)))) `
		panics  = `(call $rust_panic) `
		memory  = `(memory (export "memory") 2)`
		realloc = `(drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 2))))`
		aborts  = `(if (i32.eq (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 2))) (i32.const -1)) (then unreachable))`
	)
	const ok, trap, limit = "ok", "trap", "memory"
	h := newHost(t, host.Options{Limits: host.Limits{Memory: 256 << 10}})
	for _, c := range []struct {
		name, call string
		change     [2]string // a part of the guest, and its replacement
		input      int
		want       string
	}{
		{"one page after another", push + panics, [2]string{}, 0, limit},
		{"at once", huge + panics, [2]string{}, 0, limit},
		{"all that can be", all + panics, [2]string{}, 0, limit},
		{"in the function itself", huge + `unreachable`, [2]string{}, 0, limit},
		{"asks for the size later", huge + `(drop (memory.grow (i32.const 0))) unreachable`, [2]string{}, 0, limit},
		{"while the host passes the input", ``, [2]string{realloc, aborts}, 200_000, limit},
		{"as it begins", ``, [2]string{memory, memory + ` (func $begin ` + huge + `unreachable) (start $begin)`}, 0, limit},
		{"within its own maximum", huge + panics, [2]string{memory, `(memory (export "memory") 2 20000)`}, 0, limit},
		{"beyond its own maximum", huge + panics, [2]string{memory, `(memory (export "memory") 2 3)`}, 0, trap},
		{"beyond its own maximum, by far", all + panics, [2]string{memory, `(memory (export "memory") 2 3)`}, 0, trap},
		{"does with nothing", huge, [2]string{}, 0, ok},
		{"does with less", huge + less, [2]string{}, 0, ok},
		{"does with less, then panics", huge + less + panics, [2]string{}, 0, trap},
		{"panics", panics, [2]string{}, 0, trap},
		{"panics with more memory", less + panics, [2]string{}, 0, trap},
		{"asks for the size", `(drop (memory.grow (i32.const 0))) unreachable`, [2]string{}, 0, trap},
		{"traps otherwise", huge + `(drop (i32.load (i32.const -8)))`, [2]string{}, 0, trap},
	} {
		g := guest{call: c.call + returns, more: `(func $rust_panic (call $abort)) (func $abort unreachable)`}
		module, err := wasmtime.WAT(strings.Replace(g.core(), c.change[0], c.change[1], 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, names := range []bool{true, false} {
			if !names {
				module = stripped(t, module)
			}
			component, err := h.Load(t.Context(), componentizeModule(t, module))
			if err != nil {
				t.Fatal(err)
			}
			_, err = component.Call(t.Context(), "t", []byte(`{"x":"`+strings.Repeat("a", c.input)+`"}`), nil)
			got := ok
			if l, is := errors.AsType[*host.LimitError](err); is {
				got = l.Limit
				if l.Value != "256 KiB" || !l.Claimed || strings.Contains(l.Detail, "rust_panic") != (names && strings.Contains(c.call, panics)) {
					t.Errorf("%s, names %v: %+v", c.name, names, l)
				}
			} else if tr, is := errors.AsType[*host.TrapError](err); is {
				got = trap
				if names && strings.Contains(c.call, panics) && !strings.Contains(strings.Join(tr.Functions, " "), "abort rust_panic") {
					t.Errorf("%s: %+v", c.name, tr)
				}
			} else if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s, names %v: got %s, %v, want %s", c.name, names, got, err, c.want)
			}
		}
	}
}

// stripped is a module without custom sections, and thus without function names.
func stripped(t *testing.T, module []byte) []byte {
	t.Helper()
	const header, custom = 8, 0
	out := module[:header:header]
	for rest := module[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 {
			t.Fatal("not a module")
		}
		end := 1 + n + int(size)
		if rest[0] != custom {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}
