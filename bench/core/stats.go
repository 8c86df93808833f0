package main

import (
	"math/rand/v2"
	"slices"
)

// estimate is a median with a 95% confidence interval.
type estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// series is one measured quantity, as rounds of trials. The machine drifts, so trials of one round are alike and rounds are
// not: a round counts as one observation, its median.
type series [][]float64

func (s series) medians() []float64 {
	m := make([]float64, len(s))
	for i, round := range s {
		m[i] = quantile(round, 0.5)
	}
	return m
}

func (s series) estimate() estimate { return estimated(s.medians()) }

func (s series) p95() float64 { return quantile(slices.Concat(s...), 0.95) }

// over is the ratio of s to base, round by round, so that drift cancels.
func (s series) over(base series) estimate {
	ratios := s.medians()
	for i, b := range base.medians() {
		ratios[i] /= b
	}
	return estimated(ratios)
}

// estimated is the median of observations, with an interval by bootstrap. The seed is fixed: the same observations give the
// same interval.
func estimated(observations []float64) estimate {
	const resamples = 2000
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, resamples)
	sample := make([]float64, len(observations))
	for i := range medians {
		for k := range sample {
			sample[k] = observations[random.IntN(len(observations))]
		}
		medians[i] = quantile(sample, 0.5)
	}
	return estimate{quantile(observations, 0.5), quantile(medians, 0.025), quantile(medians, 0.975)}
}

// quantile interpolates between the two nearest observations. There must be at least one.
func quantile(observations []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(observations))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
