package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Bounds of the code of a component. SpiderMonkey, the largest known guest, has 10 MiB in 20,000 functions of up to 172,000 bytes,
// 483 locals, a product of 11 million, 400 loops and 120 uses of tables. QuickJS has 0.5 MiB in 1,700 functions.
const (
	maxFunctions = 50_000 // each takes 6 KB of memory too
	maxBody      = 256 * kib
	maxLocals    = 2_000
	maxFunction  = 24_000_000 // bytes times values
	maxLoops     = 1_000      // of a function
	maxTableUses = 2_000      // of a function
	maxNested    = 16         // components in one another
)

// Bounds of the time to compile a component, as codeCost estimates it. A component with SpiderMonkey is 20 s and
// takes 6, QuickJS is 1.1 s.
const (
	maxCompile  = 40 * time.Second
	longCompile = 3 * time.Second
)

// checkCode refuses a component that would take very long to compile, and estimates how long the others take at most. What is no
// WebAssembly it leaves to the engine. It changes names of functions that the engine must not read, see unmangle.
func checkCode(component []byte) (time.Duration, error) {
	var total codeCost
	items, err := checkComponent(component, 0, &total)
	return total.time + time.Duration(items)*time.Microsecond, err
}

// codeCost sums over all functions.
type codeCost struct {
	functions int
	time      time.Duration
}

// add counts a function. What it takes was measured with functions full of the worst there is of each, on two cores: it grows with
// the length, with the length times the values that may be held at once, and with the squares of length and loops.
func (c *codeCost) add(length, values, loops, tableUses int) {
	microseconds := 20 + length + length*values/32 + length*length/(128*kib) + 16*loops + loops*loops/2 + 40*tableUses
	c.functions++
	c.time += time.Duration(microseconds) * time.Microsecond
}

// checkComponent returns how many bytes of items there are in a component when each instance of those inside it has a copy: the
// engine makes them when it compiles. Each instance in a component can be of the largest of those defined in it, and of no
// other: they can neither be passed on nor reached from within. What joins two that have code is code that the engine makes
// too, so only the outermost has any. Toolchains keep to all that.
func checkComponent(wasm []byte, depth int, total *codeCost) (items int, err error) {
	const (
		custom        = 0
		coreModule    = 1
		coreInstances = 2
		component     = 4
		instances     = 5
		aliases       = 6
		canonical     = 8
		imports       = 10
	)
	if depth > maxNested {
		return 0, errors.New("components nested too deep")
	}
	copies, largest := 0, 0
	err = sections(wasm, func(id byte, body []byte) error {
		r := reader{rest: body}
		switch id {
		case custom:
			return nil
		case coreModule:
			return checkModule(body, total)
		case component:
			inside, err := checkComponent(body, depth+1, total)
			largest = max(largest, inside)
			return err
		case instances:
			copies += r.count()
		case aliases, imports:
			if r.hasComponent(id == imports) {
				return errors.New("it imports or aliases a component; those inside it can be used where they are defined")
			}
		case coreInstances, canonical:
			if depth > 0 {
				return errors.New("a component inside it has code; only the outermost can")
			}
		}
		items += len(body)
		return r.err("section " + strconv.Itoa(int(id)))
	})
	items += copies * (1 + largest)
	if err == nil && time.Duration(items) > maxCompile/time.Microsecond {
		err = errors.New("it has too many instances of components, which take too long to compile")
	}
	return items, err
}

// hasComponent looks for components among aliases or imports.
func (r *reader) hasComponent(imports bool) (found bool) {
	const core, component = 0, 4
	for range r.count() {
		if imports {
			const plain, withInterface = 0, 1
			if form := r.byte(); form != plain && form != withInterface {
				r.failed = true
			}
			r.bytes(r.count()) // its name
		}
		sort := r.byte()
		found = found || sort == component
		switch {
		case imports && sort == core: // a module
			r.numbers(2)
		case imports && (sort == 2 || sort == 3): // a value or type, which is given or equal to another
			if r.byte() == 0 || sort == 2 {
				r.numbers(1)
			}
		case imports:
			r.numbers(1)
		default:
			if sort == core {
				r.numbers(1)
			}
			const outer = 2
			if r.byte() == outer {
				r.numbers(2)
			} else {
				r.numbers(1)
				r.bytes(r.count()) // its name
			}
		}
	}
	return found
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
		loops, tableUses, err := body.instructions()
		if err != nil {
			return err
		}
		values := locals + widest
		total.add(length, values, loops, tableUses)
		switch {
		case length > maxBody:
			return fmt.Errorf("function %d of its module has more than %s", i, size(maxBody))
		case length*values > maxFunction:
			return fmt.Errorf("function %d of its module has %d bytes and up to %d values at once, which takes too long to compile", i, length, values)
		case loops > maxLoops:
			return fmt.Errorf("function %d of its module has more than %d loops", i, maxLoops)
		case tableUses > maxTableUses:
			return fmt.Errorf("function %d of its module uses tables more than %d times", i, maxTableUses)
		case total.functions > maxFunctions:
			return fmt.Errorf("more than %d functions", maxFunctions)
		case total.time > maxCompile:
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
