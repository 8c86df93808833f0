package tools

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/usagetest"
)

// TestManyCallersTakeLittle has 64 calls keep 8 MiB of results each, which nobody takes, in another process.
func TestManyCallersTakeLittle(t *testing.T) {
	const test, variable = "TestManyCallersTakeLittle", "STILE_TEST_CALLERS"
	if os.Getenv(variable) == "" {
		t.Parallel()
		kib, out, err := usagetest.Grown(t, test, variable+"=1")
		if err != nil || kib > 192<<10 {
			t.Errorf("%d KiB, %v\n%.1000s", kib, err, out)
		}
		t.Logf("%d KiB", kib)
		return
	}
	usagetest.Tell(t, func() {
		for range 64 {
			box := newBox(t, Options{}, func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error) {
				return []byte(strings.Repeat("x", 1<<20)), nil
			})
			for range 8 {
				call, err := box.Start(t.Context(), "t", "1", env{})
				if err != nil {
					t.Fatal(err)
				}
				<-call.Subscribe(t.Context()).Done()
				defer func() { _ = call.Close() }()
			}
		}
	})
}
