package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
)

// measureStart times trials of all contenders in turns, in a different order each round. Quick contenders fill a round with trials,
// after some that do not count.
func (s *Suite) measureStart(ctx context.Context) error {
	for _, task := range Tasks {
		ready, err := s.prepare(ctx, task, false)
		err = errors.Join(err, s.startTask(ctx, task, ready), closeAll(ready))
		if err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
	}
	return nil
}

func (s *Suite) startTask(ctx context.Context, task Task, ready []*runner) error {
	for round := range s.Size.Rounds {
		for i, at := range s.random.Perm(len(ready)) {
			r := ready[at]
			if r.typical > 2*time.Second && round >= 3 {
				continue // it would take as long as all others together
			}
			s.Tell(fmt.Sprintf("start %s: %s", task, r.contender.Name), round*len(ready)+i, s.Size.Rounds*len(ready))
			line, err := s.startRound(ctx, r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.contender.Name, err)
			}
			line.Round = round
			if err := s.Write(Line{Start: line}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Suite) startRound(ctx context.Context, r *runner) (*StartRound, error) {
	trials, warm := s.trials(r.typical)
	line := &StartRound{Contender: r.contender.Name, Task: r.task, Level: r.contender.Level}
	for range warm {
		if _, _, err := r.trial(ctx); err != nil {
			return nil, err
		}
	}
	before, err := measure.BusyCPU()
	if err != nil {
		return nil, err
	}
	for range trials {
		result, end, err := r.trial(ctx)
		if err != nil {
			return nil, err
		}
		line.ResultUS = append(line.ResultUS, us(result))
		line.EndUS = append(line.EndUS, us(end))
	}
	after, err := measure.BusyCPU()
	line.CPUUS = us(after-before) / float64(trials)
	return line, err
}

// trials returns how many trials a round has for something that takes this long, and how many warm up before.
func (s *Suite) trials(typical time.Duration) (trials, warm int) {
	class := 2
	switch {
	case typical < 2*time.Millisecond:
		class, warm = 0, 20
	case typical < 20*time.Millisecond:
		class, warm = 1, 1
	}
	return max(1, s.Size.Trials[class]/s.Size.Rounds), warm
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
