package browser

import (
	"path/filepath"
	"testing"
)

// TestStartFails uses a browser that does not start, twice: nothing of the first time is in the way of the second.
func TestStartFails(t *testing.T) {
	e := NewEngine(EngineOptions{Program: filepath.Join(t.TempDir(), "missing"), forceUnconfined: true})
	defer func() { _ = e.Close() }()
	for range 2 {
		if _, _, _, err := e.use(t.Context(), place{}); err == nil {
			t.Error("no error")
		}
	}
}
