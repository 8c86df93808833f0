package oci_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit/oci"
)

// A package goes to a registry on this machine, where wkg would fetch it as example:greeting@1.0.0.
func ExamplePush() {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	known, err := abi.Parse("package example:greeting@1.0.0; interface hello { greet: func(name: string) -> string; }")
	if err != nil {
		fmt.Println(err)
		return
	}
	wasm, err := toolchain.EncodePackage(known, "example:greeting@1.0.0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := strings.TrimPrefix(server.URL, "http://") + "/example/greeting:1.0.0"
	manifest, err := oci.Push(context.Background(), ref, wasm, []string{"example:greeting/hello@1.0.0"}, oci.Options{PlainHTTP: true})
	fmt.Println(strings.HasPrefix(manifest, "sha256:"), err)
	// Output: true <nil>
}
