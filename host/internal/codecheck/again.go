package codecheck

import (
	"math"

	"github.com/stilehost/stile/internal/wasmbin"
)

// The compiler computes a value without effects where it is needed, and everything that the value is made of. What it has computed serves
// only where each path comes by. So it computes the values that several branches need again in each.

// value is what an instruction without effects leaves. The value 0 stands for all others.
type value struct {
	of     [3]int32
	weight uint8 // of its instructions
	made   bool  // somewhere
	needed bool  // itself, in its region, and not only for another value, from which the compiler may derive that it is not needed
	region int32 // where it was made last
}

// place is an open block.
type place struct {
	loop, dead bool
	either     bool  // an if without an else so far
	height     int32 // of the operands, below those that it takes
	takes      int32
	gives      int32
	since      int32 // when it began
	outer      int32 // the region where it began
	first      int32 // the first region with a jump to its end
	lowest     int32 // the outermost block whose end something in it jumps to
	flow       *flow // nil for most blocks
}

// flow is the values of locals and operands at the begin and the end of a block.
type flow struct {
	before []int32
	after  []int32 // as far as all jumps there agree; empty before the first
}

func (p *place) values() *flow {
	if p.flow == nil {
		p.flow = new(flow)
	}
	return p.flow
}

// again follows the values of a function and counts what the compiler computes several times. A region is what follows a branch, as far
// as each path to it comes by there.
type again struct {
	m        *moduleCost
	results  int
	values   []value
	locals   []int32
	set      []int32 // when a local was set last
	stack    []int32
	places   []place
	regions  []int32 // that are open
	shut     []bool  // by region
	work     []int32
	now      int32
	constant bool // the instruction before is an integer
	dead     bool // no path leads here
	count    int
}

// mostAgain is more than any component may have.
const mostAgain = 2_000_000

func (a *again) begin(m *moduleCost, locals, results int) {
	*a = again{
		m: m, results: results, values: append(a.values[:0], value{}), locals: zeros(a.locals, locals), set: zeros(a.set, locals),
		stack: a.stack[:0], places: a.places[:0], regions: a.regions[:0], shut: a.shut[:0], work: a.work[:0],
	}
	a.region()
	a.open(false, false, signature{results: results})
}

func zeros(s []int32, n int) []int32 {
	s = append(s[:0], make([]int32, n)...)
	return s
}

// region opens one.
func (a *again) region() {
	a.regions = append(a.regions, int32(len(a.shut)))
	a.shut = append(a.shut, false)
}

func (a *again) current() int32 { return a.regions[len(a.regions)-1] }

// leave shuts the regions after one.
func (a *again) leave(to int32) {
	for len(a.regions) > 1 && a.current() > to {
		a.shut[a.current()] = true
		a.regions = a.regions[:len(a.regions)-1]
	}
}

func (a *again) pop() int32 {
	n := len(a.stack) - 1
	if n < 0 {
		return 0 // the engine refuses it
	}
	v := a.stack[n]
	a.stack = a.stack[:n]
	return v
}

func (a *again) push(v int32) { a.stack = append(a.stack, v) }

// top returns the n operands on top.
func (a *again) top(n int) []int32 { return a.stack[max(0, len(a.stack)-n):] }

// compute replaces n operands by a value that is made of them.
func (a *again) compute(n int, weight uint8) {
	v := value{weight: weight}
	for i := range n {
		v.of[i] = a.pop()
	}
	a.values = append(a.values, v)
	a.push(int32(len(a.values) - 1))
}

// take needs n operands, and replaces them by results.
func (a *again) take(n, results int) {
	for range n {
		a.need(a.pop(), true)
	}
	for range results {
		a.push(0)
	}
}

// need makes a value here.
func (a *again) need(v int32, itself bool) {
	if v == 0 {
		return
	}
	here := a.current()
	a.work = append(a.work[:0], v)
	for len(a.work) > 0 && a.count < mostAgain {
		n := len(a.work) - 1
		x := &a.values[a.work[n]]
		a.work = a.work[:n]
		if x.made && (x.region == here || x.needed && !a.shut[x.region]) {
			continue
		}
		if x.made && a.shut[x.region] {
			a.count += int(x.weight)
		}
		x.made, x.needed, x.region = true, false, here
		for _, of := range x.of {
			if of != 0 {
				a.work = append(a.work, of)
			}
		}
	}
	if x := &a.values[v]; itself && x.region == here {
		x.needed = true
	}
}

// doubled returns s with room for n more elements. That makes less garbage than append alone.
func doubled[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = append(make([]T, 0, 2*len(s)+16*n), s...)
	}
	return s
}

