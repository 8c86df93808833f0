// Package guard adds checks to components. Before the engine converts the values that a guest passes to a host function, or
// returns, the check adds up the size of their lists and strings in the guest's own memory. A sum above [Limit] ends the call. For
// a sum above [Free], the check asks the host through the import [Import], and the host can make it wait.
//
// The opposite direction needs a signal. While the host passes a large value, the engine holds it and lets the guest allocate room.
// After a host function has returned such a value, the check asks for 0 bytes, which says that the value has arrived.
//
// The engine converts everything in memory before it calls the host, and a guest can have a million list elements in 40 MB,
// or the same string in each. So the check must come first.
//
// The package also changes core modules so that a trap shows whether the guest had been refused memory; see [Refused]. Nothing else
// in a component changes, except that cleanup after a call (post-return) is left out: it would run while the host holds the result, and
// the instance is dropped anyway.
package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Import is the function that a guarded component calls to ask the host for bytes.
const Import = "stile-reserve"

const (
	// Limit is the most bytes that one conversion may take, and Free what it may take without asking.
	Limit, Free = wasmtime.MaxConversion, wasmtime.FreeConversion
	// Over is requested instead of any sum above Limit.
	Over = 1<<32 - 1
)

// Component returns a component with checks. An error names the part that cannot be guarded: the component is malformed,
// or uses a feature that the engine does not support either. Only the outermost component may have code. names are the
// bytes of the names in its types, written out wherever the engine does that.
func Component(wasm []byte) (guarded []byte, names int64, err error) {
	if len(wasm) < len(wasmbin.ComponentHeader) || string(wasm[:len(wasmbin.ComponentHeader)]) != wasmbin.ComponentHeader {
		return nil, 0, errors.New("not a component")
	}
	root := &root{u8: plain(coreI32, 1), left: maxTypes, names: maxNames}
	c := newComponent(nil, root)
	c.out = slices.Grow(c.out, len(wasm)+len(wasm)/16+16<<10)
	r := reader{Bytes: wasm, Pos: len(wasmbin.ComponentHeader)}
	c.sections(&r)
	return c.out, maxNames - root.names, r.Err
}

// component is one component while it is rewritten, with the meanings of its indices and their new values.
type component struct {
	scope *scope
	out   writer

	modules, coreInstances, coreFuncs indices
	pending                           []*wrap   // core functions that are checked once something uses them
	lifted                            []*lifted // functions that are written once something other than types comes

	funcs      []*funcType
	instances  []instanceType
	components []instanceType
	exports    instanceType
}

// indices maps the indices of a component to their new values.
type indices struct {
	to   []uint32
	next uint32
}

// add assigns the next new index to the component's next index.
func (x *indices) add() { x.to = append(x.to, x.next); x.next++ }

func (x *indices) get(r *reader, i uint32) uint32 {
	if r.Err == nil && uint64(i) >= uint64(len(x.to)) {
		r.Fail("index %d is beyond what is defined", i)
	}
	if r.Err != nil {
		return 0
	}
	return x.to[i]
}

func newComponent(outer *component, root *root) *component {
	c := &component{scope: &scope{root: root}, exports: instanceType{}}
	c.scope.of = c
	c.out.Byte([]byte(wasmbin.ComponentHeader)...)
	if outer != nil { // it has no code
		c.scope.outer, c.scope.depth = outer.scope, outer.scope.depth+1
		return c
	}
	c.scope.shift = 1
	// The type of the import, the import, and its core function: index 0 of types, functions and core functions.
	c.out.Section(wasmbin.SectionComponentType, []byte("\x01\x40\x01\x05bytes\x79\x01\x00"))
	var w writer
	w.Byte(1, 0)
	w.Text(Import)
	w.Byte(wasmbin.SortFunc, 0)
	c.out.Section(wasmbin.SectionComponentImport, w)
	c.out.Section(wasmbin.SectionCanon, []byte("\x01\x01\x00\x00\x00"))
	c.coreFuncs.next = 1
	return c
}

