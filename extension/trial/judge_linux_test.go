package trial

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/extension"
)

// TestJudgesTakeTurns judges 32 results at once that take 70 times their bytes when they are decoded, in a process of its own, and looks how
// much memory that one ever had above what it had before.
func TestJudgesTakeTurns(t *testing.T) {
	tests := map[string]extension.Test{"a result": {Expect: []byte(`[]`)}, "an error": {Error: "x"}}
	if name := os.Getenv("STILE_TEST_JUDGE"); name != "" {
		judgeMany(t, tests[name])
		return
	}
	t.Parallel()
	for name := range tests {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestJudgesTakeTurns$", "-test.v")
		cmd.Env = append(os.Environ(), "STILE_TEST_JUDGE="+name)
		out, err := cmd.CombinedOutput()
		_, grown, found := strings.Cut(string(out), "grown by ")
		if err != nil || !found {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		kib, err := strconv.Atoi(strings.Fields(grown)[0])
		if err != nil || kib > 512<<10 {
			t.Errorf("%s: %s", name, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// judgeMany is the other process.
func judgeMany(t *testing.T, test extension.Test) {
	output := []byte("[0" + strings.Repeat(`,{"":0}`, 150_000) + "]")
	runtime.GC()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak is now
		t.Fatal(err)
	}
	before := resident(t, "VmRSS:")
	var ended sync.WaitGroup
	for range 32 {
		ended.Go(func() {
			if p, err := new(environment).judge(test, output, nil); err != nil || p == nil {
				t.Errorf("got %v, %v", p, err)
			}
		})
	}
	ended.Wait()
	fmt.Printf("grown by %d KiB\n", resident(t, "VmHWM:")-before)
}

func resident(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	kib, err := strconv.Atoi(fields[slices.Index(fields, field)+1])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
