package inspect_test

import (
	"fmt"
	"log"
	"testing/fstest"

	"github.com/stilehost/stile/extension/inspect"
)

func Example() {
	files := fstest.MapFS{"tool.ts": {Data: []byte(`
		/** Adds two numbers. */
		export function add(a: number, b: number) { return a + b; }
	`)}}
	derived, err := inspect.Derive(files, "tool.ts")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(derived.Tools[0].Name, derived.Tools[0].Description)
	// Output: add Adds two numbers.
}
