package guesttest_test

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/toolchain/guesttest"
)

func Example() {
	core := guesttest.Guest{Result: `"hello"`}.Core()
	fmt.Println(strings.Contains(core, "stile:extension/tools@0.1.0#call"))
	// Output: true
}
