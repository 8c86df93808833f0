package toolchain

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/host"
)

// guest is an instance of the engine with its own memory. Its methods do nothing once err is set.
type guest struct {
	imager  *imager
	ctx     context.Context
	store   *wasmtime.Store
	memory  *wasmtime.Memory
	linker  *wasmtime.Linker
	engine  *wasmtime.Instance
	context int32 // JSContext
	runtime int32
	frames  int64 // a function of the prelude, which gives the frames of an error; 0 before it has run
	limits  imageLimits
	cpu     time.Duration // see limit
	// onAllocate, if not nil, is called before the engine allocates. arenas are the arenas that layOut made.
	onAllocate func(runtime, size uint32)
	arenas     arenas
	err        error
}

// newGuest starts an engine on a copy of memory. The caller closes it.
func (m *imager) newGuest(ctx context.Context, memory []byte, limits imageLimits) (*guest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g := &guest{imager: m, ctx: ctx, limits: limits, store: wasmtime.NewStore(m.engine), linker: wasmtime.NewLinker(m.engine)}
	m.ticks.start()
	g.limit(limits.cpu)
	if err := g.instantiate(memory); err != nil {
		g.close()
		return nil, fmt.Errorf("instantiate engine: %w", err)
	}
	return g, nil
}

// freshGuest starts an engine that nothing has run in. The caller closes it.
func (m *imager) freshGuest(ctx context.Context) (*guest, error) {
	whole, err := m.whole(ctx)
	if err != nil {
		return nil, err
	}
	return m.newGuest(ctx, whole.memory, m.limits)
}

// limit bounds the time that is left to the guest.
func (g *guest) limit(cpu time.Duration) {
	g.cpu = cpu
	g.store.SetEpochDeadline(uint64(cpu/tick) + 1)
}

func (g *guest) instantiate(memory []byte) error {
	pages := len(memory) / wasmPage
	limit := max(int(g.limits.memory/wasmPage), pages)
	typ, err := wasmtime.NewMemoryType(uint32(pages), true, uint32(limit), false)
	if err != nil {
		return err
	}
	if g.memory, err = wasmtime.NewMemory(g.store, typ); err != nil {
		return err
	}
	copy(g.memory.UnsafeData(g.store), memory)
	if err := g.linker.Define(g.store, "env", "memory", g.memory); err != nil {
		return err
	}
	first, err := g.linker.Instantiate(g.store, g.imager.first)
	if err != nil {
		return err
	}
	g.linker.AllowShadowing(true)
	for _, name := range []string{"env", "wasi_snapshot_preview1", "image"} {
		if err := g.linker.DefineInstance(g.store, name, first); err != nil {
			return err
		}
	}
	// The engine calls this now and then while a script runs, and ends the script if the answer is not 0. While laying is
	// set, it also calls this before it allocates.
	err = g.linker.FuncWrap("env", "host_interrupt", func() int32 {
		if g.onAllocate != nil {
			g.onAllocate(g.load32(laying+4), g.load32(laying+8))
			return 0
		}
		if g.ctx.Err() != nil {
			return 1
		}
		return 0
	})
	if err != nil {
		return err
	}
	g.engine, err = g.linker.Instantiate(g.store, g.imager.shared)
	return err
}

// initialise starts the engine in a memory that it has not run in yet. Its blocks are laid out until endLayout.
func (g *guest) initialise(l layout) roots {
	g.call("_initialize")
	g.takeSpare()
	g.layOut(l)
	g.call("qjs_init")
	g.call("qjs_set_max_stack_size", int32(guestStack))
	g.context, g.runtime = int32(g.call("qjs_get_context_ptr")), int32(g.call("qjs_get_runtime_ptr"))
	return roots{Context: uint32(g.context), Runtime: uint32(g.runtime)}
}

// takeSpare gives the spare pages to the engine's allocator in one piece, because the allocator assumes that consecutive requests
// are adjacent. The image keeps this state.
func (g *guest) takeSpare() {
	shape := g.imager.shape
	const first = 2 // where TestLayout marks what is written, below
	end := shape.SpareEnd
	if end < first+3 || g.err != nil {
		return
	}
	g.store32(spareWord, first)
	const overhead = 128 // of the allocator, at most: it asks for whole pages
	taken := g.malloc(int(end-first)*wasmPage - overhead)
	g.store32(spareWord, 0)
	if g.err == nil && taken < end*wasmPage {
		g.call("wasm_free", int32(taken))
	}
}

// bind instantiates the bindings and connects them.
func (g *guest) bind(bindings *wasmtime.Module, at roots) {
	if g.err != nil {
		return
	}
	g.context, g.runtime = int32(at.Context), int32(at.Runtime)
	if g.err = g.linker.DefineInstance(g.store, "engine", g.engine); g.err == nil {
		_, g.err = g.linker.Instantiate(g.store, bindings)
	}
}

