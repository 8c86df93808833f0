package adapter_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/stilehost/stile/conformance/adapter"
)

// A runner asks the host for a version of the protocol that it does not speak.
func ExampleServe() {
	in := strings.NewReader(`{"id": 1, "op": "hello", "protocol": 9}` + "\n")
	if err := adapter.Serve(context.Background(), in, os.Stdout, adapter.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output: {"id":1,"error":"this host speaks version 1 of the protocol"}
}
