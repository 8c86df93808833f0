package double_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/stilehost/stile/capability/double"
)

func Example() {
	clock := double.NewClock() // the time of a test passes when the tool waits for it
	if _, err := clock.Subscribe(context.Background(), uint64(time.Hour)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(clock.Move(), clock.Time().Sub(clock.Start))
	// Output: true 1h0m0s
}
