package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host/internal/codecheck"
	"github.com/stilehost/stile/internal/usagetest"
)

// measureHere compiles a component from stdin, and writes the time and memory that it took.
func measureHere() {
	wasm, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// Exclude the cost of the process's first compilation, which is not the component's.
	if _, err := compileCode(alone(newModule())); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	before := usagetest.Peak()
	used := usagetest.Processor()
	if _, err := compileCode(wasm); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = binary.Write(os.Stdout, binary.LittleEndian, []int64{int64(usagetest.Processor() - used), int64(usagetest.Peak()-before) << 10})
}

// measure has a process compile a component, like a compiler but without limits.
func measure(t *testing.T, wasm []byte) CompileCost {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], helper("measure")[1:]...)
	cmd.Stdin = bytes.NewReader(wasm)
	cmd.Env = append(os.Environ(), "RAYON_NUM_THREADS="+strconv.Itoa(codecheck.Threads))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var took [2]int64
	if err := binary.Read(bytes.NewReader(out), binary.LittleEndian, took[:]); err != nil {
		t.Fatal(err)
	}
	return CompileCost{time.Duration(took[0]), took[1]}
}

// compileWithin has a compiler's process compile a component, and returns the processor time of the whole process.
func compileWithin(t *testing.T, guarded []byte) time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], helper("compile")[1:]...)
	cmd.Stdin, cmd.Env = bytes.NewReader(guarded), []string{"RAYON_NUM_THREADS=" + strconv.Itoa(codecheck.Threads)}
	_ = cmd.Run() // its limits end it
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// estimates compares estimates with actual compilations.
type estimates struct {
	factor           float64                               // by which the time may exceed the estimate
	always           time.Duration                         // what each compilation may take besides
	slow             func(t *testing.T, anew bool) float64 // how slow this machine is, relative to a common one; nil means 1
	refused, holding int
	ended            int     // by the limits of a compiler's process
	worst            float64 // the highest ratio that passed
}

// check fails if a component takes more than its estimate allows, three times in a row. Where a separate process compiles it, that process must
// end by then.
func (e *estimates) check(t *testing.T, what string, wasm []byte) {
	t.Helper()
	begin := usagetest.Processor()
	guarded, estimate, err := prepare(bytes.Clone(wasm))
	if took := usagetest.Processor() - begin; took > 20*e.always+time.Duration(len(wasm))*time.Microsecond {
		t.Errorf("%s: %v to estimate %d bytes", what, took, len(wasm))
	}
	if err != nil {
		e.refused++
		return
	}
	const alwaysMemory = 24 * mib
	for attempt := range 3 {
		took, slowness := measure(t, guarded), 1.0
		if e.slow != nil {
			slowness = e.slow(t, attempt > 0)
		}
		allowed := CompileCost{
			e.always + time.Duration(e.factor*float64(estimate.Time)*slowness),
			alwaysMemory + int64(estimate.Time.Seconds()*codecheck.MemoryPerSecond),
		}
		if took.Time <= allowed.Time && took.Memory <= min(allowed.Memory, codecheck.MaxMemory) {
			e.holding++
			ratio := float64(took.Time-e.always) / slowness / float64(estimate.Time)
			e.worst = max(e.worst, ratio)
			if testing.Verbose() {
				t.Logf("%s: %v of %v", what, took, estimate)
			}
			return
		}
		if attempt == 2 && estimate.Lane() == LaneHelper {
			e.ended++
			t.Logf("%s, %d bytes: the estimate is %v, and it takes %v", what, len(wasm), estimate, took)
			if used := compileWithin(t, guarded); used > estimate.limits().Time+200*time.Millisecond {
				t.Errorf("%s: a compiler's process ended after %v of processor time; want %v", what, used, estimate.limits().Time)
			}
			return
		}
		if attempt == 2 {
			t.Errorf("%s, %d bytes: the estimate is %v, and it took %v on a machine %.1f times as slow as is common", what, len(wasm), estimate, took, slowness)
		}
	}
}

// TestEstimate compares a few estimates with actual compilations. A slow machine passes it, and an estimate that is far too low does not.
// TestLongEstimate covers all kinds, and compares with the speed of the machine.
func TestEstimate(t *testing.T) {
	e := &estimates{factor: 40, always: 2 * time.Second}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4 {
		e.check(t, fmt.Sprintf("random module %d", i), componentOf(randomModule(r, 3000)))
	}
	for _, name := range []string{"types wide", "exports of distinct types", "ifs that set", "chains of floats", "sums of constants"} {
		e.check(t, name, bombNamed(t, name, 100, 100))
	}
	e.check(t, "rotations", bombNamed(t, "rotations by what was rotated", 20, 50))
	if e.holding < 8 {
		t.Errorf("%d were compiled and %d refused", e.holding, e.refused)
	}
}