func (c *component) sections(r *reader) {
	for r.Len() > 0 && r.Err == nil {
		id := r.Byte()
		body := r.Sub()
		switch id {
		case wasmbin.SectionCustom, wasmbin.SectionCoreType:
			c.out.Section(id, body.Bytes)
		case wasmbin.SectionCoreModule:
			c.out.Section(id, watchMemory(body.Bytes))
			c.modules.add()
		case wasmbin.SectionComponent:
			c.nested(&body)
		case wasmbin.SectionCoreInstance, wasmbin.SectionInstance, wasmbin.SectionAlias, wasmbin.SectionComponentType, wasmbin.SectionCanon, wasmbin.SectionComponentImport, wasmbin.SectionComponentExport:
			if c.scope.outer != nil && (id == wasmbin.SectionCoreInstance || id == wasmbin.SectionCanon) {
				r.Fail("a component inside it has code")
			}
			for n := body.Count(); n > 0 && body.Err == nil; n-- {
				c.item(id, &body)
			}
			if body.Err == nil && body.Len() > 0 {
				body.Fail("a section is longer than its content")
			}
		default:
			r.Fail("section %d is not supported", id)
		}
		if body.Err != nil {
			r.Err = fmt.Errorf("section %d: %w", id, body.Err)
		}
	}
	c.flushLifted(r)
}

// item writes one definition in a section of its own, so that other definitions can precede it.
func (c *component) item(id byte, r *reader) {
	// Functions that are lifted one after the other are checked by one instance, so nothing in between may need them.
	switch {
	case id == wasmbin.SectionCanon, id == wasmbin.SectionComponentType:
	case id == wasmbin.SectionAlias && r.Len() > 0 && r.Bytes[r.Pos] == wasmbin.SortCore:
	default:
		c.flushLifted(r)
	}
	w := writer{1}
	done := func() {}
	switch id {
	case wasmbin.SectionCoreInstance:
		c.coreInstance(r, &w)
		done = c.coreInstances.add
	case wasmbin.SectionInstance:
		c.instance(r, &w)
	case wasmbin.SectionAlias:
		done = c.alias(r, &w)
	case wasmbin.SectionComponentType:
		c.scope.define(r, &w)
	case wasmbin.SectionCanon:
		c.canon(r)
		return
	case wasmbin.SectionComponentImport:
		c.importing(r, &w)
	case wasmbin.SectionComponentExport:
		c.export(r, &w)
	}
	c.out.Section(id, w)
	done()
}

func (c *component) nested(r *reader) {
	const head = len(wasmbin.ComponentHeader)
	if c.scope.depth >= maxDepth {
		r.Fail("components nest deeper than %d", maxDepth)
		return
	}
	if r.Len() < head || string(r.Bytes[r.Pos:r.Pos+head]) != wasmbin.ComponentHeader {
		r.Fail("not a component")
		return
	}
	inner := newComponent(c, c.scope.root)
	r.Take(head)
	inner.sections(r)
	c.out.Section(wasmbin.SectionComponent, inner.out)
	c.components = append(c.components, inner.exports)
}

func (c *component) coreInstance(r *reader, w *writer) {
	kind := r.Byte()
	w.Byte(kind)
	switch kind {
	case 0:
		w.Number(c.modules.get(r, r.U32()))
		n := r.Count()
		w.Number(uint32(n))
		for range n {
			w.Text(r.Name())
			w.Byte(r.Byte())
			w.Number(c.coreInstances.get(r, r.U32()))
		}
	case 1:
		n := r.Count()
		w.Number(uint32(n))
		for range n {
			w.Text(r.Name())
			sort := r.Byte()
			w.Byte(sort)
			i := r.U32()
			if sort == 0 {
				i = c.useFunc(r, i)
			}
			w.Number(i)
		}
	default:
		r.Fail("a core instance of form %#x is not supported", kind)
	}
}

