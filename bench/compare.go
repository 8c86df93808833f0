package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/stilehost/stile/bench/internal/measure"
)

// Comparison is the difference between two runs.
type Comparison struct {
	// Warning says why the runs are hard to compare. It is empty if they are not.
	Warning string   `json:"warning,omitempty"`
	Changes []Change `json:"changes"` // every figure that both runs have
	// OnlyA and OnlyB name figures of one run only.
	OnlyA []string `json:"only_a"`
	OnlyB []string `json:"only_b"`
}

// Change is a figure in two runs.
type Change struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	Ratio float64 `json:"ratio"` // of B to A
	// Interval is the interval of the ratio, by bootstrap over rounds. There is none without enough rounds.
	Interval *measure.Estimate `json:"interval,omitempty"`
	// Changed is set if the change is beyond noise: the interval excludes 1 and the change is more than 3%, or more than 10% without
	// an interval.
	Changed bool `json:"changed"`
}

const fewRounds = 5

// Compare says what changed from the run in a to the run in b.
func Compare(a, b string) (*Comparison, error) {
	linesA, err := ReadLines(a)
	if err != nil {
		return nil, err
	}
	linesB, err := ReadLines(b)
	if err != nil {
		return nil, err
	}
	x, y := gather(linesA), gather(linesB)
	c := &Comparison{Changes: []Change{}, OnlyA: []string{}, OnlyB: []string{}}
	if len(x.machines) > 0 && len(y.machines) > 0 && differ(x.machines[0], y.machines[0]) {
		c.Warning = fmt.Sprintf("the machines are not the same: %s; %s", describe(x.machines[0]), describe(y.machines[0]))
	}
	before, after := x.figures(), y.figures()
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if f, ok := after[what]; ok {
			c.Changes = append(c.Changes, change(what, before[what], f))
		} else {
			c.OnlyA = append(c.OnlyA, what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[what]; !ok {
			c.OnlyB = append(c.OnlyB, what)
		}
	}
	return c, nil
}

// figure is a single value, or the medians of rounds.
type figure struct {
	unit   string
	value  float64
	rounds []float64
}

func ofRounds(unit string, r rounds) figure {
	medians := r.series().Medians()
	return figure{unit, measure.Quantile(medians, 0.5), medians}
}

// figures returns the figures that two runs can have in common, by their description.
func (r *results) figures() map[string]figure {
	all := map[string]figure{}
	for k, s := range r.starts {
		all[fmt.Sprintf("start %s: %s, %s", k.Level, k.Contender, k.Task)] = ofRounds("µs", s.result)
	}
	for name, m := range r.memory {
		for kind, of := range map[string]func(MemoryPoint) float64{"private": private, "proportional": proportional} {
			if kib, ok := m.slope(of); ok && sound(kib) {
				all[fmt.Sprintf("memory: %s, %s", name, kind)] = figure{unit: "KiB", value: kib}
			}
		}
	}
	for name, points := range r.throughput {
		for _, p := range points {
			switch {
			case p.Callers > 0:
				all[fmt.Sprintf("throughput: %s, %s", name, plural(p.Callers, "caller"))] = figure{unit: "/s", value: p.PerSecond}
			case sound(p.P95US):
				all[fmt.Sprintf("p95 at %.0f%%: %s", p.Load*100, name)] = figure{unit: "µs", value: p.P95US}
			}
		}
	}
	for what, points := range r.costs {
		for _, p := range points {
			all[fmt.Sprintf("cost: %s, %s %s", what, whole(p.X), p.Unit)] = figure{unit: "µs", value: p.CallUS.Median}
		}
	}
	for k, of := range r.work {
		all[fmt.Sprintf("work: %s, %s", k.Contender, k.Work)] = ofRounds("ms", of)
	}
	for part, of := range r.parts {
		all["part: "+part] = ofRounds("µs", of)
	}
	for _, f := range hostFigures {
		for _, name := range r.hosts {
			if of := r.hostRounds[hostKey{name, f.figure}]; len(of) > 0 {
				all[fmt.Sprintf("host %s: %s", name, f.title)] = ofRounds(f.unit, of)
			}
		}
	}
	return all
}

func change(what string, a, b figure) Change {
	c := Change{What: what, Unit: a.unit, A: a.value, B: b.value, Ratio: b.value / a.value}
	if min(len(a.rounds), len(b.rounds)) < fewRounds {
		c.Changed = math.Abs(c.Ratio-1) > 0.1
		return c
	}
	e := measure.Ratio(b.rounds, a.rounds)
	c.Interval = &e
	c.Changed = (e.Low > 1 || e.High < 1) && math.Abs(c.Ratio-1) > 0.03
	return c
}

// String returns the comparison for a person, with the largest changes first.
func (c *Comparison) String() string {
	var text strings.Builder
	if c.Warning != "" {
		fmt.Fprintf(&text, "%s\n\n", line(c.Warning))
	}
	changed := slices.DeleteFunc(slices.Clone(c.Changes), func(c Change) bool { return !c.Changed })
	fmt.Fprintf(&text, "%d of %d figures changed beyond noise.\n", len(changed), len(c.Changes))
	slices.SortStableFunc(changed, func(a, b Change) int {
		return cmp.Compare(math.Abs(math.Log(b.Ratio)), math.Abs(math.Log(a.Ratio)))
	})
	if len(changed) > 0 {
		var rows strings.Builder
		rows.WriteString("\nwhat\tA\tB\tB / A\t95% interval\n")
		for _, f := range changed {
			bounds := "none; more than 10%"
			if f.Interval != nil {
				bounds = interval(*f.Interval, digits)
			}
			fmt.Fprintf(&rows, "%s\t%s\t%s\t%s\t%s\n", line(f.What), quantity(f.A, f.Unit), quantity(f.B, f.Unit), times(f.Ratio), bounds)
		}
		t := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
		_, _ = io.WriteString(t, rows.String()) // a Builder does not fail
		_ = t.Flush()
	}
	for _, only := range []struct {
		run  string
		what []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(only.what) > 0 {
			fmt.Fprintf(&text, "\nOnly in %s: %s.\n", only.run, line(strings.Join(only.what, "; ")))
		}
	}
	return text.String()
}
