package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
)

func Example() {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	wasm, err := os.ReadFile("extension.wasm")
	if err != nil {
		log.Fatal(err)
	}
	c, err := h.Load(ctx, wasm)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	out, err := c.Call(ctx, "greet", []byte(`{"name": "Ada"}`), host.Env{"clock": clock.System()})
	if limit, ok := errors.AsType[*host.LimitError](err); ok {
		log.Fatal("give it more ", limit.Limit)
	}
	fmt.Printf("%s\n", out)
}
