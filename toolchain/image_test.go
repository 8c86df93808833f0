package toolchain

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/wit"
)

func testImager(t testing.TB, limits imageLimits) *imager {
	t.Helper()
	return newTestImager(t, cachetest.Open(t).Do, limits)
}

func newTestImager(t testing.TB, cache cacheFunc, limits imageLimits) *imager {
	t.Helper()
	return imagerOf(t, newWholeEngine, cache, limits)
}

// imagerOf makes images with the engine that rewrite makes of the one that npm delivers.
func imagerOf(t testing.TB, rewrite func(wasm []byte) (*wholeEngine, error), cache cacheFunc, limits imageLimits) *imager {
	t.Helper()
	whole, err := rewrite(testEngine(t).wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newImager(t.Context(), whole.engineShape, whole.digest, func(context.Context) (*wholeEngine, error) { return whole, nil }, cache, limits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func testBase(t testing.TB, m *imager) *baseImage {
	t.Helper()
	prelude, err := preludeSource(testEngine(t).modules, true)
	if err != nil {
		t.Fatal(err)
	}
	return baseOf(t, m, prelude)
}

func baseOf(t testing.TB, m *imager, prelude string) *baseImage {
	t.Helper()
	key, err := m.baseKey(prelude, layout{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := m.base(t.Context(), key, func() (string, error) { return prelude, nil }, layout{})
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func testLinkage(t testing.TB, interfaces ...string) *linkage {
	t.Helper()
	return testLinkageOf(t, []string{abi.ExtensionTools, abi.ExtensionStepwise, abi.ExtensionMemory}, interfaces...)
}

func testLinkageOf(t testing.TB, exports []string, interfaces ...string) *linkage {
	t.Helper()
	known, err := abi.Parse(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	world := &abi.World{Name: "test"}
	for _, name := range exports {
		world.Exports = append(world.Exports, known.Interface(name))
	}
	for _, name := range interfaces {
		world.Imports = append(world.Imports, known.Interface("stile:capability/"+name+"@0.1.0"))
	}
	l, err := newLinkage(world)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func testDescriptor(t testing.TB, l *linkage) []byte {
	t.Helper()
	d, err := describe(l)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// oneTool is a bundle with this top-level code.
func oneTool(code string) []byte {
	return []byte(`const { extension } = globalThis[Symbol.for("stile.sdk")];
` + code + `
export default extension({ tools: { t: { description: "test", input: { type: "object" }, run: (input) => input } } });
`)
}

func TestSameSourceSameImage(t *testing.T) {
	l := testLinkage(t, "env", "kv", "http")
	code := oneTool(`globalThis.kept = [Math.random(), Date.now(), new Date().toString(), new Map([[{}, 1]]), Symbol("x")];`)
	var first []byte
	for range 2 {
		// Nothing is shared, including the compiled engine.
		m := newTestImager(t, uncached, imageLimits{})
		base := testBase(t, m)
		for range 2 {
			img, used, err := m.extension(t.Context(), base, nil, testDescriptor(t, l), code, "extension.js", false)
			if err != nil {
				t.Fatal(err)
			}
			if !used.clock || !used.random {
				t.Errorf("%+v, want both", used)
			}
			a := &assembly{linkage: l, image: img, shape: m.shape, engine: "engine-x0"}
			wasm, err := a.assemble()
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = wasm
			}
			if !bytes.Equal(first, wasm) {
				t.Fatal("two components of one source differ")
			}
		}
	}
}

func TestBaseImageComesBackFromTheCache(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	encoded, err := base.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeBase(encoded)
	if err != nil {
		t.Fatal(err)
	}
	again.bindings = base.bindings
	if !bytes.Equal(again.memory, base.memory) || again.roots != base.roots || again.define != base.define ||
		again.register != base.register || again.finish != base.finish {
		t.Error("another base image")
	}
	for _, damaged := range [][]byte{nil, {0}, []byte("{"), encoded[:10]} {
		if _, err := decodeBase(damaged); err == nil {
			t.Errorf("%.20q: no error", damaged)
		}
	}
}

func TestTopLevelUse(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	descriptor := testDescriptor(t, testLinkage(t, "env"))
	for _, test := range []struct {
		code string
		want report
	}{
		{``, report{}},
		{`new Date(0).getTime(); performance.now(); Math.max(1, 2);`, report{}},
		{`Date.now();`, report{clock: true}},
		{`if (new Date().toISOString() !== "2000-01-01T00:00:00.000Z") throw new Error("time moves");`, report{clock: true}},
		{`Math.random();`, report{random: true}},
	} {
		_, used, err := m.extension(t.Context(), base, nil, descriptor, oneTool(test.code), "extension.js", false)
		if err != nil || used != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.code, used, err, test.want)
		}
	}
}

func TestTopLevelFailures(t *testing.T) {
	hurried, cramped := testImager(t, imageLimits{cpu: 300 * time.Millisecond}), testImager(t, imageLimits{memory: 8 << 20})
	descriptor := testDescriptor(t, testLinkage(t, "env", "kv"))
	cpu, memory := "the cpu limit of 300ms", "the memory limit of 8 MiB"
	for _, test := range []struct{ name, code, want string }{
		{"throws", `throw new TypeError("no such thing");`, "TypeError: no such thing"},
		{"throws text", `throw "text";`, "text"},
		{"throws nothing", `throw undefined;`, "undefined"},
		{"throws what cannot be told", `throw { toString() { throw 1 } };`, ""},
		{"is not JavaScript", `let = = 1`, "SyntaxError: "},
		{"awaits a rejection", `await Promise.reject(new RangeError("late"));`, "RangeError: late"},
		{"awaits for ever", `await new Promise(() => {});`, "a promise that nothing can settle"},
		{"awaits a timer", `await new Promise((done) => setTimeout(done, 1));`, "top level"},
		{"imports something else", `await import("./other.js");`, "other.js"},
		{"recurses", `(function f() { f(); })();`, "RangeError: Maximum call stack size exceeded"},
		{"loops", `for (;;);`, cpu},
		{"loops in a promise", `(function again() { Promise.resolve().then(again); })(); await new Promise(() => {});`, cpu},
		{"loops in a job that nobody awaits", `(function again() { Promise.resolve().then(again); })();`, cpu},
		{"loops in a regular expression", `/^(a+)+$/.test("a".repeat(40) + "b");`, cpu},
		{"loops in a getter of what it throws", `throw Object.defineProperty(new Error(), "message", { get() { for (;;); } });`, cpu},
		{"loops in toString of what it throws", `throw { toString() { for (;;); } };`, cpu},
		{"loops in native code", `const a = new Array(1e5).fill(0); for (;;) a.sort();`, cpu},
		{"fills memory", `const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));`, memory},
		{"fills memory and goes on", `const all = []; try { for (;;) all.push(new Uint8Array(1 << 20)); } catch {}`, memory},
		{"fills memory with objects", `const all = []; for (;;) all.push({});`, memory},
		{"has a long text", `"x".repeat(2 ** 30);`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := hurried
			if test.want == memory {
				m = cramped
			}
			_, _, err := m.extension(t.Context(), testBase(t, m), nil, descriptor, oneTool(test.code), "extension.js", false)
			var thrown *evaluationError
			var limit *limitError
			switch {
			case !errors.As(err, &thrown) && !errors.As(err, &limit):
				t.Errorf("%v; want an evaluationError or a limitError", err)
			case !strings.Contains(err.Error(), test.want):
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
}

func TestThrownErrorsHaveStacks(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	code := oneTool("function inner() {\n  throw new Error(\"x\".repeat(1e6));\n}\ninner();")
	_, _, err := m.extension(t.Context(), base, nil, testDescriptor(t, testLinkage(t)), code, "extension.js", false)
	var thrown *evaluationError
	if !errors.As(err, &thrown) || !strings.Contains(thrown.Stack, "inner (extension.js:3:") {
		t.Errorf("%v; want a stack with the line", err)
	}
	if len(thrown.Message) > maxErrorText {
		t.Errorf("a message of %d bytes", len(thrown.Message))
	}
}

func TestNoDefaultExport(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	for _, code := range []string{``, `export default 1;`, `export default {};`} {
		_, _, err := m.extension(t.Context(), base, nil, testDescriptor(t, testLinkage(t)), []byte(code), "extension.js", false)
		var thrown *evaluationError
		if !errors.As(err, &thrown) || !strings.Contains(err.Error(), "export default extension(") {
			t.Errorf("%q: %v", code, err)
		}
	}
}

// A cancelled script ends long before its limit.
func TestCancelledImage(t *testing.T) {
	m := testImager(t, imageLimits{cpu: time.Hour})
	base := testBase(t, m)
	descriptor := testDescriptor(t, testLinkage(t))
	for _, code := range []string{`for (;;);`, `(function again() { Promise.resolve().then(again); })(); await new Promise(() => {});`} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, _, err := m.extension(ctx, base, nil, descriptor, oneTool(code), "extension.js", false); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want %v", code, err, context.Canceled)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.extension(ctx, base, nil, descriptor, oneTool(``), "extension.js", false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want %v", err, context.Canceled)
	}
}

// Images are built at the same time, and none sees the effects of another.
func TestImagesAreApart(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	descriptor := testDescriptor(t, testLinkage(t))
	before := bytes.Clone(base.memory)
	done := make(chan error)
	const images = 8
	for range images {
		go func() {
			_, _, err := m.extension(t.Context(), base, nil, descriptor, oneTool(`
				if (globalThis.seen || Array.prototype.flatMap === 1) throw new Error("not alone");
				globalThis.seen = true;
				Array.prototype.flatMap = 1;`), "extension.js", false)
			done <- err
		}()
	}
	for range images {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(before, base.memory) {
		t.Error("the base image was changed")
	}
}

// A call collects garbage only when its heap has grown large, because a collection makes every page of the image private.
func TestShortCallsCollectNoGarbage(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	img, _, err := m.extension(t.Context(), base, nil, testDescriptor(t, testLinkage(t)), oneTool(""), "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.newGuest(t.Context(), img.memory, m.limits)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if got := g.call("qjs_get_gc_threshold"); got != gcThreshold || g.err != nil {
		t.Errorf("threshold %d, %v; want %d", got, g.err, gcThreshold)
	}
	g.bind(base.bindings, img.roots)
	used := g.malloc(256)
	g.call("qjs_compute_memory_usage", int32(used))
	if heap := g.load64(used); heap <= 0 || heap > gcThreshold/4 {
		t.Errorf("the heap of an image has %d bytes", heap)
	}
}

func BenchmarkExtensionImage(b *testing.B) {
	m := testImager(b, imageLimits{})
	base := testBase(b, m)
	descriptor := testDescriptor(b, testLinkage(b, "env", "kv"))
	code := oneTool("")
	for b.Loop() {
		if _, _, err := m.extension(b.Context(), base, nil, descriptor, code, "extension.js", false); err != nil {
			b.Fatal(err)
		}
	}
}
