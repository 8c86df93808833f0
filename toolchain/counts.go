package toolchain

import (
	"encoding/binary"
	"slices"

	"github.com/stilehost/stile/internal/wasmbin"
)

// The engine keeps the reference count of an object in the word before it, at p-4. Calls write to hundreds of objects of an image for
// their counts alone, and each page that they write to is private from then on. So the engine is rewritten: a count that is at least
// frozenCount is neither raised nor lowered. The objects of an image have the count immortalCount: see freeze. Nothing that the
// engine asks of a count distinguishes it from any other above 1.

const (
	// frozenCount is more than a memory of 4 GiB can hold references, each of which takes at least 4 bytes.
	frozenCount   = 1 << 30
	immortalCount = frozenCount + frozenCount/2
	// pointer to count: the count of what p points at is at p+toCount.
	toCount = -4
)

// keepCounts rewrites an engine so that it leaves counts of at least frozenCount as they are.
func keepCounts(wasm []byte) ([]byte, found, error) {
	sections, err := wasmbin.ReadSections(wasm, wasmbin.CoreHeader)
	if err != nil {
		return nil, found{}, err
	}
	k := counts{changes: map[int]bool{}, unclear: map[int]bool{}}
	for i, s := range sections {
		r := s.Reader()
		switch s.ID {
		case wasmbin.SectionType:
			for range r.Count() {
				k.types = append(k.types, readArity(r))
			}
		case wasmbin.SectionImport:
			for range r.Count() {
				k.functions = append(k.functions, importedFunction(r))
			}
			k.imports = len(k.functions)
		case wasmbin.SectionFunction:
			for range r.Count() {
				k.functions = append(k.functions, r.U32())
			}
		case wasmbin.SectionCode:
			n := r.Count()
			out := binary.AppendUvarint(make([]byte, 0, len(s.Body)+len(s.Body)/16), uint64(n))
			for f := range n {
				out = wasmbin.AppendBytes(out, k.rewrite(r, f))
			}
			sections[i].Body = out
		}
		if r.Err != nil {
			return nil, found{}, r.Err
		}
	}
	return wasmbin.WriteSections(wasmbin.CoreHeader, sections), k.found, nil
}

// found is how many stores of an engine change a count, and of how many it is unclear whether they do: see engineDigest.
type found struct{ changes, unclear int }

// foundStores are those of the pinned engine. The unclear ones move numbers in arrays, from the last to the first: in its regular expressions,
// its sorting, and its output of numbers.
var foundStores = found{changes: 465, unclear: 9}

// arity is how many values a function takes and returns.
type arity struct{ params, results int }

// readArity reads the type of a function.
func readArity(r *wasmbin.Reader) arity {
	if form := r.Byte(); form != 0x60 {
		r.Fail("type of form %#x is not supported", form)
	}
	return arity{len(r.Vector()), len(r.Vector())}
}

// counts finds what changes counts in the functions of a module.
type counts struct {
	types     []arity
	functions []uint32
	imports   int
	found     found

	// of the function that is read
	code             *wasmbin.Reader
	heads            map[int]*flow // by the positions of loops
	grown            bool          // heads have
	changes, unclear map[int]bool  // stores, by position
}

// value is what is known of a value: it is root plus delta. A root is the place in the code where a value comes from.
type value struct {
	root  uint64
	delta int32
	// mixed says that the value is p-4 for some p on one way through the code, and something else on another.
	mixed bool
	// from and fromDelta are the address that it was loaded from, or that the value was loaded from that it was made of by adding a
	// constant. from is 0 if it was not. lost says that this was p-4 on a way through the code, and is not known.
	from      uint64
	fromDelta int32
	lost      bool
}

// isCount reports whether there is a count at an address: it is p-4 for some p that is no place on the stack.
func (v value) isCount() bool { return v.delta == toCount && v.root != constant && v.root&onStack == 0 }

// ofCount reports whether a value was loaded from such an address.
func (v value) ofCount() bool {
	return v.from != 0 && value{root: v.from, delta: v.fromDelta}.isCount()
}

const (
	// constant is the root of constants.
	constant = 1 << 62
	// onStack marks a root that is a global: the stack pointer.
	onStack = 1
)

// place is the root of what comes from a position in the code. slot is 0 for a result of an instruction, or tells apart what meets there.
func place(at, slot int) uint64 { return uint64(at)<<20 | uint64(slot)<<1 }

// flow is what is known at a place in the code. It is nil where no execution gets to.
type flow struct{ locals, stack []value }

func (f *flow) clone() *flow {
	if f == nil {
		return nil
	}
	return &flow{slices.Clone(f.locals), slices.Clone(f.stack)}
}

func (f *flow) push(v value) { f.stack = append(f.stack, v) }

