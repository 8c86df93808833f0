package clock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
)

func Example() {
	ctx := context.Background()
	opened, err := clock.Fixed(time.Unix(1, 0)).Open(ctx) // as a call does
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.(*clock.Running).Now(ctx)) // milliseconds
	// Output: 1000
}
