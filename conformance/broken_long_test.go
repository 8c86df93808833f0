//go:build long

package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stilehost/stile/conformance"
)

var (
	update = flag.Bool("update", false, "write testdata/broken.json")
	only   = flag.String("host", "", "judge this broken host alone")
)

// TestBrokenHostsWhole has the suite judge hosts that are wrong in one way each. Each must fail the cases that testdata/broken.json lists
// for it, and no other.
func TestBrokenHostsWhole(t *testing.T) {
	want, got := mustFail(t), map[string][]string{}
	w := newWorkbench(t)
	for _, how := range slices.Sorted(maps.Keys(faults)) {
		if *only != "" && how != *only {
			got[how] = want[how]
			continue
		}
		for _, c := range w.run(t, how).Cases {
			if c.Verdict == conformance.Fail {
				got[how] = append(got[how], c.Name)
			}
		}
		if !*update && !slices.Equal(got[how], want[how]) {
			t.Errorf("%s: fails\n\t%q\nand must fail\n\t%q", how, got[how], want[how])
		}
	}
	if *update {
		data, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(broken, append(bytes.TrimSpace(data), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