func (f *flow) pop() value {
	v := f.stack[len(f.stack)-1]
	f.stack = f.stack[:len(f.stack)-1]
	return v
}

// meet merges what is known on two ways to the position at. It may keep one of them.
func meet(a, b *flow, at int) *flow {
	if a == nil {
		return b.clone()
	}
	if b == nil || slices.Equal(a.locals, b.locals) && slices.Equal(a.stack, b.stack) {
		return a
	}
	n := len(a.locals)
	m := a.clone()
	slot := func(f *flow, i int) *value {
		if i < n {
			return &f.locals[i]
		}
		return &f.stack[i-n]
	}
	slots := n + min(len(a.stack), len(b.stack))
	for i := range slots {
		x, y, z := slot(a, i), slot(b, i), slot(m, i)
		if x.root == y.root && x.delta == y.delta && x.mixed == y.mixed {
			continue
		}
		z.root, z.mixed = place(at, i+1), x.mixed || y.mixed || x.isCount() != y.isCount()
		if x.delta != y.delta {
			z.delta = 0
		}
	}
	for i := range slots {
		x, y, z := slot(a, i), slot(b, i), slot(m, i)
		z.lost = x.lost || y.lost
		if x.from == y.from && x.fromDelta == y.fromDelta {
			continue
		}
		// Both addresses may have met, too.
		z.from = 0
		if x.fromDelta == y.fromDelta && x.from != 0 && y.from != 0 {
			for j := range slots {
				if p, q := slot(a, j), slot(b, j); p.root == x.from && q.root == y.from && p.delta == q.delta {
					z.from = slot(m, j).root
					break
				}
			}
		}
		if z.from == 0 {
			z.lost = z.lost || x.ofCount() || y.ofCount()
			z.fromDelta = 0
		}
	}
	return m
}

// rewrite reads the body of the function f, and returns it with its changes of counts rewritten.
func (k *counts) rewrite(r *wasmbin.Reader, f int) []byte {
	code := r.Sub()
	body := code.Bytes
	params := k.typeOf(&code, k.imports+f).params
	var locals []value
	for i := range params {
		locals = append(locals, value{root: place(0, i+1)})
	}
	groups := code.Count()
	groupsAt := code.Pos
	for range groups {
		n := int(code.U32())
		code.Byte()
		if n > maxLocals-len(locals) {
			code.Fail("more than %d locals", maxLocals)
			break
		}
		locals = append(locals, slices.Repeat([]value{{root: constant}}, n)...)
	}
	start := code.Pos
	k.heads, k.grown, k.code = map[int]*flow{}, true, &code
	for k.grown && code.Err == nil {
		k.grown = false
		clear(k.changes)
		clear(k.unclear)
		code.Pos = start
		k.pass(&flow{locals: slices.Clone(locals)}, k.typeOf(&code, k.imports+f).results)
	}
	if code.Err != nil {
		r.Err = code.Err
		return nil
	}
	k.found.changes += len(k.changes)
	k.found.unclear += len(k.unclear)
	if len(k.changes) == 0 {
		return body
	}
	address, val := uint32(len(locals)), uint32(len(locals)+1)
	w := wasmbin.Writer(binary.AppendUvarint(nil, uint64(groups)+1))
	w.Byte(body[groupsAt:start]...)
	w.Byte(2, 0x7f)
	copied := start
	for code.Pos = start; code.Pos < len(body); {
		at := code.Pos
		instruction(&code)
		if !k.changes[at] {
			continue
		}
		w.Byte(body[copied:at]...)
		w.Op(wasmbin.OpLocalSet, val)
		w.Op(wasmbin.OpLocalSet, address)
		w.Op(wasmbin.OpLocalGet, val)
		w.I32(frozenCount)
		w.Byte(0x48, wasmbin.OpIf, wasmbin.BlockEmpty) // i32.lt_s
		w.Op(wasmbin.OpLocalGet, address)
		w.Op(wasmbin.OpLocalGet, val)
		w.Byte(body[at:code.Pos]...)
		w.Byte(wasmbin.OpEnd)
		copied = code.Pos
	}
	w.Byte(body[copied:]...)
	return w
}

// maxLocals bounds the locals of a function of an engine.
const maxLocals = 1 << 16

func (k *counts) typeOf(r *wasmbin.Reader, function int) arity {
	if function >= len(k.functions) || int(k.functions[function]) >= len(k.types) {
		r.Fail("function %d has no type", function)
		return arity{}
	}
	return k.types[k.functions[function]]
}

// label is a block that has been entered.
type label struct {
	op     byte
	at     int   // where a loop begins
	height int   // of the stack below it
	arity        // params are those of a branch to it
	out    *flow // on its end
	begun  *flow // an if, for its else
}

