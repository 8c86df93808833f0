package random_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities/random"
)

func Example() {
	ctx := context.Background()
	dice := random.Seeded([32]byte{1})
	var rolled [2]uint64
	for i := range rolled {
		opened, err := dice.Open(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if rolled[i], err = opened.(*random.Sequence).U64(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(rolled[0] == rolled[1]) // the same seed gives each call the same sequence
	// Output: true
}
