package codecheck

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/internal/wasmbin"
)

// class is a group of instructions that cost the compiler about the same.
type class uint8

const (
	moves       class = iota // variables, integer constants, ends of blocks, whatever leaves no code
	simple                   // integers: bits, conversions; a choice of two
	sums                     // integers: sums, differences, products; the optimiser reorders chains of them with constants
	offsets                  // sums of a constant and a global that never changes, which linkers make for addresses
	rotates                  // rotations, for which the optimiser knows many rules
	divisions                // integers
	quotients                // integers, by constants: the compiler makes products of them and computes them as late as possible
	floats                   // sums, products, roots and roundings of floats, which have one NaN
	loads                    // from memory and globals
	stores                   // to memory and globals
	far                      // addresses that may be behind the guard of memory
	blocks                   // without a condition
	branches                 // blocks with a condition, and jumps
	loops                    //
	targets                  // of a br_table
	calls                    //
	tables                   // calls through a table, and functions as values
	elements                 // of tables
	bulk                     // ranges of memory and tables, growth
	vectors                  // integers in vectors, lanes, comparisons
	slowVectors              // sums, products, roots and roundings of floats in vectors
	classes
)

// price is the most that one more of something costs, as measured by TestLongEstimate and similar tests: processor time, a part of
// the pressure on registers, and memory while its function is compiled. The time of register allocation grows with the square of
// the pressure in a function: a pressure of 1,000 is a millisecond.
type price struct {
	time     time.Duration
	pressure float64
	bytes    int64
}

var prices = [classes]price{
	moves:       {60, 0, 100},
	simple:      {900, 2.4, 1200},
	sums:        {14_000, 2.4, 2500},
	offsets:     {14_000, 0.1, 2500},
	rotates:     {200_000, 2, 80_000},
	divisions:   {7_000, 1.3, 3000},
	quotients:   {7_000, 25, 3000},
	floats:      {10_000, 5, 5000},
	loads:       {2_500, 0.25, 2000},
	stores:      {2_500, 0.25, 2000},
	far:         {0, 3, 0},
	blocks:      {1_300, 0.1, 1100},
	branches:    {5_000, 3.4, 4000},
	loops:       {16_000, 12, 10_000},
	targets:     {600, 0.2, 700},
	calls:       {5_000, 1, 5000},
	tables:      {40_000, 2, 20_000},
	elements:    {60_000, 9, 40_000},
	bulk:        {8_000, 1, 5000},
	vectors:     {8_000, 2.4, 3500},
	slowVectors: {18_000, 5.2, 6000},
}

// function counts what the compiler finds in the body of a function.
type function struct {
	count   [classes]int
	values  int   // that are passed to and from calls, and returned
	joins   int   // values that may be different on jumps to the same place, for each jump
	merged  int   // the same, once for each place
	merging int   // jumps to places with such values
	rounds  int   // variables set in a loop, for each loop
	held    int   // variables, for each jump and block
	stacked int   // values on the stack of operands, for each jump and block
	nested  int   // squares of the nesting depths of loops, and again for each variable set in it
	block   int   // the most values that a block takes or gives
	ranges  int   // instructions on a range of memory or a table that do not come after a call, where the engine could end them
	kept    int   // values that wait because a computation of several is not needed at once
	again   int   // values that are computed once more, because several branches need them
	raised  []int // functions that it takes as values
}

// leaf is an instruction that takes nothing, if it is one of these.
type leaf uint8

const (
	integer leaf = 1 + iota
	lasting      // a global that never changes
)

// label is an open block.
type label struct {
	loop   bool
	width  int // values that each jump carries
	jumps  int
	height int // of the stack of operands, at its begin
}

