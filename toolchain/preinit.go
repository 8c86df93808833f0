package toolchain

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Preinitialized is a component, and how its instances begin.
type Preinitialized struct {
	Component []byte
	// Begins says how instances begin, as in the component's section [StartSection]. It is empty if the module has no initialization.
	Begins string
	// Initialized is whether they begin with the memory after the initialization. Otherwise each runs it.
	Initialized bool
	// Output is what the initialization wrote to stdout and stderr when it ran here, at most the last 16 KiB.
	Output string
}

// StartSection is the custom section in which a component says how its instances begin: once, or why not.
const (
	StartSection = "stile:start"
	once         = "initialized when the component was made"
	each         = "every instance runs the initialization: "
)

// Preinitialize is [Componentize] for a module whose initialization it runs once: the module's start function and "_initialize", which instances
// otherwise run first. The component holds the memory and the global variables as they are afterwards. The initialization has no capability, a clock
// that stands almost still, and random numbers of a fixed seed. The same module gives the same bytes.
//
// The random generators of Go's runtime get new seeds in each instance. A module that keeps other random numbers, or anything else that may not
// be the same in each instance, is left as it is: its instances run the initialization, and the result says why.
//
// An initialization that traps, exits, or takes more than 5 s or 64 MiB is a *CoreError. It runs in this process, after the cost of compiling
// the module was estimated. A module that [host.EstimateCompile] refuses is left as it is. When ctx ends, Preinitialize returns, and a compilation
// ends later.
func Preinitialize(ctx context.Context, world *abi.World, core []byte) (*Preinitialized, error) {
	return preinitialize(ctx, world, core, initialLimits{5 * time.Second, 64 << 20})
}

func preinitialize(ctx context.Context, world *abi.World, core []byte, limits initialLimits) (*Preinitialized, error) {
	plain, err := Componentize(world, core)
	if err != nil {
		return nil, err
	}
	m, err := readCore(core)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if !m.initializes() {
		return &Preinitialized{Component: plain}, nil
	}
	if m.isExtism() {
		return begins(plain, "an Extism plug-in may use its host meanwhile"), nil
	}
	if _, err := host.EstimateCompile(plain); err != nil {
		return begins(plain, err.Error()), nil
	}
	globals, reason := m.movable()
	if reason != "" {
		return begins(plain, reason), nil
	}
	i, err := newInitialization(ctx, world, m, globals, limits)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	after, err := i.run(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	var seeds []generator
	if reason = after.unlike(); reason == "" && after.draws > 0 {
		other, err := i.run(ctx, 2)
		if err != nil {
			return nil, fmt.Errorf("initialize: %w", err)
		}
		seeds, reason = seeded(after, other)
	}
	if reason != "" {
		return begins(plain, reason), nil
	}
	component, err := m.after(after).componentize(world, start{generators: seeds, ticks: after.ticks})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	p := begins(component, "")
	p.Initialized, p.Output = true, after.text()
	return p, nil
}

// begins adds the section. The reason is empty if the initialization ran.
func begins(component []byte, reason string) *Preinitialized {
	p := &Preinitialized{Begins: once}
	if reason != "" {
		p.Begins = each + printable.Short(printable.Line(reason), 300)
	}
	section := wasmbin.CustomSection(StartSection, []byte(p.Begins))
	p.Component = append(component, wasmbin.WriteSections("", []wasmbin.Section{section})...)
	return p
}

// initialLimits are those of an initialization.
type initialLimits struct {
	time   time.Duration
	memory int64 // bytes
}

const (
	initialOutput  = 16 << 10
	initialStack   = 1 << 20
	initialTable   = 1 << 20
	initialGlobals = 10_000
	// initialImage is how far the content of a memory may reach from its first byte to its last. The engine maps a larger one no more:
	// every instance would copy it.
	initialImage = 16 << 20
)

// start is how instances begin.
type start struct {
	generators []generator // to seed
	ticks      uint64      // the last time that the module saw
}

// mutableGlobal is a global that code can change.
type mutableGlobal struct {
	index int
	typ   byte
}

// initializes reports whether instances run anything first.
func (m *coreModule) initializes() bool {
	_, has := m.exports[coreStart]
	for _, s := range m.sections {
		has = has || s.ID == wasmbin.SectionStart
	}
	return has
}

// movable lists the globals that code can change. The reason says what of the module's state a new module could not have from its begin.
func (m *coreModule) movable() (globals []mutableGlobal, reason string) {
	for _, s := range m.sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionGlobal:
			globals, reason = readGlobals(r)
		case wasmbin.SectionCode:
			reason = keepsState(r)
		}
		if r.Err != nil {
			return nil, "its code cannot be read: " + printable.Short(printable.Line(r.Err.Error()), 200)
		}
		if reason != "" {
			return nil, reason
		}
	}
	return globals, ""
}

