package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// works are the computations of tool/work.js.
var works = []string{"fib", "json", "sort", "regex", "strings"}

// workLong is how long the shorter of two calls takes at least.
const workLong = 30 * time.Millisecond

// measureWork times computations inside isolates. An isolate has no clock, so it is called with n iterations and with 2n. The
// difference is the time of the work alone, without start and warm-up. A figure is the time of one iteration.
func (s *Suite) measureWork(ctx context.Context) error {
	ready, err := s.prepare(ctx, Work, false)
	if err == nil {
		err = s.workRounds(ctx, ready)
	}
	return errors.Join(err, closeAll(ready))
}

func (s *Suite) workRounds(ctx context.Context, ready []*runner) error {
	enough := map[string]int{} // iterations, by contender and work
	values := map[string]int{} // of one iteration; all contenders agree
	for round := range s.Size.Rounds {
		for _, work := range works {
			s.Tell("work: "+work, round, s.Size.Rounds)
			for _, i := range s.random.Perm(len(ready)) {
				r := ready[i]
				key := r.contender.Name + " " + work
				if enough[key] == 0 {
					n, err := r.enough(ctx, work, values)
					if err != nil {
						return err
					}
					enough[key] = n
				}
				n := enough[key]
				once, err := r.work(ctx, work, n, values)
				if err != nil {
					return err
				}
				twice, err := r.work(ctx, work, 2*n, values)
				if err != nil {
					return err
				}
				ms := float64(twice-once) / float64(time.Millisecond) / float64(n)
				if err := s.Write(Line{Work: &WorkRound{Contender: r.contender.Name, Work: work, Round: round, MS: ms}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// enough finds how many iterations take long enough, and determines the result of one iteration if it is still unknown.
func (r *runner) enough(ctx context.Context, work string, values map[string]int) (n int, err error) {
	for n = 1; ; n *= 2 {
		took, err := r.work(ctx, work, n, values)
		if err != nil || took >= workLong {
			return n, err
		}
	}
}

func (r *runner) work(ctx context.Context, work string, n int, values map[string]int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	start := time.Now()
	a, err := r.Run(ctx, Trial{Source(Work, StoredID), fmt.Appendf(nil, `{"work":%q,"n":%d}`, work, n)})
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("%s, %s: %w", r.contender.Name, work, err)
	}
	if !a.At.IsZero() {
		took = a.At.Sub(start)
	}
	var answer struct{ Value int }
	if err := json.Unmarshal(a.Output, &answer); err != nil {
		return 0, fmt.Errorf("%s, %s: %w: %.200q", r.contender.Name, work, err, a.Output)
	}
	if values[work] == 0 {
		values[work] = answer.Value / n
	}
	if answer.Value == 0 || answer.Value != n*values[work] {
		return 0, fmt.Errorf("%s, %s: %d iterations give %d, and one %d", r.contender.Name, work, n, answer.Value, values[work])
	}
	return took, nil
}
