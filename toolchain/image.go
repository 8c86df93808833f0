package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sha256hex"
)

// limitError reports that top-level code of a source reached a limit while its image was made.
type limitError struct {
	// Limit is "memory", "cpu" or "stack".
	Limit string
	// Value is the limit that was set, e.g. "64 MiB".
	Value string
}

// Error implements error.
func (e *limitError) Error() string {
	return fmt.Sprintf("top-level code ran into the %s limit of %s", e.Limit, e.Value)
}

// evaluationError reports what top-level code of a source threw while its image was made.
type evaluationError struct {
	Name    string // e.g. "TypeError"; empty if the thrown value is not an error
	Message string
	Stack   string // as the engine gives it: lines of the bundle, not of the source
}

// Error implements error.
func (e *evaluationError) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// imageLimits bound the making of an image.
type imageLimits struct {
	memory uint64        // bytes; default 64 MiB
	cpu    time.Duration // default 5 s
}

const (
	// largeBundle is the size, in bytes, beyond which a bundle has more time and memory, because it contains tables: 1 s and 8 MiB for each MiB of
	// it. A table takes some six times its text, and more while it is read.
	largeBundle = 1 << 20
	// mostForTables is the most memory, in bytes, that is added for them. What loads components has room for as much.
	mostForTables = 64 << 20
)

// of returns the limits of a bundle.
func (l imageLimits) of(bundle int, large bool) imageLimits {
	if bundle > largeBundle {
		l.memory += min(8*uint64(bundle), mostForTables)
		l.cpu += time.Duration(bundle>>20) * time.Second
	}
	if large {
		l.cpu = max(l.cpu, largeCPU)
	}
	return l
}

// cacheFunc returns what build makes for a kind and key, from a cache if possible. Its result is trusted.
type cacheFunc func(ctx context.Context, kind, key string, build func() ([]byte, error)) ([]byte, error)

// image is the memory of an engine that is ready to be called.
type image struct {
	roots  roots
	memory []byte // whole pages
}

// report says which operations the top-level code used whose answers an image fixes.
type report struct {
	clock, random bool
}

const (
	// guestStack is the engine's own stack for a script, in its memory. Beyond it the script gets a RangeError. A call of a function takes 260
	// bytes of it and 620 of the native stack, which the host bounds; a call of an async function takes 500 and 1,750.
	guestStack = 1312 << 10
	// topStack is guestStack while an image is made, where the native stack is maxWasmStack.
	topStack     = 288 << 10
	maxWasmStack = 1 << 20
	largeCPU     = time.Minute // for a large source
	// gcThreshold is the heap, in bytes, at which an instance collects garbage for the first time. Calls are short, and a
	// collection visits, and so makes private, every page of the image.
	gcThreshold = 16 << 20
	// aliased is the size of the buffer that prelude/bindings.ts sees memory through: all that an ArrayBuffer can be.
	aliased = 0x7ffffff8
)

// imager makes memory images with one engine. It is safe for concurrent use.
type imager struct {
	engine *wasmtime.Engine
	shape  engineShape
	// whole reads the engine itself. An image of an extension needs only its compiled code.
	whole  func(ctx context.Context) (*wholeEngine, error)
	digest string // of the engine's module
	// shared is the engine, after the modules that are instantiated before it.
	shared, first *wasmtime.Module
	cache         cacheFunc
	limits        imageLimits
	ticks         ticker
}

// wholeEngine is an engine, as obtained and as rewritten.
type wholeEngine struct {
	*splitModule
	// stopping is the engine that stops before it allocates. Images are made with it.
	stopping []byte
	digest   string // of stopping
}

func newWholeEngine(wasm []byte) (*wholeEngine, error) {
	wasm, traces, err := dropTracing(wasm)
	if err != nil {
		return nil, fmt.Errorf("drop the engine's tracing: %w", err)
	}
	if traces != foundTraces {
		return nil, fmt.Errorf("drop the engine's tracing: %d checks instead of %d", traces, foundTraces)
	}
	wasm, stores, err := keepCounts(wasm)
	if err != nil {
		return nil, fmt.Errorf("rewrite the engine's counts: %w", err)
	}
	if stores != foundStores {
		return nil, fmt.Errorf("rewrite the engine's counts: %+v instead of %+v", stores, foundStores)
	}
	if wasm, err = mend(wasm); err != nil {
		return nil, fmt.Errorf("mend the engine: %w", err)
	}
	return splitWhole(wasm)
}