func readGlobals(r *wasmbin.Reader) (globals []mutableGlobal, reason string) {
	for i := range r.Count() {
		typ, mutable := globalType(r)
		skipConstant(r)
		if !mutable {
			continue
		}
		switch typ {
		case 0x7c, 0x7d, 0x7e, 0x7f:
			globals = append(globals, mutableGlobal{i, typ})
		default:
			return nil, "it has a global variable that is not a number"
		}
		if len(globals) > initialGlobals {
			return nil, fmt.Sprintf("it has more than %d global variables", initialGlobals)
		}
	}
	return globals, ""
}

func globalType(r *wasmbin.Reader) (typ byte, mutable bool) {
	typ = r.Peek()
	r.ValueType()
	return typ, r.Byte() == 1
}

// skipConstant skips an expression.
func skipConstant(r *wasmbin.Reader) {
	for r.Err == nil {
		op := r.Byte()
		r.Operands(op)
		if op == wasmbin.OpEnd {
			return
		}
	}
}

// keepsState looks for instructions that change tables, or whether segments can be used.
func keepsState(r *wasmbin.Reader) (reason string) {
	for range r.Count() {
		body := r.Sub()
		skipLocals(&body)
		for body.Len() > 0 && reason == "" {
			op := body.Byte()
			switch operands := body; op {
			case 0x26:
				reason = "its code changes a table"
			case wasmbin.OpBulk:
				switch operands.U32() {
				case 8, 9:
					reason = "its code copies passive data"
				case 12, 13, 14, 15, 17:
					reason = "its code changes a table"
				}
			}
			body.Operands(op)
		}
		if body.Err != nil {
			r.Err = body.Err
			return ""
		}
	}
	return reason
}

// initialization runs that of a module, as a component around it would. Its engine is freed with it, when nothing advances its epoch any more.
type initialization struct {
	engine  *wasmtime.Engine
	module  *coreModule
	globals []mutableGlobal
	limits  initialLimits
	names   string // under which the globals are exported, before their numbers
	user    *wasmtime.Module
	adapter *wasmtime.Module // nil if the module imports nothing of preview 1
	offered []string         // by the adapter
}

func newInitialization(ctx context.Context, world *abi.World, m *coreModule, globals []mutableGlobal, limits initialLimits) (*initialization, error) {
	_, a, err := m.link(world, start{})
	if err != nil {
		return nil, err
	}
	config := wasmtime.NewConfig()
	config.SetEpochInterruption(true)
	config.SetMaxWasmStack(initialStack)
	config.SetWasmRelaxedSIMDDeterministic(true)
	i := &initialization{engine: wasmtime.NewEngineWithConfig(config), module: m, globals: globals, limits: limits}
	taken := map[string]bool{}
	for name := range m.exports {
		begin, _, _ := strings.Cut(name, ".")
		taken[begin] = true
	}
	n := 0
	for taken[fmt.Sprint("globals", n)] {
		n++
	}
	i.names = fmt.Sprintf("globals%d.", n)
	if a != nil {
		i.offered = a.exports
	}
	compiled := make(chan error, 1)
	go func() { compiled <- i.compile(a) }()
	select {
	case err = <-compiled:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, malformed(err)
	}
	return i, nil
}

