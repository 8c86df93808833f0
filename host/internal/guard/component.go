// Package guard puts checks into components: before the engine converts what a guest passes to a function of the host, or returns,
// code in the guest's place adds up what the lists and strings would take, in the guest's own memory. What is more than [Limit]
// ends the call, and for more than a little it asks the host, through the import [Import], which can have it wait.
//
// The engine makes values of whatever is in memory before it calls the host, and a guest can have a million list elements in
// 40 MB, or one string in each. So the check has to stand before that.
//
// Core modules are changed so that a trap tells whether the guest had been refused memory, see [Refused]. Nothing else of a component
// changes.
package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stilehost/stile/host/internal/wasmtime"
)

// Import is the function of a guarded component by which it asks for bytes of the host.
const Import = "stile-reserve"

const (
	// Limit is the most bytes that one conversion may take, and Free what it may take without asking.
	Limit, Free = wasmtime.MaxConversion, wasmtime.FreeConversion
	// Over is what is asked for in place of more than Limit.
	Over = 1<<32 - 1
)

const header = "\x00asm\x0d\x00\x01\x00"

// Component returns a component with checks in it. An error says what of the component cannot be guarded: it uses a part of the
// component model that the engine does not run either, or it is malformed. Only the outermost component may have code. names are the
// bytes of the names in its types, written out wherever the engine does that.
func Component(wasm []byte) (guarded []byte, names int64, err error) {
	if len(wasm) < len(header) || string(wasm[:len(header)]) != header {
		return nil, 0, errors.New("not a component")
	}
	root := &root{u8: plain(coreI32, 1), left: maxParts, names: maxNames}
	c := newComponent(nil, root)
	r := reader{rest: wasm[len(header):]}
	c.sections(&r)
	return c.out, maxNames - root.names, r.err
}

// component is one component while it is written anew, with what its indices mean and which they become.
type component struct {
	scope *scope
	out   writer

	modules, coreInstances, coreFuncs indices
	pending                           []*wrap // core functions that are checked once something uses them

	funcs      []*funcType
	instances  []instanceType
	components []instanceType
	exports    instanceType
}

// indices maps the indices of a component to those that take their place.
type indices struct {
	to   []uint32
	next uint32
}

// add gives what the component has next the next index.
func (x *indices) add() { x.to = append(x.to, x.next); x.next++ }

func (x *indices) get(r *reader, i uint32) uint32 {
	if r.err == nil && uint64(i) >= uint64(len(x.to)) {
		r.fail("index %d is beyond what is defined", i)
	}
	if r.err != nil {
		return 0
	}
	return x.to[i]
}

func newComponent(outer *component, root *root) *component {
	c := &component{scope: &scope{root: root}, exports: instanceType{}}
	c.scope.of = c
	c.out.raw([]byte(header))
	if outer != nil { // it has no code
		c.scope.outer, c.scope.depth = outer.scope, outer.scope.depth+1
		return c
	}
	c.scope.shift = 1
	// The type of the import, the import, and its core function: index 0 of types, functions and core functions.
	c.out.section(7, []byte("\x01\x40\x01\x05bytes\x79\x01\x00"))
	var w writer
	w.byte(1, 0)
	w.text(Import)
	w.byte(sortFunc, 0)
	c.out.section(10, w)
	c.out.section(8, []byte("\x01\x01\x00\x00\x00"))
	c.coreFuncs.next = 1
	return c
}

func (c *component) sections(r *reader) {
	for len(r.rest) > 0 && r.err == nil {
		id := r.byte()
		body := reader{rest: r.bytes()}
		switch id {
		case 0, 3: // custom sections; core types
			c.out.section(id, body.rest)
		case 1:
			c.out.section(id, watchMemory(body.rest))
			c.modules.add()
		case 4:
			c.nested(&body)
		case 2, 5, 6, 7, 8, 10, 11:
			if c.scope.outer != nil && (id == 2 || id == 8) {
				r.fail("a component inside it has code")
			}
			for range body.count() {
				c.item(id, &body)
			}
			if body.err == nil && len(body.rest) > 0 {
				body.fail("a section is longer than its content")
			}
		default:
			r.fail("section %d is not supported", id)
		}
		if body.err != nil {
			r.fail("section %d: %w", id, body.err)
		}
	}
}

// item writes one definition in a section of its own, so that others can be put before it.
func (c *component) item(id byte, r *reader) {
	w := writer{1}
	done := func() {}
	switch id {
	case 2:
		c.coreInstance(r, &w)
		done = c.coreInstances.add
	case 5:
		c.instance(r, &w)
	case 6:
		done = c.alias(r, &w)
	case 7:
		c.scope.define(r, &w)
	case 8:
		c.canon(r)
		return
	case 10:
		c.importing(r, &w)
	case 11:
		c.export(r, &w)
	}
	c.out.section(id, w)
	done()
}