func (g *guest) close() {
	g.imager.ticks.stop()
	g.linker.Close()
	g.store.Close()
}

// call calls a function of the engine and returns its result, or 0.
func (g *guest) call(name string, args ...any) int64 {
	if g.err != nil {
		return 0
	}
	f := g.engine.GetFunc(g.store, name)
	if f == nil {
		g.err = fmt.Errorf("the engine has no function %s", name)
		return 0
	}
	result, err := f.Call(g.store, args...)
	if err != nil {
		g.err = g.explain(err)
		return 0
	}
	switch v := result.(type) {
	case int32:
		return int64(v)
	case int64:
		return v
	default:
		return 0
	}
}

// explain returns the meaning of a trap.
func (g *guest) explain(err error) error {
	if ctxErr := g.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	var trap *wasmtime.Trap
	if !errors.As(err, &trap) || trap.Code() == nil {
		return err
	}
	switch *trap.Code() {
	case wasmtime.Interrupt:
		return &limitError{"cpu", g.cpu.String()}
	case wasmtime.StackOverflow:
		return &limitError{"stack", fmt.Sprintf("%d KiB", topStack>>10)}
	case wasmtime.UnreachableCodeReached:
		if frames := trap.Frames(); len(frames) > 0 {
			switch name := frames[0].FuncName(); {
			case name == nil:
			case *name == host.MemoryTrap:
				return &limitError{"memory", fmt.Sprintf("%d MiB", g.limits.memory>>20)}
			case *name == host.StackTrap:
				return &limitError{"stack", fmt.Sprintf("%d KiB", topStack>>10)}
			}
		}
	default:
	}
	return err
}

// snapshot copies the memory. The stack is empty then, and its remains are cleared.
func (g *guest) snapshot() []byte {
	if g.err != nil {
		return nil
	}
	memory := bytes.Clone(g.memory.UnsafeData(g.store))
	if top := g.imager.shape.StackTop; top != 0 {
		clear(memory[top-stackPages*wasmPage : top])
	}
	return memory
}

func (g *guest) malloc(n int) uint32 {
	p := uint32(g.call("wasm_malloc", int32(n)))
	if p == 0 && g.err == nil {
		g.err = &limitError{"memory", fmt.Sprintf("%d MiB", g.limits.memory>>20)}
	}
	return p
}

// fillHoles takes what is free between blocks out of use, unless it is much. So what a call allocates outside of arenas lies together, above
// all else.
func (g *guest) fillHoles() {
	const (
		most  = 64 << 10
		least = 8
	)
	top := g.malloc(most)
	g.call("wasm_free", int32(top))
	var filled []uint32
	unused := uint32(0)
	for size := uint32(most); size >= least; size = size * 7 / 8 &^ 7 {
		p := g.malloc(int(size))
		for ; p < top && unused <= maxUnused && g.err == nil; p = g.malloc(int(size)) {
			filled = append(filled, p)
			unused += size
		}
		g.call("wasm_free", int32(p))
	}
	for _, p := range filled {
		if unused > maxUnused {
			g.call("wasm_free", int32(p))
		}
	}
}

// free frees n bytes and clears them, so that nothing of them stays in an image.
func (g *guest) free(p int32, n int) {
	g.write(uint32(p), make([]byte, n))
	g.call("wasm_free", p)
}

func (g *guest) write(p uint32, content []byte) {
	if g.err == nil {
		copy(g.memory.UnsafeData(g.store)[p:], content)
	}
}

