package codecheck

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// signature is how many values a function takes and returns.
type signature struct {
	params, results int
	vectors         int // of the parameters
}

// moduleCost collects what is known about a module while its sections are read.
type moduleCost struct {
	total   *sum
	types   []signature
	funcs   []int  // types of functions
	imports int    // how many of these are imported
	raised  []bool // functions that can be called from outside
	lasting []bool // globals that never change
	start   time.Duration
	again   *again
}

// buffers has what modules used before, which can be megabytes.
var buffers = sync.Pool{New: func() any { return new(again) }}

func checkModule(wasm []byte, total *sum) error {
	m := &moduleCost{total: total, again: buffers.Get().(*again)}
	defer func() {
		m.again.m = nil
		buffers.Put(m.again)
	}()
	if err := total.part(); err != nil {
		return err
	}
	defer func() { total.start = max(total.start, m.start) }()
	return wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		if err := total.section(); err != nil {
			return err
		}
		if id == wasmbin.SectionCustom {
			names := *r // the engine refuses names that cannot be read
			unmangle(&names)
			return nil
		}
		read := [...]func(*wasmbin.Reader) error{1: m.readTypes, m.readImports, m.readFuncs, m.readTables, nil, m.readGlobals, m.readExports, nil, m.readElements, m.readBodies, m.readData}
		if int(id) >= len(read) || read[id] == nil {
			return nil
		}
		if err := read[id](r); err != nil || r.Err != nil {
			return err
		}
		return total.err()
	})
}

func (m *moduleCost) typeOf(t int) signature {
	if t < len(m.types) {
		return m.types[t]
	}
	return signature{} // the engine refuses it
}

// passed returns how much the values of a call count. Its results come through memory. A vector takes up to half more
// memory than another value.
func (s signature) passed() int { return (s.params+s.vectors/2)/4 + 2*s.results }

func (m *moduleCost) callType(f int) signature {
	if f < len(m.funcs) {
		return m.typeOf(m.funcs[f])
	}
	return signature{}
}

// blockType reads the type of a block: none, a value type, or the number of a type.
func (m *moduleCost) blockType(r *wasmbin.Reader) signature {
	if r.IsValueType() {
		empty := r.Peek() == wasmbin.BlockEmpty
		r.ValueType()
		if empty {
			return signature{}
		}
		return signature{results: 1}
	}
	return m.typeOf(int(r.U32()))
}

// raise counts a function that can be called from outside, once.
func (m *moduleCost) raise(f int) {
	if f < len(m.funcs) && !m.raised[f] {
		m.raised[f] = true
		m.total.adapter(1, m.typeOf(m.funcs[f]))
	}
}

func (m *moduleCost) readTypes(r *wasmbin.Reader) error {
	const function, vectorType = 0x60, 0x7b
	for range r.Count() {
		if form := r.Byte(); form != function && r.Err == nil {
			return errors.New("a type that is not of a function")
		}
		var t signature
		for _, width := range []*int{&t.params, &t.results} {
			*width = r.Count()
			for range *width {
				if width == &t.params && r.Peek() == vectorType {
					t.vectors++
				}
				r.ValueType()
			}
		}
		m.types = append(m.types, t)
		m.total.count(1, perType)
		m.total.adapter(1, t)
		if err := m.total.err(); err != nil {
			return err
		}
	}
	return nil
}

func (m *moduleCost) addFunc(t int) {
	m.funcs, m.raised = append(m.funcs, t), append(m.raised, false)
}

func (m *moduleCost) readImports(r *wasmbin.Reader) error {
	for range r.Count() {
		r.Vector()
		r.Vector()
		m.total.count(1, perImport)
		if err := m.total.err(); err != nil {
			return err
		}
		switch kind := r.Byte(); kind {
		case 0:
			m.addFunc(int(r.U32()))
			m.imports++
		case 1:
			r.ValueType()
			r.Limits()
		case 2:
			r.Limits()
		case 3:
			if err := m.readGlobalType(r); err != nil {
				return err
			}
		default:
			return fmt.Errorf("an import of kind %d", kind)
		}
	}
	return nil
}

func (m *moduleCost) readFuncs(r *wasmbin.Reader) error {
	n := r.Count()
	if len(m.funcs)-m.imports+n > maxFunctions && !m.total.guarded {
		return errFunctions
	}
	for range n {
		m.addFunc(int(r.U32()))
	}
	return nil
}

// readTables counts the initial elements of tables, because the engine makes a list of them.
func (m *moduleCost) readTables(r *wasmbin.Reader) error {
	for range r.Count() {
		const initialised = 0x40
		if r.Peek() == initialised {
			r.Take(2)
			r.ValueType()
			least, _, _ := r.Limits()
			m.total.count(int(least), perElement)
			m.readConst(r)
			continue
		}
		r.ValueType()
		least, _, _ := r.Limits()
		m.total.count(int(least), perElement)
	}
	return nil
}

func (m *moduleCost) readGlobals(r *wasmbin.Reader) error {
	for range r.Count() {
		if err := m.readGlobalType(r); err != nil {
			return err
		}
		m.total.count(1, perGlobal)
		m.readConst(r)
	}
	return nil
}

func (m *moduleCost) readExports(r *wasmbin.Reader) error {
	for range r.Count() {
		r.Vector()
		m.total.count(1, perExport)
		kind, index := r.Byte(), int(r.U32())
		if kind == 0 {
			m.raise(index)
		}
	}
	return nil
}