func (c *component) nested(r *reader) {
	const head = len(header)
	if c.scope.depth >= maxDepth {
		r.fail("components nest deeper than %d", maxDepth)
		return
	}
	if len(r.rest) < head || string(r.rest[:head]) != header {
		r.fail("not a component")
		return
	}
	inner := newComponent(c, c.scope.root)
	r.rest = r.rest[head:]
	inner.sections(r)
	c.out.section(4, inner.out)
	c.components = append(c.components, inner.exports)
}

func (c *component) coreInstance(r *reader, w *writer) {
	kind := r.byte()
	w.byte(kind)
	switch kind {
	case 0:
		w.number(c.modules.get(r, r.number()))
		n := r.count()
		w.number(uint32(n))
		for range n {
			w.text(r.text())
			w.byte(r.byte())
			w.number(c.coreInstances.get(r, r.number()))
		}
	case 1:
		n := r.count()
		w.number(uint32(n))
		for range n {
			w.text(r.text())
			sort := r.byte()
			w.byte(sort)
			i := r.number()
			if sort == 0 {
				i = c.useFunc(r, i)
			}
			w.number(i)
		}
	default:
		r.fail("a core instance of form %#x is not supported", kind)
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
	sort = r.byte()
	w.byte(sort)
	if sort == sortCore {
		kind := r.byte()
		w.byte(kind)
		if kind != coreModule {
			r.fail("only modules of the core sorts can be passed on")
		}
		w.number(c.modules.get(r, r.number()))
		return sort, nil
	}
	i := r.number()
	switch {
	case r.err != nil:
	case sort == sortFunc && int(i) < len(c.funcs):
		t, i = c.funcs[i], i+c.scope.shift
	case sort == sortType && int(i) < len(c.scope.types):
		t, i = c.scope.types[i], i+c.scope.shift
	case sort == sortComponent && int(i) < len(c.components):
		t = c.components[i]
	case sort == sortInstance && int(i) < len(c.instances):
		t = c.instances[i]
	default:
		r.fail("there is no definition %d of sort %#x", i, sort)
	}
	w.number(i)
	return sort, t
}

// add takes a definition into the index space of its sort.
func (c *component) add(r *reader, sort byte, t any) {
	switch t := t.(type) {
	case *funcType:
		if sort == sortFunc {
			c.funcs = append(c.funcs, t)
			return
		}
	case instanceType:
		switch sort {
		case sortInstance:
			c.instances = append(c.instances, t)
			return
		case sortComponent:
			c.components = append(c.components, t)
			return
		}
	}
	switch sort {
	case sortCore:
		c.modules.add()
	case sortType:
		c.scope.push(r, t)
	default:
		r.fail("a definition of sort %#x is of another sort", sort)
	}
}

func (c *component) instance(r *reader, w *writer) {
	kind := r.byte()
	w.byte(kind)
	exports := instanceType{}
	switch kind {
	case 0:
		i := r.number()
		w.number(i)
		if r.err != nil || int(i) >= len(c.components) {
			r.fail("there is no component %d", i)
			return
		}
		exports = c.components[i]
		n := r.count()
		w.number(uint32(n))
		for range n {
			w.text(r.text())
			c.part(r, w)
		}
	case 1:
		n := r.count()
		w.number(uint32(n))
		for range n {
			name := c.scope.name(r, w)
			_, exports[name] = c.part(r, w)
		}
	default:
		r.fail("an instance of form %#x is not supported", kind)
	}
	c.instances = append(c.instances, exports)
}

func (c *component) alias(r *reader, w *writer) (done func()) {
	sort, coreSort := r.byte(), byte(0)
	w.byte(sort)
	if sort == sortCore {
		coreSort = r.byte()
		w.byte(coreSort)
	}
	target := r.byte()
	w.byte(target)
	switch target {
	case 0:
		i := r.number()
		w.number(i)
		name := r.text()
		w.text(name)
		if r.err != nil || int(i) >= len(c.instances) {
			r.fail("there is no instance %d", i)
			return func() {}
		}
		if sort == sortCore && coreSort != coreModule {
			r.fail("an alias of core sort %#x is not supported", coreSort)
		}
		c.add(r, sort, c.instances[i][name])
	case 1:
		w.number(c.coreInstances.get(r, r.number()))
		w.text(r.text())
		if sort == sortCore && coreSort == 0 {
			return c.coreFuncs.add
		}
	case 2:
		c.outerAlias(r, w, sort, coreSort)
	default:
		r.fail("an alias of form %#x is not supported", target)
	}
	return func() {}
}

func (c *component) outerAlias(r *reader, w *writer, sort, coreSort byte) {
	if sort == sortType {
		c.scope.push(r, c.scope.outerType(r, w))
		return
	}
	count, i := r.number(), r.number()
	w.number(count)
	at := c.scope
	for range count {
		if at = at.outer; at == nil {
			r.fail("an alias leads out of the component")
			return
		}
	}
	switch {
	case sort == sortComponent && int(i) < len(at.of.components):
		c.components = append(c.components, at.of.components[i])
	case sort == sortCore && coreSort == coreModule:
		i = at.of.modules.get(r, i)
		c.modules.add()
	case sort == sortCore && coreSort == 0x10: // a core type
	default:
		r.fail("an outer alias of sort %#x is not supported", sort)
	}
	w.number(i)
}

func (c *component) importing(r *reader, w *writer) {
	name := c.scope.name(r, w)
	sort, t := c.scope.extern(r, w)
	switch {
	case name == Import:
		r.fail("the import %s is the host's own", Import)
	case sort == sortComponent:
		r.fail("the import %q is a component", name)
	case sort != sortType: // which is in the scope
		c.add(r, sort, t)
	}
}

func (c *component) export(r *reader, w *writer) {
	name := c.scope.name(r, w)
	sort, t := c.part(r, w)
	ascribed := r.byte()
	w.byte(ascribed)
	if ascribed == 1 {
		var as any
		before := len(c.scope.types)
		if _, as = c.scope.extern(r, w); as != nil {
			t = as
		}
		c.scope.types = c.scope.types[:before] // the export itself is one
	} else if ascribed != 0 {
		r.fail("%#x is not the presence of a type", ascribed)
	}
	c.add(r, sort, t)
	c.exports[name] = t
}

// options are those of canon lift and lower that matter here.
type options struct {
	memory    uint32
	hasMemory bool
	wide      bool // strings are not UTF-8
}

func (c *component) options(r *reader, w *writer) options {
	var o options
	n := r.count()
	w.number(uint32(n))
	for range n {
		kind := r.byte()
		w.byte(kind)
		switch kind {
		case 0:
		case 1, 2:
			o.wide = true
		case 3:
			o.memory, o.hasMemory = r.number(), true
			w.number(o.memory)
		case 4, 5:
			w.number(c.useFunc(r, r.number()))
		default:
			r.fail("the option %#x of a function is not supported", kind)
		}
	}
	return o
}

func (c *component) canon(r *reader) {
	kind := r.byte()
	w := writer{1, kind}
	switch kind {
	case 0x00:
		c.lift(r, w)
	case 0x01:
		w.byte(r.byte())
		i := r.number()
		if r.err != nil || int(i) >= len(c.funcs) {
			r.fail("there is no function %d", i)
			return
		}
		w.number(i + c.scope.shift)
		f, o := c.funcs[i], c.options(r, &w)
		c.scope.root.writtenOut(r, f)
		c.out.section(8, w)
		c.coreFuncs.add()
		if !f.params.dynamic || !o.hasMemory {
			return // without memory the engine refuses lists
		}
		if len(c.pending) > 0 && c.pending[0].options != o {
			c.flush(r)
		}
		at := len(c.coreFuncs.to) - 1
		c.pending = append(c.pending, &wrap{of: at, core: c.coreFuncs.to[at], fn: f, options: o})
	case 0x02:
		r.fail("it makes handles of a resource of its own, which no tool needs; the engine would keep any number of them")
	case 0x03, 0x04:
		c.scope.typeIndex(r, &w)
		c.out.section(8, w)
		c.coreFuncs.add()
	default:
		r.fail("the built-in function %#x is not supported", kind)
	}
}

func (c *component) lift(r *reader, w writer) {
	w.byte(r.byte())
	core := c.useFunc(r, r.number())
	var rest writer
	o := c.options(r, &rest)
	f := indexed[*funcType](c.scope, r, &rest, "a function")
	if r.err != nil {
		return
	}
	c.scope.root.writtenOut(r, f)
	if f.result != nil && f.result.dynamic && o.hasMemory {
		core = c.wrap(r, []*wrap{{of: -1, core: core, fn: f, lift: true, options: o}})
	}
	w.number(core)
	w.raw(rest)
	c.out.section(8, w)
	c.funcs = append(c.funcs, f)
}

// flush checks what is pending.
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

// wrap writes a module with the checks of some functions, which have one memory, and an instance of it. It returns the index of the
// first checked function; the others follow.
func (c *component) wrap(r *reader, wraps []*wrap) (first uint32) {
	module := checks(r, wraps, c.scope)
	c.out.section(1, module)
	given := writer{1, 1}
	given.number(uint32(len(wraps) + 2))
	part := func(name string, sort byte, i uint32) {
		given.text(name)
		given.byte(sort)
		given.number(i)
	}
	part("r", 0, 0)
	part("m", 2, wraps[0].options.memory)
	for i, p := range wraps {
		part(fmt.Sprint(i), 0, p.core)
	}
	c.out.section(2, given)
	made := writer{1, 0}
	made.number(c.modules.next)
	made.number(1)
	made.text("")
	made.byte(coreInstance)
	made.number(c.coreInstances.next)
	c.out.section(2, made)
	c.modules.next++
	c.coreInstances.next += 2
	first = c.coreFuncs.next
	for i := range wraps {
		alias := writer{1, sortCore, 0, 1}
		alias.number(c.coreInstances.next - 1)
		alias.text(fmt.Sprint(i))
		c.out.section(6, alias)
		c.coreFuncs.next++
	}
	return first
}