// pass goes through a function once. What it learns of loops from the branches back is for the next time.
func (k *counts) pass(now *flow, results int) {
	code := k.code
	labels := []label{{op: wasmbin.OpBlock, arity: arity{results, results}}}
	branch := func(depth uint32) {
		if int(depth) >= len(labels) {
			code.Fail("a branch out of the function")
			return
		}
		l := &labels[len(labels)-1-int(depth)]
		if n := len(now.stack) - l.params; n < l.height {
			code.Fail("a branch without its values")
			return
		}
		there := &flow{now.locals, append(slices.Clone(now.stack[:l.height]), now.stack[len(now.stack)-l.params:]...)}
		if l.op == wasmbin.OpLoop {
			old := k.heads[l.at]
			met := meet(old, there, l.at)
			if old == nil || !slices.Equal(old.locals, met.locals) || !slices.Equal(old.stack, met.stack) {
				k.heads[l.at], k.grown = met, true
			}
			return
		}
		l.out = meet(l.out, there, k.end(l))
	}
	for code.Err == nil && len(labels) > 0 {
		at := code.Pos
		op := instruction(code)
		if code.Err != nil {
			return
		}
		operand := wasmbin.Reader{Bytes: code.Bytes[:code.Pos], Pos: at + 1}
		top := &labels[len(labels)-1]
		switch op {
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
			a := k.blockType(&operand)
			if operand.Err != nil {
				code.Fail("a block of an unknown type")
				return
			}
			l := label{op: op, at: at, arity: arity{a.results, a.results}}
			if now != nil {
				if op == wasmbin.OpIf && !k.need(now, top, 1) {
					return
				}
				if op == wasmbin.OpIf {
					now.pop()
				}
				if !k.need(now, top, a.params) {
					return
				}
				l.height = len(now.stack) - a.params
				switch op {
				case wasmbin.OpLoop:
					l.params = a.params
					old := k.heads[at]
					met := meet(old, now, at)
					if old == nil || !slices.Equal(old.locals, met.locals) || !slices.Equal(old.stack, met.stack) {
						k.heads[at], k.grown = met.clone(), true
					}
					now = met.clone()
				case wasmbin.OpIf:
					l.begun = now.clone()
				}
			}
			labels = append(labels, l)
			continue
		case 0x05: // else
			if top.op != wasmbin.OpIf {
				code.Fail("else without if")
				return
			}
			if now != nil {
				top.out = meet(top.out, now, k.end(top))
			}
			top.op = wasmbin.OpBlock
			now, top.begun = top.begun, nil
			continue
		case wasmbin.OpEnd:
			if now != nil && (len(now.stack) != top.height+top.results) {
				code.Fail("a block leaves %d values", len(now.stack)-top.height)
				return
			}
			out := top.out
			if now != nil {
				out = meet(out, now, k.end(top))
			}
			if top.begun != nil { // if without else
				out = meet(out, top.begun, k.end(top))
			}
			labels = labels[:len(labels)-1]
			now = out.clone()
			continue
		}
		if now == nil {
			continue
		}
		switch op {
		case wasmbin.OpUnreachable:
			now = nil
		case wasmbin.OpBr, wasmbin.OpReturn:
			depth := uint32(len(labels) - 1)
			if op == wasmbin.OpBr {
				depth = operand.U32()
			}
			branch(depth)
			now = nil
		case wasmbin.OpBrIf:
			if k.need(now, top, 1) {
				now.pop()
				branch(operand.U32())
			}
		case 0x0e: // br_table
			if k.need(now, top, 1) {
				now.pop()
				for _, depth := range slices.Compact(slices.Sorted(targets(&operand))) {
					branch(depth)
				}
				now = nil
			}
		default:
			k.execute(now, top, op, at, &operand)
		}
	}
	if code.Err == nil && code.Len() > 0 {
		code.Fail("code after the end of a function")
	}
}

func targets(operand *wasmbin.Reader) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for range operand.Count() + 1 {
			if !yield(operand.U32()) {
				return
			}
		}
	}
}

// end is a position for what meets at the end of a block: nothing else meets there.
func (k *counts) end(l *label) int { return len(k.code.Bytes) + l.at }

func (k *counts) blockType(r *wasmbin.Reader) arity {
	switch {
	case r.Peek() == wasmbin.BlockEmpty:
		return arity{}
	case r.IsValueType():
		return arity{0, 1}
	}
	n := r.U32()
	if int(n) >= len(k.types) {
		r.Fail("type %d is not there", n)
		return arity{}
	}
	return k.types[n]
}

// need fails if the stack of a block has fewer than n values.
func (k *counts) need(f *flow, l *label, n int) bool {
	if len(f.stack)-l.height < n {
		k.code.Fail("%d values are needed, %d are there", n, len(f.stack)-l.height)
		return false
	}
	return true
}