// splitWhole makes the rest of an engine.
func splitWhole(wasm []byte) (*wholeEngine, error) {
	split, err := splitEngine(wasm)
	if err != nil {
		return nil, fmt.Errorf("split engine: %w", err)
	}
	stopping, err := stopBeforeAllocations(split.module)
	if err != nil {
		return nil, fmt.Errorf("rewrite engine: %w", err)
	}
	return &wholeEngine{split, stopping, sha256hex.Of(stopping)}, nil
}

// newImager starts from the known facts about an engine. It calls whole only for what the cache lacks.
func newImager(ctx context.Context, shape engineShape, digest string, whole func(context.Context) (*wholeEngine, error), cache cacheFunc, limits imageLimits) (*imager, error) {
	if limits.memory == 0 {
		limits.memory = 64 << 20
	}
	if limits.cpu == 0 {
		limits.cpu = 5 * time.Second
	}
	config := wasmtime.NewConfig()
	config.SetEpochInterruption(true)
	config.SetMaxWasmStack(maxWasmStack)
	m := &imager{engine: wasmtime.NewEngineWithConfig(config), shape: shape, digest: digest, whole: whole, cache: cache, limits: limits}
	m.ticks.engine = m.engine
	var err error
	if m.shared, err = m.compileShared(ctx); err != nil {
		return nil, fmt.Errorf("compile engine: %w", err)
	}
	if m.first, err = m.compileText(ctx, imageText(shape, unsetText)); err != nil {
		return nil, fmt.Errorf("compile what the engine imports: %w", err)
	}
	return m, nil
}

// imageEngine and imageModule are the kinds of compiled code in a cache: of the engine, and of small modules around it.
const (
	imageEngine = "image-engine"
	imageModule = "image-module"
)

// compileShared compiles the engine, which takes most of a second, or loads it from the cache.
func (m *imager) compileShared(ctx context.Context) (*wasmtime.Module, error) {
	return m.compile(ctx, imageEngine, m.digest, func() ([]byte, error) {
		whole, err := m.whole(ctx)
		if err != nil {
			return nil, err
		}
		return whole.stopping, nil
	})
}

// compile compiles a module whose digest is known, or loads it from the cache.
func (m *imager) compile(ctx context.Context, kind, key string, wasm func() ([]byte, error)) (*wasmtime.Module, error) {
	fresh := func() (*wasmtime.Module, error) {
		code, err := wasm()
		if err != nil {
			return nil, err
		}
		return wasmtime.NewModule(m.engine, code)
	}
	native, err := m.cache(ctx, kind, key, func() ([]byte, error) {
		module, err := fresh()
		if err != nil {
			return nil, err
		}
		defer module.Close()
		return module.Serialize()
	})
	if err != nil {
		return nil, err
	}
	if module, err := wasmtime.NewModuleDeserialize(m.engine, native); err == nil {
		return module, nil
	}
	// Made by another version of wasmtime, or on another machine.
	return fresh()
}

func (m *imager) compileText(ctx context.Context, text string) (*wasmtime.Module, error) {
	return m.compile(ctx, imageModule, sha256hex.Of([]byte(text)), func() ([]byte, error) { return wasmtime.Wat2Wasm(text) })
}

// baseImage is the image that extensions start from.
type baseImage struct {
	image
	// define, register, finish and frames are functions of the prelude, as JSValues. shared is the object that parts get.
	define, register, finish, frames, shared int64
	arenas                                   arenas
	// digest is that of memory and baseVersion, which every build needs.
	digest string
	// bindings are the bindings of a world without imports and exports.
	bindings *wasmtime.Module
}

// baseVersion changes with what makeBase and freeze do, apart from their input.
const baseVersion = "11"

