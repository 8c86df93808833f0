package toolchain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// CoreProblem says why a core module cannot become a component.
type CoreProblem string

// The problems of core modules.
const (
	// CoreMalformed is a file that is not a valid core module. A component is one too.
	CoreMalformed CoreProblem = "malformed"
	// CoreCommand is a program that runs once and ends, rather than one that offers functions.
	CoreCommand CoreProblem = "command"
	// CoreImport are imports that neither the world nor WASI preview 1 has.
	CoreImport CoreProblem = "unknown import"
	// CoreExport are exports of the world that the module lacks.
	CoreExport CoreProblem = "missing export"
	// CoreType is an import or export of another type than the world's.
	CoreType CoreProblem = "wrong type"
	// CoreMemory is a memory that is not exported, or of 64 bits, or shared.
	CoreMemory CoreProblem = "memory"
	// CoreInitialization is a module whose initialization fails.
	CoreInitialization CoreProblem = "initialization"
	// CoreAllocator is a module without cabi_realloc, through which the host passes values to it.
	CoreAllocator CoreProblem = "no allocator"
)

// CoreError reports a core module that cannot become a component.
type CoreError struct {
	Problem CoreProblem
	// Names are the imports or exports it is about, at most 100, with the interface and "#" before the name. They are the module's own
	// words.
	Names  []string
	Reason string
}

func (e *CoreError) Error() string { return e.Reason }

const (
	maxNames = 100 // in an error
	maxNamed = 5   // in its text
)

// coreErrorf makes an error about names. The format's last verb is for them.
func coreErrorf(p CoreProblem, names []string, format string, args ...any) error {
	shown := make([]string, 0, maxNamed+1)
	for _, name := range names[:min(len(names), maxNamed)] {
		shown = append(shown, printable.Short(printable.Line(name), 200))
	}
	if more := len(names) - maxNamed; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	if names != nil {
		args = append(args, strings.Join(shown, ", "))
	}
	return &CoreError{p, names[:min(len(names), maxNames)], fmt.Sprintf(format, args...)}
}

// coreFunc is the type of a function: its parameters, then its results, as bytes of the binary format.
type coreFunc struct{ params, results string }

// The kinds of what a module imports and exports.
const (
	externFunc   = 0
	externMemory = 2
	externGlobal = 3
)

type coreExport struct {
	kind  byte
	index uint32
}

// coreListed is one import. A component gives each name once, so the second import of one has another name.
type coreListed struct {
	module, name string
	index        uint32
	again        int // how many before it import the same
}

// given is the name under which the component gives it.
func (l coreListed) given() string {
	if l.again == 0 {
		return l.name
	}
	return fmt.Sprintf("%s %d", l.name, l.again+1) // no interface has names with spaces
}

// coreModule is what a component must know about a module.
type coreModule struct {
	sections []wasmbin.Section
	types    []coreFunc
	imports  map[string]coreFunc // by "module#name"
	listed   []coreListed        // the imports in their order
	funcs    []uint32            // the types of all functions, imported ones first
	memories []byte              // their flags
	exports  map[string]coreExport
}

// readCore reads a core module. It checks nothing that the engine checks, but every number that this package uses later.
func readCore(wasm []byte) (*coreModule, error) {
	if bytes.HasPrefix(wasm, []byte(wasmbin.ComponentHeader)) {
		return nil, coreErrorf(CoreMalformed, nil, "this is a component already; only core modules can become one")
	}
	m := &coreModule{imports: map[string]coreFunc{}, exports: map[string]coreExport{}}
	var err error
	if m.sections, err = wasmbin.ReadSections(wasm, wasmbin.CoreHeader); err != nil {
		return nil, malformed(err)
	}
	for _, s := range m.sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionType:
			m.readTypes(r)
		case wasmbin.SectionImport:
			if err := m.readImports(r); err != nil {
				return nil, err
			}
		case wasmbin.SectionFunction:
			for range r.Count() {
				m.funcs = append(m.funcs, r.U32())
			}
		case wasmbin.SectionMemory:
			for range r.Count() {
				m.memories = append(m.memories, memoryFlags(r))
			}
		case wasmbin.SectionExport:
			for range r.Count() {
				name := r.Name()
				m.exports[name] = coreExport{r.Byte(), r.U32()}
			}
		}
		if r.Err != nil {
			return nil, malformed(r.Err)
		}
	}
	return m, nil
}

func malformed(err error) error {
	return coreErrorf(CoreMalformed, nil, "this is not a core module that can be read: %s", printable.Short(printable.Line(err.Error()), 500))
}

func (m *coreModule) readTypes(r *wasmbin.Reader) {
	const function = 0x60
	list := func() string {
		count, start := r.Count(), r.Pos
		for range count {
			r.ValueType()
		}
		return string(r.Bytes[start:max(start, r.Pos)])
	}
	for range r.Count() {
		if form := r.Byte(); form != function {
			r.Fail("types other than those of functions are not supported")
			return
		}
		m.types = append(m.types, coreFunc{list(), list()})
	}
}

