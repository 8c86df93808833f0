package code_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/code"
)

func Example() {
	// A program that embeds the host passes the method Run of an evaluate.Evaluator instead.
	evaluate := func(_ context.Context, p code.Program, done func([]byte, error)) { done([]byte(`"ran"`), nil) }
	ctx := context.Background()
	runner, err := code.New(code.Rights{Limits: code.Limits{Bytes: 20}}, evaluate).Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	run, err := runner.(*code.Runner).Start(ctx, "return 'ran'", "code.ts", "null", nothing{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = run.Close() }()
	fmt.Println(run.Take(ctx))
	_, err = runner.(*code.Runner).Start(ctx, "return 'this is too long'", "code.ts", "null", nothing{})
	fmt.Println(err)
	// Output:
	// "ran" <nil>
	// exhausted: bytes of code and input: 20; the option bytes of the binding raises it
}

// nothing is an env without bindings, as the host passes it.
type nothing struct{}

func (nothing) Capabilities() map[string]abi.Capability { return map[string]abi.Capability{} }
func (nothing) Origin(string) string                    { return "" }
