package lifecycle_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

func Example() {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	m, err := lifecycle.Open(ctx, lifecycle.Options{
		Dir: "state", Host: h, Toolchain: func(ctx context.Context) (*toolchain.Toolchain, error) {
			return toolchain.New(ctx, h, toolchain.Options{})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	me := extension.Scope{Kind: extension.User, Owner: "ada"}
	written, err := m.Write(ctx, lifecycle.Draft{
		Scope: me, Author: me.String(), Manifest: []byte(`{"name": "greeter", "version": "1.0.0", "description": "Greets", "tools": ["hello"]}`),
		Files: map[string][]byte{"tool.ts": []byte(`export const hello = () => "Hello";`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(written.Release.State) // an extension that only computes activates immediately
	result, err := m.Call(ctx, lifecycle.Call{Viewer: lifecycle.Viewer{User: "ada"}, Tool: "greeter_hello", Input: []byte("{}")})
	fmt.Println(string(result.Output), err)
}