func (m *coreModule) readImports(r *wasmbin.Reader) error {
	times := map[string]int{}
	for range r.Count() {
		module, short := r.Name(), r.Name()
		name := module + "#" + short
		kind := r.Byte()
		if r.Err == nil && kind != externFunc {
			return coreErrorf(CoreImport, []string{name}, "the module imports what is not a function, and no interface has: %s")
		}
		index := r.U32()
		if r.Err == nil && int64(index) >= int64(len(m.types)) {
			r.Fail("the type of an import does not exist")
		}
		if r.Err != nil {
			break
		}
		if f, ok := m.imports[name]; ok && f != m.types[index] {
			return coreErrorf(CoreType, []string{name}, "the module imports a function with two types: %s")
		}
		m.imports[name] = m.types[index]
		m.funcs = append(m.funcs, index)
		m.listed = append(m.listed, coreListed{module, short, index, times[name]})
		times[name]++
	}
	return nil
}

// memoryFlags reads the type of a memory and returns its flags.
func memoryFlags(r *wasmbin.Reader) byte {
	const bounded, pageSize = 1, 8
	flags := r.Byte()
	r.Numbers(1)
	if flags&bounded != 0 {
		r.Numbers(1)
	}
	if flags&pageSize != 0 {
		r.Numbers(1)
	}
	return flags
}

// function returns the type of an exported function.
func (m *coreModule) function(name string) (coreFunc, bool) {
	x, ok := m.exports[name]
	if !ok || x.kind != externFunc || int64(x.index) >= int64(len(m.funcs)) || int64(m.funcs[x.index]) >= int64(len(m.types)) {
		return coreFunc{}, false
	}
	return m.types[m.funcs[x.index]], true
}

var coreBytes = map[abi.CoreType]byte{abi.CoreI32: 0x7f, abi.CoreI64: 0x7e, abi.CoreF32: 0x7d, abi.CoreF64: 0x7c}

// encoded returns a type as the binary format has it.
func encoded(params, results []abi.CoreType) coreFunc {
	list := func(types []abi.CoreType) string {
		b := make([]byte, len(types))
		for i, t := range types {
			b[i] = coreBytes[t]
		}
		return string(b)
	}
	return coreFunc{list(params), list(results)}
}

const (
	coreMemory    = "memory"
	coreAllocator = "cabi_realloc"
	coreStart     = "_initialize"
)

// checkExports checks that the module has everything a component of these exports needs from it.
func (m *coreModule) checkExports(exports []*abi.Interface) error {
	if _, ok := m.exports["_start"]; ok {
		return coreErrorf(CoreCommand, nil, "the module is a command: it exports _start, which runs once and ends. Build a library (a reactor): -buildmode=c-shared with Go, crate-type cdylib with Rust, -mexec-model=reactor or -nostartfiles -Wl,--no-entry with clang")
	}
	if err := m.checkMemory(); err != nil {
		return err
	}
	const i32 = abi.CoreI32
	want := map[string]coreFunc{}
	var missing []string
	for _, i := range exports {
		for _, f := range i.Funcs {
			name := coreName(f)
			want[name] = encoded(f.Core(false))
			if _, ok := m.exports[name]; !ok {
				missing = append(missing, name)
			}
		}
	}
	if missing != nil {
		return coreErrorf(CoreExport, missing, "the module lacks exports of its world: %s")
	}
	if _, ok := m.exports[coreAllocator]; !ok {
		return coreErrorf(CoreAllocator, nil, "the module does not export %s, through which the host passes values to it; export (old, old size, alignment, new size) -> address under that name", coreAllocator)
	}
	want[coreAllocator] = encoded([]abi.CoreType{i32, i32, i32, i32}, []abi.CoreType{i32})
	if _, ok := m.exports[coreStart]; ok {
		want[coreStart] = coreFunc{}
	}
	var wrong []string
	for name, wanted := range want {
		if have, ok := m.function(name); !ok || have != wanted {
			wrong = append(wrong, name)
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		return coreErrorf(CoreType, wrong, "the module exports these with another type than the world has: %s")
	}
	return nil
}

// checkMemory checks that values can pass through the module's memory.
func (m *coreModule) checkMemory() error {
	memory, ok := m.exports[coreMemory]
	switch {
	case !ok || memory.kind != externMemory || int64(memory.index) >= int64(len(m.memories)):
		return coreErrorf(CoreMemory, nil, "the module does not export its memory as %q; link with -Wl,--export-memory", coreMemory)
	case len(m.memories) > 1:
		return coreErrorf(CoreMemory, nil, "the module has %d memories; a component's values pass through one", len(m.memories))
	case m.memories[0]&4 != 0:
		return coreErrorf(CoreMemory, nil, "the module has a 64-bit memory; build it for wasm32")
	case m.memories[0]&2 != 0:
		return coreErrorf(CoreMemory, nil, "the module has a shared memory; build it without threads")
	case m.memories[0]&8 != 0:
		return coreErrorf(CoreMemory, nil, "the module's memory has pages of a size of its own; build it with pages of 64 KiB")
	}
	return nil
}