// TestEstimatesOfBombs checks the estimates of components built to take long. Those that take more than 40 s or 2 GiB are refused.
func TestEstimatesOfBombs(t *testing.T) {
	for _, c := range []struct {
		name    string
		n, m    int
		least   time.Duration
		refused string
	}{
		{"types wide", 500, 990, 8 * time.Second, ""},     // takes 15 s
		{"types narrow", 100_000, 0, 4 * time.Second, ""}, // takes 6.6 s
		{"types narrow", 600_000, 0, 0, "40.0 s of processor time and 2048 MiB"},
		{"types wide", 5000, 990, 0, "the limit is 40.0 s"},
		{"ifs of many results", 80, 200, 400 * time.Millisecond, ""},           // takes 0.5 s
		{"indirect calls with vectors", 7600, 46, 1450 * time.Millisecond, ""}, // takes 1.2 s and 290 MB
		{"exports wide", 500, 500, 3 * time.Second, ""},                        // 6.7 KB, takes 4.4 s
		{"sparse data", 20, 16<<20 - 100, 1400 * time.Millisecond, ""},         // 2.2 KB, takes 2.7 s and 1 GB
		{"sparse data", 100, 16<<20 - 100, 0, "of memory, and the limit"},
		{"chains of floats", 16_000, 60, 4 * time.Second, ""}, // 112 KB, takes 7.2 s
		{"chains of floats", 36_000, 60, 15 * time.Second, ""},
		{"sums of chased loads", 8000, 0, 2500 * time.Millisecond, ""},              // takes 4.9 s
		{"comparisons of quotients", 8000, 0, 1250 * time.Millisecond, ""},          // takes 2.5 s
		{"comparisons of elements of a table", 1900, 0, 350 * time.Millisecond, ""}, // takes 0.7 s
		{"sums that branches need", 600, 0, 1200 * time.Millisecond, ""},            // takes 2.1 s
		{"sums that branches need", 1000, 0, 0, "of memory, and the limit"},         // 16 KB, took 6.7 s and 1.7 GB
		{"sums that nested branches need", 400, 0, 500 * time.Millisecond, ""},
		{"sums that loops in branches begin with", 400, 0, 600 * time.Millisecond, ""},
		{"sums that tables of jumps lead to", 300, 0, 250 * time.Millisecond, ""},
		{"sums that branches set to themselves", 400, 0, 500 * time.Millisecond, ""},
		{"sums that are needed twice", 400, 0, time.Second, ""},
		{"sums on the stack that branches need", 300, 0, 1700 * time.Millisecond, ""}, // takes 3.3 s
		{"quotients by constants that branches need", 400, 0, 500 * time.Millisecond, ""},
		{"bits that cancel and that branches need", 300, 0, 150 * time.Millisecond, ""},
		{"loops in loops that set", 900, 4, 2 * time.Second, ""},                           // takes 4 s
		{"components in components", 600, 600, 0, "more than 1000 modules and components"}, // 3.6 MB, took more than 86 s and 22 GB
		{"modules in components", 100, 100, 0, "more than 1000 modules and components"},
		{"imports in a component in it", 100_000, 0, time.Second, ""}, // 4 MB, takes 1.2 s
		{"instances of exports in a component in it", 900, 100, 200 * time.Millisecond, ""},
		{"references in globals", 1, 0, 0, "a global of its module is a reference"},
		{"references in locals", 1, 0, 0, "a reference as a local"},
		{"huge table", 1, 50_000_000, 0, "of memory, and the limit"},
	} {
		cost, err := EstimateCompile(bombNamed(t, c.name, c.n, c.m))
		if c.refused == "" && (err != nil || cost.Time < c.least) || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s %d %d: %v, %v; want at least %v, %q", c.name, c.n, c.m, cost, err, c.least, c.refused)
		}
	}
}

