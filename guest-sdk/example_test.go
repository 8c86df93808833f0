package guests_test

import (
	"fmt"
	"log"
	"maps"
	"slices"

	guests "github.com/stilehost/stile/guest-sdk"
)

func Example() {
	sdk, err := guests.Files("c")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(slices.Sorted(maps.Keys(sdk)))
	// Output: [stile.c stile.h]
}
