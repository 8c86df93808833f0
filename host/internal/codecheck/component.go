// Package codecheck refuses components whose code no toolchain produces or whose compilation would cost too much. It estimates the
// cost from the bytes alone, before the engine reads them.
package codecheck

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stilehost/stile/host/internal/guard"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Bounds of the code of a component. SpiderMonkey, the largest known guest, has 9 MiB in 12,000 functions of up to 135,000 bytes,
// 120 locals and 130 loops. QuickJS has 0.5 MiB in 1,700 functions. The longest known function, of 420,000 bytes, adjusts CPython's
// addresses when componentize-py has linked it. The estimate bounds what compiling a function takes, and maxBody and maxFunction what reading it
// does.
const (
	maxFunctions = 50_000
	maxBody      = 1 << 20
	maxLocals    = 2_000
	maxFunction  = 24_000_000 // bytes times values
	maxLoops     = 1_000      // of a function
	maxTableUses = 2_000      // of a function
	maxNested    = 16         // levels of components inside components
	maxParts     = 1_000      // modules and components in a component, at any depth
	// MaxSections bounds the sections of a component, at any depth. Those of toolchains have hundreds.
	MaxSections = 50_000
)

// Bounds on the estimated cost of compiling a component.
const (
	MaxTime   = 40 * time.Second
	MaxMemory = 2 << 30
	// MemoryPerSecond is the most memory for one estimated second. Components that take more memory count as taking more time.
	MemoryPerSecond = 256 << 20
	// Threads is how many functions are compiled at once.
	Threads = 4
)

// Cost is the most that compiling a component takes by estimate: processor time on a common machine, and peak memory.
type Cost struct {
	Time   time.Duration
	Memory int64
}

// CostError reports a component that would take more than MaxTime or MaxMemory. Estimating stops there, so the real cost can be higher.
type CostError struct{ Cost Cost }

func (*CostError) Error() string { return "its code takes too long to compile" }

var errFunctions = fmt.Errorf("more than %d functions", maxFunctions)

// Guard returns the bytes that the engine compiles for a component that
// passed [Check], with their estimate. It takes up to 500 bytes for
// each of up to 100,000 types.
func Guard(component []byte) ([]byte, Cost, error) {
	guarded, names, err := guard.Component(component)
	if err != nil {
		return nil, Cost{}, err
	}
	total := sum{guarded: true}
	total.count(int(names), perNames)
	cost, err := total.of(guarded)
	return guarded, cost, err
}

// Guarded estimates a component that comes from [Guard].
func Guarded(component []byte) (Cost, error) { return (&sum{guarded: true}).of(component) }

// Check estimates a component. It may modify the names of functions that the engine must not read; see unmangle.
func Check(component []byte) (Cost, error) { return new(sum).of(component) }

func (c *sum) of(component []byte) (Cost, error) {
	err := c.check(component)
	return c.cost(), err
}

func (c *sum) check(component []byte) error {
	c.spend(time.Duration(len(component))*perByte.time, int64(len(component))*perByte.bytes)
	items, err := checkComponent(component, 0, c)
	c.spend(time.Duration(items)*perItem.time, int64(items)*perItem.bytes)
	if err == nil {
		err = c.err()
	}
	return err
}

// sum is the cost of all modules.
type sum struct {
	guarded   bool // package guard has processed it
	functions int
	parts     int           // modules and components, not counting the outermost
	sections  int           // of all of them
	start     time.Duration // the longest start of one instance of a module
	time      time.Duration
	crossed   time.Duration  // the part of perCrossed
	kept      int64          // bytes that stay until the end
	working   [Threads]int64 // bytes for the functions that need the most
}

func (c *sum) spend(t time.Duration, kept int64) {
	c.time += min(t, 10*MaxTime) // so that no sum overflows
	c.kept += min(kept, 10*MaxMemory)
}

func (c *sum) cost() Cost {
	memory := c.kept
	for _, w := range c.working {
		memory += w
	}
	return Cost{max(c.time+c.crossed, time.Duration(float64(memory)/MemoryPerSecond*float64(time.Second))), memory}
}

func (c *sum) err() error {
	if cost := c.cost(); cost.Time > MaxTime || cost.Memory > MaxMemory {
		return &CostError{cost}
	}
	return nil
}

// maxStart bounds how long the instances of a component take to start, before any of their code runs. Nothing can stop them
// meanwhile.
const maxStart = 500 * time.Millisecond

// The time to start the segments of a module whose memory and tables belong to another module.
const (
	perStartSegment = 100 * time.Nanosecond
	perStartElement = 80 * time.Nanosecond
	perStartKilo    = 500 * time.Nanosecond // per 1,024 bytes of data
)

// The cost of the other parts of modules and components, measured like that of instructions.
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
	perJoin    = price{time: 1300, bytes: 400}  // per value on a jump
	perHeld    = price{time: 60, bytes: 25}     // per variable, for each jump
	perStacked = price{time: 130, bytes: 12}    // per value on the stack of operands, for each jump
	perAgain   = price{time: 3000, bytes: 1300} // per integer that is computed once more; see weight
	perWaiting = price{time: 45}                // the same, for each value that waits for a computation
	perNest    = price{time: 3}                 // per square of a loop's nesting depth, and again for each variable set in it
)

// perMerged is the time in nanoseconds for each pair of a value on a jump and a value that jumps to any place in the function merge.
const perMerged = 0.16

