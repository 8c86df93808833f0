package npm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/toolchain/npm"
)

func Example() {
	ctx := context.Background()
	client, err := npm.New(npm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	found, err := client.Resolve(ctx, npm.Request{Dependencies: map[string]string{"zod": "^4.0.0"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range found.Packages {
		fmt.Println(p.Name, p.Version, p.LicenseText())
	}
}