// instructions counts the contents of a function's body after its locals.
func (m *moduleCost) instructions(r *wasmbin.Reader, locals, results int) (f function, err error) {
	f.values = results / 4
	height, deep := 0, 0 // height is an upper bound
	words := (locals + 63) / 64
	labels := []label{{width: results}}
	sets := make([]uint64, words) // of each label, a bit for each local that is set in it
	open := func(in *wasmbin.Reader, loop bool, jumps int) {
		t := m.blockType(in)
		width := t.results
		if loop {
			width = t.params
			deep++
			f.nested += deep * deep
		}
		f.block = max(f.block, t.params, t.results)
		f.held += locals
		f.stacked += height
		if loop { // where all of them come together
			f.held += 2 * locals
		}
		labels = append(doubled(labels, 1), label{loop: loop, width: width, jumps: jumps, height: height + t.results})
		sets = doubled(sets, words)[:len(sets)+words]
		clear(sets[len(sets)-words:])
	}
	jump := func(to, weight int) {
		f.held += locals
		f.stacked += height
		if i := len(labels) - 1 - to; i >= 0 {
			labels[i].jumps += weight
		}
	}
	m.again.begin(m, locals, results)
	called := false
	fixed, joins := false, 0 // whether the instruction before is a constant; how many values the one before joins
	var leaves [2]leaf       // the two instructions before
	for r.Len() > 0 {
		op := r.Byte()
		in := *r // reads the operands
		r.Operands(op)
		operands := in
		kind, before, next := moves, called, leaf(0)
		called = false
		switch {
		case op == 0x02: // block
			kind = blocks
			open(&in, false, 0)
		case op == 0x03:
			kind = loops
			open(&in, true, 0)
		case op == 0x04: // if
			kind = branches
			open(&in, false, 1)
		case op == 0x05: // else
			kind = branches
		case op == 0x0b:
			if n := len(labels) - 1; n > 0 {
				l, inner, outer := labels[n], sets[n*words:], sets[(n-1)*words:]
				labels, sets = labels[:n], sets[:n*words]
				changed := 0
				for i, set := range inner {
					outer[i] |= set
					changed += bits.OnesCount64(set)
				}
				if l.jumps > 0 {
					f.merged += l.width + changed
					if l.width+changed > 0 {
						f.merging += l.jumps
					}
					f.joins += (l.jumps + 1) * (l.width + changed + 4*max(0, l.width-1)) // several values may come from the same variables
				}
				if l.loop {
					f.nested += deep * deep * changed
					f.rounds += changed
					deep--
				}
				height = l.height
			}
		case op == 0x0c, op == 0x0d: // br, br_if
			kind = branches
			jump(int(in.U32()), 1)
		case op == 0x0e: // br_table
			kind = branches
			for range in.Count() + 1 {
				f.count[targets]++
				jump(int(in.U32()), 2)
			}
		case op == 0x0f: // return
			kind = branches
			f.values += results / 4
		case op == 0x00: // unreachable
			kind = blocks
		case op == 0x10, op == 0x12:
			kind = calls
			callee := int(in.U32())
			called = callee >= m.imports
			t := m.callType(callee)
			f.values += t.passed()
			height += t.results - t.params
		case op == 0x11, op == 0x13: // calls through a table
			kind = tables
			t := m.typeOf(int(in.U32()))
			f.values += t.passed()
			height += t.results - t.params
		case op == 0x21, op == 0x22: // to a local
			if local := int(in.U32()); local < locals {
				sets[len(sets)-words+local/64] |= 1 << (local % 64)
			}
		case op == 0x20, op == 0x41, op == 0x42: // a local, a constant
		case op == 0x23: // a global
			kind = loads
			if global := int(in.U32()); global < len(m.lasting) && m.lasting[global] {
				next = lasting
			}
		case op == 0x24:
			kind = stores
		case op == 0x25, op == 0x26:
			kind = elements
		case op == 0x1b:
			kind = simple
		case op == 0x1c: // select of a type
			kind = simple
		case op >= 0x28 && op <= 0x3e:
			kind = stores
			if op <= 0x35 {
				kind = loads
			}
			f.address(&in)
		case op == 0x3f: // the size of memory
			kind = loads
		case op == 0x40:
			kind = bulk
		case op == 0x43:
			kind = simple
		case op == 0x44:
			kind = simple
		case op == 0xd2:
			kind = tables
			f.raised = append(f.raised, int(in.U32()))
		case op == 0x77, op == 0x78, op == 0x89, op == 0x8a:
			kind = rotates
		case op >= 0x6a && op <= 0x6c, op >= 0x7c && op <= 0x7e:
			kind = sums
		case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82:
			kind = divisions
			if fixed {
				kind = quotients
			}
		case op >= 0x8d && op <= 0x97, op >= 0x9b && op <= 0xa5, op == 0xb6, op == 0xbb:
			kind = floats
		case op == 0x98, op == 0xa6: // copysign
			kind = floats
		case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // to integers, which can trap
			kind = divisions
		case op >= 0x45 && op <= 0xc4, op == 0xd1:
			kind = simple
		case op == 0xfc:
			sub := in.U32()
			kind = bulkClass(sub)
			if guard.IsRange(sub) && !before {
				f.ranges++
			}
		case op == 0xfd:
			sub := in.U32()
			kind = vectorClass(sub)
			if kind == loads || kind == stores {
				f.address(&in)
			}
		}
		m.again.step(op, kind, &operands)
		switch op {
		case 0x41, 0x42:
			next = integer
		case 0x6a, 0x7c:
			if leaves == [2]leaf{integer, lasting} || leaves == [2]leaf{lasting, integer} {
				kind, fixed = offsets, true // the compiler makes it where it is used, and keeps nothing for it
			}
		}
		leaves = [2]leaf{leaves[1], next}
		if !needs(op, kind) {
			f.kept += joins
		}
		joins = joined(op, kind, fixed)
		fixed = op >= 0x41 && op <= 0x44
		f.count[kind]++
		height = max(0, height+effect(op))
	}
	f.again = m.again.count
	if r.Err != nil {
		err = fmt.Errorf("code: %w", r.Err)
	}
	return f, err
}

