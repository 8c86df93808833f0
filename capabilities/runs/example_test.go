package runs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
)

// Only durable calls have a run.
func Example() {
	err := new(runs.Control).Stash(context.Background(), `{"page": 3}`)
	fmt.Println(errors.Is(err, abi.ErrUnavailable))
	// Output: true
}
