package capability_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities"
)

func Example() {
	g, err := capabilities.Builtin.ParseSpec("notes", "kv:mine")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Kind().Name, g.Describe())
	// Output: kv [may keep small values from call to call]
}