// A function with thousands of jumps, each of which passes a few values, takes the time of each pair of a jump and a value on a jump, for some
// numbers of variables and not for others. fewJumps are free, because compiled code has them everywhere. The whole component pays at most
// mostCrossed: it compiles in a process of its own then, which ends in time, and SpiderMonkey has many such functions that take little.
const (
	perCrossed  = 6.0 // nanoseconds
	fewJumps    = 300
	mostCrossed = time.Second
)

// pressureKept is the part of the pressure on registers of a value that waits for a computation.
const pressureKept = 3.75

// adapter counts n adapters of a type.
func (c *sum) adapter(n int, t signature) {
	values, squares := t.params+t.results, t.params*t.params+t.results*t.results
	c.spend(time.Duration(n)*(perAdapter.time+time.Duration(values)*perValue.time+time.Duration(squares)*perSquare.time),
		int64(n)*(perAdapter.bytes+int64(values)*perValue.bytes))
}

// part counts a module or component.
func (c *sum) part() error {
	if c.parts++; c.parts > maxParts {
		return fmt.Errorf("more than %d modules and components in it", maxParts)
	}
	c.count(1, perPart)
	return nil
}

// ErrSections reports a component with more than MaxSections.
var ErrSections = fmt.Errorf("more than %d sections", MaxSections)

// section counts a section. One costs little, but millions fit into a component. Package guard can add many.
func (c *sum) section() error {
	if c.sections++; c.sections > MaxSections && !c.guarded {
		return ErrSections
	}
	return nil
}

func (c *sum) count(n int, w price) { c.spend(time.Duration(n)*w.time, int64(n)*w.bytes) }

// function adds a function.
func (c *sum) function(f function, locals int) {
	took := perFunc.time + time.Duration(locals)*perLocal.time + time.Duration(f.values)*perPassed.time
	working := int64(locals)*perLocal.bytes + int64(f.values)*perPassed.bytes
	pressure := 0.5*float64(locals) + 0.05*float64(f.values) + 0.4*float64(f.rounds)
	// The compiler computes what cannot trap as late as possible, so that what was loaded for it stays live.
	found := f.count[loads] + f.count[vectors] + f.count[divisions] + f.count[quotients] + f.count[calls] + f.count[tables] + f.count[bulk]
	kept := min(f.kept, found)
	pressure += pressureKept * float64(kept)
	for kind, n := range f.count {
		took += time.Duration(n) * prices[kind].time
		working += int64(n) * prices[kind].bytes
		pressure += float64(n) * prices[kind].pressure
	}
	square := pressure * pressure
	waiting := min(float64(kept), math.Sqrt(float64(f.again)))
	took += time.Duration(square + float64(f.joins)*(float64(perJoin.time)+perMerged*float64(f.merged)) + float64(f.held)*float64(perHeld.time) + float64(f.stacked)*float64(perStacked.time) + float64(f.nested)*float64(perNest.time) + float64(f.again)*(float64(perAgain.time)+waiting*float64(perWaiting.time)))
	working += int64(square*0.02 + float64(f.joins)*float64(perJoin.bytes) + float64(f.held)*float64(perHeld.bytes) + float64(f.stacked)*float64(perStacked.bytes) + float64(f.again)*float64(perAgain.bytes))
	c.spend(took, perFunc.bytes+working/16)
	c.crossed = min(mostCrossed, c.crossed+time.Duration(min(perCrossed*float64(max(0, f.merging-fewJumps))*float64(f.joins), float64(mostCrossed))))
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
func checkComponent(wasm []byte, depth int, total *sum) (items int, err error) {
	if depth > maxNested {
		return 0, errors.New("components nested too deep")
	}
	copies, largest, begun, passed := 0, 0, 0, false
	err = wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		if err := total.section(); err != nil {
			return err
		}
		body := r.Bytes
		switch id {
		case wasmbin.SectionCustom:
			return nil
		case wasmbin.SectionCoreModule:
			return checkModule(body, total)
		case wasmbin.SectionComponent:
			if err := total.part(); err != nil {
				return err
			}
			inside, err := checkComponent(body, depth+1, total)
			largest = max(largest, inside)
			items += inside // counted at its definition
			return err
		case wasmbin.SectionInstance:
			copies += r.Count()
		case wasmbin.SectionAlias:
			r.Aliases(func(sort, _ byte) { passed = passed || sort == wasmbin.SortComponent })
		case wasmbin.SectionComponentImport:
			r.Imports(func(_ []byte, sort, _ byte) { passed = passed || sort == wasmbin.SortComponent })
		case wasmbin.SectionCoreInstance, wasmbin.SectionCanon:
			if depth > 0 {
				return errors.New("a component inside it has code; only the outermost can")
			}
			if id == wasmbin.SectionCoreInstance {
				r.CoreInstances(func(uint32) { begun++ })
			}
		}
		if passed {
			return errors.New("it imports or aliases a component; those inside it can be used where they are defined")
		}
		items += len(body)
		return nil
	})
	if takes := time.Duration(begun) * total.start; err == nil && takes > maxStart {
		return 0, fmt.Errorf("%d instances of a module with so many elements or bytes in segments take up to %v to start; the limit is %v", begun, takes.Round(time.Millisecond), maxStart)
	}
	items += copies * (1 + largest)
	if err == nil && time.Duration(items) > MaxTime/perItem.time {
		err = errors.New("it has too many instances of components, which take too long to compile")
	}
	return items, err
}
