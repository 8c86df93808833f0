//go:build long

package durable_test

import "testing"

// TestLongKilled is TestKilledEverywhere with 1,000 kills.
func TestLongKilled(t *testing.T) { killedEverywhere(t, 1000) }
