package sandbox

import "testing"

// TestIdleWhileUsed ends an idle container when a call begins to use it.
func TestIdleWhileUsed(t *testing.T) {
	h := newHeld()
	h.machine = &simulated{test: nil, files: memory{}}
	h.use(nil, 1)
	if err := h.close(false); err != nil || h.machine == nil {
		t.Errorf("the container of a call has ended, %v", err)
	}
	if err := h.close(true); err != nil || h.machine != nil {
		t.Errorf("it goes on, %v", err)
	}
}
