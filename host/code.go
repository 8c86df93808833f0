package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Bounds of the code of a component. SpiderMonkey, the largest known guest, has 9 MiB in 12,000 functions of up to 135,000 bytes,
// 120 locals and 130 loops. QuickJS has 0.5 MiB in 1,700 functions.
const (
	maxFunctions = 50_000
	maxBody      = 256 * kib
	maxLocals    = 2_000
	maxFunction  = 24_000_000 // bytes times values
	maxLoops     = 1_000      // of a function
	maxTableUses = 2_000      // of a function
	maxNested    = 16         // levels of components inside components
	maxParts     = 1_000      // modules and components in a component, at any depth
)

// Bounds on the estimated cost of compiling a component.
const (
	maxCompile       = 40 * time.Second
	maxCompileMemory = 2 << 30
	// Components below shortCompile never wait for larger ones. Those above longCompile get a separate process if there is a program
	// for it.
	shortCompile = 100 * time.Millisecond
	longCompile  = time.Second
	// memoryPerSecond is the most memory for one estimated second. Components that take more memory count as taking more time.
	memoryPerSecond = 256 * mib
	// compileThreads is how many functions are compiled at once.
	compileThreads = 4
)

var errFunctions = fmt.Errorf("more than %d functions", maxFunctions)

// CompileCost estimates the most that compiling a component takes: processor time on a common machine, and peak memory. The real
// time is at most twice the estimate; most components take a third of it.
type CompileCost struct {
	Time   time.Duration
	Memory int64
}

func (c CompileCost) String() string {
	return fmt.Sprintf("%.1f s of processor time and %d MiB of memory", c.Time.Seconds(), (c.Memory+mib-1)/mib)
}

// CompileCostError reports a component that was refused because compiling it would take too much. Estimating stops at the
// bound, so the real cost can be higher.
type CompileCostError struct{ Cost CompileCost }

func (e *CompileCostError) Error() string {
	return fmt.Sprintf("its code takes too long to compile: %v by estimate, and the bounds are %v", e.Cost, CompileCost{maxCompile, maxCompileMemory})
}

// Lane is where Load compiles a component.
type Lane string

const (
	LaneInProcess Lane = "in process"
	// LaneHelper is a process that Options.Compiler names, under limits of the operating system. Without that option, it is this
	// process.
	LaneHelper  Lane = "helper"
	LaneRefused Lane = "refused"
)

// Lane returns where Load compiles a component of this estimate.
func (c CompileCost) Lane() Lane {
	switch {
	case c.Time > maxCompile || c.Memory > maxCompileMemory:
		return LaneRefused
	case c.Time > longCompile:
		return LaneHelper
	default:
		return LaneInProcess
	}
}

// EstimateCompile estimates what compiling a component takes. Like Load, it refuses a component with a *CompileCostError, or with an
// error that names a part which no toolchain produces. It leaves input that is not WebAssembly to the engine.
func EstimateCompile(component []byte) (CompileCost, error) {
	_, cost, err := prepare(bytes.Clone(component))
	return cost, err
}

// prepare checks a component, which it may modify, and returns what the engine compiles, with its estimate.
func prepare(component []byte) ([]byte, CompileCost, error) {
	if cost, err := checkCode(component); err != nil {
		return nil, cost, err
	}
	return guardCode(component)
}

// guardCode returns what the engine compiles for a component that passed checkCode. It takes up to 500 bytes for each of up to 100,000 types.
func guardCode(component []byte) ([]byte, CompileCost, error) {
	guarded, names, err := guard.Component(component)
	if err != nil {
		return nil, CompileCost{}, err
	}
	total := codeCost{guarded: true}
	total.count(int(names), perNames)
	err = total.check(guarded)
	return guarded, total.cost(), err
}

// checkCode estimates a component. It may modify the names of functions that the engine must not read; see unmangle.
func checkCode(component []byte) (CompileCost, error) {
	var total codeCost
	err := total.check(component)
	return total.cost(), err
}

