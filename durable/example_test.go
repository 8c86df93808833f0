package durable_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
)

// A program that has a host starts a run of a component, and works on all runs of a folder.
func Example() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = h.Close() }()
	runs, err := durable.Open(ctx, durable.Options{
		Dir: dir, Key: make([]byte, durable.KeySize), Host: h, // a real key is random, and kept
		Request: func(context.Context, durable.Info) (durable.Authority, error) {
			return durable.Authority{Request: host.Request{Env: host.Env{"clock": clock.System()}}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runs.Close() }()
	_, _, err = runs.Start(ctx, durable.Spec{Key: "order-17", Component: []byte("no component"), Tool: "order"})
	if err != nil {
		fmt.Println(err)
		return
	}
	runs.Work()
	result, err := runs.Wait(ctx, must(runs.List(ctx, "", 1))[0].Name)
	fmt.Println(result.State, err)
	// Output: parked <nil>
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