// useFunc returns the new index of a core function, once it is checked.
func (c *component) useFunc(r *reader, i uint32) uint32 {
	if slices.ContainsFunc(c.pending, func(p *wrap) bool { return p.of == int(i) }) {
		c.flush(r)
	}
	return c.coreFuncs.get(r, i)
}

// part reads the sort and index of a definition, and returns its type.
func (c *component) part(r *reader, w *writer) (sort byte, t any) {
	sort = r.Byte()
	w.Byte(sort)
	if sort == wasmbin.SortCore {
		kind := r.Byte()
		w.Byte(kind)
		if kind != wasmbin.CoreModule {
			r.Fail("only modules of the core sorts can be passed on")
		}
		w.Number(c.modules.get(r, r.U32()))
		return sort, nil
	}
	i := r.U32()
	switch {
	case r.Err != nil:
	case sort == wasmbin.SortFunc && int(i) < len(c.funcs):
		t, i = c.funcs[i], i+c.scope.shift
	case sort == wasmbin.SortType && int(i) < len(c.scope.types):
		t, i = c.scope.types[i], i+c.scope.shift
	case sort == wasmbin.SortComponent && int(i) < len(c.components):
		t = c.components[i]
	case sort == wasmbin.SortInstance && int(i) < len(c.instances):
		t = c.instances[i]
	default:
		r.Fail("there is no definition %d of sort %#x", i, sort)
	}
	w.Number(i)
	return sort, t
}

// add takes a definition into the index space of its sort.
func (c *component) add(r *reader, sort byte, t any) {
	switch t := t.(type) {
	case *funcType:
		if sort == wasmbin.SortFunc {
			c.funcs = append(c.funcs, t)
			return
		}
	case instanceType:
		switch sort {
		case wasmbin.SortInstance:
			c.instances = append(c.instances, t)
			return
		case wasmbin.SortComponent:
			c.components = append(c.components, t)
			return
		}
	}
	switch sort {
	case wasmbin.SortCore:
		c.modules.add()
	case wasmbin.SortType:
		c.scope.push(r, t)
	default:
		r.Fail("a definition of sort %#x is of another sort", sort)
	}
}

func (c *component) instance(r *reader, w *writer) {
	kind := r.Byte()
	w.Byte(kind)
	exports := instanceType{}
	switch kind {
	case 0:
		i := r.U32()
		w.Number(i)
		if r.Err != nil || int(i) >= len(c.components) {
			r.Fail("there is no component %d", i)
			return
		}
		exports = c.components[i]
		n := r.Count()
		w.Number(uint32(n))
		for range n {
			w.Text(r.Name())
			c.part(r, w)
		}
	case 1:
		n := r.Count()
		w.Number(uint32(n))
		for range n {
			name := c.scope.name(r, w)
			_, exports[name] = c.part(r, w)
		}
	default:
		r.Fail("an instance of form %#x is not supported", kind)
	}
	c.instances = append(c.instances, exports)
}

func (c *component) alias(r *reader, w *writer) (done func()) {
	sort, coreSort := r.Byte(), byte(0)
	w.Byte(sort)
	if sort == wasmbin.SortCore {
		coreSort = r.Byte()
		w.Byte(coreSort)
	}
	target := r.Byte()
	w.Byte(target)
	switch target {
	case 0:
		i := r.U32()
		w.Number(i)
		name := r.Name()
		w.Text(name)
		if r.Err != nil || int(i) >= len(c.instances) {
			r.Fail("there is no instance %d", i)
			return func() {}
		}
		if sort == wasmbin.SortCore && coreSort != wasmbin.CoreModule {
			r.Fail("an alias of core sort %#x is not supported", coreSort)
		}
		c.add(r, sort, c.instances[i][name])
	case 1:
		w.Number(c.coreInstances.get(r, r.U32()))
		w.Text(r.Name())
		if sort == wasmbin.SortCore && coreSort == 0 {
			return c.coreFuncs.add
		}
	case 2:
		c.outerAlias(r, w, sort, coreSort)
	default:
		r.Fail("an alias of form %#x is not supported", target)
	}
	return func() {}
}

