package guard

import "github.com/stilehost/stile/internal/wasmbin"

// scope is an index space of types: of a component, or of the type of an instance or a component.
type scope struct {
	outer *scope
	root  *root
	types []any // *valueType, *funcType, instanceType, resource
	// shift is added to the indices of a component's types, since one was put before them.
	shift uint32
	// of is the component that the scope belongs to. It is nil for the scope of a type.
	of    *component
	depth int
	// labels counts the bytes of names in the definition that is being read.
	labels int64
}

// root is shared by all scopes.
type root struct {
	u8 *valueType
	// left bounds the work on types, which aliases could multiply.
	left int
	// names bounds the names in types, written out wherever a type is used: the engine copies and hashes them there.
	names int64
}

// writtenOut counts the names in the types that are imported, exported, lifted or lowered.
func (x *root) writtenOut(r *reader, t any) {
	if r.Err != nil {
		return // t may be nil
	}
	switch t := t.(type) {
	case *valueType:
		x.names -= t.names
	case *funcType:
		x.names -= t.params.names
		if t.result != nil {
			x.names -= t.result.names
		}
	case instanceType:
		for name, inner := range t {
			if x.names -= nameSize(name); x.names < 0 {
				break
			}
			x.writtenOut(r, inner)
		}
	}
	if x.names < 0 {
		r.Fail("the names in its types, written out wherever they are used, have more than %d MiB", maxNames>>20)
	}
}

func nameSize(name string) int64 { return int64(len(name)) + 8 }

const (
	maxDepth = 100
	maxTypes = 100_000 // in all scopes together; each takes up to 500 bytes here and 800 in the engine
	maxNames = 8 << 20 // all of WASI has some 100 KiB
)

func (s *scope) push(r *reader, t any) {
	if s.root.left--; s.root.left < 0 {
		r.Fail("more than %d types", maxTypes)
	}
	s.types = append(s.types, t)
}

// typeIndex reads the index of a type and writes the new one.
func (s *scope) typeIndex(r *reader, w *writer) any {
	return s.typeAt(r, w, r.U32())
}

func (s *scope) typeAt(r *reader, w *writer, i uint32) any {
	w.Number(i + s.shift)
	if r.Err == nil && int(i) >= len(s.types) {
		r.Fail("there is no type %d", i)
	}
	if r.Err != nil {
		return nil
	}
	return s.types[i]
}

func indexed[T any](s *scope, r *reader, w *writer, what string) T {
	t, ok := s.typeIndex(r, w).(T)
	if !ok {
		r.Fail("a type is not that of %s", what)
	}
	return t
}

// value reads a value type: the name of a plain one or an index.
func (s *scope) value(r *reader, w *writer) *valueType {
	if r.Peek()&0xc0 == 0x40 {
		b := r.Byte()
		w.Byte(b)
		return s.primitive(r, b)
	}
	i := r.U32() // a positive s33 below 2^32 reads the same, unless its last byte has the sign
	w.Signed(int64(i) + int64(s.shift))
	if r.Err == nil && int(i) >= len(s.types) {
		r.Fail("there is no type %d", i)
	}
	if r.Err != nil {
		return plain(coreI32, 4)
	}
	t, ok := s.types[i].(*valueType)
	if !ok {
		r.Fail("a type is not that of a value")
		return plain(coreI32, 4)
	}
	return t
}

func (s *scope) primitive(r *reader, b byte) *valueType {
	switch b {
	case 0x7d:
		return s.root.u8
	case 0x7f, 0x7e: // bool, s8
		return plain(coreI32, 1)
	case 0x7c, 0x7b: // 16 bits
		return plain(coreI32, 2)
	case 0x7a, 0x79, 0x74: // 32 bits, char
		return plain(coreI32, 4)
	case 0x78, 0x77:
		return plain(coreI64, 8)
	case 0x76:
		return plain(coreF32, 4)
	case 0x75:
		return plain(coreF64, 8)
	case 0x73:
		return stringType()
	}
	r.Fail("value type %#x is not supported", b)
	return plain(coreI32, 4)
}

// optional reads a value type that may be absent.
func (s *scope) optional(r *reader, w *writer) *valueType {
	there := r.Byte()
	w.Byte(there)
	switch there {
	case 0:
		return nil
	case 1:
		return s.value(r, w)
	}
	r.Fail("%#x is not the presence of a type", there)
	return nil
}

// label copies the name of a field, case or parameter.
func (s *scope) label(r *reader, w *writer) {
	name := r.Name()
	w.Text(name)
	s.labels += nameSize(name)
}

// labelled reads names with value types.
func (s *scope) labelled(r *reader, w *writer) []*valueType {
	n := r.Count()
	w.Number(uint32(n))
	var parts []*valueType
	for range n {
		s.label(r, w)
		parts = append(parts, s.value(r, w))
	}
	return parts
}

