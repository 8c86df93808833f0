package wit_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

func Example() {
	resolve, err := abi.ParseCapability(wit.Capability())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resolve.Interface("stile:capability/kv@0.1.0") != nil)
	// Output: true
}
