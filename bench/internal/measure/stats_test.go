package measure

import "testing"

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		name         string
		observations []float64
		q, want      float64
	}{
		{"one", []float64{7}, 0.95, 7},
		{"odd", []float64{3, 1, 2}, 0.5, 2},
		{"even", []float64{4, 1, 3, 2}, 0.5, 2.5},
		{"between", []float64{0, 10}, 0.95, 9.5},
		{"last", []float64{1, 2, 3}, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Quantile(c.observations, c.q); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEstimateIsOfRounds(t *testing.T) {
	got := Series{{1, 1, 100}, {2, 2, 2}, {3, 3, 3}}.Estimate()
	if got.Median != 2 || got.Low < 1 || got.High > 3 || got.Low > got.Median || got.High < got.Median {
		t.Errorf("got %+v", got)
	}
}

// The machine is twice as slow in every other round; the ratio does not see it.
func TestRatioCancelsDrift(t *testing.T) {
	var fast, slow Series
	for i := range 20 {
		speed := float64(1 + i%2)
		fast, slow = append(fast, []float64{speed}), append(slow, []float64{3 * speed})
	}
	if got := slow.Over(fast); got != (Estimate{3, 3, 3}) {
		t.Errorf("got %+v", got)
	}
}

func TestRatioOfTwoRuns(t *testing.T) {
	if got := Ratio([]float64{4, 4, 4}, []float64{2, 2, 2}); got != (Estimate{2, 2, 2}) {
		t.Errorf("got %+v", got)
	}
	if got := Ratio([]float64{1, 2, 3, 4, 5}, []float64{5, 4, 3, 2, 1}); got.Median != 1 || got.Low >= 1 || got.High <= 1 {
		t.Errorf("the interval of what is the same is %+v", got)
	}
}
