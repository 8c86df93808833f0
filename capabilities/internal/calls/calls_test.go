package calls

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is what the host passes for a handle of an env.
type env map[string]abi.Capability

func (e env) Capabilities() map[string]abi.Capability { return e }
func (e env) Origin(name string) string               { return name }

// TestInputsOfAllCalls has many calls start tools with large inputs. Others may still start tools with small ones, and all may when the
// tools have ended.
func TestInputsOfAllCalls(t *testing.T) {
	start := func(size int) (*Call, error) {
		return NewRoom(t.Context(), DefaultHeld).Start(t.Context(), size, env{}, func(ctx context.Context, _ map[string]abi.Capability, done func([]byte, error)) {
			<-ctx.Done()
			done(nil, ctx.Err())
		})
	}
	for _, size := range []int{1 << 20, smallInput} {
		var calls []*Call
		var err error
		for i := 0; err == nil && i < 100_000; i++ {
			var call *Call
			if call, err = start(size); err == nil {
				calls = append(calls, call)
			}
		}
		if !errors.Is(err, abi.ErrExhausted) || len(calls)*size != map[bool]int{true: maxSmall, false: maxLarge}[size == smallInput] {
			t.Errorf("%d inputs of %d bytes: %v", len(calls), size, err)
		}
		if size > smallInput {
			call, err := start(1)
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
