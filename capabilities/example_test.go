package capabilities_test

import (
	"fmt"

	"github.com/stilehost/stile/capabilities"
)

func Example() {
	fmt.Println(capabilities.Builtin.Of("stile:capability/kv@0.1.0").Name)
	// Output: kv
}
