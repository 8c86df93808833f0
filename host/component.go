package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/image"
	"github.com/stilehost/stile/host/internal/sourcemap"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/turns"
)

// Component is loaded code. It is safe for concurrent use: every call has its own instance. Close it, or the host.
type Component struct {
	host      *Host
	code      *share[*wasmtime.Component]
	image     *share[*wasmtime.Module] // the content of its memory; nil if it is part of the code
	component *wasmtime.Component      // the value of code
	linker    *wasmtime.Linker
	imports   []Import
	digest    string
	size      int64 // bytes of the component
	sections  map[string][]byte

	describe, call export
	start, resume  export  // have no index if calls cannot be made in steps
	evaluate       export  // has no index if the component runs only its own code
	memory         *memory // nil if its instances cannot be taken away

	mu       sync.Mutex
	own      *definitionSet // what the component says about itself, once it was asked
	approved []approved

	users users
	freed sync.Once

	stack struct {
		sync.Once
		sources *sourcemap.Map // nil if there is none that can be read
	}
}

// export is an exported function with its type.
type export struct {
	index  *wasmtime.Export
	params []*abi.Type
	result *abi.Type
}

// Load compiles a component, or maps its compiled code from the cache, and links it. If this host does not know the full type of
// an import, Load refuses the component with a *LoadError that names the import. Loaded code therefore has no authority. It also
// refuses code that would take very long or much memory to compile; see [EstimateCompile].
//
// Load compiles several components at once: at most four that take less than 0.1 s by estimate, two that take up to a second, and one
// that takes longer. Further components wait in their group until ctx ends. Load does not keep wasm.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Component, error) {
	end, err := h.users.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	if len(wasm) > h.options.MaxComponent {
		return nil, &LoadError{Reason: fmt.Sprintf("%d bytes, more than %s", len(wasm), printable.Size(int64(h.options.MaxComponent)))}
	}
	sections, err := customSections(wasm)
	if err != nil {
		return nil, &LoadError{Reason: err.Error()}
	}
	c := &Component{host: h, digest: sha256hex.Of(wasm), size: int64(len(wasm)), sections: sections}
	if err := c.compile(ctx, bytes.Clone(wasm)); err != nil {
		c.free()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, refusal(err)
	}
	if err := c.connect(); err != nil { //nolint:contextcheck // operations have the context of their call
		c.free()
		return nil, err
	}
	h.mu.Lock()
	h.loaded[c] = struct{}{}
	h.mu.Unlock()
	return c, nil
}

// refusal is the error of Load for a component that does not compile. A missing compiler, or memory that the system refuses to the
// engine, is not the component's fault.
func refusal(err error) error {
	outside, isOutside := errors.AsType[*CompilerError](err)
	system, isSystem := errors.AsType[*wasmtime.SystemError](err)
	switch {
	case isOutside && outside.Limit == "", errors.Is(err, ErrClosed):
		return err
	case isSystem:
		return refusedBySystem(system)
	}
	refused := &LoadError{Reason: printable.Short(err.Error(), 4*kib)}
	if cost, ok := errors.AsType[*CompileCostError](err); ok {
		refused.Cause = cost
	} else if isOutside {
		refused.Cause = outside
	}
	return refused
}

// lanes limit how many short, longer and long components compile at once. A component never waits for one in another lane.
// Users of [turns.For] take turns in each.
type lanes struct{ short, longer, long *turns.Places }

func newLanes() lanes { return lanes{turns.New(4), turns.New(2), turns.New(1)} }

func (l lanes) lane(takes CompileCost) *turns.Places {
	switch {
	case takes.Time < shortCompile:
		return l.short
	case takes.Time <= longCompile:
		return l.longer
	default:
		return l.long
	}
}

// within calls do in a lane.
func within(ctx context.Context, lane *turns.Places, do func() error) error {
	if err := lane.Take(ctx); err != nil {
		return err
	}
	defer lane.Give()
	return do()
}

// compile returns when ctx ends at the latest. Compilation in this process continues and is kept for the next time. Close waits for
// it. The content of the component's memory is compiled by itself where possible, so that all components that differ only there share
// the rest.
func (c *Component) compile(ctx context.Context, wasm []byte) (err error) {
	h, key, code := c.host, c.digest, wasm
	start := h.users.count.Go // Load is counted too, so the host is open
	if rest, module, ok := image.Split(wasm); ok {
		key, code = sha256hex.Of(rest), rest
		name := c.digest + "-" + key // both say which module it is
		c.image, err = h.images.use(ctx, name, start, func(ctx context.Context) (*wasmtime.Module, error) {
			return compiled(ctx, h, "image", name, h.engine.MapModule, func() (*wasmtime.Module, error) { return h.compileImage(ctx, wasm, module) })
		})
		if err != nil {
			return err
		}
	}
	c.code, err = h.codes.use(ctx, key, start, func(ctx context.Context) (*wasmtime.Component, error) {
		return compiled(ctx, h, "component", key, h.engine.Map, func() (*wasmtime.Component, error) { return h.compile(ctx, code) })
	})
	if err == nil {
		c.component = c.code.value
	}
	return err
}