// define reads one definition of a type and adds it to the scope.
func (s *scope) define(r *reader, w *writer) {
	kind := r.Byte()
	w.Byte(kind)
	s.labels = 0
	switch kind {
	case 0x3f:
		if rep := r.Byte(); rep == 0x7f {
			w.Byte(rep)
		} else {
			r.Fail("the representation %#x of a resource is not supported", rep)
		}
		there := r.Byte()
		w.Byte(there)
		if there == 1 && s.of != nil {
			w.Number(s.of.useFunc(r, r.U32()))
		} else if there != 0 {
			r.Fail("%#x is not the presence of a destructor", there)
		}
		s.push(r, resource{})
	case 0x40:
		f := &funcType{params: fields(s.labelled(r, w), false)}
		f.params.check(r)
		f.params.named(s.labels)
		switch has := r.Byte(); has {
		case 0:
			w.Byte(0)
			f.result = s.value(r, w)
		case 1:
			w.Byte(1, r.Byte())
		default:
			r.Fail("%#x is not the presence of a result", has)
		}
		s.push(r, f)
	case 0x43:
		r.Fail("a function is async, which is not supported")
	case 0x66, 0x65, 0x64:
		r.Fail("streams, futures and contexts of errors are async, which is not supported")
	case 0x41, 0x42:
		if s.depth >= maxDepth {
			r.Fail("types nest deeper than %d", maxDepth)
			return
		}
		inner := &scope{outer: s, root: s.root, depth: s.depth + 1}
		exports := instanceType{}
		n := r.Count()
		w.Number(uint32(n))
		for ; n > 0 && r.Err == nil; n-- {
			inner.declare(r, w, kind == 0x41, exports)
		}
		s.push(r, exports)
	default:
		t := s.composite(r, w, kind)
		t.check(r)
		t.named(s.labels)
		s.push(r, t)
	}
}

// check refuses a type that the engine refuses too, so that the rest of the package need not handle it.
func (t *valueType) check(r *reader) {
	if t.depth > maxDepth || t.size >= maxSize {
		r.Fail("a type has more than %d bytes, or %d levels", maxSize, maxDepth)
	}
}

// composite reads a value type of the given kind.
func (s *scope) composite(r *reader, w *writer, kind byte) *valueType {
	names := func() int {
		n := r.Count()
		w.Number(uint32(n))
		for range n {
			s.label(r, w)
		}
		return n
	}
	switch kind {
	case 0x72:
		return fields(s.labelled(r, w), true)
	case 0x71:
		n := r.Count()
		w.Number(uint32(n))
		var payloads []*valueType
		for range n {
			s.label(r, w)
			payloads = append(payloads, s.optional(r, w))
			if refines := r.Byte(); refines != 0 {
				r.Fail("a case that refines another is not supported")
			}
			w.Byte(0)
		}
		return cases(payloads, true)
	case 0x70:
		return listType(s.value(r, w))
	case 0x6f:
		n := r.Count()
		w.Number(uint32(n))
		var parts []*valueType
		for range n {
			parts = append(parts, s.value(r, w))
		}
		return fields(parts, false)
	case 0x6e:
		return flags(names())
	case 0x6d:
		return cases(make([]*valueType, names()), true)
	case 0x6b:
		return cases([]*valueType{nil, s.value(r, w)}, false)
	case 0x6a:
		ok := s.optional(r, w)
		return cases([]*valueType{ok, s.optional(r, w)}, false)
	case 0x69, 0x68:
		s.typeIndex(r, w)
		return plain(coreI32, 4)
	}
	return s.primitive(r, kind)
}

// declare reads one part of the type of an instance or component.
func (s *scope) declare(r *reader, w *writer, isComponent bool, exports instanceType) {
	kind := r.Byte()
	w.Byte(kind)
	switch {
	case kind == 0x01:
		s.define(r, w)
	case kind == 0x02:
		sort, target := r.Byte(), r.Byte()
		w.Byte(sort, target)
		switch {
		case sort == wasmbin.SortType && target == 0x02:
			s.push(r, s.outerType(r, w))
		case sort == wasmbin.SortType && target == 0x00:
			r.Fail("an alias in a type that is not of an outer type is not supported")
		default:
			r.Fail("an alias in a type of sort %#x is not supported", sort)
		}
	case kind == 0x03 && isComponent:
		s.name(r, w)
		s.extern(r, w)
	case kind == 0x04:
		name := s.name(r, w)
		_, exports[name] = s.extern(r, w)
	default:
		r.Fail("%#x in a type is not supported", kind)
	}
}

// outerType reads an alias of a type further out.
func (s *scope) outerType(r *reader, w *writer) any {
	count, i := r.U32(), r.U32()
	at := s
	for range count {
		if at = at.outer; at == nil {
			r.Fail("an alias leads out of the component")
			return nil
		}
	}
	w.Number(count)
	return at.typeAt(r, w, i)
}

// name reads the name of an import or export.
func (s *scope) name(r *reader, w *writer) string {
	form := r.Byte()
	if form > 1 {
		r.Fail("a name of form %#x is not supported", form)
	}
	name := r.Name()
	w.Byte(form)
	w.Text(name)
	return name
}

// extern reads the type of an import or export. If it introduces a type, extern adds that to the scope.
func (s *scope) extern(r *reader, w *writer) (sort byte, t any) {
	defer func() { s.root.writtenOut(r, t) }()
	sort = r.Byte()
	w.Byte(sort)
	switch sort {
	case wasmbin.SortCore:
		if r.Byte() != wasmbin.CoreModule {
			r.Fail("only core modules can be imported and exported")
		}
		w.Byte(wasmbin.CoreModule)
		w.Number(r.U32()) // indices of core types do not change
		return sort, nil
	case wasmbin.SortFunc:
		return sort, indexed[*funcType](s, r, w, "a function")
	case wasmbin.SortType:
		bound := r.Byte()
		w.Byte(bound)
		switch bound {
		case 0:
			t = s.typeIndex(r, w)
		case 1:
			t = resource{}
		default:
			r.Fail("%#x is not the bound of a type", bound)
		}
		s.push(r, t)
		return sort, t
	case wasmbin.SortComponent, wasmbin.SortInstance:
		return sort, indexed[instanceType](s, r, w, "an instance")
	}
	r.Fail("the sort %#x is not supported", sort)
	return sort, nil
}
