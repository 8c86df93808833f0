package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Bounds of the code of a component: to compile a function takes time and memory in proportion to its length times the
// values it may hold at once. SpiderMonkey, the largest known guest, has functions of up to 172,000 bytes, 483 locals, a
// product of 11 million and 400 loops, and 410 million in all. QuickJS has 37,000, 50, 3 million, 60 and 15 million.
const (
	maxBody     = 512 * kib
	maxLocals   = 2_000
	maxFunction = 24_000_000
	maxCode     = 1_000_000_000
	maxLoops    = 3_000      // of a function: its time grows with their square
	maxSquares  = 32_000_000 // of the loops of all functions
	maxNested   = 16         // components in one another
)

// checkCode refuses a component whose code would take very long to compile. What is no WebAssembly it leaves to the engine.
// It changes names of functions that the engine must not read, see unmangle.
func checkCode(component []byte) error {
	return checkComponent(component, 0, new(codeCost))
}

// codeCost sums over all functions.
type codeCost struct{ values, squares int }

func checkComponent(wasm []byte, depth int, total *codeCost) error {
	const coreModule, component = 1, 4
	if depth > maxNested {
		return errors.New("components nested too deep")
	}
	return sections(wasm, func(id byte, body []byte) error {
		switch id {
		case coreModule:
			return checkModule(body, total)
		case component:
			return checkComponent(body, depth+1, total)
		default:
			return nil
		}
	})
}

func checkModule(wasm []byte, total *codeCost) error {
	const custom, types, code = 0, 1, 10
	widest := 0
	return sections(wasm, func(id byte, body []byte) (err error) {
		switch id {
		case custom:
			unmangle(body)
		case types:
			widest, err = widestType(body)
		case code:
			err = checkBodies(body, widest, total)
		}
		return err
	})
}

// sections shows each section of a module or component, after its header of eight bytes.
func sections(wasm []byte, show func(id byte, body []byte) error) error {
	for rest := wasm[min(8, len(wasm)):]; len(rest) > 0; {
		body, after, err := vector(rest[1:])
		if err != nil {
			return fmt.Errorf("section %d: %w", rest[0], err)
		}
		if err := show(rest[0], body); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// widestType is the most parameters and results that a function type has: any block may have that type.
func widestType(section []byte) (int, error) {
	const function = 0x60
	widest := 0
	r := reader{rest: section}
	for range r.count() {
		if form := r.byte(); form != function && !r.failed {
			return 0, errors.New("a type that is not of a function")
		}
		width := 0
		for range 2 {
			n := r.count()
			for range n {
				r.valueType()
			}
			width += n
		}
		widest = max(widest, width)
	}
	return widest, r.err("types")
}

// checkBodies checks the functions of a code section.
func checkBodies(section []byte, widest int, total *codeCost) error {
	r := reader{rest: section}
	for i := range r.count() {
		body := reader{rest: r.bytes(r.count())}
		length, locals := len(body.rest), 0
		for range body.count() {
			locals += body.number()
			body.valueType()
			if locals > maxLocals {
				return fmt.Errorf("function %d of its module has more than %d locals", i, maxLocals)
			}
		}
		loops, err := body.loops()
		if err != nil {
			return err
		}
		cost := length * (locals + widest)
		total.values += cost
		total.squares += loops * loops
		switch {
		case length > maxBody:
			return fmt.Errorf("function %d of its module has more than %s", i, size(maxBody))
		case cost > maxFunction:
			return fmt.Errorf("function %d of its module has %d bytes and up to %d values at once, which takes too long to compile", i, length, locals+widest)
		case loops > maxLoops:
			return fmt.Errorf("function %d of its module has more than %d loops", i, maxLoops)
		case total.values > maxCode, total.squares > maxSquares:
			return errors.New("its code takes too long to compile")
		}
	}
	return r.err("code")
}

// reader reads the binary format. After a failure it reads zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number() int {
	n, k := binary.Uvarint(r.rest)
	if k <= 0 || n > math.MaxUint32 {
		r.rest, r.failed = nil, true
		return 0
	}
	r.rest = r.rest[k:]
	return int(n)
}

// count reads how many things of at least a byte follow.
func (r *reader) count() int {
	n := r.number()
	if n > len(r.rest) {
		r.rest, r.failed = nil, true
		return 0
	}
	return n
}

func (r *reader) bytes(n int) []byte {
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	return r.bytes(1)[0]
}

// valueType passes over a type, which is a byte unless it is a reference to a type by number.
func (r *reader) valueType() {
	const nullable, reference = 0x63, 0x64
	if b := r.byte(); b == nullable || b == reference {
		r.number()
	}
}

func (r *reader) err(what string) error {
	if r.failed {
		return errors.New(what + ": truncated")
	}
	return nil
}
