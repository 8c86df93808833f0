package bench

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stilehost/stile/bench/internal/measure"
)

// rounds are trials by the number of their round.
type rounds map[int][]float64

// add ignores values that cannot be measurements.
func (r rounds) add(round int, trials ...float64) {
	for _, v := range trials {
		if sound(v) {
			r[round] = append(r[round], v)
		}
	}
}

// sound reports whether v can be a measured time, size or rate. None of our units makes one so small or so large.
func sound(v float64) bool { return v > 1e-9 && v < 1e15 }

func (r rounds) series() measure.Series {
	var s measure.Series
	for _, n := range slices.Sorted(maps.Keys(r)) {
		s = append(s, r[n])
	}
	return s
}

// over is the ratio of r to base, by the rounds that both have.
func (r rounds) over(base rounds) (_ measure.Estimate, ok bool) {
	var a, b measure.Series
	for _, n := range slices.Sorted(maps.Keys(r)) {
		if len(base[n]) > 0 {
			a, b = append(a, r[n]), append(b, base[n])
		}
	}
	if len(a) == 0 {
		return measure.Estimate{}, false
	}
	return a.Over(b), true
}

// startKey separates what must never share a column.
type startKey struct {
	Contender string
	Task      Task
	Level     Level
}

type starts struct {
	startKey
	result, end, cpu rounds
}

// memoryOf is the memory of a contender's idle isolates, by their number.
type memoryOf struct {
	contender string
	points    []MemoryPoint
}

// slope is the memory of one more isolate, in KiB, between the fewest and the most.
func (m memoryOf) slope(of func(MemoryPoint) float64) (kib float64, ok bool) {
	first, last := m.points[0], m.points[len(m.points)-1]
	if first.Live == last.Live {
		return 0, false
	}
	return (of(last) - of(first)) / float64(last.Live-first.Live), true
}

func private(p MemoryPoint) float64      { return p.PrivateKiB }
func proportional(p MemoryPoint) float64 { return p.ProportionalKiB }
func available(p MemoryPoint) float64    { return p.AvailableKiB }

type workKey struct{ Work, Contender string }

type hostKey struct {
	Host string
	What HostFigure
}

// results are the lines of a run, sorted by subject, without values that cannot be figures.
type results struct {
	machines    []measure.Machine
	taking      map[string]Participant
	unavailable []Participant
	starts      map[startKey]*starts
	memory      map[string]*memoryOf
	throughput  map[string][]ThroughputPoint
	costs       map[string][]CostPoint
	work        map[workKey]rounds
	parts       map[string]rounds
	faults      rounds // of the parts
	system      rounds
	idle        []IdlePoint
	hosts       []string // of the protocol, this host first
	hostRounds  map[hostKey]rounds
}

func gather(lines []Line) *results {
	r := &results{
		taking: map[string]Participant{}, starts: map[startKey]*starts{}, memory: map[string]*memoryOf{}, throughput: map[string][]ThroughputPoint{},
		costs: map[string][]CostPoint{}, work: map[workKey]rounds{}, parts: map[string]rounds{}, faults: rounds{}, system: rounds{},
		hostRounds: map[hostKey]rounds{},
	}
	for _, l := range lines {
		switch {
		case l.Machine != nil:
			r.machines = append(r.machines, *l.Machine)
		case l.Contender != nil && l.Contender.Reason != "":
			if !slices.ContainsFunc(r.unavailable, func(p Participant) bool {
				return p.Name == l.Contender.Name && p.Reason == l.Contender.Reason
			}) {
				r.unavailable = append(r.unavailable, *l.Contender)
			}
		case l.Contender != nil:
			r.taking[l.Contender.Name] = *l.Contender
		case l.Start != nil:
			r.addStart(l.Start)
		case l.Memory != nil:
			r.addMemory(l.Memory)
		case l.Throughput != nil && sound(l.Throughput.PerSecond):
			r.throughput[l.Throughput.Contender] = append(r.throughput[l.Throughput.Contender], *l.Throughput)
		case l.Cost != nil && sound(l.Cost.CallUS.Median) && (l.Cost.X == 0 || sound(l.Cost.X)):
			r.costs[l.Cost.What] = append(r.costs[l.Cost.What], *l.Cost)
		case l.Work != nil:
			key := workKey{l.Work.Work, l.Work.Contender}
			if r.work[key] == nil {
				r.work[key] = rounds{}
			}
			r.work[key].add(l.Work.Round, l.Work.MS)
		case l.Parts != nil:
			for part, us := range l.Parts.US {
				if r.parts[part] == nil {
					r.parts[part] = rounds{}
				}
				r.parts[part].add(l.Parts.Round, us)
			}
			r.faults.add(l.Parts.Round, l.Parts.Faults)
			r.system.add(l.Parts.Round, l.Parts.SystemUS)
		case l.Idle != nil:
			r.idle = append(r.idle, *l.Idle)
		case l.Host != nil:
			key := hostKey{l.Host.Host, l.Host.What}
			if r.hostRounds[key] == nil {
				r.hostRounds[key] = rounds{}
			}
			r.hostRounds[key].add(l.Host.Round, l.Host.Values...)
			if !slices.Contains(r.hosts, l.Host.Host) {
				r.hosts = append(r.hosts, l.Host.Host)
				if l.Host.Own {
					r.hosts = append([]string{l.Host.Host}, r.hosts[:len(r.hosts)-1]...)
				}
			}
		}
	}
	maps.DeleteFunc(r.starts, func(_ startKey, s *starts) bool { return len(s.result) == 0 })
	maps.DeleteFunc(r.work, func(_ workKey, of rounds) bool { return len(of) == 0 })
	maps.DeleteFunc(r.hostRounds, func(_ hostKey, of rounds) bool { return len(of) == 0 })
	maps.DeleteFunc(r.parts, func(_ string, of rounds) bool { return len(of) == 0 })
	for _, points := range r.costs {
		slices.SortStableFunc(points, func(a, b CostPoint) int { return cmp.Compare(a.X, b.X) })
	}
	return r
}

