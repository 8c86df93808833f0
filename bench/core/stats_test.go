package main

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
			if got := quantile(c.observations, c.q); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEstimateIsOfRounds(t *testing.T) {
	got := series{{1, 1, 100}, {2, 2, 2}, {3, 3, 3}}.estimate()
	if got.Median != 2 || got.Low < 1 || got.High > 3 || got.Low > got.Median || got.High < got.Median {
		t.Errorf("got %+v", got)
	}
}

// The machine is twice as slow in every other round; the ratio does not see it.
func TestRatioCancelsDrift(t *testing.T) {
	var fast, slow series
	for i := range 20 {
		speed := float64(1 + i%2)
		fast, slow = append(fast, []float64{speed}), append(slow, []float64{3 * speed})
	}
	if got := slow.over(fast); got != (estimate{3, 3, 3}) {
		t.Errorf("got %+v", got)
	}
}

func TestTargets(t *testing.T) {
	b := &bench{}
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{Value: 1}, "none"},
		{row{Value: 1, AtMost: 1}, "met"},
		{row{Value: 1.1, AtMost: 1}, "missed"},
		{row{Value: 2, AtLeast: 2}, "met"},
		{row{Value: 1.9, AtLeast: 2}, "missed"},
	} {
		b.add(c.row)
		got := "none"
		if met := b.rows[len(b.rows)-1].Met; met != nil {
			got = map[bool]string{true: "met", false: "missed"}[*met]
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.row, got, c.want)
		}
	}
}

func TestSharedEngineRefuses(t *testing.T) {
	header := "\x00asm\x0d\x00\x01\x00"
	for _, c := range []struct{ name, wasm string }{
		{"empty", ""},
		{"no modules", header},
		{"one module", header + "\x01\x01x"},
		{"ends early", header + "\x01\x7fx"},
		{"length without end", header + "\x01\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := sharedEngine([]byte(c.wasm)); err == nil {
				t.Error("no error")
			}
		})
	}
}
