package signals_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/signals"
)

// Only durable calls have mailboxes.
func Example() {
	_, err := new(signals.Mailboxes).Receive(context.Background(), "approved", nil)
	fmt.Println(errors.Is(err, abi.ErrUnavailable))
	// Output: true
}
