package trial

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/usagetest"
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
		kib, out, err := usagetest.Grown(t, "TestJudgesTakeTurns", "STILE_TEST_JUDGE="+name)
		if err != nil || kib > 512<<10 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// judgeMany is the other process.
func judgeMany(t *testing.T, test extension.Test) {
	output := []byte("[0" + strings.Repeat(`,{"":0}`, 150_000) + "]")
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 32 {
			ended.Go(func() {
				if p, err := new(environment).judge(test, output, nil); err != nil || p == nil {
					t.Errorf("got %v, %v", p, err)
				}
			})
		}
		ended.Wait()
	})
}