// address reads the alignment and the offset of an access to memory.
func (f *function) address(r *wasmbin.Reader) {
	const guard = 16 << 20 // half of it
	r.U32()
	if r.U32() >= guard {
		f.count[far]++
	}
}

// joined returns how many more values a computation keeps than it makes, if all that it takes were computed elsewhere. fixed says that
// the last of them is a constant.
func joined(op byte, kind class, fixed bool) int {
	switch {
	case op == 0x1b, op == 0x1c: // a choice
		return 2
	case kind == vectors, kind == slowVectors:
		return 2
	case fixed:
		return 0
	case kind == simple, kind == sums, kind == rotates, kind == floats:
		return -min(effect(op), 0)
	}
	return 0
}

// needs reports whether an instruction needs the value on top of the stack at once.
func needs(op byte, kind class) bool {
	switch op {
	case 0x04, 0x0d, 0x0e, 0x1a, 0x24: // if, br_if, br_table, drop, a global
		return true
	}
	return op >= 0x28 && op <= 0x3e || kind == divisions || kind == quotients
}

// effect is how much an instruction changes the height of the operand stack,
// or an upper bound. For calls, it does not include the values that they pass.
func effect(op byte) int {
	switch {
	case op == 0x20, op == 0x23, op == 0x3f, op >= 0x41 && op <= 0x44, op == 0xd0, op == 0xd2:
		return 1
	case op == 0xfd: // a constant or splat, at most
		return 1
	case op == 0x1b, op == 0x1c, op >= 0x36 && op <= 0x3e, op == 0x26:
		return -2
	case op == 0x04, op == 0x0d, op == 0x0e, op == 0x11, op == 0x13, op == 0x1a, op == 0x21, op == 0x24,
		op >= 0x46 && op <= 0x4f, op >= 0x51 && op <= 0x66, op >= 0x6a && op <= 0x78, op >= 0x7c && op <= 0x8a, op >= 0x92 && op <= 0x98, op >= 0xa0 && op <= 0xa6:
		return -1
	}
	return 0
}

// bulkClass returns the class of saturating conversions, and of instructions on ranges of memories and tables.
func bulkClass(op uint32) class {
	const tableSize = 16
	switch {
	case op <= 7:
		return simple
	case op == tableSize:
		return loads
	default:
		return bulk
	}
}

// vectorClass returns the class of vector instructions.
func vectorClass(op uint32) class {
	switch {
	case op < 11, op == 92, op == 93:
		return loads
	case op == 11:
		return stores
	case op == 12: // a constant
		return simple
	case op == 13, // a shuffle
		op >= 36 && op <= 70,                                                                           // comparisons
		op >= 130 && op <= 134, op >= 155 && op <= 159, op >= 187 && op <= 191, op >= 214 && op <= 223, // products and comparisons of wide lanes
		op >= 94 && op <= 95, op >= 103 && op <= 106, op >= 116 && op <= 117, op == 122, op == 148, op >= 224 && op <= 255: // floats
		return slowVectors
	default:
		return vectors
	}
}
