package trial_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
)

func Example() {
	var c *host.Component // of the extension, see package toolchain
	var m *extension.Manifest
	results, err := trial.Run(context.Background(), trial.Request{Component: c, Bindings: m.Bindings, Tests: m.Tests})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Name, r.Passed, r.Problem)
	}
}
