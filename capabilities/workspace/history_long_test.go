//go:build long

package workspace

import "testing"

// TestLongRandomHistories is TestRandomHistories with more histories.
func TestLongRandomHistories(t *testing.T) { randomHistories(t, 400) }