func (c *component) outerAlias(r *reader, w *writer, sort, coreSort byte) {
	if sort == wasmbin.SortType {
		c.scope.push(r, c.scope.outerType(r, w))
		return
	}
	count, i := r.U32(), r.U32()
	w.Number(count)
	at := c.scope
	for range count {
		if at = at.outer; at == nil {
			r.Fail("an alias leads out of the component")
			return
		}
	}
	switch {
	case sort == wasmbin.SortComponent && int(i) < len(at.of.components):
		c.components = append(c.components, at.of.components[i])
	case sort == wasmbin.SortCore && coreSort == wasmbin.CoreModule:
		i = at.of.modules.get(r, i)
		c.modules.add()
	case sort == wasmbin.SortCore && coreSort == wasmbin.CoreType:
	default:
		r.Fail("an outer alias of sort %#x is not supported", sort)
	}
	w.Number(i)
}

func (c *component) importing(r *reader, w *writer) {
	name := c.scope.name(r, w)
	sort, t := c.scope.extern(r, w)
	switch {
	case name == Import:
		r.Fail("the import %s is the host's own", Import)
	case sort == wasmbin.SortComponent:
		r.Fail("the import %q is a component", name)
	case sort != wasmbin.SortType: // which is in the scope
		c.add(r, sort, t)
	}
}

func (c *component) export(r *reader, w *writer) {
	name := c.scope.name(r, w)
	sort, t := c.part(r, w)
	ascribed := r.Byte()
	w.Byte(ascribed)
	if ascribed == 1 {
		var as any
		before := len(c.scope.types)
		if _, as = c.scope.extern(r, w); as != nil {
			t = as
		}
		c.scope.types = c.scope.types[:before] // the export itself is one
	} else if ascribed != 0 {
		r.Fail("%#x is not the presence of a type", ascribed)
	}
	c.add(r, sort, t)
	c.exports[name] = t
}

// optionPostReturn names a function that runs after the result of another was read.
const optionPostReturn = 5

// options are the options of canon lift and lower that matter here.
type options struct {
	memory    uint32
	hasMemory bool
	wide      bool // strings are not UTF-8
}

func (c *component) options(r *reader, w *writer) options {
	var o options
	var kept writer
	left := uint32(0)
	for n := r.Count(); n > 0; n-- {
		kind := r.Byte()
		if kind == optionPostReturn {
			c.useFunc(r, r.U32())
			continue
		}
		left++
		kept.Byte(kind)
		switch kind {
		case 0:
		case 1, 2:
			o.wide = true
		case 3:
			o.memory, o.hasMemory = r.U32(), true
			kept.Number(o.memory)
		case 4:
			kept.Number(c.useFunc(r, r.U32()))
		default:
			r.Fail("the option %#x of a function is not supported", kind)
		}
	}
	w.Number(left)
	w.Byte(kept...)
	return o
}

func (c *component) canon(r *reader) {
	kind := r.Byte()
	w := writer{1, kind}
	switch kind {
	case 0x00:
		c.lift(r, w)
	case 0x01:
		c.flushLifted(r)
		w.Byte(r.Byte())
		i := r.U32()
		if r.Err != nil || int(i) >= len(c.funcs) {
			r.Fail("there is no function %d", i)
			return
		}
		w.Number(i + c.scope.shift)
		f, o := c.funcs[i], c.options(r, &w)
		c.scope.root.writtenOut(r, f)
		c.out.Section(wasmbin.SectionCanon, w)
		c.coreFuncs.add()
		if !f.params.dynamic && !f.returns() || !o.hasMemory {
			return // without memory the engine refuses lists
		}
		if len(c.pending) > 0 && c.pending[0].options != o {
			c.flush(r)
		}
		at := len(c.coreFuncs.to) - 1
		c.pending = append(c.pending, &wrap{of: at, core: c.coreFuncs.to[at], fn: f, options: o})
	case 0x02:
		r.Fail("it creates handles of its own resource; tools do not need these, and the engine does not limit them")
	case 0x03, 0x04:
		c.scope.typeIndex(r, &w)
		c.out.Section(wasmbin.SectionCanon, w)
		c.coreFuncs.add()
	default:
		r.Fail("the built-in function %#x is not supported", kind)
	}
}

