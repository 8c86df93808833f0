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
	if !errors.As(err, &limit) || limit.Limit != "handles" || len(table.open) != 16 {
		t.Fatalf("%d envs, then %v", len(table.open), err)
	}
	table.remove(1)
	if _, err := table.add(&handle{value: large}); err != nil {
		t.Errorf("after one was dropped: %v", err)
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