func (c *codeCost) check(component []byte) error {
	c.spend(time.Duration(len(component))*perByte.time, int64(len(component))*perByte.bytes)
	items, err := checkComponent(component, 0, c)
	c.spend(time.Duration(items)*perItem.time, int64(items)*perItem.bytes)
	if err == nil {
		err = c.err()
	}
	return err
}

// codeCost sums over all modules.
type codeCost struct {
	guarded   bool // package guard has processed it
	functions int
	parts     int           // modules and components, not counting the outermost
	start     time.Duration // the longest start of one instance of a module
	time      time.Duration
	kept      int64                 // bytes that stay until the end
	working   [compileThreads]int64 // bytes for the functions that take most
}

func (c *codeCost) spend(t time.Duration, kept int64) {
	c.time += min(t, 10*maxCompile) // so that no sum overflows
	c.kept += min(kept, 10*maxCompileMemory)
}

func (c *codeCost) cost() CompileCost {
	memory := c.kept
	for _, w := range c.working {
		memory += w
	}
	return CompileCost{max(c.time, time.Duration(float64(memory)/memoryPerSecond*float64(time.Second))), memory}
}

func (c *codeCost) err() error {
	if cost := c.cost(); cost.Lane() == LaneRefused {
		return &CompileCostError{cost}
	}
	return nil
}

// maxStart bounds how long the instances of a component take to start, before any of their code runs. Nothing can stop them
// meanwhile.
const maxStart = 500 * time.Millisecond

// The start time of the segments of a module whose memory and tables belong to another module.
const (
	perStartSegment = 100 * time.Nanosecond
	perStartElement = 80 * time.Nanosecond
	perStartKilo    = 500 * time.Nanosecond // per 1,024 bytes of data
)

// The cost of the parts of modules and components other than instructions, measured like those.
var (
	perByte    = price{time: 4, bytes: 4}           // of the whole
	perItem    = price{time: 1000, bytes: 100}      // per byte that describes a component
	perNames   = price{time: 30}                    // per byte of the names in its types, wherever they are expanded
	perPart    = price{time: 20_000, bytes: 25_000} // per module or component, up to maxParts: for each, the engine copies a list of those before
	perType    = price{time: 1000, bytes: 500}
	perImport  = price{time: 2000, bytes: 1000}
	perExport  = price{time: 2000, bytes: 1000}
	perGlobal  = price{time: 400, bytes: 150}
	perElement = price{time: 30, bytes: 30}
	perSegment = price{time: 500, bytes: 200}
	perConst   = price{time: 250, bytes: 100} // per instruction of a constant expression
	perPage    = price{time: 8 * 4096, bytes: 13_500}
	perFunc    = price{time: 36_000, bytes: 6000}
	perLocal   = price{time: 100, bytes: 100}
	// An adapter passes values between functions and the host. There is one for each type, each function that is exported or in a
	// table, and each function of the component model.
	perAdapter = price{time: 40_000, bytes: 7_000}
	perValue   = price{time: 3500, bytes: 300} // per value that an adapter passes
	perSquare  = price{time: 10}               // per square of the number of values
	// per value passed to or from a call
	perPassed  = price{time: 4500, bytes: 1500}
	perJoin    = price{time: 1300, bytes: 400} // per value on a jump
	perHeld    = price{time: 60, bytes: 25}    // per variable, for each jump
	perStacked = price{time: 130, bytes: 12}   // per value on the stack of operands, for each jump
	perNest    = price{time: 3}                // per square of a loop's nesting depth
)

// adapter counts n adapters of a type.
func (c *codeCost) adapter(n int, t signature) {
	values, squares := t.params+t.results, t.params*t.params+t.results*t.results
	c.spend(time.Duration(n)*(perAdapter.time+time.Duration(values)*perValue.time+time.Duration(squares)*perSquare.time),
		int64(n)*(perAdapter.bytes+int64(values)*perValue.bytes))
}

