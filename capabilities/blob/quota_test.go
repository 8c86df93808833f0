package blob

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stilehost/stile/abi"
)

// A quota knows its own errors, whatever another is called.
func TestIsFull(t *testing.T) {
	one, other := NewQuota("the same", 10), NewQuota("the same", 10)
	err := one.Reserve(11)
	if !errors.Is(err, abi.ErrExhausted) || !one.IsFull(fmt.Errorf("wrapped: %w", err)) || other.IsFull(err) || one.IsFull(nil) {
		t.Errorf("got %v", err)
	}
}