func (i *initialization) compile(a *adapter) (err error) {
	if i.user, err = wasmtime.NewModule(i.engine, i.module.exporting(i.globals, i.names)); err != nil || a == nil {
		return err
	}
	wasm, err := wasmtime.Wat2Wasm(a.text())
	if err == nil {
		i.adapter, err = wasmtime.NewModule(i.engine, wasm)
	}
	return err
}

// exporting is the module with exports of its mutable globals. Before each instruction that can change all of a memory, it calls an empty
// function, where the engine can end it.
func (m *coreModule) exporting(globals []mutableGlobal, names string) []byte {
	next := *m
	next.sections = slices.Clone(m.sections)
	types, funcs := uint32(0), uint32(len(m.funcs))
	for k, s := range next.sections {
		r := s.Reader()
		var list wasmbin.Writer
		switch s.ID {
		case wasmbin.SectionType:
			list, types = added(r, []byte{0x60, 0, 0})
		case wasmbin.SectionFunction:
			list, _ = added(r, binary.AppendUvarint(nil, uint64(types)))
		case wasmbin.SectionCode:
			list = ticking(r, funcs)
		case wasmbin.SectionExport:
			items := make([][]byte, len(globals))
			for i, g := range globals {
				var item wasmbin.Writer
				item.Text(fmt.Sprint(names, g.index))
				item.Byte(externGlobal)
				item.Number(uint32(g.index))
				items[i] = item
			}
			list, _ = added(r, items...)
		default:
			continue
		}
		next.sections[k].Body = list
	}
	return next.bytes()
}

// added is a section with more items, and how many it had.
func added(r *wasmbin.Reader, items ...[]byte) (section wasmbin.Writer, had uint32) {
	had = uint32(r.Count())
	section.Number(had + uint32(len(items)))
	return append(append(section, r.Rest()...), slices.Concat(items...)...), had
}

// ticking is a section of code with an empty function at its end, which has this index and is called before memory.copy and memory.fill.
// Other instructions take little time, or keepsState has found them.
func ticking(r *wasmbin.Reader, ticker uint32) (section wasmbin.Writer) {
	n := r.Count()
	section.Number(uint32(n) + 1)
	for range n {
		body := r.Sub()
		skipLocals(&body)
		code := wasmbin.Writer(slices.Clone(body.Bytes[:body.Pos]))
		for body.Len() > 0 && body.Err == nil {
			at := body.Pos
			op := body.Byte()
			body.Operands(op)
			if op == wasmbin.OpBulk {
				operands := wasmbin.Reader{Bytes: body.Bytes, Pos: at + 1}
				if sub := operands.U32(); sub == 10 || sub == 11 {
					code.Op(wasmbin.OpCall, ticker)
				}
			}
			code.Byte(body.Bytes[at:body.Pos]...)
		}
		section.Bytes(code)
	}
	section.Bytes([]byte{0, wasmbin.OpEnd})
	return section
}

// initialized is the state of a module after its initialization.
type initialized struct {
	initialization *initialization
	memory         []byte
	values         map[int]any // of the mutable globals, by index
	ticks          uint64      // how often the clock was read, which is also its time
	draws, drawn   int         // how often random numbers were drawn, and bytes of them
	date           bool        // was read
	waited, closed bool
	looked         bool   // for directories
	refused        string // why the host ended it
	output         []byte

	random *rand.ChaCha8
	store  *wasmtime.Store
	of     *wasmtime.Memory
}

