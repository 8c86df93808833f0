package host

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/host/internal/codecheck"
)

// Components below shortCompile compile in this process and never wait for larger ones. All others get a separate process if there is a
// program for it, those above longCompile one at a time.
const (
	shortCompile = 100 * time.Millisecond
	longCompile  = time.Second
)

// CompileCost estimates the most that compiling a component takes: processor time on a common machine, and peak memory. The real
// time is at most twice the estimate; most components take a third of it.
type CompileCost struct {
	Time   time.Duration
	Memory int64
}

func (c CompileCost) String() string {
	decimals := 1
	if c.Time < shortCompile { // not 0.0 s
		decimals = 3
	}
	return fmt.Sprintf("%.*f s of processor time and %d MiB of memory", decimals, c.Time.Seconds(), (c.Memory+mib-1)/mib)
}

var mostCost = CompileCost{codecheck.MaxTime, codecheck.MaxMemory}

// CompileLimits are the estimated time from which on Load uses a helper, and the cost above which it refuses a component.
func CompileLimits() (helper time.Duration, most CompileCost) {
	return shortCompile, mostCost
}

// CompileCostError reports a component that was refused because compiling it would cost too much. Estimation stops at the bound, so
// the real cost can be higher.
type CompileCostError struct{ Cost CompileCost }

func (e *CompileCostError) Error() string {
	return fmt.Sprintf("its code takes too long to compile: the estimate is %v, and the limit is %v", e.Cost, mostCost)
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
	case c.Time > mostCost.Time || c.Memory > mostCost.Memory:
		return LaneRefused
	case c.Time >= shortCompile:
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

// estimated is an estimate as the API has it.
func estimated(cost codecheck.Cost, err error) (CompileCost, error) {
	if refused, ok := errors.AsType[*codecheck.CostError](err); ok {
		err = &CompileCostError{CompileCost(refused.Cost)}
	}
	return CompileCost(cost), err
}

func checkCode(component []byte) (CompileCost, error) { return estimated(codecheck.Check(component)) }

func guardCode(component []byte) ([]byte, CompileCost, error) {
	guarded, cost, err := codecheck.Guard(component)
	takes, err := estimated(cost, err)
	return guarded, takes, err
}

// prepare checks a component, which it may modify, and returns what the engine compiles, with its estimate.
func prepare(component []byte) ([]byte, CompileCost, error) {
	if cost, err := checkCode(component); err != nil {
		return nil, cost, err
	}
	return guardCode(component)
}
