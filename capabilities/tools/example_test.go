package tools_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
)

func Example() {
	box, err := tools.New(tools.Options{
		Resolve: func(string) (tools.Func, error) {
			return func(_ context.Context, _ string, input []byte, _ map[string]abi.Capability, done func([]byte, error)) {
				done(input, nil)
			}, nil
		},
		Finder: tools.NewCatalog([]tools.Description{{Name: "echo", Description: "Returns its input"}}),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range box.Search(context.Background(), "input", 10) {
		fmt.Println(d.Name)
	}
	// Output: echo
}