// baseKey names the base image that makeBase makes.
func (m *imager) baseKey(prelude string, l layout) (string, error) {
	recipe, err := json.Marshal([]any{baseVersion, m.digest, imageCore, unsetText, bindingsCore, prelude, l})
	if err != nil {
		return "", fmt.Errorf("make base image: %w", err)
	}
	return sha256hex.Of(recipe), nil
}

// base returns the base image that makeBase makes, from the cache if it is there.
func (m *imager) base(ctx context.Context, key string, prelude func() (string, error), l layout) (*baseImage, error) {
	encoded, err := m.cache(ctx, "base-image", key, func() ([]byte, error) {
		text, err := prelude()
		if err != nil {
			return nil, err
		}
		b, err := m.makeBase(ctx, text, l)
		if err != nil {
			return nil, err
		}
		return b.encode()
	})
	if err != nil {
		return nil, fmt.Errorf("make base image: %w", err)
	}
	b, err := decodeBase(encoded)
	if err != nil {
		return nil, fmt.Errorf("read base image: %w", err)
	}
	b.digest = sha256hex.Of([]byte(baseVersion + sha256hex.Of(b.memory)))
	b.bindings, err = m.compileBindings(ctx, b.roots)
	return b, err
}

func (m *imager) compileBindings(ctx context.Context, at roots) (*wasmtime.Module, error) {
	empty, err := newLinkage(&abi.World{})
	if err != nil {
		return nil, err
	}
	return m.compileText(ctx, bindingsText(empty, at, m.shape, false))
}

// encode and decodeBase are the form in which a base image is cached: its addresses as JSON, a zero byte, its memory.
func (b *baseImage) encode() ([]byte, error) {
	header, err := json.Marshal(baseHeader{b.roots, b.define, b.register, b.finish, b.frames, b.shared, b.arenas})
	if err != nil {
		return nil, err
	}
	return slices.Concat(header, []byte{0}, b.memory), nil
}

func decodeBase(encoded []byte) (*baseImage, error) {
	header, memory, _ := bytes.Cut(encoded, []byte{0})
	var h baseHeader
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, err
	}
	return &baseImage{
		image: image{h.Roots, memory}, define: h.Define, register: h.Register, finish: h.Finish, frames: h.Frames, shared: h.Shared, arenas: h.Arenas,
	}, nil
}

type baseHeader struct {
	Roots                                    roots
	Define, Register, Finish, Frames, Shared int64
	Arenas                                   arenas
}

func (m *imager) makeBase(ctx context.Context, prelude string, l layout) (*baseImage, error) {
	code, err := m.compilePrelude(ctx, prelude)
	if err != nil {
		return nil, err
	}
	g, err := m.freshGuest(ctx)
	if err != nil {
		return nil, err
	}
	defer g.close()
	b := &baseImage{}
	b.roots = g.initialise(l)
	b.roots.Block = g.malloc(blockSize)
	g.write(b.roots.Block, make([]byte, blockSize))
	if g.err != nil {
		return nil, g.err
	}
	bindings, err := m.compileBindings(ctx, b.roots)
	if err != nil {
		return nil, err
	}
	defer bindings.Close()
	g.bind(bindings, b.roots)

	name := g.text("host")
	host := g.call("JS_NewCFunction2", g.context, int32(m.shape.Slot), name, int32(1), int32(0), int32(0))
	g.free(name, len("host"))
	// A null pointer would make a separate buffer, so the buffer begins 8 bytes before address 0.
	memory := g.call("JS_NewArrayBuffer", g.context, int32(-8), int32(aliased), int32(0), int32(0), int32(0), int32(0))
	exports := g.callJS(g.evalCode(code), host, memory, int64(b.roots.Block))
	function := func(name string) int64 { return g.property(exports, name) }
	b.define, b.register, b.finish, b.frames = function("define"), function("register"), function("finish"), function("frames")
	b.shared = g.property(exports, "shared")
	g.store64(b.roots.Block+blockEnter, function("enter"))
	g.store64(b.roots.Block+blockTurn, function("turn"))
	g.store64(b.roots.Block+blockNow, function("now"))
	g.store64(b.roots.Block+blockRejected, function("rejected"))
	g.store64(b.roots.Block+blockReplacer, function("replacer"))
	g.store64(b.roots.Block+blockRecord, g.property(exports, "record"))
	g.store64(b.roots.Block+blockArray, g.property(exports, "array"))
	g.call("qjs_set_promise_rejection_handler", int32(1))
	g.runJobs()
	g.call("JS_RunGC", g.runtime)
	g.laidOut()
	b.arenas = g.arenas
	b.memory = g.snapshot()
	return b, g.err
}