func (r *results) addStart(l *StartRound) {
	key := startKey{l.Contender, l.Task, l.Level}
	if r.starts[key] == nil {
		r.starts[key] = &starts{key, rounds{}, rounds{}, rounds{}}
	}
	s := r.starts[key]
	s.result.add(l.Round, l.ResultUS...)
	s.end.add(l.Round, l.EndUS...)
	s.cpu.add(l.Round, l.CPUUS)
}

// addMemory keeps the points of a contender in order. Of two with the same number, the later one counts.
func (r *results) addMemory(p *MemoryPoint) {
	if p.Live <= 0 || !sound(p.PrivateKiB) {
		return
	}
	m := r.memory[p.Contender]
	if m == nil {
		m = &memoryOf{contender: p.Contender}
		r.memory[p.Contender] = m
	}
	at, found := slices.BinarySearchFunc(m.points, p.Live, func(p MemoryPoint, live int) int { return cmp.Compare(p.Live, live) })
	if found {
		m.points[at] = *p
	} else {
		m.points = slices.Insert(m.points, at, *p)
	}
}

// start is the series of a contender, or nil.
func (r *results) start(contender string, t Task, l Level) *starts {
	return r.starts[startKey{contender, t, l}]
}

// ours are this host's contenders, starting with the one that others of its level are compared with.
var ours = []string{"stile-eval", "stile", "stile-hello", "stile-cli", "stile-build"}

// base is this host's series for a task and a level, or nil.
func (r *results) base(t Task, l Level) *starts {
	for _, name := range ours {
		if s := r.start(name, t, l); s != nil {
			return s
		}
	}
	return nil
}

// startsOf are the series of a task and a level, from the fastest.
func (r *results) startsOf(t Task, l Level) []*starts {
	var of []*starts
	for _, key := range slices.SortedFunc(maps.Keys(r.starts), func(a, b startKey) int { return cmp.Compare(a.Contender, b.Contender) }) {
		if key.Task == t && key.Level == l {
			of = append(of, r.starts[key])
		}
	}
	slices.SortStableFunc(of, func(a, b *starts) int { return cmp.Compare(a.median(), b.median()) })
	return of
}

func (s *starts) median() float64 { return measure.Quantile(s.result.series().Medians(), 0.5) }

// tasks and levels are those with figures: the known ones in their order, then the others.
func (r *results) tasks() []Task {
	found := map[Task]bool{}
	for k := range r.starts {
		found[k.Task] = true
	}
	return inOrder(Tasks, found)
}

func (r *results) levels() []Level {
	found := map[Level]bool{}
	for k := range r.starts {
		found[k.Level] = true
	}
	return inOrder([]Level{NewCode, NewIsolate, Live, NewHost}, found)
}

func inOrder[T cmp.Ordered](known []T, found map[T]bool) (all []T) {
	for _, v := range append(slices.Clone(known), slices.Sorted(maps.Keys(found))...) {
		if found[v] {
			all = append(all, v)
			delete(found, v)
		}
	}
	return all
}

// title is the name of a contender in tables and plots.
func (r *results) title(name string) string { return cmp.Or(r.taking[name].Title, name) }

// memories are the contenders with known memory, the smallest per isolate first. Those without a slope come last.
func (r *results) memories() []*memoryOf {
	of := slices.SortedFunc(maps.Values(r.memory), func(a, b *memoryOf) int { return cmp.Compare(a.contender, b.contender) })
	slices.SortStableFunc(of, func(a, b *memoryOf) int {
		x, known := a.slope(private)
		y, too := b.slope(private)
		if known != too {
			return map[bool]int{true: -1, false: 1}[known]
		}
		return cmp.Compare(x, y)
	})
	return of
}

// rate is how many trials a second a number of callers made.
func (r *results) rate(contender string, callers int) (float64, bool) {
	for _, p := range r.throughput[contender] {
		if p.Callers == callers {
			return p.PerSecond, true
		}
	}
	return 0, false
}

// throughputs are the contenders with known throughput, the highest first.
func (r *results) throughputs() []string {
	highest := func(name string) (most float64) {
		for _, p := range r.throughput[name] {
			most = max(most, p.PerSecond)
		}
		return most
	}
	names := slices.Sorted(maps.Keys(r.throughput))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(highest(b), highest(a)) })
	return names
}

// callers and loads are those that were measured for any contender.
func (r *results) callers() []int {
	return pointsAt(r, func(p ThroughputPoint) int { return p.Callers })
}

func (r *results) loads() []float64 {
	return pointsAt(r, func(p ThroughputPoint) float64 { return p.Load })
}

func pointsAt[T cmp.Ordered](r *results, of func(ThroughputPoint) T) []T {
	var zero T
	found := map[T]bool{}
	for _, points := range r.throughput {
		for _, p := range points {
			if v := of(p); v > zero {
				found[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// cost is the point of a sweep at x, or nil.
func (r *results) cost(what string, x float64) *CostPoint {
	for i := range r.costs[what] {
		if p := &r.costs[what][i]; p.X == x {
			return p
		}
	}
	return nil
}
