package console_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities/console"
)

func Example() {
	ctx := context.Background()
	grant := console.To(func(_ console.Level, message string) { fmt.Println(message) })
	opened, err := grant.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	opened.(*console.Log).Log(ctx, 0, "Hello")
	// Output: Hello
}
