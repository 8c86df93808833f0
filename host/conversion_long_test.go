//go:build long

package host_test

import (
	"maps"
	"slices"
	"testing"
)

// TestLongConversions has guests pass and return large values of every kind, one and many at once.
func TestLongConversions(t *testing.T) { convertAll(t, slices.Collect(maps.Keys(conversions))) }
