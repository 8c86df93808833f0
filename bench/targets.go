package bench

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/bench/internal/measure"
)

// target is a goal of this host, in figures of one run.
type target struct {
	what, want  string
	measurement string
	contenders  []string
	reach       func(r *results) *reached
}

// reached is what a run says about a target.
type reached struct {
	figure, ratio string
	met           bool
}

var targets = []target{
	faster("start (L1) against crun + node", "crun-node", "stile", NewIsolate, 600),
	faster("start (L1) against docker run", "docker", "stile", NewIsolate, 3000),
	faster("start (L1) against gVisor", "gvisor", "stile", NewIsolate, 2000),
	atMost("start of new code (L0), evaluated", "stile-eval", NewCode, 1000),
	faster("start of new code (L0), evaluated, against workerd", "workerd", "stile-eval", NewCode, 5),
	atMost("start of new code (L0), built", "stile-build", NewCode, 20_000),
	{
		"start (L1) against the C floor", "at most 1.5 x slower", "start",
		[]string{"stile", "floor"},
		func(r *results) *reached {
			figure, ratio, ok := r.compareStarts("stile", "floor", NewIsolate)
			if !ok {
				return nil
			}
			return &reached{figure, estimate(ratio), ratio.Median <= 1.5}
		},
	},
	{
		"private memory of a live isolate against crun + node", "at least 40 x less", "memory",
		[]string{"stile", "crun-node"},
		func(r *results) *reached {
			own, other := r.memory["stile"], r.memory["crun-node"]
			if own == nil || other == nil {
				return nil
			}
			a, _ := own.slope(private)
			b, _ := other.slope(private)
			if !sound(a) || !sound(b) {
				return nil
			}
			return &reached{size(a) + " and " + size(b), times(b / a), b/a >= 40}
		},
	},
	{
		"memory of 10,000 live TypeScript isolates", "at most 2,500 MB private", "memory",
		[]string{"stile"},
		func(r *results) *reached {
			p := r.manyLive()
			if p == nil {
				return nil
			}
			mb := p.PrivateKiB * 1024 / 1e6
			return &reached{digits(mb) + " MB", times(mb / 2500), mb <= 2500}
		},
	},
	{
		"10,000 live TypeScript isolates, from start to end", "under 5 s", "memory",
		[]string{"stile"},
		func(r *results) *reached {
			p := r.manyLive()
			if p == nil {
				return nil
			}
			s := (p.StartMS + p.EndMS) / 1e3
			return &reached{duration(s * 1e6), times(s / 5), s < 5}
		},
	},
	{
		"fresh TypeScript calls by one caller", "at least 10,000 a second", "throughput",
		[]string{"stile"},
		func(r *results) *reached {
			rate, ok := r.rate("stile", 1)
			if !ok {
				return nil
			}
			return &reached{digits(rate) + "/s", times(rate / 10_000), rate >= 10_000}
		},
	},
	{
		"fresh TypeScript calls by two callers", "at least 1.6 x those by one", "throughput",
		[]string{"stile"},
		func(r *results) *reached {
			one, ok := r.rate("stile", 1)
			two, both := r.rate("stile", 2)
			if !ok || !both {
				return nil
			}
			return &reached{digits(two) + "/s", times(two / one), two/one >= 1.6}
		},
	},
	{
		"a call with 100,000 stored extensions against 10", "within 10%", "cost", nil,
		func(r *results) *reached {
			few, many := r.cost("stored", 10), r.cost("stored", 100_000)
			if few == nil || many == nil {
				return nil
			}
			ratio := many.CallUS.Median / few.CallUS.Median
			return &reached{duration(many.CallUS.Median) + " and " + duration(few.CallUS.Median), times(ratio), ratio <= 1.1}
		},
	},
}

// faster is a target for one contender's start relative to another's.
func faster(what, slow, fast string, level Level, least float64) target {
	return target{
		what, "at least " + whole(least) + " x faster", "start",
		[]string{fast, slow},
		func(r *results) *reached {
			figure, ratio, ok := r.compareStarts(slow, fast, level)
			if !ok {
				return nil
			}
			return &reached{figure, estimate(ratio), ratio.Median >= least}
		},
	}
}

func atMost(what, name string, level Level, us float64) target {
	return target{
		what, fmt.Sprintf("at most %g ms", us/1e3), "start",
		[]string{name},
		func(r *results) *reached {
			s := r.start(name, Compute, level)
			if s == nil {
				return nil
			}
			return &reached{duration(s.median()), times(s.median() / us), s.median() <= us}
		},
	}
}

// compareStarts is the ratio of two contenders' starts of the task Compute at one level, round by round.
func (r *results) compareStarts(a, b string, level Level) (figure string, ratio measure.Estimate, ok bool) {
	x, y := r.start(a, Compute, level), r.start(b, Compute, level)
	if x == nil || y == nil {
		return "", ratio, false
	}
	ratio, ok = x.result.over(y.result)
	return duration(x.median()) + " and " + duration(y.median()), ratio, ok
}

func estimate(ratio measure.Estimate) string {
	return fmt.Sprintf("%s (%s)", times(ratio.Median), interval(ratio, digits))
}

func (r *results) manyLive() *MemoryPoint {
	if m := r.memory["stile"]; m != nil {
		for i := range m.points {
			if m.points[i].Live == 10_000 {
				return &m.points[i]
			}
		}
	}
	return nil
}

func (r *results) writeTargets(d *document) {
	var rows [][]string
	for _, t := range targets {
		row := []string{t.what, t.want, none, none, r.missing(t)}
		if is := t.reach(r); is != nil {
			row[2], row[3], row[4] = is.figure, is.ratio, map[bool]string{true: "met", false: "MISSED"}[is.met]
		}
		again := "stile bench run --only " + t.measurement
		if len(t.contenders) > 0 {
			again += " --with " + strings.Join(t.contenders, ",")
		}
		rows = append(rows, append(row, code(again+" --out DIR")))
	}
	d.printf("\n## Targets\n")
	d.table(6, []string{"what", "target", "figure", "ratio", "result", "to measure it again"}, rows)
}

// missing says why a target was not measured, as far as known.
func (r *results) missing(t target) string {
	for _, name := range t.contenders {
		for _, p := range r.unavailable {
			if _, ok := r.taking[name]; p.Name == name && !ok {
				return "not measured: " + shorten(p.Reason, 80)
			}
		}
	}
	return "not measured"
}