// execute follows an instruction that does not branch.
func (k *counts) execute(f *flow, l *label, op byte, at int, operand *wasmbin.Reader) {
	pops, pushes := 0, 0
	switch {
	case op == 0x01:
	case op == wasmbin.OpCall:
		a := k.typeOf(k.code, int(operand.U32()))
		pops, pushes = a.params, a.results
	case op == 0x11: // call_indirect
		n := operand.U32()
		if int(n) >= len(k.types) {
			k.code.Fail("type %d is not there", n)
			return
		}
		pops, pushes = k.types[n].params+1, k.types[n].results
	case op == 0x1a: // drop
		pops = 1
	case op == 0x1b || op == 0x1c: // select
		if k.need(f, l, 3) {
			f.pop()
			b, a := f.pop(), f.pop()
			f.push(meet(&flow{locals: []value{a}}, &flow{locals: []value{b}}, at).locals[0])
		}
		return
	case op >= wasmbin.OpLocalGet && op <= 0x22:
		n := operand.U32()
		if int(n) >= len(f.locals) {
			k.code.Fail("local %d is not there", n)
			return
		}
		if op == wasmbin.OpLocalGet {
			f.push(f.locals[n])
		} else if k.need(f, l, 1) {
			f.locals[n] = f.pop()
			if op == 0x22 { // local.tee
				f.push(f.locals[n])
			}
		}
		return
	case op == wasmbin.OpGlobalGet:
		f.push(value{root: place(at, 0) | onStack})
		return
	case op == wasmbin.OpMemorySize, op == wasmbin.OpI64Const, op == 0x43, op == 0x44, op == 0xd0, op == 0xd2:
		pushes = 1
	case op == wasmbin.OpGlobalSet:
		pops = 1
	case op == wasmbin.OpI32Const:
		f.push(value{root: constant, delta: int32(operand.Signed(32))})
		return
	case op == wasmbin.OpI32Load:
		if k.need(f, l, 1) {
			operand.U32()
			p := f.pop()
			v := value{root: place(at, 0), from: p.root, fromDelta: p.delta + int32(operand.U32())}
			v.lost = p.mixed
			f.push(v)
		}
		return
	case op >= 0x36 && op <= 0x3e: // stores
		if k.need(f, l, 2) {
			operand.U32()
			v, p := f.pop(), f.pop()
			k.store(op, at, p, p.delta+int32(operand.U32()), v)
		}
		return
	case op == wasmbin.OpI32Add, op == 0x6b:
		if !k.need(f, l, 2) {
			return
		}
		b, a := f.pop(), f.pop()
		if op == 0x6b {
			if b.root == constant {
				b.delta = -b.delta
			} else {
				a.root, b.root = 0, 0
			}
		}
		switch {
		case b.root == constant:
			a.delta += b.delta
			f.push(a)
		case a.root == constant:
			b.delta += a.delta
			f.push(b)
		default:
			f.push(value{root: place(at, 0)})
		}
		return
	case op == wasmbin.OpI32Wrap:
		if k.need(f, l, 1) { // the low half of what comes from there
			f.push(f.pop())
		}
		return
	case op == wasmbin.OpBulk:
		switch n := operand.U32(); {
		case n <= 7:
			pops, pushes = 1, 1
		case n == 10 || n == 11: // memory.copy, memory.fill
			pops = 3
		default:
			k.code.UnsupportedBulk(n)
		}
	case op >= 0x29 && op <= 0x35, op == wasmbin.OpMemoryGrow, op == 0x45, op == 0x50, op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b,
		op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f, op >= 0xa8 && op <= 0xc4:
		pops, pushes = 1, 1
	case op >= 0x46 && op <= 0xa6: // what is left has two operands
		pops, pushes = 2, 1
	default:
		k.code.Unsupported(op)
	}
	if !k.need(f, l, pops) {
		return
	}
	f.stack = f.stack[:len(f.stack)-pops]
	for range pushes {
		f.push(value{root: place(at, len(f.stack)-l.height)})
	}
}

// store finds the stores that change a count: what is stored was made of what p-4 held, for the same p. Where that is so on some ways
// through the code only, the store is unclear, and stays as it is.
func (k *counts) store(op byte, at int, p value, delta int32, v value) {
	const i32Store = 0x36
	if op != i32Store {
		return
	}
	to := p
	to.delta = delta
	switch {
	case to.isCount() && v.ofCount() && v.from == p.root && !p.mixed && !v.lost:
		k.changes[at] = true
	case (to.isCount() || p.mixed) && (v.lost || v.ofCount() && (v.delta != 0 || v.from == p.root)):
		k.unclear[at] = true
	}
}
