//go:build long

package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestLongEstimate compares estimates with actual compilations: of components built to take long, of each instruction repeated
// many times, and of random modules. STILE_TEST_SEED=n repeats the random modules of a run.
func TestLongEstimate(t *testing.T) {
	t.Run("bombs", func(t *testing.T) {
		e := strict()
		for _, b := range slices.Concat(bombs, bodies) {
			for _, part := range [][2]int{{8, 1}, {2, 1}, {1, 1}, {1, 8}} {
				if n, m := b.n/part[0], b.m/part[1]; n > 0 && (b.m == 0) == (m == 0) {
					e.check(t, fmt.Sprintf("%s %d %d", b.name, n, m), b.build(n, m))
				}
			}
		}
		e.report(t, len(bombs))
	})
	t.Run("instructions", func(t *testing.T) {
		e := strict()
		for _, o := range ops {
			for _, shape := range [][2]int{{1500, 0}, {3000, 24}, {3000, 120}} {
				m := newModule()
				locals, code := o.sweep(shape[0], shape[1])
				m.add(0, locals, code)
				e.check(t, fmt.Sprintf("instruction %x, %d times in %d locals", o.code, shape[0], shape[1]), alone(m))
			}
		}
		// If many values are live at once, the time grows with the square of the number of instructions.
		for _, code := range []string{"\x6a", "\x6c", "\x92", "\xa0", "\xfd\xae\x01", "\xfd\xe4\x01"} {
			o := ops[slices.IndexFunc(ops, func(o op) bool { return string(o.code) == code })]
			for _, shape := range [][2]int{{14_000, 24}, {14_000, 120}} {
				m := newModule()
				locals, code := o.sweep(shape[0], shape[1])
				m.add(0, locals, code)
				e.check(t, fmt.Sprintf("instruction %x, %d times in %d locals", o.code, shape[0], shape[1]), alone(m))
			}
		}
		e.report(t, 2*len(ops))
	})
	t.Run("instructions in branches", func(t *testing.T) {
		e := strict()
		for _, o := range ops {
			if len(o.in) == 0 || len(o.out) != 1 {
				continue
			}
			for _, n := range []int{100, 250} {
				m := newModule()
				locals, code := o.inBranches(n)
				m.add(0, locals, code)
				e.check(t, fmt.Sprintf("instruction %x, %d times, needed in branches", o.code, n), alone(m))
			}
		}
		e.report(t, len(ops))
	})
	t.Run("templates", func(t *testing.T) {
		e := strict()
		for _, seed := range []uint64{40369, 40471, 40518, 40623} { // these took up to 60 times their estimate
			for _, n := range []int{25, 50, 100, 200} {
				e.check(t, fmt.Sprintf("template %d, %d times", seed, n), templateOf(seed)(n))
			}
		}
		for _, n := range []int{100, 300} { // took 9 times its estimate
			e.check(t, fmt.Sprintf("template 40004, %d times", n), templateOf(40004)(n))
		}
		e.report(t, 10)
		if e.ended > 0 {
			t.Errorf("%d took more than their estimates", e.ended)
		}
	})
	t.Run("random templates", func(t *testing.T) {
		e := strict()
		seed := randomSeed(t)
		const many = 100
		for i := range uint64(many) {
			for _, n := range []int{50, 400} {
				e.check(t, fmt.Sprintf("template %d, %d times", seed+i, n), templateOf(seed+i)(n))
			}
		}
		e.report(t, many)
	})
	t.Run("random", func(t *testing.T) {
		seed := randomSeed(t)
		const many = 200
		e := strict()
		for i := range many {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			e.check(t, fmt.Sprintf("random module %d of seed %d", i, seed), componentOf(randomModule(r, 20_000)))
		}
		e.report(t, many/2)
	})
}

// randomSeed is another one in each run, or STILE_TEST_SEED.
func randomSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("STILE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STILE_TEST_SEED=%d", seed)
	return seed
}

// common is the cost of the reference on a common machine. Estimates are for such a machine.
const common = 400 * time.Millisecond

// reference is a component with a long function and many short ones.
func reference() []byte {
	m := newModule()
	m.add(0, []byte{tF64}, get(0), repeat(12_000, 0x9f), []byte{0x24, 3})
	for range 6000 {
		m.add(0, nil, []byte{0x23, 0, 0x24, 0})
	}
	return alone(m)
}

// strict compares with the speed of this machine. It measures that at the first check, at every tenth, because other load comes and goes, and
// when anew is set.
func strict() *estimates {
	slowness, checked := 1.0, 0
	return &estimates{factor: 2, always: 5 * time.Millisecond, slow: func(t *testing.T, anew bool) float64 {
		if checked%10 == 0 || anew {
			slowness = max(1, float64(measure(t, reference()).Time)/float64(common))
			checked = 0
		}
		checked++
		return slowness
	}}
}

func (e *estimates) report(t *testing.T, least int) {
	t.Logf("%d held, %d refused, %d ended by their limits, at most %.2f times the time", e.holding, e.refused, e.ended, e.worst)
	if e.holding < least {
		t.Errorf("only %d were compiled", e.holding)
	}
}
