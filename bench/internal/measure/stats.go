// Package measure is shared by the benchmarks: statistics with their uncertainty, and a description of the machine.
package measure

import (
	"math/rand/v2"
	"slices"
)

// Estimate is a median with a 95% confidence interval.
type Estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Series is one measured quantity, as rounds of trials. The machine drifts, so trials are alike within a round but not across
// rounds. A round counts as one observation, its median.
type Series [][]float64

func (s Series) Medians() []float64 {
	m := make([]float64, len(s))
	for i, round := range s {
		m[i] = Quantile(round, 0.5)
	}
	return m
}

func (s Series) Estimate() Estimate { return Median(s.Medians()) }

func (s Series) P95() float64 { return Quantile(slices.Concat(s...), 0.95) }

// Over is the ratio of s to base, round by round, so that drift cancels.
func (s Series) Over(base Series) Estimate {
	ratios := s.Medians()
	for i, b := range base.Medians() {
		ratios[i] /= b
	}
	return Median(ratios)
}

// Median is the median of observations, with an interval by bootstrap. The seed is fixed, so the same observations give the same
// interval.
func Median(observations []float64) Estimate {
	const resamples = 2000
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, resamples)
	sample := make([]float64, len(observations))
	for i := range medians {
		for k := range sample {
			sample[k] = observations[random.IntN(len(observations))]
		}
		medians[i] = Quantile(sample, 0.5)
	}
	return Estimate{Quantile(observations, 0.5), Quantile(medians, 0.025), Quantile(medians, 0.975)}
}

// Ratio is the ratio of the medians of observations that were not made in turns, with an interval by bootstrap of both.
func Ratio(observations, base []float64) Estimate {
	const resamples = 2000
	random := rand.New(rand.NewPCG(1, 2))
	resample := func(of []float64) float64 {
		sample := make([]float64, len(of))
		for k := range sample {
			sample[k] = of[random.IntN(len(of))]
		}
		return Quantile(sample, 0.5)
	}
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = resample(observations) / resample(base)
	}
	return Estimate{Quantile(observations, 0.5) / Quantile(base, 0.5), Quantile(ratios, 0.025), Quantile(ratios, 0.975)}
}

// Quantile interpolates between the two nearest observations. There must be at least one.
func Quantile(observations []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(observations))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
