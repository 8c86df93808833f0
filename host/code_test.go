package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/stilehost/stile/host/internal/wasmtime"
)

// TestLongCompiles has one component that takes long to compile wait for another, until it gives up. A short one goes ahead.
func TestLongCompiles(t *testing.T) {
	h, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	load := func(ctx context.Context, functions int) error {
		loops := strings.Repeat("loop i32.const 0 i32.load br_if 0 end ", 1000)
		wasm, err := wasmtime.WAT("(component (core module (memory 1) " + strings.Repeat("(func "+loops+")", functions) + "))")
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Load(ctx, wasm)
		return err
	}
	// This is what the compilation of another holds.
	for _, held := range []*semaphore.Weighted{h.longCompiling, h.compiling} {
		if err := held.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := load(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a long one: %v", err)
	}
	var refused *LoadError
	if err := load(t.Context(), 1); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "is not exported") {
		t.Errorf("a short one: %v", err)
	}
	h.compiling.Release(1)
	h.longCompiling.Release(1)
}

func FuzzCheckCode(f *testing.F) {
	const header = "\x00asm\x01\x00\x00\x00"
	f.Add([]byte(header + "\x01\x05\x01\x60\x01\x7f\x00" + "\x0a\x0c\x01\x0a\x01\x02\x7f\x03\x40\x41\x00\x0d\x00\x0b\x0b"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00\x01\x10" + header + "\x0a\x06\x01\x04\x00\x0e\xff\x0b"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00" + "\x04\x08\x00asm\x0d\x00\x01\x00" + "\x05\x04\x01\x00\x00\x00" + "\x06\x05\x01\x04\x02\x00\x00" + "\x0a\x06\x01\x00\x01a\x01\x00"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		var cost codeCost
		if err := checkModule(wasm, &cost); err == nil && cost.time < 0 {
			t.Errorf("%+v", cost)
		}
		_, _ = checkCode(wasm) // that it returns is all
	})
}
