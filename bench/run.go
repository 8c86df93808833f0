package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
)

// Options say what to run.
type Options struct {
	// Contenders take part if they are available. Require names those whose absence is an error.
	Contenders []*Contender
	Require    []string
	// Only names measurements. Empty means all of them.
	Only []string
	// Hosts are the command lines of hosts of the conformance suite's protocol, which are put beside this one.
	Hosts [][]string
	// Size is how much is measured. Default Full.
	Size Size
	// Dir is where lines.jsonl is written, as a new file.
	Dir string
	// Workbench is where contenders work; Run makes and removes its Dir.
	Workbench Workbench
	// Own are measurements of this host alone, by name.
	Own map[string]func(context.Context, *Suite) error
	// Progress, if not nil, is called with the current activity, the number of finished steps, and the number of all steps.
	Progress func(what string, done, steps int)
}

// Size is how much a run measures.
type Size struct {
	Rounds int
	// Trials is the number of trials of contenders that take up to 2 ms, up to 20 ms, and longer.
	Trials [3]int
	// Live is the maximum number of idle isolates, for other contenders and for this host.
	Live, OwnLive int
	Window        time.Duration // of throughput
	Rows          int           // stored extensions, at most
}

// The sizes of a run: about 15 minutes, and about one.
var (
	Full  = Size{Rounds: 30, Trials: [3]int{5000, 300, 30}, Live: 1000, OwnLive: 10_000, Window: 3 * time.Second, Rows: 100_000}
	Quick = Size{Rounds: 3, Trials: [3]int{300, 15, 3}, Live: 20, OwnLive: 200, Window: 300 * time.Millisecond, Rows: 1000}
)

// Measurements in the order in which they run. Those of memory come first.
var Measurements = []string{"memory", "idle", "start", "parts", "throughput", "cost", "work", "hosts"}

// Suite is a run, as measurements see it.
type Suite struct {
	Options
	lines  *json.Encoder
	random *rand.Rand
}

// Write stores the result of a measurement.
func (s *Suite) Write(l Line) error { return s.lines.Encode(l) }

// Perm is a random order of n things.
func (s *Suite) Perm(n int) []int { return s.random.Perm(n) }

// Trials is how many trials a round has for something that takes this long.
func (s *Suite) Trials(typical time.Duration) int {
	trials, _ := s.trials(typical)
	return trials
}

// Tell reports progress: done of a number of steps.
func (s *Suite) Tell(what string, done, steps int) {
	if s.Progress != nil {
		s.Progress(what, done, steps)
	}
}

