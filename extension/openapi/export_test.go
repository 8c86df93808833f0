package openapi

import "testing"

// SetMaxWork makes documents too much work sooner, until the test ends.
func SetMaxWork(t *testing.T, most int) {
	before := maxWork
	maxWork = most
	t.Cleanup(func() { maxWork = before })
}