// unlike says why the state may not be that of an instance that begins later.
func (a *initialized) unlike() string {
	switch {
	case a.waited:
		return "its initialization waits for the clock"
	case a.date:
		return "its initialization reads the date, which the garbage collector of Go does too"
	case a.looked:
		return "its initialization looks for directories"
	case a.closed:
		return "its initialization closes a standard stream"
	case len(bytes.Trim(a.memory, "\x00")) > initialImage:
		return fmt.Sprintf("its memory has content across more than %d MiB afterwards", initialImage>>20)
	default:
		return ""
	}
}

func (a *initialized) text() string {
	return printable.Text(strings.ToValidUTF8(string(a.output), "\uFFFD"))
}

// run runs the initialization once, in an instance of its own.
func (i *initialization) run(ctx context.Context, seed byte) (*initialized, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := &initialized{initialization: i, values: map[int]any{}, store: wasmtime.NewStore(i.engine), random: rand.NewChaCha8([32]byte{0: 's', 31: seed})}
	defer a.store.Close()
	ticks := ticker{engine: i.engine}
	ticks.start()
	defer ticks.stop()
	a.store.SetEpochDeadline(uint64(i.limits.time/tick) + 1)
	a.store.Limiter(i.limits.memory, initialTable, 10, 10, 10)
	defer context.AfterFunc(ctx, func() {
		for range i.limits.time/tick + 2 {
			i.engine.IncrementEpoch()
		}
	})()
	err := a.initialize()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, a.failed(err)
	}
	return a, nil
}

func (a *initialized) initialize() error {
	i := a.initialization
	var adapter *wasmtime.Instance
	linker := wasmtime.NewLinker(i.engine)
	defer linker.Close()
	old := map[string]bool{}
	for _, name := range i.offered {
		old[preview1+"#"+name] = true
	}
	for _, l := range i.module.listed {
		name := l.module + "#" + l.name
		f := i.module.types[l.index]
		typ := wasmtime.NewFuncType(valTypes(f.params), valTypes(f.results))
		err := linker.FuncNew(l.module, l.given(), typ, func(_ *wasmtime.Caller, args []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			if !old[name] {
				return nil, a.refuse("it calls " + name)
			}
			if adapter == nil {
				return nil, a.refuse("its start function calls WASI")
			}
			return a.callAdapter(adapter, l.name, args)
		})
		if err != nil {
			return err
		}
	}
	user, err := linker.Instantiate(a.store, i.user)
	if err != nil {
		return err
	}
	a.of = user.GetExport(a.store, coreMemory).Memory()
	if i.adapter != nil {
		if adapter, err = a.newAdapter(); err != nil {
			return err
		}
	}
	if f := user.GetFunc(a.store, coreStart); f != nil {
		if _, err := f.Call(a.store); err != nil {
			return err
		}
	}
	for _, g := range i.globals {
		a.values[g.index] = user.GetExport(a.store, fmt.Sprint(i.names, g.index)).Global().Get(a.store).Get()
	}
	a.memory = bytes.Clone(a.of.UnsafeData(a.store))
	return nil
}

// callAdapter calls a function of preview 1.
func (a *initialized) callAdapter(adapter *wasmtime.Instance, name string, args []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
	given := make([]any, len(args))
	for k, v := range args {
		given[k] = v.Get()
	}
	if name == "random_get" {
		a.draws, a.drawn = a.draws+1, a.drawn+int(uint32(args[1].I32()))
	}
	result, err := adapter.GetFunc(a.store, name).Call(a.store, given...)
	if err != nil {
		if trap, ok := errors.AsType[*wasmtime.Trap](err); ok {
			return nil, trap
		}
		return nil, wasmtime.NewTrap(err.Error())
	}
	errno, ok := result.(int32)
	if !ok {
		return nil, nil
	}
	a.closed = a.closed || name == "fd_close" && errno == 0
	return []wasmtime.Val{wasmtime.ValI32(errno)}, nil
}