// compileImage compiles the module of a component's memory. The bounds of compilation hold for the whole component.
func (h *Host) compileImage(ctx context.Context, wasm, module []byte) (m *wasmtime.Module, err error) {
	takes, err := checkCode(wasm)
	if err != nil {
		return nil, err
	}
	err = within(ctx, h.compiling.lane(takes), func() error {
		m, err = h.engine.CompileModule(module)
		return err
	})
	return m, err
}

// compile compiles a component, where its estimate says.
func (h *Host) compile(ctx context.Context, wasm []byte) (component *wasmtime.Component, err error) {
	takes, err := checkCode(wasm)
	if err != nil {
		return nil, err
	}
	compile := func() (err error) {
		if takes.Lane() == LaneHelper && len(h.options.Compiler) > 0 {
			component, err = h.compileOutside(ctx, wasm, takes)
		} else {
			component, err = h.engine.Compile(wasm)
		}
		return err
	}
	lane := h.compiling.lane(takes)
	err = within(ctx, lane, func() (err error) {
		if wasm, takes, err = guardCode(wasm); err != nil || h.compiling.lane(takes) != lane {
			return err
		}
		return compile()
	})
	if err == nil && component == nil { // the estimate has grown
		err = within(ctx, h.compiling.lane(takes), compile)
	}
	return component, err
}

// connect checks imports and exports.
func (c *Component) connect() error {
	types, err := c.component.Types()
	if err != nil {
		return &LoadError{Reason: printable.Short(err.Error(), 4*kib)}
	}
	if c.linker, c.imports, err = c.host.link(types, c.image); err != nil {
		return err
	}
	exported := map[string]*wasmtime.Item{}
	for i, x := range types.Exports {
		if x.Kind == wasmtime.ItemInstance {
			exported[x.Name] = &types.Exports[i]
		}
	}
	tools := exported[abi.ExtensionTools]
	if tools == nil {
		return &LoadError{Name: abi.ExtensionTools, Reason: "is not exported, so it cannot be called"}
	}
	if c.describe, err = c.export(tools, "describe"); err != nil {
		return err
	}
	if c.call, err = c.export(tools, "call"); err != nil {
		return err
	}
	if stepwise := exported[abi.ExtensionStepwise]; stepwise != nil {
		if c.start, err = c.export(stepwise, "start"); err != nil {
			return err
		}
		if c.resume, err = c.export(stepwise, "resume"); err != nil {
			return err
		}
	}
	if m := exported[abi.ExtensionMemory]; m != nil && c.Stepwise() {
		if c.memory, err = c.exportMemory(m); err != nil {
			return err
		}
	}
	if evaluator := exported[abi.ExtensionEvaluator]; evaluator != nil {
		c.evaluate, err = c.export(evaluator, "evaluate")
	}
	return err
}

func (c *Component) export(instance *wasmtime.Item, name string) (export, error) {
	whole := instance.Name + "#" + name
	want := funcNamed(c.host.known.Interface(instance.Name), name)
	for _, item := range instance.Items {
		if item.Name != name || item.Kind != wasmtime.ItemFunc {
			continue
		}
		if d := differ(want, item.Func); d != "" {
			return export{}, &LoadError{Name: whole, Reason: "its type is not the contract's: " + d}
		}
		if index := c.component.Export(instance.Name, name); index != nil {
			return export{index, paramTypes(want), want.Result}, nil
		}
	}
	return export{}, &LoadError{Name: whole, Reason: "is not exported"}
}

// Digest is the SHA-256 of the component, in hex.
func (c *Component) Digest() string { return c.digest }

// Imports lists what the component imports.
func (c *Component) Imports() []Import { return c.imports }

// Modules lists the names of the core modules that the component imports.
func (c *Component) Modules() (names []string) {
	for _, i := range c.imports {
		if i.Kind == "module" {
			names = append(names, i.Name)
		}
	}
	return names
}

// Section returns a custom section of the component by name, such as "stile:meta". It is nil if there is none.
func (c *Component) Section(name string) []byte { return c.sections[name] }

// Close waits for the component's calls and frees it. It is idempotent.
func (c *Component) Close() error {
	// It stays listed until it is free, so that the host does not close earlier.
	c.free()
	c.host.mu.Lock()
	delete(c.host.loaded, c)
	c.host.mu.Unlock()
	return nil
}

// free returns when the component is free, even if another goroutine frees it.
func (c *Component) free() {
	c.users.close()
	c.freed.Do(func() {
		c.users.count.Wait()
		for _, x := range append(c.memory.exports(), c.describe, c.call, c.start, c.resume, c.evaluate) {
			if x.index != nil {
				x.index.Close()
			}
		}
		c.memory.free(c.host)
		if c.linker != nil {
			c.linker.Close()
		}
		if c.code != nil {
			c.code.release()
		}
		if c.image != nil {
			c.image.release()
		}
	})
}
