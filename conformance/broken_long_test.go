//go:build long

package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/conformance"
)

var (
	update = flag.Bool("update", false, "write testdata/broken.json")
	only   = flag.String("host", "", "judge this broken host alone")
)

// TestLongBrokenHosts has the suite judge hosts that are wrong in one way each. Each must fail the cases that testdata/broken.json lists
// for it, and no other.
func TestLongBrokenHosts(t *testing.T) {
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

// TestLongSecondHost has the suite judge a host on jco and Node.js, which npm installs. It fails what expected/jco.json says, and nothing else; REPORT.md has its table.
func TestLongSecondHost(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("jco")); err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	w := newWorkbench(t)
	r, err := conformance.Run(t.Context(), conformance.Options{Host: []string{"node", filepath.Join(folder, "host.mjs")}, Toolchain: w.tools, Folder: w.folder})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		if c.Verdict == conformance.Fail || c.Verdict == conformance.Unexpected {
			t.Errorf("%s: %s: %s", c.Verdict, c.Name, c.Why)
		}
	}
	report, err := os.ReadFile("REPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := conformance.Markdown(r); !strings.Contains(string(report), text) {
		t.Errorf("REPORT.md must contain:\n%s", text)
	}
}