func (a *again) open(loop, either bool, t signature) {
	n := len(a.places)
	a.places = doubled(a.places, 1)[:n+1]
	p := &a.places[n]
	*p = place{
		loop: loop, dead: a.dead, either: either, height: int32(max(0, len(a.stack)-t.params)), takes: int32(t.params), gives: int32(t.results), since: a.now,
		outer: a.current(), first: math.MaxInt32, lowest: int32(n), flow: p.flow,
	}
	if f := p.flow; f != nil { // of one that was closed
		f.before, f.after = f.before[:0], f.after[:0]
	}
	if !a.dead && (loop || either) {
		f := p.values()
		f.before = append(append(f.before, a.locals...), a.top(t.params)...)
	}
	if either && !a.dead {
		a.region()
	}
}

// jump goes to a block's end, or to the begin of a loop.
func (a *again) jump(to int) {
	n := len(a.places) - 1 - to
	if n < 0 {
		return // the engine refuses it
	}
	p := &a.places[n]
	width := int(p.gives)
	if p.loop {
		width = int(p.takes)
	}
	for i, when := range a.set {
		if when > p.since {
			a.need(a.locals[i], false)
		}
	}
	for _, v := range a.top(width) {
		a.need(v, false)
	}
	if p.loop {
		return
	}
	p.values().join(a.locals, a.top(width))
	p.first = min(p.first, a.current())
	last := &a.places[len(a.places)-1]
	last.lowest = min(last.lowest, int32(n))
}

// join adds what comes with a jump to the end.
func (f *flow) join(locals, operands []int32) {
	if len(f.after) == 0 {
		f.after = append(append(append(f.after, 0), locals...), operands...)
		return
	}
	for i, v := range locals {
		if f.after[1+i] != v {
			f.after[1+i] = 0
		}
	}
	for i, v := range operands {
		if at := 1 + len(locals) + i; at < len(f.after) && f.after[at] != v {
			f.after[at] = 0
		}
	}
}

// otherwise begins the else of an if.
func (a *again) otherwise() {
	p := &a.places[len(a.places)-1]
	if p.dead || !p.either {
		return
	}
	if !a.dead {
		a.jump(0)
	}
	p.either, a.dead = false, false
	a.leave(p.outer)
	a.region()
	a.restore(p, p.flow.before)
}

// restore sets the locals and the operands of a block.
func (a *again) restore(p *place, to []int32) {
	copy(a.locals, to)
	a.stack = append(a.stack[:min(int(p.height), len(a.stack))], to[len(a.locals):]...)
}

func (a *again) end() {
	n := len(a.places) - 1
	p := &a.places[n]
	switch {
	case n == 0:
		if !a.dead {
			a.take(a.results, 0)
		}
		return
	case p.dead:
	case p.loop:
		for i, when := range a.set {
			if when > p.since {
				a.need(p.flow.before[i], false)
			}
		}
		for _, v := range p.flow.before[len(a.locals):] {
			a.need(v, false)
		}
	default:
		if p.either {
			p.flow.join(p.flow.before[:len(a.locals)], p.flow.before[len(a.locals):])
			p.first = min(p.first, p.outer)
		}
		if p.flow == nil || len(p.flow.after) == 0 {
			break
		}
		if !a.dead {
			a.jump(0)
		}
		a.leave(p.first)
		a.restore(p, p.flow.after[1:])
		a.dead = false
	}
	a.places = a.places[:n]
	if int(p.lowest) < n {
		if !a.dead {
			a.region()
		}
		a.places[n-1].lowest = min(a.places[n-1].lowest, p.lowest)
	}
}

// step follows an instruction.
func (a *again) step(op byte, kind class, r *wasmbin.Reader) {
	a.now++
	constant := a.constant
	a.constant = op == 0x41 || op == 0x42
	switch op {
	case 0x02, 0x03, 0x04:
		if op == 0x04 && !a.dead {
			a.take(1, 0)
		}
		a.open(op == 0x03, op == 0x04, a.m.blockType(r))
		return
	case 0x05:
		a.otherwise()
		return
	case 0x0b:
		a.end()
		return
	}
	if a.dead {
		return
	}
	switch {
	case op == 0x00:
		a.dead = true
	case op == 0x0c:
		a.jump(int(r.U32()))
		a.dead = true
	case op == 0x0d:
		a.take(1, 0)
		a.jump(int(r.U32()))
		a.region()
	case op == 0x0e:
		a.take(1, 0)
		for range r.Count() + 1 {
			a.jump(int(r.U32()))
		}
		a.dead = true
	case op == 0x0f:
		a.take(a.results, 0)
		a.dead = true
	case op == 0x10, op == 0x12:
		t := a.m.callType(int(r.U32()))
		a.take(t.params, t.results)
		a.dead = op == 0x12
	case op == 0x11, op == 0x13:
		t := a.m.typeOf(int(r.U32()))
		a.take(1+t.params, t.results)
		a.dead = op == 0x13
	case op == 0x1a:
		a.pop()
	case op == 0x20:
		if i := int(r.U32()); i < len(a.locals) {
			a.push(a.locals[i])
		}
	case op == 0x21, op == 0x22:
		if i := int(r.U32()); i < len(a.locals) {
			a.locals[i], a.set[i] = a.pop(), a.now
			if op == 0x22 {
				a.push(a.locals[i])
			}
		}
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82:
		a.divide(constant)
	default:
		takes, gives, pure := arity(op, r)
		if pure {
			a.compute(takes, weight(op, kind))
		} else {
			a.take(takes, gives)
		}
	}
}

