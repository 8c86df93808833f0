package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rounded are rounds of starts around a time.
func rounded(contender string, us ...float64) string {
	var lines strings.Builder
	for i, v := range us {
		fmt.Fprintf(&lines, `{"start":{"contender":%q,"task":"compute","level":"L1","round":%d,"result_us":[%g]}}`+"\n", contender, i, v)
	}
	return lines.String()
}

func TestCompare(t *testing.T) {
	rate := func(v float64) string {
		return fmt.Sprintf(`{"throughput":{"contender":"a","callers":2,"per_second":%g}}`+"\n", v)
	}
	memory := func(v float64) string {
		return fmt.Sprintf(`{"memory":{"contender":"a","live":10,"private_kib":100}}`+"\n"+`{"memory":{"contender":"a","live":20,"private_kib":%g}}`+"\n", v)
	}
	for _, c := range []struct {
		name, a, b string
		changed    bool
	}{
		{"slower", rounded("a", 100, 101, 102, 103, 104), rounded("a", 110, 111, 112, 113, 114), true},
		{"less than 3%", rounded("a", 100, 100, 100, 100, 100), rounded("a", 102, 102, 102, 102, 102), false},
		{"noise", rounded("a", 80, 90, 100, 110, 120), rounded("a", 85, 95, 105, 115, 125), false},
		{"few rounds", rounded("a", 100), rounded("a", 109), false},
		{"few rounds, much", rounded("a", 100), rounded("a", 120), true},
		{"rate", rate(100), rate(95), false},
		{"rate, much", rate(100), rate(80), true},
		{"memory", memory(200), memory(205), false},
		{"memory, much", memory(200), memory(220), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Compare(written(t, []byte(c.a)), written(t, []byte(c.b)))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Changes) != 1 || got.Changes[0].Changed != c.changed {
				t.Errorf("got %+v, want one that changed: %t", got.Changes, c.changed)
			}
		})
	}
}

func TestCompareWhatOneRunHas(t *testing.T) {
	got, err := Compare(written(t, []byte(`{"machine":{"cpu":"one"}}`+"\n"+rounded("a", 1))), written(t, []byte(`{"machine":{"cpu":"two"}}`+"\n"+rounded("b", 1))))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.OnlyA, []string{"start L1: a, compute"}) || !slices.Equal(got.OnlyB, []string{"start L1: b, compute"}) || got.Warning == "" {
		t.Errorf("got %+v", got)
	}
}
