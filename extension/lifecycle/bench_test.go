package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/extension"
)

// BenchmarkWrite is the way from a draft that a policy approves to the answer of its tool, and the time of each stage. The metrics are
// medians.
func BenchmarkWrite(b *testing.B) {
	h := newHome(b)
	h.policyOf(`{"approve": [{"permissions": {"kv": true}}], "limits": {"buildsPerHour": 100000}}`)
	m := h.open()
	took := map[string][]time.Duration{}
	for n := 0; b.Loop(); n++ {
		start := time.Now()
		w, err := m.Write(b.Context(), draft("answer", fmt.Sprint(n), `{"kv": true}`))
		if err != nil || w.Release.State != Active {
			b.Fatalf("%+v, %v", w, err)
		}
		r, err := m.Call(b.Context(), Call{Viewer: agent, Tool: "answer_get"})
		if err != nil || string(r.Output) != fmt.Sprint(n) {
			b.Fatalf("%s, %v", r.Output, err)
		}
		took["whole"] = append(took["whole"], time.Since(start))
		for stage, d := range w.Took {
			took[string(stage)] = append(took[string(stage)], d)
		}
	}
	for _, name := range []string{
		"whole", string(extension.StageValidate), string(extension.StageResolve), string(extension.StageBundle), string(extension.StageImage),
		string(extension.StageReport), string(extension.StageTest), string(extension.StagePolicy),
	} {
		slices.Sort(took[name])
		b.ReportMetric(float64(took[name][len(took[name])/2])/1e6, name+"-ms")
	}
}