// Run measures, and writes its results into o.Dir. It records unavailable contenders with the reason.
func Run(ctx context.Context, o Options) (err error) {
	if o.Size.Rounds == 0 {
		o.Size = Full
	}
	for _, name := range o.Only {
		if !slices.Contains(Measurements, name) {
			return fmt.Errorf("there is no measurement %q; there are %s", name, strings.Join(Measurements, ", "))
		}
	}
	for _, name := range o.Require {
		if !slices.ContainsFunc(o.Contenders, func(c *Contender) bool { return c.Name == name }) {
			return fmt.Errorf("%s is required, and not among the contenders", name)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(o.Dir, linesFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.Workbench.Dir, err = os.MkdirTemp("", "stile-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Workbench.Dir)) }()
	if o.Workbench.Log == nil {
		o.Workbench.Log = io.Discard
	}
	s := &Suite{Options: o, lines: json.NewEncoder(f), random: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))}
	machine := measure.DescribeMachine(ctx)
	if err := s.Write(Line{Machine: &machine}); err != nil {
		return err
	}
	for _, name := range Measurements {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		if err := s.measure(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	machine.LoadAfter = measure.Load()
	return s.Write(Line{Machine: &machine})
}

func (s *Suite) measure(ctx context.Context, name string) error {
	switch name {
	case "memory":
		return s.measureMemory(ctx)
	case "start":
		return s.measureStart(ctx)
	case "throughput":
		return s.measureThroughput(ctx)
	case "work":
		return s.measureWork(ctx)
	}
	if own := s.Own[name]; own != nil {
		return own(ctx, s)
	}
	return nil
}

// runner is a contender that is ready for a task.
type runner struct {
	Runner
	contender *Contender
	task      Task
	n         int    // trials begun
	was       string // the content of the file
	typical   time.Duration
}

// prepare prepares contenders for a task and checks that each answers once. It records those that cannot.
func (s *Suite) prepare(ctx context.Context, task Task, holders bool) (ready []*runner, err error) {
	for i, c := range s.Contenders {
		if !c.does(task) {
			continue
		}
		s.Tell("prepare "+c.Name, i, len(s.Contenders))
		p := Participant{Name: c.Name, Title: c.Title, Boundary: c.Boundary, Limits: c.Limits, Level: c.Level, Task: task}
		start := time.Now()
		r, err := s.prepareOne(ctx, c, task)
		if ctx.Err() != nil {
			return ready, context.Cause(ctx)
		}
		p.PrepareMS = float64(time.Since(start)) / 1e6
		if err != nil {
			if slices.Contains(s.Require, c.Name) {
				return ready, fmt.Errorf("%s is required: %w", c.Name, err)
			}
			p.Reason = err.Error()
			if u, ok := errors.AsType[*UnavailableError](err); ok {
				p.Reason, p.Install = u.Reason, u.Install
			}
		}
		if err := s.Write(Line{Contender: &p}); err != nil {
			return ready, err
		}
		if r == nil {
			continue
		}
		if _, ok := r.Runner.(Holder); holders && !ok {
			if err := r.Close(); err != nil {
				return ready, fmt.Errorf("clean %s: %w", c.Name, err)
			}
			continue
		}
		ready = append(ready, r)
	}
	return ready, nil
}

func (s *Suite) prepareOne(ctx context.Context, c *Contender, task Task) (*runner, error) {
	preparing, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	made, err := c.Prepare(preparing, &s.Workbench, task)
	if err != nil {
		return nil, err
	}
	r := &runner{Runner: made, contender: c, task: task, was: NoState}
	for range 3 {
		start := time.Now()
		if _, _, err := r.trial(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("it does not answer: %w", err), r.Close())
		}
		r.typical = time.Since(start)
	}
	return r, nil
}

// Probe prepares a contender for a task and checks its first answers.
func Probe(ctx context.Context, w *Workbench, c *Contender, task Task) (Runner, error) {
	r, err := (&Suite{Options: Options{Workbench: *w}}).prepareOne(ctx, c, task)
	if err != nil {
		return nil, err
	}
	return r.Runner, nil
}

func closeAll(ready []*runner) error {
	var errs []error
	for _, r := range ready {
		if err := r.Close(); err != nil {
			errs = append(errs, fmt.Errorf("clean %s: %w", r.contender.Name, err))
		}
	}
	return errors.Join(errs...)
}

const trialTimeout = time.Minute

// next makes the next trial, with the answer that it must give.
func (r *runner) next() (Trial, []byte) {
	r.n++
	id := StoredID
	if r.contender.Level == NewCode {
		id = fmt.Sprintf("%s-%d-%d", r.contender.Name, r.n, time.Now().UnixNano())
	}
	t, want := trial(r.task, id, r.n, r.was)
	r.was = fmt.Sprint(r.n)
	return t, want
}

// trial makes a trial, and returns how long it took until the answer was there and until the isolate was gone.
func (r *runner) trial(ctx context.Context) (result, end time.Duration, err error) {
	t, want := r.next()
	return r.try(ctx, t, want)
}

func (r *runner) try(ctx context.Context, t Trial, want []byte) (result, end time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	start := time.Now()
	answer, err := r.Run(ctx, t)
	end = time.Since(start)
	if err != nil {
		return 0, 0, err
	}
	if !SameJSON(answer.Output, want) {
		return 0, 0, fmt.Errorf("a wrong answer: %.200q instead of %.200q", answer.Output, want)
	}
	result = end
	if !answer.At.IsZero() {
		result = answer.At.Sub(start)
	}
	return result, end, nil
}