// newAdapter makes the adapter, with the functions of WASI 0.2 that it imports. They do what the empty world does before the env has
// arrived, with a clock that is behind that of any host.
func (a *initialized) newAdapter() (*wasmtime.Instance, error) {
	linker := wasmtime.NewLinker(a.initialization.engine)
	defer linker.Close()
	memory := func() []byte { return a.of.UnsafeData(a.store) }
	allocating, err := wasmtime.NewGlobal(a.store, wasmtime.NewGlobalType(wasmtime.NewValType(wasmtime.KindI32), true), wasmtime.ValI32(0))
	if err != nil {
		return nil, err
	}
	now := func() uint64 {
		a.ticks++
		return a.ticks
	}
	world := map[string]any{
		"$get-stdout": func() int32 { return 1 },
		"$get-stderr": func() int32 { return 2 },
		"$put": func(_, at, n, result int32) *wasmtime.Trap {
			m := memory()
			if uint64(uint32(at))+uint64(uint32(n)) > uint64(len(m)) || uint64(uint32(result))+12 > uint64(len(m)) {
				return a.refuse("it writes what is outside of its memory")
			}
			a.output = append(a.output, m[uint32(at):][:uint32(n)]...)
			a.output = a.output[max(0, len(a.output)-initialOutput):]
			clear(m[uint32(result):][:12])
			return nil
		},
		"$drop-error": func(int32) {},
		"$exit":       func(int32) *wasmtime.Trap { return a.refuse("it calls proc_exit") },
		"$ticks":      func() int64 { return int64(now()) },
		"$tick":       func() int64 { return 10_000 },
		"$after": func(int64) (int32, *wasmtime.Trap) {
			a.waited = true
			return 1, nil
		},
		"$block":         func(int32) {},
		"$drop-pollable": func(int32) {},
		"$date": func(at int32) {
			a.date = true
			clear(memory()[uint32(at):][:16])
		},
		"$date-precision": func(at int32) {
			m := memory()[uint32(at):]
			clear(m[:16])
			binary.LittleEndian.PutUint32(m[8:], 1_000_000)
		},
		"$random": func() int64 { return int64(a.random.Uint64()) },
		"$directories": func(at int32) {
			a.looked = true
			clear(memory()[uint32(at):][:8])
		},
	}
	for id, i := range wasiImports() {
		f := world[id]
		if f == nil {
			if err := linker.FuncNew("world", i.name, i.typ(), func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
				return nil, a.refuse("it uses files, which only the calls have")
			}); err != nil {
				return nil, err
			}
			continue
		}
		if err := linker.DefineFunc(a.store, "world", i.name, f); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"into", "end"} {
		g, err := wasmtime.NewGlobal(a.store, wasmtime.NewGlobalType(wasmtime.NewValType(wasmtime.KindI32), true), wasmtime.ValI32(0))
		if err == nil {
			err = linker.Define(a.store, "allocator", name, g)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := errors.Join(linker.Define(a.store, "guest", coreMemory, a.of), linker.Define(a.store, "allocator", "allocating", allocating)); err != nil {
		return nil, err
	}
	return linker.Instantiate(a.store, a.initialization.adapter)
}

// typ is the type of a function without results.
func (i wasiImport) typ() *wasmtime.FuncType {
	var params []*wasmtime.ValType
	for word := range strings.FieldsSeq(strings.Trim(i.signature, "()")) {
		switch word {
		case "i32":
			params = append(params, wasmtime.NewValType(wasmtime.KindI32))
		case "i64":
			params = append(params, wasmtime.NewValType(wasmtime.KindI64))
		}
	}
	return wasmtime.NewFuncType(params, nil)
}

// refuse ends the initialization.
func (a *initialized) refuse(reason string) *wasmtime.Trap {
	a.refused = reason
	return wasmtime.NewTrap(reason)
}

// failed explains an initialization that did not return.
func (a *initialized) failed(err error) error {
	limits := a.initialization.limits
	reason := a.refused
	if reason == "" {
		reason = err.Error()
		if trap, ok := errors.AsType[*wasmtime.Trap](err); ok {
			reason = trap.Message()
			if code := trap.Code(); code != nil && *code == wasmtime.Interrupt {
				reason = fmt.Sprintf("it takes more than %v", limits.time)
			}
		}
		const cause = "Caused by:\n"
		if last := strings.LastIndex(reason, cause); last >= 0 {
			reason = strings.TrimSpace(reason[last+len(cause):])
		}
	}
	reason = printable.Short(printable.OneLine(reason), 300)
	if text := strings.TrimSpace(a.text()); text != "" {
		reason += "; it wrote:\n" + printable.Marked(text)
	}
	return coreErrorf(CoreInitialization, nil, "the module's initialization, which has at most %v and %d MiB, fails: %s", limits.time, limits.memory>>20, reason)
}

func valTypes(encoded string) []*wasmtime.ValType {
	kinds := map[byte]wasmtime.ValKind{0x7f: wasmtime.KindI32, 0x7e: wasmtime.KindI64, 0x7d: wasmtime.KindF32, 0x7c: wasmtime.KindF64}
	types := make([]*wasmtime.ValType, len(encoded))
	for k := range encoded {
		types[k] = wasmtime.NewValType(kinds[encoded[k]])
	}
	return types
}

// after is the module in this state, which has no initialization.
func (m *coreModule) after(a *initialized) *coreModule {
	next := *m
	next.exports = maps.Clone(m.exports)
	delete(next.exports, coreStart)
	next.sections = nil
	for _, s := range m.sections {
		switch s.ID {
		case wasmbin.SectionStart, wasmbin.SectionData, wasmbin.SectionDataCount:
			continue
		case wasmbin.SectionMemory:
			s.Body = grown(s.Reader(), uint32(len(a.memory)/wasmPage))
		case wasmbin.SectionGlobal:
			s.Body = withValues(s.Reader(), a.values)
		case wasmbin.SectionExport:
			s.Body = withoutStart(s.Reader())
		}
		if next.sections = append(next.sections, s); s.ID == wasmbin.SectionCode {
			next.sections = append(next.sections, wasmbin.Section{ID: wasmbin.SectionData, Body: dataSection(a.memory)})
		}
	}
	return &next
}

// withoutStart is a section of exports without the initialization.
func withoutStart(r *wasmbin.Reader) []byte {
	var section, list wasmbin.Writer
	n := uint32(0)
	for range r.Count() {
		begin := r.Pos
		name := r.Name()
		r.Byte()
		r.U32()
		if name != coreStart {
			list = append(list, r.Bytes[begin:r.Pos]...)
			n++
		}
	}
	section.Number(n)
	return append(section, list...)
}

// grown is a section with one memory, of at least so many pages.
func grown(r *wasmbin.Reader, pages uint32) []byte {
	r.Count()
	_, most, bounded := r.Limits()
	section := wasmbin.Writer{1, 0}
	section.Number(pages)
	if bounded {
		section[1] = 1
		section.Number(most)
	}
	return section
}

// withValues is a section of globals that begin with these values.
func withValues(r *wasmbin.Reader, values map[int]any) []byte {
	var section wasmbin.Writer
	n := r.Count()
	section.Number(uint32(n))
	for k := range n {
		begin := r.Pos
		globalType(r)
		section = append(section, r.Bytes[begin:r.Pos]...)
		begin = r.Pos
		skipConstant(r)
		switch v := values[k].(type) {
		case int32:
			section.I32(uint32(v))
		case int64:
			section.I64(v)
		case float32:
			section.Byte(0x43)
			section = binary.LittleEndian.AppendUint32(section, math.Float32bits(v))
		case float64:
			section.Byte(0x44)
			section = binary.LittleEndian.AppendUint64(section, math.Float64bits(v))
		default:
			section = append(section, r.Bytes[begin:r.Pos]...)
			continue
		}
		section.Byte(wasmbin.OpEnd)
	}
	return section
}
