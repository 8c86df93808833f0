package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// TestNamesInEnvs makes as many envs as allowed, each as large as allowed, and counts their names in total.
func TestNamesInEnvs(t *testing.T) {
	large := environment{}
	for i := range 100 {
		large[fmt.Sprint(i)] = &binding{}
	}
	table := handles{open: map[abi.Rep]*handle{}, limit: 100}
	var limit *LimitError
	var err error
	for err == nil {
		_, err = table.add(&handle{value: large})
	}
	if !errors.As(err, &limit) || limit.Limit != "handles" || len(table.open) != maxNames {
		t.Fatalf("%d envs, then %v", len(table.open), err)
	}
	table.remove(1)
	if _, err := table.add(&handle{value: large}); err != nil {
		t.Errorf("after one was dropped: %v", err)
	}
}

// large is a value whose size a guest has chosen.
type large string

// Size implements [abi.Sized].
func (l large) Size() int { return len(l) }

// TestSizesOfHandles makes handles with values that are as large as allowed together, moves one into an env, and drops it there.
func TestSizesOfHandles(t *testing.T) {
	table := handles{open: map[abi.Rep]*handle{}, limit: 100}
	one := large(strings.Repeat("x", 1000))
	fill := func() (n int) {
		t.Helper()
		for {
			_, err := table.add(&handle{value: one})
			if limit, ok := errors.AsType[*LimitError](err); ok && limit.Limit == "handles" {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n := fill(); n != 100*maxSizes/1000 {
		t.Fatalf("%d handles of 1,000 bytes", n)
	}
	table.remove(1)
	if _, err := table.add(&handle{value: environment{"a": &binding{value: one}, "b": &binding{value: one}}}); err == nil {
		t.Error("an env holds more than is left")
	}
	in, err := table.add(&handle{value: environment{"a": &binding{value: one}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := fill(); n != 0 {
		t.Errorf("%d handles beside those in an env", n)
	}
	table.remove(in)
	if n := fill(); n != 1 {
		t.Errorf("%d handles after the env was dropped", n)
	}
}

// TestValidationIsCharged has a guest start calls whose inputs take long to check. The check counts towards its processor time.
func TestValidationIsCharged(t *testing.T) {
	h, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	const cpu = 500 * time.Millisecond
	store := h.engine.NewStore(wasmtime.Limits{Memory: 1 << 20, CPU: cpu}, nil)
	defer store.Close()
	s, err := schema.NewCompiler().Compile(`{"type": "array", "items": {"type": "integer", "minimum": 0}}`)
	if err != nil {
		t.Fatal(err)
	}
	input := []byte("[" + strings.Repeat("1,", 10_000) + "1]")
	caller := &frame{limits: Limits{CPU: cpu}, budget: store.Budget()}
	ctx := t.Context()
	if err := s.Validate(ctx, h.validating, input); err != nil {
		t.Fatal(err)
	}
	ctx = abi.WithWork(ctx, caller.work)
	began := time.Now()
	n := 0
	for err = nil; err == nil; n++ {
		err = s.Validate(ctx, h.validating, input)
	}
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != "cpu" || n < 2 || n > 100 {
		t.Errorf("%d validations, then %v", n, err)
	}
	t.Logf("%d validations of %v in %v", n, cpu, time.Since(began))
}
