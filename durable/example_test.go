package durable_test

import (
	"context"
	"fmt"
	"os"
	"time"

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
	_, _, err = runs.Start(ctx, durable.Spec{Key: "order-17", Component: durable.CodeOf([]byte("no component")), Tool: "order"})
	if err != nil {
		fmt.Println(err)
		return
	}
	runs.Work()
	result, err := runs.Wait(ctx, must(runs.List(ctx, "", 1))[0].Name)
	fmt.Println(result.State, err)
	// Output: parked <nil>
}

// A run of Go code takes an order, waits until a person has approved it, and ships it. Each of these may happen in another process, days later.
func ExampleStep() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	order := func(ctx context.Context, article string) (string, error) {
		number, err := durable.Step(ctx, "take the order", func(ctx context.Context) (int, error) {
			fmt.Println("taking an order of", article)
			return 17, nil
		})
		if err != nil {
			return "", err // errors.Is(err, abi.ErrInterrupted): it may have been taken
		}
		approved, _, err := durable.Receive[bool](ctx, "approved", 7*24*time.Hour)
		if err != nil || !approved {
			return "refused", err
		}
		return durable.Step(ctx, "ship", func(ctx context.Context) (string, error) {
			return fmt.Sprintf("order %d is on its way", number), nil
		})
	}
	runs, err := durable.Open(ctx, durable.Options{
		Dir: dir, Key: make([]byte, durable.KeySize), // a real key is random, and kept
		Functions: map[string]durable.Function{"order": durable.Func(order)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runs.Close() }()
	runs.Work()
	run, _, err := runs.Start(ctx, durable.Spec{Key: "order-17", Function: "order", Input: []byte(`"a lamp"`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := runs.Signal(ctx, run.Name, "approved", durable.Message{Data: []byte("true")}); err != nil {
		fmt.Println(err)
		return
	}
	result := must(runs.Wait(ctx, run.Name))
	fmt.Println(result.State, string(result.Output))
	// Output:
	// taking an order of a lamp
	// done "order 17 is on its way"
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