// weight is how much an instruction without effects costs once more, relative to the cheapest.
func weight(op byte, kind class) uint8 {
	switch {
	case kind == slowVectors:
		return 6
	case kind == rotates:
		return 4
	case op >= 0x45 && op <= 0x5a, op >= 0x67 && op <= 0x8a, op == 0xa7, op == 0xac, op == 0xad, op >= 0xc0 && op <= 0xc4, op == 0xd0, op == 0xd1:
		return 1 // integers
	}
	return 4
}

// divide follows a division. The compiler turns one by a constant into several instructions without effects.
func (a *again) divide(constant bool) {
	const multiplies = 6
	operands := a.top(2)
	if !constant && (len(operands) == 0 || operands[len(operands)-1] == 0) {
		a.take(2, 1)
		return
	}
	for _, v := range operands {
		a.need(v, false)
	}
	a.compute(2, multiplies)
}

// arity returns how many operands an instruction takes and gives, and whether it has no effects.
func arity(op byte, r *wasmbin.Reader) (takes, gives int, pure bool) {
	switch {
	case op == 0x1b, op == 0x1c: // a choice
		return 3, 1, true
	case op == 0x23, op == 0x3f, op == 0xd2:
		return 0, 1, false
	case op == 0x24:
		return 1, 0, false
	case op == 0x26, op >= 0x36 && op <= 0x3e:
		return 2, 0, false
	case op == 0x25, op >= 0x28 && op <= 0x35, op == 0x40, op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1:
		return 1, 1, false
	case op == 0x41, op == 0x42: // part of what it is used for
		return 0, 1, false
	case op == 0x43, op == 0x44, op == 0xd0:
		return 0, 1, true
	case op >= 0x46 && op <= 0x4f, op >= 0x51 && op <= 0x66, op >= 0x6a && op <= 0x78, op >= 0x7c && op <= 0x8a, op >= 0x92 && op <= 0x98, op >= 0xa0 && op <= 0xa6:
		return 2, 1, true
	case op >= 0x45 && op <= 0xc4, op == 0xd1:
		return 1, 1, true
	case op == wasmbin.OpBulk:
		switch sub := r.U32(); {
		case sub <= 7: // a conversion
			return 1, 1, true
		case sub == 9, sub == 13:
			return 0, 0, false
		case sub == 15:
			return 2, 1, false
		case sub == 16:
			return 0, 1, false
		}
		return 3, 0, false
	case op == wasmbin.OpVector:
		return vectorArity(r.U32())
	}
	return 0, 0, false
}

func vectorArity(op uint32) (takes, gives int, pure bool) {
	switch {
	case op <= 10, op == 92, op == 93: // loads
		return 1, 1, false
	case op == 11, op >= 88 && op <= 91: // stores
		return 2, 0, false
	case op >= 84 && op <= 87: // loads of a lane
		return 2, 1, false
	case op == 12:
		return 0, 1, true
	case op == 82: // bits of two
		return 3, 1, true
	case op >= 15 && op <= 20, // splats
		op == 21, op == 22, op == 24, op == 25, op == 27, op == 29, op == 31, op == 33, // lanes
		op == 77, op == 83, op >= 94 && op <= 100, op >= 103 && op <= 106, op == 116, op == 117, op == 122,
		op >= 124 && op <= 129, op == 131, op == 132, op >= 135 && op <= 138, op == 148,
		op >= 160 && op <= 164, op >= 167 && op <= 170, op >= 192 && op <= 196, op >= 199 && op <= 202,
		op >= 224 && op <= 227, op >= 236 && op <= 239, op >= 248 && op <= 255:
		return 1, 1, true
	}
	return 2, 1, true
}
