package tools

import (
	"context"
	"errors"
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

// TestInputsOfAllCalls has many calls start tools with large inputs. Others may still start tools with small ones, and all may when the
// tools have ended.
func TestInputsOfAllCalls(t *testing.T) {
	run := func(ctx context.Context, _ string, _ []byte, _ map[string]abi.Capability) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, size := range []int{1 << 20, smallInput} {
		var calls []*Call
		var err error
		for i := 0; err == nil && i < 100_000; i++ {
			box := newBox(t, Options{}, run)
			var call *Call
			if call, err = box.Start(t.Context(), "t", strings.Repeat("x", size), env{}); err == nil {
				calls = append(calls, call)
			}
		}
		if !errors.Is(err, abi.ErrExhausted) || len(calls)*size != map[bool]int{true: maxSmall, false: maxLarge}[size == smallInput] {
			t.Errorf("%d inputs of %d bytes: %v", len(calls), size, err)
		}
		if size > smallInput {
			call, err := newBox(t, Options{}, run).Start(t.Context(), "t", "1", env{})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, call)
		}
		for _, call := range calls {
			if err := call.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for quota, all := range map[interface {
		Reserve(n int64) error
		Release(n int64)
	}]int64{smallInputs: maxSmall, largeInputs: maxLarge} {
		if err := quota.Reserve(all); err != nil {
			t.Error(err)
		}
		quota.Release(all)
	}
}
