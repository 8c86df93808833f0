// Package image separates the initial memory of a component from the rest. Components that one toolchain makes for the same interfaces
// often differ only there, so the rest needs to be compiled only once for all of them.
package image

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/wasmbin"
)

// Import is the name by which the rest of a component imports the module with its memory.
const Import = "stile-image"

const (
	// maxSize bounds the module: the host compiles it in its own process, whatever its estimate.
	maxSize = 16 << 20
	// maxSections bounds the sections of a component or module. Toolchains make hundreds.
	maxSections = 10_000
	// maxExports bounds the names by which the memory is exported. Toolchains make one.
	maxExports = 100
	// maxInstances bounds the core instances. With the host's checks they stay within what the engine gives one component.
	maxInstances = 16
)

// The forms of the type of a module with a memory.
const (
	memory       = 0x02
	moduleType   = 0x50
	exportOfType = 0x03
)

// Split returns the module with a component's memory, and the rest, which imports that module and has no custom sections. The module
// shares the memory of the component. Split reports false if the component has no such module, or is unusual in any other way: then
// it must be compiled as a whole. Together both parts take as many instances, memories and tables as the whole.
//
// The module defines one memory, exports it, and has data; it has nothing else. It has exactly one instance, and no other core module
// defines a memory. The component does not alias modules. After the module, it defines no core types, whose indices would change.
func Split(component []byte) (rest, module []byte, ok bool) {
	sections, ok := read(component, wasmbin.ComponentHeader)
	if !ok {
		return nil, nil, false
	}
	s := splitter{at: -1}
	out := make([]wasmbin.Section, 0, len(sections)+1)
	for _, section := range sections {
		r := section.Reader()
		before := s.at
		switch section.ID {
		case wasmbin.SectionCustom:
			if !utf8.Valid(r.Vector()) {
				r.Fail("a name that is none")
			}
		case wasmbin.SectionCoreModule:
			s.module(r)
		case wasmbin.SectionCoreInstance:
			s.instances(r)
		case wasmbin.SectionCoreType:
			s.types += uint32(r.Count())
			if s.at >= 0 {
				r.Fail("a core type after the module")
			}
		case wasmbin.SectionAlias:
			noModule(r)
		case wasmbin.SectionComponentImport:
			s.imports(r)
		}
		if r.Err != nil {
			return nil, nil, false
		}
		if section.ID == wasmbin.SectionCustom {
			continue
		} else if s.at == before {
			out = append(out, section)
			continue
		}
		module = section.Body
		imported := wasmbin.Writer{1, 0}
		imported.Text(Import)
		imported.Byte(wasmbin.SortCore, wasmbin.CoreModule)
		imported.Number(s.types)
		out = append(out, wasmbin.Section{ID: wasmbin.SectionCoreType, Body: s.typ}, wasmbin.Section{ID: wasmbin.SectionComponentImport, Body: imported})
	}
	if s.at < 0 || s.started != 1 || s.all > maxInstances {
		return nil, nil, false
	}
	return wasmbin.WriteSections(wasmbin.ComponentHeader, out), module, true
}

// read returns the sections of a binary. It reports false if there are too many, because a list of them can take twenty times the binary.
func read(wasm []byte, header string) (sections []wasmbin.Section, ok bool) {
	err := wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		if len(sections) == maxSections {
			return errSections
		}
		sections = append(sections, wasmbin.Section{ID: id, Body: r.Bytes})
		return nil
	})
	return sections, err == nil && bytes.HasPrefix(wasm, []byte(header))
}

var errSections = errors.New("too many sections")

// splitter is what Split knows about the component so far.
type splitter struct {
	at      int    // the index of the module; negative until it is found
	typ     []byte // a section with its type
	types   uint32 // core types
	modules int    // core modules
	all     int    // instances of core modules
	started int    // those of the module
}

func (s *splitter) module(r *wasmbin.Reader) {
	typ, isImage, hasMemory := inspect(r.Bytes)
	switch {
	case !hasMemory:
	case isImage && s.at < 0 && len(r.Bytes) <= maxSize:
		s.at, s.typ = s.modules, typ
	default:
		r.Fail("another memory")
	}
	s.modules++
}

// inspect reports whether a core module is only a memory with content, and if so, its type as a section of a component.
func inspect(module []byte) (typ []byte, isImage, hasMemory bool) {
	sections, ok := read(module, wasmbin.CoreHeader)
	if !ok {
		return nil, false, true
	}
	hasMemory = slices.ContainsFunc(sections, func(s wasmbin.Section) bool { return s.ID == wasmbin.SectionMemory })
	var limits []byte
	var exports wasmbin.Writer
	for _, section := range sections {
		r := section.Reader()
		switch section.ID {
		case wasmbin.SectionMemory:
			if r.Count() != 1 || limits != nil {
				r.Fail("not one memory")
			}
			start := r.Pos
			r.Limits()
			limits = r.Bytes[start:r.Pos]
		case wasmbin.SectionExport:
			n := r.Count()
			if n > maxExports || exports != nil {
				r.Fail("many exports")
			}
			exports.Number(uint32(n))
			for range n {
				name, kind, index := r.Vector(), r.Byte(), r.U32()
				if kind != memory || index != 0 {
					r.Fail("an export of something else")
				}
				exports.Byte(exportOfType)
				exports.Bytes(name)
				exports.Byte(memory)
				exports.Byte(limits...)
			}
		case wasmbin.SectionData, wasmbin.SectionDataCount, wasmbin.SectionCustom:
			continue // the engine checks it
		default:
			r.Fail("a section of something else")
		}
		if r.Err != nil || r.Len() > 0 {
			return nil, false, hasMemory
		}
	}
	return append(wasmbin.Writer{1, moduleType}, exports...), limits != nil && exports != nil, hasMemory
}

// instances counts instances of modules.
func (s *splitter) instances(r *wasmbin.Reader) {
	r.CoreInstances(func(module uint32) {
		s.all++
		if int(module) == s.at {
			s.started++
		}
	})
}

// noModule fails if an alias is of a core module or of a core type.
func noModule(r *wasmbin.Reader) {
	r.Aliases(func(_, core byte) {
		if core == wasmbin.CoreModule || core == wasmbin.CoreType {
			r.Fail("an alias of a module or of its type")
		}
	})
}

// imports counts imported modules.
func (s *splitter) imports(r *wasmbin.Reader) {
	r.Imports(func(name []byte, sort, core byte) {
		switch {
		case bytes.EqualFold(name, []byte(Import)): // names may not differ in case alone
			r.Fail("an import of the same name")
		case sort == wasmbin.SortCore && core == wasmbin.CoreModule:
			s.modules++
		case sort == wasmbin.SortCore:
			r.Fail("an import of another core sort")
		case sort == wasmbin.SortValue:
			r.Fail("an import of a value")
		}
	})
}
