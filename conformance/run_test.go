package conformance

import (
	"testing"
	"testing/synctest"

	"github.com/stilehost/stile/conformance/protocol"
)

// TestLastCall has a host that is so quick that its guest asks for its own revocation before the runner knows the id of the call.
func TestLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := lastCall{turn: make(chan struct{}, 1)}
		told := make(chan int, 1)
		if _, err := last.begin(func() (int, <-chan protocol.Response, error) {
			go func() { told <- last.get() }()
			synctest.Wait() // until it has answered, or waits
			return 7, nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != 7 {
			t.Errorf("call %d would be revoked", got)
		}
	})
}
