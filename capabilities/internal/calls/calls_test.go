package calls

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/turns"
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
	if small, large := smallInputs.Free(), largeInputs.Free(); small != maxSmall || large != maxLarge {
		t.Errorf("%d and %d bytes are free afterwards", small, large)
	}
}

// TestUsersShareRooms has the calls of one user start all that they can, or keep all errors that they can. Another user gets half of what
// they leave.
func TestUsersShareRooms(t *testing.T) {
	for _, test := range []struct {
		name  string
		size  int   // of an input
		calls int   // how many of them one call starts
		fails error // at once
		all   *blob.Common
		want  int // how many another user gets at least
	}{
		{"large inputs", 1 << 20, 1, nil, largeInputs, maxLarge / 4 >> 20},
		{"small inputs", smallInput, 1, nil, smallInputs, maxSmall / 4 / smallInput},
		{"tools", 1, maxTools / perTool, nil, allTools, 10_000 / 4},
		{"errors", 1, 1, abi.Errorf(abi.CodeInvalid, "%s", strings.Repeat("x", maxErrors)), allErrors, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := test.all.Free()
			var calls []*Call
			fill := func(user string) (n int) {
				for ctx := context.Context(nil); ; n++ {
					if n%test.calls == 0 {
						ctx = abi.WithCall(turns.For(t.Context(), user))
					}
					call, err := NewRoom(ctx, DefaultHeld).Start(ctx, test.size, env{}, func(ctx context.Context, _ map[string]abi.Capability, done func([]byte, error)) {
						if test.fails == nil {
							<-ctx.Done()
						}
						done(nil, test.fails)
					})
					if err != nil {
						return n
					}
					calls = append(calls, call)
					if test.fails == nil {
						continue
					}
					if <-call.done.Done(); call.kept == 0 {
						return n
					}
				}
			}
			if n := fill("agent:busy"); n < 2*test.want || test.all.Free() < all/2 {
				t.Errorf("one user gets %d, and leaves %d of %d bytes", n, test.all.Free(), all)
			}
			if n := fill("agent:other"); n < test.want {
				t.Errorf("another user gets %d, not %d", n, test.want)
			}
			for _, call := range calls {
				if err := call.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := test.all.Free(); n != all {
				t.Errorf("%d of %d bytes are free afterwards", n, all)
			}
		})
	}
}
