package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/usagetest"
)

// BenchmarkWrite runs from a draft that a policy approves to the answer of its tool, and measures each stage. The metrics are
// medians, except processor-ms: the process's user and kernel time per round.
func BenchmarkWrite(b *testing.B) {
	h := newHome(b)
	h.policyOf(`{"approve": [{"permissions": {"kv": true}}], "limits": {"buildsPerHour": 100000}}`)
	m := h.open()
	took := map[string][]time.Duration{}
	if _, err := m.Write(b.Context(), draft("answer", "-1", `{"kv": true}`)); err != nil { // prepares what all rounds share
		b.Fatal(err)
	}
	before := usagetest.Processor()
	first := rand.IntN(1 << 50) // a value of no earlier run, so that the cache has no build of it
	n := first
	for ; b.Loop(); n++ {
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
	b.ReportMetric(float64(usagetest.Processor()-before)/float64(n-first)/1e6, "processor-ms")
	for _, name := range []string{
		"whole", string(extension.StageValidate), string(extension.StageResolve), string(extension.StageBundle), string(extension.StageImage),
		string(extension.StageReport), string(extension.StageTest), string(extension.StagePolicy),
	} {
		slices.Sort(took[name])
		b.ReportMetric(float64(took[name][len(took[name])/2])/1e6, name+"-ms")
	}
}