// readConst reads a constant expression. It returns the number if the expression is only that.
func (m *moduleCost) readConst(r *wasmbin.Reader) (number int, known bool) {
	for n := 0; r.Len() > 0; n++ {
		op := r.Byte()
		known = n == 0
		switch op {
		case 0x0b:
			return number, n == 1
		case 0x41: // i32.const
			number = int(uint32(r.Signed(32)))
		case 0x42, 0x23:
			r.Numbers(1)
			number = -1
		case 0x43:
			r.Take(4)
		case 0x44:
			r.Take(8)
		case 0xd0:
			r.ValueType()
		case 0xd2:
			m.raise(int(r.U32()))
		case 0xfd:
			r.U32()
			r.Take(16)
		}
		m.total.count(1, perConst)
	}
	r.Fail("truncated")
	return 0, known
}

func (m *moduleCost) readElements(r *wasmbin.Reader) error {
	const passive, indexed, expressions = 1, 2, 4
	for range r.Count() {
		flags := int(r.U32())
		m.total.count(1, perSegment)
		m.start += perStartSegment
		if flags&passive == 0 {
			if flags&indexed != 0 {
				r.U32()
			}
			m.readConst(r)
		}
		if flags&(passive|indexed) != 0 {
			if flags&expressions != 0 {
				r.ValueType()
			} else {
				r.Byte()
			}
		}
		for range r.Count() {
			m.total.count(1, perElement)
			m.start += perStartElement
			if flags&expressions != 0 {
				m.readConst(r)
			} else {
				m.raise(int(r.U32()))
			}
		}
	}
	return nil
}

// readData counts the image of memory that the engine makes of the segments. The image extends from the first segment to the last
// if that is at most 16 MiB or not much more than their data.
func (m *moduleCost) readData(r *wasmbin.Reader) error {
	const passive, indexed, dense = 1, 2, 16 << 20
	from, to, has, known := math.MaxUint32, 0, 0, true
	for range r.Count() {
		flags := int(r.U32())
		m.total.count(1, perSegment)
		at, fixed := 0, true
		if flags&passive == 0 {
			if flags&indexed != 0 {
				r.U32()
			}
			at, fixed = m.readConst(r)
		}
		n := r.Count()
		r.Take(n)
		m.start += perStartSegment
		if flags&passive == 0 {
			m.start += time.Duration(n>>10) * perStartKilo
		}
		if flags&passive == 0 && n > 0 {
			from, to, has, known = min(from, at), max(to, at+n), has+n, known && fixed
		}
	}
	if has > 0 {
		image := max(dense, 2*has)
		if known {
			image = min(image, to-from)
		}
		m.total.count(image/4096+2, perPage)
	}
	return nil
}

// readBodies checks the functions of a code section.
func (m *moduleCost) readBodies(r *wasmbin.Reader) error {
	for i := range r.Count() {
		body := r.Sub()
		length, locals := body.Len(), 0
		params, results := 0, 0
		if f := m.imports + i; f < len(m.funcs) {
			t := m.typeOf(m.funcs[f])
			params, results = t.params, t.results
		}
		locals += params
		for range body.Count() {
			locals += int(body.U32())
			if isReference(&body) {
				return fmt.Errorf("function %d of its module has a reference as a local, which no component needs", i)
			}
			if locals > maxLocals+params {
				return fmt.Errorf("function %d of its module has more than %d locals", i, maxLocals)
			}
		}
		fits := func(values int) error {
			switch {
			case m.total.guarded: // package guard makes functions longer, within its own bounds
			case length > maxBody:
				return fmt.Errorf("function %d of its module has more than %s", i, printable.Size(maxBody))
			case length*values > maxFunction:
				return fmt.Errorf("function %d of its module has %d bytes and up to %d values at once, which takes too long to compile", i, length, values)
			}
			return nil
		}
		if err := fits(locals); err != nil { // checked before reading, which takes a bit for each local in each block
			return err
		}
		f, err := m.instructions(&body, locals, results)
		if err != nil {
			return err
		}
		for _, raised := range f.raised {
			m.raise(raised)
		}
		if err := fits(locals + f.block); err != nil {
			return err
		}
		m.total.function(f, locals)
		switch {
		case m.total.guarded && f.ranges > 0:
			return fmt.Errorf("function %d of its module changes ranges of memory or tables, and the host cannot add what lets it end that", i)
		case m.total.guarded:
		case f.count[loops] > maxLoops:
			return fmt.Errorf("function %d of its module has more than %d loops", i, maxLoops)
		case f.count[tables]+f.count[elements] > maxTableUses:
			return fmt.Errorf("function %d of its module uses tables more than %d times", i, maxTableUses)
		case m.total.functions > maxFunctions:
			return errFunctions
		}
		if err := m.total.err(); err != nil {
			return err
		}
	}
	return nil
}

// isReference skips a type, and reports whether it is a reference type.
func isReference(r *wasmbin.Reader) bool {
	const vector = 0x7b
	is := r.Len() > 0 && r.Peek() < vector
	r.ValueType()
	return is
}

func (m *moduleCost) readGlobalType(r *wasmbin.Reader) error {
	if isReference(r) {
		return errors.New("a global of its module is a reference, which no component needs")
	}
	m.lasting = append(m.lasting, r.Byte() == 0)
	return nil
}