func (c *component) lift(r *reader, w writer) {
	w.Byte(r.Byte())
	core := c.useFunc(r, r.U32())
	var rest writer
	o := c.options(r, &rest)
	f := indexed[*funcType](c.scope, r, &rest, "a function")
	if r.Err != nil {
		return
	}
	c.scope.root.writtenOut(r, f)
	l := &lifted{wrap: wrap{of: -1, core: core, fn: f, lift: true, options: o}, before: w, after: rest}
	if len(c.lifted) > 0 && c.lifted[0].options != o {
		c.flushLifted(r)
	}
	c.lifted = append(c.lifted, l)
	c.funcs = append(c.funcs, f)
}

// lifted is a lifted function, and what is written before and after the index of its core function.
type lifted struct {
	wrap
	before, after writer
}

// flushLifted adds the lifted functions, with their checks.
func (c *component) flushLifted(r *reader) {
	list := c.lifted
	c.lifted = nil
	var wraps []*wrap
	for _, l := range list {
		if l.fn.returns() && l.options.hasMemory {
			wraps = append(wraps, &l.wrap)
		}
	}
	if len(wraps) > 0 {
		first := c.wrap(r, wraps)
		for i, p := range wraps {
			p.core = first + uint32(i)
		}
	}
	for _, l := range list {
		l.before.Number(l.core)
		l.before.Byte(l.after...)
		c.out.Section(wasmbin.SectionCanon, l.before)
	}
}

// flush adds the pending checks.
func (c *component) flush(r *reader) {
	pending := c.pending
	c.pending = nil
	if len(pending) == 0 {
		return
	}
	first := c.wrap(r, pending)
	for i, p := range pending {
		c.coreFuncs.to[p.of] = first + uint32(i)
	}
}

// wrap writes a module with the checks of functions that share one memory, and an instance of it. It returns the index of the
// first checked function; the others follow.
func (c *component) wrap(r *reader, wraps []*wrap) (first uint32) {
	module := checks(r, wraps, c.scope)
	c.out.Section(wasmbin.SectionCoreModule, module)
	given := writer{1, 1}
	given.Number(uint32(len(wraps) + 2))
	part := func(name string, sort byte, i uint32) {
		given.Text(name)
		given.Byte(sort)
		given.Number(i)
	}
	part("r", 0, 0)
	part("m", 2, wraps[0].options.memory)
	for i, p := range wraps {
		part(fmt.Sprint(i), 0, p.core)
	}
	c.out.Section(wasmbin.SectionCoreInstance, given)
	made := writer{1, 0}
	made.Number(c.modules.next)
	made.Number(1)
	made.Text("")
	made.Byte(wasmbin.CoreInstance)
	made.Number(c.coreInstances.next)
	c.out.Section(wasmbin.SectionCoreInstance, made)
	c.modules.next++
	c.coreInstances.next += 2
	first = c.coreFuncs.next
	for i := range wraps {
		alias := writer{1, wasmbin.SortCore, 0, 1}
		alias.Number(c.coreInstances.next - 1)
		alias.Text(fmt.Sprint(i))
		c.out.Section(wasmbin.SectionAlias, alias)
		c.coreFuncs.next++
	}
	return first
}
