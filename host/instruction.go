package host

import "fmt"

// instructions counts the loops, and the uses of tables, in the body of a function, after its locals.
func (r *reader) instructions() (loops, tables int, err error) {
	for len(r.rest) > 0 {
		op := r.byte()
		switch {
		case op == 0x03:
			loops++
			r.numbers(1)
		case op == 0x02, op == 0x04, // block, if
			op == 0x08, op == 0x0c, op == 0x0d, op == 0x10, op == 0x12, op == 0x14, op == 0x15, // throw, branches, calls
			op >= 0x20 && op <= 0x24, op == 0x3f, op == 0x40, // variables, the size of memory
			op == 0x41, op == 0x42, op == 0xd0, op == 0xd2, op == 0xd5, op == 0xd6: // constants, references
			r.numbers(1)
		case op == 0x25, op == 0x26: // elements of a table
			tables++
			r.numbers(1)
		case op == 0x11, op == 0x13: // calls through a table
			tables++
			r.numbers(2)
		case op == 0x0e: // br_table
			r.numbers(r.count() + 1)
		case op == 0x1c: // select of a type
			for range r.count() {
				r.valueType()
			}
		case op == 0x1f: // try_table
			r.numbers(1)
			for range r.count() {
				const tagged = 2
				if r.byte() < tagged {
					r.numbers(1)
				}
				r.numbers(1)
			}
		case op >= 0x28 && op <= 0x3e:
			r.memory()
		case op == 0x43:
			r.skip(4)
		case op == 0x44:
			r.skip(8)
		case op == 0xfc:
			r.bulk(r.number())
		case op == 0xfd:
			r.vector(r.number())
		case op <= 0x01, op == 0x05, op == 0x0a, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1, op == 0xd3, op == 0xd4:
		default:
			return 0, 0, fmt.Errorf("instruction %#x is not supported", op)
		}
	}
	return loops, tables, r.err("code")
}

// bulk passes over the operands of instructions on ranges of memories and tables.
func (r *reader) bulk(op int) {
	switch op {
	case 8, 10, 12, 14:
		r.numbers(2)
	case 9, 11, 13, 15, 16, 17:
		r.numbers(1)
	}
}

// vector passes over the operands of instructions on vectors.
func (r *reader) vector(op int) {
	switch {
	case op <= 11, op == 92, op == 93:
		r.memory()
	case op == 12, op == 13: // a constant, a shuffle
		r.skip(16)
	case op >= 21 && op <= 34:
		r.skip(1)
	case op >= 84 && op <= 91:
		r.memory()
		r.skip(1)
	}
}

// memory passes over an alignment, perhaps with the number of a memory, and an offset.
func (r *reader) memory() {
	const numbered = 1 << 6
	if r.number()&numbered != 0 {
		r.numbers(1)
	}
	r.numbers(1)
}

// numbers passes over n numbers in LEB128, whatever their size and sign.
func (r *reader) numbers(n int) {
	for range n {
		for r.byte() >= 0x80 {
		}
	}
}

func (r *reader) skip(n int) {
	if n > len(r.rest) {
		r.rest, r.failed = nil, true
		return
	}
	r.bytes(n)
}