func (g *guest) store64(p uint32, v int64) {
	g.write(p, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

func (g *guest) load64(p uint32) int64 {
	if g.err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(g.memory.UnsafeData(g.store)[p:]))
}

// text copies s into new memory, with a zero byte after it.
func (g *guest) text(s string) int32 {
	if len(s) >= math.MaxInt32 {
		g.err = &limitError{"memory", fmt.Sprintf("%d MiB", g.limits.memory>>20)}
		return 0
	}
	p := g.malloc(len(s) + 1)
	g.write(p, append([]byte(s), 0))
	return int32(p)
}

// The ways to evaluate a source.
const (
	evalScript = 0
	evalModule = 1
)

// What compiled code leaves out.
const (
	stripSource = 1 << 4
	stripDebug  = 1 << 5
)

// compile compiles a source to the engine's own code.
func (g *guest) compile(source, name string, mode, strip int32) []byte {
	code, file, length := g.text(source), g.text(name), g.malloc(4)
	p := uint32(g.call("qjs_compile", code, int32(len(source)), file, mode, strip, int32(length)))
	if p == 0 && g.err == nil {
		g.err = g.thrown(g.call("JS_GetException", g.context))
	}
	if g.err != nil {
		return nil
	}
	memory := g.memory.UnsafeData(g.store)
	return bytes.Clone(memory[p : p+binary.LittleEndian.Uint32(memory[length:])])
}

// evalCode evaluates compiled code like eval.
func (g *guest) evalCode(code []byte) int64 {
	p := g.text(string(code))
	box := uint32(g.call("qjs_eval_bytecode", p, int32(len(code))))
	g.free(p, len(code))
	return g.check(g.load64(box))
}

// eval evaluates a source and returns the value of a script, or a promise of the namespace of a module.
func (g *guest) eval(source, name string, mode int32) int64 {
	code, file := g.text(source), g.text(name)
	box := uint32(g.call("qjs_eval", code, int32(len(source)), file, mode))
	g.free(code, len(source))
	g.free(file, len(name))
	return g.check(g.load64(box))
}

// callJS calls a JavaScript function, without `this`.
func (g *guest) callJS(f int64, args ...int64) int64 {
	array := g.malloc(8*len(args) + 8)
	for i, arg := range args {
		g.store64(array+8*uint32(i), arg)
	}
	result := g.call("JS_Call", g.context, f, int64(jsUndefined), int32(len(args)), int32(array))
	g.free(int32(array), 8*len(args))
	return g.check(result)
}

func (g *guest) property(object int64, name string) int64 {
	p := g.text(name)
	value := g.call("JS_GetPropertyStr", g.context, object, p)
	g.free(p, len(name))
	return g.check(value)
}

func (g *guest) newString(s string) int64 {
	p := g.text(s)
	value := g.call("JS_NewStringLen", g.context, p, int32(len(s)))
	g.free(p, len(s))
	return g.check(value)
}

func (g *guest) release(value int64) { g.call("JS_FreeValue", g.context, value) }

// runJobs runs promise jobs until none is left.
func (g *guest) runJobs() {
	context := g.malloc(4)
	for g.call("JS_IsJobPending", g.runtime) != 0 && g.err == nil {
		if g.err = g.ctx.Err(); g.err == nil && g.call("JS_ExecutePendingJob", g.runtime, int32(context)) < 0 {
			g.release(g.call("JS_GetException", g.context))
		}
	}
	g.free(int32(context), 4)
}

// settled runs jobs until a promise is settled, and returns its value.
func (g *guest) settled(promise int64) int64 {
	g.runJobs()
	const pending, rejected = 0, 2
	switch state := g.call("JS_PromiseState", g.context, promise); {
	case g.err != nil:
		return 0
	case state == pending:
		g.err = &evaluationError{Message: "a top-level await waits for a promise that nothing can settle"}
		return 0
	case state == rejected:
		g.err = g.thrown(g.call("JS_PromiseResult", g.context, promise))
		return 0
	default:
		return g.call("JS_PromiseResult", g.context, promise)
	}
}

// check turns the mark of an exception into an error.
func (g *guest) check(value int64) int64 {
	if g.err == nil && value>>32 == jsException>>32 {
		g.err = g.thrown(g.call("JS_GetException", g.context))
	}
	return value
}

// thrown converts a script's exception into an error.
func (g *guest) thrown(value int64) error {
	if g.err != nil {
		return g.err
	}
	if err := g.ctx.Err(); err != nil {
		return err
	}
	e := &evaluationError{}
	if g.call("JS_IsError", value) == 0 {
		e.Message = g.string(value)
	} else {
		field := func(name string) string { return g.string(g.call("JS_GetPropertyStr", g.context, value, g.text(name))) }
		e.Name, e.Message = field("name"), field("message")
		if g.frames != 0 {
			e.Stack = g.string(g.callJS(g.frames, value))
		} else {
			e.Stack = field("stack")
		}
	}
	if g.err != nil {
		return g.err
	}
	return e
}

// maxErrorText bounds each text of an error, in bytes.
const maxErrorText = 16 << 10

// string converts a value to a string. It returns an empty string if that fails.
func (g *guest) string(value int64) string {
	length := g.malloc(4)
	p := uint32(g.call("JS_ToCStringLen2", g.context, int32(length), value, int32(0)))
	if p == 0 || g.err != nil {
		return ""
	}
	n := min(uint32(g.load64(length)), maxErrorText)
	return strings.ToValidUTF8(string(g.memory.UnsafeData(g.store)[p:p+n]), "\ufffd")
}

// tick is how often the epoch of an engine advances while a guest runs.
const tick = 10 * time.Millisecond

// ticker advances the epoch of an engine while anything runs in it.
type ticker struct {
	engine *wasmtime.Engine
	mu     sync.Mutex
	users  int
	done   chan struct{}
}

func (t *ticker) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users > 1 {
		return
	}
	done := make(chan struct{})
	t.done = done
	go func() {
		every := time.NewTicker(tick)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				t.engine.IncrementEpoch()
			case <-done:
				return
			}
		}
	}()
}

func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		close(t.done)
	}
}
