package conformance_test

import (
	"fmt"

	"github.com/stilehost/stile/conformance"
)

// The cases are data. Those of this section need no servers, whose ports most others name.
func ExampleLoad() {
	cases, err := conformance.Load("determinism", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := cases[0]
	fmt.Println(c.Name)
	fmt.Println(c.Why)
	// Output:
	// determinism/same-call-twice
	// A call without bindings depends on its input alone.
}