// part counts a module or component.
func (c *codeCost) part() error {
	if c.parts++; c.parts > maxParts {
		return fmt.Errorf("more than %d modules and components in it", maxParts)
	}
	c.count(1, perPart)
	return nil
}

func (c *codeCost) count(n int, w price) { c.spend(time.Duration(n)*w.time, int64(n)*w.bytes) }

// function adds a function.
func (c *codeCost) function(f function, locals int) {
	took := perFunc.time + time.Duration(locals)*perLocal.time + time.Duration(f.values)*perPassed.time
	working := int64(locals)*perLocal.bytes + int64(f.values)*perPassed.bytes
	pressure := 0.5*float64(locals) + 0.05*float64(f.values) + 0.4*float64(f.rounds)
	for kind, n := range f.count {
		took += time.Duration(n) * prices[kind].time
		working += int64(n) * prices[kind].bytes
		pressure += float64(n) * prices[kind].pressure
	}
	square := pressure * pressure
	took += time.Duration(square + float64(f.joins)*float64(perJoin.time) + float64(f.held)*float64(perHeld.time) + float64(f.stacked)*float64(perStacked.time) + float64(f.nested)*float64(perNest.time))
	working += int64(square*0.02 + float64(f.joins)*float64(perJoin.bytes) + float64(f.held)*float64(perHeld.bytes) + float64(f.stacked)*float64(perStacked.bytes))
	c.spend(took, perFunc.bytes+working/16)
	least := 0
	for i, w := range c.working {
		if w < c.working[least] {
			least = i
		}
	}
	c.working[least] = max(c.working[least], working)
	c.functions++
}

// checkComponent returns how many bytes of items a component has, including those inside it, if each inner instance has its own
// copy, which the engine makes when it compiles. Each instance in a component can belong only to the largest component defined
// there, because components can neither be passed on nor reached from within. Only the outermost component may have code, because
// joining two that have code makes the engine generate more. Toolchains follow all these rules.
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
	copies, largest, begun := 0, 0, 0
	err = sections(wasm, func(id byte, r *wasmbin.Reader) error {
		body := r.Bytes
		switch id {
		case custom:
			return nil
		case coreModule:
			return checkModule(body, total)
		case component:
			if err := total.part(); err != nil {
				return err
			}
			inside, err := checkComponent(body, depth+1, total)
			largest = max(largest, inside)
			items += inside // as it is defined
			return err
		case instances:
			copies += r.Count()
		case aliases, imports:
			if hasComponent(r, id == imports) {
				return errors.New("it imports or aliases a component; those inside it can be used where they are defined")
			}
		case coreInstances, canonical:
			if depth > 0 {
				return errors.New("a component inside it has code; only the outermost can")
			}
			if id == coreInstances {
				begun += modules(r)
			}
		}
		items += len(body)
		return inSection(id, r.Err)
	})
	if takes := time.Duration(begun) * total.start; err == nil && takes > maxStart {
		return 0, fmt.Errorf("%d instances of a module with so many elements or bytes in segments take up to %v to begin; at most %v", begun, takes.Round(time.Millisecond), maxStart)
	}
	items += copies * (1 + largest)
	if err == nil && time.Duration(items) > maxCompile/perItem.time {
		err = errors.New("it has too many instances of components, which take too long to compile")
	}
	return items, err
}

// modules counts the instances of modules among core instances.
func modules(r *wasmbin.Reader) (n int) {
	const instantiate = 0
	for range r.Count() {
		of := r.Byte() == instantiate
		if of {
			n++
			r.U32()
		}
		for range r.Count() {
			r.Vector() // its name
			r.Byte()
			r.U32()
		}
	}
	return n
}