// compilePrelude compiles the prelude in a separate engine. So the base image holds neither the source, which the engine keeps for
// every function, nor what the compiler left behind.
func (m *imager) compilePrelude(ctx context.Context, prelude string) ([]byte, error) {
	g, err := m.freshGuest(ctx)
	if err != nil {
		return nil, err
	}
	defer g.close()
	g.initialise(layout{})
	code := g.compile(prelude, "prelude.js", evalScript, stripSource|stripDebug)
	return code, g.err
}

// extension makes the image of an extension, whose objects are immortal: base, after the parts of the prelude and then the code at the top level of
// bundle, a module without imports, have run and its default export is registered. descriptor tells the prelude of the extension's world. name is what stacks
// call the bundle, large is as in [Source]. The same arguments give the same image.
//
// If name is sdkName, extension registers nothing and the image stays open: code that is evaluated later imports the module
// by that name and registers its own. more are further modules to evaluate.
//
// Errors that the author can correct are an [*evaluationError] or a [*limitError].
func (m *imager) extension(ctx context.Context, base *baseImage, parts [][]byte, descriptor, bundle []byte, name string, large bool, more ...[]byte) (*image, report, error) {
	img, used, err := m.evaluated(ctx, base, parts, descriptor, bundle, name, large, more...)
	if err == nil {
		freeze(img.memory, img.roots, base.arenas)
	}
	return img, used, err
}

// slackText has the engine enlarge its tables of names and shapes if they are about to be full. An enlargement writes to most objects of an image.
// A call would make it, and each call again.
const slackText = `(() => { const all = []; for (let i = 0; i < 100; i++) { const o = {}; o["slack" + i] = i; all[i] = o; } })()`

// evaluated makes the image of an extension, whose objects are not immortal yet.
func (m *imager) evaluated(ctx context.Context, base *baseImage, parts [][]byte, descriptor, bundle []byte, name string, large bool, more ...[]byte) (*image, report, error) {
	g, err := m.newGuest(ctx, base.memory, m.limits.of(len(bundle), large))
	if err != nil {
		return nil, report{}, err
	}
	defer g.close()
	g.call("qjs_set_max_stack_size", int32(topStack))
	g.bind(base.bindings, base.roots)
	g.arenas, g.frames = base.arenas, base.frames
	for _, code := range parts {
		part := g.evalCode(code)
		g.release(g.callJS(part, base.shared))
		g.release(part)
	}
	g.call("qjs_set_interrupt_handler", int32(1))
	world := g.newString(string(descriptor))
	g.callJS(base.define, world)
	g.release(world)
	module := g.eval(string(bundle), name, evalModule)
	namespace := g.settled(module)
	for _, code := range more {
		packages := g.eval(string(code), packagesName, evalModule)
		g.settled(packages)
		g.release(packages)
	}
	var used int64
	if name != sdkName {
		g.callJS(base.register, g.property(namespace, "default"))
		g.runJobs()
		used = g.callJS(base.finish)
	}
	g.call("qjs_set_interrupt_handler", int32(0))
	g.call("qjs_set_max_stack_size", int32(guestStack))
	g.release(module)
	g.release(g.eval(slackText, "slack.js", evalScript))
	g.call("JS_RunGC", g.runtime)
	g.call("qjs_set_gc_threshold", int32(max(gcThreshold, 2*len(base.memory))))
	g.offerAll(true)
	g.fillHoles()
	memory := g.snapshot()
	if g.err != nil {
		return nil, report{}, g.err
	}
	return &image{base.roots, memory}, report{clock: used&1 != 0, random: used&2 != 0}, nil
}
