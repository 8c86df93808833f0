package toolchain

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/abi"
)

const exportsWIT = `package test:exports;
interface all {
  variant either { whole(s64), part(f32), neither }
  variant error { exhausted(string), other }
  flat: func(a: s8, b: u64, c: f32, d: f64, e: either, f: option<bool>) -> f64;
  spilled: func(a: u8, b: u64, c: u16, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8, j: u8, k: u8, l: u8, m: u8, n: u8, o: u8, p: u8, q: u32) -> u64;
  text: func(v: string) -> string;
  later: func(v: u32) -> u32;
  negative: func() -> s32;
  stuck: func() -> result<_, error>;
  stuck-without-error: func();
  throws: func() -> u32;
  wrong: func() -> u32;
  refuses: func() -> result<u32, u8>;
}
world w { export all; }`

const exportsEntry = `
import { implement, WitError } from "./bindings";
export { define, enter, finish, now, turn } from "./bindings";
const all = (...args: any[]) => args.reduce((sum, v) => sum + Number(v), 0);
const handlers: Record<string, (...args: any[]) => any> = {
  flat: (a, b, c, d, e, f) => a + Number(b) + c + d + (e.tag === "neither" ? 0 : Number(e.val)) + (f === undefined ? 0 : f ? 0.25 : 0.125),
  spilled: (...args) => BigInt(all(...args)),
  text: (v) => v + v,
  later: async (v) => { await null; await null; return v + 1; },
  negative: () => -1,
  stuck: () => new Promise(() => {}),
  stuckWithoutError: () => new Promise(() => {}),
  throws: () => { throw new Error("x"); },
  wrong: () => "text",
  refuses: () => { throw new WitError(7); },
};
implement("test:exports/all", Object.fromEntries(Object.entries(handlers).map(([name, run]) => [name, { run }])));
export function register() {}
`

// Exports of every shape can be called, in turn in one instance.
func TestExports(t *testing.T) {
	known, err := abi.Parse(exportsWIT)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLinkage(known.World("test:exports/w"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(stile.TypeScript(), "toolchain/prelude")
	if err != nil {
		t.Fatal(err)
	}
	prelude, err := bundlePrelude(files, fstest.MapFS{}, exportsEntry)
	if err != nil {
		t.Fatal(err)
	}
	m := testImager(t, imageLimits{})
	base := baseOf(t, m, prelude)
	img, _, err := m.extension(t.Context(), base, nil, testDescriptor(t, l), []byte("export default 1"), "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	g, instance := startBindings(t, m, l, img, nil)
	call := func(name string, args ...any) (any, error) {
		return instance.GetFunc(g.store, "test:exports/all#"+name).Call(g.store, args...)
	}
	bytesAt := func(p int32) []byte { return g.memory.UnsafeData(g.store)[p:] }
	word := func(p int32) int32 { return int32(binary.LittleEndian.Uint32(bytesAt(p))) }

	// A float in a slot that it shares with s64 arrives as its bits.
	for _, test := range []struct {
		args []any
		want float64
	}{
		{[]any{int32(-3), int64(5), float32(0.5), 1.0, int32(2), int64(0), int32(0), int32(0)}, 3.5},
		{[]any{int32(0), int64(0), float32(0), 0.0, int32(0), int64(-7), int32(1), int32(1)}, -6.75},
		{[]any{int32(0), int64(0), float32(0), 0.0, int32(1), int64(0x3f800000), int32(1), int32(0)}, 1.125},
	} {
		if got, err := call("flat", test.args...); err != nil || got != test.want {
			t.Errorf("flat: %v, %v; want %v", got, err, test.want)
		}
	}

	spill := g.malloc(40)
	content := make([]byte, 40)
	content[0], content[35] = 1, 1 // a, and the high byte of q
	binary.LittleEndian.PutUint64(content[8:], 1<<40)
	g.write(spill, content)
	if got, err := call("spilled", int32(spill)); err != nil || got != int64(1+1<<40+1<<24) {
		t.Errorf("spilled: %v, %v", got, err)
	}

	for range 3 { // the next call frees the memory of a result
		p := g.text("äb")
		got, err := call("text", p, int32(3))
		if err != nil {
			t.Fatal(err)
		}
		at := got.(int32)
		if text := string(bytesAt(word(at))[:word(at+4)]); text != "äbäb" {
			t.Errorf("text: %q", text)
		}
	}
	if got, err := call("later", int32(41)); err != nil || got != int32(42) {
		t.Errorf("later: %v, %v", got, err)
	}
	if got, err := call("negative"); err != nil || got != int32(-1) {
		t.Errorf("negative: %v, %v", got, err)
	}
	got, err := call("stuck")
	if err != nil {
		t.Fatal(err)
	}
	at := got.(int32)
	if text := string(bytesAt(word(at + 8))[:word(at+12)]); bytesAt(at)[0] != 1 || bytesAt(at)[4] != 0 || !strings.HasPrefix(text, "promise: the code awaits") {
		t.Errorf("stuck: %q", text)
	}
	got, err = call("refuses")
	if err != nil {
		t.Fatal(err)
	}
	if at := got.(int32); bytesAt(at)[0] != 1 || bytesAt(at)[4] != 7 {
		t.Errorf("refuses: %x", bytesAt(at)[:8])
	}
	// A value that does not fit the result ends the instance, in a function whose name says why.
	for _, name := range []string{"throws", "wrong", "stuck-without-error"} {
		_, err := call(name)
		var trap *wasmtime.Trap
		if !errors.As(err, &trap) || *trap.Frames()[0].FuncName() != "stile:uncaught-error" {
			t.Errorf("%s: %v; want a trap", name, err)
		}
	}
	if g.err != nil {
		t.Error(g.err)
	}
}

// startBindings starts an engine on a copy of an image, with the bindings of its world. define, when not nil, supplies what the
// world imports.
func startBindings(t testing.TB, m *imager, l *linkage, img *image, define func(*guest, coreImport, *abi.Func) *wasmtime.Func) (*guest, *wasmtime.Instance) {
	t.Helper()
	bindings, err := m.compileText(t.Context(), bindingsText(l, img.roots, m.shape, false))
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.newGuest(t.Context(), img.memory, m.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	g.call("qjs_set_max_stack_size", int32(topStack)) // as the native stack is here
	if err := g.linker.DefineInstance(g.store, "engine", g.engine); err != nil {
		t.Fatal(err)
	}
	if define != nil {
		for i, c := range l.core() {
			var f *abi.Func // nil for a drop
			if i < len(l.calls) {
				f = l.calls[i]
			}
			if err := g.linker.Define(g.store, "world", c.name, define(g, c, f)); err != nil {
				t.Fatal(err)
			}
		}
	}
	instance, err := g.linker.Instantiate(g.store, bindings)
	if err != nil {
		t.Fatal(err)
	}
	return g, instance
}