// hasComponent looks for components among aliases or imports.
func hasComponent(r *wasmbin.Reader, imports bool) (found bool) {
	const core, component = 0, 4
	for range r.Count() {
		if imports {
			const plain, withInterface = 0, 1
			if form := r.Byte(); form != plain && form != withInterface {
				r.Fail("an import of form %#x", form)
			}
			r.Vector() // its name
		}
		sort := r.Byte()
		found = found || sort == component
		switch {
		case imports && sort == core: // a module
			r.Numbers(2)
		case imports && (sort == 2 || sort == 3): // a value or type, which is given or equal to another
			if r.Byte() == 0 || sort == 2 {
				r.Numbers(1)
			}
		case imports:
			r.Numbers(1)
		default:
			if sort == core {
				r.Numbers(1)
			}
			const outer = 2
			if r.Byte() == outer {
				r.Numbers(2)
			} else {
				r.Numbers(1)
				r.Vector() // its name
			}
		}
	}
	return found
}

// signature is how many values a function takes and returns.
type signature struct{ params, results int }

// moduleCost is what is known about a module while its sections are read.
type moduleCost struct {
	total   *codeCost
	types   []signature
	funcs   []int  // types of functions
	imports int    // how many of these are imported
	raised  []bool // functions that can be called from outside
	start   time.Duration
}

func checkModule(wasm []byte, total *codeCost) error {
	m := &moduleCost{total: total}
	if err := total.part(); err != nil {
		return err
	}
	defer func() { total.start = max(total.start, m.start) }()
	return sections(wasm, func(id byte, r *wasmbin.Reader) error {
		if id == wasmbin.SectionCustom {
			unmangle(r)
			return nil
		}
		read := [...]func(*wasmbin.Reader) error{1: m.readTypes, m.readImports, m.readFuncs, m.readTables, nil, m.readGlobals, m.readExports, nil, m.readElements, m.readBodies, m.readData}
		if int(id) >= len(read) || read[id] == nil {
			return nil
		}
		if err := read[id](r); err != nil {
			return err
		}
		if r.Err != nil {
			return inSection(id, r.Err)
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

// passed is how much the values of a call count. Its results come through memory.
func (s signature) passed() int { return s.params/4 + 2*s.results }

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
		return signature{0, 1}
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
	const function = 0x60
	for range r.Count() {
		if form := r.Byte(); form != function && r.Err == nil {
			return errors.New("a type that is not of a function")
		}
		var t signature
		for _, width := range []*int{&t.params, &t.results} {
			*width = r.Count()
			for range *width {
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
			if err := globalType(r); err != nil {
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
		if err := globalType(r); err != nil {
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

// readData counts the image of memory that the engine makes of the segments. It extends from the first to the last, if that is not
// much more than they have or at most 16 MiB.
func (m *moduleCost) readData(r *wasmbin.Reader) error {
	const passive, indexed, dense = 1, 2, 16 * mib
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
			m.start += time.Duration(n/kib) * perStartKilo
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
				return fmt.Errorf("function %d of its module has more than %s", i, size(maxBody))
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
		case f.count[tables] > maxTableUses:
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

// sections shows each section of a module or component, after its header of eight bytes.
func sections(wasm []byte, show func(id byte, r *wasmbin.Reader) error) error {
	for r := (wasmbin.Reader{Bytes: wasm, Pos: min(8, len(wasm))}); r.Len() > 0; {
		id := r.Byte()
		body := r.Sub()
		if r.Err != nil {
			return inSection(id, r.Err)
		}
		if err := show(id, &body); err != nil {
			return err
		}
	}
	return nil
}

func inSection(id byte, err error) error {
	if err != nil {
		return fmt.Errorf("section %d: %w", id, err)
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

func globalType(r *wasmbin.Reader) error {
	if isReference(r) {
		return errors.New("a global of its module is a reference, which no component needs")
	}
	r.Byte() // mutability
	return nil
}