// TestEstimatesOfBodies checks functions of one kind of instruction. Long ones are refused or estimated at 0.1 s or more. Short ones
// compile, unless the host refuses that kind. TestLongEstimate compares estimates with measurements.
func TestEstimatesOfBodies(t *testing.T) {
	kinds := map[string]string{
		"references in globals": "a global of its module is a reference",
		"references over calls": "a global of its module is a reference",
		"exceptions":            "instruction 0x1f is not supported",
	}
	for _, b := range bodies {
		var tooMuch *CompileCostError
		cost, err := EstimateCompile(b.build(b.n, b.m))
		_, small := EstimateCompile(b.build(b.n/50, (b.m+9)/10))
		if refused := kinds[b.name]; refused != "" {
			for _, err := range []error{err, small} {
				if err == nil || !strings.Contains(err.Error(), refused) {
					t.Errorf("%s: %v; want %q", b.name, err, refused)
				}
			}
			continue
		}
		if err == nil && cost.Time < 100*time.Millisecond || err != nil && !errors.As(err, &tooMuch) {
			t.Errorf("%s: %v, %v", b.name, cost, err)
		}
		if small != nil {
			t.Errorf("a small one of %s: %v", b.name, small)
		}
		if _, err := compileCode(b.build(b.n/1000, (b.m+9)/10)); err != nil {
			t.Errorf("a tiny one of %s: %v", b.name, err)
		}
	}
}

// TestManyTypes has components with a million types, flat or inside other types. They are refused before most types are read.
func TestManyTypes(t *testing.T) {
	const n = 1_000_000
	for name, body := range map[string][]byte{
		"bool":                        cat(leb(n), bytes.Repeat([]byte{0x7f}, n)),
		"functions":                   cat(leb(n), bytes.Repeat([]byte{0x40, 0, 1, 0}, n)),
		"records":                     cat(leb(n), bytes.Repeat([]byte{0x72, 1, 1, 'a', 0x7f}, n)),
		"interfaces":                  cat(leb(n), bytes.Repeat([]byte{0x42, 0}, n)),
		"components":                  cat(leb(n), bytes.Repeat([]byte{0x41, 0}, n)),
		"in an interface":             cat([]byte{1, 0x42}, leb(n), bytes.Repeat([]byte{1, 0x7f}, n)),
		"in a component":              cat([]byte{1, 0x41}, leb(n), bytes.Repeat([]byte{1, 0x72, 1, 1, 'a', 0x7f}, n)),
		"in interfaces in interfaces": cat(leb(n/10), bytes.Repeat(cat([]byte{0x42, 10}, bytes.Repeat([]byte{1, 0x7f}, 10)), n/10)),
	} {
		wasm := cat(componentOf(), []byte{7}, sized(body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := EstimateCompile(wasm)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "more than 100000 types") || took > 96*mib {
			t.Errorf("%s: %d MiB for %d bytes; %v", name, took/mib, len(wasm), err)
		}
	}
	var refused *LoadError
	if _, err := newHostWith(t, Options{}).Load(t.Context(), cat(componentOf(), []byte{7}, sized(cat(leb(n), bytes.Repeat([]byte{0x7f}, n))))); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "more than 100000 types") {
		t.Errorf("got %v", err)
	}
}

// TestReadingTakesLittle reads functions with nested blocks, each of which must know what changes in it, and long lists of facts about a
// module. Refused components take this memory too.
func TestReadingTakesLittle(t *testing.T) {
	blocks := bodyOf(func(n, _ int) []byte { return cat(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{0x0b}, n)) })
	list := func(section byte, item ...byte) []byte { // 16 MiB of the shortest items
		n := 16 * mib / len(item)
		return componentOf(cat((&testModule{}).encode(), []byte{section}, sized(cat(leb(n), repeat2(n, item)))))
	}
	for name, wasm := range map[string][]byte{
		"4,000,000 blocks, 2,000 locals": blocks(4_000_000, 2_000),
		"80,000 blocks, 2,000 locals":    blocks(80_000, 2_000),
		"80,000 blocks, 99 locals":       blocks(80_000, 99),
		"3,900 blocks, 2,000 locals":     blocks(3_900, 2_000),
		"types":                          list(1, 0x60, 0, 0),
		"imports":                        list(2, 0, 0, 0, 0),
		"functions":                      list(3, 0),
		"tables":                         list(4, 0x70, 0, 0),
		"globals":                        list(6, tI32, 0, 0x41, 0, 0x0b),
		"exports":                        list(7, 0, 0, 0),
		"elements":                       list(9, 1, 0, 0),
		"bodies":                         list(10, 2, 0, 0x0b),
		"data":                           list(11, 1, 0),
		"components":                     nested(1_500_000, componentOf()),
		"sections of functions":          componentOf(cat((&testModule{}).encode(), times(400, sectionOf(3, slices.Repeat([][]byte{{0}}, 40_000)...)))),
	} {
		runtime.GC()
		runtime.GC() // what earlier readings left to be used again is gone
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := EstimateCompile(wasm)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64*mib+8*uint64(len(wasm)) {
			t.Errorf("%s: %d MiB for %d bytes; %v", name, took/mib, len(wasm), err)
		}
	}
}
